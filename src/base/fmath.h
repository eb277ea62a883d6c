/* fmath.h: float32 exp, log, tanh, sigmoid, erf, sin, cos with the same bits on every machine:
 * fmath_exp(x) and so on. The scalar instance of fmath_body.h, which has the definitions and error
 * bounds; vector kernels instantiate the same body. Needs -ffp-contract=off, round-to-nearest, and
 * neither FTZ nor DAZ. */
#ifndef BASE_FMATH_H
#define BASE_FMATH_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline int32_t fmath_bits(float x)
{
    int32_t k;
    memcpy(&k, &x, sizeof k);
    return k;
}

static inline float fmath_of_bits(int32_t k)
{
    float x;
    memcpy(&x, &k, sizeof x);
    return x;
}

/* x = q * pi/2 + *ret_r for any finite x >= 2^15, exactly to 2^-61 of a quarter turn (Payne and
 * Hanek); q modulo 4 is returned. Infinities and NaN give r = NaN. */
static inline int32_t fmath_pio2_large(float x, float *ret_r)
{
    /* bits of 2/pi behind the binary point, after a zero word that keeps the window inside */
    static const uint32_t two_over_pi[7] = {0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                            0xf534ddc0, 0xdb629599, 0x3c439041};
    uint32_t bits = (uint32_t)fmath_bits(x);
    if (bits >= 0x7f800000u) {
        *ret_r = fmath_of_bits(0x7fc00000);
        return 0;
    }
    /* x = m * 2^(e - 32), m with its top bit set. Bits of 2/pi above 2^(34 - e) add multiples
     * of 4. */
    uint64_t m = (uint64_t)((bits & 0x7fffff) | 0x800000) << 8;
    uint32_t at = (bits >> 23) - 126 - 34 + 32, word = at >> 5, shift = at & 31;
    uint64_t w[3];
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t pair = (uint64_t)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1];
        w[i] = pair << shift >> 32;
    }
    uint64_t turns = (m * w[0] << 32) + m * w[1] + (m * w[2] >> 32); /* unit: 2^-62 quarter turns */
    uint64_t rounded = turns + ((uint64_t)1 << 61);
    int64_t rest = (int64_t)(rounded & (((uint64_t)1 << 62) - 1)) - ((int64_t)1 << 61);
    *ret_r = (float)((double)rest * 0x1.921fb54442d18p-62);
    return (int32_t)(rounded >> 62);
}

static inline int32_t fmath_shl(int32_t k, int n) { return (int32_t)((uint32_t)k << n); }
static inline int32_t fmath_iadd(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}
static inline int32_t fmath_isub(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a - (uint32_t)b);
}

#define FMATH(name) fmath_##name
#define FMATH_FN static inline
#define vf float
#define vi int32_t
#define vm bool
#define vf_set(c) (c)
#define vi_set(c) (c)
#define vf_add(a, b) ((a) + (b))
#define vf_sub(a, b) ((a) - (b))
#define vf_mul(a, b) ((a) * (b))
#define vf_div(a, b) ((a) / (b))
#define vf_fma(a, b, c) __builtin_fmaf(a, b, c)
#define vf_lesser(a, b) fmath_lesser(a, b)
#define vf_greater(a, b) fmath_greater(a, b)
#define vf_lt(a, b) ((a) < (b))
#define vf_eq(a, b) ((a) == (b))
#define vi_eq(a, b) ((a) == (b))
#define vf_select(m, a, b) ((m) ? (a) : (b))
#define vi_select(m, a, b) ((m) ? (a) : (b))
#define vm_any(m) (m)
#define vf_bits(x) fmath_bits(x)
#define vf_of_bits(k) fmath_of_bits(k)
#define vf_of_int(k) ((float)(k))
#define vi_add(a, b) fmath_iadd(a, b)
#define vi_sub(a, b) fmath_isub(a, b)
#define vi_and(a, b) ((a) & (b))
#define vi_xor(a, b) ((a) ^ (b))
#define vi_shl(k, n) fmath_shl(k, n)
#define vi_sar(k, n) ((k) >> (n))
#define vf_pio2_large(m, x, r, q) (*(q) = fmath_pio2_large(x, r))

static inline float fmath_lesser(float a, float b) { return a < b ? a : b; }
static inline float fmath_greater(float a, float b) { return a > b ? a : b; }

#include "base/fmath_body.h"

#undef FMATH
#undef FMATH_FN
#undef vf
#undef vi
#undef vm
#undef vf_set
#undef vi_set
#undef vf_add
#undef vf_sub
#undef vf_mul
#undef vf_div
#undef vf_fma
#undef vf_lesser
#undef vf_greater
#undef vf_lt
#undef vf_eq
#undef vi_eq
#undef vf_select
#undef vi_select
#undef vm_any
#undef vf_bits
#undef vf_of_bits
#undef vf_of_int
#undef vi_add
#undef vi_sub
#undef vi_and
#undef vi_xor
#undef vi_shl
#undef vi_sar
#undef vf_pio2_large
#endif
