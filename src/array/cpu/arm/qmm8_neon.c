/* qmm8_neon.c: qmm8 on NEON without the dot product extension: products to 16 bits, added in
 * pairs to 32. */
#include <arm_neon.h>

static inline __attribute__((always_inline)) int32x4_t dot16(int32x4_t acc, int8x16_t w,
                                                             int8x16_t x)
{
    int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
    return vpadalq_s16(vpadalq_s16(acc, low), vmull_high_s8(w, x));
}

#include "array/cpu/arm/qmm8_neon.h"

void qmm8_neon(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
