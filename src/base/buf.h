/* buf.h: growable bytes with a maximum given at birth. Appending past the maximum, or without
 * memory, is remembered in `status`: append freely, then check buf_status once. The content is
 * always followed by a NUL that is not counted. */
#ifndef BASE_BUF_H
#define BASE_BUF_H
#include <stdarg.h>
#include "base/mem.h"

typedef struct buf {
    char *data;       /* owned; NULL while empty */
    size_t n;         /* bytes used */
    size_t cap;       /* bytes allocated */
    size_t max;       /* bytes allowed */
    ig_status status; /* first failure */
} buf;

void buf_init(buf *b, size_t max);
void buf_done(buf *b); /* frees; safe twice */
/* AUTO(buf) b; buf_init(&b, MAX); */
static inline void buf_auto(buf *b) { buf_done(b); }
void buf_clear(buf *b); /* keeps the memory, forgets content and failure */
void buf_add(buf *b, const void *p, size_t n);
void buf_str(buf *b, const char *s);
void buf_char(buf *b, char c);
IG_PRINTF(2, 3) void buf_printf(buf *b, const char *format, ...);
/* With quotes; control characters, quote and backslash escaped; UTF-8 kept as it is, a byte that is
 * none becomes U+FFFD. */
void buf_json_string(buf *b, const char *s, size_t n);
void buf_base64(buf *b, const void *p, size_t n); /* RFC 4648 standard, padded */
void buf_hex(buf *b, const void *p, size_t n);    /* lower case */
/* IG_OK, or the first failure, recorded. */
IG_MUST_USE ig_status buf_status(const buf *b);
/* Hands over the NUL-terminated data (never NULL when the status is OK); b is empty again. */
char *buf_take(buf *b);
#endif
