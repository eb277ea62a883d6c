/* qmm8_avx2.h: the two AVX2 bodies of qmm8. */
#ifndef CPU_QMM8_AVX2_H
#define CPU_QMM8_AVX2_H
#define ISA avx2
#include "array/cpu/x86/qmm8.h"

/* Rows in one step of either body: the matrix has at least as many. */
#define QROWS 8
/* Tokens that the walk takes at once. */
#define WALK_MAX 4

/* Rows as linear streams, lanes are groups: for few tokens. */
void qmm8walk_avx2(const qmm8_call *c);
/* Rows in lanes, unpacked once for many tokens. */
void qmm8tile_avx2(const qmm8_call *c);
/* Scratch that either body needs for this matrix. */
size_t qmm8walk_bytes_avx2(const qmat *w);
size_t qmm8tile_bytes_avx2(const qmat *w);

/* n scales or biases from element `first` on as f32; n is a multiple of 8. */
VEC_FN void widen_scales(float *y, const void *p, ig_dtype t, size_t first, size_t n)
{
    if (t == IG_F16)
        for (size_t i = 0; i < n; i += VF_N) vf_store(y + i, load_as(p, IG_F16, first + i));
    else if (t == IG_BF16)
        for (size_t i = 0; i < n; i += VF_N) vf_store(y + i, load_as(p, IG_BF16, first + i));
    else
        memcpy(y, (const float *)p + first, n * sizeof *y);
}
#endif
