/* movement.c: rules of views and of what copies elements without changing them.
 *
 * A row symbol stays the first dimension, whole and in order, so that no stride depends on it. */
#include "array/ops/args.h"
#include "ingot/ops.h"

static ig_status symbol_stays(const op_call *c)
{
    return arg_refuse(c, 0, "its row symbol must stay the first dimension, whole and alone");
}

/* Writes the dim given as -1 into call->i, if there is one. n: elements that the dims must have. */
static ig_status infer_dim(op_call *c, int first, int64_t n)
{
    int64_t known = 1, *inferred = NULL;
    for (int i = first; i < c->i[0]; i++) {
        int64_t d = c->i[1 + i];
        if (d < -1 || (d == -1 && inferred))
            return ig_fail(IG_EINVAL, "reshape: dims must be >= 0; one of them may be -1");
        if (d == -1)
            inferred = &c->i[1 + i];
        else if (__builtin_mul_overflow(known, d, &known))
            return ig_fail(IG_ELIMIT, "reshape: dims have too large a product");
    }
    if (inferred && known > 0 && n % known == 0) {
        *inferred = n / known;
        return IG_OK;
    }
    if (inferred && known == 0 && n == 0) {
        *inferred = 0;
        return IG_OK;
    }
    return inferred || known != n ? arg_refuse(c, 0, "its elements do not fill the dims asked for")
                                  : IG_OK;
}

/* i = n, dims; afterwards without -1. */
static ig_status reshape_rule(op_call *c, spec *ret_out)
{
    const spec *in = arg(c, 0);
    int64_t n = shape_size(in);
    if (in->sym) { /* the rest is reshaped by itself */
        if (c->i[0] < 1 || (c->i[1] != -1 && c->i[1] != in->dim[0])) return symbol_stays(c);
        c->i[1] = in->dim[0];
        n = 1;
        for (int i = 1; i < in->ndim; i++) n *= in->dim[i];
    }
    TRY(infer_dim(c, in->sym ? 1 : 0, n));
    TRY(shape_make("reshape", in->dtype, c->i + 1, c->i[0], ret_out));
    ret_out->sym = in->sym;
    return IG_OK;
}

/* i = n, axes; afterwards a full permutation. */
static ig_status transpose_rule(op_call *c, spec *ret_out)
{
    const spec *in = arg(c, 0);
    bool is_listed[IG_MAX_NDIM];
    if (c->i[0] == 0)
        for (int i = in->ndim - 1; i >= 0; i--) c->i[c->n_i++] = i;
    else if (c->i[0] != in->ndim)
        return arg_refuse(c, 0, "as many axes must be listed as it has");
    c->i[0] = in->ndim;
    TRY(shape_axes("transpose", in, c->i + 1, c->i[0], is_listed));
    *ret_out = *in;
    for (int i = 0; i < in->ndim; i++) {
        TRY(shape_axis("transpose", in, &c->i[1 + i]));
        ret_out->dim[i] = in->dim[c->i[1 + i]];
    }
    return in->sym && c->i[1] != 0 ? symbol_stays(c) : IG_OK;
}

/* One axis of a slice, as Python does it: negative indices count from the end, then everything
 * is clipped. */
static int64_t clip_index(int64_t at, int64_t dim, bool back)
{
    int64_t low = back ? -1 : 0, high = back ? dim - 1 : dim;
    if (at < 0) at = at < -dim ? low : at + dim;
    return at < low ? low : at > high ? high : at;
}

/* start, stop and step lists at i + first; afterwards clipped, and the step of an axis that keeps
 * no second element is 1: a huge one would overflow as a stride. out: dims of the box. */
static ig_status box_rule(op_call *c, const spec *in, spec *ret_out)
{
    int n = in->ndim;
    *ret_out = *in;
    if (c->n_i != 3 + 3 * n || c->i[0] != n || c->i[1 + n] != n)
        return arg_refuse(c, 0, "start, stop and step need one value for each dimension");
    int64_t *start = c->i + 1, *stop = start + n + 1, *step = stop + n + 1;
    for (int i = 0; i < n; i++) {
        if (step[i] == 0 || step[i] == INT64_MIN)
            return ig_fail(IG_EINVAL, "%s: step of axis %d is %lld", op_name(c), i,
                           (long long)step[i]);
        bool back = step[i] < 0;
        start[i] = clip_index(start[i], in->dim[i], back);
        stop[i] = clip_index(stop[i], in->dim[i], back);
        int64_t span = back ? start[i] - stop[i] : stop[i] - start[i],
                every = back ? -step[i] : step[i];
        ret_out->dim[i] = span > 0 ? (span - 1) / every + 1 : 0;
    }
    if (in->sym && (start[0] != 0 || step[0] != 1 || ret_out->dim[0] != in->dim[0]))
        return symbol_stays(c);
    for (int i = 0; i < n; i++)
        if (ret_out->dim[i] <= 1) step[i] = 1;
    return IG_OK;
}

/* i = n, dims. The symbol must be asked for by its capacity, in its place. */
static ig_status broadcast_rule(op_call *c, spec *ret_out)
{
    const spec *in = arg(c, 0);
    TRY(shape_make("broadcast_to", in->dtype, c->i + 1, c->i[0], ret_out));
    int shift = ret_out->ndim - in->ndim;
    if (shift < 0) return arg_refuse(c, 0, "it has more dimensions than asked for");
    if (in->sym && (shift || ret_out->dim[0] != in->dim[0])) return symbol_stays(c);
    ret_out->sym = in->sym;
    for (int i = 0; i < in->ndim; i++)
        if (in->dim[i] != 1 && in->dim[i] != ret_out->dim[i + shift])
            return ig_fail(IG_ESHAPE, "broadcast_to: argument a %s does not broadcast to %s",
                           SHAPE(in), SHAPE(ret_out));
    return IG_OK;
}

/* i = n, axes of the result; afterwards not negative. */
static ig_status expand_rule(op_call *c, spec *ret_out)
{
    const spec *in = arg(c, 0);
    if (in->ndim + c->i[0] > IG_MAX_NDIM)
        return arg_refuse(c, 0, "the result would have more than 16 dimensions");
    bool is_new[IG_MAX_NDIM] = {false};
    spec out = {.dtype = in->dtype, .ndim = (int8_t)(in->ndim + c->i[0]), .sym = in->sym};
    if (c->i[0] > 0) TRY(shape_axes("expand_dims", &out, c->i + 1, c->i[0], is_new));
    for (int k = 0; k < c->i[0]; k++) TRY(shape_axis("expand_dims", &out, &c->i[1 + k]));
    if (in->sym && is_new[0]) return symbol_stays(c);
    for (int i = 0, from = 0; i < out.ndim; i++) out.dim[i] = is_new[i] ? 1 : in->dim[from++];
    *ret_out = out;
    return IG_OK;
}

/* i = n, axes; afterwards those to remove, written out. */
static ig_status squeeze_rule(op_call *c, spec *ret_out)
{
    const spec *in = arg(c, 0);
    bool all = c->i[0] == 0, is_listed[IG_MAX_NDIM];
    TRY(shape_axes("squeeze", in, c->i + 1, c->i[0], is_listed));
    spec out = {.dtype = in->dtype, .sym = in->sym};
    c->n_i = 1;
    for (int i = 0; i < in->ndim; i++) {
        bool one = in->dim[i] == 1 && !(i == 0 && in->sym);
        if (!all && is_listed[i] && !one)
            return arg_refuse(c, 0, "only fixed dimensions of size 1 can be squeezed");
        if (is_listed[i] && one)
            call_int(c, i);
        else
            out.dim[out.ndim++] = in->dim[i];
    }
    c->i[0] = c->n_i - 1;
    *ret_out = out;
    return IG_OK;
}

ig_status rule_view(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    switch (c->op) {
    case OP_reshape: return reshape_rule(c, ret_out);
    case OP_transpose: return transpose_rule(c, ret_out);
    case OP_slice: return box_rule(c, arg(c, 0), ret_out);
    case OP_broadcast_to: return broadcast_rule(c, ret_out);
    case OP_expand_dims: return expand_rule(c, ret_out);
    default: return squeeze_rule(c, ret_out);
    }
}

ig_status rule_copy(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    *ret_out = *arg(c, 0);
    return IG_OK;
}

/* i = axis. All inputs have the result's dtype afterwards. */
ig_status rule_concatenate(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    *ret_out = *arg(c, 0);
    TRY(shape_axis("concatenate", arg(c, 0), &c->i[0]));
    int axis = (int)c->i[0];
    for (int k = 0; k < c->n_in; k++) {
        const spec *in = arg(c, k);
        bool same = in->ndim == ret_out->ndim;
        for (int i = 0; same && i < in->ndim; i++)
            same = i == axis || shape_dim_eq(in, i, ret_out, i);
        if (!same) return arg_refuse2(c, 0, k, "they may differ along the axis only");
        TRY(shape_no_symbol("concatenate", in, axis));
        ret_out->dtype = ig_promote(ret_out->dtype, in->dtype);
        if (k && __builtin_add_overflow(ret_out->dim[axis], in->dim[axis], &ret_out->dim[axis]))
            return ig_fail(IG_ELIMIT, "concatenate: the result is too large");
    }
    for (int k = 0; k < c->n_in; k++) TRY(arg_cast(c, k, ret_out->dtype));
    return shape_check("concatenate", ret_out);
}

/* A state is written where it lies: what a write reads of it besides becomes a copy. */
static ig_status part_from_state(op_call *c, int k)
{
    const ig_state *state = c->in[0].node->state;
    if (!state || c->in[k].node->state != state) return IG_OK;
    ig_array copy = ig_contiguous(c->in[k]);
    if (ig_is_empty(copy)) return ig_error_code();
    c->in[k] = copy;
    return IG_OK;
}

/* put_rows and slice_update: the result is a with something replaced. updates has a's dtype and
 * exactly the shape of what it replaces afterwards; nothing but a is a view of a state that is
 * written. slice_update: i = n, start, n, stop, n, step, clipped. */
ig_status rule_put(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *a = arg(c, 0);
    int last = c->op == OP_put_rows ? 2 : 1;
    spec want = {.dtype = a->dtype};
    if (c->op == OP_slice_update) {
        TRY(box_rule(c, a, &want));
    } else {
        TRY(arg_dtype_in(c, 1, INTS));
        if (a->ndim < 1) return arg_refuse(c, 0, "a scalar has no rows");
        TRY(arg_append_dims(c, 1, 0, arg(c, 1)->ndim, &want));
        TRY(arg_append_dims(c, 0, 1, a->ndim, &want));
    }
    *ret_out = *a;
    TRY(arg_cast(c, last, a->dtype));
    TRY(arg_broadcast(c, last, &want));
    for (int k = 1; k <= last; k++) TRY(part_from_state(c, k));
    return IG_OK;
}
