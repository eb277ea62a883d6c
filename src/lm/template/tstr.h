/* tstr.h: strings of the template interpreter: UTF-8 with a mark of trust on every character, and
 * the builder that makes them. A string never changes; slices share its bytes; a concatenation is a
 * pair until somebody needs its bytes, so that appending piece by piece stays linear. */
#ifndef LM_TEMPLATE_TSTR_H
#define LM_TEMPLATE_TSTR_H
#include "base/buf.h"
#include "base/str.h"
#include "lm/arena.h"

typedef struct tspan {
    size_t end; /* first byte behind the span */
    bool trusted;
} tspan;

typedef struct tstr {
    const char *p;      /* not NUL-terminated; NULL while the string is a pair */
    size_t n;           /* bytes */
    size_t n_chars;     /* code points; SIZE_MAX: not counted yet */
    const tspan *spans; /* ends ascending, the last is n; NULL: all bytes are `trusted` */
    size_t n_spans;
    bool trusted;
    bool markup;                     /* Python's Markup: made by the filters safe and escape */
    const struct tstr *left, *right; /* of a pair */
    uint32_t height;                 /* of the tree of pairs */
} tstr;

/* Borrows p, which must outlive the arena's strings. */
tstr *tstr_new(arena *a, const char *p, size_t n, bool trusted);
tstr *tstr_of(arena *a, const char *s); /* of a constant; trusted */
tstr *tstr_concat(arena *a, const tstr *l, const tstr *r);
/* Makes the bytes of a pair; all functions below want flat strings and take only such. */
ig_status tstr_flatten(arena *a, const tstr *s);
/* Bytes [from, to), which must lie between characters. Shares bytes. */
tstr *tstr_sub(arena *a, const tstr *s, size_t from, size_t to);
size_t tstr_chars(const tstr *s); /* code points */
size_t tstr_offset(const tstr *s,
                   size_t i_char); /* byte where character i starts; n when there is none */
bool tstr_eq(const tstr *a, const tstr *b);
bool tstr_is(const tstr *s, const char *literal);
int tstr_cmp(const tstr *a, const tstr *b); /* by code points */
/* First occurrence of needle at or behind byte `from`; SIZE_MAX: none. */
size_t tstr_find(const tstr *s, const tstr *needle, size_t from);
/* Last occurrence that ends at or before byte `to`. */
size_t tstr_rfind(const tstr *s, const tstr *needle, size_t to);
static inline str tstr_bytes(const tstr *s) { return (str){s->p, s->n}; }

/* Grows in the heap; failure is remembered and told by tbuild_status and tbuild_take. */
typedef struct tbuild {
    buf bytes;
    tspan *spans; /* owned; neighbours differ */
    size_t n_spans, cap;
    bool failed; /* no memory for spans */
} tbuild;
void tbuild_init(tbuild *b, size_t max_bytes);
void tbuild_done(tbuild *b); /* frees; safe twice */
static inline void tbuild_auto(tbuild *b) { tbuild_done(b); }
void tbuild_add(tbuild *b, const char *p, size_t n, bool trusted);
void tbuild_text(tbuild *b, const char *s, bool trusted);
void tbuild_char(tbuild *b, uint32_t cp, bool trusted);
void tbuild_str(tbuild *b, const tstr *s);                         /* flat or a pair */
void tbuild_sub(tbuild *b, const tstr *s, size_t from, size_t to); /* s flat */
ig_status tbuild_status(const tbuild *b);
ig_status tbuild_take(tbuild *b, arena *a,
                      const tstr **ret_str); /* copies into the arena and empties b */

/* Walks the characters of a flat string: `while (tchars_next(&it))`. */
typedef struct tchars {
    const tstr *s;
    size_t at, next; /* bytes: this character, the one behind it */
    size_t span;     /* index into s->spans */
    uint32_t cp;
    bool trusted;
} tchars;
tchars tchars_of(const tstr *s);
bool tchars_next(tchars *it);
#endif
