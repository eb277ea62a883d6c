/* elementwise.c: float32 functions of one and two arguments, an element at a time. y may equal an
 * input. */
#include <math.h>
#include "array/cpu/ref/ref.h"
#include "base/fmath.h"

#define EW1(op, value)                                   \
    void ref_ew_##op(float *y, const float *x, size_t n) \
    {                                                    \
        for (size_t i = 0; i < n; i++) {                 \
            float a = x[i];                              \
            y[i] = value;                                \
        }                                                \
    }
#define EW2(op, value)                                                     \
    void ref_ew_##op(float *y, const float *xa, const float *xb, size_t n) \
    {                                                                      \
        for (size_t i = 0; i < n; i++) {                                   \
            float a = xa[i], b = xb[i];                                    \
            y[i] = value;                                                  \
        }                                                                  \
    }

#include "array/cpu/ref/elementwise.def"

void ref_axpy(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = fmaf(a, x[i], y[i]);
}
