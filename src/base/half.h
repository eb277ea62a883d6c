/* half.h: f16 and bf16 <-> f32 in plain C, exact and to nearest even, NaN kept quiet: the meaning
 * that kernels reproduce. Wider numbers reach them through an f32 that is rounded to odd:
 * truncated, the last bit set if anything was lost. Rounding that to 11 or 8 bits gives what
 * rounding the value itself would give; going through the nearest f32 would round twice. */
#ifndef BASE_HALF_H
#define BASE_HALF_H
#include <stdint.h>
#include <string.h>

static inline float half_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint32_t half_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
    if (e == 31) return half_bits_f32(sign | 0x7f800000 | (m ? 0x400000 : 0) | m << 13);
    if (e) return half_bits_f32(sign | (e + 112) << 23 | m << 13);
    float f = (float)m * 0x1p-24f; /* subnormal: exact */
    return sign ? -f : f;
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t u = half_f32_bits(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
    if (a >= 0x47800000) return (uint16_t)(sign | 0x7c00); /* 65536 and more */
    if (a < 0x38800000) {                                  /* subnormal or zero */
        /* ulp of 0.5f is 2^-24: rounds to nearest even */
        float r = half_bits_f32(a) + 0.5f;
        return (uint16_t)(sign | (half_f32_bits(r) - 0x3f000000));
    }
    uint32_t r = a + 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | (r - 0x38000000) >> 13);
}

static inline float bf16_to_f32(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    if ((u & 0x7fffffff) > 0x7f800000) u |= 0x400000;
    return half_bits_f32(u);
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u = half_f32_bits(f);
    if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float half_odd_f64(double a)
{
    float f = (float)a;
    if (a != a || (double)f == a) return f;
    uint32_t u = half_f32_bits(f);
    u -= ((double)f > a) == (a > 0); /* was rounded away from zero */
    return half_bits_f32(u | 1);
}

static inline float half_odd_u64(uint64_t a)
{
    int shift = 0;
    uint64_t lost = 0;
    for (; a >> 24; a >>= 1, shift++) lost |= a & 1;
    return (float)(a | lost) * (float)((uint64_t)1 << shift);
}

static inline float half_odd_i64(int64_t a)
{
    return a < 0 ? -half_odd_u64(0 - (uint64_t)a) : half_odd_u64((uint64_t)a);
}
#endif
