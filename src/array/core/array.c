/* array.c: the public face of arrays: facts, constants, values (ingot/array.h). */
#include "array/core/constant.h"
#include "array/core/dtype.h"
#include "array/core/eval.h"
#include "array/core/scope.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include <string.h>

/* --- facts --- */

int ig_ndim(ig_array a) { return ig_is_empty(a) ? 0 : node_spec(a)->ndim; }

int64_t ig_dim(ig_array a, int axis)
{
    if (axis < 0) axis += ig_ndim(a);
    return axis < 0 || axis >= ig_ndim(a) ? 0 : node_spec(a)->dim[axis];
}

int64_t ig_size(ig_array a) { return ig_is_empty(a) ? 0 : shape_size(node_spec(a)); }

int64_t ig_nbytes(ig_array a) { return ig_is_empty(a) ? 0 : shape_nbytes(node_spec(a)); }

ig_dtype ig_type(ig_array a) { return ig_is_empty(a) ? IG_BOOL : node_spec(a)->dtype; }

/* --- constants --- */

ig_array constant_new(const char *caller, const spec *s, buffer *b)
{
    op_call c = {.op = OP_constant};
    ig_node *n = NULL;
    ig_status st = scope_is_open()
                       ? node_new(&c, s, 1, &n)
                       : ig_fail(IG_EINVAL, "%s: no scope is open on this thread", caller);
    if (st != IG_OK) {
        buffer_drop(b);
        return (ig_array){0};
    }
    n->lay[0].buf = b;
    view_contiguous(s, n->lay[0].stride);
    n->done = 1;
    return scope_add(n) == IG_OK ? (ig_array){n, 0} : (ig_array){0};
}

/* Any nonzero byte is true outside; kernels see 0 and 1 only. */
static void copy_in(char *to, const void *data, ig_dtype dtype, size_t n_bytes)
{
    if (n_bytes) memcpy(to, data, n_bytes);
    if (dtype == IG_BOOL)
        for (size_t i = 0; i < n_bytes; i++) to[i] = to[i] != 0;
}

ig_array ig_array_copy(const void *data, ig_dtype dtype, const int64_t *dims, int ndim)
{
    spec s;
    buffer *b = NULL;
    if (shape_make("array_copy", dtype, dims, ndim, &s) != IG_OK) return (ig_array){0};
    size_t n_bytes = (size_t)shape_nbytes(&s);
    if (!data && n_bytes) {
        (void)ig_fail(IG_EINVAL, "array_copy: no data for %s", SHAPE(&s));
        return (ig_array){0};
    }
    if (buffer_new(n_bytes, &b) != IG_OK) return (ig_array){0};
    copy_in(b->ptr, data, dtype, n_bytes);
    return constant_new("array_copy", &s, b);
}

static ig_status check_adopted(const void *data, size_t n_bytes, const spec *s)
{
    size_t need = (size_t)shape_nbytes(s);
    size_t align = s->dtype == IG_C64 ? 4 : ig_dtype_size(s->dtype);
    if (need > n_bytes)
        return ig_fail(IG_ESHAPE, "array_adopt: %s needs %zu bytes, the memory has %zu", SHAPE(s),
                       need, n_bytes);
    if (!data && need) return ig_fail(IG_EINVAL, "array_adopt: no data for %s", SHAPE(s));
    if ((uintptr_t)data % align)
        return ig_fail(IG_EINVAL, "array_adopt: %s at an address that is not a multiple of %zu",
                       SHAPE(s), align);
    return IG_OK;
}

ig_array ig_array_adopt(const void *data, size_t n_bytes, ig_dtype dtype, const int64_t *dims,
                        int ndim, void (*free_fn)(void *user), void *user)
{
    spec s;
    buffer *b = NULL;
    if (shape_make("array_adopt", dtype, dims, ndim, &s) != IG_OK ||
        check_adopted(data, n_bytes, &s) != IG_OK ||
        buffer_adopt(data, n_bytes, NULL, NULL, &b) != IG_OK)
        return (ig_array){0};
    ig_array a = constant_new("array_adopt", &s, b);
    if (ig_is_empty(a)) return a;
    b->free_fn = free_fn; /* only now: on failure the memory stays the caller's */
    b->user = user;
    return a;
}

ig_array ig_scalar_f32(float v) { return ig_array_copy(&v, IG_F32, NULL, 0); }

ig_array ig_scalar_i32(int32_t v) { return ig_array_copy(&v, IG_I32, NULL, 0); }

ig_array ig_scalar_bool(bool v) { return ig_array_copy(&v, IG_BOOL, NULL, 0); }

/* --- values --- */

/* A walk over the rows of a strided array: runs along the last axis, row-major. */
typedef struct rows {
    const operand *o;
    int64_t index[IG_MAX_NDIM];
    int64_t n_left, n; /* rows to come; elements of a row */
    const char *p;     /* element 0 of the row */
    int64_t step;      /* bytes between its elements */
} rows;

static rows rows_of(const operand *o)
{
    rows r = {.o = o, .n = 1, .p = o->ptr};
    int64_t size = shape_size(&o->s);
    if (o->s.ndim > 0) {
        r.n = o->s.dim[o->s.ndim - 1];
        r.step = o->stride[o->s.ndim - 1] * (int64_t)ig_dtype_size(o->s.dtype);
    }
    r.n_left = size ? size / r.n : 0;
    return r;
}

static void rows_next(rows *r)
{
    int64_t size = (int64_t)ig_dtype_size(r->o->s.dtype);
    r->n_left--;
    for (int i = r->o->s.ndim - 2; i >= 0; i--) {
        r->p += r->o->stride[i] * size;
        if (++r->index[i] < r->o->s.dim[i]) return;
        r->p -= r->index[i] * r->o->stride[i] * size;
        r->index[i] = 0;
    }
}

static void flatten(const operand *o, char *to)
{
    size_t size = ig_dtype_size(o->s.dtype);
    for (rows r = rows_of(o); r.n_left > 0; rows_next(&r))
        for (int64_t i = 0; i < r.n; i++, to += size) memcpy(to, r.p + i * r.step, size);
}

/* The row-major copy of a strided array, made once, under the evaluation lock. */
static ig_status make_flat(layout *l, const operand *o)
{
    if (l->flat) return IG_OK;
    buffer *b = NULL;
    TRY(buffer_new((size_t)shape_nbytes(&o->s), &b));
    flatten(o, b->ptr);
    l->flat = b;
    return IG_OK;
}

ig_status ig_data(ig_array a, const void **ret_data)
{
    operand o;
    TRY(eval_arrays(&a, 1));
    eval_operand(a, &o);
    if (view_is_contiguous(&o.s, o.stride)) {
        *ret_data = o.ptr;
        return IG_OK;
    }
    layout *l = &a.node->lay[a.out];
    eval_lock();
    ig_status st = make_flat(l, &o);
    eval_unlock();
    TRY(st);
    *ret_data = l->flat->ptr;
    return IG_OK;
}

/* The one element of an evaluated array. */
static ig_status item(ig_array a, operand *ret_operand)
{
    TRY(eval_arrays(&a, 1));
    eval_operand(a, ret_operand);
    if (shape_size(&ret_operand->s) != 1)
        return ig_fail(IG_ESHAPE, "item: %s has not exactly one element", SHAPE(&ret_operand->s));
    return IG_OK;
}

ig_status ig_item_f64(ig_array a, double *ret_v)
{
    operand o;
    TRY(item(a, &o));
    *ret_v = dtype_get_f64(o.s.dtype, o.ptr);
    return IG_OK;
}

ig_status ig_item_i64(ig_array a, int64_t *ret_v)
{
    operand o;
    TRY(item(a, &o));
    *ret_v = dtype_get_i64(o.s.dtype, o.ptr);
    return IG_OK;
}

ig_status ig_copy_out(ig_array a, ig_dtype dtype, void *out, int64_t n)
{
    operand o;
    if (!dtype_is_valid(dtype))
        return ig_fail(IG_EDTYPE, "copy_out: %d is not a dtype", (int)dtype);
    TRY(eval_arrays(&a, 1));
    eval_operand(a, &o);
    if (shape_size(&o.s) != n)
        return ig_fail(IG_ESHAPE, "copy_out: %s into room for %lld elements", SHAPE(&o.s),
                       (long long)n);
    char *to = out;
    size_t size = ig_dtype_size(dtype);
    for (rows r = rows_of(&o); r.n_left > 0; rows_next(&r))
        for (int64_t i = 0; i < r.n; i++, to += size)
            dtype_convert(o.s.dtype, r.p + i * r.step, dtype, to);
    return IG_OK;
}
