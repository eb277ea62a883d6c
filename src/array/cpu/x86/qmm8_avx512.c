/* qmm8_avx512.c: qmm8 on AVX-512 without VNNI: the AVX2 bodies. */
#define ISA avx512
#include "array/cpu/vec/vec_kernels.h"

void qmm8_avx2(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch);

void qmm8_avx512(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
                 size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8_avx2(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
