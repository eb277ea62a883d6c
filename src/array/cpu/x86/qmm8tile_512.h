/* qmm8tile_512.h: qmm8 for many tokens on 512-bit vectors; as qmm8tile_avx2.c, with 16 rows in
 * the lanes and passes of 64 columns (16 registers). Codes of 4 bits stay packed in the tile, [k
 * / 8][row] words, and come apart at the start of a pass.
 *
 * Cost per 64 columns, 16 rows and token: 16 dots with a broadcast operand and 5 to 9 other
 * operations. Uses what qmm8walk_512.h defines. */
#define TOKENS 16 /* that meet a tile one after another: their cells of short rows stay in L1 */
#define CELLS_BYTES (320 << 10) /* of all tokens laid out at a time: they stay in L2 */
#define PASS 64

/* 64 columns of one token. 4-bit: of each 8 codes the even ones, then the odd ones. S and d of
 * its weight groups; a group of 128 has them in the second cell. */
typedef struct act_cell {
    uint8_t x[PASS];
    float sum[2], d[2];
} act_cell;

/* [token][row], in f32 or int32. */
typedef union lanes {
    float f[TOKENS][QROWS];
    int32_t i[TOKENS][QROWS];
} lanes;

typedef struct tiler {
    size_t k, group, n_groups, n_passes;
    size_t pass_bytes, tile_bytes; /* codes of a pass; codes, scales and biases of 16 rows */
    size_t n_laid;                 /* tokens laid out at a time */
    int bits, n_leaves;
    leaf leaves[N_CLASSES];
    lanes dots, buffer[5];
} tiler;

static tiler plan_tiler(const qmat *w)
{
    tiler t = {.k = (size_t)w->k, .group = (size_t)w->group, .bits = w->bits};
    t.n_groups = t.k / t.group;
    t.n_passes = (t.k + PASS - 1) / PASS;
    t.pass_bytes = (size_t)(PASS / 8 * QROWS * w->bits);
    t.tile_bytes = t.n_passes * t.pass_bytes + up64(t.n_groups * QROWS * 8);
    size_t fit = CELLS_BYTES / (t.n_passes * sizeof(act_cell));
    t.n_laid = fit < TOKENS ? TOKENS : fit / TOKENS * TOKENS;
    t.n_leaves = plan_leaves(t.leaves, t.k, t.group);
    return t;
}

static size_t cells_bytes(const tiler *t)
{
    return up64(t->n_passes * t->n_laid * sizeof(act_cell));
}

/* Of a call: cells, rows of scales as f32, results of a tile whose rows are not all wanted, a
 * tile. */
static size_t tiler_bytes(const tiler *t)
{
    return up64(sizeof *t) + cells_bytes(t) + up64(t->n_groups * QROWS * 4) +
           up64(t->n_laid * QROWS * 4) + t->tile_bytes;
}

static size_t tile_bytes(const qmat *w)
{
    tiler t = plan_tiler(w);
    return tiler_bytes(&t);
}

/* --- unpacking */

/* Words (8 codes of 4 bits, 4 of 8) of 16 rows, [word][row]. Half a pass at the end of a row
 * leaves the rest of its place as it is. */
static void unpack_codes(const tiler *t, char *to, const uint8_t *codes)
{
    size_t row_bytes = t->k / 8 * (size_t)t->bits, per_pass = (size_t)(PASS / 8 * t->bits);
    for (size_t at = 0; at < row_bytes; at += 32) {
        size_t n = row_bytes - at < 32 ? row_bytes - at : 32; /* 16 or 32 */
        char *y = to + at / per_pass * t->pass_bytes + at % per_pass * QROWS;
        EACH (half, 2) {
            __m256i r[8];
            load_rows(r, codes + at + (size_t)half * 8 * row_bytes, row_bytes, n);
            transpose8(r);
            EACH (i, 8) {
                if ((size_t)i * 4 >= n) break;
                _mm256_storeu_si256((void *)(y + i * 64 + half * 32), r[i]);
            }
        }
    }
}

/* Scales or biases of 16 rows, [group][row]. rows: room for them as f32 in rows. The last 8
 * groups may overlap those before; fewer than 8 are taken one by one. */
static void unpack_scales(float *y, float *rows, const void *p, ig_dtype type, int64_t n,
                          size_t n_groups)
{
    widen_scales(rows, p, type, (size_t)n * n_groups, QROWS * n_groups);
    for (size_t at = 0; at < n_groups && n_groups >= 8; at += 8) {
        size_t g = at + 8 <= n_groups ? at : n_groups - 8;
        EACH (half, 2) {
            __m256i r[8];
            EACH (i, 8)
                r[i] = _mm256_loadu_si256(
                    (const void *)(rows + (size_t)(half * 8 + i) * n_groups + g));
            transpose8(r);
            EACH (i, 8) _mm256_storeu_si256((void *)(y + (g + (size_t)i) * QROWS + half * 8), r[i]);
        }
    }
    for (size_t g = 0; g < n_groups && n_groups < 8; g++)
        for (size_t i = 0; i < QROWS; i++) y[g * QROWS + i] = rows[i * n_groups + g];
}

static float *scales_of(const tiler *t, char *tile)
{
    return (float *)(tile + t->n_passes * t->pass_bytes);
}

static void unpack_tile(const tiler *t, char *to, float *rows, const qmat *w, int64_t n)
{
    float *scale = scales_of(t, to);
    unpack_codes(t, to, w->codes + (size_t)n * code_bytes(w));
    unpack_scales(scale, rows, w->scales, w->sb_type, n, t->n_groups);
    unpack_scales(scale + t->n_groups * QROWS, rows, w->biases, w->sb_type, n, t->n_groups);
}

/* Column `at` of a block of nt tokens, cells [pass][token]. The record may end 32 codes into the
 * last pass. */
static void lay_out_token(const tiler *t, act_cell *cells, size_t nt, size_t at, const uint8_t *rec,
                          size_t act_group)
{
    const float *d = (const float *)(rec + rows8_d_at(t->k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(t->k, act_group));
    const v64 apart =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    int shift = __builtin_ctzl(act_group / 32);
    int32_t before = 0;
    for (size_t p = 0; p < t->n_passes; p++) {
        act_cell *c = &cells[p * nt + at];
        bool whole = p * PASS + PASS <= t->k;
        v64 x = whole ? _mm512_loadu_si512(rec + p * PASS)
                      : _mm512_castsi256_si512(_mm256_loadu_si256((const void *)(rec + p * PASS)));
        _mm512_storeu_si512(c->x, t->bits == 4 ? _mm512_shuffle_epi8(x, apart) : x);
        int32_t s0 = sums[2 * p], s1 = whole ? sums[2 * p + 1] : 0, both = s0 + s1;
        if (t->group == 128 && p & 1) both += before;
        before = s0 + s1;
        c->sum[0] = (float)(t->group == 32 ? s0 : both);
        c->sum[1] = (float)s1;
        c->d[0] = d[2 * p >> shift];
        c->d[1] = whole ? d[(2 * p + 1) >> shift] : 0;
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

typedef struct pass_args {
    const char *codes;
    const act_cell *cells;     /* [token] */
    const float *scale, *bias; /* of the first group that ends here */
    int32_t *dots;             /* [token][row] I of the first pass of a group of 128 */
    float *acc;                /* the class */
    const float *merge;        /* what to add to it after its last group, or NULL */
    size_t nt;
} pass_args;

/* 32 columns: half a pass. w: of each word of x its codes. */
VEC_FN v64 dot_half(const v64 *w, const uint8_t *x, int bits)
{
    v64 a = _mm512_setzero_si512(), b = a;
    EACH (i, 4) {
        a = dot_word(a, w[i], x + 4 * i, bits);
        b = dot_word(b, w[i + 4], x + 16 + 4 * i, bits);
    }
    return vi_add(a, b);
}

VEC_FN vf add_group(vf acc, vf s, vf b, v64 dot, float sum, float d)
{
    vf u = vf_fma(s, vf_of_int(dot), vf_mul(b, vf_set(sum)));
    return vf_fma(vf_set(d), u, acc);
}

/* What a pass is: two groups of 32 (one: the half pass at the end of a row); a group of 64; the
 * first or second half of one of 128. */
typedef enum pass_kind { TWO_32, ONE_32, ONE_64, FIRST_128, SECOND_128 } pass_kind;

/* again: the class has a sum already. */
VEC_FN void pass(const pass_args *p, int bits, pass_kind kind, bool again, bool merge)
{
    const v64 nibble = _mm512_set1_epi8(15);
    v64 w[16];
    int n = kind == ONE_32 ? 8 : 16;
    EACH (i, n) {
        v64 v = _mm512_loadu_si512(p->codes + (bits == 4 ? i / 2 : i) * 64);
        w[i] = bits == 8 ? v : _mm512_and_si512(i % 2 ? _mm512_srli_epi16(v, 4) : v, nibble);
    }
    vf s0 = vf_load(p->scale), b0 = vf_load(p->bias), s1 = s0, b1 = b0;
    if (kind == TWO_32) s1 = vf_load(p->scale + QROWS), b1 = vf_load(p->bias + QROWS);
    const act_cell *c = p->cells, *end = c + p->nt;
    int32_t *dots = p->dots;
    float *acc = p->acc;
    const float *more = p->merge;
    for (; c < end; c++, dots += QROWS, acc += QROWS) {
        v64 a = dot_half(w, c->x, bits), b = kind == ONE_32 ? a : dot_half(w + 8, c->x + 32, bits);
        if (kind == ONE_64 || kind >= FIRST_128) a = vi_add(a, b);
        if (kind == FIRST_128) {
            vi_store(dots, a);
            continue;
        }
        if (kind == SECOND_128) a = vi_add(a, vi_load(dots));
        vf r = add_group(again ? vf_load(acc) : vf_set(0), s0, b0, a, c->sum[0], c->d[0]);
        if (kind == TWO_32) r = add_group(r, s1, b1, b, c->sum[1], c->d[1]);
        if (merge) r = vf_add(r, vf_load(more)), more += QROWS;
        vf_store(acc, r);
    }
}

/* The groups of 64 or 128 columns from pass_args on; last_half: only 32 columns are left of the
 * row. */
VEC_FN void block_passes(pass_args *p, size_t pass_bytes, int bits, int group, bool last_half,
                         bool again)
{
    if (group == 128) {
        pass(p, bits, FIRST_128, false, false);
        p->codes += pass_bytes;
        p->cells += p->nt;
    }
    pass_kind kind = group == 32 ? TWO_32 : group == 64 ? ONE_64 : SECOND_128;
    int which = (again ? 2 : 0) + (p->merge ? 1 : 0);
    if (group == 32 && last_half) {
        if (again)
            pass(p, bits, ONE_32, true, false);
        else
            pass(p, bits, ONE_32, false, false);
        if (p->merge)
            for (size_t i = 0; i < p->nt * QROWS; i += QROWS)
                vf_store(p->acc + i, vf_add(vf_load(p->acc + i), vf_load(p->merge + i)));
    } else if (which == 0) {
        pass(p, bits, kind, false, false);
    } else if (which == 1) {
        pass(p, bits, kind, false, true);
    } else if (which == 2) {
        pass(p, bits, kind, true, false);
    } else {
        pass(p, bits, kind, true, true);
    }
}

#define PASSES(bits, group)                                                              \
    static void passes_##bits##_##group(pass_args *p, size_t pass_bytes, bool last_half, \
                                        bool again)                                      \
    {                                                                                    \
        block_passes(p, pass_bytes, bits, group, last_half, again);                      \
    }
PASSES(4, 32)
PASSES(4, 64)
PASSES(4, 128)
PASSES(8, 32)
PASSES(8, 64)
PASSES(8, 128)
static void (*const passes_of[2][3])(pass_args *, size_t, bool, bool) = {
    {passes_4_32, passes_4_64, passes_4_128}, {passes_8_32, passes_8_64, passes_8_128}};

/* 16 rows times the tokens of the block: y[token][row]. */
static void multiply_tile(tiler *t, char *rows, const act_cell *cells, size_t nt, wanted *q,
                          float *y, size_t ldy)
{
    const float *scale = scales_of(t, rows), *bias = scale + t->n_groups * QROWS;
    void (*passes)(pass_args *, size_t, bool, bool) = passes_of[t->bits == 8][t->group / 64];
    const float *last = NULL;
    for (int l = 0; l < t->n_leaves; l++) {
        const leaf *f = &t->leaves[l];
        pass_args p = {.dots = t->dots.i[0], .acc = t->buffer[f->buffer].f[0], .nt = nt};
        for (size_t at = (size_t)f->class * 64, first = at; at < t->k; at += 64 * N_CLASSES) {
            bool final = at + 64 * N_CLASSES >= t->k;
            p.merge = final && f->n_merge ? t->buffer[f->merge[0]].f[0] : NULL;
            p.codes = rows + at / PASS * t->pass_bytes;
            p.cells = cells + at / PASS * nt;
            p.scale = scale + at / t->group * QROWS;
            p.bias = bias + at / t->group * QROWS;
            passes(&p, t->pass_bytes, t->k - at < PASS, at != first);
            want_some(q);
        }
        for (int m = 1; m < f->n_merge; m++)
            for (size_t i = 0; i < nt; i++)
                vf_store(p.acc + i * QROWS,
                         vf_add(vf_load(p.acc + i * QROWS), vf_load(t->buffer[f->merge[m]].f[i])));
        last = p.acc;
    }
    vf absent = vf_set(t->n_leaves == N_CLASSES ? -0.0f : 0.0f);
    for (size_t i = 0; i < nt; i++)
        vf_store(y + i * ldy, vf_add(vf_load(last + i * QROWS), absent));
}

/* --- a call: tokens as many as are laid out at a time, tile by tile, block by block */

/* One tile of rows [n, n + 16) times the nt tokens laid out. */
static void tile_tokens(const qmm8_call *c, tiler *t, char *tile, const act_cell *cells, int64_t n,
                        size_t nt, float *y, size_t ldy)
{
    size_t n_goes = t->n_passes * ((nt + TOKENS - 1) / TOKENS);
    wanted q = want_rows(c->w, n + QROWS, QROWS, t->group == 128 ? (n_goes + 1) / 2 : n_goes);
    for (size_t first = 0; first < nt; first += TOKENS) {
        size_t here = nt - first < TOKENS ? nt - first : TOKENS;
        multiply_tile(t, tile, cells + first * t->n_passes, here, &q, y + first * ldy, ldy);
    }
}

static void tile_rows(const qmm8_call *c)
{
    tiler *t = (tiler *)c->scratch, plan = plan_tiler(c->w);
    memcpy(t, &plan, offsetof(tiler, dots));
    act_cell *cells = (act_cell *)(c->scratch + up64(sizeof *t));
    float *scale_rows = (float *)((char *)cells + cells_bytes(t));
    float *part = (float *)((char *)scale_rows + up64(t->n_groups * QROWS * 4));
    char *tile = (char *)part + up64(t->n_laid * QROWS * 4);
    for (size_t t0 = 0; t0 < c->nt; t0 += t->n_laid) {
        size_t nt = c->nt - t0 < t->n_laid ? c->nt - t0 : t->n_laid;
        float *y = c->y + t0 * c->ldy;
        int64_t n = c->n0;
        lay_out_tokens(c, t, cells, t0, nt);
        for (; n + QROWS <= c->n1; n += QROWS) {
            unpack_tile(t, tile, scale_rows, c->w, n);
            tile_tokens(c, t, tile, cells, n, nt, y + (n - c->n0), c->ldy);
        }
        if (n == c->n1) continue;
        int64_t start = last_tile(c->n1, QROWS); /* some rows once more */
        unpack_tile(t, tile, scale_rows, c->w, start);
        tile_tokens(c, t, tile, cells, start, nt, part, QROWS);
        for (size_t i = 0; i < nt; i++)
            memcpy(y + i * c->ldy + (n - c->n0), part + i * QROWS + (n - start),
                   (size_t)(c->n1 - n) * sizeof *y);
    }
}
