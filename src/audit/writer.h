/* writer.h: the only code that changes a log's files. One thread uses it, holding the log's lock.
 *
 * A piece is what one sync makes durable: the checkpoint signed after the piece before, then
 * leaves. So a stored checkpoint always stands exactly behind the leaves it signs. */
#ifndef AUDIT_WRITER_H
#define AUDIT_WRITER_H
#include "audit/store.h"

#define WRITER_MAX_PIECE 1024 /* leaves */
#define WRITER_MAX_BYTES ((size_t)4 << 20)
#define WRITER_MAX_FULL 8     /* tiles that one piece can fill: 4 + 1 per higher level, rarely */
#define WRITER_NOTE_BYTES 768 /* room for the stored checkpoint of a piece */

typedef struct writer_tile {
    unsigned level;
    uint64_t index;
    tree_hash hashes[TREE_TILE_WIDTH];
} writer_tile;

typedef struct writer {
    store *s;           /* owned */
    const log_key *key; /* borrowed */
    int lock_fd;
    int fd;         /* current segment */
    size_t used;    /* bytes of it, whole records */
    size_t n_bytes; /* of it, allocated */
    size_t segment_bytes;
    int spare_fd;       /* next.seg, allocated and empty; -1 when missing */
    buf piece;          /* reused */
    buf note;           /* signed, not yet stored; empty when stored */
    uint64_t published; /* size of the published checkpoint */
    writer_tile *full;  /* [WRITER_MAX_FULL], waiting to be written */
    size_t n_full;
    uint64_t n_syncs, n_notes, n_derived_failures;
} writer;

/* Locks dir; IG_EIO when another process has it. */
IG_MUST_USE ig_status writer_lock(const char *dir, int *ret_fd);
/* Makes the files of a new, empty log. The directory must hold none. */
IG_MUST_USE ig_status writer_create(const char *dir, const log_vkey *vkey, size_t segment_bytes);
/* Takes over a scanned store: cuts a torn tail, makes room, rewrites missing tiles. The store and
 * the lock are the writer's from here on, also on failure. */
IG_MUST_USE ig_status writer_attach(writer *w, store *s, const log_key *key, int lock_fd,
                                    size_t segment_bytes);
void writer_detach(writer *w);

/* Bytes that appends may still use: rest of the segment and the spare one. */
int64_t writer_room(const writer *w);
/* Bytes that one leaf is charged for. */
static inline int64_t writer_charge(size_t n_leaf)
{
    return (int64_t)(segment_record_size(n_leaf) + WRITER_NOTE_BYTES);
}

/* Makes up to n leaves durable: writes as many as fit the segment (at least one; rotates when
 * needed) and syncs. *ret_n says how many; ret_hashes gets their leaf hashes. Any failure is
 * final. */
IG_MUST_USE ig_status writer_commit(writer *w, const str *leaves, size_t n, size_t *ret_n,
                                    tree_hash *ret_hashes);
/* Signs everything durable. */
IG_MUST_USE ig_status writer_sign(writer *w);
/* Writes full tiles and makes a missing spare. The second fails when there is no space: not
 * final. */
void writer_derive(writer *w);
IG_MUST_USE ig_status writer_make_spare(writer *w);
/* Stores and publishes the latest checkpoint with its partial tiles. Final when it fails. */
IG_MUST_USE ig_status writer_publish(writer *w);
/* Stores a pending checkpoint, publishes, gives unused space back. */
IG_MUST_USE ig_status writer_finish(writer *w);
#endif
