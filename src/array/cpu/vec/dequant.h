/* dequant.h: values fma(s, q, b) of a stretch of a row of a group-quantised matrix. */
#ifndef CPU_VEC_DEQUANT_H
#define CPU_VEC_DEQUANT_H
#include "array/cpu/vec/vec_kernels.h"

/* The codes of 32 elements as bytes; 32 elements are `bits` words of a little-endian bit stream. */
VEC_FN void unpack32(uint8_t *y, const uint8_t *p, int bits)
{
    if (bits == 8) {
        memcpy(y, p, 32);
    } else if (bits == 4) {
        for (int i = 0; i < 16; i++) {
            y[2 * i] = p[i] & 15;
            y[2 * i + 1] = p[i] >> 4;
        }
    } else {
        for (int i = 0; i < 4; i++, p += bits, y += 8) { /* 8 codes are `bits` bytes */
            uint64_t word = 0;
            memcpy(&word, p, (size_t)bits);
            for (int k = 0; k < 8; k++) y[k] = (uint8_t)(word >> (k * bits) & ((1u << bits) - 1));
        }
    }
}

/* Columns [k0, k1) of one row; both are multiples of the group. */
VEC_FN void dequantize(float *y, const qmat *w, int64_t row, size_t k0, size_t k1)
{
    size_t group = (size_t)w->group, bits = (size_t)w->bits;
    size_t first = (size_t)row * (size_t)w->k; /* elements before this row */
    for (size_t k = k0; k < k1; k += 32, y += 32) {
        vf s = vf_set(float_at(w->scales, w->sb_type, (first + k) / group));
        vf b = vf_set(float_at(w->biases, w->sb_type, (first + k) / group));
        uint8_t q[32];
        unpack32(q, w->codes + (first + k) / 8 * bits, w->bits);
        for (int i = 0; i < 32; i += VF_N) vf_store(y + i, vf_fma(s, vf_load_u8(q + i), b));
    }
}
#endif
