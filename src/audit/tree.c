/* tree.c owns the arithmetic of the Merkle tree: hashing, compact range, proofs and their checks.
 *
 * Proofs follow RFC 6962 2.1.1 and 2.1.2 and are written as loops over (lo, hi) halves; the checks
 * are those of RFC 9162 2.1.3.2 and 2.1.4.2. Sizes come from files, so nothing here assumes that an
 * index is below its size. */
#include "audit/tree.h"

#include <string.h>

void tree_hash_leaf(const void *entry, size_t n, tree_hash *ret_hash)
{
    static const uint8_t prefix = 0x00;
    sha256_pair(&prefix, 1, entry, n, ret_hash->b);
}

void tree_hash_node(const tree_hash *left, const tree_hash *right, tree_hash *ret_hash)
{
    uint8_t both[1 + 2 * SHA256_N];
    both[0] = 0x01;
    memcpy(both + 1, left->b, SHA256_N);
    memcpy(both + 1 + SHA256_N, right->b, SHA256_N);
    sha256(both, sizeof both, ret_hash->b);
}

bool tree_hash_eq(const tree_hash *a, const tree_hash *b)
{
    return memcmp(a->b, b->b, SHA256_N) == 0;
}

void tree_range_add(tree_range *r, const tree_hash *leaf)
{
    tree_hash h = *leaf;
    for (uint64_t s = r->size; s & 1; s >>= 1) tree_hash_node(&r->hashes[--r->n], &h, &h);
    r->hashes[r->n++] = h;
    r->size++;
}

void tree_range_root(const tree_range *r, tree_hash *ret_root)
{
    if (r->n == 0) {
        sha256("", 0, ret_root->b);
        return;
    }
    tree_hash h = r->hashes[r->n - 1];
    for (size_t i = r->n - 1; i-- > 0;) tree_hash_node(&r->hashes[i], &h, &h);
    *ret_root = h;
}

/* Largest power of two below n, as an exponent; n >= 2. */
static unsigned split(uint64_t n) { return 63u - (unsigned)__builtin_clzll(n - 1); }

/* Root of the leaves [lo, hi) of a larger tree; lo is a multiple of the largest power of two that
 * such a range needs, which every caller's halving guarantees. */
static ig_status range_root(tree_node_fn node, void *user, uint64_t lo, uint64_t hi,
                            tree_hash *ret_hash)
{
    tree_hash left[64];
    size_t n = 0;
    for (uint64_t rest = hi - lo; rest;) {
        unsigned level = 63u - (unsigned)__builtin_clzll(rest);
        TRY(node(user, level, lo >> level, &left[n]));
        n++;
        lo += (uint64_t)1 << level;
        rest -= (uint64_t)1 << level;
    }
    tree_hash h = left[n - 1];
    for (size_t i = n - 1; i-- > 0;) tree_hash_node(&left[i], &h, &h);
    *ret_hash = h;
    return IG_OK;
}

static void reverse(tree_proof *p)
{
    for (size_t i = 0, j = p->n; i + 1 < j; i++) {
        j--;
        tree_hash t = p->hashes[i];
        p->hashes[i] = p->hashes[j];
        p->hashes[j] = t;
    }
}

ig_status tree_prove_inclusion(tree_node_fn node, void *user, uint64_t size, uint64_t index,
                               tree_proof *ret_proof)
{
    if (index >= size || size > TREE_MAX_SIZE)
        return ig_fail(IG_EINVAL, "entry %llu is not in a tree of %llu entries",
                       (unsigned long long)index, (unsigned long long)size);
    tree_proof p = {0};
    for (uint64_t lo = 0, hi = size; hi - lo > 1;) {
        uint64_t mid = lo + ((uint64_t)1 << split(hi - lo));
        bool right = index >= mid;
        TRY(range_root(node, user, right ? lo : mid, right ? mid : hi, &p.hashes[p.n]));
        p.n++;
        if (right)
            lo = mid;
        else
            hi = mid;
    }
    reverse(&p); /* collected from the root down; a proof runs from the leaf up */
    *ret_proof = p;
    return IG_OK;
}

ig_status tree_prove_consistency(tree_node_fn node, void *user, uint64_t old_size,
                                 uint64_t new_size, tree_proof *ret_proof)
{
    if (old_size > new_size || new_size > TREE_MAX_SIZE)
        return ig_fail(IG_EINVAL, "a tree of %llu entries is not the past of one of %llu",
                       (unsigned long long)old_size, (unsigned long long)new_size);
    tree_proof p = {0};
    bool whole = true; /* [lo, hi) has been whole in the old tree all the way down */
    uint64_t lo = 0, hi = new_size;
    while (old_size != 0 && old_size != hi) {
        uint64_t mid = lo + ((uint64_t)1 << split(hi - lo));
        bool right = old_size > mid;
        TRY(range_root(node, user, right ? lo : mid, right ? mid : hi, &p.hashes[p.n]));
        p.n++;
        if (right) {
            lo = mid;
            whole = false;
        } else {
            hi = mid;
        }
    }
    if (!whole) {
        TRY(range_root(node, user, lo, hi, &p.hashes[p.n]));
        p.n++;
    }
    reverse(&p);
    *ret_proof = p;
    return IG_OK;
}

bool tree_check_inclusion(const tree_proof *proof, uint64_t size, const tree_hash *root,
                          uint64_t index, const tree_hash *leaf)
{
    if (index >= size || proof->n > TREE_MAX_PROOF) return false;
    uint64_t fn = index, sn = size - 1;
    tree_hash r = *leaf;
    for (size_t i = 0; i < proof->n; i++) {
        if (sn == 0) return false;
        if ((fn & 1) || fn == sn) {
            tree_hash_node(&proof->hashes[i], &r, &r);
            while (!(fn & 1) && fn != 0) {
                fn >>= 1;
                sn >>= 1;
            }
        } else {
            tree_hash_node(&r, &proof->hashes[i], &r);
        }
        fn >>= 1;
        sn >>= 1;
    }
    return sn == 0 && tree_hash_eq(&r, root);
}

bool tree_check_consistency(const tree_proof *proof, uint64_t old_size, const tree_hash *old_root,
                            uint64_t new_size, const tree_hash *new_root)
{
    if (old_size > new_size || proof->n > TREE_MAX_CONSISTENCY) return false;
    if (old_size == new_size) return proof->n == 0 && tree_hash_eq(old_root, new_root);
    if (old_size == 0) {
        tree_hash empty = {{0}};
        sha256("", 0, empty.b);
        return proof->n == 0 && tree_hash_eq(old_root, &empty);
    }
    uint64_t fn = old_size - 1, sn = new_size - 1;
    size_t i = 0;
    while (fn & 1) {
        fn >>= 1;
        sn >>= 1;
    }
    /* When the old tree is one complete subtree, its root starts the path and is not in the
     * proof. */
    if (fn != 0 && proof->n == 0) return false;
    tree_hash fr = fn == 0 ? *old_root : proof->hashes[i++];
    tree_hash sr = fr;
    for (; i < proof->n; i++) {
        if (sn == 0) return false;
        if ((fn & 1) || fn == sn) {
            tree_hash_node(&proof->hashes[i], &fr, &fr);
            tree_hash_node(&proof->hashes[i], &sr, &sr);
            while (!(fn & 1) && fn != 0) {
                fn >>= 1;
                sn >>= 1;
            }
        } else {
            tree_hash_node(&sr, &proof->hashes[i], &sr);
        }
        fn >>= 1;
        sn >>= 1;
    }
    return sn == 0 && tree_hash_eq(&fr, old_root) && tree_hash_eq(&sr, new_root);
}

void tree_fold(tree_hash *hashes, unsigned height)
{
    for (size_t n = (size_t)1 << height; n > 1; n >>= 1)
        for (size_t i = 0; i < n; i += 2)
            tree_hash_node(&hashes[i], &hashes[i + 1], &hashes[i / 2]);
}

unsigned tree_edge_width(uint64_t size, unsigned tile_level)
{
    return (unsigned)((size >> (TREE_TILE_HEIGHT * tile_level)) % TREE_TILE_WIDTH);
}

ig_status tree_edge_add(tree_edge *e, const tree_hash *leaf, tree_tile_fn full, void *user)
{
    tree_hash h = *leaf;
    uint64_t index = e->size; /* of h within its level */
    for (unsigned level = 0; level < TREE_N_LEVELS; level++) {
        tree_hash *tile = e->tiles[level];
        tile[index % TREE_TILE_WIDTH] = h;
        if (index % TREE_TILE_WIDTH != TREE_TILE_WIDTH - 1) break;
        index /= TREE_TILE_WIDTH;
        TRY(full(user, level, index, tile));
        tree_fold(tile, TREE_TILE_HEIGHT); /* the tile is empty from here on */
        h = tile[0];
    }
    e->size++;
    return IG_OK;
}
