/* buffer.c: memory of arrays (see buffer.h). Owns the reuse cache and the memory counters of the
 * process.
 *
 * Sizes are rounded up to classes, eight to a doubling, so that buffers of slowly growing arrays
 * are reused (waste: at most 1/8). A released buffer goes to the list of its class and to the
 * young end of one list by age; when the cache is over its limit the oldest are freed, outside
 * the lock, since giving big memory back takes long. */
#include "array/core/buffer.h"
#include <sys/mman.h>
#include "base/status.h"
#include "base/thread.h"

#define HUGE_BYTES ((size_t)2 << 20)
#define ALIGN_BYTES 64
#define MAX_BYTES ((size_t)1 << 62)
#define N_CLASSES 512
#define DEFAULT_CACHE_BYTES ((int64_t)256 << 20)

/* One per process by intent: what is limited and counted is the process's memory. */
static struct {
    lock guard;
    buffer *list[N_CLASSES];
    buffer *oldest, *newest;
    int64_t cache_limit, limit; /* limit 0: none */
    int64_t active, cached, peak;
} mem = {.guard = {PTHREAD_MUTEX_INITIALIZER, RANK_BUFFER}, .cache_limit = DEFAULT_CACHE_BYTES};

static atomic_int_least64_t n_nodes, n_live_nodes, n_plans;

/* --- size classes --- */

/* Rounds *n up to its class and gives the class's number: 64, 128 .. 512, then eight steps to
 * each doubling. */
static int size_class(size_t *n)
{
    if (*n <= 8 * ALIGN_BYTES) {
        size_t k = *n ? (*n + ALIGN_BYTES - 1) / ALIGN_BYTES : 1;
        *n = k * ALIGN_BYTES;
        return (int)k;
    }
    int p = 63 - __builtin_clzll((unsigned long long)*n - 1); /* 2^p < n <= 2^(p + 1) */
    size_t step = (size_t)1 << (p - 3), k = (*n - ((size_t)1 << p) + step - 1) / step;
    *n = ((size_t)1 << p) + k * step;
    return 8 + (p - 9) * 8 + (int)k;
}

/* --- the cache, under the lock --- */

static void unlink_cached(buffer *b)
{
    size_t n = b->n_bytes;
    buffer **head = &mem.list[size_class(&n)];
    *(b->prev ? &b->prev->next : head) = b->next;
    if (b->next) b->next->prev = b->prev;
    *(b->older ? &b->older->newer : &mem.oldest) = b->newer;
    *(b->newer ? &b->newer->older : &mem.newest) = b->older;
    b->next = b->prev = b->older = b->newer = NULL;
    mem.cached -= (int64_t)b->n_bytes;
}

static void link_cached(buffer *b)
{
    size_t n = b->n_bytes;
    buffer **head = &mem.list[size_class(&n)];
    b->prev = NULL;
    b->next = *head;
    if (*head) (*head)->prev = b;
    *head = b;
    b->newer = NULL;
    b->older = mem.newest;
    *(mem.newest ? &mem.newest->newer : &mem.oldest) = b;
    mem.newest = b;
    mem.cached += (int64_t)b->n_bytes;
}

/* Takes the oldest out until the cache holds at most n_bytes; gives them chained by `next`. */
static buffer *evict(int64_t n_bytes)
{
    buffer *out = NULL;
    while (mem.cached > n_bytes && mem.oldest) {
        buffer *b = mem.oldest;
        unlink_cached(b);
        b->next = out;
        out = b;
    }
    return out;
}

static void count_active(int64_t n)
{
    mem.active += n;
    if (mem.active > mem.peak) mem.peak = mem.active;
}

/* --- outside the lock --- */

static void free_chain(buffer *b)
{
    while (b) {
        buffer *next = b->next;
        mem_free(b->ptr);
        mem_free(b);
        b = next;
    }
}

static buffer *fresh(size_t n_bytes)
{
    bool huge = n_bytes >= HUGE_BYTES;
    buffer *b = mem_calloc(1, sizeof *b);
    if (!b) return NULL;
    b->ptr = mem_aligned(huge ? HUGE_BYTES : ALIGN_BYTES, n_bytes);
    if (!b->ptr) {
        mem_free(b);
        return NULL;
    }
    if (huge) (void)madvise(b->ptr, n_bytes, MADV_HUGEPAGE); /* a hint */
    b->n_bytes = n_bytes;
    return b;
}

/* The same; failure is not recorded yet, since what the cache holds may be what is missing. */
static buffer *fresh_or_evict(size_t n_bytes)
{
    status_record quiet;
    status_push(&quiet);
    buffer *b = fresh(n_bytes);
    ig_error_clear();
    (void)status_pop(&quiet);
    if (b) return b;
    ig_memory_clear_cache();
    return fresh(n_bytes);
}

static ig_status over_limit(size_t n_bytes, int64_t active, int64_t limit)
{
    return ig_fail(IG_ENOMEM, "%zu bytes asked, %lld in use, over the memory limit of %lld bytes",
                   n_bytes, (long long)active, (long long)limit);
}

/* Counts n_bytes as active and finds a cached buffer for them, or none (*ret_b NULL). With a
 * limit, cached memory makes room. */
static ig_status reserve(size_t n_bytes, int class, buffer **ret_b)
{
    lock_take(&mem.guard);
    int64_t n = (int64_t)n_bytes, active = mem.active, limit = mem.limit;
    if (limit && n > limit - active) {
        lock_drop(&mem.guard);
        return over_limit(n_bytes, active, limit);
    }
    buffer *b = mem.list[class], *evicted = NULL;
    if (b)
        unlink_cached(b);
    else if (limit)
        evicted = evict(limit - active - n);
    count_active(n);
    lock_drop(&mem.guard);
    free_chain(evicted);
    *ret_b = b;
    return IG_OK;
}

static void unreserve(size_t n_bytes)
{
    lock_take(&mem.guard);
    mem.active -= (int64_t)n_bytes;
    lock_drop(&mem.guard);
}

ig_status buffer_new(size_t n_bytes, buffer **ret_buffer)
{
    if (n_bytes > MAX_BYTES) return ig_fail(IG_ENOMEM, "out of memory: %zu bytes", n_bytes);
    int class = size_class(&n_bytes);
    buffer *b = NULL;
    TRY(reserve(n_bytes, class, &b));
    if (!b) b = fresh_or_evict(n_bytes);
    if (!b) {
        unreserve(n_bytes);
        return IG_ENOMEM;
    }
    atomic_init(&b->refs, 1);
    *ret_buffer = b;
    return IG_OK;
}

ig_status buffer_adopt(const void *data, size_t n_bytes, void (*free_fn)(void *user), void *user,
                       buffer **ret_buffer)
{
    buffer *b = mem_calloc(1, sizeof *b);
    if (!b) return IG_ENOMEM;
    atomic_init(&b->refs, 1);
    b->ptr = (char *)(uintptr_t)data; /* never written: eval.c donates no adopted buffer */
    b->n_bytes = n_bytes;
    b->free_fn = free_fn;
    b->user = user;
    b->adopted = true;
    *ret_buffer = b;
    return IG_OK;
}

buffer *buffer_hold(buffer *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void buffer_drop(buffer *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    if (b->adopted) {
        if (b->free_fn) b->free_fn(b->user);
        mem_free(b);
        return;
    }
    lock_take(&mem.guard);
    mem.active -= (int64_t)b->n_bytes;
    buffer *out = b;
    b->next = NULL;
    if ((int64_t)b->n_bytes <= mem.cache_limit) {
        link_cached(b);
        out = evict(mem.cache_limit);
    }
    lock_drop(&mem.guard);
    free_chain(out);
}

/* --- counters and limits --- */

void memory_count_node(int64_t made, int64_t live)
{
    atomic_fetch_add_explicit(&n_nodes, made, memory_order_relaxed);
    atomic_fetch_add_explicit(&n_live_nodes, live, memory_order_relaxed);
}

void memory_count_plan(void) { atomic_fetch_add_explicit(&n_plans, 1, memory_order_relaxed); }

void ig_memory_counters(ig_counters *ret_counters)
{
    lock_take(&mem.guard);
    *ret_counters = (ig_counters){
        .active_bytes = mem.active,
        .cache_bytes = mem.cached,
        .peak_bytes = mem.peak,
        .n_nodes = atomic_load(&n_nodes),
        .n_live_nodes = atomic_load(&n_live_nodes),
        .n_allocs = mem_n_allocs(),
        .n_plans = atomic_load(&n_plans),
    };
    lock_drop(&mem.guard);
}

void ig_memory_reset_peak(void)
{
    lock_take(&mem.guard);
    mem.peak = mem.active;
    lock_drop(&mem.guard);
}

void ig_memory_set_limit(int64_t n_bytes)
{
    lock_take(&mem.guard);
    mem.limit = n_bytes > 0 ? n_bytes : 0;
    lock_drop(&mem.guard);
}

void ig_memory_set_cache_limit(int64_t n_bytes)
{
    lock_take(&mem.guard);
    mem.cache_limit = n_bytes > 0 ? n_bytes : 0;
    buffer *out = evict(mem.cache_limit);
    lock_drop(&mem.guard);
    free_chain(out);
}

void ig_memory_clear_cache(void)
{
    lock_take(&mem.guard);
    buffer *out = evict(0);
    lock_drop(&mem.guard);
    free_chain(out);
}
