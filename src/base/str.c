/* str.c: slices, strict UTF-8, strict numbers, base64 and hex in (contract in str.h). Reads only
 * the bytes it is given, allocates nothing, knows no locale. */
#define _GNU_SOURCE /* strtod_l */
#include "base/str.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool str_eq(str a, str b) { return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0); }

bool str_starts(str s, str prefix)
{
    return s.n >= prefix.n && str_eq((str){s.p, prefix.n}, prefix);
}

bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n && str_eq((str){s.p + (s.n - suffix.n), suffix.n}, suffix);
}

/* Length of a character from its first byte; 0 when no character starts so. */
static size_t length_of(uint8_t lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xC2) return 0; /* a continuation, or an overlong form of ASCII */
    if (lead < 0xE0) return 2;
    if (lead < 0xF0) return 3;
    return lead < 0xF5 ? 4 : 0;
}

/* May `second` follow `lead`? This is where overlong forms, surrogates and values past U+10FFFF are
 * refused (Unicode 15, table 3-7). */
static bool second_fits(uint8_t lead, uint8_t second)
{
    switch (lead) {
    case 0xE0: return second >= 0xA0 && second <= 0xBF;
    case 0xED: return second >= 0x80 && second <= 0x9F;
    case 0xF0: return second >= 0x90 && second <= 0xBF;
    case 0xF4: return second >= 0x80 && second <= 0x8F;
    default: return second >= 0x80 && second <= 0xBF;
    }
}

size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp)
{
    const uint8_t *u = (const uint8_t *)p;
    size_t len = n ? length_of(u[0]) : 0;
    if (len == 0 || len > n) return 0;
    if (len == 1) {
        *ret_cp = u[0];
        return 1;
    }
    if (!second_fits(u[0], u[1])) return 0;
    uint32_t cp = u[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) return 0;
        cp = cp << 6 | (u[i] & 0x3Fu);
    }
    *ret_cp = cp;
    return len;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t len = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(leads[len] | cp);
    return len;
}

bool utf8_valid(const char *p, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(p + i, n - i, &cp);
        if (len == 0) return false;
    }
    return true;
}

size_t utf8_complete(const char *p, size_t n)
{
    const uint8_t *u = (const uint8_t *)p;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t lead = u[n - back];
        if ((lead & 0xC0) == 0x80) continue;
        size_t len = length_of(lead);
        if (len <= back) return n; /* whole, or never a character */
        if (back > 1 && !second_fits(lead, u[n - back + 1])) return n;
        return n - back;
    }
    return n;
}

bool str_int(str s, int64_t lo, int64_t hi, int64_t *ret)
{
    bool negative = s.n > 0 && s.p[0] == '-';
    size_t i = negative;
    if (i >= s.n || (s.p[i] == '0' && s.n > 1)) return false; /* one spelling per number */
    int64_t v = 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        int64_t digit = s.p[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v)) return false;
        if (__builtin_add_overflow(v, negative ? -digit : digit, &v)) return false;
    }
    if (v < lo || v > hi) return false;
    *ret = v;
    return true;
}

static size_t digits_at(str s, size_t i)
{
    size_t n = 0;
    while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9') n++;
    return n;
}

/* -? digits (. digits)? ([eE] [+-]? digits)? and no more: no blanks, hexadecimal, inf or nan */
static bool is_decimal(str s)
{
    size_t i = s.n > 0 && s.p[0] == '-', n = digits_at(s, i);
    if (n == 0) return false;
    i += n;
    if (i < s.n && s.p[i] == '.') {
        if ((n = digits_at(s, ++i)) == 0) return false;
        i += n;
    }
    if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        i++;
        if (i < s.n && (s.p[i] == '+' || s.p[i] == '-')) i++;
        if ((n = digits_at(s, i)) == 0) return false;
        i += n;
    }
    return i == s.n;
}

bool str_double(str s, double *ret)
{
    char text[512]; /* a double in full needs fewer; longer spellings are refused */
    if (s.n >= sizeof text || !is_decimal(s)) return false;
    memcpy(text, s.p, s.n);
    text[s.n] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc: a static object */
    if (!c) return false;
    double v = strtod_l(text, NULL, c);
    freelocale(c);
    if (!isfinite(v)) return false;
    *ret = v;
    return true;
}

/* Value of a base64 digit, or -1. */
static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(str s, uint8_t *out, size_t cap, size_t *ret_n)
{
    if (s.n % 4 != 0) return false;
    size_t n_pad = s.n == 0 ? 0 : (s.p[s.n - 1] == '=') + (size_t)(s.p[s.n - 2] == '=');
    if (n_pad == 2 && s.p[s.n - 1] != '=') return false;
    size_t n = s.n / 4 * 3 - n_pad, o = 0;
    if (n > cap) return false;
    for (size_t i = 0; i < s.n; i += 4) {
        size_t n_digits = i + 4 == s.n ? 4 - n_pad : 4;
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < n_digits ? base64_value(s.p[i + k]) : 0;
            if (digit < 0) return false;
            v = v << 6 | (uint32_t)digit;
        }
        if (v & (n_digits == 2 ? 0xFFFFu : n_digits == 3 ? 0xFFu : 0u)) return false;
        for (size_t k = 0; k + 1 < n_digits; k++) out[o++] = (uint8_t)(v >> (16 - 8 * k));
    }
    *ret_n = n;
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_decode(str s, uint8_t *out, size_t n_out)
{
    if (n_out > SIZE_MAX / 2 || s.n != 2 * n_out) return false;
    for (size_t i = 0; i < n_out; i++) {
        int high = hex_value(s.p[2 * i]), low = hex_value(s.p[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
