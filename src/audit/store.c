/* store.c: what a log directory holds once it has been scanned (contract in store.h): leaves by
 * index, tiles, proofs. The scan itself is in scan.c. */
#define _GNU_SOURCE /* memmem */
#include "audit/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "audit/event.h"
#include "base/file.h"

void store_free(store *s)
{
    if (!s) return;
    lock_done(&s->lock);
    mem_free(s->dir);
    mem_free(s->segments);
    mem_free(s->places);
    mem_free(s->edge);
    buf_done(&s->latest_note);
    mem_free(s);
}

ig_status store_segment_path(const char *dir, uint64_t first, buf *ret_path)
{
    TRY(file_join(ret_path, dir, "segments/"));
    buf_printf(ret_path, "%020" PRIu64 ".seg", first);
    return buf_status(ret_path);
}

/* ---- growing ---- */

static ig_status grow(void **array, size_t n, size_t *cap, size_t item, size_t max)
{
    if (n < *cap) return IG_OK;
    if (n >= max) return ig_fail(IG_ELIMIT, "audit log: more than %zu parts", max);
    size_t wanted = *cap ? *cap * 2 : 64;
    void *p = mem_realloc(*array, wanted * item);
    if (!p) return IG_ENOMEM;
    *array = p;
    *cap = wanted;
    return IG_OK;
}

ig_status store_add_segment(store *s, uint64_t first, size_t n_bytes)
{
    lock_take(&s->lock);
    ig_status st = grow((void **)&s->segments, s->n_segments, &s->cap_segments, sizeof *s->segments,
                        STORE_MAX_SEGMENTS);
    if (st == IG_OK)
        s->segments[s->n_segments++] =
            (store_segment){.first = first, .used = SEGMENT_HEADER_N, .n_bytes = n_bytes};
    lock_drop(&s->lock);
    return st;
}

static ig_status add_leaf(store *s, const tree_hash *leaf, size_t offset, tree_tile_fn full,
                          void *user)
{
    if (s->range.size >= TREE_MAX_SIZE) return ig_fail(IG_ELIMIT, "audit log: full");
    if (s->range.size % STORE_STRIDE == 0) {
        TRY(grow((void **)&s->places, s->n_places, &s->cap_places, sizeof *s->places,
                 SIZE_MAX / sizeof *s->places / 4));
        s->places[s->n_places++] = (store_place){(uint32_t)(s->n_segments - 1), (uint32_t)offset};
    }
    TRY(tree_edge_add(s->edge, leaf, full, user));
    tree_range_add(&s->range, leaf);
    return IG_OK;
}

ig_status store_add_leaf(store *s, const tree_hash *leaf, size_t offset, tree_tile_fn full,
                         void *user)
{
    lock_take(&s->lock);
    ig_status st = add_leaf(s, leaf, offset, full, user);
    lock_drop(&s->lock);
    return st;
}

ig_status store_set_latest(store *s, const checkpoint *c, str note)
{
    lock_take(&s->lock);
    buf_clear(&s->latest_note);
    buf_add(&s->latest_note, note.p, note.n);
    ig_status st = buf_status(&s->latest_note);
    if (st == IG_OK) s->latest = *c;
    lock_drop(&s->lock);
    return st;
}

/* ---- reading ---- */

uint64_t store_size(store *s)
{
    lock_take(&s->lock);
    uint64_t n = s->range.size;
    lock_drop(&s->lock);
    return n;
}

ig_status store_latest(store *s, checkpoint *ret_checkpoint, buf *ret_note)
{
    buf_init(ret_note, CHECKPOINT_MAX);
    lock_take(&s->lock);
    checkpoint c = s->latest;
    buf_add(ret_note, s->latest_note.data, s->latest_note.n);
    lock_drop(&s->lock);
    TRY(buf_status(ret_note));
    if (ret_note->n == 0) return ig_fail(IG_ENOTFOUND, "audit log: no checkpoint was signed yet");
    *ret_checkpoint = c;
    return IG_OK;
}

/* A window on one segment file that moves forward record by record. */
typedef struct cursor {
    store *s;
    int fd;
    uint32_t segment;
    buf path;
    uint8_t *window;
    size_t at, n;  /* window holds file bytes [at, at + n) */
    size_t offset; /* of the next record */
} cursor;
#define WINDOW_N ((size_t)64 << 10)

static void cursor_close(cursor *c)
{
    io_close(c->fd);
    buf_done(&c->path);
    mem_free(c->window);
}

static ig_status cursor_enter(cursor *c, uint32_t segment, size_t offset)
{
    lock_take(&c->s->lock);
    bool known = segment < c->s->n_segments;
    uint64_t first = known ? c->s->segments[segment].first : 0;
    lock_drop(&c->s->lock);
    if (!known) return ig_fail(IG_EVERIFY, "audit log: a segment is missing");
    io_close(c->fd);
    c->fd = -1;
    buf_done(&c->path);
    TRY(store_segment_path(c->s->dir, first, &c->path));
    TRY(io_open(c->path.data, O_RDONLY | O_NONBLOCK, 0, &c->fd));
    c->segment = segment;
    c->offset = offset;
    c->n = 0;
    return IG_OK;
}

static ig_status cursor_open(store *s, uint64_t index, cursor *ret_cursor)
{
    lock_take(&s->lock);
    bool known = index < s->range.size;
    store_place place = known ? s->places[index / STORE_STRIDE] : (store_place){0, 0};
    lock_drop(&s->lock);
    *ret_cursor = (cursor){.s = s, .fd = -1};
    if (!known) return ig_fail(IG_ENOTFOUND, "audit log %s: no event %" PRIu64, s->dir, index);
    ret_cursor->window = mem_alloc(WINDOW_N);
    if (!ret_cursor->window) return IG_ENOMEM;
    return cursor_enter(ret_cursor, place.segment, place.offset);
}

static ig_status cursor_next(cursor *c, segment_record *ret_record)
{
    for (;;) {
        if (c->offset < c->at || c->offset + SEGMENT_MAX_RECORD > c->at + c->n) {
            TRY(io_pread(c->fd, c->window, WINDOW_N, (int64_t)c->offset, &c->n, c->path.data));
            c->at = c->offset;
        }
        size_t in = c->offset - c->at;
        segment_next next = segment_read(c->window + in, c->n - in, ret_record);
        if (next == SEGMENT_BAD)
            return ig_fail(IG_EVERIFY, "%s: damaged record at byte %zu", c->path.data, c->offset);
        if (next == SEGMENT_RECORD) {
            c->offset += ret_record->size;
            return IG_OK;
        }
        TRY(cursor_enter(c, c->segment + 1, SEGMENT_HEADER_N));
    }
}

/* The next leaf; it must be the one with this index. */
static ig_status cursor_leaf(cursor *c, uint64_t index, str *ret_leaf)
{
    for (;;) {
        segment_record r;
        TRY(cursor_next(c, &r));
        if (r.kind != RECORD_LEAF || r.index < index) continue;
        if (r.index != index)
            return ig_fail(IG_EVERIFY, "%s: event %" PRIu64 " is missing", c->path.data, index);
        *ret_leaf = r.bytes;
        return IG_OK;
    }
}

ig_status store_leaf(store *s, uint64_t index, buf *ret_leaf)
{
    buf_init(ret_leaf, TREE_MAX_ENTRY);
    __attribute__((cleanup(cursor_close))) cursor c;
    str leaf;
    TRY(cursor_open(s, index, &c));
    TRY(cursor_leaf(&c, index, &leaf));
    buf_add(ret_leaf, leaf.p, leaf.n);
    return buf_status(ret_leaf);
}

ig_status store_bundle(store *s, uint64_t first, unsigned n, buf *ret_bundle)
{
    buf_init(ret_bundle, TILE_MAX_BUNDLE);
    __attribute__((cleanup(cursor_close))) cursor c;
    TRY(cursor_open(s, first, &c));
    for (unsigned i = 0; i < n; i++) {
        str leaf;
        TRY(cursor_leaf(&c, first + i, &leaf));
        tile_entry_add(ret_bundle, leaf);
    }
    return buf_status(ret_bundle);
}

/* The text `"req":"ID"` stands in admit, done and denied leaves only; IDs hold nothing to
 * escape. */
ig_status store_find_done(store *s, const char *req, uint64_t *ret_index)
{
    AUTO(buf) wanted = {0};
    buf_init(&wanted, 256);
    buf_printf(&wanted, "\"req\":\"%s\"", req);
    TRY(buf_status(&wanted));
    __attribute__((cleanup(cursor_close))) cursor c = {.fd = -1};
    uint64_t n = store_size(s);
    if (n) TRY(cursor_open(s, 0, &c));
    for (uint64_t i = 0; i < n; i++) {
        event_type type;
        uint64_t admit;
        str leaf;
        TRY(cursor_leaf(&c, i, &leaf));
        if (!event_peek(leaf, &type, &admit) || type != EVENT_DONE) continue;
        if (!memmem(leaf.p, leaf.n, wanted.data, wanted.n)) continue;
        *ret_index = i;
        return IG_OK;
    }
    return ig_fail(IG_ENOTFOUND, "audit log %s: no finished request %s", s->dir, req);
}

/* ---- tiles and proofs ---- */

static ig_status rebuild_leaves(store *s, uint64_t index, tree_hash ret_hashes[TREE_TILE_WIDTH])
{
    __attribute__((cleanup(cursor_close))) cursor c;
    uint64_t first = index * TREE_TILE_WIDTH;
    TRY(cursor_open(s, first, &c));
    for (unsigned i = 0; i < TREE_TILE_WIDTH; i++) {
        str leaf;
        TRY(cursor_leaf(&c, first + i, &leaf));
        tree_hash_leaf(leaf.p, leaf.n, &ret_hashes[i]);
    }
    return IG_OK;
}

/* At most TREE_N_LEVELS deep. */
static ig_status rebuild(store *s, unsigned level, uint64_t index,
                         tree_hash ret_hashes[TREE_TILE_WIDTH])
{
    if (level == 0) return rebuild_leaves(s, index, ret_hashes);
    AUTO(mem_ptr) below = mem_alloc(TREE_TILE_WIDTH * sizeof(tree_hash));
    if (!below) return IG_ENOMEM;
    for (unsigned i = 0; i < TREE_TILE_WIDTH; i++) {
        TRY(store_tile(s, level - 1, index * TREE_TILE_WIDTH + i, below));
        tree_fold(below, TREE_TILE_HEIGHT);
        ret_hashes[i] = *(tree_hash *)below;
    }
    return IG_OK;
}

ig_status store_tile(store *s, unsigned level, uint64_t index,
                     tree_hash ret_hashes[TREE_TILE_WIDTH])
{
    const size_t n_bytes = TREE_TILE_WIDTH * sizeof(tree_hash);
    lock_take(&s->lock);
    uint64_t current = s->range.size >> (TREE_TILE_HEIGHT * (level + 1));
    if (index == current) memcpy(ret_hashes, s->edge->tiles[level], n_bytes);
    lock_drop(&s->lock);
    if (index == current) return IG_OK;
    if (index > current) return ig_fail(IG_ENOTFOUND, "audit log: no such tile");
    tile_id id = {(int)level, index, TREE_TILE_WIDTH};
    AUTO(buf) bytes = {0};
    buf_init(&bytes, 0);
    if (tile_exists(s->dir, id)) TRY(tile_read(s->dir, id, &bytes));
    if (bytes.n != n_bytes) return rebuild(s, level, index, ret_hashes);
    memcpy(ret_hashes, bytes.data, n_bytes);
    return IG_OK;
}

/* Nodes of one proof often lie in the same tile: the last one read is kept. */
typedef struct node_reader {
    store *s;
    bool valid;
    unsigned level;
    uint64_t index;
    tree_hash tile[TREE_TILE_WIDTH], work[TREE_TILE_WIDTH];
} node_reader;

static ig_status read_node(void *user, unsigned level, uint64_t index, tree_hash *ret_hash)
{
    node_reader *r = user;
    unsigned tile_level = level / TREE_TILE_HEIGHT, height = level % TREE_TILE_HEIGHT;
    uint64_t first = index << height; /* in hashes of tile_level */
    uint64_t tile = first / TREE_TILE_WIDTH;
    if (!r->valid || r->level != tile_level || r->index != tile) {
        r->valid = false;
        TRY(store_tile(r->s, tile_level, tile, r->tile));
        r->valid = true;
        r->level = tile_level;
        r->index = tile;
    }
    memcpy(r->work, r->tile + first % TREE_TILE_WIDTH, ((size_t)1 << height) * sizeof *r->work);
    tree_fold(r->work, height);
    *ret_hash = r->work[0];
    return IG_OK;
}

ig_status store_prove_inclusion(store *s, uint64_t size, uint64_t index, tree_proof *ret_proof)
{
    AUTO(mem_ptr) memory = mem_calloc(1, sizeof(node_reader));
    node_reader *r = memory;
    if (!r) return IG_ENOMEM;
    if (size > store_size(s))
        return ig_fail(IG_EINVAL,
                       "audit log: a proof for %" PRIu64 " events, of more than there are", size);
    r->s = s;
    return tree_prove_inclusion(read_node, r, size, index, ret_proof);
}

ig_status store_prove_consistency(store *s, uint64_t old_size, uint64_t new_size,
                                  tree_proof *ret_proof)
{
    AUTO(mem_ptr) memory = mem_calloc(1, sizeof(node_reader));
    node_reader *r = memory;
    if (!r) return IG_ENOMEM;
    if (new_size > store_size(s))
        return ig_fail(IG_EINVAL,
                       "audit log: a proof for %" PRIu64 " events, of more than there are",
                       new_size);
    r->s = s;
    return tree_prove_consistency(read_node, r, old_size, new_size, ret_proof);
}
