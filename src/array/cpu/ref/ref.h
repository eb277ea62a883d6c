/* ref.h: the reference kernels: every slot of kernels.def in plain C, in exactly the order of
 * docs/numerics.md. They are the oracle that every instruction set is tested against, and what runs
 * where there is nothing better. */
#ifndef CPU_REF_H
#define CPU_REF_H
#include "array/cpu/kernels.h"

#define SLOT(ret, name, args) ret ref_##name args;
#include "array/cpu/kernels.def"
#undef SLOT

/* Folds the 64 partial sums of a block 32-16-8-4-2-1; destroys them. */
float ref_fold(float partial[SUM_LANES]);

#define EW1(op, value) void ref_ew_##op(float *y, const float *a, size_t n);
#define EW2(op, value) void ref_ew_##op(float *y, const float *a, const float *b, size_t n);
#include "array/cpu/ref/elementwise.def"
#undef EW1
#undef EW2
#endif
