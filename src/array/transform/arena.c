/* arena.c: best fit over lifetimes (contract in arena.h). The items alive are kept in the order of
 * their offsets, so a placement costs one walk over them. */
#include "array/transform/arena.h"
#include <stdlib.h>
#include <string.h>

typedef struct placing {
    arena_item **order; /* by first phase, then size descending, then position */
    arena_item **alive; /* by offset */
    size_t n_alive;
    int64_t top;
} placing;

static int by_phase(const void *a, const void *b)
{
    const arena_item *x = *(arena_item *const *)a, *y = *(arena_item *const *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    if (x->n_bytes != y->n_bytes) return x->n_bytes > y->n_bytes ? -1 : 1;
    return (x > y) - (x < y);
}

static void expire(placing *p, int32_t phase)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_alive; i++)
        if (p->alive[i]->last >= phase) p->alive[n++] = p->alive[i];
    p->n_alive = n;
}

static ig_status place(placing *p, arena_item *x)
{
    if (x->n_bytes > ARENA_MAX_BYTES - ARENA_ALIGN) goto too_large;
    int64_t need = (x->n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    int64_t end = 0, best = INT64_MAX;
    size_t at = p->n_alive;
    x->offset = -1;
    for (size_t i = 0; i < p->n_alive; i++) {
        int64_t gap = p->alive[i]->offset - end;
        if (gap >= need && gap < best) {
            best = gap;
            x->offset = end;
            at = i;
        }
        int64_t n = (p->alive[i]->n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
        end = p->alive[i]->offset + n;
    }
    if (x->offset < 0) x->offset = end;
    if (x->offset > ARENA_MAX_BYTES - need) goto too_large;
    memmove(&p->alive[at + 1], &p->alive[at], (p->n_alive - at) * sizeof p->alive[0]);
    p->alive[at] = x;
    p->n_alive++;
    if (x->offset + need > p->top) p->top = x->offset + need;
    return IG_OK;
too_large:
    return ig_fail(IG_ELIMIT, "a plan's values need more than %lld bytes at these capacities",
                   (long long)ARENA_MAX_BYTES);
}

ig_status arena_place(arena_item *items, size_t n, int64_t *ret_bytes)
{
    AUTO(mem_ptr) order = mem_calloc(n, sizeof(arena_item *));
    AUTO(mem_ptr) alive = mem_calloc(n, sizeof(arena_item *));
    if (!order || !alive) return IG_ENOMEM;
    placing p = {.order = order, .alive = alive};
    for (size_t i = 0; i < n; i++) p.order[i] = &items[i];
    if (n) qsort(p.order, n, sizeof p.order[0], by_phase);
    for (size_t i = 0; i < n; i++) {
        expire(&p, p.order[i]->first);
        TRY(place(&p, p.order[i]));
    }
    *ret_bytes = p.top;
    return IG_OK;
}
