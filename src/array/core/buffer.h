/* buffer.h: memory of arrays: reference-counted, 64-byte aligned, huge pages when big, reused
 * through a bounded cache. Safe from any thread. Counters and limits are those of
 * ingot/memory.h. */
#ifndef ARRAY_BUFFER_H
#define ARRAY_BUFFER_H
#include <stdatomic.h>
#include "base/auto.h"
#include "ingot/memory.h"

typedef struct buffer {
    atomic_int refs;
    char *ptr;      /* owned: 64-byte aligned (2 MiB when n_bytes >= 2 MiB); adopted: as given */
    size_t n_bytes; /* usable bytes; owned: the size class, at least what was asked */
    void (*free_fn)(void *user); /* adopted memory only; may be NULL */
    void *user;
    bool adopted;
    struct buffer *older, *newer; /* in the cache, by time of release */
    struct buffer *next, *prev;   /* in the cache, within the size class */
} buffer;

/* Uninitialised memory. n_bytes 0 is fine. IG_ENOMEM without memory or over the limit. */
IG_MUST_USE ig_status buffer_new(size_t n_bytes, buffer **ret_buffer);
IG_MUST_USE ig_status buffer_adopt(const void *data, size_t n_bytes, void (*free_fn)(void *user),
                                   void *user, buffer **ret_buffer);
buffer *buffer_hold(buffer *b);
void buffer_drop(buffer *b); /* NULL is fine */

/* Counters kept by others. */
void memory_count_node(int64_t made, int64_t live);
void memory_count_plan(void);
#endif
