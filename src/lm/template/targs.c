/* targs.c: the arguments of a call put to the parameters of a built-in function. */
#include <string.h>
#include "lm/template/trun.h"

/* The k-th word of params, or {NULL, 0}. */
static str parameter(const char *params, size_t k)
{
    for (;; k--) {
        size_t n = strcspn(params, " ");
        if (!k || !n) return (str){n ? params : NULL, n};
        params += n;
        if (*params) params++;
    }
}

static size_t n_parameters(const char *params)
{
    size_t n = 0;
    while (parameter(params, n).p) n++;
    return n;
}

ig_status targs_bind(const targs *args, const char *what, const char *params, size_t n_needed,
                     tval *out)
{
    size_t n = n_parameters(params);
    if (args->n > n)
        return ig_fail(IG_EINVAL, "%s takes at most %zu arguments, %zu were given", what, n,
                       args->n);
    for (size_t i = 0; i < n; i++) out[i] = i < args->n ? args->v[i] : tval_missing();
    for (size_t i = 0; i < args->n_named; i++) {
        size_t k = 0;
        while (k < n && !str_eq(parameter(params, k), tstr_bytes(args->names[i]))) k++;
        if (k == n || out[k].kind != T_MISSING)
            return ig_fail(IG_EINVAL, "%s: argument %.*s is unknown or given twice", what,
                           (int)args->names[i]->n, args->names[i]->p);
        out[k] = args->named[i];
    }
    for (size_t i = 0; i < n_needed; i++)
        if (out[i].kind == T_MISSING) {
            str name = parameter(params, i);
            return ig_fail(IG_EINVAL, "%s: argument %.*s is missing", what, (int)name.n, name.p);
        }
    return IG_OK;
}

ig_status targs_int(const char *what, tval v, int64_t dflt, int64_t *ret)
{
    if (v.kind == T_MISSING || v.kind == T_NONE) {
        *ret = dflt;
        return IG_OK;
    }
    if (!tval_is_integral(v))
        return ig_fail(IG_EINVAL, "%s wants an integer, not a %s", what, tval_type(v));
    *ret = tval_integer(v);
    return IG_OK;
}

ig_status targs_str(trun *r, const char *what, tval v, const tstr **ret)
{
    if (v.kind != T_STR)
        return ig_fail(IG_EINVAL, "%s wants a string, not a %s", what, tval_type(v));
    *ret = v.s;
    return tstr_flatten(r->a, v.s);
}
