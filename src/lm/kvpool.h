/* kvpool.h: the ledger of KV pages: who holds which, which hold a known prefix, which may be
 * taken.
 *
 * A page is free, held by one or more sessions, or cached (held by nobody, content known by key).
 * Cached pages count as free: the least recently used goes first. Numbers only; the bytes are the
 * caller's. One thread. */
#ifndef LM_KVPOOL_H
#define LM_KVPOOL_H
#include "base/mem.h"

#define KVPOOL_KEY_N 32
typedef struct kvpool_key {
    uint8_t b[KVPOOL_KEY_N];
} kvpool_key; /* SHA-256 of tenant and all tokens up to the page's end */

typedef struct kvpool kvpool;
IG_MUST_USE ig_status kvpool_new(int32_t n_pages, kvpool **ret_pool);
void kvpool_free(kvpool *p);
/* Takes n pages, or none: IG_EBUSY with the numbers. */
IG_MUST_USE ig_status kvpool_take(kvpool *p, int32_t n, int32_t *ret_pages);
/* The page that holds key, with a reference for the caller; -1 when unknown. */
int32_t kvpool_match(kvpool *p, const kvpool_key *key);
/* The content of a held page is complete and belongs to key; ignored if another page has it. */
void kvpool_publish(kvpool *p, int32_t page, const kvpool_key *key);
/* Gives a reference back. */
void kvpool_release(kvpool *p, int32_t page);
int32_t kvpool_n_pages(const kvpool *p);
int32_t kvpool_n_free(const kvpool *p); /* takeable: free and cached */
int32_t kvpool_n_cached(const kvpool *p);
#endif
