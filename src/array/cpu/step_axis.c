/* step_axis.c: along one axis (logsumexp: several): softmax, logsumexp, argmax and argmin, cumsum.
 *
 * A row of contiguous float32 goes to the kernel slot as it lies. Any other row is walked in blocks
 * of sum order, brought to scratch and computed there in the same order, so its bits are those of
 * the same values lying contiguously. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/order.h"
#include "array/cpu/ref/reduce.h"

typedef struct axis_args {
    const walk *kept, *axis;         /* the input: by rows, and along a row (relative) */
    const walk *out_kept, *out_axis; /* the result likewise, where it has the axis */
    char *out;
    count rows;
    count n_axis; /* elements of a row */
    const kernels *k;
    typed_fn cast; /* elements to the computing type; NULL: they are */
    const order_fns *order;
    uint16_t op;
    uint8_t in_dtype, wide, out_dtype; /* wide: computing type */
    bool direct, reverse, inclusive;
} axis_args;

static int64_t axis_blocks(const void *args, const run_ctx *r)
{
    const axis_args *a = args;
    return rows_blocks(count_now(a->rows, r), 8 * count_now(a->n_axis, r), r->n_workers);
}

static span axis_span(const axis_args *a, const run_ctx *r, int64_t block)
{
    return rows_span(count_now(a->rows, r), 8 * count_now(a->n_axis, r), r->n_workers, block);
}

/* Scratch: raw elements, f32 of 16-bit ones, elements in the computing type. */
typedef struct stage {
    char *raw, *half, *wide;
} stage;

static stage stage_in(char *scratch)
{
    return (stage){scratch, scratch + SUM_BLOCK * 8, scratch + SUM_BLOCK * 16};
}

/* Elements [i, i + n) of the row at `base` in the computing type, in s->wide. */
static void *load(const axis_args *a, const char *base, int64_t i, int64_t n, const stage *s)
{
    bool half = a->in_dtype == IG_F16 || a->in_dtype == IG_BF16;
    walk_read_at(a->axis, base, i, n, half || a->cast ? s->raw : s->wide);
    const void *p = s->raw;
    if (half)
        p = lower_row_f32(a->k, (float *)(a->cast ? s->half : s->wide), s->raw,
                          (ig_dtype)a->in_dtype, (size_t)n);
    if (a->cast) a->cast(s->wide, p, NULL, NULL, (size_t)n);
    return s->wide;
}

/* Stores n results in the computing type as elements [i, i + n) of the result's row at `base`. */
static void store(const axis_args *a, char *base, int64_t i, int64_t n, const void *x,
                  const stage *s)
{
    if (a->out_dtype == IG_F16 || a->out_dtype == IG_BF16) {
        lower_store_f32(a->k, s->raw, x, (ig_dtype)a->out_dtype, (size_t)n);
        x = s->raw;
    }
    walk_write_at(a->out_axis, base, i, n, x);
}

/* --- softmax, logsumexp */

/* exp(x - m) of a block, in place. */
static void exp_block(const axis_args *a, void *x_, int64_t n, double m)
{
    if (a->wide == IG_F64) {
        double *x = x_;
        for (int64_t i = 0; i < n; i++) x[i] = exp(x[i] - m);
    } else {
        float *x = x_, top = (float)m;
        for (int64_t i = 0; i < n; i++) x[i] = x[i] - top;
        a->k->ew1[OP_exp](x, x, (size_t)n);
    }
}

static double max_block(const axis_args *a, const void *x, int64_t n)
{
    if (a->wide == IG_F32) return (double)a->k->max(x, (size_t)n);
    const double *d = x;
    double m = d[0];
    for (int64_t i = 1; i < n; i++) m = m != m ? m : m > d[i] ? m : d[i];
    return m;
}

static double sum_block(const axis_args *a, const void *x, int64_t n)
{
    if (a->wide == IG_F32) return (double)a->k->sum(x, (size_t)n);
    const double *d = x;
    double partial[SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++) partial[i % SUM_LANES] += d[i];
    return reduce_fold(partial);
}

/* The largest element, and the sum of exp(x - largest); both are exact in the computing type. */
static double row_sum(const axis_args *a, const char *base, int64_t n, const stage *s,
                      double *ret_max)
{
    double m = -INFINITY, total = 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        int64_t len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
        double b = max_block(a, load(a, base, i, len, s), len);
        m = m != m ? m : m > b ? m : b;
    }
    *ret_max = m;
    if (m == -INFINITY) return 0;
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        int64_t len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
        void *x = load(a, base, i, len, s);
        exp_block(a, x, len, m);
        total += sum_block(a, x, len);
        if (a->wide == IG_F32) total = (double)(float)total; /* a sum of two floats, rounded once */
    }
    return total;
}

static void softmax_row(const axis_args *a, int64_t row, int64_t n, const stage *s)
{
    const char *base = walk_at(a->kept, row);
    char *out = walk_at(a->out_kept, row);
    double m, total = row_sum(a, base, n, s, &m);
    for (int64_t i = 0; i < n; i += SUM_BLOCK) {
        int64_t len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
        void *x = load(a, base, i, len, s);
        if (m == -INFINITY)
            memset(x, 0, (size_t)len * 8);
        else
            exp_block(a, x, len, m);
        float *f = x, total_f = (float)total;
        double *d = x;
        for (int64_t j = 0; m != -INFINITY && a->wide == IG_F32 && j < len; j++)
            f[j] = f[j] / total_f;
        for (int64_t j = 0; m != -INFINITY && a->wide == IG_F64 && j < len; j++)
            d[j] = d[j] / total;
        store(a, out, i, len, x, s);
    }
}

static void softmax_run(const void *args, const run_ctx *r, int64_t block)
{
    const axis_args *a = args;
    span rows = axis_span(a, r, block);
    int64_t n = count_now(a->n_axis, r);
    stage s = stage_in(step_scratch(r));
    for (int64_t i = rows.first; i < rows.end; i++) {
        if (a->direct)
            a->k->softmax((float *)walk_at(a->out_kept, i), (const float *)walk_at(a->kept, i),
                          (size_t)n);
        else
            softmax_row(a, i, n, &s);
    }
}

static double logsumexp_row(const axis_args *a, int64_t row, int64_t n, const stage *s)
{
    double m, total = row_sum(a, walk_at(a->kept, row), n, s, &m);
    if (m == -INFINITY || m == INFINITY) return m;
    if (a->wide == IG_F64) return m + log(total);
    float t = (float)total;
    a->k->ew1[OP_log](&t, &t, 1);
    return (double)((float)m + t);
}

static void logsumexp_run(const void *args, const run_ctx *r, int64_t block)
{
    const axis_args *a = args;
    span rows = axis_span(a, r, block);
    int64_t n = count_now(a->n_axis, r), size = (int64_t)ig_dtype_size((ig_dtype)a->out_dtype);
    stage s = stage_in(step_scratch(r));
    for (int64_t i = rows.first; i < rows.end; i++) {
        double v = a->direct
                       ? (double)a->k->logsumexp((const float *)walk_at(a->kept, i), (size_t)n)
                       : logsumexp_row(a, i, n, &s);
        float f = (float)v;
        if (a->out_dtype == IG_F64)
            memcpy(a->out + i * size, &v, sizeof v);
        else
            lower_store_f32(a->k, a->out + i * size, &f, (ig_dtype)a->out_dtype, 1);
    }
}

/* --- argmax, argmin */

static void arg_run(const void *args, const run_ctx *r, int64_t block)
{
    const axis_args *a = args;
    span rows = axis_span(a, r, block);
    int64_t n = count_now(a->n_axis, r);
    stage s = stage_in(step_scratch(r));
    for (int64_t row = rows.first; row < rows.end; row++) {
        const char *base = walk_at(a->kept, row);
        extreme e = {.index = -1};
        if (a->direct) e.index = a->k->argmax((const float *)base, (size_t)n);
        for (int64_t i = 0; !a->direct && i < n; i += SUM_BLOCK) {
            int64_t len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
            (a->op == OP_argmax ? a->order->largest
                                : a->order->smallest)(&e, load(a, base, i, len, &s), len, i);
        }
        ((uint32_t *)a->out)[row] = (uint32_t)e.index;
    }
}

/* --- cumsum */

static void scan_run(const void *args, const run_ctx *r, int64_t block)
{
    const axis_args *a = args;
    span rows = axis_span(a, r, block);
    int64_t n = count_now(a->n_axis, r), n_blocks = (n + SUM_BLOCK - 1) / SUM_BLOCK;
    stage s = stage_in(step_scratch(r));
    for (int64_t row = rows.first; row < rows.end; row++) {
        _Alignas(8) char acc[8] = {0};
        for (int64_t b = 0; b < n_blocks; b++) {
            int64_t i = (a->reverse ? n_blocks - 1 - b : b) * SUM_BLOCK,
                    len = n - i < SUM_BLOCK ? n - i : SUM_BLOCK;
            void *x = load(a, walk_at(a->kept, row), i, len, &s);
            a->order->scan(x, acc, len, a->reverse, a->inclusive);
            store(a, walk_at(a->out_kept, row), i, len, x, &s);
        }
    }
}

/* --- lowering */

/* wide: the type to compute in. mask: the axes of a row. */
static ig_status fill(const lowering *l, uint32_t mask, ig_dtype wide, bool keeps_axis,
                      axis_args *a)
{
    const operand *in = &l->in[0], *out = &l->out[0];
    ig_dtype from = typed_register(in->s.dtype);
    axes split, result;
    *a = (axis_args){
        .out = out->ptr, .k = l->k, .op = l->w->node->op, .in_dtype = (uint8_t)in->s.dtype};
    a->wide = (uint8_t)wide;
    a->out_dtype = (uint8_t)out->s.dtype;
    a->cast = from == wide ? NULL : typed_cast(from, wide, false);
    a->order = order_of(wide);
    if (!a->order || (from != wide && !a->cast)) return lower_bad_dtype(l, in->s.dtype);
    TRY(lower_axes(l, in, mask, &split));
    a->kept = split.kept;
    a->axis = split.along;
    a->rows = split.n_kept;
    a->n_axis = split.n_along;
    if (!keeps_axis) return IG_OK;
    TRY(lower_axes(l, out, mask, &result));
    a->out_kept = result.kept;
    a->out_axis = result.along;
    return IG_OK;
}

static bool is_direct(const axis_args *a)
{
    return a->in_dtype == IG_F32 && a->wide == IG_F32 && walk_is_contiguous(a->axis);
}

static ig_dtype float_of(const lowering *l)
{
    return l->out[0].s.dtype == IG_F64 ? IG_F64 : IG_F32;
}

ig_status lower_softmax(const lowering *l, step *ret_step)
{
    axis_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, 1u << l->w->node->i[0], float_of(l), true, a));
    a->direct = is_direct(a) && a->out_dtype == IG_F32 && walk_is_contiguous(a->out_axis);
    *ret_step = (step){.run = softmax_run, .blocks = axis_blocks, .args = a, .label = "softmax"};
    return IG_OK;
}

ig_status lower_logsumexp(const lowering *l, step *ret_step)
{
    axis_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, lower_axes_mask(l), float_of(l), false, a));
    a->direct = is_direct(a);
    *ret_step =
        (step){.run = logsumexp_run, .blocks = axis_blocks, .args = a, .label = "logsumexp"};
    return IG_OK;
}

ig_status lower_arg_reduce(const lowering *l, step *ret_step)
{
    axis_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, 1u << l->w->node->i[0], typed_register(l->in[0].s.dtype), false, a));
    a->direct = is_direct(a) && a->op == OP_argmax;
    *ret_step =
        (step){.run = arg_run, .blocks = axis_blocks, .args = a, .label = "index of the extreme"};
    return IG_OK;
}

ig_status lower_scan(const lowering *l, step *ret_step)
{
    const int64_t *i = l->w->node->i; /* axis, reverse, inclusive */
    axis_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, 1u << i[0], typed_register(l->out[0].s.dtype), true, a));
    a->reverse = i[1] != 0;
    a->inclusive = i[2] != 0;
    *ret_step = (step){.run = scan_run, .blocks = axis_blocks, .args = a, .label = "cumsum"};
    return IG_OK;
}
