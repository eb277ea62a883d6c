/* kvpool.c: see kvpool.h. All memory is taken at birth: an array of pages, doubly linked lists
 * through it, hash chains by key. */
#include "lm/kvpool.h"
#include <string.h>

#define NONE (-1)

typedef struct page {
    int32_t n_refs;
    int32_t prev, next; /* in the free list or the cached list, while n_refs is 0 */
    int32_t chain;      /* next page of the same hash bucket */
    bool keyed;
    kvpool_key key;
} page;

typedef struct list {
    int32_t head, tail, n;
} list;

struct kvpool {
    page *page;      /* owned */
    int32_t *bucket; /* owned: [n_pages] first page of a chain */
    int32_t n_pages;
    list unused; /* free, without key */
    list cached; /* n_refs 0 and keyed; head is the least recently used */
};

static void list_remove(kvpool *p, list *l, int32_t i)
{
    page *x = &p->page[i];
    if (x->prev != NONE)
        p->page[x->prev].next = x->next;
    else
        l->head = x->next;
    if (x->next != NONE)
        p->page[x->next].prev = x->prev;
    else
        l->tail = x->prev;
    l->n--;
}

static void list_append(kvpool *p, list *l, int32_t i)
{
    page *x = &p->page[i];
    x->prev = l->tail;
    x->next = NONE;
    if (l->tail != NONE)
        p->page[l->tail].next = i;
    else
        l->head = i;
    l->tail = i;
    l->n++;
}

static int32_t *bucket_of(const kvpool *p, const kvpool_key *key)
{
    uint64_t h;
    memcpy(&h, key->b, sizeof h);
    return &p->bucket[h % (uint64_t)p->n_pages];
}

static int32_t find(const kvpool *p, const kvpool_key *key)
{
    int32_t i = *bucket_of(p, key);
    while (i != NONE && memcmp(&p->page[i].key, key, sizeof *key)) i = p->page[i].chain;
    return i;
}

static void forget_key(kvpool *p, int32_t i)
{
    int32_t *at = bucket_of(p, &p->page[i].key);
    while (*at != i) at = &p->page[*at].chain;
    *at = p->page[i].chain;
    p->page[i].keyed = false;
}

ig_status kvpool_new(int32_t n_pages, kvpool **ret_pool)
{
    if (n_pages < 1)
        return ig_fail(IG_EINVAL, "a KV pool needs at least one page, not %d", n_pages);
    kvpool *p = mem_calloc(1, sizeof *p);
    if (!p) return IG_ENOMEM;
    p->page = mem_calloc((size_t)n_pages, sizeof *p->page);
    p->bucket = mem_calloc((size_t)n_pages, sizeof *p->bucket);
    if (!p->page || !p->bucket) {
        kvpool_free(p);
        return IG_ENOMEM;
    }
    p->n_pages = n_pages;
    p->unused = p->cached = (list){NONE, NONE, 0};
    for (int32_t i = 0; i < n_pages; i++) {
        p->bucket[i] = NONE;
        list_append(p, &p->unused, i);
    }
    *ret_pool = p;
    return IG_OK;
}

void kvpool_free(kvpool *p)
{
    if (!p) return;
    mem_free(p->page);
    mem_free(p->bucket);
    mem_free(p);
}

static int32_t take_one(kvpool *p)
{
    list *l = p->unused.n ? &p->unused : &p->cached;
    int32_t i = l->head;
    list_remove(p, l, i);
    if (p->page[i].keyed) forget_key(p, i);
    p->page[i].n_refs = 1;
    return i;
}

ig_status kvpool_take(kvpool *p, int32_t n, int32_t *ret_pages)
{
    if (n > kvpool_n_free(p))
        return ig_fail(IG_EBUSY, "%d KV pages needed, %d of %d free: wait for a request to end", n,
                       kvpool_n_free(p), p->n_pages);
    for (int32_t k = 0; k < n; k++) ret_pages[k] = take_one(p);
    return IG_OK;
}

int32_t kvpool_match(kvpool *p, const kvpool_key *key)
{
    int32_t i = find(p, key);
    if (i == NONE) return NONE;
    if (!p->page[i].n_refs++) list_remove(p, &p->cached, i);
    return i;
}

void kvpool_publish(kvpool *p, int32_t i, const kvpool_key *key)
{
    if (p->page[i].keyed || find(p, key) != NONE) return;
    int32_t *bucket = bucket_of(p, key);
    p->page[i].key = *key;
    p->page[i].keyed = true;
    p->page[i].chain = *bucket;
    *bucket = i;
}

void kvpool_release(kvpool *p, int32_t i)
{
    if (--p->page[i].n_refs) return;
    list_append(p, p->page[i].keyed ? &p->cached : &p->unused, i);
}

int32_t kvpool_n_pages(const kvpool *p) { return p->n_pages; }

int32_t kvpool_n_free(const kvpool *p) { return p->unused.n + p->cached.n; }

int32_t kvpool_n_cached(const kvpool *p) { return p->cached.n; }
