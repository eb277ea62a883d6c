/* tlex.h: a template's text cut into tokens, with white-space control applied. */
#ifndef LM_TEMPLATE_TLEX_H
#define LM_TEMPLATE_TLEX_H
#include "lm/template.h"
#include "lm/template/tval.h"

typedef enum ttoken_kind {
    K_END,  /* of the text */
    K_DATA, /* text between tags: value */
    K_PRINT_BEGIN,
    K_PRINT_END,
    K_TAG_BEGIN,
    K_TAG_END,
    K_NAME,    /* text */
    K_CONST,   /* string or number: value */
    K_OPERATOR /* text */
} ttoken_kind;

typedef struct ttoken {
    ttoken_kind kind;
    uint32_t line;
    str text; /* as written */
    tval value;
} ttoken;

typedef enum tlex_mode { LEX_DATA, LEX_PRINT, LEX_TAG } tlex_mode;
typedef struct tlex {
    const char *what; /* names the template in errors */
    str text;         /* newlines normalised, the last one dropped */
    size_t at;
    uint32_t line;
    tlex_mode mode;
    bool line_start;    /* the last token ended a line, or nothing was read yet */
    char brackets[256]; /* closing brackets awaited */
    size_t n_brackets;
    arena *memory; /* of values */
} tlex;

/* Normalises text into the arena and checks that it is UTF-8. */
ig_status tlex_open(tlex *l, const char *what, str text, arena *memory);
/* The next token; data tokens are never empty. */
ig_status tlex_next(tlex *l, ttoken *ret);
#endif
