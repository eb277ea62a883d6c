/* arena.h: where the intermediate values of a plan lie, so that few bytes serve many lives. */
#ifndef TRANSFORM_ARENA_H
#define TRANSFORM_ARENA_H
#include "base/mem.h"

#define ARENA_ALIGN 64
#define ARENA_MAX_BYTES ((int64_t)1 << 46)

typedef struct arena_item {
    int64_t n_bytes;
    int32_t first, last; /* phases in which the bytes must be its own, both included */
    int64_t offset;      /* result; a multiple of ARENA_ALIGN */
} arena_item;

/* Gives each item an offset so that no two of common phases overlap: phases ascending, larger items
 * first, each into the tightest gap. *ret_bytes is where the last one ends. IG_ELIMIT over
 * ARENA_MAX_BYTES. */
IG_MUST_USE ig_status arena_place(arena_item *items, size_t n, int64_t *ret_bytes);
#endif
