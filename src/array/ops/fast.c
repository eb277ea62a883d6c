/* fast.c: rules of operations that are one hand kernel: norms, rotary embedding, attention. */
#include "array/core/paged.h"
#include "array/ops/args.h"

/* x [..., D], weight and bias [D], all of the result's dtype afterwards; f = eps. */
ig_status rule_norm(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    const spec *x = arg(c, 0);
    TRY(arg_dtype_in(c, 0, FLOATS));
    if (x->ndim < 1 || (x->ndim == 1 && x->sym))
        return arg_refuse(c, 0, "rows [..., D] are needed");
    ig_dtype dtype = x->dtype;
    for (int k = 1; k < c->n_in; k++) {
        if (!arg_is_there(c, k)) continue;
        TRY(arg_dtype_in(c, k, FLOATS));
        if (arg(c, k)->ndim != 1 || arg(c, k)->sym || arg(c, k)->dim[0] != x->dim[x->ndim - 1])
            return arg_refuse2(c, 0, k, "it must have one value for each element of a row");
        dtype = ig_promote(dtype, arg(c, k)->dtype);
    }
    if (!(c->f[0] >= 0)) return ig_fail(IG_EINVAL, "%s: eps is %g", op_name(c), c->f[0]);
    *ret_out = *x;
    ret_out->dtype = dtype;
    for (int k = 0; k < c->n_in; k++) {
        if (!arg_is_there(c, k)) continue;
        TRY(arg_cast(c, k, dtype));
        if (k > 0) TRY(arg_dense(c, k));
    }
    if (dtype == IG_F64) TRY(arg_dense_rows(c, 0));
    return shape_check(op_name(c), ret_out);
}

/* Integers that a kernel reads as row-major i32. */
static ig_status arg_index_table(op_call *c, int k)
{
    TRY(arg_cast(c, k, IG_I32));
    return arg_dense(c, k);
}

/* Is input k an i32 row of values, one for each row of input 0? Other integers are cast. */
static ig_status check_per_row(op_call *c, int k)
{
    TRY(arg_dtype_in(c, k, INTS));
    TRY(arg_ndim(c, k, 1));
    if (!shape_dim_eq(arg(c, 0), 0, arg(c, k), 0))
        return arg_refuse2(c, 0, k, "there must be one value for each row");
    return arg_index_table(c, k);
}

/* in = x [T, H, D], positions i32 [T], table f32 [n, 2, R / 2]; i = interleaved. */
ig_status rule_rope(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, SHORT_FLOATS));
    TRY(arg_ndim(c, 0, 3));
    TRY(arg_dtype_in(c, 2, ONLY(IG_F32)));
    TRY(arg_ndim(c, 2, 3));
    TRY(check_per_row(c, 1));
    const spec *x = arg(c, 0), *table = arg(c, 2);
    if (table->sym || table->dim[1] != 2 || table->dim[2] > x->dim[2] / 2)
        return arg_refuse2(c, 0, 2, "the table must be [n, 2, R / 2] with R <= the head size");
    *ret_out = *x;
    return arg_dense(c, 2);
}

/* A mask is a bool or has the result's dtype afterwards, and is [B, H, L, S]. */
static ig_status sdpa_mask(op_call *c, const spec *out, int64_t n_keys)
{
    spec want = *out;
    want.dim[3] = n_keys;
    TRY(arg_dtype_in(c, 3, FLOATS | ONLY(IG_BOOL)));
    if (arg(c, 3)->dtype != IG_BOOL) TRY(arg_cast(c, 3, out->dtype));
    return arg_broadcast(c, 3, &want);
}

/* q [B, H, L, D], k [B, G, S, D], v [B, G, S, E] of one dtype afterwards; i = causal; f = scale.
 * Result [B, H, L, E]. */
ig_status rule_sdpa(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    ig_dtype dtype = arg(c, 0)->dtype;
    for (int i = 0; i < 3; i++) {
        TRY(arg_dtype_in(c, i, FLOATS));
        TRY(arg_ndim(c, i, 4));
        dtype = ig_promote(dtype, arg(c, i)->dtype);
    }
    const spec *q = arg(c, 0), *k = arg(c, 1), *v = arg(c, 2);
    if (!shape_dim_eq(q, 0, k, 0) || !shape_dim_eq(k, 0, v, 0) || k->dim[1] != v->dim[1] ||
        k->dim[2] != v->dim[2])
        return arg_refuse2(c, 1, 2, "batch, heads and positions of keys and values must agree");
    if (q->dim[3] != k->dim[3] || k->dim[1] == 0 || q->dim[1] % k->dim[1])
        return arg_refuse2(c, 0, 1,
                           "head sizes must agree and the heads of q be a multiple of those of k");
    spec out = *q;
    out.dtype = dtype;
    out.dim[3] = v->dim[3];
    *ret_out = out;
    TRY(shape_check("sdpa", ret_out));
    int64_t n_keys = k->dim[2];
    if (arg_is_there(c, 3)) TRY(sdpa_mask(c, &out, n_keys));
    for (int i = 0; i < 3; i++) TRY(arg_cast(c, i, dtype));
    return IG_OK;
}

/* Is input k a pool u8 [pages, bytes] of n_kv heads? */
static ig_status check_pool(const op_call *c, int k, int64_t n_kv, int64_t head_dim,
                            int64_t kv_type)
{
    TRY(arg_dtype(c, kv_type, SHORT_FLOATS | ONLY(IG_I8)));
    TRY(arg_dtype_in(c, k, ONLY(IG_U8)));
    TRY(arg_ndim(c, k, 2));
    if (n_kv < 1 || n_kv > INT16_MAX || head_dim < 1 || head_dim > INT16_MAX)
        return ig_fail(IG_EINVAL, "%s: %lld heads of %lld", op_name(c), (long long)n_kv,
                       (long long)head_dim);
    int64_t n_bytes = ig_page_bytes(n_kv, head_dim, (ig_dtype)kv_type);
    if (arg(c, k)->dim[1] == n_bytes && !arg(c, k)->sym) return IG_OK;
    return ig_fail(IG_ESHAPE,
                   "%s: argument pool is %s: a page of %lld heads of %lld in %s has %lld bytes",
                   op_name(c), SHAPE(arg(c, k)), (long long)n_kv, (long long)head_dim,
                   ig_dtype_name((ig_dtype)kv_type), (long long)n_bytes);
}

/* in = pool, k, v f32 [T, n_kv, head_dim], slots i32 [T]; i = n_kv, head_dim, kv_type. The
 * result is the pool. */
ig_status rule_paged_write(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(check_pool(c, 0, c->i[0], c->i[1], c->i[2]));
    for (int k = 1; k <= 2; k++) {
        TRY(arg_dtype_in(c, k, ONLY(IG_F32)));
        TRY(arg_ndim(c, k, 3));
        if (!shape_eq(arg(c, k), arg(c, 1)) || arg(c, k)->dim[1] != c->i[0] ||
            arg(c, k)->dim[2] != c->i[1])
            return arg_refuse2(c, 1, k, "both must be [T, n_kv, head_dim]");
    }
    TRY(arg_dtype_in(c, 3, INTS));
    TRY(arg_ndim(c, 3, 1));
    if (!shape_dim_eq(arg(c, 1), 0, arg(c, 3), 0))
        return arg_refuse2(c, 1, 3, "there must be one slot for each row");
    *ret_out = *arg(c, 0);
    TRY(arg_index_table(c, 3));
    return arg_dense(c, 0);
}

/* in = q f32 [T, H, D], pool, pages i32 [S, max], seq i32 [T], positions i32 [T]; i = n_kv,
 * kv_type; f = scale. */
ig_status rule_paged_attention(op_call *c, spec *ret_out, int *ret_n_out)
{
    (void)ret_n_out;
    TRY(arg_dtype_in(c, 0, ONLY(IG_F32)));
    TRY(arg_ndim(c, 0, 3));
    const spec *q = arg(c, 0);
    TRY(check_pool(c, 1, c->i[0], q->dim[2], c->i[1]));
    if (q->dim[1] == 0) return arg_refuse(c, 0, "it has no heads");
    if (q->dim[1] % c->i[0])
        return ig_fail(IG_ESHAPE,
                       "paged_attention: argument q is %s: its heads are not a multiple of %lld",
                       SHAPE(q), (long long)c->i[0]);
    TRY(arg_dtype_in(c, 2, INTS));
    TRY(arg_ndim(c, 2, 2));
    *ret_out = *q;
    TRY(arg_index_table(c, 2));
    TRY(check_per_row(c, 3));
    TRY(check_per_row(c, 4));
    TRY(arg_dense(c, 1));
    return arg_dense_rows(c, 0);
}
