/* table.c: the kernel table of one ISA. Every slot is its own; the body of qmm8 is in x86/ or
 * arm/. */
#include "array/cpu/vec/vec_kernels.h"

#define TABLE_(isa_) kernels_##isa_
#define TABLE(isa_) TABLE_(isa_)

const kernels TABLE(ISA) = {
    .isa = VEC_TEXT(ISA),
#define ROW(op) [OP_##op] = K(ew_##op),
    .ew1 = {VEC_EW1(ROW)},
    .ew2 = {VEC_EW2(ROW)},
#undef ROW
#define SLOT(ret, name, args) .name = K(name),
#include "array/cpu/kernels.def"
#undef SLOT
};
