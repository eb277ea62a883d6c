/* arena.h: memory that is freed all at once, with a maximum given at birth. For parsers and
 * interpreters that make many small things that live equally long. */
#ifndef LM_ARENA_H
#define LM_ARENA_H
#include "base/mem.h"

typedef struct arena_chunk arena_chunk;
typedef struct arena {
    arena_chunk *chunk; /* the newest, linked to older ones; owned */
    size_t n_free;      /* bytes left in it */
    size_t n_used;      /* bytes given out */
    size_t max;         /* bytes that may be given out */
    ig_status status;   /* why the last arena_alloc gave NULL: IG_ENOMEM or IG_ELIMIT, recorded */
} arena;

void arena_init(arena *a, size_t max);
void arena_done(arena *a); /* frees; safe twice */
static inline void arena_auto(arena *a) { arena_done(a); }
/* n * size bytes, uninitialised, aligned for any type; n 0 gives a pointer that may not be read. */
void *arena_alloc(arena *a, size_t n, size_t size);
void *arena_zero(arena *a, size_t n, size_t size); /* zeroed */
#endif
