/* mem.h: the only way to the heap. Every allocation can be made to fail on demand (tests walk N up
 * until the operation succeeds), and is counted. NULL means failure, recorded as IG_ENOMEM. */
#ifndef BASE_MEM_H
#define BASE_MEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/auto.h"

void *mem_alloc(size_t n_bytes);            /* uninitialised; n_bytes 0 gives a unique pointer */
void *mem_calloc(size_t n, size_t size);    /* zeroed; the product is checked */
void *mem_realloc(void *p, size_t n_bytes); /* on failure p stays valid */
void *mem_aligned(size_t align, size_t n_bytes); /* align a power of two; free with mem_free */
char *mem_strdup(const char *s);
void *mem_dup(const void *p, size_t n_bytes);
void mem_free(void *p);            /* NULL is fine */
AUTO_FN(mem_ptr, void *, mem_free) /* AUTO(mem_ptr) p = ... */
AUTO_FN(mem_str, char *, mem_free) /* AUTO(mem_str) s = ... */

/* Checked products and sums of sizes that came from outside: false on overflow, *ret untouched. */
static inline bool mem_mul(size_t a, size_t b, size_t *ret)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *ret = r;
    return true;
}
static inline bool mem_add(size_t a, size_t b, size_t *ret)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *ret = r;
    return true;
}

/* Fault injection: the n-th allocation from now (1 = the next) fails; 0 disarms. `sticky` fails all
 * later ones too. Thread-safe. */
void mem_fault_arm(int64_t n, bool sticky);
int64_t mem_fault_hits(void); /* how many allocations were failed since arming */
int64_t mem_n_allocs(void);   /* allocations made by this process so far */
int64_t mem_n_live(void);     /* allocations not yet freed */
#endif
