/* The Merkle tree against a direct recursion over RFC 6962's definitions. */
#include "support/test.h"
#include "audit/tree.h"

#define N 70
static tree_hash leaves[N];

/* MTH of RFC 6962 2.1, as written there. */
static tree_hash mth(size_t lo, size_t hi)
{
    tree_hash h, l, r;
    if (hi == lo) {
        sha256("", 0, h.b);
        return h;
    }
    if (hi - lo == 1) return leaves[lo];
    size_t k = 1;
    while (k * 2 < hi - lo) k *= 2;
    l = mth(lo, lo + k);
    r = mth(lo + k, hi);
    tree_hash_node(&l, &r, &h);
    return h;
}

static ig_status node(void *user, unsigned level, uint64_t index, tree_hash *ret_hash)
{
    size_t lo = (size_t)(index << level), hi = lo + ((size_t)1 << level);
    assert_in_range(hi, 1, *(size_t *)user);
    *ret_hash = mth(lo, hi);
    return IG_OK;
}

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        uint8_t b = (uint8_t)i;
        tree_hash_leaf(&b, i ? 1 : 0, &leaves[i]);
    }
    return 0;
}

static void assert_hash(const tree_hash *h, const char *hex)
{
    char text[65];
    for (size_t i = 0; i < SHA256_N; i++) snprintf(text + 2 * i, 3, "%02x", h->b[i]);
    assert_string_equal(text, hex);
}

TEST(known_hashes_of_rfc_6962)
{
    tree_hash h;
    tree_range r = {0};
    tree_range_root(&r, &h);
    assert_hash(&h, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tree_hash_leaf("", 0, &h);
    assert_hash(&h, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

TEST(the_compact_range_has_the_root_of_the_definition)
{
    tree_range r = {0};
    for (size_t n = 0; n < N; n++) {
        tree_hash got, want = mth(0, n);
        tree_range_root(&r, &got);
        assert_true(tree_hash_eq(&got, &want));
        tree_range_add(&r, &leaves[n]);
    }
}

TEST(every_inclusion_proof_checks_and_fits_no_other_place)
{
    for (size_t n = 1; n <= N; n++) {
        tree_hash root = mth(0, n);
        for (size_t i = 0; i < n; i++) {
            tree_proof p;
            assert_ok(tree_prove_inclusion(node, &n, n, i, &p));
            assert_true(tree_check_inclusion(&p, n, &root, i, &leaves[i]));
            assert_false(tree_check_inclusion(&p, n, &root, i, &leaves[(i + 1) % N]));
            if (n > 1) assert_false(tree_check_inclusion(&p, n, &root, (i + 1) % n, &leaves[i]));
            if (p.n) {
                p.hashes[p.n - 1].b[5] ^= 4;
                assert_false(tree_check_inclusion(&p, n, &root, i, &leaves[i]));
                p.hashes[p.n - 1].b[5] ^= 4;
                p.n--;
                assert_false(tree_check_inclusion(&p, n, &root, i, &leaves[i]));
            }
        }
    }
}

TEST(every_consistency_proof_checks_and_refuses_another_past)
{
    for (size_t n = 0; n <= N; n++)
        for (size_t m = 0; m <= n; m++) {
            tree_proof p;
            tree_hash a = mth(0, m), b = mth(0, n);
            assert_ok(tree_prove_consistency(node, &n, m, n, &p));
            assert_true(tree_check_consistency(&p, m, &a, n, &b));
            a.b[0] ^= 1;
            assert_false(tree_check_consistency(&p, m, &a, n, &b));
            a.b[0] ^= 1;
            b.b[0] ^= 1;
            if (m > 0) /* everything extends the empty tree */
                assert_false(tree_check_consistency(&p, m, &a, n, &b));
        }
}

TEST(proofs_outside_the_tree_are_refused)
{
    size_t n = 5;
    tree_proof p = {.n = TREE_MAX_CONSISTENCY};
    tree_hash h = {{0}};
    assert_fails(tree_prove_inclusion(node, &n, 5, 5, &p), IG_EINVAL, "not in a tree");
    assert_fails(tree_prove_consistency(node, &n, 6, 5, &p), IG_EINVAL, "not the past");
    assert_false(tree_check_inclusion(&p, 0, &h, 0, &h));
    assert_false(tree_check_inclusion(&p, UINT64_MAX, &h, UINT64_MAX - 1, &h));
    assert_false(tree_check_consistency(&p, 1, &h, UINT64_MAX, &h));
}

typedef struct tiles {
    size_t n[2];
    tree_hash last[2];
} tiles;

static ig_status on_tile(void *user, unsigned level, uint64_t index, const tree_hash *hashes)
{
    tiles *t = user;
    static tree_hash copy[TREE_TILE_WIDTH];
    assert_in_range(level, 0, 1);
    assert_int_equal(index, t->n[level]++);
    memcpy(copy, hashes, sizeof copy);
    tree_fold(copy, TREE_TILE_HEIGHT);
    t->last[level] = copy[0];
    return IG_OK;
}

TEST(an_edge_of_70000_leaves_has_the_tiles_of_the_specification)
{
    tree_edge *e = calloc(1, sizeof *e);
    tree_range r = {0};
    tiles t = {{0}, {{{0}}}};
    for (uint32_t i = 0; i < 70000; i++) {
        tree_hash h;
        tree_hash_leaf(&i, sizeof i, &h);
        assert_ok(tree_edge_add(e, &h, on_tile, &t));
        tree_range_add(&r, &h);
        if (i == 65535) assert_true(tree_hash_eq(&r.hashes[0], &t.last[1]));
    }
    assert_int_equal(t.n[0], 273);
    assert_int_equal(t.n[1], 1);
    assert_int_equal(tree_edge_width(70000, 0), 112);
    assert_int_equal(tree_edge_width(70000, 1), 17);
    assert_int_equal(tree_edge_width(70000, 2), 1);
    assert_true(tree_hash_eq(&r.hashes[0], &e->tiles[2][0]));
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(known_hashes_of_rfc_6962),
        CASE(the_compact_range_has_the_root_of_the_definition),
        CASE(every_inclusion_proof_checks_and_fits_no_other_place),
        CASE(every_consistency_proof_checks_and_refuses_another_past),
        CASE(proofs_outside_the_tree_are_refused),
        CASE(an_edge_of_70000_leaves_has_the_tiles_of_the_specification),
    };
    return cmocka_run_group_tests_name("tree", tests, setup, NULL);
}
