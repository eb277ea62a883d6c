/* verify.c: reading every byte of a log and saying what is wrong (contract in verify.h).
 *
 * The scan proves segments against checkpoints; on the way every event is parsed and held against
 * the rules of ledger.h, every signature is checked, every tile and entry bundle compared. Then the
 * partial tiles, which can only be prefixes of what was verified. Derived files may be missing:
 * they are written without sync. */
#define _GNU_SOURCE /* F_OFD_GETLK */
#include "audit/verify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/ledger.h"
#include "audit/store.h"
#include "base/file.h"

/* An admit names a checkpoint that was signed shortly before: the last ones are remembered. */
#define N_RECENT 65536

typedef struct recent_root {
    uint64_t size;
    tree_hash root;
} recent_root;

typedef struct check {
    const char *dir;
    const log_vkey *vkey;
    const ig_audit_log_options *o;
    ig_audit_log_report *report;
    ledger led;
    buf bundle;          /* entries of the tile being filled */
    uint64_t n_leaves;   /* so far */
    recent_root *recent; /* owned: ring of N_RECENT checkpoints */
    uint64_t n_recent;   /* ever put in */
    store *s;            /* after the scan */
    char first[1024];    /* first finding */
} check;

/* Tells a finding; checking goes on. */
static void found(check *c, const char *text)
{
    if (c->report->n_findings++ == 0) (void)snprintf(c->first, sizeof c->first, "%s", text);
    if (c->o->finding) c->o->finding(c->o->user, text);
}

static void found_path(check *c, const char *path, const char *what)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s: %s", path, what);
    found(c, text);
}

/* Compares a derived file with what it has to hold. */
static ig_status compare_file(check *c, tile_id id, const void *p, size_t n)
{
    AUTO(buf) path = {0}, bytes = {0};
    buf_init(&path, 0);
    buf_init(&bytes, 0);
    TRY(tile_path(c->dir, id, &path));
    if (!file_exists(path.data)) {
        c->report->n_missing++;
        return IG_OK;
    }
    ig_status st = file_read(path.data, TILE_MAX_BUNDLE, &bytes);
    if (st == IG_ENOMEM) return st;
    if (st != IG_OK || bytes.n != n || (n && memcmp(bytes.data, p, n) != 0))
        found_path(c, path.data, "does not hold the events of the segments");
    return IG_OK;
}

/* ---- during the scan ---- */

/* The seed of an admit must come from a root that this log has signed. */
static void check_seed(check *c, uint64_t index)
{
    const ledger_seed *seed = &c->led.seed;
    uint64_t n = c->n_recent < N_RECENT ? c->n_recent : N_RECENT;
    for (uint64_t i = 1; i <= n; i++) {
        const recent_root *r = &c->recent[(c->n_recent - i) % N_RECENT];
        if (r->size == seed->size && tree_hash_eq(&r->root, &seed->root)) return;
        if (r->size < seed->size) break;
    }
    char text[160];
    (void)snprintf(text, sizeof text,
                   "event %" PRIu64 ": seed.root is that of no checkpoint of size %" PRIu64
                   " signed before it",
                   index, seed->size);
    found(c, text);
}

static ig_status on_leaf(void *user, uint64_t index, str leaf, const tree_hash *hash)
{
    check *c = user;
    c->led.seed.from_log = false;
    ig_status st = ledger_add(&c->led, index, hash, leaf, true);
    if (st == IG_ENOMEM) return st;
    if (st != IG_OK) found(c, ig_error_message());
    if (c->led.seed.from_log) check_seed(c, index);
    c->n_leaves = index + 1;
    tile_entry_add(&c->bundle, leaf);
    if (index % TREE_TILE_WIDTH == TREE_TILE_WIDTH - 1) {
        tile_id id = {TILE_ENTRIES, index / TREE_TILE_WIDTH, TREE_TILE_WIDTH};
        TRY(buf_status(&c->bundle));
        TRY(compare_file(c, id, c->bundle.data, c->bundle.n));
        buf_clear(&c->bundle);
    }
    return IG_OK;
}

static ig_status on_tile(void *user, unsigned level, uint64_t index, const tree_hash *hashes)
{
    tile_id id = {(int)level, index, TREE_TILE_WIDTH};
    return compare_file(user, id, hashes, TREE_TILE_WIDTH * sizeof *hashes);
}

static ig_status on_note(void *user, const char *where, str note, const checkpoint *parsed)
{
    check *c = user;
    checkpoint again;
    c->report->n_checkpoints++;
    if (parsed->size == c->n_leaves) /* a stored one; the published one comes first */
        c->recent[c->n_recent++ % N_RECENT] = (recent_root){parsed->size, parsed->root};
    ig_status st = checkpoint_open(where, note, c->vkey, &again);
    if (st == IG_ENOMEM) return st;
    if (st != IG_OK) {
        char text[1024];
        (void)snprintf(text, sizeof text, "checkpoint of size %" PRIu64 ": %s", parsed->size,
                       ig_error_message());
        found(c, text);
    }
    return IG_OK;
}

/* ---- partial tiles ---- */

static bool take_number(const char **p, uint64_t max, uint64_t *ret)
{
    size_t n = strspn(*p, "0123456789");
    int64_t v;
    if (n == 0 || (n > 1 && **p == '0') || !str_int((str){*p, n}, 0, (int64_t)max, &v))
        return false;
    *p += n;
    *ret = (uint64_t)v;
    return true;
}

/* "x001/x234/067" up to its end or ".p/". */
static bool take_index(const char **p, uint64_t *ret)
{
    uint64_t v = 0;
    for (int groups = 0; groups < 6; groups++) {
        bool more = **p == 'x';
        if (more) ++*p;
        if (strspn(*p, "0123456789") != 3) return false;
        v = v * 1000 + (uint64_t)(((*p)[0] - '0') * 100 + ((*p)[1] - '0') * 10 + ((*p)[2] - '0'));
        *p += 3;
        if (!more) {
            *ret = v;
            return true;
        }
        if (*(*p)++ != '/') return false;
    }
    return false;
}

/* A name below tile/. */
static bool parse_tile(const char *name, tile_id *ret_id)
{
    uint64_t level, width = TREE_TILE_WIDTH;
    if (strncmp(name, "entries/", 8) == 0) {
        name += 8;
        ret_id->level = TILE_ENTRIES;
    } else {
        if (!take_number(&name, TREE_N_LEVELS - 1, &level) || *name++ != '/') return false;
        ret_id->level = (int)level;
    }
    if (!take_index(&name, &ret_id->index)) return false;
    if (strncmp(name, ".p/", 3) == 0) {
        name += 3;
        if (!take_number(&name, TREE_TILE_WIDTH - 1, &width) || width == 0) return false;
    }
    ret_id->width = (unsigned)width;
    return *name == 0;
}

static ig_status compare_partial(check *c, tile_id id)
{
    if (id.level == TILE_ENTRIES) {
        AUTO(buf) bundle = {0};
        buf_init(&bundle, 0);
        TRY(store_bundle(c->s, id.index * TREE_TILE_WIDTH, id.width, &bundle));
        return compare_file(c, id, bundle.data, bundle.n);
    }
    AUTO(mem_ptr) hashes = mem_alloc(TREE_TILE_WIDTH * sizeof(tree_hash));
    if (!hashes) return IG_ENOMEM;
    TRY(store_tile(c->s, (unsigned)id.level, id.index, hashes));
    return compare_file(c, id, hashes, id.width * sizeof(tree_hash));
}

static ig_status on_tile_file(void *user, const char *name, const struct stat *st)
{
    check *c = user;
    tile_id id;
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    (void)st;
    TRY(file_join(&path, c->dir, "tile/"));
    buf_str(&path, name);
    TRY(buf_status(&path));
    if (str_ends(str_of(name), str_of(".tmp"))) return IG_OK; /* a write that a crash interrupted */
    if (!parse_tile(name, &id)) {
        found_path(c, path.data, "no tile of a log has this name");
        return IG_OK;
    }
    unsigned level = id.level == TILE_ENTRIES ? 0 : (unsigned)id.level;
    uint64_t n = c->s->range.size >> (TREE_TILE_HEIGHT * level); /* hashes of this level */
    if (id.index > n / TREE_TILE_WIDTH || id.index * TREE_TILE_WIDTH + id.width > n) {
        found_path(c, path.data, "is beyond the end of the log");
        return IG_OK;
    }
    return id.width < TREE_TILE_WIDTH ? compare_partial(c, id) : IG_OK;
}

static ig_status check_tiles(check *c)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, c->dir, "tile"));
    return file_exists(path.data) ? file_walk(path.data, on_tile_file, c) : IG_OK;
}

/* ---- the rest ---- */

/* The copy of the key in the directory proves nothing, but must not mislead either. */
static ig_status check_key_file(check *c)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    log_vkey v;
    TRY(file_join(&path, c->dir, "log.vkey"));
    if (!file_exists(path.data)) {
        c->report->n_missing++;
        return IG_OK;
    }
    ig_status st = log_vkey_read(path.data, &v);
    if (st == IG_ENOMEM) return st;
    if (st != IG_OK) {
        found(c, ig_error_message());
    } else if (strcmp(v.text, c->vkey->text) != 0) {
        found_path(c, path.data, "is not the key that you trust");
    } else {
        AUTO(buf) text = {0};
        buf_init(&text, 0);
        TRY(file_read(path.data, 4096, &text));
        if (text.n != strlen(v.text) + 1 || text.data[text.n - 1] != '\n')
            found_path(c, path.data, "has more than the key in it");
    }
    return IG_OK;
}

static ig_status check_known(check *c)
{
    checkpoint known;
    tree_proof proof;
    tree_hash root;
    TRY(checkpoint_open("the known checkpoint", str_of(c->o->known), c->vkey, &known));
    if (known.size > c->s->range.size) {
        found(c, "the log is shorter than the known checkpoint: events are missing");
        return IG_OK;
    }
    tree_range_root(&c->s->range, &root);
    TRY(store_prove_consistency(c->s, known.size, c->s->range.size, &proof));
    if (!tree_check_consistency(&proof, known.size, &known.root, c->s->range.size, &root))
        found(c, "the log does not extend the known checkpoint: its history was rewritten");
    return IG_OK;
}

static void fill_report(check *c)
{
    ig_audit_log_report *r = c->report;
    tree_hash root;
    tree_range_root(&c->s->range, &root);
    r->size = c->s->range.size;
    r->signed_size = c->s->tail.signed_size;
    r->n_sessions = c->led.n_sessions;
    r->n_admits = c->led.n_admits;
    r->n_dones = c->led.n_dones;
    r->n_open = c->led.n_open;
    r->n_torn = c->s->tail.torn;
    for (size_t i = 0; i < SHA256_N; i++) (void)snprintf(r->root + 2 * i, 3, "%02x", root.b[i]);
}

/* Whether a server has the log open: its last write may be half visible. */
static bool in_use(const char *dir)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    int fd;
    if (file_join(&path, dir, "lock") != IG_OK || !file_exists(path.data)) return false;
    if (io_open(path.data, O_RDONLY | O_NONBLOCK, 0, &fd) != IG_OK) return false;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool used = fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    io_close(fd);
    return used;
}

static void check_tail(check *c)
{
    store *s = c->s;
    const store_segment *last = &s->segments[s->n_segments - 1];
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    if (s->tail.torn == 0 || in_use(c->dir)) return;
    if (store_segment_path(c->dir, last->first, &path) != IG_OK) return;
    char what[160];
    (void)snprintf(what, sizeof what,
                   "%zu bytes at byte %zu, after event %" PRIu64
                   ", are no whole record: an unfinished write of a crash, or damage",
                   s->tail.torn, last->used, s->range.size - 1);
    found_path(c, path.data, what);
}

static ig_status run(check *c)
{
    store_hooks hooks = {.user = c,
                         .leaf = on_leaf,
                         .tile = on_tile,
                         .note = on_note,
                         .progress = c->o->progress,
                         .progress_user = c->o->user};
    TRY(check_key_file(c));
    ig_status st = store_open(c->dir, c->vkey, &hooks, &c->s);
    if (st == IG_EVERIFY || st == IG_EFORMAT) found(c, ig_error_message());
    TRY(st);
    fill_report(c);
    check_tail(c);
    TRY(check_tiles(c));
    return c->o->known ? check_known(c) : IG_OK;
}

ig_status verify_log(const char *dir, const log_vkey *vkey, const ig_audit_log_options *o,
                     ig_audit_log_report *ret_report)
{
    static const ig_audit_log_options plain = {.known = NULL};
    AUTO(mem_ptr) memory = mem_calloc(1, sizeof(check));
    check *c = memory;
    if (!c) return IG_ENOMEM;
    *ret_report = (ig_audit_log_report){.size = 0};
    c->dir = dir;
    c->vkey = vkey;
    c->o = o ? o : &plain;
    c->report = ret_report;
    ledger_init(&c->led);
    buf_init(&c->bundle, TILE_MAX_BUNDLE);
    c->recent = mem_calloc(N_RECENT, sizeof *c->recent);
    ig_status st = c->recent ? run(c) : IG_ENOMEM;
    ledger_done(&c->led);
    buf_done(&c->bundle);
    mem_free(c->recent);
    store_free(c->s);
    if (st != IG_OK && st != IG_EVERIFY && st != IG_EFORMAT) return st;
    return ret_report->n_findings ? ig_fail(IG_EVERIFY, "%s", c->first) : st;
}
