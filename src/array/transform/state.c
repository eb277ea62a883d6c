/* state.c: memory that plans write in place. */
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
    spec s;
    TRY(shape_make("ig_state_new", dtype, dims, ndim, &s));
    ig_state *st = mem_calloc(1, sizeof *st);
    if (!st) return IG_ENOMEM;
    st->s = s;
    ig_status r = touch_new((size_t)shape_nbytes(&s), &st->mem);
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

int64_t ig_state_nbytes(const ig_state *s) { return shape_nbytes(&s->s); }

static void drop_mem(void *user) { buffer_drop(user); }

/* Outside a trace the array keeps the memory alive by itself. */
ig_array ig_state_array(ig_state *s)
{
    trace *t = trace_current();
    if (t) return trace_state_array(t, s, &s->s);
    ig_array a = ig_array_adopt(s->mem->ptr, (size_t)ig_state_nbytes(s), s->s.dtype, s->s.dim,
                                s->s.ndim, drop_mem, buffer_hold(s->mem));
    if (ig_is_empty(a)) buffer_drop(s->mem); /* a failed adoption calls no free_fn */
    return a;
}
