/* start.c: opening a log (lock, scan, repair, gap, orphans) and closing it (contract in log.h). */
#include <inttypes.h>
#include <string.h>

#include "audit/ledger.h"
#include "audit/log_internal.h"
#include "base/file.h"

static ig_status machine_digest(const char *origin, const char *machine_id, uint8_t ret[SHA256_N])
{
    AUTO(buf) text = {0};
    buf_init(&text, 1024);
    buf_printf(&text, "ingot machine\n%s\n%s\n", origin, machine_id ? machine_id : "");
    TRY(buf_status(&text));
    sha256(text.data, text.n, ret);
    return IG_OK;
}

static ig_status scan_leaf(void *user, uint64_t index, str leaf, const tree_hash *hash)
{
    return ledger_add(user, index, hash, leaf, false);
}

/* Says at once whose log this is, rather than that every signature in it is wrong. */
static ig_status check_key(const char *dir, const log_vkey *vkey)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    log_vkey old;
    TRY(file_join(&path, dir, "log.vkey"));
    if (!file_exists(path.data)) return IG_OK;
    TRY(log_vkey_read(path.data, &old));
    if (strcmp(old.text, vkey->text) == 0) return IG_OK;
    return ig_fail(IG_EVERIFY, "%s: this log belongs to key %s, not to %s", path.data, old.text,
                   vkey->text);
}

/* Locks, makes an empty log where asked, scans. */
static ig_status open_store(const audit_log_options *o, ledger *led, int *ret_lock,
                            store **ret_store)
{
    const log_vkey *vkey = log_key_public(o->key);
    AUTO(buf) segments = {0};
    buf_init(&segments, 0);
    TRY(file_join(&segments, o->dir, "segments/00000000000000000000.seg"));
    bool fresh = o->create && !file_exists(segments.data);
    if (fresh) TRY(file_mkdirs(o->dir, 0755));
    int lock_fd;
    TRY(writer_lock(o->dir, &lock_fd));
    ig_status st = check_key(o->dir, vkey);
    store_hooks hooks = {
        .user = led, .leaf = scan_leaf, .progress = o->progress, .progress_user = o->progress_user};
    if (st == IG_OK && fresh)
        st = writer_create(o->dir, vkey, o->segment_bytes ? o->segment_bytes : 64u << 20);
    if (st == IG_OK) st = store_open(o->dir, vkey, &hooks, ret_store);
    if (st != IG_OK) {
        io_close(lock_fd);
        return st == IG_ENOTFOUND ? ig_fail_context(st, "no audit log: ") : st;
    }
    *ret_lock = lock_fd;
    return IG_OK;
}

static ig_status write_gap(audit_log *l)
{
    AUTO(mem_ptr) memory = mem_alloc(sizeof(event));
    event *e = memory;
    audit_ref unused;
    if (!e) return IG_ENOMEM;
    event_init(e, EVENT_GAP);
    event_str(e, EV_GAP_REASON, l->recovery.cut ? "torn" : "crash");
    event_int(e, EV_GAP_SIZE, (int64_t)l->recovery.size);
    event_int(e, EV_GAP_SIGNED, (int64_t)l->recovery.signed_size);
    event_int(e, EV_GAP_CUT, (int64_t)l->recovery.cut);
    event_int(e, EV_GAP_ORPHANS, (int64_t)l->recovery.orphans);
    return log_append_wait(l, e, true, &unused);
}

static ig_status close_orphan(audit_log *l, const ledger_open *orphan)
{
    AUTO(buf) leaf = {0};
    AUTO(event_parsed) admit = {.store = NULL};
    AUTO(mem_ptr) memory = mem_alloc(sizeof(event));
    event *e = memory;
    audit_ref unused;
    buf_init(&leaf, 0);
    if (!e) return IG_ENOMEM;
    TRY(store_leaf(l->w.s, orphan->index, &leaf));
    TRY(event_parse("orphan", (str){leaf.data, leaf.n}, &admit));
    event_init(e, EVENT_DONE);
    event_str_n(e, EV_DONE_REQ, event_get_str(&admit.e, EV_ADMIT_REQ));
    event_int(e, EV_DONE_ADMIT_I, (int64_t)orphan->index);
    event_hex(e, EV_DONE_ADMIT_H, orphan->hash.b);
    event_str(e, EV_DONE_STATUS, "recovered");
    event_str(e, EV_DONE_FINISH, "none");
    event_int(e, EV_DONE_HTTP, 0);
    event_int(e, EV_DONE_SENT, 0);
    return log_append_wait(l, e, true, &unused);
}

static ig_status recover(audit_log *l, const ledger *led)
{
    l->recovery.orphans = led->n_open;
    l->recovery.gap = led->running || l->recovery.cut > 0;
    if (l->recovery.gap) TRY(write_gap(l));
    for (size_t i = 0; i < led->n_open; i++) TRY(close_orphan(l, &led->open[i]));
    return IG_OK;
}

static ig_status start(audit_log *l, const audit_log_options *o, const ledger *led)
{
    TRY(random_bytes(l->boot, sizeof l->boot));
    TRY(machine_digest(audit_log_vkey(l)->name, o->machine_id, l->mach));
    if (led->has_mach && memcmp(led->mach, l->mach, SHA256_N) != 0 && !o->take_over)
        return ig_fail(
            IG_EVERIFY,
            "%s: this log was last written on another machine; a copy must not go on beside "
            "its original: use --take-over only if that one is gone",
            o->dir);
    TRY(log_start_thread(l));
    return recover(l, led);
}

static ig_status check_options(const audit_log_options *o)
{
    if (!o->dir || !o->key) return ig_fail(IG_EINVAL, "audit log: dir and key are needed");
    if (o->srv && (strlen(o->srv) == 0 || strlen(o->srv) > 64))
        return ig_fail(IG_EINVAL, "audit log: the server's name has 1 to 64 characters");
    if (o->segment_bytes &&
        (o->segment_bytes < SEGMENT_MIN_BYTES || o->segment_bytes > SEGMENT_MAX_BYTES))
        return ig_fail(IG_EINVAL, "audit log: a segment has %zu to %zu bytes", SEGMENT_MIN_BYTES,
                       SEGMENT_MAX_BYTES);
    return IG_OK;
}

static void log_free(audit_log *l)
{
    writer_detach(&l->w);
    cond_done(&l->wake);
    lock_done(&l->lock);
    mem_free(l);
}

static ig_status log_new(const audit_log_options *o, audit_log **ret_log)
{
    audit_log *l = mem_calloc(1, sizeof *l);
    if (!l) return IG_ENOMEM;
    l->w = (writer){.fd = -1, .spare_fd = -1, .lock_fd = -1};
    l->tail = &l->head;
    l->publish_us = o->publish_us ? o->publish_us : 1000000;
    l->on_dead = o->on_dead;
    l->user = o->user;
    (void)strncpy(l->srv, o->srv ? o->srv : "ingot", sizeof l->srv - 1);
    ig_status st = lock_init(&l->lock, RANK_AUDIT);
    if (st == IG_OK && (st = cond_init(&l->wake)) != IG_OK) lock_done(&l->lock);
    if (st != IG_OK) {
        mem_free(l);
        return st;
    }
    *ret_log = l;
    return IG_OK;
}

void audit_log_abandon(audit_log *l)
{
    if (!l) return;
    log_stop_thread(l);
    log_free(l);
}

static ig_status open_log(audit_log *l, const audit_log_options *o)
{
    AUTO(ledger) led;
    ledger_init(&led);
    int lock_fd = -1;
    store *s = NULL;
    size_t segment_bytes = o->segment_bytes ? o->segment_bytes : (size_t)64 << 20;
    TRY(open_store(o, &led, &lock_fd, &s));
    l->recovery = (audit_recovery){
        .size = s->range.size, .signed_size = s->tail.signed_size, .cut = s->tail.torn};
    TRY(writer_attach(&l->w, s, o->key, lock_fd, segment_bytes));
    return start(l, o, &led);
}

ig_status audit_log_open(const audit_log_options *o, audit_log **ret_log)
{
    TRY(check_options(o));
    audit_log *l;
    TRY(log_new(o, &l));
    ig_status st = open_log(l, o);
    if (st != IG_OK) {
        audit_log_abandon(l);
        return st;
    }
    *ret_log = l;
    return IG_OK;
}

/* ---- end ---- */

static ig_status write_stop(audit_log *l, const char *reason)
{
    AUTO(mem_ptr) memory = mem_alloc(sizeof(event));
    event *e = memory;
    audit_ref unused;
    if (!e) return IG_ENOMEM;
    TRY(audit_log_alive(l));
    lock_take(&l->lock);
    bool booted = l->booted;
    uint64_t n_open = l->n_admits - l->n_dones;
    event_init(e, EVENT_STOP);
    event_str(e, EV_STOP_REASON, reason);
    event_int(e, EV_STOP_ADMITS, (int64_t)l->n_admits);
    event_int(e, EV_STOP_DONES, (int64_t)l->n_dones);
    lock_drop(&l->lock);
    if (!booted) return IG_OK;
    if (n_open)
        return ig_fail(IG_EINVAL,
                       "audit log: closed with %" PRIu64 " requests open; the next start "
                       "closes them as recovered",
                       n_open);
    return log_append_wait(l, e, true, &unused);
}

ig_status audit_log_close(audit_log *l, const char *reason)
{
    ig_status st = write_stop(l, reason);
    log_stop_thread(l);
    if (st == IG_OK && !l->dead) st = writer_finish(&l->w);
    log_free(l);
    return st;
}
