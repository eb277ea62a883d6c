/* store.h: a log directory as it is read: segments scanned from the first byte, tree, place of
 * every leaf, checkpoints. Shared by the running log, by readers and by verification.
 *
 *   log.vkey               the log's public key, for convenience; trust comes from elsewhere
 *   lock                   held while a server has the log open
 *   segments/<first>.seg   the evidence; <first> is the index of its first leaf, 20 digits
 *   segments/next.seg      preallocated, empty
 *   checkpoint tile/...    what tlog-tiles serves; derived
 *
 * A store is made by one thread; afterwards the functions marked "any thread" may run beside one
 * writer. */
#ifndef AUDIT_STORE_H
#define AUDIT_STORE_H
#include "audit/checkpoint.h"
#include "audit/segment.h"
#include "audit/tile.h"
#include "audit/tree.h"
#include "base/progress.h"
#include "base/thread.h"

#define STORE_MAX_SEGMENTS ((size_t)1 << 20)
#define STORE_STRIDE 16 /* the place of every 16th leaf is kept in memory */

typedef struct store_segment {
    uint64_t first; /* index of its first leaf */
    size_t used;    /* bytes up to the end of the last whole record */
    size_t n_bytes; /* of the file */
} store_segment;

typedef struct store_place {
    uint32_t segment;
    uint32_t offset; /* of a leaf record */
} store_place;

/* What a scan found after the last whole record. */
typedef struct store_tail {
    size_t torn;          /* bytes from there to the last byte that is not zero; 0 is a clean end */
    uint64_t signed_size; /* of the largest checkpoint known */
} store_tail;

typedef struct store {
    char *dir;
    log_vkey vkey;
    lock lock; /* guards what follows, once a writer runs */
    store_segment *segments;
    size_t n_segments, cap_segments;
    store_place *places;
    size_t n_places, cap_places;
    tree_range range;
    tree_edge *edge;
    checkpoint latest; /* largest signed one; size 0 when none */
    buf latest_note;
    store_tail tail;
} store;

/* Callbacks of a scan; each may be NULL. A failing one ends the scan. */
typedef struct store_hooks {
    void *user;
    ig_status (*leaf)(void *user, uint64_t index, str leaf, const tree_hash *hash);
    ig_status (*tile)(void *user, unsigned level, uint64_t index, const tree_hash *hashes);
    ig_status (*note)(void *user, const char *where, str note, const checkpoint *c);
    progress_fn progress;
    void *progress_user;
} store_hooks;

/* Scans dir. Every record must be whole and in order up to the largest signed size, every
 * checkpoint must match the tree; else IG_EVERIFY, naming segment, offset and index. Damage behind
 * the signed size is reported in `tail`, not an error. An empty or missing directory is
 * IG_ENOTFOUND. */
IG_MUST_USE ig_status store_open(const char *dir, const log_vkey *vkey, const store_hooks *hooks,
                                 store **ret_store);
void store_free(store *s);
AUTO_FN(store_ptr, store *, store_free)

/* Path of the segment that starts with this leaf; initialises ret_path. */
IG_MUST_USE ig_status store_segment_path(const char *dir, uint64_t first, buf *ret_path);

/* Writer only: notes a segment, a leaf that became durable, a new checkpoint. */
IG_MUST_USE ig_status store_add_segment(store *s, uint64_t first, size_t n_bytes);
IG_MUST_USE ig_status store_add_leaf(store *s, const tree_hash *leaf, size_t offset,
                                     tree_tile_fn full, void *user);
IG_MUST_USE ig_status store_set_latest(store *s, const checkpoint *c, str note);

/* Any thread. */
uint64_t store_size(store *s);
IG_MUST_USE ig_status store_leaf(store *s, uint64_t index,
                                 buf *ret_leaf); /* initialises ret_leaf */
/* The index of the done event of a request id; reads the log from its start. */
IG_MUST_USE ig_status store_find_done(store *s, const char *req, uint64_t *ret_index);
/* Copies the largest signed checkpoint; IG_ENOTFOUND when nothing was signed yet. Initialises
 * ret_note. */
IG_MUST_USE ig_status store_latest(store *s, checkpoint *ret_checkpoint, buf *ret_note);
IG_MUST_USE ig_status store_prove_inclusion(store *s, uint64_t size, uint64_t index,
                                            tree_proof *ret_proof);
IG_MUST_USE ig_status store_prove_consistency(store *s, uint64_t old_size, uint64_t new_size,
                                              tree_proof *ret_proof);
/* The hashes of a tile, from memory, file or, where the file is missing, from the leaves. */
IG_MUST_USE ig_status store_tile(store *s, unsigned level, uint64_t index,
                                 tree_hash ret_hashes[TREE_TILE_WIDTH]);
/* The bundle of n leaves from first on; initialises ret_bundle. */
IG_MUST_USE ig_status store_bundle(store *s, uint64_t first, unsigned n, buf *ret_bundle);
#endif
