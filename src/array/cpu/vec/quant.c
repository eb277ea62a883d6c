/* quant.c: int8 activation records, int8 KV vectors, rows of quantised matrices as f32.
 * rows8, kv8: two passes over a group (amax, codes); a group of 128 floats stays in L1. */
#include "array/cpu/vec/dequant.h"

#define F32_INF_BITS 0x7f800000
#define TINY_BITS 0x0d800000 /* 2^-100 */

/* Codes of n elements and their step: amax below 2^-100 is nothing, a value that is not finite
 * poisons the step. The largest magnitude is found on the bits, where infinities and NaN come out
 * on top. */
VEC_FN float codes_of(int8_t *codes, const float *x, size_t n)
{
    vi top = vi_set(0), magnitude = vi_set(0x7fffffff);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) top = vi_max(top, vi_and(vf_bits(vf_load(x + i)), magnitude));
    if (i < n) top = vi_max(top, vi_and(vf_bits(vf_loadn(x + i, n - i)), magnitude));
    int32_t bits = vi_hmax(top);
    if (bits < TINY_BITS || bits >= F32_INF_BITS) {
        memset(codes, 0, n);
        return bits < TINY_BITS ? 0.0f : NAN;
    }
    float amax = fmath_of_bits(bits);
    vf up = vf_set(127.0f / amax);
    for (i = 0; i + VF_N <= n; i += VF_N)
        vi_store_i8(codes + i, vi_of_f(vf_mul(vf_load(x + i), up)));
    if (i < n) vi_storen_i8(codes + i, n - i, vi_of_f(vf_mul(vf_loadn(x + i, n - i), up)));
    return amax / 127.0f;
}

void K(kv8)(int8_t *codes, float *d, const float *x, size_t n) { *d = codes_of(codes, x, n); }

VEC_FN int32_t sum_of_32(const int8_t *codes)
{
    vf s = vf_set(0); /* integers below 2^12: exact in any order */
    EACH (i, 32 / VF_N) s = vf_add(s, vf_load_i8(codes + i * VF_N));
    return (int32_t)vf_fold(s);
}

void K(rows8)(uint8_t *rec, const float *x, size_t n, int group)
{
    size_t g = (size_t)group, d_at = rows8_d_at(n), sums_at = rows8_sums_at(n, g), i = 0;
    int8_t *codes = (int8_t *)rec;
    float *d = (float *)(rec + d_at);
    int32_t *sums = (int32_t *)(rec + sums_at);
    for (; i < n; i += g) d[i / g] = codes_of(codes + i, x + i, n - i < g ? n - i : g);
    for (i = 0; i + 32 <= n; i += 32) sums[i / 32] = sum_of_32(codes + i);
    if (i < n) {
        int32_t s = 0;
        for (size_t k = i; k < n; k++) s += codes[k];
        sums[i / 32] = s;
    }
    memset(rec + n, 0, d_at - n);
    size_t used = sums_at + (n + 31) / 32 * 4;
    memset(rec + used, 0, rows8_bytes(n, g) - used);
}

void K(qrow)(float *y, const qmat *w, int64_t row) { dequantize(y, w, row, 0, (size_t)w->k); }
