/* table.c: the table of reference kernels: complete, so that other tables may start as a copy of it. */
#include "array/cpu/ref/ref.h"

const kernels kernels_ref = {
    .isa = "ref",
#define ROW(op) [OP_##op] = ref_ew_##op,
    .ew1 = {REF_EW1(ROW)},
    .ew2 = {REF_EW2(ROW)},
#undef ROW
#define SLOT(ret, name, args) .name = ref_##name,
#include "array/cpu/kernels.def"
#undef SLOT
};
