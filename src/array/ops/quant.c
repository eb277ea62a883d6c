/* quant.c: group-quantised matrices and int8 activation rows: rules, and builders that take and
 * return several arrays as one value (ingot/quant.h). */
#include "array/ops/args.h"
#include "ingot/quant.h"

int64_t ig_rows8_bytes(int64_t n_cols, int32_t group)
{
    if (n_cols < 0 || n_cols > INT32_MAX || group < 1) return 0;
    int64_t codes = (n_cols + 3) / 4 * 4, d = 4 * ((n_cols + group - 1) / group),
            sums = 4 * ((n_cols + 31) / 32);
    return (codes + d + sums + 63) / 64 * 64;
}

static ig_status check_group(const op_call *c, int64_t group)
{
    if (group == 32 || group == 64 || group == 128) return IG_OK;
    return ig_fail(IG_EINVAL, "%s: group is %lld, possible are 32, 64 and 128", op_name(c),
                   (long long)group);
}

static ig_status check_format(const op_call *c, int64_t group, int64_t bits)
{
    TRY(check_group(c, group));
    if ((bits >= 2 && bits <= 6) || bits == 8) return IG_OK;
    return ig_fail(IG_EINVAL, "%s: bits is %lld, possible are 2, 3, 4, 5, 6 and 8", op_name(c),
                   (long long)bits);
}

/* Codes, scales and biases at inputs k, k + 1, k + 2 must be one matrix; its spec is [..., N, K]
 * in the scales' dtype. They are row-major afterwards. */
static ig_status check_quantized(op_call *c, int k, int64_t group, int64_t bits, spec *ret_w)
{
    const spec *codes = arg(c, k), *scales = arg(c, k + 1), *biases = arg(c, k + 2);
    TRY(check_format(c, group, bits));
    TRY(arg_dtype_in(c, k, ONLY(IG_U32)));
    TRY(arg_dtype_in(c, k + 1, SHORT_FLOATS));
    if (biases->dtype != scales->dtype || !shape_eq(biases, scales))
        return arg_refuse2(c, k + 1, k + 2, "scales and biases must be alike");
    int last = codes->ndim - 1;
    if (last < 1 || scales->ndim != codes->ndim)
        return arg_refuse2(c, k, k + 1, "both must be [..., N, columns]");
    spec w = *codes;
    w.dtype = scales->dtype;
    if (__builtin_mul_overflow(scales->dim[last], group, &w.dim[last]) || w.dim[last] > INT32_MAX ||
        codes->dim[last] != w.dim[last] / 32 * bits)
        return arg_refuse2(c, k, k + 1, "the columns contradict group and bits");
    for (int i = 0; i < last; i++)
        if (!shape_dim_eq(codes, i, scales, i)) return arg_refuse2(c, k, k + 1, "the rows differ");
    *ret_w = w;
    TRY(shape_check(op_name(c), ret_w));
    for (int i = 0; i < 3; i++) TRY(arg_dense(c, k + i));
    return IG_OK;
}

/* i = group, bits. Outputs codes, scales, biases. */
ig_status rule_quantize(op_call *c, spec *ret_out, int *ret_n_out)
{
    const spec *w = arg(c, 0);
    int64_t group = c->i[0], bits = c->i[1];
    TRY(arg_dtype_in(c, 0, SHORT_FLOATS));
    TRY(check_format(c, group, bits));
    if (w->ndim < 2) return arg_refuse(c, 0, "a matrix [..., N, K] is needed");
    int64_t k = w->dim[w->ndim - 1];
    if (k % group)
        return ig_fail(IG_ESHAPE,
                       "quantize: argument w is %s: its rows are not a multiple of the group %lld",
                       SHAPE(w), (long long)group);
    if (k > INT32_MAX) return arg_refuse(c, 0, "rows are limited to 2^31 - 1 elements");
    for (int n = 0; n < 3; n++) ret_out[n] = *w;
    ret_out[0].dtype = IG_U32;
    ret_out[0].dim[w->ndim - 1] = k / 32 * bits;
    ret_out[1].dim[w->ndim - 1] = ret_out[2].dim[w->ndim - 1] = k / group;
    *ret_n_out = 3;
    return IG_OK;
}

/* i = group, bits */
ig_status rule_dequantize(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    return check_quantized(c, 0, c->i[0], c->i[1], ret_out);
}

/* in = x, codes, scales, biases; i = group, bits, transpose. w is [N, K], or has x's leading
 * dims. */
ig_status rule_qmm(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *x = arg(c, 0);
    spec w;
    TRY(arg_dtype_in(c, 0, SHORT_FLOATS));
    TRY(check_quantized(c, 1, c->i[0], c->i[1], &w));
    int64_t n = w.dim[w.ndim - 2], k = w.dim[w.ndim - 1];
    if (x->ndim < 1) return arg_refuse(c, 0, "a matrix [..., M, K] is needed");
    if (w.sym && w.ndim == 2)
        return arg_refuse(c, 1, "the rows of a matrix cannot be a row symbol");
    bool same = w.ndim == 2 || w.ndim == x->ndim;
    for (int i = 0; same && i < w.ndim - 2; i++) same = shape_dim_eq(&w, i, x, i);
    if (!same) return arg_refuse2(c, 0, 1, "the leading dimensions differ");
    if (x->dim[x->ndim - 1] != (c->i[2] ? k : n) || (x->sym && x->ndim == 1))
        return arg_refuse2(c, 0, 1, "the inner dimensions differ");
    *ret_out = *x;
    ret_out->dtype = IG_F32;
    ret_out->dim[x->ndim - 1] = c->i[2] ? n : k;
    return shape_check(op_name(c), ret_out);
}

/* x [T, K] is f32 afterwards; i = group. Output u8 [T, record]. */
ig_status rule_rows8(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, SHORT_FLOATS));
    TRY(arg_ndim(c, 0, 2));
    TRY(check_group(c, c->i[0]));
    const spec *x = arg(c, 0);
    if (x->dim[1] > INT32_MAX) return arg_refuse(c, 0, "rows are limited to 2^31 - 1 elements");
    *ret_out = *x;
    ret_out->dtype = IG_U8;
    ret_out->dim[1] = ig_rows8_bytes(x->dim[1], (int32_t)c->i[0]);
    TRY(shape_check(op_name(c), ret_out));
    return arg_cast(c, 0, IG_F32);
}

/* in = records, codes, scales, biases; i = columns, activation group, group, bits. */
ig_status rule_qmm8(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    int64_t k = c->i[0], act_group = c->i[1];
    spec w;
    TRY(arg_dtype_in(c, 0, ONLY(IG_U8)));
    TRY(arg_ndim(c, 0, 2));
    TRY(check_group(c, act_group));
    TRY(check_quantized(c, 1, c->i[2], c->i[3], &w));
    if (w.ndim != 2 || w.sym) return arg_refuse(c, 1, "a plain matrix [N, K] is needed");
    if (c->i[3] != 4 && c->i[3] != 8)
        return ig_fail(IG_EINVAL, "%s: w has %lld bits, possible are 4 and 8", op_name(c),
                       (long long)c->i[3]);
    if (act_group < c->i[2])
        return ig_fail(IG_EINVAL, "%s: the rows' group %lld is below the matrix's group %lld",
                       op_name(c), (long long)act_group, (long long)c->i[2]);
    if (w.dim[1] != k || arg(c, 0)->dim[1] != ig_rows8_bytes(k, (int32_t)act_group))
        return ig_fail(IG_ESHAPE,
                       "%s: rows of %lld columns (argument rec %s) do not fit the matrix %s",
                       op_name(c), (long long)k, SHAPE(arg(c, 0)), SHAPE(&w));
    *ret_out = *arg(c, 0);
    ret_out->dtype = IG_F32;
    ret_out->dim[1] = w.dim[0];
    TRY(arg_dense(c, 0));
    return shape_check(op_name(c), ret_out);
}

/* in = codes, scales, biases, ids; i = group, bits. */
ig_status rule_take_q(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    spec w, out = {.dtype = IG_F32};
    TRY(check_quantized(c, 0, c->i[0], c->i[1], &w));
    TRY(arg_dtype_in(c, 3, INTS));
    if (w.ndim != 2) return arg_refuse(c, 0, "a plain table [N, K] is needed");
    TRY(arg_append_dims(c, 3, 0, arg(c, 3)->ndim, &out));
    if (out.ndim == IG_MAX_NDIM)
        return arg_refuse(c, 3, "the result would have more than 16 dimensions");
    out.dim[out.ndim++] = w.dim[1];
    *ret_out = out;
    return shape_check(op_name(c), ret_out);
}

/* --- builders --- */

static void call_quantized(op_call *c, const ig_quantized *w)
{
    call_in(c, w->codes);
    call_in(c, w->scales);
    call_in(c, w->biases);
    call_int(c, w->group);
    call_int(c, w->bits);
}

ig_quantized ig_quantize(ig_array w, int32_t group, int32_t bits)
{
    op_call c = {.op = OP_quantize};
    call_in(&c, w);
    call_int(&c, group);
    call_int(&c, bits);
    ig_node *n = node_apply(&c).node;
    if (!n) return (ig_quantized){.group = group, .bits = bits};
    return (ig_quantized){{n, 0}, {n, 1}, {n, 2}, group, bits};
}

ig_array ig_dequantize(ig_quantized w)
{
    op_call c = {.op = OP_dequantize};
    call_quantized(&c, &w);
    return node_apply(&c);
}

ig_array ig_quantized_matmul(ig_array x, ig_quantized w, bool transpose)
{
    op_call c = {.op = OP_quantized_matmul};
    call_in(&c, x);
    call_quantized(&c, &w);
    call_int(&c, transpose);
    return node_apply(&c);
}

ig_rows8 ig_int8_rows(ig_array x, int32_t group)
{
    op_call c = {.op = OP_int8_rows};
    call_in(&c, x);
    call_int(&c, group);
    return (ig_rows8){node_apply(&c), ig_dim(x, -1), group};
}

ig_array ig_quantized_matmul_rows8(ig_rows8 x, ig_quantized w)
{
    op_call c = {.op = OP_quantized_matmul_rows8};
    call_in(&c, x.rec);
    call_int(&c, x.n_cols);
    call_int(&c, x.group);
    call_quantized(&c, &w);
    return node_apply(&c);
}

ig_array ig_take_quantized(ig_quantized table, ig_array ids)
{
    op_call c = {.op = OP_take_quantized};
    call_quantized(&c, &table);
    call_in(&c, ids);
    return node_apply(&c);
}
