/* str.h: text helpers: slices, UTF-8, numbers, base64, hex. */
#ifndef BASE_STR_H
#define BASE_STR_H
#include "base/mem.h"

typedef struct str {
    const char *p; /* borrowed, not NUL-terminated */
    size_t n;      /* bytes */
} str;

static inline str str_of(const char *s) { return (str){s, __builtin_strlen(s)}; }
bool str_eq(str a, str b);
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);

/* Decodes one code point at p (n > 0 bytes). Returns its length 1..4, or 0 when the bytes are not
 * strict UTF-8 (overlong, surrogate, > U+10FFFF, truncated). */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp);
size_t utf8_encode(uint32_t cp, char out[4]); /* 1..4; cp must be a scalar value */
bool utf8_valid(const char *p, size_t n);
/* Length of the longest prefix of p that does not end inside a character. */
size_t utf8_complete(const char *p, size_t n);

/* Strict decimal integer in [lo, hi], whole string. */
bool str_int(str s, int64_t lo, int64_t hi, int64_t *ret);
bool str_double(str s, double *ret); /* locale-free, finite, whole string */
/* Strict decoders: canonical input only, exact output size known to the caller. */
bool base64_decode(str s, uint8_t *out, size_t cap, size_t *ret_n);
bool hex_decode(str s, uint8_t *out, size_t n_out); /* lower case, exactly 2*n_out digits */
#endif
