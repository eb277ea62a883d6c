/* step_qmm.c: exact products with quantised matrices, either way round, every output a sum in sum
 * order. */
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/typed.h"

typedef struct qmm_args {
    qmat w;
    rows_in x;
    count batch; /* matrices of w, where it has leading axes */
    count m;     /* rows of x to each */
    int64_t n_x; /* columns of x */
    float *out;
    const kernels *k;
} qmm_args;

#define X_ROWS 8 /* rows of x taken together */

/* Do rows lie a fixed number of floats apart? Then a kernel may read them where they are. */
static bool rows_are_uniform(const rows_in *x)
{
    return rows_are_direct(x) && x->at->n == 1 && x->at->axis[1] >= 0;
}

/* --- x times w transposed */

static int64_t qmm_blocks(const void *args, const run_ctx *r)
{
    const qmm_args *a = args;
    tiling t = mm_tiling(a->w.n, count_now(a->m, r), r->n_workers);
    return count_now(a->batch, r) * t.n_row_blocks * t.n_token_blocks;
}

/* Rows [t, t + n) of x as floats, n_x apart. */
static const float *bring(const qmm_args *a, int64_t t, int64_t n, char *scratch)
{
    for (int64_t i = 0; i < n; i++) {
        char *y = scratch + i * a->n_x * 4;
        const float *row = rows_f32(&a->x, a->k, t + i, a->n_x, y);
        if ((const char *)row != y) memcpy(y, row, (size_t)a->n_x * 4);
    }
    return (const float *)scratch;
}

static void qmm_run(const void *args, const run_ctx *r, int64_t block)
{
    const qmm_args *a = args;
    int64_t m = count_now(a->m, r), n = a->w.n;
    tiling g = mm_tiling(n, m, r->n_workers);
    int64_t n0 = block % g.n_row_blocks * g.rows, n1 = n - n0 < g.rows ? n : n0 + g.rows;
    block /= g.n_row_blocks;
    int64_t t0 = block % g.n_token_blocks * MM_TOKENS, batch = block / g.n_token_blocks;
    int64_t t1 = m - t0 < MM_TOKENS ? m : t0 + MM_TOKENS;
    qmat w = qmat_part(&a->w, batch * n, 0, n, a->w.k);
    bool uniform = rows_are_uniform(&a->x);
    int64_t fit = (STEP_SCRATCH_BYTES - 2 * a->n_x) / (4 * a->n_x + 1),
            per = fit < X_ROWS ? fit : X_ROWS;
    if (uniform) per = t1 - t0;
    for (int64_t t = t0; t < t1; t += per) {
        int64_t nt = t1 - t < per ? t1 - t : per, row = batch * m + t;
        const float *x =
            uniform ? (const float *)walk_at(a->x.at, row) : bring(a, row, nt, step_scratch(r));
        size_t ldx = (size_t)(uniform ? a->x.at->axis[1] / 4 : a->n_x);
        a->k->qmm(a->out + row * n + n0, (size_t)n, &w, n0, n1, x, ldx, (size_t)nt,
                  kernel_scratch(r));
    }
}

/* --- x times w: columns of w are summed over its rows, so the 64 partial sums are rows of SEGMENT
 * columns */

#define SEGMENT 128
#define SUM_FLOATS (SUM_LANES * SEGMENT)
_Static_assert((X_ROWS * SUM_FLOATS + X_ROWS * SUM_BLOCK + SUM_BLOCK + SEGMENT) * 4 <=
                   STEP_SCRATCH_BYTES,
               "scratch fits");

static int64_t plain_blocks(const void *args, const run_ctx *r)
{
    const qmm_args *a = args;
    int64_t m_blocks = (count_now(a->m, r) + X_ROWS - 1) / X_ROWS;
    return count_now(a->batch, r) * m_blocks * ((a->w.k + SEGMENT - 1) / SEGMENT);
}

/* Columns [n0, n0 + n) of nt rows of x, SUM_BLOCK apart. */
static void bring_columns(const qmm_args *a, int64_t row, int64_t nt, int64_t n0, int64_t n,
                          float *y, char *raw)
{
    for (int64_t t = 0; t < nt; t++) {
        walk_gather(raw, walk_at(a->x.at, row + t) + n0 * a->x.by, a->x.size, a->x.by, n);
        const float *x =
            lower_row_f32(a->k, y + t * SUM_BLOCK, raw, (ig_dtype)a->x.dtype, (size_t)n);
        if (x != y + t * SUM_BLOCK) memcpy(y + t * SUM_BLOCK, raw, (size_t)n * 4);
    }
}

/* One block of sum order: rows [n0, n0 + n) of a segment of w, added to out (nt rows, w.k
 * apart). */
static void add_block(const qmm_args *a, const qmat *w, int64_t k0, int64_t cols, int64_t n0,
                      int64_t n, const float *x, int64_t nt, float *out, float *sums, float *row)
{
    ew2_fn add = a->k->ew2[OP_add];
    memset(sums, 0, (size_t)(nt * SUM_FLOATS) * sizeof *sums);
    for (int64_t i = 0; i < n; i++) {
        qmat piece = qmat_part(w, n0 + i, k0, 1, cols);
        a->k->qrow(row, &piece, 0);
        for (int64_t t = 0; t < nt; t++)
            a->k->axpy(sums + t * SUM_FLOATS + i % SUM_LANES * cols, x[t * SUM_BLOCK + i], row,
                       (size_t)cols);
    }
    for (int64_t t = 0; t < nt; t++) {
        float *s = sums + t * SUM_FLOATS, *y = out + t * w->k;
        for (int64_t half = SUM_LANES / 2; half; half /= 2)
            add(s, s, s + half * cols, (size_t)(half * cols));
        add(y, y, s, (size_t)cols);
    }
}

static void plain_run(const void *args, const run_ctx *r, int64_t block)
{
    const qmm_args *a = args;
    int64_t n_segments = (a->w.k + SEGMENT - 1) / SEGMENT, m = count_now(a->m, r);
    int64_t m_blocks = (m + X_ROWS - 1) / X_ROWS, k0 = block % n_segments * SEGMENT;
    block /= n_segments;
    int64_t t0 = block % m_blocks * X_ROWS, batch = block / m_blocks;
    int64_t nt = m - t0 < X_ROWS ? m - t0 : X_ROWS,
            cols = a->w.k - k0 < SEGMENT ? a->w.k - k0 : SEGMENT;
    int64_t first = batch * m + t0;
    qmat w = qmat_part(&a->w, batch * a->w.n, 0, a->w.n, a->w.k);
    float *sums = (float *)step_scratch(r), *x = sums + X_ROWS * SUM_FLOATS,
          *row = x + X_ROWS * SUM_BLOCK;
    float *out = a->out + first * w.k + k0;
    for (int64_t t = 0; t < nt; t++) memset(out + t * w.k, 0, (size_t)cols * sizeof *out);
    for (int64_t n0 = 0; n0 < w.n; n0 += SUM_BLOCK) {
        int64_t n = w.n - n0 < SUM_BLOCK ? w.n - n0 : SUM_BLOCK;
        bring_columns(a, first, nt, n0, n, x, (char *)(row + SEGMENT));
        add_block(a, &w, k0, cols, n0, n, x, nt, out, sums, row);
    }
}

ig_status lower_qmm(const lowering *l, step *ret_step)
{
    const int64_t *i = l->w->node->i; /* group, bits, transpose */
    const operand *x = &l->in[0];
    int last = x->s.ndim - 1, n_lead = l->in[1].s.ndim - 2;
    qmm_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!typed_is_f32(x->s.dtype)) return lower_bad_dtype(l, x->s.dtype);
    *a = (qmm_args){.out = (float *)l->out[0].ptr, .k = l->k, .n_x = x->s.dim[last]};
    TRY(lower_qmat(l, 1, i[0], i[1], &a->w));
    TRY(lower_rows(l, x, &a->x));
    a->batch = lower_count(&x->s, 0, n_lead);
    a->m = lower_count(&x->s, n_lead, last);
    bool transposed = i[2] != 0;
    *ret_step =
        (step){.run = plain_run, .blocks = plain_blocks, .args = a, .label = "quantised matmul"};
    ret_step->const_bytes = lower_const_bytes(l, 1, 4);
    if (!transposed) return IG_OK;
    ret_step->run = qmm_run;
    ret_step->blocks = qmm_blocks;
    return rows_are_uniform(&a->x) || a->n_x <= ROW_MAX ? IG_OK : lower_not_contiguous(l, "x");
}
