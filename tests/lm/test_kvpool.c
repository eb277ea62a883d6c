/* test_kvpool.c: the ledger of pages against a slow one that knows everything. */
#include "base/threefry.h"
#include "lm/kvpool.h"
#include "support/test.h"
#include "support/walk.h"

#define N_PAGES 12
#define N_KEYS 20
#define N_HELD 64

/* What must be true of a page: references, and the key that its content was published under. */
typedef struct fact {
    int n_refs, key; /* key -1: none */
    int64_t used;    /* when it was last let go */
} fact;

typedef struct ledger {
    kvpool *pool;
    fact page[N_PAGES];
    int held[N_HELD], n_held;
    int64_t now;
    uint32_t turn;
} ledger;

static uint32_t draw(ledger *l, uint32_t n)
{
    uint32_t out[2];
    threefry2x32((const uint32_t[2]){9, 9}, (const uint32_t[2]){l->turn++, 0}, out);
    return out[0] % n;
}

/* Keys that share hash buckets: only the last byte differs, and a few bits of the first word. */
static kvpool_key key_of(int i)
{
    kvpool_key k = {{0}};
    k.b[0] = (uint8_t)(i % 3);
    k.b[KVPOOL_KEY_N - 1] = (uint8_t)i;
    return k;
}

static int page_with(const ledger *l, int key)
{
    for (int i = 0; i < N_PAGES; i++)
        if (l->page[i].key == key) return i;
    return -1;
}

static void take(ledger *l)
{
    int32_t got[N_PAGES], n = (int32_t)draw(l, 5), n_free = kvpool_n_free(l->pool);
    if (l->n_held + n > N_HELD) return;
    if (n > n_free) {
        assert_fails(kvpool_take(l->pool, n, got), IG_EBUSY, "KV pages needed");
        return;
    }
    assert_ok(kvpool_take(l->pool, n, got));
    for (int i = 0; i < n; i++) {
        fact *f = &l->page[got[i]];
        assert_int_equal(f->n_refs, 0);
        for (int j = 0; j < N_PAGES && f->key >= 0;
             j++) { /* a known prefix goes last, oldest first */
            const fact *other = &l->page[j];
            assert_false(other->n_refs == 0 && other->key < 0 && j != got[i]);
            if (other->n_refs == 0 && j != got[i]) assert_true(other->used > f->used);
        }
        *f = (fact){1, -1, 0};
        l->held[l->n_held++] = got[i];
    }
}

static void match(ledger *l)
{
    int key = (int)draw(l, N_KEYS);
    if (l->n_held == N_HELD) return;
    const kvpool_key k = key_of(key);
    int32_t page = kvpool_match(l->pool, &k);
    assert_int_equal(page, page_with(l, key));
    if (page < 0) return;
    l->page[page].n_refs++;
    l->held[l->n_held++] = page;
}

static void publish(ledger *l)
{
    if (!l->n_held) return;
    int page = l->held[draw(l, (uint32_t)l->n_held)], key = (int)draw(l, N_KEYS);
    kvpool_key k = key_of(key);
    kvpool_publish(l->pool, page, &k);
    if (l->page[page].key < 0 && page_with(l, key) < 0) l->page[page].key = key;
}

static void release(ledger *l)
{
    if (!l->n_held) return;
    uint32_t i = draw(l, (uint32_t)l->n_held);
    int page = l->held[i];
    l->held[i] = l->held[--l->n_held];
    kvpool_release(l->pool, page);
    l->page[page].n_refs--;
    l->page[page].used = ++l->now;
}

static void count(const ledger *l)
{
    int n_free = 0, n_cached = 0;
    for (int i = 0; i < N_PAGES; i++) {
        n_free += l->page[i].n_refs == 0;
        n_cached += l->page[i].n_refs == 0 && l->page[i].key >= 0;
    }
    assert_int_equal(kvpool_n_free(l->pool), n_free);
    assert_int_equal(kvpool_n_cached(l->pool), n_cached);
    assert_int_equal(kvpool_n_pages(l->pool), N_PAGES);
}

TEST(pages_references_and_prefixes_are_counted_exactly)
{
    static void (*const ops[])(ledger *) = {take, match, match, publish, release, release};
    ledger l = {0};
    for (int i = 0; i < N_PAGES; i++) l.page[i] = (fact){0, -1, 0};
    assert_ok(kvpool_new(N_PAGES, &l.pool));
    for (int i = 0; i < 50000; i++) {
        ops[draw(&l, sizeof ops / sizeof ops[0])](&l);
        count(&l);
    }
    while (l.n_held) release(&l);
    assert_int_equal(kvpool_n_free(l.pool), N_PAGES);
    kvpool_free(l.pool);
}

TEST(a_pool_has_at_least_one_page)
{
    kvpool *p = NULL;
    assert_fails(kvpool_new(0, &p), IG_EINVAL, "at least one page");
    assert_fails(kvpool_new(-5, &p), IG_EINVAL, "-5");
    assert_null(p);
}

TEST(pages_are_taken_all_or_none)
{
    kvpool *p = NULL;
    int32_t got[4] = {-1, -1, -1, -1};
    assert_ok(kvpool_new(3, &p));
    assert_fails(kvpool_take(p, 4, got), IG_EBUSY, "4 KV pages needed, 3 of 3 free");
    assert_int_equal(kvpool_n_free(p), 3);
    assert_int_equal(got[0], -1);
    assert_ok(kvpool_take(p, 3, got));
    assert_int_equal(kvpool_n_free(p), 0);
    kvpool_free(p);
}

static ig_status make(void *user)
{
    kvpool *p = NULL;
    (void)user;
    ig_status s = kvpool_new(100, &p);
    kvpool_free(p);
    return s;
}

TEST(a_pool_that_finds_no_memory_leaves_nothing) { assert_int_equal(walk_memory(make, NULL), 3); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pages_references_and_prefixes_are_counted_exactly),
        CASE(a_pool_has_at_least_one_page),
        CASE(pages_are_taken_all_or_none),
        CASE(a_pool_that_finds_no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
