/* qmm8_avx512.c: qmm8 on AVX-512 without VNNI. */
#define ISA avx512
#include "array/cpu/x86/qmm8.h"

/* acc[i] + four products: codes below 16, x signed. */
VEC_FN __m512i dot_nibbles(__m512i acc, __m512i codes, __m512i x)
{
    return _mm512_add_epi32(
        acc, _mm512_madd_epi16(_mm512_maddubs_epi16(codes, x), _mm512_set1_epi16(1)));
}
/* The same for any code: pairs of products pass 16 bits, so even and odd bytes go their own
 * ways. */
VEC_FN __m512i dot_bytes(__m512i acc, __m512i codes, __m512i x)
{
    __m512i even = _mm512_and_si512(codes, _mm512_set1_epi16(255)),
            odd = _mm512_srli_epi16(codes, 8);
    __m512i x_even = _mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), x_odd = _mm512_srai_epi16(x, 8);
    acc = _mm512_add_epi32(acc, _mm512_madd_epi16(even, x_even));
    return _mm512_add_epi32(acc, _mm512_madd_epi16(odd, x_odd));
}

/* The same with four codes of x in all lanes. */
VEC_FN __m512i dot_word(__m512i acc, __m512i codes, const uint8_t *x, int bits)
{
    int32_t four;
    memcpy(&four, x, 4);
    __m512i word = _mm512_set1_epi32(four);
    return bits == 4 ? dot_nibbles(acc, codes, word) : dot_bytes(acc, codes, word);
}
#include "array/cpu/x86/qmm8walk_512.h"
#include "array/cpu/x86/qmm8tile_512.h"

/* AVX2's body, for what does not fit these. */
void qmm8_avx2(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch);

void qmm8_avx512(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
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
