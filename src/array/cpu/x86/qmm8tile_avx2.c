/* qmm8tile_avx2.c: qmm8 for many tokens. Lanes are 8 rows; a tile is 8 rows as words [k /
 * 8][row] of packed 4-bit codes ([k / 4][row] of 8-bit ones). Tokens are laid out as many as
 * stay in L2, then every tile meets them all, 32 at a time.
 *
 * One pass multiplies 32 columns of 8 rows (8 registers) with all tokens of a block, one after
 * another. Classes are walked one by one, each through all of its groups, in the order 0 8 4 12
 * 2 10 ... in which the fold 8-4-2-1 meets them (qmm8.h), so no 16 accumulators exist and no
 * fold is left for the end. Classes without a group are passed over and their +0 is added once
 * at the end: it can only change a result of -0. Cost per 32 columns, 8 rows and token: 8
 * broadcasts, 8 byte products, 13 to 26 other vector operations. */
#include "array/cpu/x86/qmm8_avx2.h"

#define TOKENS 32               /* that meet a tile one after another */
#define CELLS_BYTES (256 << 10) /* of all tokens laid out at a time: they stay in L2 */
#define PASS 32                 /* columns of a pass */

typedef __m256i v32;

/* 32 columns of one token, 4-bit: of each 8 codes the even ones, then the odd ones; and, with a
 * weight group's last pass, S and d. */
typedef struct act_cell {
    uint8_t x[PASS];
    float sum, d;
} act_cell;

/* [token][row], in f32 or int32. */
typedef union lanes {
    float f[TOKENS][QROWS];
    int32_t i[TOKENS][QROWS];
} lanes;

typedef struct tiler {
    size_t k, group, n_groups;
    size_t n_passes, per_group;    /* passes in a row and in a group */
    size_t pass_bytes, tile_bytes; /* codes of a pass; codes, scales and biases of 8 rows */
    size_t n_laid;                 /* tokens laid out at a time */
    int bits, n_leaves;
    leaf leaves[N_CLASSES];
    lanes dots, buffer[5];
} tiler;

static tiler plan_tiler(const qmat *w)
{
    tiler t = {.k = (size_t)w->k, .group = (size_t)w->group, .bits = w->bits};
    t.n_groups = t.k / t.group;
    t.n_passes = t.k / PASS;
    t.per_group = t.group / PASS;
    t.pass_bytes = (size_t)(PASS / 8 * QROWS * w->bits);
    t.tile_bytes = t.n_passes * t.pass_bytes + t.n_groups * QROWS * 8;
    size_t fit = CELLS_BYTES / (t.n_passes * sizeof(act_cell));
    t.n_laid = fit >= TOKENS ? fit / TOKENS * TOKENS : fit >= 8 ? fit / 8 * 8 : 8;
    t.n_leaves = plan_leaves(t.leaves, t.k, t.group);
    return t;
}

static size_t cells_bytes(const tiler *t)
{
    return up64(t->n_passes * t->n_laid * sizeof(act_cell));
}

/* Of a call: cells, results of a tile whose rows are not all wanted, a tile. */
size_t qmm8tile_bytes_avx2(const qmat *w)
{
    tiler t = plan_tiler(w);
    return up64(sizeof t) + cells_bytes(&t) + up64(t.n_laid * QROWS * 4) + t.tile_bytes;
}

/* --- unpacking */

VEC_FN void put(void *y, v32 v) { _mm256_storeu_si256(y, v); }

/* Words of 8 rows, [word][row]: 32 bytes of each row at a time, or the 16 that a row may end
 * with. */
static void unpack_codes(char *to, const uint8_t *codes, size_t row_bytes, int bits)
{
    const v32 flip =
        _mm256_set1_epi8(bits == 8 ? (char)0x80 : 0); /* 8-bit: less 128, as signed bytes */
    for (size_t at = 0; at < row_bytes; at += 32) {
        v32 r[8];
        size_t n = row_bytes - at < 32 ? row_bytes - at : 32;
        load_rows(r, codes + at, row_bytes, n);
        transpose8(r);
        EACH (i, 8) {
            if ((size_t)i * 4 >= n) break;
            put(to + at * QROWS + 32 * i, _mm256_xor_si256(r[i], flip));
        }
    }
}

/* Scales or biases of 8 rows, [group][row]. The last 8 groups may overlap those before; fewer
 * than 8 are taken one by one. */
static void unpack_scales(float *y, const void *p, ig_dtype t, int64_t n, size_t n_groups)
{
    for (size_t at = 0; at < n_groups && n_groups >= 8; at += 8) {
        v32 r[8];
        size_t g = at + 8 <= n_groups ? at : n_groups - 8;
        EACH (i, QROWS) r[i] = vf_bits(load_as(p, t, ((size_t)n + i) * n_groups + g));
        transpose8(r);
        EACH (i, 8) vf_store(y + (g + i) * QROWS, vf_of_bits(r[i]));
    }
    for (size_t g = 0; g < n_groups && n_groups < 8; g++)
        for (size_t i = 0; i < QROWS; i++)
            y[g * QROWS + i] = float_at(p, t, ((size_t)n + i) * n_groups + g);
}

static float *scales_of(const tiler *t, char *tile)
{
    return (float *)(tile + t->n_passes * t->pass_bytes);
}

static void unpack_tile(const tiler *t, char *tile, const qmat *w, int64_t n)
{
    float *scale = scales_of(t, tile);
    unpack_codes(tile, w->codes + (size_t)n * code_bytes(w), code_bytes(w), w->bits);
    unpack_scales(scale, w->scales, w->sb_type, n, t->n_groups);
    unpack_scales(scale + t->n_groups * QROWS, w->biases, w->sb_type, n, t->n_groups);
}

/* Column `at` of a block of nt tokens, cells [pass][token]. */
static void lay_out_token(const tiler *t, act_cell *cells, size_t nt, size_t at, const uint8_t *rec,
                          size_t act_group)
{
    const float *d = (const float *)(rec + rows8_d_at(t->k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(t->k, act_group));
    const v32 apart = _mm256_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15, 0, 2,
                                       4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    int shift = __builtin_ctz((unsigned)act_group / PASS);
    size_t in_group = t->per_group - 1; /* mask */
    int32_t s = 0;
    for (size_t p = 0; p < t->n_passes; p++) {
        act_cell *c = &cells[p * nt + at];
        v32 x = _mm256_loadu_si256((const void *)(rec + p * PASS));
        put(c->x, t->bits == 4 ? _mm256_shuffle_epi8(x, apart) : x);
        s = p & in_group ? s + sums[p] : sums[p];
        c->sum = (float)s;
        c->d = d[p >> shift];
    }
}

/* Tokens [t0, t0 + nt) in blocks of TOKENS, the last one with what is left. */
static void lay_out_tokens(const qmm8_call *c, const tiler *t, act_cell *cells, size_t t0,
                           size_t nt)
{
    for (size_t i = 0; i < nt; i++) {
        size_t first = i / TOKENS * TOKENS, n = nt - first < TOKENS ? nt - first : TOKENS;
        lay_out_token(t, cells + first * t->n_passes, n, i - first,
                      c->rec + (t0 + i) * c->rec_stride, c->act_group);
    }
}

/* --- passes */

VEC_FN v32 broadcast(const uint8_t *x)
{
    int32_t four;
    memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
}

/* Sums of 32 products of 8 rows: at most 16 products of 15 * 127 meet in an int16. */
VEC_FN v32 dot_4(const v32 *w, const uint8_t *x)
{
    v32 a = _mm256_add_epi16(_mm256_maddubs_epi16(w[0], broadcast(x)),
                             _mm256_maddubs_epi16(w[1], broadcast(x + 4)));
    v32 b = _mm256_add_epi16(_mm256_maddubs_epi16(w[2], broadcast(x + 8)),
                             _mm256_maddubs_epi16(w[3], broadcast(x + 12)));
    v32 c = _mm256_add_epi16(_mm256_maddubs_epi16(w[4], broadcast(x + 16)),
                             _mm256_maddubs_epi16(w[5], broadcast(x + 20)));
    v32 d = _mm256_add_epi16(_mm256_maddubs_epi16(w[6], broadcast(x + 24)),
                             _mm256_maddubs_epi16(w[7], broadcast(x + 28)));
    v32 sum = _mm256_add_epi16(_mm256_add_epi16(a, b), _mm256_add_epi16(c, d));
    return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}
/* w holds magnitudes of codes less 128, `words` the codes themselves: x gets their signs. A pair
 * of products is at most 2 * 128 * 127. */
VEC_FN v32 dot_8(const v32 *w, const char *words, const uint8_t *x)
{
    const v32 one = _mm256_set1_epi16(1);
    v32 sum = _mm256_setzero_si256();
    EACH (i, 8) {
        v32 sx = _mm256_sign_epi8(broadcast(x + 4 * i),
                                  _mm256_loadu_si256((const void *)(words + 32 * i)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w[i], sx), one));
    }
    return sum;
}

typedef struct pass_args {
    const char *words;         /* of 32 columns */
    const act_cell *cells;     /* [token] */
    const float *scale, *bias; /* of the group, when it ends here */
    int32_t *dots;             /* [token][row] I of the passes of the group so far */
    float *acc;                /* the class */
    const float *merge;        /* what to add to it after its last group, or NULL */
    size_t nt;
} pass_args;

/* more: I continues an earlier pass; ends: this pass ends its group; again: the class has a sum
 * already. */
VEC_FN void pass(const pass_args *p, int bits, bool more, bool ends, bool again, bool merge)
{
    const v32 nibble = _mm256_set1_epi8(15);
    v32 w[8];
    EACH (i, 8) {
        v32 v = _mm256_loadu_si256((const void *)(p->words + (bits == 4 ? i / 2 : i) * 32));
        w[i] = bits == 8 ? _mm256_abs_epi8(v)
                         : _mm256_and_si256(i % 2 ? _mm256_srli_epi16(v, 4) : v, nibble);
    }
    vf s = ends ? vf_load(p->scale) : vf_set(0), b = ends ? vf_load(p->bias) : vf_set(0);
    const act_cell *c = p->cells, *end = c + p->nt;
    const char *words = p->words;
    int32_t *dots = p->dots;
    float *acc = p->acc;
    const float *folded = p->merge;
    for (; c < end; c++, dots += QROWS, acc += QROWS) {
        v32 dot = bits == 4 ? dot_4(w, c->x) : dot_8(w, words, c->x);
        if (more) dot = vi_add(dot, vi_load(dots));
        if (!ends) {
            vi_store(dots, dot);
            continue;
        }
        vf sum = vf_set(c->sum), i = vf_of_int(dot);
        if (bits == 8) i = vf_fma(vf_set(128), sum, i); /* exact: below 2^24 */
        vf u = vf_fma(s, i, vf_mul(b, sum));
        vf r = vf_fma(vf_set(c->d), u, again ? vf_load(acc) : vf_set(0));
        if (merge) r = vf_add(r, vf_load(folded)), folded += QROWS;
        vf_store(acc, r);
    }
}

/* All passes of one group. */
VEC_FN void group_passes(pass_args *p, size_t pass_bytes, int bits, int group, bool again)
{
    for (int i = 32; i < group; i += 32) {
        if (i == 32)
            pass(p, bits, false, false, false, false);
        else
            pass(p, bits, true, false, false, false);
        p->words += pass_bytes;
        p->cells += p->nt;
    }
    const bool more = group > 32;
    switch ((again ? 2 : 0) + (p->merge ? 1 : 0)) {
    case 0: pass(p, bits, more, true, false, false); break;
    case 1: pass(p, bits, more, true, false, true); break;
    case 2: pass(p, bits, more, true, true, false); break;
    default: pass(p, bits, more, true, true, true);
    }
}

typedef void (*passes_fn)(pass_args *p, size_t pass_bytes, bool again);
#define PASSES(bits, group)                                                          \
    static void passes_##bits##_##group(pass_args *p, size_t pass_bytes, bool again) \
    {                                                                                \
        group_passes(p, pass_bytes, bits, group, again);                             \
    }
PASSES(4, 32)
PASSES(4, 64)
PASSES(4, 128)
PASSES(8, 32)
PASSES(8, 64)
PASSES(8, 128)
static const passes_fn passes_of[2][3] = {{passes_4_32, passes_4_64, passes_4_128},
                                          {passes_8_32, passes_8_64, passes_8_128}};

/* All groups of one class: of those of 32 two to each 64 columns, but for a row's end. */
static void add_class(const tiler *t, const leaf *f, pass_args *p, char *tile,
                      const act_cell *cells, const float *merge, wanted *q)
{
    const float *scale = scales_of(t, tile), *bias = scale + t->n_groups * QROWS;
    size_t per_class = t->group < 64 ? 2 : 1, first = (size_t)f->class * 64 / t->group;
    size_t round = 64 * N_CLASSES / t->group; /* groups until the class comes again */
    for (size_t block = first; block < t->n_groups; block += round) {
        size_t end = block + per_class < t->n_groups ? block + per_class : t->n_groups;
        for (size_t g = block; g < end; g++) {
            size_t at = g * t->per_group;
            p->merge = block + round >= t->n_groups && g + 1 == end ? merge : NULL;
            p->words = tile + at * t->pass_bytes;
            p->cells = cells + at * p->nt;
            p->scale = scale + g * QROWS;
            p->bias = bias + g * QROWS;
            passes_of[t->bits == 8][t->group / 64](p, t->pass_bytes, g > first);
            want_some(q);
        }
    }
}

VEC_FN void add_lanes(float *to, const float *from, size_t nt)
{
    for (size_t i = 0; i < nt * QROWS; i += VF_N)
        vf_store(to + i, vf_add(vf_load(to + i), vf_load(from + i)));
}

/* A tile times a block of tokens: y[token][row]. */
static void multiply_tile(tiler *t, char *tile, const act_cell *cells, size_t nt, wanted *q,
                          float *y, size_t ldy)
{
    pass_args p = {.dots = t->dots.i[0], .nt = nt};
    for (int l = 0; l < t->n_leaves; l++) {
        const leaf *f = &t->leaves[l];
        p.acc = t->buffer[f->buffer].f[0];
        add_class(t, f, &p, tile, cells, f->n_merge ? t->buffer[f->merge[0]].f[0] : NULL, q);
        for (int m = 1; m < f->n_merge; m++) add_lanes(p.acc, t->buffer[f->merge[m]].f[0], nt);
    }
    vf absent = vf_set(t->n_leaves == N_CLASSES ? -0.0f : 0.0f);
    for (size_t i = 0; i < nt; i++)
        vf_store(y + i * ldy, vf_add(vf_load(p.acc + i * QROWS), absent));
}

/* --- a call: tokens as many as are laid out at a time, tile by tile, block by block */

/* One tile of rows [n, n + 8) times the nt tokens laid out; the next one is asked for meanwhile. */
static void tile_tokens(const qmm8_call *c, tiler *t, char *tile, const act_cell *cells, int64_t n,
                        size_t nt, float *y, size_t ldy)
{
    wanted q = want_rows(c->w, n + QROWS, QROWS, t->n_groups * ((nt + TOKENS - 1) / TOKENS));
    unpack_tile(t, tile, c->w, n);
    for (size_t first = 0; first < nt; first += TOKENS) {
        size_t here = nt - first < TOKENS ? nt - first : TOKENS;
        multiply_tile(t, tile, cells + first * t->n_passes, here, &q, y + first * ldy, ldy);
    }
}

void qmm8tile_avx2(const qmm8_call *c)
{
    tiler *t = (tiler *)c->scratch, plan = plan_tiler(c->w);
    memcpy(t, &plan, offsetof(tiler, dots));
    act_cell *cells = (act_cell *)(c->scratch + up64(sizeof *t));
    float *part = (float *)((char *)cells + cells_bytes(t));
    char *tile = (char *)part + up64(t->n_laid * QROWS * 4);
    for (size_t t0 = 0; t0 < c->nt; t0 += t->n_laid) {
        size_t nt = c->nt - t0 < t->n_laid ? c->nt - t0 : t->n_laid;
        float *y = c->y + t0 * c->ldy;
        int64_t n = c->n0;
        lay_out_tokens(c, t, cells, t0, nt);
        for (; n + QROWS <= c->n1; n += QROWS)
            tile_tokens(c, t, tile, cells, n, nt, y + (n - c->n0), c->ldy);
        if (n == c->n1) continue;
        int64_t start = last_tile(c->n1, QROWS); /* some rows once more */
        tile_tokens(c, t, tile, cells, start, nt, part, QROWS);
        for (size_t i = 0; i < nt; i++)
            memcpy(y + i * c->ldy + (n - c->n0), part + i * QROWS + (n - start),
                   (size_t)(c->n1 - n) * sizeof *y);
    }
}
