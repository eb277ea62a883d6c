/* qmm8walk_avx2.c: qmm8 for few tokens. Eight rows of codes are one linear stream of bytes, and
 * so are their scales and biases, whatever K is: 8 rows always are a multiple of 8 groups. The
 * activations of a token repeat along the stream, so they are laid out once per call,
 * circularly.
 *
 * First pass: 8 groups at a time give 8 lanes u = fma(s, I, b * S). Second pass: row by row the
 * u are added into 16 classes, two vectors of 8 lanes, and folded. Cost per 64 codes and token:
 * 8 to 12 vector operations; codes are read and unpacked once for up to four tokens. Reads
 * exactly the bytes of the rows. */
#include "array/cpu/x86/qmm8_avx2.h"

typedef __m256i v32; /* 32 bytes, 16 int16 or 8 int32 */

/* One token's activations, laid out for the walk. */
typedef struct walk_act {
    uint8_t *x; /* codes, circular. 4-bit: of each 64 evens, then odds, as the nibbles come */
    float *sum; /* S of each weight group, circular */
    float *d;   /* of each weight group in the order of the second pass's lanes */
    float *u;   /* first pass: of each group of 8 rows */
} walk_act;

/* Shape of a walk. */
typedef struct walk {
    size_t k, group, n_groups;
    size_t period;        /* groups of one or two rows, a multiple of 64 codes: x repeats */
    size_t n_class_steps; /* vectors of 8 classes in a row: d and the second pass */
    walk_act act[WALK_MAX];
} walk;

/* Groups of weights in a vector of 8 classes: with groups of 32 a class of a step is two groups. */
static size_t class_step(size_t group) { return group == 32 ? 16 : 8; }

static size_t act_bytes(const qmat *w)
{
    size_t group = (size_t)w->group, n = (size_t)w->k / group, period = n * (w->k % 64 ? 2 : 1);
    size_t d = (n + 15) / 16 * 16;
    return up64((period + 8) * group) + up64((period + 8) * 4) + up64(d * 4) +
           up64((QROWS * n + 32) * 4);
}

size_t qmm8walk_bytes_avx2(const qmat *w) { return WALK_MAX * act_bytes(w); }

/* n codes, a multiple of 64: evens and odds of each 64 apart. */
static void split_codes(uint8_t *y, const uint8_t *x, size_t n)
{
    const v32 apart = _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2,
                                       4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    for (size_t i = 0; i < n; i += 64) {
        v32 a = _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)(x + i)), apart);
        v32 b = _mm256_shuffle_epi8(_mm256_loadu_si256((const void *)(x + i + 32)), apart);
        v32 even = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(a, b), 0xd8);
        v32 odd = _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(a, b), 0xd8);
        _mm256_storeu_si256((void *)(y + i), even);
        _mm256_storeu_si256((void *)(y + i + 32), odd);
    }
}

/* Index of group g among class lanes. Groups of 32: of 16 groups first the even ones, then the
 * odd ones, each as _mm256_shuffle_ps leaves them. */
static size_t class_lane(size_t g, size_t group)
{
    static const uint8_t lane[8] = {0, 1, 4, 5, 2, 3, 6, 7}; /* of classes */
    return group == 32 ? g / 16 * 16 + g % 2 * 8 + lane[g % 16 / 2] : g;
}

static void lay_out_token(const walk *k, walk_act *a, const uint8_t *rec, size_t act_group,
                          int bits)
{
    const float *d = (const float *)(rec + rows8_d_at(k->k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(k->k, act_group));
    size_t n_codes = (k->period + 8) * k->group;
    for (size_t at = 0; at < n_codes; at += k->k) {
        size_t n = n_codes - at < k->k ? n_codes - at : k->k;
        memcpy(a->x + at, rec, n);
    }
    if (bits == 4) split_codes(a->x, a->x, n_codes);
    size_t per = k->group / 32;
    for (size_t g = 0; g < k->n_groups; g++) {
        int32_t s = 0;
        for (size_t i = 0; i < per; i++) s += sums[g * per + i];
        a->sum[g] = (float)s;
    }
    for (size_t g = k->n_groups; g < k->period + 8; g++) a->sum[g] = a->sum[g - k->n_groups];
    for (size_t g = 0; g < k->n_class_steps * class_step(k->group); g++)
        a->d[class_lane(g, k->group)] = g < k->n_groups ? d[g * k->group / act_group] : 1;
}

static walk start_walk(const qmat *w, char *scratch)
{
    walk k = {.k = (size_t)w->k, .group = (size_t)w->group};
    k.n_groups = k.k / k.group;
    k.period = k.n_groups * (k.k % 64 ? 2 : 1);
    k.n_class_steps = (k.n_groups + class_step(k.group) - 1) / class_step(k.group);
    char *p = scratch;
    for (int t = 0; t < WALK_MAX; t++) {
        walk_act *a = &k.act[t];
        a->x = (uint8_t *)p, p += up64((k.period + 8) * k.group);
        a->sum = (float *)p, p += up64((k.period + 8) * 4);
        a->d = (float *)p, p += up64((k.n_groups + 15) / 16 * 16 * 4);
        a->u = (float *)p, p += up64((QROWS * k.n_groups + 32) * 4);
    }
    return k;
}

/* --- first pass: I of 8 groups in 8 lanes */

/* Lanes of 64 bits added within pairs: [a, b] per half of the vector. At most 7620 + 7620. */
VEC_FN v32 add_pairs16(v32 a, v32 b)
{
    return _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
/* 32-bit halves of those: [a, b, c, d] per half of the vector, as two int16. At most 30480. */
VEC_FN v32 add_fours16(v32 ab, v32 cd)
{
    __m256 x = _mm256_castsi256_ps(ab), y = _mm256_castsi256_ps(cd);
    return _mm256_add_epi16(_mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd)));
}
VEC_FN v32 add_fours32(v32 ab, v32 cd)
{
    __m256 x = _mm256_castsi256_ps(ab), y = _mm256_castsi256_ps(cd);
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)),
                            _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd)));
}
/* Both halves added: [lo of a | lo of b] + [hi of a | hi of b]. */
VEC_FN v32 add_halves(v32 a, v32 b)
{
    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* Four blocks of 64 codes each, as nibbles. */
typedef struct four {
    v32 lo[4], hi[4];
} four;

VEC_FN four load_four(const uint8_t *p)
{
    four f;
    const v32 nibble = _mm256_set1_epi8(15);
    EACH (i, 4) {
        v32 v = _mm256_loadu_si256((const void *)(p + 32 * i));
        f.lo[i] = _mm256_and_si256(v, nibble);
        f.hi[i] = _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble);
    }
    return f;
}
/* 16 sums of four products. */
VEC_FN v32 dot_block(const four *f, int i, const uint8_t *x)
{
    v32 even = _mm256_loadu_si256((const void *)(x + 64 * i)),
        odd = _mm256_loadu_si256((const void *)(x + 64 * i + 32));
    return _mm256_add_epi16(_mm256_maddubs_epi16(f->lo[i], even),
                            _mm256_maddubs_epi16(f->hi[i], odd));
}
/* Blocks 0..3 against x: int32 [b0, b1, b2, b3] in each half, which together are the sums of the
 * blocks. */
VEC_FN v32 dot_four(const four *f, const uint8_t *x)
{
    v32 ab = add_pairs16(dot_block(f, 0, x), dot_block(f, 1, x)),
        cd = add_pairs16(dot_block(f, 2, x), dot_block(f, 3, x));
    return _mm256_madd_epi16(add_fours16(ab, cd), _mm256_set1_epi16(1));
}
/* The same with blocks in pairs: [b0 + b1, b2 + b3] as twice two int32 in each half. */
VEC_FN v32 dot_two_pairs(const four *f, const uint8_t *x)
{
    v32 a = _mm256_add_epi16(dot_block(f, 0, x), dot_block(f, 1, x)),
        b = _mm256_add_epi16(dot_block(f, 2, x), dot_block(f, 3, x));
    return _mm256_madd_epi16(add_pairs16(a, b), _mm256_set1_epi16(1));
}

/* 8 groups of 4-bit codes at p against nt tokens at byte `at` of their activations. */
VEC_FN void dot8_4(v32 *ret_dot, const uint8_t *p, const walk *k, size_t at, int group, int nt)
{
    if (group == 32) { /* halves are groups: lanes come as 0 2 4 6 1 3 5 7 */
        four f = load_four(p);
        const v32 order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        EACH (t, nt)
            ret_dot[t] = _mm256_permutevar8x32_epi32(dot_four(&f, k->act[t].x + at), order);
    } else if (group == 64) {
        v32 first[WALK_MAX];
        four f = load_four(p);
        EACH (t, nt) first[t] = dot_four(&f, k->act[t].x + at);
        f = load_four(p + 128);
        EACH (t, nt) ret_dot[t] = add_halves(first[t], dot_four(&f, k->act[t].x + at + 256));
    } else {
        v32 part[WALK_MAX][4];
        EACH (i, 4) {
            four f = load_four(p + 128 * i);
            EACH (t, nt) part[t][i] = dot_two_pairs(&f, k->act[t].x + at + (size_t)i * 256);
        }
        EACH (t, nt)
            ret_dot[t] = add_halves(add_fours32(part[t][0], part[t][1]),
                                    add_fours32(part[t][2], part[t][3]));
    }
}

/* 8 vectors of 8 int32 to their 8 sums. */
VEC_FN v32 add_eights(const v32 *a)
{
    v32 t[4];
    EACH (i, 4)
        t[i] = _mm256_add_epi32(_mm256_unpacklo_epi32(a[2 * i], a[2 * i + 1]),
                                _mm256_unpackhi_epi32(a[2 * i], a[2 * i + 1]));
    v32 u0 = _mm256_add_epi32(_mm256_unpacklo_epi64(t[0], t[1]), _mm256_unpackhi_epi64(t[0], t[1]));
    v32 u1 = _mm256_add_epi32(_mm256_unpacklo_epi64(t[2], t[3]), _mm256_unpackhi_epi64(t[2], t[3]));
    return add_halves(u0, u1);
}

/* 32 codes of 8 bits, less 128, against x: the magnitude takes the unsigned side, x gets the
 * sign. At most 2 * 128 * 127. */
VEC_FN v32 dot32_8(const uint8_t *p, const uint8_t *x)
{
    v32 w = _mm256_xor_si256(_mm256_loadu_si256((const void *)p), _mm256_set1_epi8((char)0x80));
    v32 m = _mm256_maddubs_epi16(_mm256_abs_epi8(w),
                                 _mm256_sign_epi8(_mm256_loadu_si256((const void *)x), w));
    return _mm256_madd_epi16(m, _mm256_set1_epi16(1));
}
VEC_FN void dot8_8(v32 *ret_dot, const uint8_t *p, const walk *k, size_t at, int group, int nt)
{
    EACH (t, nt) {
        const uint8_t *x = k->act[t].x + at;
        v32 d[8];
        EACH (g, 8) {
            d[g] = dot32_8(p + g * group, x + g * group);
            for (int i = 32; i < group; i += 32)
                d[g] = _mm256_add_epi32(d[g], dot32_8(p + g * group + i, x + g * group + i));
        }
        ret_dot[t] = add_eights(d);
    }
}

/* Steps whose scales are converted at once: more, and those of long rows drive the activations
 * out of L1. */
#define SCALE_STEPS 32

/* u of all groups of 8 rows from row n on. */
VEC_FN void first_pass(const walk *k, const qmat *w, int64_t n, int bits, int group, int nt)
{
    size_t bytes = (size_t)group * (size_t)bits, ahead = (size_t)w->ahead; /* bytes: of 8 groups */
    size_t first = (size_t)n * k->n_groups, g = 0; /* g: along a row, circular */
    const uint8_t *codes = w->codes + first * bytes / 8;
    float scale[8 * SCALE_STEPS], bias[8 * SCALE_STEPS];
    for (size_t i = 0; i < k->n_groups; i++, codes += bytes) {
        size_t in = i % SCALE_STEPS;
        if (in == 0) {
            size_t left = k->n_groups - i, n_steps = left < SCALE_STEPS ? left : SCALE_STEPS;
            widen_scales(scale, w->scales, w->sb_type, first + 8 * i, 8 * n_steps);
            widen_scales(bias, w->biases, w->sb_type, first + 8 * i, 8 * n_steps);
            want_scales(w->scales, w->sb_type, first + 8 * (i + n_steps), 8 * n_steps);
            want_scales(w->biases, w->sb_type, first + 8 * (i + n_steps), 8 * n_steps);
        }
        for (size_t line = 0; ahead && line < bytes; line += 64)
            _mm_prefetch((const char *)codes + ahead + line, _MM_HINT_T0);
        v32 dot[WALK_MAX];
        if (bits == 4)
            dot8_4(dot, codes, k, g * (size_t)group, group, nt);
        else
            dot8_8(dot, codes, k, g * (size_t)group, group, nt);
        vf s = vf_load(scale + 8 * in), b = vf_load(bias + 8 * in);
        EACH (t, nt) {
            vf sum = vf_load(k->act[t].sum + g), dots = vf_of_int(dot[t]);
            if (bits == 8) dots = vf_fma(vf_set(128), sum, dots); /* exact: below 2^24 */
            vf_store(k->act[t].u + 8 * i, vf_fma(s, dots, vf_mul(b, sum)));
        }
        g += 8;
        while (g >= k->period) g -= k->period;
    }
}

/* --- second pass */

/* Class sums of one row, its u at p: lanes of the result are 8 classes, the other 8 added. What
 * the row does not have counts as u = -0, d = 1, which leaves any sum as it is. */
VEC_FN vf row_classes(const walk *k, const walk_act *a, const float *u, int group, const vm *here)
{
    vf acc[2] = {vf_set(0), vf_set(0)}, none = vf_set(-0.0f);
    size_t last = k->n_class_steps - 1;
    for (size_t i = 0; i <= last; i++) {
        vf p = vf_load(u + i * class_step((size_t)group)), sum = acc[group == 128 ? 0 : i & 1];
        if (group == 32) {
            vf q = vf_load(u + i * 16 + 8), even = _mm256_shuffle_ps(p, q, 0x88),
               odd = _mm256_shuffle_ps(p, q, 0xdd);
            if (i == last)
                even = vf_select(here[0], even, none), odd = vf_select(here[1], odd, none);
            sum = vf_fma(vf_load(a->d + 16 * i), even, sum);
            sum = vf_fma(vf_load(a->d + 16 * i + 8), odd, sum);
        } else {
            if (i == last) p = vf_select(here[0], p, none);
            sum = vf_fma(vf_load(a->d + 8 * i), p, sum);
        }
        acc[group == 128 ? 0 : i & 1] = sum;
    }
    vf r = group == 128 ? acc[0] : vf_add(acc[0], acc[1]);
    return group == 32 ? _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(r), 0xd8)) : r;
}

/* y[r] of 8 rows. Groups of 128 have the even classes only: the fold ends by adding the absent
 * odd ones, +0. */
VEC_FN vf second_pass(const walk *k, const walk_act *a, int group, const vm *here)
{
    vf row[QROWS];
    for (size_t r = 0; r < QROWS; r++)
        row[r] = row_classes(k, a, a->u + r * k->n_groups, group, here);
    vf y = vf_fold_rows(row);
    return group == 128 ? vf_add(y, vf_set(0)) : y;
}

/* Lanes that the last step of a row has. */
static void present(const walk *k, vm *ret_here)
{
    size_t first = (k->n_class_steps - 1) * class_step(k->group);
    float on[16] = {0};
    for (size_t g = first; g < k->n_groups; g++) on[class_lane(g - first, k->group)] = 1;
    ret_here[0] = vf_eq(vf_load(on), vf_set(1));
    ret_here[1] = vf_eq(vf_load(on + 8), vf_set(1));
}

typedef void (*rows_fn)(const walk *k, const qmat *w, int64_t n, const vm *here, float *y,
                        size_t ldy);

VEC_FN void rows8x(const walk *k, const qmat *w, int64_t n, const vm *here, float *y, size_t ldy,
                   int bits, int group, int nt)
{
    first_pass(k, w, n, bits, group, nt);
    for (int t = 0; t < nt; t++)
        vf_store(y + (size_t)t * ldy, second_pass(k, &k->act[t], group, here));
}

#define ROWS(bits, group, nt)                                                         \
    static void rows_##bits##_##group##_##nt(const walk *k, const qmat *w, int64_t n, \
                                             const vm *here, float *y, size_t ldy)    \
    {                                                                                 \
        rows8x(k, w, n, here, y, ldy, bits, group, nt);                               \
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
    vm here[2];
    present(k, here);
    for (size_t t = 0; t < nt; t++)
        lay_out_token(k, &k->act[t], c->rec + (t0 + t) * c->rec_stride, c->act_group, w->bits);
    rows_fn rows = rows_of[w->bits == 8][w->group / 64][nt - 1];
    float *y = c->y + t0 * c->ldy;
    int64_t n = c->n0;
    for (; n + QROWS <= c->n1; n += QROWS) rows(k, w, n, here, y + (n - c->n0), c->ldy);
    if (n == c->n1) return;
    float part[WALK_MAX][QROWS];
    int64_t start = last_tile(c->n1, QROWS);
    rows(k, w, start, here, part[0], QROWS);
    for (size_t t = 0; t < nt; t++)
        memcpy(y + t * c->ldy + (n - c->n0), part[t] + (n - start),
               (size_t)(c->n1 - n) * sizeof *y);
}

void qmm8walk_avx2(const qmm8_call *c)
{
    walk k = start_walk(c->w, c->scratch);
    for (size_t t = 0; t < c->nt; t += WALK_MAX)
        walk_tokens(c, &k, t, c->nt - t < WALK_MAX ? c->nt - t : WALK_MAX);
}
