/* dequant.h: values fma(s, q, b) of a stretch of a row of a group-quantised matrix. */
#ifndef CPU_VEC_DEQUANT_H
#define CPU_VEC_DEQUANT_H
#include "array/cpu/vec/vec_kernels.h"

/* The codes of 32 elements as bytes; 8 codes are `bits` bytes of a little-endian bit stream. */
VEC_FN void unpack32(uint8_t *y, const uint8_t *p, int bits)
{
    for (int i = 0; i < 4; i++, p += bits, y += 8) {
        uint64_t word = 0;
        memcpy(&word, p, (size_t)bits);
        for (int k = 0; k < 8; k++) y[k] = (uint8_t)(word >> (k * bits) & ((1u << bits) - 1));
    }
}

VEC_FN void dequantize32(float *y, const uint8_t *p, int bits, vf s, vf b)
{
    uint8_t q[32];
    if (bits != 4 && bits != 8) unpack32(q, p, bits);
    EACH (i, 32 / VF_N) {
        int at = i * VF_N;
        vf v = bits == 4 ? vf_load_u4(p + at / 2) : vf_load_u8((bits == 8 ? p : q) + at);
        vf_store(y + at, vf_fma(s, v, b));
    }
}

/* Columns [k0, k1) of one row; both are multiples of the group. */
static inline void dequantize(float *y, const qmat *w, int64_t row, size_t k0, size_t k1)
{
    size_t group = (size_t)w->group,
           first = (size_t)row * (size_t)w->k; /* elements before this row */
    const uint8_t *p = w->codes + (first + k0) / 8 * (size_t)w->bits;
    for (size_t k = k0; k < k1; k += group) {
        vf s = vf_set(float_at(w->scales, w->sb_type, (first + k) / group));
        vf b = vf_set(float_at(w->biases, w->sb_type, (first + k) / group));
        for (size_t i = 0; i < group; i += 32, y += 32, p += 4 * w->bits) {
            if (w->bits == 4)
                dequantize32(y, p, 4, s, b);
            else if (w->bits == 8)
                dequantize32(y, p, 8, s, b);
            else
                dequantize32(y, p, w->bits, s, b);
        }
    }
}
#endif
