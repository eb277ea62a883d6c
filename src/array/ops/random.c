/* random.c: rules of random numbers. Keys are explicit: u32 [2], or a batch [..., 2] that draws
 * for each key by itself; so the draws of a row never depend on how many rows there are. */
#include "array/ops/args.h"

static ig_status check_key(const op_call *c)
{
    const spec *key = arg(c, 0);
    TRY(arg_dtype_in(c, 0, ONLY(IG_U32)));
    if (key->ndim < 1 || key->dim[key->ndim - 1] != 2 || (key->sym && key->ndim == 1))
        return arg_refuse(c, 0, "keys are [2] or [..., 2]");
    return IG_OK;
}

/* The keys' leading dims, then n more. */
static ig_status draws(const op_call *c, const int64_t *dims, int64_t n, spec *ret_out)
{
    const spec *key = arg(c, 0);
    spec more;
    TRY(shape_make(op_name(c), IG_U32, dims, n, &more));
    TRY(arg_append_dims(c, 0, 0, key->ndim - 1, ret_out));
    if (ret_out->ndim + n > IG_MAX_NDIM)
        return ig_fail(IG_ELIMIT, "%s: the result would have more than 16 dimensions", op_name(c));
    for (int i = 0; i < n; i++) ret_out->dim[ret_out->ndim++] = more.dim[i];
    return shape_check(op_name(c), ret_out);
}

/* random_bits, random_uniform: i = n, dims */
ig_status rule_random(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    *ret_out = (spec){.dtype = c->op == OP_random_bits ? IG_U32 : IG_F32};
    TRY(check_key(c));
    return draws(c, c->i + 1, c->i[0], ret_out);
}

/* i = n */
ig_status rule_random_split(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const int64_t dims[2] = {c->i[0], 2};
    *ret_out = (spec){.dtype = IG_U32};
    TRY(check_key(c));
    return draws(c, dims, 2, ret_out);
}

/* in = key, logits (f32 afterwards); i = axis. One key for all of logits, or a key [..., 2] for
 * each row along the last axis. */
ig_status rule_categorical(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *key = arg(c, 0), *logits = arg(c, 1);
    TRY(check_key(c));
    TRY(arg_dtype_in(c, 1, SHORT_FLOATS));
    if (logits->ndim < 1) return arg_refuse(c, 1, "a scalar has no axis");
    TRY(shape_axis(op_name(c), logits, &c->i[0]));
    int axis = (int)c->i[0];
    if (logits->dim[axis] == 0 || logits->dim[axis] > UINT32_MAX)
        return arg_refuse(c, 1, "the axis must have 1 to 2^32 - 1 elements");
    bool batch = key->ndim > 1,
         same = !batch || (key->ndim == logits->ndim && axis == logits->ndim - 1);
    for (int i = 0; same && batch && i < axis; i++) same = shape_dim_eq(key, i, logits, i);
    if (!same)
        return arg_refuse2(c, 0, 1,
                           "a batch of keys must be one key for each row of the last axis");
    if (!batch && logits->sym)
        return arg_refuse2(c, 0, 1,
                           "rows that are a row symbol need a key each: their draws must not "
                           "depend on how many rows there are");
    spec out = {.dtype = IG_U32};
    TRY(arg_append_dims(c, 1, 0, axis, &out));
    TRY(arg_append_dims(c, 1, axis + 1, logits->ndim, &out));
    *ret_out = out;
    return arg_cast(c, 1, IG_F32);
}
