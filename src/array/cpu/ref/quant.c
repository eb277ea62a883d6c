/* quant.c: int8 activation records, quantised matrices, int8 KV vectors. */
#include <math.h>
#include <string.h>
#include "array/cpu/ref/ref.h"
#include "base/half.h"

/* Codes of one group and their step d: amax below 2^-100 is nothing, a value that is not finite
 * poisons d. */
static float quantize_group(int8_t *codes, const float *x, size_t n)
{
    float amax = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && fabsf(x[i]) < INFINITY;
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    }
    memset(codes, 0, n);
    if (!finite) return NAN;
    if (amax < 0x1p-100f) return 0;
    float up = 127.0f / amax;
    for (size_t i = 0; i < n; i++) codes[i] = (int8_t)rintf(x[i] * up);
    return amax / 127.0f;
}

void ref_kv8(int8_t *codes, float *d, const float *x, size_t n)
{
    *d = quantize_group(codes, x, n);
}

void ref_rows8(uint8_t *rec, const float *x, size_t n, int group)
{
    size_t g = (size_t)group, d_at = rows8_d_at(n), sums_at = rows8_sums_at(n, g);
    int8_t *codes = (int8_t *)rec;
    float *d = (float *)(rec + d_at);
    int32_t *sums = (int32_t *)(rec + sums_at);
    for (size_t i = 0; i < n; i += g)
        d[i / g] = quantize_group(codes + i, x + i, n - i < g ? n - i : g);
    for (size_t i = 0; i < n; i += 32) {
        int32_t s = 0;
        for (size_t k = i; k < n && k < i + 32; k++) s += codes[k];
        sums[i / 32] = s;
    }
    memset(rec + n, 0, d_at - n);
    size_t used = sums_at + (n + 31) / 32 * 4;
    memset(rec + used, 0, rows8_bytes(n, g) - used);
}

/* Code i of a row: bits from a little-endian stream. */
static uint32_t code_at(const uint8_t *row, size_t i, int bits)
{
    size_t bit = i * (size_t)bits, byte = bit / 8, shift = bit % 8;
    uint32_t word = row[byte];
    if (shift + (size_t)bits > 8) word |= (uint32_t)row[byte + 1] << 8;
    return word >> shift & ((1u << bits) - 1);
}

/* Element i of an array of f32, f16 or bf16. */
static float float_at(const void *p, ig_dtype t, size_t i)
{
    if (t == IG_F32) return ((const float *)p)[i];
    return t == IG_F16 ? f16_to_f32(((const uint16_t *)p)[i])
                       : bf16_to_f32(((const uint16_t *)p)[i]);
}

/* Columns [k0, k1) of one row; k0 is a multiple of the group. */
static void dequantize(float *y, const qmat *w, int64_t row, size_t k0, size_t k1)
{
    const uint8_t *codes = w->codes + (size_t)row * (size_t)w->k * (size_t)w->bits / 8;
    size_t group = (size_t)w->group, first = (size_t)row * (size_t)w->k / group;
    for (size_t g = k0; g < k1; g += group) {
        float s = float_at(w->scales, w->sb_type, first + g / group);
        float b = float_at(w->biases, w->sb_type, first + g / group);
        for (size_t k = g; k < g + group && k < k1; k++)
            *y++ = fmaf(s, (float)code_at(codes, k, w->bits), b);
    }
}

void ref_qrow(float *y, const qmat *w, int64_t row) { dequantize(y, w, row, 0, (size_t)w->k); }

void ref_qmm(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const float *x,
             size_t ldx, size_t nt, char *scratch)
{
    float *values = (float *)scratch; /* one block of one row */
    size_t k = (size_t)w->k;
    for (int64_t n = n0; n < n1; n++) {
        for (size_t t = 0; t < nt; t++) y[t * ldy + (size_t)(n - n0)] = 0;
        for (size_t k0 = 0; k0 < k; k0 += SUM_BLOCK) {
            size_t k1 = k - k0 < SUM_BLOCK ? k : k0 + SUM_BLOCK;
            dequantize(values, w, n, k0, k1);
            for (size_t t = 0; t < nt; t++)
                y[t * ldy + (size_t)(n - n0)] += ref_dot(values, x + t * ldx + k0, k1 - k0);
        }
    }
}

/* One row of a quantised matrix times one record, in the 16-class order. */
static float qdot8(const qmat *w, int64_t n, const uint8_t *rec, size_t act_group)
{
    const uint8_t *codes = w->codes + (size_t)n * (size_t)w->k * (size_t)w->bits / 8;
    size_t k = (size_t)w->k, group = (size_t)w->group, first = (size_t)n * k / group;
    const int8_t *q = (const int8_t *)rec;
    const float *d = (const float *)(rec + rows8_d_at(k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(k, act_group));
    float acc[16] = {0};
    for (size_t g = 0; g < k; g += group) {
        int32_t dot = 0, sum = 0;
        for (size_t i = g; i < g + group; i++) dot += (int32_t)code_at(codes, i, w->bits) * q[i];
        for (size_t i = g; i < g + group; i += 32) sum += sums[i / 32];
        float s = float_at(w->scales, w->sb_type, first + g / group);
        float b = float_at(w->biases, w->sb_type, first + g / group);
        float u = fmaf(s, (float)dot, b * (float)sum);
        float *a = acc + g / 64 % 16;
        *a = fmaf(d[g / act_group], u, *a);
    }
    for (int half = 8; half; half /= 2)
        for (int c = 0; c < half; c++) acc[c] += acc[c + half];
    return acc[0];
}

void ref_qmm8(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
              size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    (void)scratch;
    for (size_t t = 0; t < nt; t++)
        for (int64_t n = n0; n < n1; n++)
            y[t * ldy + (size_t)(n - n0)] = qdot8(w, n, rec + t * rec_stride, (size_t)act_group);
}

void ref_mm(float *y, size_t ldy, const void *w, ig_dtype wt, size_t ldw, int64_t n0, int64_t n1,
            const float *x, size_t ldx, size_t k, size_t nt, char *scratch)
{
    float *values = (float *)scratch; /* one block of one row */
    for (int64_t n = n0; n < n1; n++) {
        for (size_t t = 0; t < nt; t++) y[t * ldy + (size_t)(n - n0)] = 0;
        for (size_t k0 = 0; k0 < k; k0 += SUM_BLOCK) {
            size_t nk = k - k0 < SUM_BLOCK ? k - k0 : SUM_BLOCK;
            for (size_t i = 0; i < nk; i++) values[i] = float_at(w, wt, (size_t)n * ldw + k0 + i);
            for (size_t t = 0; t < nt; t++)
                y[t * ldy + (size_t)(n - n0)] += ref_dot(values, x + t * ldx + k0, nk);
        }
    }
}
