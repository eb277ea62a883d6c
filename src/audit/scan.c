/* scan.c: reading a log directory from its first byte (store_open).
 *
 * Torn or tampered? Records are synced before a checkpoint over them is signed. So a damaged record
 * below the size of any signed checkpoint that still exists (the published file, or a checkpoint
 * record anywhere behind the damage) can only be tampering or a failing disk: refused. Behind all
 * of them it is what a crash leaves: reported as the tail. */
#include "audit/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

typedef struct scan {
    store *s;
    const store_hooks *hooks;
    uint64_t *firsts; /* first index of each segment file, ascending */
    size_t n_firsts;
    checkpoint published; /* of the file `checkpoint` */
    bool compare;         /* there is one, and the tree has not had its size yet */
    int64_t done, total;  /* bytes, for progress */
    int64_t reported_us;
} scan;

/* ---- which files ---- */

static bool segment_name(const char *name, uint64_t *ret_first)
{
    size_t n = strspn(name, "0123456789");
    int64_t v;
    if (n != 20 || strcmp(name + 20, ".seg") != 0) return false;
    const char *p = name;
    while (*p == '0' && p < name + 19) p++;
    if (!str_int((str){p, (size_t)(name + 20 - p)}, 0, (int64_t)TREE_MAX_SIZE, &v)) return false;
    *ret_first = (uint64_t)v;
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static ig_status add_first(scan *sc, uint64_t first, size_t *cap)
{
    if (sc->n_firsts == *cap) {
        if (*cap >= STORE_MAX_SEGMENTS)
            return ig_fail(IG_ELIMIT, "%s: too many segments", sc->s->dir);
        *cap = *cap ? *cap * 2 : 64;
        uint64_t *p = mem_realloc(sc->firsts, *cap * sizeof *p);
        if (!p) return IG_ENOMEM;
        sc->firsts = p;
    }
    sc->firsts[sc->n_firsts++] = first;
    return IG_OK;
}

static void dir_auto(DIR **d)
{
    if (*d) closedir(*d);
}

static ig_status list_segments(scan *sc)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, sc->s->dir, "segments"));
    __attribute__((cleanup(dir_auto))) DIR *d = opendir(path.data);
    if (!d)
        return ig_fail(errno == ENOENT ? IG_ENOTFOUND : IG_EIO, "%s: not an audit log: %s",
                       path.data, strerror(errno));
    size_t cap = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        uint64_t first;
        if (e->d_name[0] == '.' || strcmp(e->d_name, "next.seg") == 0) continue;
        if (!segment_name(e->d_name, &first))
            return ig_fail(IG_EVERIFY, "%s/%s: not a segment of an audit log", path.data,
                           e->d_name);
        TRY(add_first(sc, first, &cap));
    }
    if (sc->n_firsts == 0) return ig_fail(IG_ENOTFOUND, "%s: no segments", path.data);
    if (sc->n_firsts) qsort(sc->firsts, sc->n_firsts, sizeof *sc->firsts, by_value);
    return IG_OK;
}

static ig_status read_published(scan *sc)
{
    AUTO(buf) path = {0}, note = {0};
    buf_init(&path, 0);
    buf_init(&note, 0);
    TRY(file_join(&path, sc->s->dir, "checkpoint"));
    if (!file_exists(path.data)) return IG_OK;
    TRY(file_read(path.data, CHECKPOINT_MAX, &note));
    str text = {note.data, note.n};
    TRY(checkpoint_open(path.data, text, &sc->s->vkey, &sc->published));
    sc->compare = true;
    if (sc->hooks->note) TRY(sc->hooks->note(sc->hooks->user, path.data, text, &sc->published));
    return store_set_latest(sc->s, &sc->published, text);
}

/* ---- records ---- */

/* Every time the tree has the published size, its root must be the published one. */
static ig_status compare_published(scan *sc)
{
    tree_range *r = &sc->s->range;
    if (!sc->compare || r->size != sc->published.size) return IG_OK;
    tree_hash root;
    tree_range_root(r, &root);
    if (!tree_hash_eq(&root, &sc->published.root))
        return ig_fail(IG_EVERIFY,
                       "%s: the first %" PRIu64 " events are not those that `checkpoint` signs",
                       sc->s->dir, r->size);
    sc->compare = false;
    return IG_OK;
}

static ig_status no_tile(void *user, unsigned level, uint64_t index, const tree_hash *hashes)
{
    (void)user, (void)level, (void)index, (void)hashes;
    return IG_OK;
}

static ig_status take_leaf(scan *sc, const segment_record *r, size_t offset)
{
    const store_hooks *h = sc->hooks;
    tree_hash hash;
    tree_hash_leaf(r->bytes.p, r->bytes.n, &hash);
    if (h->leaf) TRY(h->leaf(h->user, r->index, r->bytes, &hash));
    TRY(store_add_leaf(sc->s, &hash, offset, h->tile ? h->tile : no_tile, h->user));
    return compare_published(sc);
}

static ig_status take_note(scan *sc, const segment_record *r, const char *where)
{
    checkpoint c;
    tree_hash root;
    tree_range_root(&sc->s->range, &root);
    TRY(checkpoint_parse(where, r->bytes, &sc->s->vkey, &c));
    if (c.size != r->index || c.size != sc->s->range.size || !tree_hash_eq(&c.root, &root))
        return ig_fail(IG_EVERIFY,
                       "%s: a checkpoint of size %" PRIu64 " that the %" PRIu64
                       " events before it contradict",
                       where, c.size, sc->s->range.size);
    if (sc->hooks->note) TRY(sc->hooks->note(sc->hooks->user, where, r->bytes, &c));
    if (c.size < sc->s->latest.size) return IG_OK;
    return store_set_latest(sc->s, &c, r->bytes);
}

/* The largest size that a checkpoint record behind the damage signs; 0 when there is none. */
static uint64_t signed_behind(scan *sc, const uint8_t *p, size_t n)
{
    uint64_t largest = 0;
    for (size_t at = 0; at + SEGMENT_RECORD_N <= n; at += 8) {
        segment_record r;
        checkpoint c;
        if (p[at + 3] != RECORD_CHECKPOINT) continue; /* cheap test first: the kind's byte */
        if (segment_read(p + at, n - at, &r) != SEGMENT_RECORD) continue;
        if (checkpoint_open("tail", r.bytes, &sc->s->vkey, &c) != IG_OK) continue;
        if (c.size > largest) largest = c.size;
    }
    ig_error_clear();
    return largest;
}

/* Whole blocks first: where data ends is not known everywhere, and zeros are then most of the
 * segment. */
static size_t last_nonzero(const uint8_t *p, size_t n)
{
    const size_t block = 4096;
    while (n >= block && segment_all_zero(p + n - block, block)) n -= block;
    while (n > 0 && p[n - 1] == 0) n--;
    return n;
}

/* What stands at `offset` is no record. Decides between end, torn tail and tampering. */
static ig_status end_segment(scan *sc, size_t i, const char *path, const uint8_t *p, size_t n,
                             size_t offset)
{
    store *s = sc->s;
    size_t torn = last_nonzero(p + offset, n - offset);
    s->segments[i].used = offset;
    if (torn == 0) return IG_OK;
    uint64_t behind = signed_behind(sc, p + offset, n - offset), size = s->range.size;
    if (s->latest.size > behind) behind = s->latest.size;
    if (i + 1 < sc->n_firsts)
        return ig_fail(IG_EVERIFY,
                       "%s: damaged record at byte %zu, event %" PRIu64
                       ", and later segments exist",
                       path, offset, size);
    if (behind > size)
        return ig_fail(IG_EVERIFY,
                       "%s: damaged record at byte %zu, event %" PRIu64
                       "; a checkpoint over %" PRIu64 " events was signed",
                       path, offset, size, behind);
    s->tail.torn = torn;
    return IG_OK;
}

static void report(scan *sc, int64_t more)
{
    sc->done += more;
    int64_t now = clock_mono_us();
    if (!sc->hooks->progress || (now - sc->reported_us < 50000 && sc->done < sc->total)) return;
    sc->reported_us = now;
    sc->hooks->progress(sc->hooks->progress_user, sc->done, sc->total);
}

static ig_status scan_records(scan *sc, size_t i, const char *path, const uint8_t *p, size_t n)
{
    store *s = sc->s;
    size_t offset = SEGMENT_HEADER_N;
    for (size_t reported = 0;;) {
        segment_record r;
        if (segment_read(p + offset, n - offset, &r) != SEGMENT_RECORD) break;
        if (r.kind == RECORD_LEAF && r.index != s->range.size)
            return ig_fail(IG_EVERIFY,
                           "%s: byte %zu holds event %" PRIu64 " where %" PRIu64 " belongs", path,
                           offset, r.index, s->range.size);
        TRY(r.kind == RECORD_LEAF ? take_leaf(sc, &r, offset) : take_note(sc, &r, path));
        offset += r.size;
        if (offset - reported < ((size_t)4 << 20)) continue;
        report(sc, (int64_t)(offset - reported));
        reported = offset;
    }
    return end_segment(sc, i, path, p, n, offset);
}

static ig_status check_header(scan *sc, size_t i, const char *path, const uint8_t *p)
{
    store *s = sc->s;
    segment_header h;
    tree_hash root;
    tree_range_root(&s->range, &root);
    if (!segment_header_read(p, &h)) return ig_fail(IG_EVERIFY, "%s: damaged header", path);
    if (strcmp(h.origin, s->vkey.name) != 0)
        return ig_fail(IG_EVERIFY, "%s: belongs to log %s, the key is for %s", path, h.origin,
                       s->vkey.name);
    if (h.first != sc->firsts[i])
        return ig_fail(IG_EVERIFY, "%s: starts with event %" PRIu64 ", its name says %" PRIu64,
                       path, h.first, sc->firsts[i]);
    if (h.first != s->range.size)
        return ig_fail(IG_EVERIFY, "%s: starts with event %" PRIu64 ", but %" PRIu64 " come before",
                       path, h.first, s->range.size);
    if (!tree_hash_eq(&h.root, &root))
        return ig_fail(IG_EVERIFY, "%s: the events before it are not those it follows", path);
    return IG_OK;
}

/* The bytes of a segment up to where data ends: a running log's last segment is mostly reserved
 * space, which need not be read to know that it is zeros. */
typedef struct segment_bytes {
    uint8_t *p; /* owned */
    size_t n;
    size_t n_file; /* with the zeros that follow */
} segment_bytes;

static void segment_bytes_auto(segment_bytes *b) { mem_free(b->p); }

static ig_status read_open_segment(int fd, const char *path, segment_bytes *ret_bytes)
{
    struct stat st;
    int64_t end;
    size_t got;
    TRY(io_fstat(fd, &st, path));
    if (!S_ISREG(st.st_mode)) return ig_fail(IG_EVERIFY, "%s: not a regular file", path);
    if ((uint64_t)st.st_size > SEGMENT_MAX_BYTES)
        return ig_fail(IG_ELIMIT, "%s: more than %zu bytes", path, SEGMENT_MAX_BYTES);
    if ((size_t)st.st_size < SEGMENT_HEADER_N)
        return ig_fail(IG_EVERIFY, "%s: shorter than its header", path);
    TRY(io_data_end(fd, (int64_t)st.st_size, &end, path));
    size_t n = (size_t)end < SEGMENT_HEADER_N ? SEGMENT_HEADER_N : (size_t)end;
    ret_bytes->p = mem_alloc(n);
    if (!ret_bytes->p) return IG_ENOMEM;
    TRY(io_pread(fd, ret_bytes->p, n, 0, &got, path));
    if (got < n) return ig_fail(IG_EIO, "%s: became shorter while it was read", path);
    ret_bytes->n = n;
    ret_bytes->n_file = (size_t)st.st_size;
    return IG_OK;
}

static ig_status read_segment(const char *path, segment_bytes *ret_bytes)
{
    int fd;
    TRY(io_open(path, O_RDONLY | O_NONBLOCK, 0, &fd)); /* a FIFO must not hang us */
    ig_status s = read_open_segment(fd, path, ret_bytes);
    io_close(fd);
    return s;
}

static ig_status scan_segment(scan *sc, size_t i)
{
    AUTO(buf) path = {0};
    AUTO(segment_bytes) bytes = {0};
    buf_init(&path, 0);
    TRY(store_segment_path(sc->s->dir, sc->firsts[i], &path));
    TRY(read_segment(path.data, &bytes));
    TRY(check_header(sc, i, path.data, bytes.p));
    TRY(store_add_segment(sc->s, sc->firsts[i], bytes.n_file));
    TRY(scan_records(sc, i, path.data, bytes.p, bytes.n));
    sc->total = sc->total < sc->done ? sc->done : sc->total;
    return IG_OK;
}

static ig_status count_bytes(scan *sc)
{
    for (size_t i = 0; i < sc->n_firsts; i++) {
        AUTO(buf) path = {0};
        struct stat st;
        buf_init(&path, 0);
        TRY(store_segment_path(sc->s->dir, sc->firsts[i], &path));
        if (stat(path.data, &st) == 0) sc->total += (int64_t)st.st_size;
    }
    return IG_OK;
}

/* The checkpoint that receipts will carry is signed, not only right. Who verifies the whole log
 * checks every signature in its hook and tells which is wrong. */
static ig_status check_latest(scan *sc)
{
    store *s = sc->s;
    checkpoint unused;
    if (sc->hooks->note || !s->latest_note.n) return IG_OK;
    return checkpoint_open(s->dir, (str){s->latest_note.data, s->latest_note.n}, &s->vkey, &unused);
}

static ig_status scan_all(scan *sc)
{
    store *s = sc->s;
    TRY(list_segments(sc));
    TRY(count_bytes(sc));
    TRY(read_published(sc));
    TRY(compare_published(sc)); /* a checkpoint over nothing */
    for (size_t i = 0; i < sc->n_firsts; i++) TRY(scan_segment(sc, i));
    if (s->latest.size > s->range.size)
        return ig_fail(IG_EVERIFY,
                       "%s: ends after %" PRIu64 " events; a checkpoint over %" PRIu64
                       " was signed",
                       s->dir, s->range.size, s->latest.size);
    s->tail.signed_size = s->latest.size;
    return check_latest(sc);
}

ig_status store_open(const char *dir, const log_vkey *vkey, const store_hooks *hooks,
                     store **ret_store)
{
    static const store_hooks none = {0};
    AUTO(store_ptr) s = mem_calloc(1, sizeof *s);
    if (!s) return IG_ENOMEM;
    ig_status st = lock_init(&s->lock, RANK_LEAF);
    if (st != IG_OK) {
        mem_free(STEAL(s));
        return st;
    }
    buf_init(&s->latest_note, CHECKPOINT_MAX);
    s->vkey = *vkey;
    s->dir = mem_strdup(dir);
    s->edge = mem_calloc(1, sizeof *s->edge);
    if (!s->dir || !s->edge) return IG_ENOMEM;
    scan sc = {.s = s, .hooks = hooks ? hooks : &none};
    st = scan_all(&sc);
    mem_free(sc.firsts);
    TRY(st);
    *ret_store = STEAL(s);
    return IG_OK;
}
