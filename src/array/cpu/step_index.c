/* step_index.c: reading and writing by index: take, take_along_axis, put_rows, slice_update. An
 * index outside reads NaN (or 0) and writes nothing. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/typed.h"

/* --- take */

typedef struct take_args {
    const walk *outer; /* axes before the taken one */
    const walk *inner; /* axes behind it, relative */
    const walk *indices;
    char *out;
    count n_outer, n_indices, limit; /* limit: extent of the taken axis */
    int64_t n_inner, by;             /* by: bytes from one index to the next */
    uint8_t index_dtype;
    _Alignas(8) char missing[8]; /* element for an index outside */
} take_args;

static int64_t take_blocks(const void *args, const run_ctx *r)
{
    const take_args *a = args;
    return rows_blocks(count_now(a->n_outer, r) * count_now(a->n_indices, r), a->n_inner,
                       r->n_workers);
}

/* The index of row i, counted from the end if negative; -1 when outside. */
static int64_t index_at(const walk *indices, ig_dtype t, int64_t i, int64_t limit)
{
    int64_t x = lower_index(walk_at(indices, i), t);
    if (x < 0) x += limit;
    return x >= 0 && x < limit ? x : -1;
}

static void take_run(const void *args, const run_ctx *r, int64_t block)
{
    const take_args *a = args;
    int64_t n = count_now(a->n_indices, r), limit = count_now(a->limit, r), size = a->inner->size;
    span s = rows_span(count_now(a->n_outer, r) * n, a->n_inner, r->n_workers, block);
    for (int64_t i = s.first; i < s.end; i++) {
        char *y = a->out + i * a->n_inner * size;
        int64_t x = index_at(a->indices, (ig_dtype)a->index_dtype, i % n, limit);
        if (x < 0)
            walk_fill(y, a->missing, (size_t)size, a->n_inner);
        else
            walk_read_at(a->inner, walk_at(a->outer, i / n) + x * a->by, 0, a->n_inner, y);
    }
}

/* NaN of a float type, else 0. */
static void set_missing(const kernels *k, ig_dtype t, char *ret_missing)
{
    float nan32 = NAN;
    double nan64 = NAN;
    if (typed_is_f32(t)) lower_store_f32(k, ret_missing, &nan32, t, 1);
    if (t == IG_F64) memcpy(ret_missing, &nan64, sizeof nan64);
}

ig_status lower_take(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *indices = &l->in[1];
    int axis = (int)l->w->node->i[0], behind = x->s.ndim - axis - 1;
    size_t size = ig_dtype_size(x->s.dtype);
    take_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (size > 8) return lower_bad_dtype(l, x->s.dtype);
    a->out = l->out[0].ptr;
    a->outer = walk_new(l->mem, x->ptr, size, axis, x->s.dim, x->stride);
    a->inner = walk_new(l->mem, x->ptr, size, behind, x->s.dim + axis + 1, x->stride + axis + 1);
    a->indices = walk_operand(l->mem, indices);
    if (!a->outer || !a->inner || !a->indices) return lower_no_memory();
    a->n_outer = lower_count(&x->s, 0, axis);
    a->n_indices = lower_count(&indices->s, 0, indices->s.ndim);
    a->limit = lower_count(&x->s, axis, axis + 1);
    a->n_inner = lower_product(&x->s, axis + 1, x->s.ndim);
    a->by = x->stride[axis] * (int64_t)size;
    a->index_dtype = (uint8_t)indices->s.dtype;
    set_missing(l->k, x->s.dtype, a->missing);
    *ret_step = (step){.run = take_run, .blocks = take_blocks, .args = a, .label = "take"};
    return IG_OK;
}

/* --- take_along_axis */

typedef struct along_args {
    const walk *base; /* the array over the indices' dims, its axis standing still */
    const walk *indices;
    char *out;
    count n, limit;
    int64_t by;
    uint8_t index_dtype;
    _Alignas(8) char missing[8];
} along_args;

static int64_t along_blocks(const void *args, const run_ctx *r)
{
    const along_args *a = args;
    return rows_blocks(count_now(a->n, r), 8, r->n_workers);
}

static void along_run(const void *args, const run_ctx *r, int64_t block)
{
    const along_args *a = args;
    int64_t limit = count_now(a->limit, r), size = a->base->size;
    span s = rows_span(count_now(a->n, r), 8, r->n_workers, block);
    for (int64_t i = s.first; i < s.end; i++) {
        int64_t x = index_at(a->indices, (ig_dtype)a->index_dtype, i, limit);
        memcpy(a->out + i * size, x < 0 ? a->missing : walk_at(a->base, i) + x * a->by,
               (size_t)size);
    }
}

ig_status lower_take_along(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *indices = &l->in[1];
    int axis = (int)l->w->node->i[0];
    size_t size = ig_dtype_size(x->s.dtype);
    int64_t stride[IG_MAX_NDIM];
    along_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (size > 8) return lower_bad_dtype(l, x->s.dtype);
    for (int i = 0; i < x->s.ndim; i++) stride[i] = i == axis ? 0 : x->stride[i];
    a->base = walk_new(l->mem, x->ptr, size, x->s.ndim, indices->s.dim, stride);
    a->indices = walk_operand(l->mem, indices);
    if (!a->base || !a->indices) return lower_no_memory();
    a->out = l->out[0].ptr;
    a->n = lower_count(&l->out[0].s, 0, l->out[0].s.ndim);
    a->limit = lower_count(&x->s, axis, axis + 1);
    a->by = x->stride[axis] * (int64_t)size;
    a->index_dtype = (uint8_t)indices->s.dtype;
    set_missing(l->k, x->s.dtype, a->missing);
    *ret_step =
        (step){.run = along_run, .blocks = along_blocks, .args = a, .label = "take along axis"};
    return IG_OK;
}

/* --- put_rows: a block owns rows of the result: it copies them, then writes what falls into them,
 * updates ascending */

typedef struct put_args {
    const walk *from; /* the array as it was; NULL: in place */
    const walk *indices, *updates;
    char *out;
    count rows, n; /* rows of the result, updates */
    int64_t n_inner;
    uint8_t index_dtype;
} put_args;

static int64_t put_blocks(const void *args, const run_ctx *r)
{
    const put_args *a = args;
    int64_t rows = count_now(a->rows, r);
    if (!a->from && count_now(a->n, r) * a->n_inner < BLOCK_COST) return rows > 0;
    return rows_blocks(rows, a->n_inner, r->n_workers);
}

static void put_run(const void *args, const run_ctx *r, int64_t block)
{
    const put_args *a = args;
    int64_t rows = count_now(a->rows, r), n = count_now(a->n, r), size = a->updates->size;
    bool alone = put_blocks(a, r) == 1;
    span s = alone ? (span){0, rows} : rows_span(rows, a->n_inner, r->n_workers, block);
    if (a->from)
        walk_read(a->from, s.first * a->n_inner, (s.end - s.first) * a->n_inner,
                  a->out + s.first * a->n_inner * size);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = index_at(a->indices, (ig_dtype)a->index_dtype, i, rows);
        if (x < s.first || x >= s.end) continue;
        walk_read(a->updates, i * a->n_inner, a->n_inner, a->out + x * a->n_inner * size);
    }
}

ig_status lower_put_rows(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *indices = &l->in[1];
    put_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    a->out = l->out[0].ptr;
    a->indices = walk_operand(l->mem, indices);
    a->updates = walk_operand(l->mem, &l->in[2]);
    if (!a->indices || !a->updates) return lower_no_memory();
    if (x->ptr != a->out && !(a->from = walk_operand(l->mem, x))) return lower_no_memory();
    a->rows = lower_count(&x->s, 0, 1);
    a->n = lower_count(&indices->s, 0, indices->s.ndim);
    a->n_inner = lower_product(&x->s, 1, x->s.ndim);
    a->index_dtype = (uint8_t)indices->s.dtype;
    *ret_step = (step){.run = put_run, .blocks = put_blocks, .args = a, .label = "put rows"};
    return IG_OK;
}

/* --- slice_update: the same, by rows along axis 0 */

#define PIECE 4096 /* elements on their way from an update to a row that is not contiguous */

typedef struct update_args {
    const walk *from; /* NULL: in place */
    const walk *updates;
    const walk *box; /* the box's other axes in a row of the result, relative */
    char *out;
    count rows, n;        /* rows of the result; of the box */
    int64_t start, step;  /* row j of the box is row start + j * step of the result */
    int64_t row, box_row; /* elements of a row of the result; of the box */
    int64_t first;        /* bytes from a row's start to the box */
} update_args;

/* Blocks are rows of the result where these are copied, else rows of the box. */
static int64_t update_units(const update_args *a, const run_ctx *r)
{
    return count_now(a->from ? a->rows : a->n, r);
}

static int64_t update_blocks(const void *args, const run_ctx *r)
{
    const update_args *a = args;
    return rows_blocks(update_units(a, r), a->from ? a->row : a->box_row, r->n_workers);
}

static void write_box_row(const update_args *a, int64_t j, char *tmp)
{
    char *y = a->out + (a->start + j * a->step) * a->row * a->box->size + a->first;
    for (int64_t at = 0; at < a->box_row; at += PIECE) {
        int64_t n = a->box_row - at < PIECE ? a->box_row - at : PIECE;
        walk_read(a->updates, j * a->box_row + at, n, tmp);
        walk_write_at(a->box, y, at, n, tmp);
    }
}

static void update_run(const void *args, const run_ctx *r, int64_t block)
{
    const update_args *a = args;
    span s = rows_span(update_units(a, r), a->from ? a->row : a->box_row, r->n_workers, block);
    int64_t n = count_now(a->n, r);
    if (a->from)
        walk_read(a->from, s.first * a->row, (s.end - s.first) * a->row,
                  a->out + s.first * a->row * a->from->size);
    for (int64_t j = a->from ? 0 : s.first; j < (a->from ? n : s.end); j++) {
        int64_t row = a->start + j * a->step;
        if (!a->from || (row >= s.first && row < s.end)) write_box_row(a, j, step_scratch(r));
    }
}

ig_status lower_slice_update(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *u = &l->in[1], *out = &l->out[0];
    const int64_t *i = l->w->node->i; /* n, start, n, stop, n, step */
    int n = x->s.ndim;
    const int64_t *start = i + 1, *by = i + 3 + 2 * n;
    size_t size = ig_dtype_size(x->s.dtype);
    int64_t stride[IG_MAX_NDIM];
    update_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (size > 8) return lower_bad_dtype(l, x->s.dtype);
    for (int d = 1; d < n; d++) {
        stride[d] = out->stride[d] * by[d];
        a->first += start[d] * out->stride[d] * (int64_t)size;
    }
    a->out = out->ptr;
    a->updates = walk_operand(l->mem, u);
    a->box = walk_new(l->mem, out->ptr, size, n > 1 ? n - 1 : 0, u->s.dim + 1, stride + 1);
    if (!a->updates || !a->box) return lower_no_memory();
    if (x->ptr != a->out && !(a->from = walk_operand(l->mem, x))) return lower_no_memory();
    a->rows = n ? lower_count(&x->s, 0, 1) : (count){.per = 1};
    a->n = n ? lower_count(&u->s, 0, 1) : (count){.per = 1};
    a->start = n ? start[0] : 0;
    a->step = n ? by[0] : 1;
    a->row = lower_product(&x->s, 1, n);
    a->box_row = lower_product(&u->s, 1, n);
    *ret_step =
        (step){.run = update_run, .blocks = update_blocks, .args = a, .label = "slice update"};
    return IG_OK;
}
