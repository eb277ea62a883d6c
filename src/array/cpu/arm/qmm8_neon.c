/* qmm8_neon.c: qmm8 on NEON: the reference body. */
#define ISA neon
#include "array/cpu/vec/vec_kernels.h"

void qmm8_neon(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    kernels_ref.qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
