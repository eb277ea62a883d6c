/* step_mem.c: bump memory for the arguments of steps: a list of blocks that only grows, freed or
 * forgotten as a whole. */
#include <string.h>
#include "base/mem.h"
#include "array/core/device.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define MAX_BYTES ((size_t)1 << 30)
#define ALIGN 64

typedef struct block {
    struct block *next;
    size_t n_used, n_bytes; /* of data */
    char *data;             /* in this allocation, aligned */
} block;

struct step_mem {
    block *first, *now; /* blocks before `now` are full, those after it empty */
    size_t n_bytes;
};

ig_status step_mem_new(step_mem **ret_mem)
{
    step_mem *m = mem_calloc(1, sizeof *m);
    if (!m) return IG_ENOMEM;
    *ret_mem = m;
    return IG_OK;
}

void step_mem_free(step_mem *m)
{
    if (!m) return;
    while (m->first) {
        block *b = m->first;
        m->first = b->next;
        mem_free(b);
    }
    mem_free(m);
}

void step_mem_reset(step_mem *m)
{
    for (block *b = m->first; b; b = b->next) b->n_used = 0;
    m->now = m->first;
}

static block *block_new(step_mem *m, size_t n)
{
    size_t n_bytes = n > BLOCK_BYTES ? n : BLOCK_BYTES;
    if (n_bytes > MAX_BYTES - m->n_bytes) {
        (void)ig_fail(IG_ELIMIT, "step arguments: more than %zu bytes", MAX_BYTES);
        return NULL;
    }
    size_t head = (sizeof(block) + ALIGN - 1) / ALIGN * ALIGN;
    block *b = mem_aligned(ALIGN, head + n_bytes);
    if (!b) return NULL;
    *b = (block){.n_bytes = n_bytes, .data = (char *)b + head};
    m->n_bytes += n_bytes;
    return b;
}

/* The block that n bytes go to: the current one, the next empty one if n fits, or a new one
 * between them. */
static block *block_for(step_mem *m, size_t n)
{
    block *b = m->now;
    if (b && b->n_bytes - b->n_used >= n) return b;
    block **next = b ? &b->next : &m->first;
    if (!*next || (*next)->n_bytes < n) {
        block *fresh = block_new(m, n);
        if (!fresh) return NULL;
        fresh->next = *next;
        *next = fresh;
    }
    return m->now = *next;
}

void *step_mem_get(step_mem *m, size_t n)
{
    if (n > MAX_BYTES) {
        (void)ig_fail(IG_ELIMIT, "step arguments: %zu bytes in one piece", n);
        return NULL;
    }
    n = (n + ALIGN - 1) / ALIGN * ALIGN;
    block *b = block_for(m, n);
    if (!b) return NULL;
    void *p = b->data + b->n_used;
    b->n_used += n;
    return memset(p, 0, n);
}
