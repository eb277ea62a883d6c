/* step_quant.c: group-quantised matrices: MLX's affine encoder, its inverse, rows by index. */
#include <math.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/typed.h"

/* --- quantize */

typedef struct quantize_args {
    rows_in w;
    count rows;
    int64_t n;
    int32_t group, bits;
    uint8_t *codes;
    char *scales, *biases; /* in w's dtype */
    const kernels *k;
} quantize_args;

static int64_t quantize_blocks(const void *args, const run_ctx *r)
{
    const quantize_args *a = args;
    return rows_blocks(count_now(a->rows, r), 4 * a->n, r->n_workers);
}

/* Scale and bias of one group: the end of larger magnitude is exact, ties go to the largest. */
static void fit_group(const float *w, int group, int bits, float *ret_scale, float *ret_bias)
{
    float low = INFINITY, high = -INFINITY, n_bins = (float)((1 << bits) - 1);
    for (int i = 0; i < group; i++) {
        high = high < w[i] ? w[i] : high;
        low = w[i] < low ? w[i] : low;
    }
    bool low_end = fabsf(low) > fabsf(high);
    float scale = (high - low) / n_bins, edge = low_end ? low : high;
    scale = scale < 1e-7f ? 1e-7f : scale;
    scale = low_end ? scale : -scale;
    float q0 = rintf(edge / scale);
    *ret_scale = q0 != 0 ? edge / q0 : scale;
    *ret_bias = q0 != 0 ? edge : 0;
}

/* Codes of one group into a little-endian bit stream of group * bits bits. */
static void encode_group(uint8_t *codes, const float *w, int group, int bits, float scale,
                         float bias)
{
    float n_bins = (float)((1 << bits) - 1);
    uint32_t pending = 0;
    int n_pending = 0;
    for (int i = 0; i < group; i++) {
        float q = rintf((w[i] - bias) / scale);
        q = q > 0 ? q : 0; /* NaN too */
        pending |= (uint32_t)(q < n_bins ? q : n_bins) << n_pending;
        for (n_pending += bits; n_pending >= 8; n_pending -= 8, pending >>= 8)
            *codes++ = (uint8_t)pending;
    }
}

static void quantize_run(const void *args, const run_ctx *r, int64_t block)
{
    const quantize_args *a = args;
    span s = rows_span(count_now(a->rows, r), 4 * a->n, r->n_workers, block);
    int64_t groups = a->n / a->group, group_bytes = a->group * a->bits / 8;
    float *w = (float *)step_scratch(r);
    char *raw = (char *)(w + 128);
    for (int64_t i = s.first * groups; i < s.end * groups; i++) {
        const char *p = walk_at(a->w.at, i / groups) + i % groups * a->group * a->w.by;
        float scale, bias;
        walk_gather(raw, p, a->w.size, a->w.by, a->group);
        const float *x = lower_row_f32(a->k, w, raw, (ig_dtype)a->w.dtype, (size_t)a->group);
        fit_group(x, a->group, a->bits, &scale, &bias);
        encode_group(a->codes + i * group_bytes, x, a->group, a->bits, scale, bias);
        lower_store_f32(a->k, a->scales + i * a->w.size, &scale, (ig_dtype)a->w.dtype, 1);
        lower_store_f32(a->k, a->biases + i * a->w.size, &bias, (ig_dtype)a->w.dtype, 1);
    }
}

ig_status lower_quantize(const lowering *l, step *ret_step)
{
    const operand *w = &l->in[0];
    quantize_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!typed_is_f32(w->s.dtype)) return lower_bad_dtype(l, w->s.dtype);
    *a = (quantize_args){.codes = (uint8_t *)l->out[0].ptr,
                         .scales = l->out[1].ptr,
                         .biases = l->out[2].ptr,
                         .k = l->k};
    a->rows = lower_count(&w->s, 0, w->s.ndim - 1);
    a->n = w->s.dim[w->s.ndim - 1];
    a->group = (int32_t)l->w->node->i[0];
    a->bits = (int32_t)l->w->node->i[1];
    *ret_step =
        (step){.run = quantize_run, .blocks = quantize_blocks, .args = a, .label = "quantize"};
    return lower_rows(l, w, &a->w);
}

/* --- dequantize, take_quantized: rows of a table, all of them or by index */

typedef struct rows_args {
    qmat w;
    char *out;
    count rows;      /* of the result */
    const walk *ids; /* NULL: row i of the result is row i of the table */
    const kernels *k;
    uint8_t index_dtype, out_dtype;
} rows_args;

#define PIECE 8192 /* columns at a time: a multiple of every group */

static int64_t rows_blocks_of(const void *args, const run_ctx *r)
{
    const rows_args *a = args;
    return rows_blocks(count_now(a->rows, r), 2 * a->w.k, r->n_workers);
}

static void rows_run(const void *args, const run_ctx *r, int64_t block)
{
    const rows_args *a = args;
    ig_dtype t = (ig_dtype)a->out_dtype;
    size_t size = ig_dtype_size(t);
    float *tmp = (float *)step_scratch(r);
    span s = rows_span(count_now(a->rows, r), 2 * a->w.k, r->n_workers, block);
    for (int64_t i = s.first; i < s.end; i++) {
        int64_t row = a->ids ? lower_index(walk_at(a->ids, i), (ig_dtype)a->index_dtype) : i;
        bool inside = !a->ids || (row >= 0 && row < a->w.n);
        for (int64_t k0 = 0; k0 < a->w.k; k0 += PIECE) {
            int64_t n = a->w.k - k0 < PIECE ? a->w.k - k0 : PIECE;
            char *out = a->out + (size_t)(i * a->w.k + k0) * size;
            float *y = t == IG_F32 ? (float *)out : tmp;
            qmat piece = qmat_part(&a->w, inside ? row : 0, k0, 1, inside ? n : 0);
            a->k->qrow(y, &piece, 0);
            for (int64_t c = 0; !inside && c < n; c++) y[c] = NAN;
            if (t != IG_F32) lower_store_f32(a->k, out, y, t, (size_t)n);
        }
    }
}

ig_status lower_dequantize(const lowering *l, step *ret_step)
{
    rows_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(lower_qmat(l, 0, l->w->node->i[0], l->w->node->i[1], &a->w));
    a->out = l->out[0].ptr;
    a->k = l->k;
    a->rows = lower_count(&l->out[0].s, 0, l->out[0].s.ndim - 1);
    a->out_dtype = (uint8_t)l->out[0].s.dtype;
    *ret_step = (step){.run = rows_run, .blocks = rows_blocks_of, .args = a, .label = "dequantize"};
    return IG_OK;
}

ig_status lower_take_quantized(const lowering *l, step *ret_step)
{
    rows_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(lower_qmat(l, 0, l->w->node->i[0], l->w->node->i[1], &a->w));
    a->out = l->out[0].ptr;
    a->k = l->k;
    a->rows = lower_count(&l->in[3].s, 0, l->in[3].s.ndim);
    a->index_dtype = (uint8_t)l->in[3].s.dtype;
    a->out_dtype = IG_F32;
    if (!(a->ids = walk_operand(l->mem, &l->in[3]))) return lower_no_memory();
    *ret_step = (step){
        .run = rows_run, .blocks = rows_blocks_of, .args = a, .label = "rows of a quantised table"};
    return IG_OK;
}
