/* step_norm.c: rms_norm and layer_norm over the last axis, and rms_norm whose rows end as int8. */
#include <math.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/reduce.h"

typedef struct norm_args {
    rows_in x;
    count rows;
    int64_t n; /* columns */
    char *out;
    const char *w, *b; /* NULL: absent */
    const kernels *k;
    double eps;
    int32_t group;       /* rms_norm to int8 rows; else 0 */
    uint8_t dtype, size; /* of x, w, b and the result */
    bool layer;
} norm_args;

static int64_t norm_blocks(const void *args, const run_ctx *r)
{
    const norm_args *a = args;
    return rows_blocks(count_now(a->rows, r), 3 * a->n, r->n_workers);
}

static span norm_span(const norm_args *a, const run_ctx *r, int64_t block)
{
    return rows_span(count_now(a->rows, r), 3 * a->n, r->n_workers, block);
}

/* Weights or biases as f32 at y, 4 bytes a column; NULL stays NULL. */
static const float *parameter(const norm_args *a, const char *p, char *y)
{
    return p ? lower_row_f32(a->k, (float *)y, p, (ig_dtype)a->dtype, (size_t)a->n) : NULL;
}

static void norm_run(const void *args, const run_ctx *r, int64_t block)
{
    const norm_args *a = args;
    char *tmp = step_scratch(r), *end = tmp + ROW_TMP_BYTES;
    const float *w = parameter(a, a->w, end), *b = parameter(a, a->b, end + 4 * ROW_MAX);
    span s = norm_span(a, r, block);
    for (int64_t i = s.first; i < s.end; i++) {
        const float *x = rows_f32(&a->x, a->k, i, a->n, tmp);
        char *out = a->out + i * a->n * a->size;
        float *y = (float *)(a->dtype == IG_F32 ? out : tmp);
        if (a->layer)
            a->k->layer_norm(y, x, w, b, (float)a->eps, (size_t)a->n);
        else
            a->k->rms_norm(y, x, w, (float)a->eps, (size_t)a->n);
        if (a->dtype != IG_F32) lower_store_f32(a->k, out, y, (ig_dtype)a->dtype, (size_t)a->n);
    }
}
_Static_assert(ROW_TMP_BYTES + 8 * ROW_MAX <= STEP_SCRATCH_BYTES, "a row, weights and biases fit");

static void norm_rows8_run(const void *args, const run_ctx *r, int64_t block)
{
    const norm_args *a = args;
    float *y = (float *)step_scratch(r);
    size_t n = (size_t)a->n, bytes = rows8_bytes(n, (size_t)a->group);
    span s = norm_span(a, r, block);
    for (int64_t i = s.first; i < s.end; i++) {
        const float *x = rows_f32(&a->x, a->k, i, a->n, (char *)y);
        a->k->rms_norm(y, x, (const float *)a->w, (float)a->eps, n);
        a->k->rows8((uint8_t *)a->out + (size_t)i * bytes, y, n, a->group);
    }
}

/* --- float64: the same orders in double */

/* Sum of x - mean, or of its squares. */
static double sum_f64(const double *x, int64_t n, double mean, bool squares)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        double partial[SUM_LANES] = {0};
        for (int64_t i = at; i < n && i < at + SUM_BLOCK; i++) {
            double t = x[i] - mean, *p = &partial[i % SUM_LANES];
            *p = squares ? fma(t, t, *p) : *p + t;
        }
        total += reduce_fold(partial);
    }
    return total;
}

static void norm_f64_run(const void *args, const run_ctx *r, int64_t block)
{
    const norm_args *a = args;
    const double *w = (const double *)a->w, *b = (const double *)a->b;
    span s = norm_span(a, r, block);
    for (int64_t i = s.first; i < s.end; i++) {
        const double *x = (const double *)walk_at(a->x.at, i);
        double *y = (double *)a->out + i * a->n, n = (double)a->n;
        double mean = a->layer ? sum_f64(x, a->n, 0, false) / n : 0;
        double inv = 1 / sqrt(sum_f64(x, a->n, mean, true) / n + a->eps);
        for (int64_t c = 0; c < a->n; c++)
            y[c] = fma((x[c] - mean) * inv, w ? w[c] : 1, b ? b[c] : -0.0);
    }
}

/* --- lowering */

/* Inputs of the norm are x, weight and, for layer_norm, bias; `norm` has eps. */
static ig_status fill(const lowering *l, const ig_node *norm, norm_args *a)
{
    const operand *x = &l->in[0];
    bool w = l->w->n_in > 1 && !ig_is_empty(l->w->in[1]),
         b = l->w->n_in > 2 && !ig_is_empty(l->w->in[2]);
    *a = (norm_args){
        .out = l->out[0].ptr, .k = l->k, .eps = norm->f[0], .n = x->s.dim[x->s.ndim - 1]};
    a->dtype = (uint8_t)x->s.dtype;
    a->size = (uint8_t)ig_dtype_size(x->s.dtype);
    a->layer = norm->op == OP_layer_norm;
    a->rows = lower_count(&x->s, 0, x->s.ndim - 1);
    if (w) TRY(lower_need(l, 1, x->s.dtype));
    if (b) TRY(lower_need(l, 2, x->s.dtype));
    a->w = w ? l->in[1].ptr : NULL;
    a->b = b ? l->in[2].ptr : NULL;
    return lower_rows(l, x, &a->x);
}

_Static_assert(WORK_NORM_MAX <= ROW_MAX, "a fused norm's row fits");

ig_status lower_norm(const lowering *l, step *ret_step)
{
    norm_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, l->w->node, a));
    *ret_step = (step){.run = norm_run, .blocks = norm_blocks, .args = a, .label = "norm"};
    if (a->dtype == IG_F64) {
        ret_step->run = norm_f64_run;
        return a->x.by == 8 ? IG_OK : lower_not_contiguous(l, "each row of x");
    }
    if (rows_are_direct(&a->x) || a->n <= ROW_MAX) return IG_OK;
    return ig_fail(
        IG_ELIMIT,
        "%s: rows of %lld elements; other than contiguous float32 ones are limited to %d", l->name,
        (long long)a->n, ROW_MAX);
}

ig_status lower_norm_rows8(const lowering *l, step *ret_step)
{
    norm_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(fill(l, l->w->inner, a));
    a->group = (int32_t)l->w->node->i[0];
    if (a->dtype != IG_F32) return lower_bad_dtype(l, (ig_dtype)a->dtype);
    *ret_step =
        (step){.run = norm_rows8_run, .blocks = norm_blocks, .args = a, .label = "norm, int8 rows"};
    return IG_OK;
}
