/* step_sort.c: sort, argsort, topk along one axis.
 *
 * A row is sorted as indices over keys (16-bit floats compare as f32), then elements follow. Rows
 * that fit use a worker's scratch; longer ones use one of a few buffers made at lowering, a buffer
 * a block. The largest k of a row are kept by insertion while k is small, else taken from the
 * sorted row's end. */
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/order.h"

#define ROOM (STEP_SCRATCH_BYTES / 24) /* elements of a row that is sorted in scratch */
#define MAX_BUFFERS 16
#define MAX_BUFFER_BYTES ((int64_t)256 << 20)
#define INSERT_MAX 1024
#define BLOCK 4096

typedef struct sort_args {
    axes in, result;
    int64_t n, k;  /* elements of a row of the input; of the result */
    char *buffers; /* NULL: scratch */
    int64_t n_buffers;
    const kernels *kernels;
    const order_fns *order;
    uint16_t op;
    uint8_t dtype, size;
} sort_args;

/* Where the parts of a row of n are: 24 bytes an element. */
typedef struct room {
    char *raw, *result; /* elements as they are; in order */
    void *keys;         /* what compares; raw itself unless 16-bit floats */
    uint32_t *index, *tmp;
} room;

static int64_t cost(const sort_args *a) { return 64 * a->n; }

static int64_t sort_blocks(const void *args, const run_ctx *r)
{
    const sort_args *a = args;
    int64_t rows = count_now(a->in.n_kept, r);
    if (a->buffers) return rows < a->n_buffers ? rows : a->n_buffers;
    return rows_blocks(rows, cost(a), r->n_workers);
}

static bool is_half(const sort_args *a) { return a->dtype == IG_F16 || a->dtype == IG_BF16; }

static room room_in(const sort_args *a, char *p)
{
    room m = {.raw = p, .result = p + a->n * 8};
    m.index = (uint32_t *)(p + a->n * 16);
    m.tmp = m.index + a->n;
    m.keys = is_half(a) ? p + a->n * 4 : p; /* 2-byte elements leave the upper half free */
    return m;
}

static void sort_row(const sort_args *a, int64_t row, char *p)
{
    room m = room_in(a, p);
    int64_t n = a->n, size = a->size;
    walk_read_at(a->in.along, walk_at(a->in.kept, row), 0, n, m.raw);
    if (is_half(a)) lower_row_f32(a->kernels, m.keys, m.raw, (ig_dtype)a->dtype, (size_t)n);
    a->order->sort(m.index, m.tmp, m.keys, (uint32_t)n);
    char *out = walk_at(a->result.kept, row);
    if (a->op == OP_argsort) {
        walk_write_at(a->result.along, out, 0, n, (const char *)m.index);
        return;
    }
    for (int64_t i = 0; i < a->k; i++) {
        int64_t from = a->op == OP_topk ? n - 1 - i : i;
        memcpy(m.result + i * size, m.raw + m.index[from] * size, (size_t)size);
    }
    walk_write_at(a->result.along, out, 0, a->k, m.result);
}

static void sort_run(const void *args, const run_ctx *r, int64_t block)
{
    const sort_args *a = args;
    int64_t rows = count_now(a->in.n_kept, r);
    if (a->buffers) {
        for (int64_t row = block; row < rows; row += a->n_buffers)
            sort_row(a, row, a->buffers + block * a->n * 24);
        return;
    }
    span s = rows_span(rows, cost(a), r->n_workers, block);
    for (int64_t row = s.first; row < s.end; row++) sort_row(a, row, step_scratch(r));
}

/* --- the k largest by insertion */

static void insert_row(const sort_args *a, int64_t row, char *scratch)
{
    char *raw = scratch, *keys = raw + BLOCK * 8, *best = keys + BLOCK * 8;
    const char *base = walk_at(a->in.kept, row);
    int64_t n_best = 0;
    for (int64_t i = 0; i < a->n; i += BLOCK) {
        int64_t n = a->n - i < BLOCK ? a->n - i : BLOCK;
        const void *x = raw;
        walk_read_at(a->in.along, base, i, n, raw);
        if (is_half(a))
            x = lower_row_f32(a->kernels, (float *)keys, raw, (ig_dtype)a->dtype, (size_t)n);
        a->order->topk(best, &n_best, a->k, x, n);
    }
    if (is_half(a))
        lower_store_f32(a->kernels, raw, (const float *)best, (ig_dtype)a->dtype, (size_t)a->k);
    walk_write_at(a->result.along, walk_at(a->result.kept, row), 0, a->k, is_half(a) ? raw : best);
}

static int64_t insert_blocks(const void *args, const run_ctx *r)
{
    const sort_args *a = args;
    return rows_blocks(count_now(a->in.n_kept, r), 2 * a->n, r->n_workers);
}

static void insert_run(const void *args, const run_ctx *r, int64_t block)
{
    const sort_args *a = args;
    span s = rows_span(count_now(a->in.n_kept, r), 2 * a->n, r->n_workers, block);
    for (int64_t row = s.first; row < s.end; row++) insert_row(a, row, step_scratch(r));
}

/* --- lowering */

static ig_status fill(const lowering *l, int64_t axis, sort_args *a)
{
    const operand *in = &l->in[0];
    *a = (sort_args){
        .n = in->s.dim[axis], .k = l->out[0].s.dim[axis], .kernels = l->k, .op = l->w->node->op};
    a->dtype = (uint8_t)in->s.dtype;
    a->size = (uint8_t)ig_dtype_size(in->s.dtype);
    a->order = order_of(typed_register(in->s.dtype));
    if (!a->order) return lower_bad_dtype(l, in->s.dtype);
    TRY(lower_axes(l, in, 1u << axis, &a->in));
    return lower_axes(l, &l->out[0], 1u << axis, &a->result);
}

static ig_status make_buffers(const lowering *l, sort_args *a)
{
    if (a->n <= (int64_t)ROOM) return IG_OK;
    if (a->n > UINT32_MAX)
        return ig_fail(IG_ELIMIT, "%s: rows of more than 2^32 - 1 elements", l->name);
    int64_t fit = MAX_BUFFER_BYTES / (24 * a->n),
            rows = lower_product(&l->in[0].s, 0, l->in[0].s.ndim) / a->n;
    a->n_buffers = fit < 1 ? 1 : fit > MAX_BUFFERS ? MAX_BUFFERS : fit;
    if (rows < a->n_buffers) a->n_buffers = rows > 0 ? rows : 1;
    a->buffers = step_mem_get(l->mem, (size_t)(a->n_buffers * a->n * 24));
    return a->buffers ? IG_OK : lower_no_memory();
}

ig_status lower_sort(const lowering *l, step *ret_step)
{
    sort_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, l->w->node->i[0], a));
    *ret_step = (step){.run = sort_run, .blocks = sort_blocks, .args = a, .label = "sort"};
    return make_buffers(l, a);
}

ig_status lower_topk(const lowering *l, step *ret_step)
{
    sort_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, l->w->node->i[1], a));
    *ret_step = (step){.run = insert_run, .blocks = insert_blocks, .args = a, .label = "top k"};
    if (a->k <= INSERT_MAX) return IG_OK;
    ret_step->run = sort_run;
    ret_step->blocks = sort_blocks;
    return make_buffers(l, a);
}
