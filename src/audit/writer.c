/* writer.c: segments, syncs, signatures, tiles of a running log (contract in writer.h).
 *
 * Order of a rotation: header into the preallocated next.seg, sync, rename, sync the directory,
 * then cut the old segment to its records. A crash between any two leaves a log that scans. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "audit/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

ig_status writer_lock(const char *dir, int *ret_fd)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    int fd;
    TRY(file_join(&path, dir, "lock"));
    TRY(io_open(path.data, O_RDWR | O_CREAT, 0644, &fd));
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        int err = errno;
        io_close(fd);
        return ig_fail(IG_EIO, "%s: %s", path.data,
                       err == EAGAIN || err == EACCES ? "in use by another process"
                                                      : strerror(err));
    }
    *ret_fd = fd;
    return IG_OK;
}

/* ---- segments ---- */

static ig_status segments_dir(const char *dir, buf *ret_path)
{
    return file_join(ret_path, dir, "segments");
}

static ig_status spare_path(const char *dir, buf *ret_path)
{
    return file_join(ret_path, dir, "segments/next.seg");
}

static ig_status write_header(int fd, const log_vkey *vkey, const tree_range *before,
                              const char *what)
{
    segment_header h = {.first = before->size};
    uint8_t bytes[SEGMENT_HEADER_N];
    tree_range_root(before, &h.root);
    memcpy(h.origin, vkey->name, sizeof h.origin);
    segment_header_write(&h, bytes);
    TRY(io_pwrite(fd, bytes, sizeof bytes, 0, what));
    return io_fdatasync(fd, what);
}

/* Best effort: a spare that stays is emptied by the next start. */
static void drop_spare(const char *dir)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    ig_status st = spare_path(dir, &path);
    if (st == IG_OK) st = io_unlink(path.data);
    (void)st;
}

ig_status writer_make_spare(writer *w)
{
    if (w->spare_fd >= 0) return IG_OK;
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    int fd;
    TRY(spare_path(w->s->dir, &path));
    TRY(io_open(path.data, O_RDWR | O_CREAT | O_TRUNC, 0644, &fd));
    ig_status st = io_fallocate(fd, (int64_t)w->segment_bytes, path.data);
    if (st != IG_OK) {
        io_close(fd);
        drop_spare(w->s->dir); /* gives back what was allocated */
        return st;
    }
    w->spare_fd = fd;
    return IG_OK;
}

/* Puts the spare into place as the segment that starts with the next leaf. */
static ig_status install_spare(writer *w)
{
    AUTO(buf) from = {0}, to = {0}, dir = {0};
    buf_init(&from, 0);
    buf_init(&to, 0);
    buf_init(&dir, 0);
    TRY(writer_make_spare(w));
    TRY(spare_path(w->s->dir, &from));
    TRY(segments_dir(w->s->dir, &dir));
    TRY(store_segment_path(w->s->dir, w->s->range.size, &to));
    TRY(write_header(w->spare_fd, &w->s->vkey, &w->s->range, from.data));
    TRY(io_rename(from.data, to.data));
    TRY(io_fsync_dir(dir.data));
    TRY(store_add_segment(w->s, w->s->range.size, w->segment_bytes));
    w->fd = w->spare_fd;
    w->spare_fd = -1;
    w->used = SEGMENT_HEADER_N;
    w->n_bytes = w->segment_bytes;
    return IG_OK;
}

static ig_status rotate(writer *w)
{
    int old = w->fd;
    size_t used = w->used;
    TRY(install_spare(w));
    ig_status st = io_ftruncate(old, (int64_t)used, "segment");
    io_close(old);
    return st;
}

static ig_status check_no_segments(const char *dir)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(segments_dir(dir, &path));
    DIR *d = opendir(path.data);
    ig_status st = IG_OK;
    for (struct dirent *e; d && st == IG_OK && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.' && strcmp(e->d_name, "next.seg") != 0)
            st = ig_fail(IG_EVERIFY, "%s/%s exists, but the first segment is gone", path.data,
                         e->d_name);
    if (d) closedir(d);
    return st;
}

/* A checkpoint without segments is what is left of a log, not an empty place for a new one. */
static ig_status check_vacant(const char *dir)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, dir, "checkpoint"));
    if (file_exists(path.data))
        return ig_fail(IG_EVERIFY, "%s exists, but the segments are gone", path.data);
    return check_no_segments(dir);
}

ig_status writer_create(const char *dir, const log_vkey *vkey, size_t segment_bytes)
{
    AUTO(buf) segments = {0}, from = {0}, to = {0}, key = {0};
    buf_init(&segments, 0);
    buf_init(&from, 0);
    buf_init(&to, 0);
    buf_init(&key, 0);
    TRY(check_vacant(dir));
    TRY(segments_dir(dir, &segments));
    TRY(spare_path(dir, &from));
    TRY(store_segment_path(dir, 0, &to));
    TRY(file_join(&key, dir, "log.vkey"));
    TRY(file_mkdirs(segments.data, 0755));
    TRY(log_vkey_write(vkey, key.data));
    int fd;
    TRY(io_open(from.data, O_RDWR | O_CREAT | O_TRUNC, 0644, &fd));
    tree_range nothing = {0};
    ig_status st = io_fallocate(fd, (int64_t)segment_bytes, from.data);
    if (st == IG_OK) st = write_header(fd, vkey, &nothing, from.data);
    io_close(fd);
    TRY(st);
    TRY(io_rename(from.data, to.data));
    return io_fsync_dir(segments.data);
}

/* ---- taking over ---- */

/* Torn bytes must be gone before anything is appended: a stale whole record behind a new one of
 * equal length would otherwise rise again. Cutting and allocating anew reads as zeros. */
static ig_status repair_tail(writer *w, const char *path)
{
    store_segment *seg = &w->s->segments[w->s->n_segments - 1];
    w->used = seg->used;
    w->n_bytes = seg->n_bytes;
    if (w->s->tail.torn) {
        TRY(io_ftruncate(w->fd, (int64_t)w->used, path));
        w->n_bytes = w->used;
    }
    if (w->n_bytes < w->segment_bytes) {
        TRY(io_fallocate(w->fd, (int64_t)w->segment_bytes, path));
        w->n_bytes = w->segment_bytes;
    }
    return io_fdatasync(w->fd, path);
}

/* What an interrupted atomic write leaves beside the checkpoint. */
static void drop_temporaries(const char *dir)
{
    static const char mark[] = "checkpoint.tmp-";
    DIR *d = opendir(dir);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, mark, sizeof mark - 1) == 0) (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static ig_status derive_full(writer *w, unsigned level, uint64_t index, const tree_hash *hashes)
{
    store *s = w->s;
    tile_id id = {(int)level, index, TREE_TILE_WIDTH};
    TRY(tile_write(s->dir, id, hashes, TREE_TILE_WIDTH * sizeof *hashes));
    if (level > 0) return IG_OK;
    AUTO(buf) bundle = {0};
    buf_init(&bundle, 0);
    id.level = TILE_ENTRIES;
    TRY(store_bundle(s, index * TREE_TILE_WIDTH, TREE_TILE_WIDTH, &bundle));
    return tile_write(s->dir, id, bundle.data, bundle.n);
}

static ig_status derive_missing(writer *w)
{
    store *s = w->s;
    AUTO(mem_ptr) hashes = mem_alloc(TREE_TILE_WIDTH * sizeof(tree_hash));
    if (!hashes) return IG_ENOMEM;
    for (unsigned level = 0; level < TREE_N_LEVELS; level++) {
        uint64_t n = s->range.size >> (TREE_TILE_HEIGHT * (level + 1));
        for (uint64_t i = 0; i < n; i++) {
            tile_id tile = {(int)level, i, TREE_TILE_WIDTH}, entries = tile;
            entries.level = level == 0 ? TILE_ENTRIES : (int)level;
            if (tile_exists(s->dir, tile) && tile_exists(s->dir, entries)) continue;
            TRY(store_tile(s, level, i, hashes));
            TRY(derive_full(w, level, i, hashes));
        }
    }
    return IG_OK;
}

ig_status writer_attach(writer *w, store *s, const log_key *key, int lock_fd, size_t segment_bytes)
{
    *w = (writer){.s = s,
                  .key = key,
                  .lock_fd = lock_fd,
                  .fd = -1,
                  .spare_fd = -1,
                  .segment_bytes = segment_bytes,
                  .published = 0};
    buf_init(&w->piece, WRITER_MAX_BYTES + 2 * SEGMENT_MAX_RECORD);
    buf_init(&w->note, CHECKPOINT_MAX);
    w->full = mem_calloc(WRITER_MAX_FULL, sizeof *w->full);
    if (!w->full) return IG_ENOMEM;
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(store_segment_path(s->dir, s->segments[s->n_segments - 1].first, &path));
    TRY(io_open(path.data, O_RDWR, 0, &w->fd));
    TRY(repair_tail(w, path.data));
    drop_temporaries(s->dir);
    TRY(writer_make_spare(w));
    return derive_missing(w);
}

void writer_detach(writer *w)
{
    io_close(w->fd);
    if (w->spare_fd >= 0) {
        drop_spare(w->s->dir);
        io_close(w->spare_fd);
    }
    io_close(w->lock_fd);
    buf_done(&w->piece);
    buf_done(&w->note);
    mem_free(w->full);
    store_free(w->s);
    *w = (writer){.fd = -1, .spare_fd = -1, .lock_fd = -1};
}

/* ---- appending ---- */

int64_t writer_room(const writer *w)
{
    const int64_t waste = SEGMENT_MAX_RECORD + WRITER_NOTE_BYTES; /* at the end of a segment */
    int64_t room = (int64_t)w->n_bytes - (int64_t)w->used - waste;
    if (room < 0) room = 0;
    if (w->spare_fd >= 0) room += (int64_t)w->segment_bytes - SEGMENT_HEADER_N - waste;
    return room;
}

static ig_status queue_full_tile(void *user, unsigned level, uint64_t index,
                                 const tree_hash *hashes)
{
    writer *w = user;
    if (w->n_full == WRITER_MAX_FULL) { /* readers rebuild it, the next start writes it */
        w->n_derived_failures++;
        return IG_OK;
    }
    writer_tile *t = &w->full[w->n_full++];
    t->level = level;
    t->index = index;
    memcpy(t->hashes, hashes, sizeof t->hashes);
    return IG_OK;
}

static bool fits(const writer *w, size_t n_leaf)
{
    return w->used + w->piece.n + segment_record_size(n_leaf) <= w->n_bytes &&
           w->piece.n + segment_record_size(n_leaf) <= WRITER_MAX_BYTES;
}

/* Fills w->piece; *ret_n is how many leaves it holds. */
static ig_status fill_piece(writer *w, const str *leaves, size_t n, size_t *ret_n,
                            tree_hash *ret_hashes)
{
    buf_clear(&w->piece);
    if (w->note.n)
        segment_record_write(RECORD_CHECKPOINT, w->s->latest.size, (str){w->note.data, w->note.n},
                             &w->piece);
    size_t i = 0;
    for (; i < n && i < WRITER_MAX_PIECE && fits(w, leaves[i].n); i++) {
        segment_record_write(RECORD_LEAF, w->s->range.size + i, leaves[i], &w->piece);
        tree_hash_leaf(leaves[i].p, leaves[i].n, &ret_hashes[i]);
    }
    *ret_n = i;
    return buf_status(&w->piece);
}

static ig_status write_piece(writer *w)
{
    TRY(io_pwrite(w->fd, w->piece.data, w->piece.n, (int64_t)w->used, "audit log: segment"));
    TRY(io_fdatasync(w->fd, "audit log: segment"));
    w->n_syncs++;
    return IG_OK;
}

ig_status writer_commit(writer *w, const str *leaves, size_t n, size_t *ret_n,
                        tree_hash *ret_hashes)
{
    size_t taken;
    size_t note = w->note.n ? segment_record_size(w->note.n) : 0;
    if (w->used + note + (n ? segment_record_size(leaves[0].n) : 0) > w->n_bytes) TRY(rotate(w));
    TRY(fill_piece(w, leaves, n, &taken, ret_hashes));
    if (w->piece.n == 0) {
        *ret_n = 0;
        return IG_OK;
    }
    TRY(write_piece(w));
    size_t offset = w->used + note;
    for (size_t i = 0; i < taken; i++) {
        TRY(store_add_leaf(w->s, &ret_hashes[i], offset, queue_full_tile, w));
        offset += segment_record_size(leaves[i].n);
    }
    w->used = offset;
    buf_clear(&w->note);
    *ret_n = taken;
    return IG_OK;
}

ig_status writer_sign(writer *w)
{
    checkpoint c = {.size = w->s->range.size};
    if (w->s->latest.size == c.size && w->s->latest_note.n) return IG_OK;
    tree_range_root(&w->s->range, &c.root);
    buf_clear(&w->note);
    TRY(checkpoint_sign(w->key, &c, &w->note));
    w->n_notes++;
    return store_set_latest(w->s, &c, (str){w->note.data, w->note.n});
}

/* ---- derived files ---- */

void writer_derive(writer *w)
{
    for (size_t i = 0; i < w->n_full; i++) {
        writer_tile *t = &w->full[i];
        if (derive_full(w, t->level, t->index, t->hashes) != IG_OK) w->n_derived_failures++;
    }
    w->n_full = 0;
}

/* The incomplete tiles of a tree of `size` leaves, as far as later leaves have not completed
 * them. */
static ig_status derive_partials(writer *w, uint64_t size)
{
    store *s = w->s;
    for (unsigned level = 0; level < TREE_N_LEVELS; level++) {
        uint64_t index = size >> (TREE_TILE_HEIGHT * (level + 1));
        unsigned width = tree_edge_width(size, level);
        bool current = index == s->range.size >> (TREE_TILE_HEIGHT * (level + 1));
        if (width == 0 || !current) continue;
        tile_id id = {(int)level, index, width};
        TRY(tile_write(s->dir, id, s->edge->tiles[level], width * sizeof(tree_hash)));
        if (level > 0) continue;
        AUTO(buf) bundle = {0};
        buf_init(&bundle, 0);
        id.level = TILE_ENTRIES;
        TRY(store_bundle(s, index * TREE_TILE_WIDTH, width, &bundle));
        TRY(tile_write(s->dir, id, bundle.data, bundle.n));
    }
    return IG_OK;
}

ig_status writer_publish(writer *w)
{
    checkpoint c = w->s->latest;
    if (w->s->latest_note.n == 0 || c.size == w->published) return IG_OK;
    if (derive_partials(w, c.size) != IG_OK) w->n_derived_failures++;
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, w->s->dir, "checkpoint"));
    TRY(file_write_atomic(path.data, w->s->latest_note.data, w->s->latest_note.n, 0644));
    w->published = c.size;
    return IG_OK;
}

ig_status writer_finish(writer *w)
{
    size_t n;
    if (w->note.n) TRY(writer_commit(w, NULL, 0, &n, NULL));
    TRY(writer_publish(w));
    TRY(io_ftruncate(w->fd, (int64_t)w->used, "audit log: segment"));
    return io_fdatasync(w->fd, "audit log: segment");
}
