/* mem.c: the only file that calls malloc. Counters and the fault are process-wide by intent: a test
 * must be able to fail the N-th allocation whichever thread makes it. They are relaxed atomics:
 * they count, they order nothing. Memory comes from malloc unchanged, so free() of it is valid. */
#include "base/mem.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int_least64_t n_allocs, n_live; /* allocations made; made and not freed */
static atomic_int_least64_t fault_left;       /* allocations until the failing one; 0 disarmed */
static atomic_int_least64_t fault_hits;       /* failed since arming */
static atomic_bool fault_sticky;

#define RELAXED memory_order_relaxed

void mem_fault_arm(int64_t n, bool sticky)
{
    atomic_store(&fault_left, 0);
    atomic_store(&fault_hits, 0);
    atomic_store(&fault_sticky, sticky);
    atomic_store(&fault_left, n);
}

int64_t mem_fault_hits(void) { return atomic_load(&fault_hits); }

int64_t mem_n_allocs(void) { return atomic_load_explicit(&n_allocs, RELAXED); }

int64_t mem_n_live(void) { return atomic_load_explicit(&n_live, RELAXED); }

/* Counts one allocation down; true when it is the one to fail. */
static bool fault_here(void)
{
    int_least64_t left = atomic_load_explicit(&fault_left, RELAXED), next;
    do {
        if (left <= 0) return false;
        next = left > 1 ? left - 1 : atomic_load(&fault_sticky) ? 1 : 0;
    } while (!atomic_compare_exchange_weak(&fault_left, &left, next));
    if (left > 1) return false;
    atomic_fetch_add(&fault_hits, 1);
    return true;
}

static void *no_memory(size_t n_bytes)
{
    (void)ig_fail(IG_ENOMEM, "out of memory: %zu bytes were refused", n_bytes);
    return NULL;
}

static void *counted(void *p, size_t n_bytes)
{
    if (!p) return no_memory(n_bytes);
    atomic_fetch_add_explicit(&n_allocs, 1, RELAXED);
    atomic_fetch_add_explicit(&n_live, 1, RELAXED);
    return p;
}

void *mem_alloc(size_t n_bytes)
{
    if (fault_here()) return no_memory(n_bytes);
    return counted(malloc(n_bytes ? n_bytes : 1), n_bytes);
}

void *mem_calloc(size_t n, size_t size)
{
    size_t n_bytes;
    if (!mem_mul(n, size, &n_bytes)) return no_memory(SIZE_MAX);
    if (fault_here()) return no_memory(n_bytes);
    return counted(calloc(n_bytes ? n_bytes : 1, 1), n_bytes);
}

void *mem_realloc(void *p, size_t n_bytes)
{
    if (!p) return mem_alloc(n_bytes);
    if (fault_here()) return no_memory(n_bytes);
    void *moved = realloc(p, n_bytes ? n_bytes : 1);
    if (!moved) return no_memory(n_bytes);
    atomic_fetch_add_explicit(&n_allocs, 1, RELAXED);
    return moved;
}

void *mem_aligned(size_t align, size_t n_bytes)
{
    if (fault_here()) return no_memory(n_bytes);
    void *p = NULL;
    if (align < sizeof(void *)) align = sizeof(void *);
    if (posix_memalign(&p, align, n_bytes ? n_bytes : 1) != 0) p = NULL;
    return counted(p, n_bytes);
}

void *mem_dup(const void *p, size_t n_bytes)
{
    void *copy = mem_alloc(n_bytes);
    if (copy && n_bytes) memcpy(copy, p, n_bytes);
    return copy;
}

char *mem_strdup(const char *s) { return mem_dup(s, strlen(s) + 1); }

void mem_free(void *p)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&n_live, 1, RELAXED);
    free(p);
}
