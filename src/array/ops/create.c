/* create.c: arrays from nothing: arange, full, tri; zeros and ones are full. */
#include <math.h>
#include "array/ops/args.h"

#define MAX_ARANGE 0x1p62

static ig_status arange_rule(const op_call *c, spec *ret_out)
{
    double start = c->f[0], stop = c->f[1], step = c->f[2];
    TRY(arg_dtype(c, c->i[0], INTS | FLOATS));
    if (!isfinite(start) || !isfinite(stop) || !isfinite(step) || step == 0)
        return ig_fail(IG_EINVAL,
                       "arange: from %g to %g by %g: bounds and step must be finite, and the "
                       "step not 0",
                       start, stop, step);
    double n = ceil((stop - start) / step);
    if (n > MAX_ARANGE)
        return ig_fail(IG_ELIMIT, "arange: from %g to %g by %g has too many elements", start, stop,
                       step);
    int64_t dim = n > 0 ? (int64_t)n : 0;
    return shape_make("arange", (ig_dtype)c->i[0], &dim, 1, ret_out);
}

/* full: i = n, dims, dtype; tri: i = n, m, k, dtype, -n <= k <= m afterwards. */
ig_status rule_create(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    if (c->op == OP_arange) return arange_rule(c, ret_out);
    int64_t dtype = c->i[c->n_i - 1];
    TRY(arg_dtype(c, dtype, c->op == OP_full ? ANY : REALS));
    if (c->op == OP_full) return shape_make("full", (ig_dtype)dtype, c->i + 1, c->i[0], ret_out);
    TRY(shape_make("tri", (ig_dtype)dtype, c->i, 2, ret_out));
    int64_t n = c->i[0], m = c->i[1], k = c->i[2];
    c->i[2] = k < -n ? -n : k > m ? m : k;
    return IG_OK;
}
