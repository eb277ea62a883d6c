/* tunicode.h: what Python's str methods ask of characters. Categories are those of the utf8proc
 * that is linked (2.8: Unicode 15, where Python 3.11 has 14); all case mappings equal Python's. */
#ifndef LM_TEMPLATE_TUNICODE_H
#define LM_TEMPLATE_TUNICODE_H
#include "lm/template/tstr.h"

bool tunicode_space(uint32_t cp);     /* str.isspace, \s */
bool tunicode_printable(uint32_t cp); /* str.isprintable */
bool tunicode_alpha(uint32_t cp);     /* str.isalpha */
bool tunicode_decimal(uint32_t cp);   /* str.isdecimal */
bool tunicode_digit(uint32_t cp);     /* str.isdigit */
bool tunicode_number(uint32_t cp);    /* categories Nd, Nl, No */
bool tunicode_upper(uint32_t cp);     /* str.isupper of one character */
bool tunicode_lower(uint32_t cp);
bool tunicode_cased(uint32_t cp);
/* Value of a decimal digit of any script, or -1. */
int tunicode_decimal_value(uint32_t cp);

typedef enum tcase { CASE_LOWER, CASE_UPPER, CASE_CAPITALIZE, CASE_TITLE, CASE_FOLD } tcase;
/* Appends s, which is flat, in that case; every character keeps its mark. CASE_TITLE is
 * str.title. */
void tunicode_case(tbuild *b, const tstr *s, tcase how);

/* Bytes of white space at the start and at the end of p[0, n), which is UTF-8. */
size_t tunicode_leading(const char *p, size_t n);
size_t tunicode_trailing(const char *p, size_t n);
#endif
