/* step_reduce.c: sum, mean, prod, max, min, all, any over any axes.
 *
 * The reduced elements are taken in row-major order of the reduced axes, whatever the strides, 4096
 * at a time (a block of sum order). Two ways to the same bits: an output at a time, its elements
 * gathered where they are not contiguous; or, where the kept elements lie side by side, up to 64
 * outputs at a time, row after row, with the 64 partial sums of each held as rows. */
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/reduce.h"
#include "array/cpu/walk.h"

#define COLUMNS 64

typedef struct reduce_args {
    const walk *kept,
        *reduced; /* the input twice: by outputs, and by what one output reduces (relative) */
    char *out;
    count n_out, n_reduced;
    const kernels *k;
    reduce_fn reduce;
    typed_fn cast;    /* elements to the accumulator's type; NULL: they are */
    typed_fn combine; /* two accumulators, for columns; NULL with combine_f32 */
    ew2_fn combine_f32;
    uint16_t op;
    uint8_t in_dtype, acc_dtype, out_dtype;
    bool mean, columns;
} reduce_args;

/* Elements to the accumulator's type, through tmp if need be. */
static const void *widen(const reduce_args *a, const char *x, size_t n, char *tmp)
{
    const void *p = x;
    if (a->in_dtype == IG_F16 || a->in_dtype == IG_BF16)
        p = lower_row_f32(a->k, (float *)tmp, x, (ig_dtype)a->in_dtype, n);
    if (!a->cast) return p;
    char *y = tmp + SUM_BLOCK * 8;
    a->cast(y, p, NULL, NULL, n);
    return y;
}

static void take_block(const reduce_args *a, void *acc, const void *x, size_t n)
{
    if (a->acc_dtype == IG_F32 && a->op == OP_sum) {
        *(float *)acc += a->k->sum(x, n);
    } else if (a->acc_dtype == IG_F32 && a->op == OP_max) {
        float m = a->k->max(x, n);
        a->reduce(acc, &m, 1);
    } else {
        a->reduce(acc, x, n);
    }
}

/* The accumulator to the output's type at y. */
static void finish(const reduce_args *a, char *acc, int64_t n, char *y)
{
    if (a->acc_dtype == IG_F32) {
        float v = *(float *)acc;
        if (a->mean) v = v / (float)n;
        if (a->op == OP_max || a->op == OP_min)
            v += 0.0f; /* no -0: which zero came first must not show */
        lower_store_f32(a->k, y, &v, (ig_dtype)a->out_dtype, 1);
    } else if (a->acc_dtype == IG_F64) {
        double v = *(double *)acc;
        if (a->mean) v = v / (double)n;
        if (a->op == OP_max || a->op == OP_min) v += 0.0;
        memcpy(y, &v, sizeof v);
    } else {
        memcpy(y, acc, ig_dtype_size((ig_dtype)a->acc_dtype));
    }
}

static void reduce_row(const reduce_args *a, int64_t o, int64_t n, char *scratch)
{
    _Alignas(8) char acc[8];
    const char *base = walk_at(a->kept, o);
    char *gathered = scratch, *tmp = scratch + SUM_BLOCK * 8;
    size_t size = (size_t)a->reduced->size;
    reduce_start((op_code)a->op, (ig_dtype)a->acc_dtype, acc);
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        int64_t len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
        const char *x = base + i * (int64_t)size;
        if (!walk_is_contiguous(a->reduced)) {
            walk_read_at(a->reduced, base, i, len, gathered);
            x = gathered;
        }
        take_block(a, acc, widen(a, x, (size_t)len, tmp), (size_t)len);
    }
    finish(a, acc, n, a->out + o * (int64_t)ig_dtype_size((ig_dtype)a->out_dtype));
}

static void combine(const reduce_args *a, char *acc, const char *x, size_t n)
{
    if (a->combine_f32)
        a->combine_f32((float *)acc, (const float *)acc, (const float *)x, n);
    else
        a->combine(acc, acc, x, NULL, n);
}

/* n outputs side by side, the first at `base`; acc[n] in the accumulator's type. lanes: SUM_LANES
 * rows for sums of floats, else one. */
static void reduce_columns(const reduce_args *a, const char *base, int64_t n_red, size_t n,
                           char *acc, char *scratch)
{
    size_t size = ig_dtype_size((ig_dtype)a->acc_dtype), row = n * size;
    bool sum_order = a->op == OP_sum && (a->acc_dtype == IG_F32 || a->acc_dtype == IG_F64);
    int64_t lanes = sum_order ? SUM_LANES : 1;
    char *partial = scratch, *tmp = scratch + SUM_LANES * COLUMNS * 8;
    for (size_t c = 0; c < n; c++)
        reduce_start((op_code)a->op, (ig_dtype)a->acc_dtype, acc + c * size);
    for (int64_t block = 0; block < n_red; block += SUM_BLOCK) {
        int64_t end = n_red - block < SUM_BLOCK ? n_red : block + SUM_BLOCK;
        if (sum_order) memset(partial, 0, SUM_LANES * row);
        for (int64_t i = block; i < end; i++) {
            const char *x = base + (walk_at(a->reduced, i) - a->reduced->ptr);
            combine(a, sum_order ? partial + (size_t)(i % lanes) * row : acc, widen(a, x, n, tmp),
                    n);
        }
        if (!sum_order) continue;
        for (size_t half = SUM_LANES / 2; half; half /= 2)
            combine(a, partial, partial + half * row, half * n);
        combine(a, acc, partial, n);
    }
}

static void columns_run(const reduce_args *a, span s, int64_t n_red, char *scratch)
{
    _Alignas(64) char acc[COLUMNS * 8];
    size_t size = ig_dtype_size((ig_dtype)a->acc_dtype),
           out = ig_dtype_size((ig_dtype)a->out_dtype);
    int64_t run = walk_run(a->kept);
    for (int64_t o = s.first; o < s.end;) {
        int64_t n = s.end - o < COLUMNS ? s.end - o : COLUMNS;
        if (a->kept->n > 1 && run - o % run < n) n = run - o % run;
        reduce_columns(a, walk_at(a->kept, o), n_red, (size_t)n, acc, scratch);
        for (int64_t c = 0; c < n; c++, o++)
            finish(a, acc + (size_t)c * size, n_red, a->out + o * (int64_t)out);
    }
}

static int64_t reduce_blocks(const void *args, const run_ctx *r)
{
    const reduce_args *a = args;
    int64_t per = a->columns ? COLUMNS : 1, n = (count_now(a->n_out, r) + per - 1) / per;
    return rows_blocks(n, per * count_now(a->n_reduced, r), r->n_workers);
}

static void reduce_run(const void *args, const run_ctx *r, int64_t block)
{
    const reduce_args *a = args;
    int64_t n_red = count_now(a->n_reduced, r), n_out = count_now(a->n_out, r),
            per = a->columns ? COLUMNS : 1;
    span s = rows_span((n_out + per - 1) / per, per * n_red, r->n_workers, block);
    s = (span){s.first * per, s.end * per < n_out ? s.end * per : n_out};
    if (a->columns) {
        columns_run(a, s, n_red, step_scratch(r));
        return;
    }
    for (int64_t o = s.first; o < s.end; o++) reduce_row(a, o, n_red, step_scratch(r));
}

/* What the elements are added up in: float sums of 16-bit floats in f32, all and any as bool, else
 * the result's type. */
static ig_dtype accumulator(op_code op, ig_dtype out)
{
    return op == OP_all || op == OP_any ? IG_BOOL : typed_register(out);
}

static ig_status pick_loops(const lowering *l, reduce_args *a)
{
    static const op_code combiners[N_OPS] = {
        [OP_sum] = OP_add,     [OP_prod] = OP_multiply,   [OP_max] = OP_maximum,
        [OP_min] = OP_minimum, [OP_all] = OP_bitwise_and, [OP_any] = OP_bitwise_or};
    op_code op = (op_code)l->w->node->op;
    a->mean = op == OP_mean;
    a->op = a->mean ? OP_sum : op;
    a->in_dtype = (uint8_t)l->in[0].s.dtype;
    a->out_dtype = (uint8_t)l->out[0].s.dtype;
    ig_dtype acc = accumulator(op, l->out[0].s.dtype), in = typed_register(l->in[0].s.dtype);
    a->acc_dtype = (uint8_t)acc;
    a->reduce = reduce_op((op_code)a->op, acc);
    a->cast = in == acc ? NULL : typed_cast(in, acc, false);
    if (!a->reduce || (in != acc && !a->cast)) return lower_bad_dtype(l, l->in[0].s.dtype);
    if (acc == IG_F32) a->combine_f32 = l->k->ew2[combiners[a->op]];
    if (!a->combine_f32) a->combine = typed_op(combiners[a->op], acc);
    return IG_OK;
}

static ig_status split_axes(const lowering *l, reduce_args *a)
{
    axes x;
    TRY(lower_axes(l, &l->in[0], lower_axes_mask(l), &x));
    a->kept = x.kept;
    a->reduced = x.along;
    a->n_out = x.n_kept;
    a->n_reduced = x.n_along;
    bool side_by_side = walk_step(x.kept) == x.kept->size &&
                        (x.kept->n == 1 ? x.n_kept_axes > 0 : walk_run(x.kept) >= 4);
    a->columns = side_by_side && !walk_is_contiguous(x.along);
    return IG_OK;
}

ig_status lower_reduce(const lowering *l, step *ret_step)
{
    reduce_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    *a = (reduce_args){.out = l->out[0].ptr, .k = l->k};
    TRY(pick_loops(l, a));
    TRY(split_axes(l, a));
    *ret_step = (step){.run = reduce_run, .blocks = reduce_blocks, .args = a, .label = "reduce"};
    return IG_OK;
}
