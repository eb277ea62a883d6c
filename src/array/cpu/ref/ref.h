/* ref.h: the reference kernels: every slot of kernels.def in plain C, in exactly the order of docs/numerics.md. They are the oracle that
 * every instruction set is tested against, and what runs where there is nothing better. */
#ifndef CPU_REF_H
#define CPU_REF_H
#include "array/cpu/kernels.h"

#define SLOT(ret, name, args) ret ref_##name args;
#include "array/cpu/kernels.def"
#undef SLOT

#define SUM_BLOCK 4096
#define SUM_LANES 64

/* Folds the 64 partial sums of a block 32-16-8-4-2-1; destroys them. */
float ref_fold(float partial[SUM_LANES]);

/* The float32 entries of kernels.ew1 and kernels.ew2. */
#define REF_EW1(ROW)                                                                                                   \
    ROW(negative) ROW(abs) ROW(sign) ROW(square) ROW(sqrt) ROW(rsqrt) ROW(reciprocal) ROW(exp) ROW(expm1) ROW(log)     \
    ROW(log1p) ROW(tanh) ROW(sigmoid) ROW(silu) ROW(erf) ROW(sin) ROW(cos) ROW(floor) ROW(ceil) ROW(rint)
#define REF_EW2(ROW) ROW(add) ROW(subtract) ROW(multiply) ROW(divide) ROW(maximum) ROW(minimum) ROW(power)
#define DECLARE(op) void ref_ew_##op(float *y, const float *a, size_t n);
REF_EW1(DECLARE)
#undef DECLARE
#define DECLARE(op) void ref_ew_##op(float *y, const float *a, const float *b, size_t n);
REF_EW2(DECLARE)
#undef DECLARE
#endif
