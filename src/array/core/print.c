/* print.c: arrays as text, as MLX and NumPy show them:
 *
 *   array([[1, 2],
 *          [3, 4]], dtype=int32)
 *
 * Six significant digits. Of more than 1000 elements, an axis longer than 6 shows its first and
 * last three. The text stops after FORMAT_MAX bytes, whatever the rank. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "array/core/dtype.h"
#include "array/core/eval.h"
#include "array/core/shape.h"

#define FORMAT_MAX ((size_t)1 << 20)
#define WHOLE_SIZE 1000
#define EDGE 3
#define INDENT 7 /* "array([" */

typedef struct text {
    char *out;
    size_t cap, n; /* n: bytes wanted so far */
} text;

IG_PRINTF(2, 3) static void put(text *t, const char *format, ...)
{
    size_t room = t->n < t->cap ? t->cap - t->n : 0;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(room ? t->out + t->n : NULL, room, format, args);
    va_end(args);
    if (n > 0) t->n += (size_t)n;
}

static void put_complex(text *t, const char *p)
{
    float v[2];
    memcpy(v, p, sizeof v);
    put(t, "%g%+gj", (double)v[0], (double)v[1]);
}

static void put_element(text *t, ig_dtype dtype, const char *p)
{
    uint64_t u = 0;
    if (dtype == IG_BOOL) {
        put(t, *p ? "True" : "False");
    } else if (dtype_is_unsigned_int(dtype)) {
        dtype_convert(dtype, p, IG_U64, &u);
        put(t, "%" PRIu64, u);
    } else if (dtype_is_signed_int(dtype)) {
        put(t, "%" PRId64, dtype_get_i64(dtype, p));
    } else if (dtype == IG_C64) {
        put_complex(t, p);
    } else {
        double v = dtype_get_f64(dtype, p);
        put(t, v != v ? "nan" : "%g", v);
    }
}

/* The elements from axis on; recursion is as deep as the rank. */
static void put_axis(text *t, const operand *o, int axis, const char *p, bool whole)
{
    if (axis == o->s.ndim) {
        put_element(t, o->s.dtype, p);
        return;
    }
    int64_t n = o->s.dim[axis];
    int64_t every = o->stride[axis] * (int64_t)ig_dtype_size(o->s.dtype);
    bool last = axis == o->s.ndim - 1, cut = !whole && n > 2 * EDGE;
    put(t, "[");
    for (int64_t i = 0; i < n && t->n < FORMAT_MAX; i++) {
        if (i && last) put(t, ", ");
        if (i && !last) put(t, ",\n%*s", INDENT + axis, "");
        if (cut && i == EDGE) {
            put(t, "...");
            i = n - EDGE - 1;
            continue;
        }
        put_axis(t, o, axis + 1, p + i * every, whole);
    }
    put(t, "]");
}

ig_status ig_format(ig_array a, char *out, size_t cap, size_t *ret_n)
{
    operand o;
    TRY(eval_arrays(&a, 1));
    eval_operand(a, &o);
    text t = {.out = out, .cap = cap};
    if (cap) out[0] = 0;
    put(&t, "array(");
    put_axis(&t, &o, 0, o.ptr, shape_size(&o.s) <= WHOLE_SIZE);
    put(&t, ", dtype=%s)", ig_dtype_name(o.s.dtype));
    if (ret_n) *ret_n = t.n;
    return IG_OK;
}
