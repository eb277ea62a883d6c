/* shape.c: sizes, broadcasting, axes and row symbols (see shape.h). */
#include "array/core/shape.h"
#include "array/core/dtype.h"
#include "array/core/trace.h"
#include <stdarg.h>
#include <stdio.h>

int64_t shape_size(const spec *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++) n *= s->dim[i];
    return n;
}

int64_t shape_nbytes(const spec *s) { return shape_size(s) * (int64_t)ig_dtype_size(s->dtype); }

/* The product skips zeros, so that the strides of an empty array are bounded too. */
ig_status shape_check(const char *op, const spec *s)
{
    int64_t n = (int64_t)ig_dtype_size(s->dtype);
    for (int i = 0; i < s->ndim; i++) {
        if (s->dim[i] < 0)
            return ig_fail(IG_ESHAPE, "%s: dimension %d is negative: %s", op, i, SHAPE(s));
        if (s->dim[i] > 0 && __builtin_mul_overflow(n, s->dim[i], &n))
            return ig_fail(IG_ELIMIT, "%s: %s has more bytes than 63 bits can count", op, SHAPE(s));
    }
    return IG_OK;
}

ig_status shape_make(const char *op, ig_dtype dtype, const int64_t *dims, int64_t ndim,
                     spec *ret_spec)
{
    if (!dtype_is_valid(dtype)) return ig_fail(IG_EDTYPE, "%s: %d is not a dtype", op, (int)dtype);
    if (ndim < 0 || ndim > IG_MAX_NDIM)
        return ig_fail(IG_ELIMIT, "%s: %lld dimensions, at most %d are possible", op,
                       (long long)ndim, IG_MAX_NDIM);
    if (ndim > 0 && !dims)
        return ig_fail(IG_EINVAL, "%s: %d dimensions without values", op, (int)ndim);
    spec s = {.dtype = dtype, .ndim = (int8_t)ndim};
    for (int64_t i = 0; i < ndim; i++) s.dim[i] = dims[i];
    TRY(shape_check(op, &s));
    *ret_spec = s;
    return IG_OK;
}

static int sym_of(const spec *s, int axis) { return axis == 0 ? s->sym : 0; }

bool shape_dim_eq(const spec *a, int i, const spec *b, int j)
{
    return a->dim[i] == b->dim[j] && sym_of(a, i) == sym_of(b, j);
}

bool shape_eq(const spec *a, const spec *b)
{
    if (a->ndim != b->ndim || a->sym != b->sym) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

/* Appends like snprintf and stays inside the text. */
static int put(shape_text *t, int at, const char *format, ...) IG_PRINTF(3, 4);
static int put(shape_text *t, int at, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->s + at, (size_t)(SHAPE_TEXT_N - at), format, args);
    va_end(args);
    return n < 0 || at + n >= SHAPE_TEXT_N ? SHAPE_TEXT_N - 1 : at + n;
}

static const char *symbol_name(int sym)
{
    const trace *t = trace_current();
    return t && sym <= t->n_symbols ? t->symbols[sym - 1].name : "a row symbol";
}

shape_text shape_format(const spec *s)
{
    shape_text t = {{0}};
    int at = put(&t, 0, "%s [", ig_dtype_name(s->dtype));
    for (int i = 0; i < s->ndim; i++) {
        if (sym_of(s, i)) at = put(&t, at, "%s<=", symbol_name(s->sym));
        at = put(&t, at, i + 1 < s->ndim ? "%lld, " : "%lld", (long long)s->dim[i]);
    }
    put(&t, at, "]");
    return t;
}

/* Widens the dims so far by those of one more input. False when they do not fit. */
static bool widen(spec *out, const spec *in)
{
    int shift = out->ndim - in->ndim;
    for (int i = 0; i < in->ndim; i++) {
        int64_t *d = &out->dim[i + shift];
        int sym = sym_of(in, i), old = i + shift == 0 ? out->sym : 0;
        if (sym && i + shift != 0) return false; /* it would not be first any more */
        if (sym == old && *d == in->dim[i]) continue;
        if (!sym && in->dim[i] == 1) continue;
        if (old || *d != 1) return false;
        *d = in->dim[i];
        if (sym) out->sym = (int8_t)sym;
    }
    return true;
}

static ig_status broadcast_failed(const char *op, const spec *const *in, const char *const *names,
                                  int n)
{
    char text[3 * (SHAPE_TEXT_N + 32)];
    size_t at = 0;
    bool symbols = false;
    for (int k = 0; k < n && at < sizeof text; k++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s %s", k ? " and " : "", names[k],
                               SHAPE(in[k]));
        symbols |= in[k]->sym != 0;
    }
    return ig_fail(IG_ESHAPE, "%s: %s do not broadcast%s", op, text,
                   symbols ? " (a row symbol meets only itself or 1, and stays the first dimension)"
                           : "");
}

ig_status shape_broadcast(const char *op, const spec *const *in, const char *const *names, int n,
                          spec *ret_out)
{
    spec out = {.dtype = ret_out->dtype};
    for (int k = 0; k < n; k++)
        if (in[k]->ndim > out.ndim) out.ndim = in[k]->ndim;
    for (int i = 0; i < out.ndim; i++) out.dim[i] = 1;
    for (int k = 0; k < n; k++)
        if (!widen(&out, in[k])) return broadcast_failed(op, in, names, n);
    TRY(shape_check(op, &out));
    *ret_out = out;
    return IG_OK;
}

ig_status shape_axis(const char *op, const spec *s, int64_t *axis)
{
    int64_t a = *axis < 0 ? *axis + s->ndim : *axis;
    if (a < 0 || a >= s->ndim)
        return ig_fail(IG_EINVAL, "%s: axis %lld is out of range for %s", op, (long long)*axis,
                       SHAPE(s));
    *axis = a;
    return IG_OK;
}

ig_status shape_axes(const char *op, const spec *s, const int64_t *axes, int64_t n,
                     bool *ret_is_listed)
{
    for (int i = 0; i < s->ndim; i++) ret_is_listed[i] = n == 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t a = axes[k];
        TRY(shape_axis(op, s, &a));
        if (ret_is_listed[a])
            return ig_fail(IG_EINVAL, "%s: axis %lld is listed twice", op, (long long)a);
        ret_is_listed[a] = true;
    }
    return IG_OK;
}

ig_status shape_no_symbol(const char *op, const spec *s, int64_t axis)
{
    if (axis != 0 || !s->sym) return IG_OK;
    return ig_fail(IG_ESHAPE, "%s: axis 0 of %s is a row symbol, which %s cannot work along", op,
                   SHAPE(s), op);
}
