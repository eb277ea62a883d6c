/* state.c: memory that plans write in place. */
#include <string.h>
#include "array/core/shape.h"
#include "array/core/trace.h"
#include "array/transform/touch.h"
#include "base/mem.h"

struct ig_state {
    buffer *mem; /* owned, row-major */
    spec s;
};

ig_status ig_state_new(ig_dtype dtype, const int64_t *dims, int ndim, ig_state **ret_state)
{
    if (ndim < 0 || ndim > IG_MAX_NDIM)
        return ig_fail(IG_EINVAL, "ig_state_new: %d dimensions, not 0 to %d", ndim, IG_MAX_NDIM);
    if ((unsigned)dtype >= IG_N_DTYPES)
        return ig_fail(IG_EINVAL, "ig_state_new: dtype %d does not exist", (int)dtype);
    spec s = {.dtype = dtype, .ndim = (int8_t)ndim};
    if (ndim) memcpy(s.dim, dims, (size_t)ndim * sizeof dims[0]);
    TRY(shape_check("ig_state_new", &s));
    ig_state *st = mem_calloc(1, sizeof *st);
    if (!st) return IG_ENOMEM;
    st->s = s;
    ig_status r = touch_new((size_t)shape_size(&s) * ig_dtype_size(dtype), &st->mem);
    if (r != IG_OK) {
        mem_free(st);
        return r;
    }
    *ret_state = st;
    return IG_OK;
}

void ig_state_free(ig_state *s)
{
    if (!s) return;
    buffer_drop(s->mem);
    mem_free(s);
}

void *ig_state_data(ig_state *s) { return s->mem->ptr; }

int64_t ig_state_nbytes(const ig_state *s)
{
    return shape_size(&s->s) * (int64_t)ig_dtype_size(s->s.dtype);
}

static void drop_mem(void *user) { buffer_drop(user); }

/* Outside a trace the array keeps the memory alive by itself. */
ig_array ig_state_array(ig_state *s)
{
    trace *t = trace_current();
    if (t) return trace_state_array(t, s, &s->s);
    return ig_array_adopt(s->mem->ptr, (size_t)ig_state_nbytes(s), s->s.dtype, s->s.dim, s->s.ndim,
                          drop_mem, buffer_hold(s->mem));
}
