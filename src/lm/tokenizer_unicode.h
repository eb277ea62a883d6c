/* tokenizer_unicode.h: what kind of character a code point is, as `tokenizers` sees it. */
#ifndef LM_TOKENIZER_UNICODE_H
#define LM_TOKENIZER_UNICODE_H
#include "base/str.h"

bool unicode_is_space(uint32_t cp);                    /* White_Space */
bool unicode_is_numeric(uint32_t cp);                  /* N */
bool unicode_is_punctuation(uint32_t cp);              /* ASCII punctuation, P */
bool unicode_is_word(uint32_t cp);                     /* \w */
bool unicode_is_combining(uint32_t cp);                /* M */
bool unicode_is_nonspacing(uint32_t cp);               /* Mn */
bool unicode_is_other(uint32_t cp);                    /* Cc, Cf, Co */
bool unicode_is_chinese(uint32_t cp);                  /* CJK blocks of BERT */
size_t unicode_lower(uint32_t cp, uint32_t ret_cp[2]); /* 1 or 2 */
/* Newer than the library's normalisation tables: neither decomposes nor composes nor reorders. */
bool unicode_is_unnormalised(uint32_t cp);

/* Code point at p of text known to be valid; *ret_n its bytes. */
static inline uint32_t unicode_at(const char *p, size_t *ret_n)
{
    const uint8_t *b = (const uint8_t *)p;
    if (b[0] < 0x80) return *ret_n = 1, b[0];
    if (b[0] < 0xe0) return *ret_n = 2, (uint32_t)(b[0] & 31) << 6 | (b[1] & 63);
    if (b[0] < 0xf0)
        return *ret_n = 3, (uint32_t)(b[0] & 15) << 12 | (uint32_t)(b[1] & 63) << 6 | (b[2] & 63);
    return *ret_n = 4, (uint32_t)(b[0] & 7) << 18 | (uint32_t)(b[1] & 63) << 12 |
                           (uint32_t)(b[2] & 63) << 6 | (b[3] & 63);
}
/* Start of the character that ends before p (p > start). */
static inline const char *unicode_before(const char *p)
{
    do p--;
    while (((uint8_t)*p & 0xc0) == 0x80);
    return p;
}
#endif
