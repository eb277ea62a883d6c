/* elementwise.c: float32 functions of one and two arguments, and axpy. y may equal an input.
 * Meaning: the head of kernels.def; error bounds of the transcendental ones: base/fmath_body.h.
 * Cost: one pass, 1 to 40 operations a vector. */
#include "array/cpu/vec/vec_kernels.h"

#define EW1(op, value)                                  \
    void K(ew_##op)(float *y, const float *x, size_t n) \
    {                                                   \
        size_t i = 0;                                   \
        for (; i + VF_N <= n; i += VF_N) {              \
            vf a = vf_load(x + i);                      \
            vf_store(y + i, value);                     \
        }                                               \
        if (i < n) {                                    \
            vf a = vf_loadn(x + i, n - i);              \
            vf_storen(y + i, n - i, value);             \
        }                                               \
    }
#define EW2(op, value)                                                    \
    void K(ew_##op)(float *y, const float *xa, const float *xb, size_t n) \
    {                                                                     \
        size_t i = 0;                                                     \
        for (; i + VF_N <= n; i += VF_N) {                                \
            vf a = vf_load(xa + i), b = vf_load(xb + i);                  \
            vf_store(y + i, value);                                       \
        }                                                                 \
        if (i < n) {                                                      \
            vf a = vf_loadn(xa + i, n - i), b = vf_loadn(xb + i, n - i);  \
            vf_storen(y + i, n - i, value);                               \
        }                                                                 \
    }

VEC_FN vf sign_of(vf a)
{
    vf zero = vf_set(0), r = vf_select(vf_lt(a, zero), vf_set(-1), zero);
    r = vf_select(vf_lt(zero, a), vf_set(1), r);
    return vf_select(vf_eq(a, a), r, a);
}

EW1(negative, vf_of_bits(vi_xor(vf_bits(a), vi_set(INT32_MIN))))
EW1(abs, vf_abs(a))
EW1(sign, sign_of(a))
EW1(square, vf_mul(a, a))
EW1(sqrt, vf_sqrt(a))
EW1(rsqrt, vf_div(vf_set(1), vf_sqrt(a)))
EW1(reciprocal, vf_div(vf_set(1), a))
EW1(exp, vf_exp(a))
EW1(expm1, vf_expm1(a))
EW1(log, vf_log(a))
EW1(log1p, vf_log1p(a))
EW1(tanh, vf_tanh(a))
EW1(sigmoid, vf_sigmoid(a))
EW1(silu, vf_silu(a))
EW1(erf, vf_erf(a))
EW1(sin, vf_sin(a))
EW1(cos, vf_cos(a))
EW1(floor, vf_floor(a))
EW1(ceil, vf_ceil(a))
EW1(rint, vf_rint(a))

EW2(add, vf_add(a, b))
EW2(subtract, vf_sub(a, b))
EW2(multiply, vf_mul(a, b))
EW2(divide, vf_div(a, b))
EW2(maximum, vf_max(a, b))
EW2(minimum, vf_min(a, b))
EW2(power, vf_pow(a, b))

void K(axpy)(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;
    vf av = vf_set(a);
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_fma(av, vf_load(x + i), vf_load(y + i)));
    if (i < n) {
        vf r = vf_fma(av, vf_loadn(x + i, n - i), vf_loadn(y + i, n - i));
        vf_storen(y + i, n - i, r);
    }
}
