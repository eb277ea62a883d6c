/* reduce.c: rules of reductions, scans, softmax and sorts: one axis or several are worked along. */
#include "array/ops/args.h"

/* i = n, axes, keepdims; afterwards the axes are written out, ascending. out: dims without them
 * (or 1). */
static ig_status reduced_dims(op_call *c, int64_t *ret_n_reduced, spec *ret_out)
{
    const spec *in = arg(c, 0);
    bool keep = c->i[c->n_i - 1] != 0, is_listed[IG_MAX_NDIM];
    TRY(shape_axes(op_name(c), in, c->i + 1, c->i[0], is_listed));
    spec out = {.dtype = in->dtype, .sym = in->ndim && !is_listed[0] ? in->sym : 0};
    *ret_n_reduced = 1;
    c->n_i = 1;
    for (int i = 0; i < in->ndim; i++) {
        if (is_listed[i]) {
            call_int(c, i);
            *ret_n_reduced *=
                i == 0 && in->sym ? 1 : in->dim[i]; /* a symbol may be 0 at run time only */
        }
        if (!is_listed[i] || keep) out.dim[out.ndim++] = is_listed[i] ? 1 : in->dim[i];
    }
    c->i[0] = c->n_i - 1;
    call_int(c, keep);
    *ret_out = out;
    return IG_OK;
}

/* Sums and products of small integers are 32 bits wide. */
static ig_dtype widened(ig_dtype t)
{
    if (t == IG_BOOL || t == IG_I8 || t == IG_I16) return IG_I32;
    return t == IG_U8 || t == IG_U16 ? IG_U32 : t;
}

ig_status rule_reduce(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    int64_t n;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(reduced_dims(c, &n, ret_out));
    if (c->op == OP_sum || c->op == OP_prod)
        ret_out->dtype = widened(ret_out->dtype);
    else if (n == 0)
        return arg_refuse(c, 0, "there is no largest or smallest of nothing");
    return shape_check(op_name(c), ret_out);
}

ig_status rule_reduce_float(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    int64_t n;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(reduced_dims(c, &n, ret_out));
    ret_out->dtype = dtype_at_least_float(ret_out->dtype);
    return shape_check(op_name(c), ret_out);
}

ig_status rule_reduce_bool(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    int64_t n;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(reduced_dims(c, &n, ret_out));
    ret_out->dtype = IG_BOOL;
    return IG_OK;
}

/* The axis at i[k], along which rows are mixed: not a symbol. */
static ig_status work_axis(op_call *c, int k)
{
    if (arg(c, 0)->ndim == 0) return arg_refuse(c, 0, "a scalar has no axis");
    TRY(shape_axis(op_name(c), arg(c, 0), &c->i[k]));
    return shape_no_symbol(op_name(c), arg(c, 0), c->i[k]);
}

/* i = axis, keepdims */
ig_status rule_arg_reduce(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(work_axis(c, 0));
    int axis = (int)c->i[0];
    int64_t n = arg(c, 0)->dim[axis];
    if (n == 0 || n > UINT32_MAX)
        return arg_refuse(c, 0, "the axis must have 1 to 2^32 - 1 elements");
    spec out = *arg(c, 0);
    out.dtype = IG_U32;
    if (c->i[1]) {
        out.dim[axis] = 1;
    } else {
        out.ndim--;
        for (int i = axis; i < out.ndim; i++) out.dim[i] = out.dim[i + 1];
    }
    *ret_out = out;
    return shape_check(op_name(c), ret_out);
}

/* i = axis */
ig_status rule_softmax(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(work_axis(c, 0));
    *ret_out = *arg(c, 0);
    ret_out->dtype = dtype_at_least_float(ret_out->dtype);
    return shape_check(op_name(c), ret_out);
}

/* i = axis, reverse, inclusive */
ig_status rule_scan(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(work_axis(c, 0));
    *ret_out = *arg(c, 0);
    if (ret_out->dtype == IG_BOOL) ret_out->dtype = IG_I32;
    return shape_check(op_name(c), ret_out);
}

/* i = axis */
ig_status rule_sort(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(work_axis(c, 0));
    *ret_out = *arg(c, 0);
    if (c->op == OP_sort) return IG_OK;
    if (ret_out->dim[c->i[0]] > UINT32_MAX)
        return arg_refuse(c, 0, "the axis has more than 2^32 - 1 elements");
    ret_out->dtype = IG_U32;
    return shape_check(op_name(c), ret_out);
}

/* i = k, axis */
ig_status rule_topk(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, REALS));
    TRY(work_axis(c, 1));
    int axis = (int)c->i[1];
    if (c->i[0] < 0 || c->i[0] > arg(c, 0)->dim[axis])
        return ig_fail(IG_EINVAL, "topk: k is %lld, axis %d of argument a %s has %lld elements",
                       (long long)c->i[0], axis, SHAPE(arg(c, 0)), (long long)arg(c, 0)->dim[axis]);
    *ret_out = *arg(c, 0);
    ret_out->dim[axis] = c->i[0];
    return IG_OK;
}
