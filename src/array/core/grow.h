/* grow.h: room for one more element in a growing array with a maximum. */
#ifndef ARRAY_GROW_H
#define ARRAY_GROW_H
#include "base/mem.h"

/* slot: the address of the array's pointer; n of *cap elements of `size` bytes are used. */
static inline ig_status grow(void *slot, size_t n, size_t *cap, size_t max, size_t size,
                             const char *what)
{
    if (n < *cap) return IG_OK;
    if (n >= max) return ig_fail(IG_ELIMIT, "more than %zu %s", max, what);
    size_t more = *cap ? 2 * *cap : 32;
    void **array = slot, *p = mem_realloc(*array, more * size);
    if (!p) return IG_ENOMEM;
    *array = p;
    *cap = more;
    return IG_OK;
}
#endif
