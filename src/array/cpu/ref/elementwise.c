/* elementwise.c: float32 functions of one and two arguments, an element at a time. y may equal an input. */
#include <math.h>
#include "array/cpu/ref/ref.h"
#include "base/fmath.h"

#define EW1(op, value)                                                                             \
    void ref_ew_##op(float *y, const float *x, size_t n)                                           \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            float a = x[i];                                                                        \
            y[i] = value;                                                                          \
        }                                                                                          \
    }
#define EW2(op, value)                                                                             \
    void ref_ew_##op(float *y, const float *xa, const float *xb, size_t n)                         \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            float a = xa[i], b = xb[i];                                                            \
            y[i] = value;                                                                          \
        }                                                                                          \
    }

EW1(negative, -a)
EW1(abs, fabsf(a))
EW1(sign, a != a ? a : (float)((a > 0) - (a < 0)))
EW1(square, a *a)
EW1(sqrt, sqrtf(a))
EW1(rsqrt, 1.0f / sqrtf(a))
EW1(reciprocal, 1.0f / a)
EW1(exp, fmath_exp(a))
EW1(expm1, fmath_expm1(a))
EW1(log, fmath_log(a))
EW1(log1p, fmath_log1p(a))
EW1(tanh, fmath_tanh(a))
EW1(sigmoid, fmath_sigmoid(a))
EW1(silu, fmath_silu(a))
EW1(erf, fmath_erf(a))
EW1(sin, fmath_sin(a))
EW1(cos, fmath_cos(a))
EW1(floor, floorf(a))
EW1(ceil, ceilf(a))
EW1(rint, rintf(a))

EW2(add, a + b)
EW2(subtract, a - b)
EW2(multiply, a *b)
EW2(divide, a / b)
EW2(maximum, a != a ? a : a > b ? a : b)
EW2(minimum, a != a ? a : a < b ? a : b)
EW2(power, fmath_pow(a, b))

void ref_axpy(float *y, float a, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = fmaf(a, x[i], y[i]);
}
