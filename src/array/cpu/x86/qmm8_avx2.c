/* qmm8_avx2.c: the entry of qmm8 on AVX2: which body. Measured on Zen 4: the walk to four tokens,
 * tiles from five; rows beyond 4096 codes of more than two tokens do not fit L1, and tiles win
 * from three. */
#include "array/cpu/x86/qmm8_avx2.h"

void qmm8_avx2(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8_call c = {y, ldy, w, n0, n1, rec, rec_stride, (size_t)act_group, nt, scratch};
    bool many = nt > (w->k > 4096 ? 2 : WALK_MAX);
    if (w->n >= QROWS && many && qmm8tile_bytes_avx2(w) <= KERNEL_SCRATCH_BYTES)
        qmm8tile_avx2(&c);
    else if (w->n >= QROWS && qmm8walk_bytes_avx2(w) <= KERNEL_SCRATCH_BYTES)
        qmm8walk_avx2(&c);
    else /* a handful of rows, or rows of some hundred thousand codes */
        kernels_ref.qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
