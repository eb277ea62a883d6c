/* arena.c: chunks of 32 KiB, larger ones for larger requests. */
#include "lm/arena.h"
#include <string.h>

#define CHUNK_BYTES ((size_t)32 << 10)
#define ALIGN 16

struct arena_chunk {
    arena_chunk *older;
    _Alignas(ALIGN) char bytes[];
};

void arena_init(arena *a, size_t max) { *a = (arena){.max = max}; }

void arena_done(arena *a)
{
    while (a->chunk) {
        arena_chunk *older = a->chunk->older;
        mem_free(a->chunk);
        a->chunk = older;
    }
    *a = (arena){0};
}

/* A chunk with room for n bytes: the newest, or one that is full at once. */
static char *new_chunk(arena *a, size_t n)
{
    arena_chunk *c = mem_alloc(sizeof *c + n);
    if (!c) {
        a->status = IG_ENOMEM;
        return NULL;
    }
    if (n > CHUNK_BYTES && a->chunk) { /* behind the newest, which still has room */
        c->older = a->chunk->older;
        a->chunk->older = c;
        return c->bytes;
    }
    c->older = a->chunk;
    a->chunk = c;
    a->n_free = n > CHUNK_BYTES ? 0 : n;
    return c->bytes;
}

void *arena_alloc(arena *a, size_t n, size_t size)
{
    size_t want;
    if (!mem_mul(n, size, &want) || !mem_add(want, ALIGN - 1, &want) || want > a->max - a->n_used) {
        a->status = ig_fail(IG_ELIMIT, "more than %zu bytes of memory", a->max);
        return NULL;
    }
    want &= ~(size_t)(ALIGN - 1);
    a->n_used += want;
    if (want > CHUNK_BYTES) return new_chunk(a, want);
    if (want > a->n_free && !new_chunk(a, CHUNK_BYTES)) return NULL;
    char *p = a->chunk->bytes + (CHUNK_BYTES - a->n_free);
    a->n_free -= want;
    return p;
}

void *arena_zero(arena *a, size_t n, size_t size)
{
    void *p = arena_alloc(a, n, size);
    if (p) memset(p, 0, n * size);
    return p;
}
