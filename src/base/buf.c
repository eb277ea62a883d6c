/* buf.c: growable bytes (contract in buf.h). The allocation is always one byte longer than the
 * content, for the NUL. After a failure the buffer takes nothing more, so that what it holds is a
 * prefix of what was meant, never a text with a hole. */
#include "base/buf.h"
#include <stdio.h>
#include <string.h>
#include "base/str.h"

#define FIRST_CAP 64

void buf_init(buf *b, size_t max) { *b = (buf){.max = max}; }

void buf_done(buf *b)
{
    mem_free(b->data);
    *b = (buf){.max = b->max};
}

void buf_clear(buf *b)
{
    b->n = 0;
    b->status = IG_OK;
    if (b->data) b->data[0] = 0;
}

/* Room for n more bytes and the NUL; NULL when there is none, which is remembered. */
static char *reserve(buf *b, size_t n)
{
    if (b->status != IG_OK) return NULL;
    if (n > b->max - b->n) {
        b->status = IG_ELIMIT;
        return NULL;
    }
    size_t need = b->n + n;
    if (need >= b->cap) {
        size_t cap = b->cap ? b->cap : FIRST_CAP;
        while (cap <= need) cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
        if (cap - 1 > b->max) cap = b->max + 1;
        char *data = mem_realloc(b->data, cap);
        if (!data) {
            b->status = IG_ENOMEM;
            return NULL;
        }
        b->data = data;
        b->cap = cap;
    }
    return b->data + b->n;
}

static void commit(buf *b, size_t n)
{
    b->n += n;
    b->data[b->n] = 0;
}

void buf_add(buf *b, const void *p, size_t n)
{
    char *to = reserve(b, n);
    if (!to) return;
    if (n) memcpy(to, p, n);
    commit(b, n);
}

void buf_str(buf *b, const char *s) { buf_add(b, s, strlen(s)); }

void buf_char(buf *b, char c) { buf_add(b, &c, 1); }

void buf_printf(buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        if (b->status == IG_OK) b->status = IG_EINVAL;
        return;
    }
    char *to = reserve(b, (size_t)n);
    if (!to) return;
    va_start(args, format);
    (void)vsnprintf(to, (size_t)n + 1, format, args);
    va_end(args);
    commit(b, (size_t)n);
}

/* The two-character escape of a byte, or 0. */
static char short_escape(unsigned char c)
{
    switch (c) {
    case '"': return '"';
    case '\\': return '\\';
    case '\b': return 'b';
    case '\f': return 'f';
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    default: return 0;
    }
}

/* One byte that JSON cannot hold as it is. */
static void put_escaped(buf *b, unsigned char c)
{
    char escape = short_escape(c);
    if (escape)
        buf_add(b, (char[]){'\\', escape}, 2);
    else if (c < 0x20)
        buf_printf(b, "\\u%04x", c);
    else
        buf_str(b, "\xEF\xBF\xBD"); /* not UTF-8: U+FFFD */
}

void buf_json_string(buf *b, const char *s, size_t n)
{
    buf_char(b, '"');
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        uint32_t unused;
        size_t k =
            c < 0x80 ? (c >= 0x20 && c != '"' && c != '\\') : utf8_decode(s + i, n - i, &unused);
        if (k) {
            i += k;
            continue;
        }
        buf_add(b, s + plain, i - plain);
        put_escaped(b, c);
        plain = ++i;
    }
    buf_add(b, s + plain, n - plain);
    buf_char(b, '"');
}

void buf_base64(buf *b, const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n_out;
    if (!mem_mul(n / 3 + (n % 3 != 0), 4, &n_out)) n_out = SIZE_MAX;
    char *to = reserve(b, n_out);
    if (!to) return;
    const uint8_t *in = p;
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)in[i] << 16;
        if (left > 1) v |= (uint32_t)in[i + 1] << 8;
        if (left > 2) v |= in[i + 2];
        *to++ = digits[v >> 18];
        *to++ = digits[v >> 12 & 63];
        *to++ = left > 1 ? digits[v >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[v & 63] : '=';
    }
    commit(b, n_out);
}

void buf_hex(buf *b, const void *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    size_t n_out;
    if (!mem_mul(n, 2, &n_out)) n_out = SIZE_MAX;
    char *to = reserve(b, n_out);
    if (!to) return;
    const uint8_t *in = p;
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[in[i] >> 4];
        *to++ = digits[in[i] & 15];
    }
    commit(b, n_out);
}

ig_status buf_status(const buf *b)
{
    switch (b->status) {
    case IG_OK: return IG_OK;
    case IG_ELIMIT:
        return ig_fail(IG_ELIMIT, "text or data is longer than its limit of %zu bytes", b->max);
    case IG_ENOMEM: return ig_fail(IG_ENOMEM, "out of memory after %zu bytes of a buffer", b->n);
    default: return ig_fail(b->status, "a value could not be formatted");
    }
}

char *buf_take(buf *b)
{
    char *data = b->data ? b->data : mem_calloc(1, 1);
    if (!data) b->status = IG_ENOMEM;
    if (data) *b = (buf){.max = b->max, .status = b->status};
    return data;
}
