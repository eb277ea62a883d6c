/* step_qmm8.c: int8 activation rows, and their products with quantised matrices, with or without a
 * residual added. */
#include "array/cpu/lower.h"

/* --- int8_rows */

typedef struct rows8_args {
    rows_in x;
    count rows;
    int64_t n;
    uint8_t *rec;
    const kernels *k;
    int32_t group;
} rows8_args;

static int64_t rows8_blocks(const void *args, const run_ctx *r)
{
    const rows8_args *a = args;
    return rows_blocks(count_now(a->rows, r), 4 * a->n, r->n_workers);
}

static void rows8_run(const void *args, const run_ctx *r, int64_t block)
{
    const rows8_args *a = args;
    size_t bytes = rows8_bytes((size_t)a->n, (size_t)a->group);
    span s = rows_span(count_now(a->rows, r), 4 * a->n, r->n_workers, block);
    for (int64_t i = s.first; i < s.end; i++) {
        const float *x = rows_f32(&a->x, a->k, i, a->n, step_scratch(r));
        a->k->rows8(a->rec + (size_t)i * bytes, x, (size_t)a->n, a->group);
    }
}

ig_status lower_rows8(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0];
    rows8_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    *a = (rows8_args){
        .rec = (uint8_t *)l->out[0].ptr, .k = l->k, .group = (int32_t)l->w->node->i[0]};
    a->n = x->s.dim[x->s.ndim - 1];
    a->rows = lower_count(&x->s, 0, x->s.ndim - 1);
    TRY(lower_rows(l, x, &a->x));
    if (x->s.dtype != IG_F32) return lower_bad_dtype(l, x->s.dtype);
    if (!rows_are_direct(&a->x) && a->n > ROW_MAX) return lower_not_contiguous(l, "each row of x");
    *ret_step = (step){.run = rows8_run, .blocks = rows8_blocks, .args = a, .label = "int8 rows"};
    return IG_OK;
}

/* --- quantized_matmul_rows8 */

typedef struct qmm8_args {
    qmat w;
    const uint8_t *rec;
    size_t rec_bytes;
    count tokens;
    float *out;            /* [tokens][n] */
    const float *residual; /* same; may be out; NULL: none */
    const kernels *k;
    int32_t act_group;
    bool residual_first; /* residual + product: decides which NaN, nothing else */
} qmm8_args;

static int64_t qmm8_blocks(const void *args, const run_ctx *r)
{
    const qmm8_args *a = args;
    tiling t = mm_tiling(a->w.n, count_now(a->tokens, r), r->n_workers);
    return t.n_row_blocks * t.n_token_blocks;
}

typedef struct part {
    int64_t n0, n1, t0;
    size_t n_tokens;
} part;

static part part_of(const qmm8_args *a, const run_ctx *r, int64_t block)
{
    int64_t n_tokens = count_now(a->tokens, r);
    tiling t = mm_tiling(a->w.n, n_tokens, r->n_workers);
    part p = {.n0 = block % t.n_row_blocks * t.rows, .t0 = block / t.n_row_blocks * MM_TOKENS};
    p.n1 = a->w.n - p.n0 < t.rows ? a->w.n : p.n0 + t.rows;
    p.n_tokens = (size_t)(n_tokens - p.t0 < MM_TOKENS ? n_tokens - p.t0 : MM_TOKENS);
    return p;
}

static void qmm8_run(const void *args, const run_ctx *r, int64_t block)
{
    const qmm8_args *a = args;
    part p = part_of(a, r, block);
    const uint8_t *rec = a->rec + (size_t)p.t0 * a->rec_bytes;
    a->k->qmm8(a->out + p.t0 * a->w.n + p.n0, (size_t)a->w.n, &a->w, p.n0, p.n1, rec, a->rec_bytes,
               a->act_group, p.n_tokens, kernel_scratch(r));
}

static void qmm8_add_run(const void *args, const run_ctx *r, int64_t block)
{
    const qmm8_args *a = args;
    part p = part_of(a, r, block);
    const uint8_t *rec = a->rec + (size_t)p.t0 * a->rec_bytes;
    float *y = (float *)step_scratch(r);
    size_t n = (size_t)(p.n1 - p.n0);
    a->k->qmm8(y, n, &a->w, p.n0, p.n1, rec, a->rec_bytes, a->act_group, p.n_tokens,
               kernel_scratch(r));
    for (size_t t = 0; t < p.n_tokens; t++, y += n) {
        int64_t at = (p.t0 + (int64_t)t) * a->w.n + p.n0;
        const float *res = a->residual + at;
        a->k->ew2[OP_add](a->out + at, a->residual_first ? res : y, a->residual_first ? y : res, n);
    }
}
_Static_assert(4 * MM_TOKENS * MM_ROWS <= STEP_SCRATCH_BYTES, "a tile fits");

ig_status lower_qmm8(const lowering *l, step *ret_step)
{
    bool add = l->w->kind == WORK_QMM8_ADD;
    const ig_node *n =
        add ? l->w->inner : l->w->node; /* i = columns, activation group, group, bits */
    qmm8_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!lower_is_contiguous(&l->in[0])) return lower_not_contiguous(l, "rec");
    *a =
        (qmm8_args){.rec = (const uint8_t *)l->in[0].ptr, .out = (float *)l->out[0].ptr, .k = l->k};
    TRY(lower_qmat(l, 1, n->i[2], n->i[3], &a->w));
    a->act_group = (int32_t)n->i[1];
    a->rec_bytes = rows8_bytes((size_t)n->i[0], (size_t)n->i[1]);
    a->tokens = lower_count(&l->in[0].s, 0, 1);
    *ret_step = (step){.run = qmm8_run, .blocks = qmm8_blocks, .args = a, .label = "int8 matmul"};
    ret_step->const_bytes = lower_const_bytes(l, 1, 4);
    if (ret_step->const_bytes) {
        ret_step->ahead = &a->w.ahead;
        ret_step->row_bytes = a->w.k * a->w.bits / 8;
    }
    if (!add) return IG_OK;
    if (!lower_is_contiguous(&l->in[4])) return lower_not_contiguous(l, "what is added");
    a->residual = (const float *)l->in[4].ptr;
    a->residual_first = l->w->node->in[1].node == n;
    ret_step->run = qmm8_add_run;
    ret_step->label = "int8 matmul, add";
    return IG_OK;
}
