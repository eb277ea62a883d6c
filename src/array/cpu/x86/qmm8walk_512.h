/* qmm8walk_512.h: qmm8 for few tokens on 512-bit vectors; as qmm8walk_avx2.c, with 16 rows as
 * one linear stream, 16 groups and all 16 classes to a vector.
 *
 * Whoever includes it has defined dot_nibbles and dot_bytes: acc[i] + the sum of four products,
 * codes unsigned (below 16, any), x signed. Cost per 128 codes and token: 2 loads, 2 of those
 * dots, 3 to 5 shuffles and adds. */
#include "array/cpu/x86/qmm8.h"

#define QROWS 16
#define WALK_MAX 4
/* Steps whose scales are converted at once: more, and those of long rows drive the activations
 * out of L1. */
#define SCALE_STEPS 16

typedef __m512i v64;

/* One token's activations, laid out for the walk. */
typedef struct walk_act {
    uint8_t *x; /* codes, circular. 4-bit: of each 128 evens, then odds, as the nibbles come */
    float *sum; /* S of each weight group, circular */
    float *d;   /* of each weight group in the order of the second pass's lanes */
    float *u;   /* first pass: of each group of 16 rows */
} walk_act;

typedef struct walk {
    size_t k, group, n_groups;
    size_t period;  /* groups of as many rows as make a multiple of 128 codes: x repeats */
    size_t n_lanes; /* of d: n_groups rounded up to whole steps of the second pass */
    walk_act act[WALK_MAX];
} walk;

/* Groups in a step of the second pass: all classes; with groups of 32 each twice; with groups of
 * 128 eight of them. */
VEC_FN size_t class_step(size_t group) { return group == 32 ? 32 : group == 64 ? 16 : 8; }

static walk plan_walk(const qmat *w)
{
    walk k = {.k = (size_t)w->k, .group = (size_t)w->group};
    k.n_groups = k.k / k.group;
    k.period = k.n_groups * (k.k % 128 == 0 ? 1 : k.k % 64 == 0 ? 2 : 4);
    k.n_lanes = (k.n_groups + class_step(k.group) - 1) / class_step(k.group) * class_step(k.group);
    return k;
}

static size_t act_bytes(const walk *k)
{
    return up64((k->period + 16) * k->group) + up64((k->period + 16) * 4) + up64(k->n_lanes * 4) +
           up64((QROWS * k->n_groups + 64) * 4);
}

static size_t walk_bytes(const qmat *w)
{
    walk k = plan_walk(w);
    return WALK_MAX * act_bytes(&k);
}

static void place_walk(walk *k, char *p)
{
    for (int t = 0; t < WALK_MAX; t++) {
        walk_act *a = &k->act[t];
        a->x = (uint8_t *)p, p += up64((k->period + 16) * k->group);
        a->sum = (float *)p, p += up64((k->period + 16) * 4);
        a->d = (float *)p, p += up64(k->n_lanes * 4);
        a->u = (float *)p, p += up64((QROWS * k->n_groups + 64) * 4);
    }
}

/* n codes, a multiple of 128: evens and odds of each 128 apart. */
static void split_codes(uint8_t *y, const uint8_t *x, size_t n)
{
    const v64 apart =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    const v64 evens = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),
              odds = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    for (size_t i = 0; i < n; i += 128) {
        v64 a = _mm512_shuffle_epi8(_mm512_loadu_si512(x + i), apart);
        v64 b = _mm512_shuffle_epi8(_mm512_loadu_si512(x + i + 64), apart);
        _mm512_storeu_si512(y + i, _mm512_permutex2var_epi64(a, evens, b));
        _mm512_storeu_si512(y + i + 64, _mm512_permutex2var_epi64(a, odds, b));
    }
}

/* Index of group g among the lanes of d: groups of 32 have the even ones of 32 first, then the
 * odd ones. */
VEC_FN size_t class_lane(size_t g, size_t group)
{
    return group == 32 ? g / 32 * 32 + g % 2 * 16 + g % 32 / 2 : g;
}

static void lay_out_walk(const walk *k, walk_act *a, const uint8_t *rec, size_t act_group, int bits)
{
    const float *d = (const float *)(rec + rows8_d_at(k->k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(k->k, act_group));
    size_t n_codes = (k->period + 16) * k->group, per = k->group / 32;
    int shift = __builtin_ctzl(act_group / k->group);
    for (size_t at = 0; at < n_codes; at += k->k)
        memcpy(a->x + at, rec, n_codes - at < k->k ? n_codes - at : k->k);
    if (bits == 4) split_codes(a->x, a->x, n_codes);
    memset(a->d, 0, k->n_lanes * 4);
    for (size_t g = 0; g < k->n_groups; g++) {
        int32_t s = 0;
        for (size_t i = 0; i < per; i++) s += sums[g * per + i];
        a->sum[g] = (float)s;
        a->d[class_lane(g, k->group)] = d[g >> shift];
    }
    for (size_t g = k->n_groups; g < k->period + 16; g++) a->sum[g] = a->sum[g - k->n_groups];
}

/* --- first pass: I of 16 groups in 16 lanes */

VEC_FN v64 add_pairs(v64 a, v64 b) /* [a0+a2, b0+b2, a1+a3, b1+b3] of each quarter */
{
    return vi_add(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}
VEC_FN v64 add_fours(v64 ab, v64 cd) /* [a, b, c, d] of each quarter: its four lanes added */
{
    return vi_add(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}
VEC_FN v64 quarters(const v64 *t) /* of four vectors, each quarter's lanes added */
{
    return add_fours(add_pairs(t[0], t[1]), add_pairs(t[2], t[3]));
}

/* Codes at p as nibbles, low and high. */
VEC_FN void load_nibbles(v64 *lo, v64 *hi, const uint8_t *p)
{
    const v64 nibble = _mm512_set1_epi8(15);
    v64 v = _mm512_loadu_si512(p);
    *lo = _mm512_and_si512(v, nibble);
    *hi = _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble);
}
VEC_FN v64 dot_128(v64 lo, v64 hi, const uint8_t *x)
{
    v64 zero = _mm512_setzero_si512();
    return dot_nibbles(dot_nibbles(zero, lo, _mm512_loadu_si512(x)), hi,
                       _mm512_loadu_si512(x + 64));
}
/* n vectors of 128 codes each at p, which lie at `at` of the activations. */
VEC_FN void dots_4(v64 ret[WALK_MAX][4], const uint8_t *p, const walk *k, size_t at, int nt)
{
    EACH (i, 4) {
        v64 lo, hi;
        load_nibbles(&lo, &hi, p + 64 * i);
        EACH (t, nt) ret[t][i] = dot_128(lo, hi, k->act[t].x + at + (size_t)i * 128);
    }
}

/* 16 groups of 4-bit codes at p. */
VEC_FN void dot16_4(v64 *ret_dot, const uint8_t *p, const walk *k, size_t at, int group, int nt)
{
    v64 d[4][WALK_MAX][4];
    int n = group / 32; /* fours of vectors */
    if (n == 1) {       /* a quarter is a group: lane 4 q + i is group 4 i + q */
        const v64 order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        dots_4(d[0], p, k, at, nt);
        EACH (t, nt) ret_dot[t] = _mm512_permutexvar_epi32(order, quarters(d[0][t]));
        return;
    }
    v64 q[4][WALK_MAX];
    EACH (j, n) {
        dots_4(d[j], p + 256 * j, k, at + (size_t)j * 512, nt);
        EACH (t, nt) q[j][t] = quarters(d[j][t]);
    }
    if (n == 2) { /* halves are groups: [4 vectors][halves] to the order of groups */
        const v64 low = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 16, 24, 17, 25, 18, 26, 19, 27);
        const v64 high =
            _mm512_setr_epi32(4, 12, 5, 13, 6, 14, 7, 15, 20, 28, 21, 29, 22, 30, 23, 31);
        EACH (t, nt)
            ret_dot[t] = vi_add(_mm512_permutex2var_epi32(q[0][t], low, q[1][t]),
                                _mm512_permutex2var_epi32(q[0][t], high, q[1][t]));
        return;
    }
    EACH (t, nt) { /* a vector is a group */
        v64 a = vi_add(_mm512_shuffle_i64x2(q[0][t], q[1][t], 0x44),
                       _mm512_shuffle_i64x2(q[0][t], q[1][t], 0xee));
        v64 b = vi_add(_mm512_shuffle_i64x2(q[2][t], q[3][t], 0x44),
                       _mm512_shuffle_i64x2(q[2][t], q[3][t], 0xee));
        ret_dot[t] = vi_add(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
    }
}

/* 16 groups of 8-bit codes at p. Four vectors at a time are added up to what 4 groups of 64
 * codes are, or 8 of 32, or 2 of 128. */
VEC_FN v64 four_8(const uint8_t *p, const uint8_t *x, int per)
{
    v64 t[4];
    EACH (i, 4) {
        t[i] = _mm512_setzero_si512();
        for (int j = 0; j < per; j++)
            t[i] = dot_bytes(t[i], _mm512_loadu_si512(p + 64 * (i * per + j)),
                             _mm512_loadu_si512(x + 64 * (i * per + j)));
    }
    return quarters(t);
}
VEC_FN void dot16_8(v64 *ret_dot, const uint8_t *p, const walk *k, size_t at, int group, int nt)
{
    EACH (t, nt) {
        const uint8_t *x = k->act[t].x + at;
        if (group == 32) { /* halves are groups */
            const v64 low =
                _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 16, 24, 17, 25, 18, 26, 19, 27);
            const v64 high =
                _mm512_setr_epi32(4, 12, 5, 13, 6, 14, 7, 15, 20, 28, 21, 29, 22, 30, 23, 31);
            v64 a = four_8(p, x, 1), b = four_8(p + 256, x + 256, 1);
            ret_dot[t] =
                vi_add(_mm512_permutex2var_epi32(a, low, b), _mm512_permutex2var_epi32(a, high, b));
            continue;
        }
        int per = group / 64, n = 256 * per;
        v64 q[4];
        for (int i = 0; i < 4; i++) q[i] = four_8(p + i * n, x + i * n, per);
        v64 a =
            vi_add(_mm512_shuffle_i64x2(q[0], q[1], 0x44), _mm512_shuffle_i64x2(q[0], q[1], 0xee));
        v64 b =
            vi_add(_mm512_shuffle_i64x2(q[2], q[3], 0x44), _mm512_shuffle_i64x2(q[2], q[3], 0xee));
        ret_dot[t] = vi_add(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
    }
}

VEC_FN void widen_scales(float *y, const void *p, ig_dtype t, size_t first, size_t n)
{
    if (t == IG_F16)
        for (size_t i = 0; i < n; i += VF_N) vf_store(y + i, load_as(p, IG_F16, first + i));
    else if (t == IG_BF16)
        for (size_t i = 0; i < n; i += VF_N) vf_store(y + i, load_as(p, IG_BF16, first + i));
    else
        memcpy(y, (const float *)p + first, n * sizeof *y);
}

/* u of all groups of 16 rows from row n on. */
VEC_FN void first_pass(const walk *k, const qmat *w, int64_t n, int bits, int group, int nt)
{
    size_t bytes = (size_t)(group * bits) * 2, ahead = (size_t)w->ahead; /* bytes: of 16 groups */
    size_t first = (size_t)n * k->n_groups, g = 0; /* g: along a row, circular */
    const uint8_t *codes = w->codes + first * bytes / 16;
    float scale[16 * SCALE_STEPS], bias[16 * SCALE_STEPS];
    for (size_t i = 0; i < k->n_groups; i++, codes += bytes) {
        size_t in = i % SCALE_STEPS;
        if (in == 0) {
            size_t left = k->n_groups - i, n_steps = left < SCALE_STEPS ? left : SCALE_STEPS;
            widen_scales(scale, w->scales, w->sb_type, first + 16 * i, 16 * n_steps);
            widen_scales(bias, w->biases, w->sb_type, first + 16 * i, 16 * n_steps);
            want_scales(w->scales, w->sb_type, first + 16 * (i + n_steps), 16 * n_steps);
            want_scales(w->biases, w->sb_type, first + 16 * (i + n_steps), 16 * n_steps);
        }
        for (size_t line = 0; ahead && line < bytes; line += 64)
            _mm_prefetch((const char *)codes + ahead + line, _MM_HINT_T0);
        v64 dot[WALK_MAX];
        if (bits == 4)
            dot16_4(dot, codes, k, g * (size_t)group, group, nt);
        else
            dot16_8(dot, codes, k, g * (size_t)group, group, nt);
        vf s = vf_load(scale + 16 * in), b = vf_load(bias + 16 * in);
        EACH (t, nt) {
            vf sum = vf_load(k->act[t].sum + g);
            vf_store(k->act[t].u + 16 * i, vf_fma(s, vf_of_int(dot[t]), vf_mul(b, sum)));
        }
        g += 16;
        while (g >= k->period) g -= k->period;
    }
}

/* --- second pass */

/* Class sums of one row, its u at p. Lanes beyond the row stay as they are. Groups of 128 have
 * the even classes only, in the lower half; the fold then adds zeros, as the absent odd classes
 * are. */
VEC_FN vf row_classes(const walk *k, const walk_act *a, const float *u, int group)
{
    vf acc = vf_set(0);
    size_t n = class_step((size_t)group);
    const vi even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    for (size_t g = 0; g < k->n_groups; g += n) {
        size_t have = k->n_groups - g < n ? k->n_groups - g : n;
        vf p = vf_load(u + g);
        if (group == 32) {
            vf q = vf_load(u + g + 16);
            vf o = _mm512_permutex2var_ps(p, vi_add(even, vi_set(1)), q);
            p = _mm512_permutex2var_ps(p, even, q);
            acc = _mm512_mask3_fmadd_ps(vf_load(a->d + g), p, acc, vm_first((have + 1) / 2));
            acc = _mm512_mask3_fmadd_ps(vf_load(a->d + g + 16), o, acc, vm_first(have / 2));
        } else {
            acc = _mm512_mask3_fmadd_ps(vf_load(a->d + g), p, acc, vm_first(have));
        }
    }
    return acc;
}

typedef void (*rows_fn)(const walk *k, const qmat *w, int64_t n, float *y, size_t ldy);

VEC_FN void rows16(const walk *k, const qmat *w, int64_t n, float *y, size_t ldy, int bits,
                   int group, int nt)
{
    first_pass(k, w, n, bits, group, nt);
    for (int t = 0; t < nt; t++) {
        vf row[QROWS];
        for (size_t r = 0; r < QROWS; r++)
            row[r] = row_classes(k, &k->act[t], k->act[t].u + r * k->n_groups, group);
        vf_store(y + (size_t)t * ldy, vf_fold_rows(row));
    }
}

#define ROWS(bits, group, nt)                                                                   \
    static void rows_##bits##_##group##_##nt(const walk *k, const qmat *w, int64_t n, float *y, \
                                             size_t ldy)                                        \
    {                                                                                           \
        rows16(k, w, n, y, ldy, bits, group, nt);                                               \
    }
#define ROWS_NT(bits, group) \
    ROWS(bits, group, 1) ROWS(bits, group, 2) ROWS(bits, group, 3) ROWS(bits, group, 4)
ROWS_NT(4, 32)
ROWS_NT(4, 64)
ROWS_NT(4, 128)
ROWS_NT(8, 32)
ROWS_NT(8, 64)
ROWS_NT(8, 128)
#define ENTRY(bits, group)                                                               \
    {                                                                                    \
        rows_##bits##_##group##_1, rows_##bits##_##group##_2, rows_##bits##_##group##_3, \
            rows_##bits##_##group##_4                                                    \
    }
static const rows_fn rows_of[2][3][WALK_MAX] = {{ENTRY(4, 32), ENTRY(4, 64), ENTRY(4, 128)},
                                                {ENTRY(8, 32), ENTRY(8, 64), ENTRY(8, 128)}};

/* Up to four tokens. */
static void walk_tokens(const qmm8_call *c, walk *k, size_t t0, size_t nt)
{
    const qmat *w = c->w;
    for (size_t t = 0; t < nt; t++)
        lay_out_walk(k, &k->act[t], c->rec + (t0 + t) * c->rec_stride, c->act_group, w->bits);
    rows_fn rows = rows_of[w->bits == 8][w->group / 64][nt - 1];
    float *y = c->y + t0 * c->ldy;
    int64_t n = c->n0;
    for (; n + QROWS <= c->n1; n += QROWS) rows(k, w, n, y + (n - c->n0), c->ldy);
    if (n == c->n1) return;
    float part[WALK_MAX][QROWS];
    int64_t start = last_tile(c->n1, QROWS);
    rows(k, w, start, part[0], QROWS);
    for (size_t t = 0; t < nt; t++)
        memcpy(y + t * c->ldy + (n - c->n0), part[t] + (n - start),
               (size_t)(c->n1 - n) * sizeof *y);
}

static void walk_rows(const qmm8_call *c)
{
    walk k = plan_walk(c->w);
    place_walk(&k, c->scratch);
    for (size_t t = 0; t < c->nt; t += WALK_MAX)
        walk_tokens(c, &k, t, c->nt - t < WALK_MAX ? c->nt - t : WALK_MAX);
}
