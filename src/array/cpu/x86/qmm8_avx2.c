/* qmm8_avx2.c: the entry of qmm8 on AVX2: which body, and rows beyond a multiple of eight. */
#include "array/cpu/x86/qmm8_avx2.h"

static size_t up64(size_t n) { return (n + 63) / 64 * 64; }
static size_t code_bytes(const qmat *w) { return (size_t)w->k / 8 * (size_t)w->bits; }
static size_t scale_bytes(const qmat *w)
{
    return (size_t)(w->k / w->group) * (w->sb_type == IG_F32 ? 4 : 2);
}

size_t qmm8_tail_bytes_avx2(const qmat *w)
{
    return up64(QROWS * code_bytes(w)) + 2 * up64(QROWS * scale_bytes(w));
}

static const void *copy_rows(char *to, const void *from, size_t row_bytes, int64_t n,
                             int64_t n_rows)
{
    size_t have = (size_t)n_rows * row_bytes;
    memcpy(to, (const char *)from + (size_t)n * row_bytes, have);
    memset(to + have, 0, QROWS * row_bytes - have);
    return to;
}

qmat qmm8_tail_avx2(const qmat *w, int64_t n, int64_t n_rows, char *scratch)
{
    qmat t = *w;
    char *scales = scratch + up64(QROWS * code_bytes(w)),
         *biases = scales + up64(QROWS * scale_bytes(w));
    t.n = QROWS;
    t.codes = copy_rows(scratch, w->codes, code_bytes(w), n, n_rows);
    t.scales = copy_rows(scales, w->scales, scale_bytes(w), n, n_rows);
    t.biases = copy_rows(biases, w->biases, scale_bytes(w), n, n_rows);
    return t;
}

void qmm8_avx2(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
               size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    qmm8_call c = {y, ldy, w, n0, n1, rec, rec_stride, (size_t)act_group, nt, scratch};
    size_t rest = KERNEL_SCRATCH_BYTES - qmm8_tail_bytes_avx2(w);
    size_t few = w->k > 4096 ? 2 : WALK_MAX; /* long rows of more tokens do not fit L1 */
    if (nt > few && qmm8tile_bytes_avx2(w) <= rest)
        qmm8tile_avx2(&c);
    else if (qmm8walk_bytes_avx2(w) <= rest)
        qmm8walk_avx2(&c);
    else /* rows of some hundred thousand codes */
        kernels_ref.qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
}
