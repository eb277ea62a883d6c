/* quant.h: group-quantised matrices and int8 activation rows as values.
 *
 * Layout is MLX's affine mode: codes [..., N, K*bits/32] u32, little-endian bit stream along K;
 * scales and biases [..., N, K/group] in f32, f16 or bf16; value of a code q is fma(scale, q,
 * bias). bits 2,3,4,5,6,8; group 32,64,128. */
#ifndef INGOT_QUANT_H
#define INGOT_QUANT_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct ig_quantized {
    ig_array codes, scales, biases;
    int32_t group; /* 32, 64, 128 */
    int32_t bits;  /* 2, 3, 4, 5, 6, 8 */
} ig_quantized;

/* Activation rows as int8: one record per row, natural order (docs/numerics.md):
 * codes int8[K] | pad to 4 | d f32[ceil(K/group)] | sums i32[ceil(K/32)] | pad to 64 bytes. */
typedef struct ig_rows8 {
    ig_array rec;   /* u8 [rows, ig_rows8_bytes(K, group)] */
    int64_t n_cols; /* K */
    int32_t group;  /* activation group: 32, 64, 128 */
} ig_rows8;

/* Bytes of one record; 0 for n_cols below 0 or above 2^31 - 1, or group below 1. */
IG_API int64_t ig_rows8_bytes(int64_t n_cols, int32_t group);

/* Quantises w [..., N, K] (f32, f16, bf16) as MLX does; codes u32, scales and biases in w's
 * dtype. */
IG_API ig_quantized ig_quantize(ig_array w, int32_t group, int32_t bits);
/* The inverse: [..., N, K] in the scales' dtype. */
IG_API ig_array ig_dequantize(ig_quantized w);
/* x [..., M, K] times wT: [..., M, N] f32 (transpose true), exact: activations as they are, the
 * float sum of docs/numerics.md. transpose false: x [..., M, N] times w: [..., M, K]. w is one
 * matrix [N, K], or has the leading dims of x. */
IG_API ig_array ig_quantized_matmul(ig_array x, ig_quantized w, bool transpose);
/* x [T, K] f32 to int8 rows. */
IG_API ig_rows8 ig_int8_rows(ig_array x, int32_t group);
/* int8 rows [T, K] times wT of a 4- or 8-bit matrix [N, K]: [T, N] f32, in the 16-class order.
 * x.group must be >= w.group. */
IG_API ig_array ig_quantized_matmul_rows8(ig_rows8 x, ig_quantized w);
/* Rows of a quantised table: ids [...] integer -> [..., K] f32. An id outside [0, N) gives a row
 * of NaN. */
IG_API ig_array ig_take_quantized(ig_quantized table, ig_array ids);

#ifdef __cplusplus
}
#endif
#endif
