/* qmm8.h: what the x86 bodies of qmm8 share: the call, the order in which the fold meets the 16
 * classes, the prefetch of a tile. Included after ISA is defined. */
#ifndef CPU_X86_QMM8_H
#define CPU_X86_QMM8_H
#include "array/cpu/vec/vec_kernels.h"

#define N_CLASSES 16

/* A call of qmm8 (kernels.def). */
typedef struct qmm8_call {
    float *y;
    size_t ldy;
    const qmat *w;
    int64_t n0, n1;
    const uint8_t *rec;
    size_t rec_stride;
    size_t act_group, nt;
    char *scratch;
} qmm8_call;

VEC_FN size_t up64(size_t n) { return (n + 63) / 64 * 64; }
VEC_FN size_t code_bytes(const qmat *w) { return (size_t)w->k / 8 * (size_t)w->bits; }
VEC_FN size_t scale_bytes(const qmat *w)
{
    return (size_t)(w->k / w->group) * (w->sb_type == IG_F32 ? 4 : 2);
}

/* Where a tile of tile_rows rows starts that ends with row n1: rows before it are read again,
 * never rows behind the matrix. The matrix has at least tile_rows rows. */
VEC_FN int64_t last_tile(int64_t n1, int64_t tile_rows)
{
    return n1 < tile_rows ? 0 : n1 - tile_rows;
}

/* --- 8 rows to lanes */
VEC_FN void transpose8(__m256i *r)
{
    __m256 t[8], u[8];
    EACH (i, 4) {
        __m256 a = _mm256_castsi256_ps(r[2 * i]), b = _mm256_castsi256_ps(r[2 * i + 1]);
        t[2 * i] = _mm256_unpacklo_ps(a, b);
        t[2 * i + 1] = _mm256_unpackhi_ps(a, b);
    }
    EACH (i, 2) {
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    EACH (i, 4) {
        r[i] = _mm256_castps_si256(_mm256_permute2f128_ps(u[i], u[i + 4], 0x20));
        r[i + 4] = _mm256_castps_si256(_mm256_permute2f128_ps(u[i], u[i + 4], 0x31));
    }
}

/* 32 bytes at the same place of 8 rows, or 16 where n_bytes is 16. */
VEC_FN void load_rows(__m256i *r, const uint8_t *p, size_t row_bytes, size_t n_bytes)
{
    EACH (i, 8) {
        const uint8_t *q = p + (size_t)i * row_bytes;
        if (n_bytes >= 32)
            r[i] = _mm256_loadu_si256((const void *)q);
        else
            r[i] = _mm256_castsi128_si256(_mm_loadu_si128((const void *)q));
    }
}

/* --- the fold 8-4-2-1 as a walk over classes
 *
 * In the order 0 8 4 12 2 10 ... each addition of the fold joins what was last finished with
 * what waits longest unjoined, as in a binary counter: four waiting buffers do. Classes without
 * a group are passed over; what they would add is +0. */

/* All groups of a class go to `buffer`; then `n_merge` waiting buffers are added to it. */
typedef struct leaf {
    uint8_t class, buffer, n_merge;
    uint8_t merge[4];
} leaf;

/* The leaves of rows of k codes; gives their number. */
static inline int plan_leaves(leaf *leaves, size_t k, size_t group)
{
    int waiting[5] = {-1, -1, -1, -1, -1}; /* by level of the fold */
    uint8_t free_buffers[5] = {4, 3, 2, 1, 0};
    int n = 0, n_free = 5;
    for (int i = 0; i < N_CLASSES; i++) {
        int class = (i & 1) << 3 | (i & 2) << 1 | (i & 4) >> 1 | i >> 3, level = 0, mine = -1;
        if ((size_t) class * 64 < k && (size_t) class * 64 % group == 0) {
            leaves[n++] = (leaf){.class = (uint8_t) class, .buffer = free_buffers[--n_free]};
            mine = leaves[n - 1].buffer;
        }
        for (; i >> level & 1; level++) {
            int left = waiting[level];
            waiting[level] = -1;
            if (left < 0) continue;
            if (mine < 0) { /* nothing came: the left side goes up alone */
                mine = left;
                continue;
            }
            leaf *last =
                &leaves[n - 1]; /* `mine` is its buffer: all to the right of `left` is in it */
            last->merge[last->n_merge++] = (uint8_t)left;
            free_buffers[n_free++] = (uint8_t)left;
        }
        waiting[level] = mine;
    }
    return n;
}

/* --- prefetch of n scales or biases from element `first` on: they are read in bursts, too far
 * apart for a machine to foresee */
VEC_FN void want_scales(const void *p, ig_dtype t, size_t first, size_t n)
{
    size_t size = t == IG_F32 ? 4 : 2;
    const char *at = (const char *)p + first * size;
    for (size_t i = 0; i < n * size; i += 64) _mm_prefetch(at + i, _MM_HINT_T0);
}

/* --- prefetch of the next tile's bytes, a few lines at a time between passes: all at once would
 * fill the queues of the core and stall it as long as reading them */
typedef struct wanted {
    const char *at[3], *end[3];
    size_t lines; /* in one go; 0: none */
} wanted;

/* Of tile_rows rows from row n on, in n_goes goes. */
VEC_FN wanted want_rows(const qmat *w, int64_t n, size_t tile_rows, size_t n_goes)
{
    wanted q = {.lines = 0};
    if (n + (int64_t)tile_rows > w->n) return q;
    size_t codes = code_bytes(w), scales = scale_bytes(w);
    q.at[0] = (const char *)w->codes + (size_t)n * codes;
    q.at[1] = (const char *)w->scales + (size_t)n * scales;
    q.at[2] = (const char *)w->biases + (size_t)n * scales;
    q.end[0] = q.at[0] + tile_rows * codes;
    q.end[1] = q.at[1] + tile_rows * scales;
    q.end[2] = q.at[2] + tile_rows * scales;
    q.lines = (tile_rows * (codes + 2 * scales) / 64 + 3) / n_goes + 1;
    return q;
}

VEC_FN void want_some(wanted *q)
{
    for (size_t i = 0, part = 0; i < q->lines; i++) {
        while (part < 3 && q->at[part] >= q->end[part]) part++;
        if (part == 3) return;
        _mm_prefetch(q->at[part], _MM_HINT_T0);
        q->at[part] += 64;
    }
}
#endif
