/* qmm8_vnni.c: qmm8 on AVX-512 with VNNI: four products and their sum are one instruction.
 * Measured on Zen 4: the walk to three tokens, tiles from four; rows beyond 4096 codes of more
 * than two do not fit L1. */
#define ISA avx512
#include "array/cpu/x86/qmm8.h"

/* acc[i] + four products: codes unsigned, x signed. */
VEC_FN __m512i dot_bytes(__m512i acc, __m512i codes, __m512i x)
{
    return _mm512_dpbusd_epi32(acc, codes, x);
}
VEC_FN __m512i dot_nibbles(__m512i acc, __m512i codes, __m512i x)
{
    return _mm512_dpbusd_epi32(acc, codes, x);
}

/* The same with four codes of x in all lanes. By name, since compilers load the word by an
 * instruction of its own. */
VEC_FN __m512i dot_word(__m512i acc, __m512i codes, const uint8_t *x, int bits)
{
    (void)bits;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(codes), "m"(*(const uint8_t(*)[4])x));
    return acc;
}
#include "array/cpu/x86/qmm8walk_512.h"
#include "array/cpu/x86/qmm8tile_512.h"

void qmm8_vnni(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch);

/* AVX2's body, for what does not fit these. */
void qmm8_avx2(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch);

void qmm8_vnni(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8_call c = {y, ldy, w, n0, n1, rec, rec_stride, (size_t)act_group, nt, scratch};
    bool many = nt > (w->k > 4096 ? 2 : 3);
    if (w->n >= QROWS && many && tile_bytes(w) <= KERNEL_SCRATCH_BYTES)
        tile_rows(&c);
    else if (w->n >= QROWS && walk_bytes(w) <= KERNEL_SCRATCH_BYTES)
        walk_rows(&c);
    else
        qmm8_avx2(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
