/* index.c: rules of reading by index. */
#include "array/ops/args.h"

/* i = axis. a[:axis] + indices + a[axis + 1:] */
ig_status rule_take(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 1, INTS));
    if (arg(c, 0)->ndim == 0) return arg_refuse(c, 0, "a scalar has no axis");
    TRY(shape_axis("take", arg(c, 0), &c->i[0]));
    int axis = (int)c->i[0];
    spec out = {.dtype = arg(c, 0)->dtype};
    TRY(arg_append_dims(c, 0, 0, axis, &out));
    TRY(arg_append_dims(c, 1, 0, arg(c, 1)->ndim, &out));
    TRY(arg_append_dims(c, 0, axis + 1, arg(c, 0)->ndim, &out));
    *ret_out = out;
    return shape_check("take", ret_out);
}

/* i = axis. The indices' dims, which are a's but along the axis. */
ig_status rule_take_along(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *a = arg(c, 0), *indices = arg(c, 1);
    TRY(arg_dtype_in(c, 1, INTS));
    if (a->ndim == 0) return arg_refuse(c, 0, "a scalar has no axis");
    TRY(shape_axis("take_along_axis", a, &c->i[0]));
    bool same = a->ndim == indices->ndim;
    for (int i = 0; same && i < a->ndim; i++) same = i == c->i[0] || shape_dim_eq(a, i, indices, i);
    if (!same) return arg_refuse2(c, 0, 1, "they may differ along the axis only");
    *ret_out = *indices;
    ret_out->dtype = a->dtype;
    return shape_check("take_along_axis", ret_out);
}
