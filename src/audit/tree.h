/* tree.h: the Merkle tree of RFC 6962 over SHA-256, as C2SP tlog-tiles uses it.
 *
 * leaf = H(00 || entry), node = H(01 || left || right), empty tree = H(""). A tree only grows; what
 * has been hashed never changes. Nothing here touches files: nodes are read through a callback. */
#ifndef AUDIT_TREE_H
#define AUDIT_TREE_H
#include "base/digest.h"
#include "base/str.h"

typedef struct tree_hash {
    uint8_t b[SHA256_N];
} tree_hash;

#define TREE_MAX_ENTRY 65535 /* bytes: the length prefix of an entry bundle is 16 bits */
#define TREE_MAX_PROOF 64    /* hashes in an inclusion proof of a tree of at most 2^63 leaves */
#define TREE_MAX_CONSISTENCY 65
#define TREE_TILE_HEIGHT 8 /* a tile holds 2^8 hashes of one level */
#define TREE_TILE_WIDTH 256
#define TREE_MAX_SIZE ((uint64_t)1 << 48) /* leaves */
#define TREE_N_LEVELS 7                   /* of tiles: 256^7 > TREE_MAX_SIZE */

typedef struct tree_proof {
    size_t n;
    tree_hash hashes[TREE_MAX_CONSISTENCY];
} tree_proof;

void tree_hash_leaf(const void *entry, size_t n, tree_hash *ret_hash);
void tree_hash_node(const tree_hash *left, const tree_hash *right, tree_hash *ret_hash);
bool tree_hash_eq(const tree_hash *a, const tree_hash *b);

/* The compact range [0, size): one hash per set bit of size, largest subtree first. Enough to
 * append and to know the root. */
typedef struct tree_range {
    uint64_t size;
    size_t n;
    tree_hash hashes[64];
} tree_range;

void tree_range_add(tree_range *r, const tree_hash *leaf); /* r->size must be < TREE_MAX_SIZE */
void tree_range_root(const tree_range *r, tree_hash *ret_root);

/* Gives the hash of the complete subtree of 2^level leaves that starts at leaf index << level. */
typedef ig_status (*tree_node_fn)(void *user, unsigned level, uint64_t index, tree_hash *ret_hash);

IG_MUST_USE ig_status tree_prove_inclusion(tree_node_fn node, void *user, uint64_t size,
                                           uint64_t index, tree_proof *ret_proof);
IG_MUST_USE ig_status tree_prove_consistency(tree_node_fn node, void *user, uint64_t old_size,
                                             uint64_t new_size, tree_proof *ret_proof);

/* Checks; false means "does not prove it", whatever the bytes. Arguments may come from outside. */
bool tree_check_inclusion(const tree_proof *proof, uint64_t size, const tree_hash *root,
                          uint64_t index, const tree_hash *leaf);
bool tree_check_consistency(const tree_proof *proof, uint64_t old_size, const tree_hash *old_root,
                            uint64_t new_size, const tree_hash *new_root);

/* Folds 2^height consecutive hashes of one level to their common ancestor; hashes is
 * overwritten. */
void tree_fold(tree_hash *hashes, unsigned height);

/* The right edge of a tree cut into tiles: the incomplete tile of each level. When a tile becomes
 * full, `full` receives it (256 hashes) before its root enters the level above. */
typedef struct tree_edge {
    uint64_t size;
    tree_hash tiles[TREE_N_LEVELS][TREE_TILE_WIDTH]; /* used: (size >> 8*level) % 256 */
} tree_edge;
typedef ig_status (*tree_tile_fn)(void *user, unsigned tile_level, uint64_t tile_index,
                                  const tree_hash *hashes);
IG_MUST_USE ig_status tree_edge_add(tree_edge *e, const tree_hash *leaf, tree_tile_fn full,
                                    void *user);
/* Hashes in the incomplete tile of a level for a tree of `size` leaves. */
unsigned tree_edge_width(uint64_t size, unsigned tile_level);
#endif
