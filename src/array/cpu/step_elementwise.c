/* step_elementwise.c: elementwise groups, and those that end in int8 rows. */
#include <string.h>
#include "array/cpu/ew.h"

typedef struct elementwise_args {
    const ew *e;
    char *out;
    count n;      /* elements */
    int32_t cost; /* of an element */
    int32_t size; /* bytes of a result */
} elementwise_args;

static int64_t elementwise_blocks(const void *args, const run_ctx *r)
{
    const elementwise_args *a = args;
    int64_t n = count_now(a->n, r), chunks = (n + EW_CHUNK - 1) / EW_CHUNK;
    return rows_blocks(chunks, EW_CHUNK * a->cost, r->n_workers);
}

static void elementwise_run(const void *args, const run_ctx *r, int64_t block)
{
    const elementwise_args *a = args;
    int64_t n = count_now(a->n, r), chunks = (n + EW_CHUNK - 1) / EW_CHUNK;
    span s = rows_span(chunks, EW_CHUNK * a->cost, r->n_workers, block);
    int64_t first = s.first * EW_CHUNK, end = s.end * EW_CHUNK < n ? s.end * EW_CHUNK : n;
    ew_run(a->e, first, end, a->out + first * a->size, step_scratch(r));
}

ig_status lower_elementwise(const lowering *l, step *ret_step)
{
    elementwise_args *a;
    ew *e;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!lower_is_contiguous(&l->out[0])) return lower_not_contiguous(l, "result");
    TRY(ew_compile(l, l->w->prog, l->in, &l->out[0].s, &e));
    *a = (elementwise_args){.e = e, .out = l->out[0].ptr, .cost = (int32_t)ew_cost(e)};
    a->n = lower_count(&l->out[0].s, 0, l->out[0].s.ndim);
    a->size = (int32_t)ig_dtype_size(ew_type(e));
    *ret_step = (step){
        .run = elementwise_run, .blocks = elementwise_blocks, .args = a, .label = "elementwise"};
    return IG_OK;
}

/* Columns that are computed and made int8 at a time: a multiple of every group and of 32. */
#define PIECE 16384
_Static_assert(EW_SCRATCH_BYTES + PIECE * 4 + PIECE * 2 <= STEP_SCRATCH_BYTES,
               "a piece and its record fit");

typedef struct ew_rows8_args {
    const ew *e;
    uint8_t *rec;
    count rows;
    int64_t cols;
    int32_t group, cost;
    const kernels *k;
} ew_rows8_args;

static int64_t ew_rows8_blocks(const void *args, const run_ctx *r)
{
    const ew_rows8_args *a = args;
    return rows_blocks(count_now(a->rows, r), a->cols * a->cost, r->n_workers);
}

/* Moves the record of columns [at, at + n) to its place in the record of the row. */
static void place_piece(const ew_rows8_args *a, uint8_t *rec, const uint8_t *piece, size_t at,
                        size_t n)
{
    size_t cols = (size_t)a->cols, group = (size_t)a->group;
    memcpy(rec + at, piece, n);
    memcpy(rec + rows8_d_at(cols) + at / group * 4, piece + rows8_d_at(n),
           (n + group - 1) / group * 4);
    memcpy(rec + rows8_sums_at(cols, group) + at / 32 * 4, piece + rows8_sums_at(n, group),
           (n + 31) / 32 * 4);
}

static void row_in_pieces(const ew_rows8_args *a, int64_t row, float *x, const run_ctx *r)
{
    size_t cols = (size_t)a->cols, bytes = rows8_bytes(cols, (size_t)a->group);
    uint8_t *rec = a->rec + (size_t)row * bytes, *piece = (uint8_t *)(x + PIECE);
    memset(rec, 0, bytes);
    for (size_t at = 0; at < cols; at += PIECE) {
        size_t n = cols - at < PIECE ? cols - at : PIECE;
        int64_t first = row * a->cols + (int64_t)at;
        ew_run(a->e, first, first + (int64_t)n, (char *)x, step_scratch(r));
        a->k->rows8(piece, x, n, a->group);
        place_piece(a, rec, piece, at, n);
    }
}

static void ew_rows8_run(const void *args, const run_ctx *r, int64_t block)
{
    const ew_rows8_args *a = args;
    span s = rows_span(count_now(a->rows, r), a->cols * a->cost, r->n_workers, block);
    float *x = (float *)(step_scratch(r) + EW_SCRATCH_BYTES);
    size_t bytes = rows8_bytes((size_t)a->cols, (size_t)a->group);
    for (int64_t row = s.first; row < s.end; row++) {
        if (a->cols > PIECE) {
            row_in_pieces(a, row, x, r);
            continue;
        }
        ew_run(a->e, row * a->cols, (row + 1) * a->cols, (char *)x, step_scratch(r));
        a->k->rows8(a->rec + (size_t)row * bytes, x, (size_t)a->cols, a->group);
    }
}

ig_status lower_elementwise_rows8(const lowering *l, step *ret_step)
{
    ew_rows8_args *a;
    ew *e;
    const spec *x =
        node_spec(l->w->node->in[0]); /* what int8_rows reads: the result of the program */
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!lower_is_contiguous(&l->out[0])) return lower_not_contiguous(l, "result");
    if (x->dtype != IG_F32) return lower_bad_dtype(l, x->dtype);
    TRY(ew_compile(l, l->w->prog, l->in, x, &e));
    *a = (ew_rows8_args){
        .e = e, .rec = (uint8_t *)l->out[0].ptr, .k = l->k, .cost = (int32_t)ew_cost(e) + 4};
    a->rows = lower_count(x, 0, x->ndim - 1);
    a->cols = x->dim[x->ndim - 1];
    a->group = (int32_t)l->w->node->i[0];
    *ret_step = (step){.run = ew_rows8_run,
                       .blocks = ew_rows8_blocks,
                       .args = a,
                       .label = "elementwise, int8 rows"};
    return IG_OK;
}
