/* matmul.c: the rule of the matrix product. */
#include "array/ops/args.h"

/* Leading dims [0, ndim - 2) of both, broadcast. */
static ig_status batch_dims(const op_call *c, spec *ret_out)
{
    spec lead[2];
    const spec *in[2] = {&lead[0], &lead[1]};
    const char *const names[2] = {"leading dimensions of a", "of b"};
    for (int k = 0; k < 2; k++) {
        lead[k] = *arg(c, k);
        lead[k].ndim = (int8_t)(lead[k].ndim > 2 ? lead[k].ndim - 2 : 0);
        if (!lead[k].ndim) lead[k].sym = 0;
    }
    return shape_broadcast("matmul", in, names, 2, ret_out);
}

/* a [..., M, K] or [K], b [..., K, N] or [K]; a vector's own dim is absent from the result. Both
 * have the result's dtype afterwards. */
ig_status rule_matmul(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *a = arg(c, 0), *b = arg(c, 1);
    TRY(arg_dtype_in(c, 0, FLOATS));
    TRY(arg_dtype_in(c, 1, FLOATS));
    if (a->ndim < 1 || b->ndim < 1)
        return arg_refuse2(c, 0, 1, "scalars are not matrices: use multiply");
    int ka = a->ndim - 1, kb = b->ndim > 1 ? b->ndim - 2 : 0;
    if (a->dim[ka] != b->dim[kb]) return arg_refuse2(c, 0, 1, "the inner dimensions differ");
    if ((a->sym && a->ndim == 1) || (b->sym && b->ndim <= 2))
        return arg_refuse2(c, 0, 1, "a row symbol cannot be summed over by a product");
    spec out = {.dtype = ig_promote(a->dtype, b->dtype)};
    TRY(batch_dims(c, &out));
    bool row = a->ndim > 1, column = b->ndim > 1;
    if (a->ndim == 2 && a->sym) {
        if (out.ndim)
            return arg_refuse2(c, 0, 1,
                               "its row symbol would not be the first dimension of the result");
        out.sym = a->sym;
    }
    if (out.ndim + row + column > IG_MAX_NDIM)
        return arg_refuse2(c, 0, 1, "more than 16 dimensions");
    if (row) out.dim[out.ndim++] = a->dim[a->ndim - 2];
    if (column) out.dim[out.ndim++] = b->dim[b->ndim - 1];
    *ret_out = out;
    TRY(shape_check("matmul", ret_out));
    TRY(arg_cast(c, 0, out.dtype));
    return arg_cast(c, 1, out.dtype);
}
