/* args.c: what shape rules are written with (see args.h), and the rule of leaves. */
#include "array/ops/args.h"
#include "array/core/eval.h"
#include "array/core/view.h"
#include "ingot/ops.h"

ig_status arg_dtype_in(const op_call *c, int k, unsigned set)
{
    if (set >> arg(c, k)->dtype & 1) return IG_OK;
    return ig_fail(IG_EDTYPE, "%s: argument %s is %s, a dtype that %s does not take", op_name(c),
                   op_in_name(c->op, k), SHAPE(arg(c, k)), op_name(c));
}

ig_status arg_ndim(const op_call *c, int k, int ndim)
{
    if (arg(c, k)->ndim == ndim) return IG_OK;
    return ig_fail(IG_ESHAPE, "%s: argument %s is %s: it must have %d dimension%s", op_name(c),
                   op_in_name(c->op, k), SHAPE(arg(c, k)), ndim, ndim == 1 ? "" : "s");
}

ig_status arg_dtype(const op_call *c, int64_t dtype, unsigned set)
{
    bool valid = dtype >= 0 && dtype < IG_N_DTYPES;
    if (valid && (set >> dtype & 1)) return IG_OK;
    if (valid)
        return ig_fail(IG_EDTYPE, "%s: dtype %s is not possible here", op_name(c),
                       ig_dtype_name((ig_dtype)dtype));
    return ig_fail(IG_EDTYPE, "%s: %lld is not a dtype", op_name(c), (long long)dtype);
}

ig_status arg_cast(op_call *c, int k, ig_dtype dtype)
{
    if (arg(c, k)->dtype == dtype) return IG_OK;
    ig_array a = ig_astype(c->in[k], dtype);
    if (ig_is_empty(a)) return ig_error_code();
    c->in[k] = a;
    return IG_OK;
}

ig_status arg_broadcast(op_call *c, int k, const spec *to)
{
    if (shape_eq(arg(c, k), to)) return IG_OK;
    if (to->sym && !arg(c, k)->sym)
        return ig_fail(IG_ESHAPE, "%s: argument %s is %s: it must have the row symbol of %s",
                       op_name(c), op_in_name(c->op, k), SHAPE(arg(c, k)), SHAPE(to));
    ig_array a = ig_broadcast_to(c->in[k], to->dim, to->ndim);
    if (ig_is_empty(a)) return ig_error_code();
    c->in[k] = a;
    return IG_OK;
}

static ig_status copy_unless(op_call *c, int k, bool is_dense)
{
    if (is_dense) return IG_OK;
    ig_array a = ig_contiguous(c->in[k]);
    if (ig_is_empty(a)) return ig_error_code();
    c->in[k] = a;
    return IG_OK;
}

static void strides_of(ig_array a, int64_t *ret_stride)
{
    bool lock = !a.node->trace && view_is(a.node->op) && !node_is_done(a.node);
    if (lock) eval_lock();
    view_strides(a, ret_stride);
    if (lock) eval_unlock();
}

ig_status arg_dense(op_call *c, int k)
{
    int64_t stride[IG_MAX_NDIM];
    strides_of(c->in[k], stride);
    return copy_unless(c, k, view_is_contiguous(arg(c, k), stride));
}

ig_status arg_dense_rows(op_call *c, int k)
{
    int64_t stride[IG_MAX_NDIM];
    int last = arg(c, k)->ndim - 1;
    strides_of(c->in[k], stride);
    return copy_unless(c, k, last < 0 || stride[last] == 1 || arg(c, k)->dim[last] == 1);
}

ig_status arg_refuse(const op_call *c, int k, const char *why)
{
    return ig_fail(IG_ESHAPE, "%s: argument %s is %s: %s", op_name(c), op_in_name(c->op, k),
                   SHAPE(arg(c, k)), why);
}

ig_status arg_refuse2(const op_call *c, int k, int l, const char *why)
{
    return ig_fail(IG_ESHAPE, "%s: arguments %s %s and %s %s: %s", op_name(c), op_in_name(c->op, k),
                   SHAPE(arg(c, k)), op_in_name(c->op, l), SHAPE(arg(c, l)), why);
}

ig_status arg_append_dims(const op_call *c, int k, int from, int to, spec *out)
{
    const spec *s = arg(c, k);
    for (int i = from; i < to; i++) {
        if (out->ndim == IG_MAX_NDIM)
            return ig_fail(IG_ELIMIT, "%s: the result would have more than %d dimensions",
                           op_name(c), IG_MAX_NDIM);
        if (i == 0 && s->sym) {
            if (out->ndim != 0)
                return arg_refuse(c, k,
                                  "its row symbol would not be the first dimension of the result");
            out->sym = s->sym;
        }
        out->dim[out->ndim++] = s->dim[i];
    }
    return IG_OK;
}

/* Leaves are made by what owns their memory (array.c, trace.c), never by a call. */
ig_status rule_leaf(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_out;
    (void)ret_n_out;
    return ig_fail(IG_EINVAL, "%s: not an operation", op_name(c));
}
