/* ledger.c: the rules between events (contract in ledger.h). */
#define _GNU_SOURCE /* memmem */
#include "audit/ledger.h"

#include <inttypes.h>
#include <string.h>

void ledger_init(ledger *l) { *l = (ledger){0}; }

void ledger_done(ledger *l)
{
    mem_free(l->open);
    mem_free(l->loads);
    *l = (ledger){0};
}

static ig_status broken(uint64_t index, const char *rule)
{
    return ig_fail(IG_EVERIFY, "event %" PRIu64 ": %s", index, rule);
}

static ig_status grow(void **array, size_t n, size_t *cap, size_t item, size_t max)
{
    if (n < *cap) return IG_OK;
    if (n >= max) return ig_fail(IG_ELIMIT, "audit log: more than %zu open requests or loads", max);
    size_t wanted = *cap ? *cap * 2 : 64;
    void *p = mem_realloc(*array, wanted * item);
    if (!p) return IG_ENOMEM;
    *array = p;
    *cap = wanted;
    return IG_OK;
}

static ig_status open_admit(ledger *l, uint64_t index, const tree_hash *hash)
{
    if (!l->running) return broken(index, "admit outside a session");
    TRY(grow((void **)&l->open, l->n_open, &l->cap_open, sizeof *l->open, LEDGER_MAX_OPEN));
    l->open[l->n_open++] = (ledger_open){.index = index, .hash = *hash};
    l->n_admits++;
    l->session_admits++;
    return IG_OK;
}

/* Finds and removes. */
static ig_status close_admit(ledger *l, uint64_t index, uint64_t admit, ledger_open *ret_closed)
{
    size_t lo = 0, hi = l->n_open;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (l->open[mid].index < admit)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == l->n_open || l->open[lo].index != admit)
        return ig_fail(IG_EVERIFY,
                       "event %" PRIu64 ": done for event %" PRIu64
                       ", which is no open admit (a second done, or none was admitted)",
                       index, admit);
    *ret_closed = l->open[lo];
    memmove(l->open + lo, l->open + lo + 1, (--l->n_open - lo) * sizeof *l->open);
    l->n_dones++;
    l->session_dones++;
    return IG_OK;
}

static ig_status start_session(ledger *l, uint64_t index)
{
    if (l->running) return broken(index, "boot, but the session before has neither stop nor gap");
    if (l->n_open) return broken(index, "boot while orphans of a crash are open");
    l->running = true;
    l->n_sessions++;
    l->session_admits = l->session_dones = 0;
    l->n_loads = 0;
    return IG_OK;
}

/* The part that needs only the type: who is open, and which state the session is in. */
static ig_status step(ledger *l, uint64_t index, const tree_hash *hash, event_type type,
                      uint64_t admit, ledger_open *ret_closed)
{
    switch (type) {
    case EVENT_BOOT: return start_session(l, index);
    case EVENT_ADMIT: return open_admit(l, index, hash);
    case EVENT_DONE: return close_admit(l, index, admit, ret_closed);
    case EVENT_GAP: l->running = false; return IG_OK;
    case EVENT_STOP:
        if (!l->running) return broken(index, "stop outside a session");
        if (l->n_open) return broken(index, "stop while requests are open");
        l->running = false;
        return IG_OK;
    default: return l->running ? IG_OK : broken(index, "outside a session");
    }
}

static ig_status check_boot(ledger *l, uint64_t index, const event *e)
{
    const uint8_t *boot = event_get_raw(e, EV_ANY_BOOT);
    int64_t mono = event_get_int(e, EV_ANY_MONO);
    if (e->type == EVENT_BOOT) {
        memcpy(l->boot, boot, sizeof l->boot);
        l->mono = mono;
    }
    if (!l->running && e->type != EVENT_STOP) return IG_OK;
    if (memcmp(l->boot, boot, sizeof l->boot) != 0) return broken(index, "names another session");
    if (mono < l->mono) return broken(index, "mono is before that of the event before");
    l->mono = mono;
    return IG_OK;
}

static ig_status check_load(ledger *l, uint64_t index, const tree_hash *hash, const event *e)
{
    TRY(grow((void **)&l->loads, l->n_loads, &l->cap_loads, sizeof *l->loads, LEDGER_MAX_LOADS));
    ledger_load *load = &l->loads[l->n_loads++];
    load->index = index;
    load->hash = *hash;
    memcpy(load->root, event_get_raw(e, EV_LOAD_MODEL_ROOT), SHA256_N);
    return IG_OK;
}

static ig_status check_admit(ledger *l, uint64_t index, const event *e)
{
    uint64_t wanted = (uint64_t)event_get_int(e, EV_ADMIT_LOAD_I);
    str req = event_get_str(e, EV_ADMIT_REQ); /* at most 64 characters: event.def */
    memcpy(l->open[l->n_open - 1].req, req.p, req.n);
    l->open[l->n_open - 1].req[req.n] = 0;
    l->seed.from_log = event_is(e, EV_ADMIT_SEED_FROM, "log");
    l->seed.size = (uint64_t)event_get_int(e, EV_ADMIT_SEED_SIZE);
    memcpy(l->seed.root.b, event_get_raw(e, EV_ADMIT_SEED_ROOT), SHA256_N);
    for (size_t i = 0; i < l->n_loads; i++) {
        const ledger_load *load = &l->loads[i];
        if (load->index != wanted) continue;
        if (memcmp(load->hash.b, event_get_raw(e, EV_ADMIT_LOAD_H), SHA256_N) != 0)
            return broken(index, "load.h is not the leaf hash of load.i");
        if (memcmp(load->root, event_get_raw(e, EV_ADMIT_MODEL_ROOT), SHA256_N) != 0)
            return broken(index, "model.root is not the one that load.i verified");
        return IG_OK;
    }
    return broken(index, "load.i is no load of this session");
}

static ig_status check_done(const ledger *l, uint64_t index, const ledger_open *admit,
                            const event *e)
{
    if (memcmp(admit->hash.b, event_get_raw(e, EV_DONE_ADMIT_H), SHA256_N) != 0)
        return broken(index, "admit.h is not the leaf hash of admit.i");
    if (!event_is(e, EV_DONE_REQ, admit->req)) return broken(index, "req is not that of admit.i");
    if (!l->running && !event_is(e, EV_DONE_STATUS, "recovered"))
        return broken(index, "done outside a session that is not status recovered");
    return IG_OK;
}

static ig_status check_gap(uint64_t index, const event *e)
{
    if ((uint64_t)event_get_int(e, EV_GAP_SIZE) != index)
        return broken(index, "size is not the index");
    if (event_get_int(e, EV_GAP_SIGNED) > event_get_int(e, EV_GAP_SIZE))
        return broken(index, "signed is larger than size");
    return IG_OK;
}

static ig_status check_stop(const ledger *l, uint64_t index, const event *e)
{
    if ((uint64_t)event_get_int(e, EV_STOP_ADMITS) != l->session_admits ||
        (uint64_t)event_get_int(e, EV_STOP_DONES) != l->session_dones)
        return broken(index, "n.admit or n.done is not what the session holds");
    return IG_OK;
}

static ig_status add_strict(ledger *l, uint64_t index, const tree_hash *hash, str leaf)
{
    AUTO(buf) name = {0};
    buf_init(&name, 40);
    buf_printf(&name, "event %" PRIu64, index);
    TRY(buf_status(&name));
    AUTO(event_parsed) p = {.store = NULL};
    TRY(event_parse(name.data, leaf, &p));
    const event *e = &p.e;
    ledger_open closed = {.index = 0};
    TRY(step(l, index, hash, e->type, (uint64_t)event_get_int(e, EV_DONE_ADMIT_I), &closed));
    TRY(check_boot(l, index, e));
    switch (e->type) {
    case EVENT_LOAD: return check_load(l, index, hash, e);
    case EVENT_ADMIT: return check_admit(l, index, e);
    case EVENT_DONE: return check_done(l, index, &closed, e);
    case EVENT_GAP: return check_gap(index, e);
    case EVENT_STOP: return check_stop(l, index, e);
    default: return IG_OK;
    }
}

/* The machine of the last boot, without a full parse. */
static void peek_mach(ledger *l, str leaf)
{
    static const char mark[] = "\"mach\":\"";
    const char *at = memmem(leaf.p, leaf.n, mark, sizeof mark - 1);
    if (!at) return;
    at += sizeof mark - 1;
    size_t left = (size_t)(leaf.p + leaf.n - at);
    l->has_mach = left >= 64 && hex_decode((str){at, 64}, l->mach, SHA256_N);
}

ig_status ledger_add(ledger *l, uint64_t index, const tree_hash *hash, str leaf, bool strict)
{
    if (strict) return add_strict(l, index, hash, leaf);
    event_type type;
    uint64_t admit = 0;
    ledger_open unused;
    if (!event_peek(leaf, &type, &admit))
        return broken(index, "not an event that this version knows");
    if (type == EVENT_BOOT) peek_mach(l, leaf);
    return step(l, index, hash, type, admit, &unused);
}
