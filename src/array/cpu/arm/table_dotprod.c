/* table_dotprod.c: NEON's table, with the row that has a better body on the dot product
 * extension. */
#define ISA neon
#include "array/cpu/vec/vec_kernels.h"

void qmm8_dotprod(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
                  size_t rec_stride, int act_group, size_t nt, char *scratch);

#define qmm8_neon qmm8_dotprod
const kernels kernels_neondotprod = {
    .isa = "neon",
#define ROW(op) [OP_##op] = K(ew_##op),
    .ew1 = {VEC_EW1(ROW)},
    .ew2 = {VEC_EW2(ROW)},
#undef ROW
#define SLOT(ret, name, args) .name = K(name),
#include "array/cpu/kernels.def"
#undef SLOT
};
