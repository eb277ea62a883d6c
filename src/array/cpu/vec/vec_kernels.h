/* vec_kernels.h: prototypes of one ISA's kernels, and what their bodies share. */
#ifndef CPU_VEC_KERNELS_H
#define CPU_VEC_KERNELS_H
#include "array/cpu/kernels.h"
#include "array/cpu/vec_sum.h"
#include "base/half.h"

#define SLOT(ret, name, args) ret K(name) args;
#include "array/cpu/kernels.def"
#undef SLOT

/* The float32 entries of kernels.ew1 and kernels.ew2. */
#define VEC_EW1(ROW) VEC_EW1_SIGN(ROW) VEC_EW1_ROOT(ROW) VEC_EW1_EXP(ROW) VEC_EW1_WAVE(ROW)
#define VEC_EW1_SIGN(ROW) ROW(negative) ROW(abs) ROW(sign) ROW(floor) ROW(ceil) ROW(rint)
#define VEC_EW1_ROOT(ROW) ROW(square) ROW(sqrt) ROW(rsqrt) ROW(reciprocal)
#define VEC_EW1_EXP(ROW) ROW(exp) ROW(expm1) ROW(log) ROW(log1p) ROW(sigmoid) ROW(silu)
#define VEC_EW1_WAVE(ROW) ROW(tanh) ROW(erf) ROW(sin) ROW(cos)
#define VEC_EW2(ROW) VEC_EW2_SUM(ROW) ROW(maximum) ROW(minimum) ROW(power)
#define VEC_EW2_SUM(ROW) ROW(add) ROW(subtract) ROW(multiply) ROW(divide)
#define DECLARE(op) void K(ew_##op)(float *y, const float *a, size_t n);
VEC_EW1(DECLARE)
#undef DECLARE
#define DECLARE(op) void K(ew_##op)(float *y, const float *a, const float *b, size_t n);
VEC_EW2(DECLARE)
#undef DECLARE

/* Element i of an array of f32, f16 or bf16. */
VEC_FN float float_at(const void *p, ig_dtype t, size_t i)
{
    if (t == IG_F32) return ((const float *)p)[i];
    return t == IG_F16 ? f16_to_f32(((const uint16_t *)p)[i])
                       : bf16_to_f32(((const uint16_t *)p)[i]);
}

/* VF_N elements of f32, f16 or bf16 as f32. */
VEC_FN vf load_as(const void *p, ig_dtype t, size_t at)
{
    return t == IG_F32   ? vf_load((const float *)p + at)
           : t == IG_F16 ? vf_load_f16((const uint16_t *)p + at)
                         : vf_load_bf16((const uint16_t *)p + at);
}
#endif
