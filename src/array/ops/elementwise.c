/* elementwise.c: rules of operations that work element by element: broadcast, promotion, result
 * type.
 *
 * Inputs keep their shapes and types: what runs them broadcasts and converts. complex64 is not
 * computed with yet; it is stored, moved and indexed. */
#include "array/ops/args.h"

static ig_status like_input(const op_call *c, unsigned set, spec *ret_out)
{
    TRY(arg_dtype_in(c, 0, set));
    *ret_out = *arg(c, 0);
    return IG_OK;
}

ig_status rule_unary(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    return like_input(c, c->op == OP_negative ? INTS | FLOATS : REALS, ret_out);
}

ig_status rule_unary_float(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(like_input(c, REALS, ret_out));
    ret_out->dtype = dtype_at_least_float(ret_out->dtype);
    return shape_check(op_name(c), ret_out);
}

ig_status rule_unary_bool(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(like_input(c, REALS, ret_out));
    ret_out->dtype = IG_BOOL;
    return IG_OK;
}

/* i = dtype */
ig_status rule_cast(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(like_input(c, REALS, ret_out));
    TRY(arg_dtype(c, c->i[0], REALS));
    ret_out->dtype = (ig_dtype)c->i[0];
    return shape_check(op_name(c), ret_out);
}

/* Broadcast of the inputs that are there; dtype: the common one of inputs [first, n_in). */
static ig_status meet(const op_call *c, int first, unsigned set, spec *ret_out)
{
    const spec *in[3];
    const char *names[3];
    int n = 0;
    ig_dtype dtype = arg(c, first)->dtype;
    for (int k = 0; k < c->n_in; k++) {
        if (!arg_is_there(c, k)) continue;
        TRY(arg_dtype_in(c, k, set));
        in[n] = arg(c, k);
        names[n++] = op_in_name(c->op, k);
        if (k > first) dtype = ig_promote(dtype, arg(c, k)->dtype);
    }
    ret_out->dtype = dtype;
    return shape_broadcast(op_name(c), in, names, n, ret_out);
}

ig_status rule_binary(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    return meet(c, 0, REALS, ret_out);
}

ig_status rule_binary_float(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(meet(c, 0, REALS, ret_out));
    ret_out->dtype = dtype_at_least_float(ret_out->dtype);
    return shape_check(op_name(c), ret_out);
}

ig_status rule_compare(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(meet(c, 0, REALS, ret_out));
    ret_out->dtype = IG_BOOL;
    return IG_OK;
}

/* Shifted bools are u8, as in MLX. Two integers whose common type is a float have no common
 * bits. */
ig_status rule_bitwise(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(meet(c, 0, INTS | ONLY(IG_BOOL), ret_out));
    bool shift = c->op == OP_left_shift || c->op == OP_right_shift;
    if (shift && ret_out->dtype == IG_BOOL) ret_out->dtype = IG_U8;
    if (!dtype_is_float(ret_out->dtype)) return IG_OK;
    return ig_fail(IG_EDTYPE, "%s: %s and %s have no common integer type: cast one", op_name(c),
                   ig_dtype_name(arg(c, 0)->dtype), ig_dtype_name(arg(c, 1)->dtype));
}

/* The condition keeps its type: nonzero is true. */
ig_status rule_where(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    return meet(c, 1, REALS, ret_out);
}

ig_status rule_clip(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    return meet(c, 0, REALS, ret_out);
}
