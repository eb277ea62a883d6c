/* convert.c: f16 and bf16 to and from f32, nearest even, NaN kept quiet (base/half.h element by
 * element). */
#include "array/cpu/ref/ref.h"
#include "base/half.h"

void ref_f16_to_f32(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = f16_to_f32(x[i]);
}

void ref_bf16_to_f32(float *y, const uint16_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = bf16_to_f32(x[i]);
}

void ref_f32_to_f16(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = f32_to_f16(x[i]);
}

void ref_f32_to_bf16(uint16_t *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = f32_to_bf16(x[i]);
}
