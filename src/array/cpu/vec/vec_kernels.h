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
#define VEC_EW1(ROW)                                                                         \
    ROW(negative)                                                                            \
    ROW(abs)                                                                                 \
    ROW(sign)                                                                                \
    ROW(square) ROW(sqrt) ROW(rsqrt) ROW(reciprocal) ROW(exp) ROW(expm1) ROW(log) ROW(log1p) \
        ROW(tanh) ROW(sigmoid) ROW(silu) ROW(erf) ROW(sin) ROW(cos) ROW(floor) ROW(ceil) ROW(rint)
#define VEC_EW2(ROW) \
    ROW(add) ROW(subtract) ROW(multiply) ROW(divide) ROW(maximum) ROW(minimum) ROW(power)
#define DECLARE(op) void K(ew_##op)(float *y, const float *a, size_t n);
VEC_EW1(DECLARE)
#undef DECLARE
#define DECLARE(op) void K(ew_##op)(float *y, const float *a, const float *b, size_t n);
VEC_EW2(DECLARE)
#undef DECLARE

/* The elementwise rows of a kernel table. */
#define VEC_ROW(op) [OP_##op] = K(ew_##op),
#define VEC_TABLE_ROWS .ew1 = {VEC_EW1(VEC_ROW)}, .ew2 = {VEC_EW2(VEC_ROW)}

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
