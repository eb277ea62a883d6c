/* qmm8tile_avx2.c: qmm8 for many tokens. Lanes are 8 rows; the codes of a block of rows are unpacked once, [k / 4][row][4], and meet
 * the tokens 32 at a time.
 *
 * One pass multiplies 32 columns of 8 rows (8 registers) with all tokens of the block, one after another. Classes are walked one by
 * one, each through all of its groups, in the order 0 8 4 12 2 10 ... in which the fold 8-4-2-1 meets them; what is folded already
 * waits in at most 4 buffers of [token][row], as in a binary counter. So no 16 accumulators exist and no fold is left for the end.
 * Classes without a group are skipped and their +0 is added once at the end: it can only change a result of -0.
 * Cost per 32 columns, 8 rows and token: 8 broadcasts, 8 byte products, 13 to 26 other vector operations. */
#include "array/cpu/x86/qmm8_avx2.h"

#define TOKENS 32
#define CELLS_BYTES (192 << 10)
#define MAX_ROW_TILES 8
#define PASS 32 /* columns of a pass */
#define PASS_BYTES (PASS * QROWS)

typedef __m256i v32;

/* 32 columns of one token, 4-bit: of each 8 codes the even ones, then the odd ones; and, with a weight group's last pass, S and d. */
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
    size_t k, group, n_passes, per_group; /* passes in a row and in a group */
    size_t tile_bytes;                    /* codes, scales and biases of 8 rows */
    size_t block;                         /* tokens */
    int bits, n_leaves;
    leaf leaves[N_CLASSES];
    lanes dots, buffer[5];
} tiler;

static size_t tile_bytes(const qmat *w)
{
    return (size_t)w->k * QROWS + (size_t)(w->k / w->group) * QROWS * 8;
}
static size_t block_tokens(const qmat *w)
{
    size_t fit = CELLS_BYTES / ((size_t)w->k / PASS * sizeof(act_cell));
    return fit >= TOKENS ? TOKENS : fit >= 8 ? fit / 8 * 8 : 8;
}
static size_t act_bytes(const qmat *w)
{
    return up64((size_t)w->k / PASS * block_tokens(w) * sizeof(act_cell));
}
static size_t fixed_bytes(const qmat *w)
{
    return up64(sizeof(tiler)) + act_bytes(w) + up64(TOKENS * QROWS * 4);
}

size_t qmm8tile_bytes_avx2(const qmat *w) { return fixed_bytes(w) + tile_bytes(w); }

/* --- unpacking */

VEC_FN void put(uint8_t *y, v32 v) { _mm256_storeu_si256((void *)y, v); }

/* 4-bit: of 8 codes of a row the even ones, then the odd ones. Half a step (K an odd multiple of 32) is 16 bytes of a row. */
static void unpack4(uint8_t *y, const uint8_t *codes, size_t k)
{
    const v32 nibble = _mm256_set1_epi8(15);
    for (size_t i = 0; i < k; i += 64) {
        v32 r[8];
        int n = k - i < 64 ? 4 : 8; /* words of 8 codes */
        load_rows(r, codes + i / 2, k / 2, (size_t)n * 4);
        transpose8(r);
        EACH (j, 8) {
            if (j >= n) break;
            put(y + i * QROWS + 64 * j, _mm256_and_si256(r[j], nibble));
            put(y + i * QROWS + 64 * j + 32, _mm256_and_si256(_mm256_srli_epi16(r[j], 4), nibble));
        }
    }
}

/* 8-bit: less 128, as signed bytes. */
static void unpack8(uint8_t *y, const uint8_t *codes, size_t k)
{
    const v32 flip = _mm256_set1_epi8((char)0x80);
    for (size_t i = 0; i < k; i += 32) {
        v32 r[8];
        load_rows(r, codes + i, k, 32);
        transpose8(r);
        EACH (j, 8) put(y + i * QROWS + 32 * j, _mm256_xor_si256(r[j], flip));
    }
}

/* Scales or biases of 8 rows, [group][row]. The last 8 groups may overlap those before; fewer than 8 are taken one by one. */
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

static void unpack_tile(const tiler *t, char *to, const qmat *w, int64_t n)
{
    size_t n_groups = t->k / t->group;
    float *scale = (float *)(to + t->k * QROWS), *bias = scale + n_groups * QROWS;
    const uint8_t *codes = w->codes + (size_t)n * t->k / 8 * (size_t)t->bits;
    if (t->bits == 4)
        unpack4((uint8_t *)to, codes, t->k);
    else
        unpack8((uint8_t *)to, codes, t->k);
    unpack_scales(scale, w->scales, w->sb_type, n, n_groups);
    unpack_scales(bias, w->biases, w->sb_type, n, n_groups);
}

/* One token's records into column `at` of the cells [pass][token]. */
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
/* w holds magnitudes, the signs are at `codes` and go to x. A product pair is at most 2 * 128 * 127. */
VEC_FN v32 dot_8(const v32 *w, const uint8_t *codes, const uint8_t *x)
{
    const v32 one = _mm256_set1_epi16(1);
    v32 sum = _mm256_setzero_si256();
    EACH (i, 8) {
        v32 sx = _mm256_sign_epi8(broadcast(x + 4 * i),
                                  _mm256_loadu_si256((const void *)(codes + 32 * i)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w[i], sx), one));
    }
    return sum;
}

/* What a pass does beside its products. */
typedef struct pass_args {
    const uint8_t *codes;
    const act_cell *cells;     /* [token] */
    const float *scale, *bias; /* of the group, when it ends here */
    lanes *dots;               /* I of the passes of the group so far */
    lanes *acc, *merge;        /* the class; what to add to it after its last group, or NULL */
    size_t nt;
} pass_args;

/* more: I continues an earlier pass; ends: this pass ends its group; again: the class has a sum already. */
VEC_FN void pass(const pass_args *p, int bits, bool more, bool ends, bool again, bool merge)
{
    v32 w[8];
    EACH (i, 8) {
        w[i] = _mm256_loadu_si256((const void *)(p->codes + 32 * i));
        if (bits == 8) w[i] = _mm256_abs_epi8(w[i]);
    }
    vf s = ends ? vf_load(p->scale) : vf_set(0), b = ends ? vf_load(p->bias) : vf_set(0);
    const act_cell *c = p->cells, *end = c + p->nt;
    const uint8_t *codes = p->codes;
    int32_t *dots = p->dots->i[0];
    float *acc = p->acc->f[0], *folded = merge ? p->merge->f[0] : NULL;
    for (; c < end; c++, dots += QROWS, acc += QROWS, folded += merge ? QROWS : 0) {
        v32 dot = bits == 4 ? dot_4(w, c->x) : dot_8(w, codes, c->x);
        if (more) dot = vi_add(dot, vi_load(dots));
        if (!ends) {
            vi_store(dots, dot);
            continue;
        }
        vf sum = vf_set(c->sum), i = vf_of_int(dot);
        if (bits == 8) i = vf_fma(vf_set(128), sum, i); /* exact: below 2^24 */
        vf u = vf_fma(s, i, vf_mul(b, sum));
        vf r = vf_fma(vf_set(c->d), u, again ? vf_load(acc) : vf_set(0));
        if (merge) r = vf_add(r, vf_load(folded));
        vf_store(acc, r);
    }
}

/* All passes of one group. */
VEC_FN void group_passes(pass_args *p, int bits, size_t per_group, bool again)
{
    for (size_t i = 0; i + 1 < per_group; i++) {
        if (i)
            pass(p, bits, true, false, false, false);
        else
            pass(p, bits, false, false, false, false);
        p->codes += PASS_BYTES;
        p->cells += p->nt;
    }
    bool more = per_group > 1;
    switch ((more ? 4 : 0) + (again ? 2 : 0) + (p->merge ? 1 : 0)) {
    case 0: pass(p, bits, false, true, false, false); break;
    case 1: pass(p, bits, false, true, false, true); break;
    case 2: pass(p, bits, false, true, true, false); break;
    case 3: pass(p, bits, false, true, true, true); break;
    case 4: pass(p, bits, true, true, false, false); break;
    case 5: pass(p, bits, true, true, false, true); break;
    case 6: pass(p, bits, true, true, true, false); break;
    default: pass(p, bits, true, true, true, true);
    }
    p->codes += PASS_BYTES;
    p->cells += p->nt;
}

static void group_passes_4(pass_args *p, size_t per_group, bool again)
{
    group_passes(p, 4, per_group, again);
}
static void group_passes_8(pass_args *p, size_t per_group, bool again)
{
    group_passes(p, 8, per_group, again);
}

/* 8 rows times the tokens of the block: y[token][row]. */
static void tile(tiler *t, const char *rows, const act_cell *cells, size_t nt, wanted q, float *y,
                 size_t ldy)
{
    size_t n_groups = t->k / t->group, per_class = t->group < 64 ? 64 / t->group : 1;
    const float *scale = (const float *)(rows + t->k * QROWS), *bias = scale + n_groups * QROWS;
    lanes *last = NULL;
    for (int l = 0; l < t->n_leaves; l++) {
        const leaf *f = &t->leaves[l];
        pass_args p = {.dots = &t->dots, .acc = &t->buffer[f->buffer], .nt = nt};
        bool again = false;
        for (size_t block = (size_t)f->class * 64; block < t->k; block += 64 * N_CLASSES) {
            for (size_t i = 0; i < per_class; i++) {
                size_t g = block / t->group + i, p0 = g * t->per_group;
                if (g >= n_groups) break;
                bool final =
                    block + 64 * N_CLASSES >= t->k && (i + 1 == per_class || g + 1 == n_groups);
                p.merge = final && f->n_merge ? &t->buffer[f->merge[0]] : NULL;
                p.codes = (const uint8_t *)rows + p0 * PASS_BYTES;
                p.cells = cells + p0 * nt;
                p.scale = scale + g * QROWS;
                p.bias = bias + g * QROWS;
                (t->bits == 4 ? group_passes_4 : group_passes_8)(&p, t->per_group, again);
                again = true;
                want_some(&q);
            }
        }
        last = p.acc;
        for (int m = 1; m < f->n_merge; m++)
            for (size_t i = 0; i < nt; i++)
                vf_store(last->f[i],
                         vf_add(vf_load(last->f[i]), vf_load(t->buffer[f->merge[m]].f[i])));
    }
    vf absent = vf_set(t->n_leaves == N_CLASSES ? -0.0f : 0.0f);
    for (size_t i = 0; i < nt; i++) vf_store(y + i * ldy, vf_add(vf_load(last->f[i]), absent));
}

static void lay_out(const qmm8_call *c, const tiler *t, act_cell *cells, size_t t0, size_t nt)
{
    for (size_t i = 0; i < nt; i++)
        lay_out_token(t, cells, nt, i, c->rec + (t0 + i) * c->rec_stride, c->act_group);
}

/* Up to 32 tokens, laid out once: each tile is unpacked, used and forgotten while it is in L1. */
static void few_tokens(const qmm8_call *c, tiler *t, char *rows, act_cell *cells)
{
    lay_out(c, t, cells, 0, c->nt);
    for (int64_t n = c->n0; n + QROWS <= c->n1; n += QROWS) {
        unpack_tile(t, rows, c->w, n);
        tile(t, rows, cells, c->nt, want_rows(c->w, n + QROWS, QROWS, t->k / t->group),
             c->y + (n - c->n0), c->ldy);
    }
}

/* More tokens: some tiles are unpacked, and every block of tokens, once laid out, meets them all. */
static void many_tokens(const qmm8_call *c, tiler *t, char *rows, size_t n_fit, act_cell *cells)
{
    int64_t step_rows = (int64_t)(n_fit * QROWS);
    for (int64_t n = c->n0; n + QROWS <= c->n1; n += step_rows) {
        int64_t end = n + step_rows < c->n1 ? n + step_rows : c->n1;
        size_t n_tiles = (size_t)(end - n) / QROWS;
        for (size_t r = 0; r < n_tiles; r++)
            unpack_tile(t, rows + r * t->tile_bytes, c->w, n + (int64_t)(r * QROWS));
        for (size_t t0 = 0; t0 < c->nt; t0 += t->block) {
            size_t nt = c->nt - t0 < t->block ? c->nt - t0 : t->block;
            lay_out(c, t, cells, t0, nt);
            for (size_t r = 0; r < n_tiles; r++)
                tile(t, rows + r * t->tile_bytes, cells, nt, (wanted){.lines = 0},
                     c->y + t0 * c->ldy + (n - c->n0) + (int64_t)(r * QROWS), c->ldy);
        }
    }
}

/* The rows behind the last whole tile, with some before them. */
static void last_rows(const qmm8_call *c, tiler *t, char *rows, act_cell *cells, float *part)
{
    int64_t n = c->n0 + (c->n1 - c->n0) / QROWS * QROWS, start = last_tile(c->n1, QROWS);
    if (n == c->n1) return;
    unpack_tile(t, rows, c->w, start);
    for (size_t t0 = 0; t0 < c->nt; t0 += t->block) {
        size_t nt = c->nt - t0 < t->block ? c->nt - t0 : t->block;
        lay_out(c, t, cells, t0, nt);
        tile(t, rows, cells, nt, (wanted){.lines = 0}, part, QROWS);
        for (size_t i = 0; i < nt; i++)
            memcpy(c->y + (t0 + i) * c->ldy + (n - c->n0), part + i * QROWS + (n - start),
                   (size_t)(c->n1 - n) * sizeof(float));
    }
}

void qmm8tile_avx2(const qmm8_call *c)
{
    const qmat *w = c->w;
    tiler *t = (tiler *)c->scratch;
    memset(t, 0, offsetof(tiler, dots));
    t->k = (size_t)w->k;
    t->group = (size_t)w->group;
    t->bits = w->bits;
    t->n_passes = t->k / PASS;
    t->per_group = t->group / PASS;
    t->tile_bytes = tile_bytes(w);
    t->block = block_tokens(w);
    t->n_leaves = plan_leaves(t->leaves, t->k, t->group);
    act_cell *cells = (act_cell *)(c->scratch + up64(sizeof *t));
    float *part = (float *)((char *)cells + act_bytes(w));
    char *rows = (char *)part + up64(TOKENS * QROWS * 4);
    size_t rest = KERNEL_SCRATCH_BYTES - fixed_bytes(w);
    size_t n_fit = rest / t->tile_bytes;
    if (c->nt <= t->block)
        few_tokens(c, t, rows, cells);
    else
        many_tokens(c, t, rows, n_fit < MAX_ROW_TILES ? n_fit : MAX_ROW_TILES, cells);
    last_rows(c, t, rows, cells, part);
}
