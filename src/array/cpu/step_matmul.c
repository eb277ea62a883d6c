/* step_matmul.c: dense matrix products, batched by broadcasting, every output a dot product in sum
 * order.
 *
 * The kernel slot wants float rows on one side and weight rows (f32, f16, bf16) with contiguous
 * columns on the other. Whatever is not like that is gathered into scratch, 4096 columns at a time:
 * a block of sum order, so the parts add up to the same bits. float64 takes a plain loop over
 * gathered rows. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/reduce.h"
#include "array/cpu/ref/typed.h"
#include "array/cpu/walk.h"

#define PANEL 16  /* gathered weight rows */
#define X_PANEL 8 /* gathered rows of the other side */
#define MAX_ROWS 64

/* One side: the addresses of its matrices in the batch, and how rows and columns (along k) lie;
 * strides in elements. */
typedef struct side {
    const walk *batch;
    int64_t row, col;
    uint8_t dtype, size;
    bool direct; /* the kernel may read it where it is */
} side;

typedef struct matmul_args {
    const kernels *k;
    char *out;
    side x, w; /* a, and b transposed: rows are its columns */
    count batch, m;
    int64_t n, depth;
    uint8_t out_dtype, out_size;
} matmul_args;

typedef struct tile {
    int64_t batch, n0, n1, t0, t1;
} tile;

static int64_t matmul_blocks(const void *args, const run_ctx *r)
{
    const matmul_args *a = args;
    tiling t = mm_tiling(a->n, count_now(a->m, r), r->n_workers);
    return count_now(a->batch, r) * t.n_row_blocks * t.n_token_blocks;
}

/* Which part of the product a block is. Rows are limited to what the scratch holds. */
static tile tile_of(const matmul_args *a, const run_ctx *r, int64_t block)
{
    int64_t m = count_now(a->m, r);
    tiling g = mm_tiling(a->n, m, r->n_workers);
    tile t = {.n0 = block % g.n_row_blocks * g.rows};
    block /= g.n_row_blocks;
    t.t0 = block % g.n_token_blocks * MM_TOKENS;
    t.batch = block / g.n_token_blocks;
    t.n1 = a->n - t.n0 < g.rows ? a->n : t.n0 + g.rows;
    t.t1 = m - t.t0 < MM_TOKENS ? m : t.t0 + MM_TOKENS;
    return t;
}

/* Row `row` of a side, columns [k0, k0 + n), as they are, to dst. */
static void gather_row(const side *s, const char *base, int64_t row, int64_t k0, int64_t n,
                       char *dst)
{
    size_t size = s->size;
    const char *p = base + (row * s->row + k0 * s->col) * (int64_t)size;
    int64_t by = s->col * (int64_t)size;
    if (s->col == 1)
        memcpy(dst, p, (size_t)n * size);
    else if (size == 4)
        for (int64_t i = 0; i < n; i++, p += by) memcpy(dst + i * 4, p, 4);
    else if (size == 2)
        for (int64_t i = 0; i < n; i++, p += by) memcpy(dst + i * 2, p, 2);
    else
        for (int64_t i = 0; i < n; i++, p += by) memcpy(dst + i * 8, p, 8);
}

/* Scratch of a block, in floats: results of this part and of earlier ones, gathered rows of both
 * sides. */
typedef struct buffers {
    float *sum, *part, *x, *w;
} buffers;
_Static_assert((2 * MM_TOKENS * MAX_ROWS + X_PANEL * SUM_BLOCK + PANEL * SUM_BLOCK) * 4 <=
                   STEP_SCRATCH_BYTES,
               "buffers fit");

static buffers buffers_in(char *scratch)
{
    float *p = (float *)scratch;
    float *part = p + MM_TOKENS * MAX_ROWS, *x = part + MM_TOKENS * MAX_ROWS;
    return (buffers){.sum = p, .part = part, .x = x, .w = x + X_PANEL * SUM_BLOCK};
}

/* Rows [t0, t0 + n) of x as float rows: where they are, or gathered and converted (through part,
 * which is free here). */
static const float *x_rows(const matmul_args *a, const char *base, int64_t t0, int64_t n,
                           int64_t k0, int64_t kn, const buffers *b, size_t *ret_ld)
{
    if (a->x.direct) {
        *ret_ld = (size_t)a->x.row;
        return (const float *)base + t0 * a->x.row + k0;
    }
    for (int64_t t = 0; t < n; t++) {
        float *row = b->x + t * SUM_BLOCK;
        char *raw = (char *)(a->x.size == 4 ? row : b->part);
        gather_row(&a->x, base, t0 + t, k0, kn, raw);
        lower_row_f32(a->k, row, raw, (ig_dtype)a->x.dtype, (size_t)kn);
    }
    *ret_ld = SUM_BLOCK;
    return b->x;
}

/* Rows [n0, n0 + n) of w as the kernel takes them: *ret_row is the first one's index from the
 * returned address. */
static const char *w_rows(const matmul_args *a, const char *base, int64_t n0, int64_t n, int64_t k0,
                          int64_t kn, const buffers *b, size_t *ret_ld, int64_t *ret_row)
{
    if (a->w.direct) {
        *ret_ld = (size_t)a->w.row;
        *ret_row = n0;
        return base + k0 * a->w.size;
    }
    for (int64_t i = 0; i < n; i++)
        gather_row(&a->w, base, n0 + i, k0, kn, (char *)b->w + i * SUM_BLOCK * a->w.size);
    *ret_ld = SUM_BLOCK;
    *ret_row = 0;
    return (const char *)b->w;
}

/* Columns [k0, k0 + kn) of weight rows [n0, n0 + n) times the tile's tokens, added to sum
 * [tokens][n] (or, if first, put there). */
static void multiply_part(const matmul_args *a, const tile *t, int64_t n0, int64_t n, int64_t k0,
                          int64_t kn, const buffers *b, char *scratch)
{
    const char *x_base = walk_at(a->x.batch, t->batch), *w_base = walk_at(a->w.batch, t->batch);
    int64_t row, panel = a->x.direct ? MM_TOKENS : X_PANEL;
    size_t ldw, ldx;
    const char *w = w_rows(a, w_base, n0, n, k0, kn, b, &ldw, &row);
    for (int64_t at = t->t0; at < t->t1; at += panel) {
        int64_t nt = t->t1 - at < panel ? t->t1 - at : panel;
        const float *x = x_rows(a, x_base, at, nt, k0, kn, b, &ldx);
        float *sum = b->sum + (at - t->t0) * n, *y = k0 ? b->part : sum;
        a->k->mm(y, (size_t)n, w, (ig_dtype)a->w.dtype, ldw, row, row + n, x, ldx, (size_t)kn,
                 (size_t)nt, scratch);
        if (k0) a->k->ew2[OP_add](sum, sum, y, (size_t)(nt * n));
    }
}

static void matmul_run(const void *args, const run_ctx *r, int64_t block)
{
    const matmul_args *a = args;
    tile t = tile_of(a, r, block);
    int64_t m = count_now(a->m, r);
    char *out = a->out + (t.batch * m + t.t0) * a->n * a->out_size;
    buffers b = buffers_in(step_scratch(r));
    bool direct = a->x.direct && a->w.direct;
    if (direct && a->out_dtype == IG_F32) {
        const float *x = (const float *)walk_at(a->x.batch, t.batch) + t.t0 * a->x.row;
        a->k->mm((float *)out + t.n0, (size_t)a->n, walk_at(a->w.batch, t.batch),
                 (ig_dtype)a->w.dtype, (size_t)a->w.row, t.n0, t.n1, x, (size_t)a->x.row,
                 (size_t)a->depth, (size_t)(t.t1 - t.t0), kernel_scratch(r));
        return;
    }
    int64_t rows = a->w.direct ? MAX_ROWS : PANEL, part = direct ? a->depth : SUM_BLOCK;
    for (int64_t n0 = t.n0; n0 < t.n1; n0 += rows) {
        int64_t n = t.n1 - n0 < rows ? t.n1 - n0 : rows, k0 = 0;
        do {
            int64_t kn = a->depth - k0 < part ? a->depth - k0 : part;
            multiply_part(a, &t, n0, n, k0, kn, &b, kernel_scratch(r));
            k0 += part;
        } while (k0 < a->depth);
        for (int64_t i = 0; i < t.t1 - t.t0; i++)
            lower_store_f32(a->k, out + (i * a->n + n0) * a->out_size, b.sum + i * n,
                            (ig_dtype)a->out_dtype, (size_t)n);
    }
}

/* --- float64 */

/* Elements [k0, k0 + n) of both rows through scratch, a block of sum order. */
static double dot_block(const matmul_args *a, const char *x_base, int64_t row, const char *w_base,
                        int64_t col, int64_t k0, int64_t n, char *scratch)
{
    double *x = (double *)scratch, *w = x + SUM_BLOCK, partial[SUM_LANES] = {0};
    gather_row(&a->x, x_base, row, k0, n, (char *)x);
    gather_row(&a->w, w_base, col, k0, n, (char *)w);
    for (int64_t i = 0; i < n; i++)
        partial[i % SUM_LANES] = fma(x[i], w[i], partial[i % SUM_LANES]);
    return reduce_fold(partial);
}

static void matmul_f64_run(const void *args, const run_ctx *r, int64_t block)
{
    const matmul_args *a = args;
    tile t = tile_of(a, r, block);
    const char *x = walk_at(a->x.batch, t.batch), *w = walk_at(a->w.batch, t.batch);
    double *y = (double *)a->out + t.batch * count_now(a->m, r) * a->n;
    for (int64_t row = t.t0; row < t.t1; row++)
        for (int64_t col = t.n0; col < t.n1; col++) {
            double sum = 0;
            for (int64_t k0 = 0; k0 < a->depth; k0 += SUM_BLOCK)
                sum += dot_block(a, x, row, w, col, k0,
                                 a->depth - k0 < SUM_BLOCK ? a->depth - k0 : SUM_BLOCK,
                                 step_scratch(r));
            y[row * a->n + col] = sum;
        }
}

/* --- lowering */

/* The side of an operand whose rows are axis `row` and whose k is axis `col` (-1: absent),
 * broadcast to the batch of out. */
static ig_status side_of(const lowering *l, const operand *o, int row, int col, int n_batch,
                         side *ret)
{
    const spec *out = &l->out[0].s;
    int64_t stride[IG_MAX_NDIM];
    int own = o->s.ndim > 2 ? o->s.ndim - 2 : 0;
    for (int i = 0; i < n_batch; i++) {
        int j = i - (n_batch - own);
        stride[i] = j < 0 || (o->s.dim[j] == 1 && out->dim[i] != 1) ? 0 : o->stride[j];
    }
    *ret = (side){
        .row = row < 0 ? 0 : o->stride[row], .col = o->stride[col], .dtype = (uint8_t)o->s.dtype};
    ret->size = (uint8_t)ig_dtype_size(o->s.dtype);
    if (o->s.dim[col] == 1) ret->col = 1;
    ret->batch = walk_new(l->mem, o->ptr, ret->size, n_batch, out->dim, stride);
    return ret->batch ? IG_OK : lower_no_memory();
}

ig_status lower_matmul(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *w = &l->in[1], *out = &l->out[0];
    int xd = x->s.ndim, wd = w->s.ndim, n_batch = out->s.ndim - (xd > 1) - (wd > 1);
    matmul_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    *a = (matmul_args){
        .k = l->k, .out = out->ptr, .n = wd > 1 ? w->s.dim[wd - 1] : 1, .depth = x->s.dim[xd - 1]};
    a->out_dtype = (uint8_t)out->s.dtype;
    a->out_size = (uint8_t)ig_dtype_size(out->s.dtype);
    a->batch = lower_count(&out->s, 0, n_batch);
    a->m = xd > 1 ? lower_count(&x->s, xd - 2, xd - 1) : (count){.per = 1};
    TRY(side_of(l, x, xd > 1 ? xd - 2 : -1, xd - 1, n_batch, &a->x));
    TRY(side_of(l, w, wd > 1 ? wd - 1 : -1, wd > 1 ? wd - 2 : 0, n_batch, &a->w));
    a->x.direct = a->x.dtype == IG_F32 && a->x.col == 1 && a->x.row >= 0;
    a->w.direct = typed_is_f32((ig_dtype)a->w.dtype) && a->w.col == 1 && a->w.row >= 0;
    bool f64 = out->s.dtype == IG_F64;
    for (int j = 0; j < 2; j++)
        if (f64 ? l->in[j].s.dtype != IG_F64 : !typed_is_f32(l->in[j].s.dtype))
            return lower_bad_dtype(l, l->in[j].s.dtype);
    *ret_step = (step){.run = f64 ? matmul_f64_run : matmul_run,
                       .blocks = matmul_blocks,
                       .args = a,
                       .label = "matmul"};
    ret_step->const_bytes = lower_const_bytes(l, 1, 2);
    return IG_OK;
}
