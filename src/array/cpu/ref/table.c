/* table.c: the table of reference kernels: complete, so that other tables may start as a copy of
 * it. */
#include "array/cpu/ref/ref.h"

const kernels kernels_ref = {
    .isa = "ref",
#define EW1(op, value) .ew1[OP_##op] = ref_ew_##op,
#define EW2(op, value) .ew2[OP_##op] = ref_ew_##op,
#include "array/cpu/ref/elementwise.def"
#undef EW1
#undef EW2
#define SLOT(ret, name, args) .name = ref_##name,
#include "array/cpu/kernels.def"
#undef SLOT
};
