/* qmm8_dotprod.c: qmm8 on NEON with the dot product extension (Armv8.2). */
#include <arm_neon.h>

static inline __attribute__((always_inline)) int32x4_t dot16(int32x4_t acc, int8x16_t w,
                                                             int8x16_t x)
{
    return vdotq_s32(acc, w, x);
}

#include "array/cpu/arm/qmm8_neon.h"

void qmm8_dotprod(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
                  size_t rec_stride, int act_group, size_t nt, char *scratch);
void qmm8_dotprod(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
                  size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
