/* Any bytes through the strict decoders of str.h: what is accepted is what the encoders write. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_base64(str s)
{
    uint8_t out[1024];
    size_t n = 0;
    if (!base64_decode(s, out, sizeof out, &n)) return;
    AUTO(buf) b = {0};
    buf_init(&b, 4096);
    buf_base64(&b, out, n);
    if (buf_status(&b) != IG_OK || !str_eq((str){b.data, b.n}, s)) abort();
}

static void check_hex(str s)
{
    uint8_t out[1024];
    if (s.n > 2 * sizeof out || !hex_decode(s, out, s.n / 2)) return;
    AUTO(buf) b = {0};
    buf_init(&b, 4096);
    buf_hex(&b, out, s.n / 2);
    if (buf_status(&b) != IG_OK || !str_eq((str){b.data, b.n}, s)) abort();
}

static void check_integer(str s)
{
    int64_t v;
    if (!str_int(s, INT64_MIN, INT64_MAX, &v)) return;
    AUTO(buf) b = {0};
    buf_init(&b, 64);
    buf_printf(&b, "%lld", (long long)v);
    if (buf_status(&b) != IG_OK || !str_eq((str){b.data, b.n}, s)) abort();
}

/* Characters one by one give the bytes back; a text that is valid is complete. */
static void check_utf8(str s)
{
    size_t i = 0;
    uint32_t cp;
    char back[4];
    for (size_t n; i < s.n && (n = utf8_decode(s.p + i, s.n - i, &cp)) > 0; i += n)
        if (utf8_encode(cp, back) != n || memcmp(back, s.p + i, n) != 0) abort();
    if (utf8_valid(s.p, s.n) != (i == s.n)) abort();
    size_t whole = utf8_complete(s.p, s.n);
    if (whole > s.n || s.n - whole > 3 || (i == s.n && whole != s.n)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str s = {(const char *)data, size};
    double d;
    check_base64(s);
    check_hex(s);
    check_integer(s);
    check_utf8(s);
    if (str_double(s, &d) && !(d - d == 0)) abort();
    return 0;
}
