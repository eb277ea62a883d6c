/* log.c: the queue in front of the writer, its thread, admission tokens (contract in log.h).
 *
 * One thread, "audit", owns the writer. Everybody else puts nodes into a queue under `lock` and is
 * called back, or waits. The lock is never held across a system call. */
#include "audit/log_internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"

#define MAX_QUEUED ((int64_t)16 << 20) /* bytes waiting for the writer */
#define WRITER_NICE (-10)
#define SPARE_RETRY_US 1000000

struct audit_token {
    audit_log *l;
    audit_token_kind kind;
    audit_ref ref;
    char req[65];
    bool finished; /* done was queued */
    node done;
    audit_admit_fn fn; /* until the admit is reported */
    void *user;
};

#define DONE_CHARGE writer_charge(EVENT_MAX_DONE)

/* ---- life and death ---- */

static ig_status dead_status(audit_log *l)
{
    return ig_fail(IG_EIO, "audit log: stopped after a failure: %s", l->message);
}

ig_status audit_log_alive(audit_log *l)
{
    lock_take(&l->lock);
    bool dead = l->dead;
    lock_drop(&l->lock);
    return dead ? dead_status(l) : IG_OK; /* the message no longer changes */
}

static void node_free(node *n)
{
    if (!n || n->shared) return;
    buf_done(&n->leaf);
    mem_free(n);
}

static void report(node *n, ig_status status)
{
    audit_append_fn fn = n->fn;
    void *user = n->user;
    audit_ref ref = n->ref;
    node_free(n); /* before the call: a shared node's token may be freed in it */
    fn(user, status, &ref);
}

/* From the first failed write on, nothing may be promised any more. */
static void die(audit_log *l, node *taken)
{
    lock_take(&l->lock);
    (void)strncpy(l->message, ig_error_message(), LOG_MESSAGE_N - 1);
    l->dead = true;
    node *rest = l->head;
    l->head = NULL;
    l->tail = &l->head;
    lock_drop(&l->lock);
    if (l->on_dead) l->on_dead(l->user, l->message);
    node *lists[] = {taken, rest};
    for (size_t i = 0; i < N_ELEM(lists); i++)
        for (node *n = lists[i], *next; n; n = next) {
            next = n->next;
            report(n, dead_status(l));
        }
}

/* ---- the writer thread ---- */

/* Waits for work. True: nodes in *ret_list, or (empty list) time to publish; false: stopping. */
static bool next_work(audit_log *l, int64_t publish_at_us, node **ret_list)
{
    lock_take(&l->lock);
    bool timely = true;
    while (!l->head && !l->stopping && !l->want_spare && timely) {
        if (publish_at_us == INT64_MAX)
            cond_wait(&l->wake, &l->lock);
        else
            timely = cond_wait_until(&l->wake, &l->lock, publish_at_us);
    }
    *ret_list = l->head;
    l->head = NULL;
    l->tail = &l->head;
    bool go_on = *ret_list || !l->stopping;
    lock_drop(&l->lock);
    return go_on;
}

/* After each piece: what it freed and what is left. */
static void settle(audit_log *l, const node *list, size_t n)
{
    lock_take(&l->lock);
    for (size_t i = 0; i < n; i++, list = list->next) {
        int64_t charge = writer_charge(list->leaf.n);
        if (list->reserved)
            l->reserved -= DONE_CHARGE;
        else
            l->queued -= charge;
    }
    l->room = writer_room(&l->w);
    l->n_syncs = l->w.n_syncs;
    l->n_notes = l->w.n_notes;
    l->n_derived_failures = l->w.n_derived_failures;
    lock_drop(&l->lock);
}

/* Reports the first n nodes of a durable piece: those that need no signature at once, then one
 * checkpoint, then the others. *list loses what was reported; on failure the unreported stay in
 * it. */
static ig_status release(audit_log *l, node **list, size_t n)
{
    node *signing = NULL, **last = &signing;
    for (size_t i = 0; i < n; i++) {
        node *one = *list;
        *list = one->next;
        one->next = NULL;
        if (one->sign) {
            *last = one;
            last = &one->next;
        } else {
            report(one, IG_OK);
        }
    }
    if (!signing) return IG_OK;
    ig_status st = writer_sign(&l->w);
    if (st != IG_OK) {
        *last = *list;
        *list = signing;
        return st;
    }
    for (node *next; signing; signing = next) {
        next = signing->next;
        report(signing, IG_OK);
    }
    return IG_OK;
}

static ig_status write_list(audit_log *l, node **list)
{
    str leaves[WRITER_MAX_PIECE];
    tree_hash hashes[WRITER_MAX_PIECE];
    while (*list) {
        size_t n = 0, done = 0;
        for (node *i = *list; i && n < WRITER_MAX_PIECE; i = i->next)
            leaves[n++] = (str){i->leaf.data, i->leaf.n};
        uint64_t first = l->w.s->range.size;
        TRY(writer_commit(&l->w, leaves, n, &done, hashes));
        node *at = *list;
        for (size_t i = 0; i < done; i++, at = at->next)
            at->ref = (audit_ref){first + i, hashes[i]};
        settle(l, *list, done);
        TRY(release(l, list, done));
        writer_derive(&l->w);
    }
    return IG_OK;
}

/* A spare that cannot be made is no failure of what was promised: admission refuses until it
 * can. */
static void refill(audit_log *l, int64_t *next_try_us)
{
    bool missing = l->w.spare_fd < 0;
    if (missing && clock_mono_us() >= *next_try_us) {
        if (writer_make_spare(&l->w) != IG_OK) {
            *next_try_us = clock_mono_us() + SPARE_RETRY_US;
            ig_error_clear();
        }
    }
    lock_take(&l->lock);
    l->room = writer_room(&l->w);
    l->want_spare = false;
    lock_drop(&l->lock);
}

static ig_status publish_if_due(audit_log *l, int64_t *due_us)
{
    int64_t now = clock_mono_us();
    bool fresh = l->w.s->latest.size == l->w.published || l->w.s->latest_note.n == 0;
    if (fresh) {
        *due_us = INT64_MAX;
    } else if (*due_us == INT64_MAX) {
        *due_us = now + l->publish_us;
    } else if (now >= *due_us) {
        TRY(writer_publish(&l->w));
        *due_us = INT64_MAX;
    }
    return IG_OK;
}

static void *run_writer(void *arg)
{
    audit_log *l = arg;
    int64_t due_us = INT64_MAX, spare_us = 0;
    node *list;
    while (next_work(l, due_us, &list)) {
        ig_status st = write_list(l, &list);
        if (st == IG_OK) st = publish_if_due(l, &due_us);
        if (st != IG_OK) {
            die(l, list);
            return NULL;
        }
        refill(l, &spare_us);
    }
    return NULL;
}

ig_status log_start_thread(audit_log *l)
{
    l->room = writer_room(&l->w);
    TRY(thread_start(&l->thread, "audit", WRITER_NICE, run_writer, l));
    l->has_thread = true;
    return IG_OK;
}

void log_stop_thread(audit_log *l)
{
    if (!l->has_thread) return;
    lock_take(&l->lock);
    l->stopping = true;
    cond_signal(&l->wake);
    lock_drop(&l->lock);
    (void)pthread_join(l->thread, NULL);
    l->has_thread = false;
}

/* ---- queueing ---- */

static node *node_new(bool sign, audit_append_fn fn, void *user)
{
    node *n = mem_calloc(1, sizeof *n);
    if (!n) return NULL;
    buf_init(&n->leaf, EVENT_MAX_LEAF);
    n->sign = sign;
    n->fn = fn;
    n->user = user;
    return n;
}

/* Fills the common fields and encodes; under the lock, so that times follow the order of the
 * log. */
static ig_status encode(audit_log *l, event *e, node *n)
{
    char t[CLOCK_RFC3339_N];
    clock_rfc3339(clock_wall_us(), t);
    event_str(e, EV_ANY_T, t);
    event_int(e, EV_ANY_MONO, clock_mono_us());
    event_hex(e, EV_ANY_BOOT, l->boot);
    event_str(e, EV_ANY_SRV, l->srv);
    ig_status st = event_encode(e, &n->leaf);
    event_str(e, EV_ANY_T, ""); /* t is a local */
    return st;
}

static ig_status check_open(audit_log *l, const event *e)
{
    if (l->dead) return dead_status(l);
    if (l->stopping) return ig_fail(IG_ECANCELLED, "audit log: closing");
    bool recovering = e->type == EVENT_GAP || event_is(e, EV_DONE_STATUS, "recovered");
    if (!l->booted && e->type != EVENT_BOOT && !recovering)
        return ig_fail(IG_EINVAL, "audit log: %s before boot", event_type_name(e->type));
    if (l->booted && e->type == EVENT_BOOT) return ig_fail(IG_EINVAL, "audit log: a second boot");
    return IG_OK;
}

/* Room for the node, and, for an admit, for its done. */
static ig_status check_room(audit_log *l, const node *n, bool with_done)
{
    int64_t charge = writer_charge(n->leaf.n), more = with_done ? DONE_CHARGE : 0;
    if (n->reserved) return IG_OK;
    if (l->queued + charge > MAX_QUEUED)
        return ig_fail(IG_ELIMIT, "audit log: %" PRId64 " bytes wait for the disk; try again later",
                       l->queued);
    if (l->queued + l->reserved + charge + more > l->room) {
        l->want_spare = true;
        cond_signal(&l->wake);
        return ig_fail(IG_ELIMIT,
                       "audit log: no room for another request: %" PRId64 " bytes left, %" PRId64
                       " of them reserved; is the disk full?",
                       l->room, l->queued + l->reserved);
    }
    l->queued += charge;
    l->reserved += more;
    return IG_OK;
}

static void count(audit_log *l, const event *e)
{
    l->booted = l->booted || e->type == EVENT_BOOT;
    l->n_admits += e->type == EVENT_ADMIT;
    l->n_dones += e->type == EVENT_DONE && !event_is(e, EV_DONE_STATUS, "recovered");
}

/* On failure the node stays the caller's. */
static ig_status enqueue(audit_log *l, event *e, node *n, bool with_done)
{
    lock_take(&l->lock);
    ig_status st = check_open(l, e);
    if (st == IG_OK) st = encode(l, e, n);
    if (st == IG_OK) st = check_room(l, n, with_done);
    if (st == IG_OK) {
        count(l, e);
        n->next = NULL;
        *l->tail = n;
        l->tail = &n->next;
        cond_signal(&l->wake);
    }
    lock_drop(&l->lock);
    return st;
}

static ig_status append_any(audit_log *l, event *e, bool sign, audit_append_fn fn, void *user)
{
    node *n = node_new(sign, fn, user);
    if (!n) return IG_ENOMEM;
    ig_status st = enqueue(l, e, n, false);
    if (st != IG_OK) node_free(n);
    return st;
}

/* ---- waiting ---- */

typedef struct waiter {
    lock lock;
    cond wake;
    bool ready;
    ig_status status;
    audit_ref ref;
    audit_token *token;
} waiter;

static ig_status waiter_init(waiter *w)
{
    *w = (waiter){.ready = false};
    TRY(lock_init(&w->lock, RANK_LEAF));
    ig_status st = cond_init(&w->wake);
    if (st != IG_OK) lock_done(&w->lock);
    return st;
}

static void wake_waiter(waiter *w, ig_status status)
{
    lock_take(&w->lock);
    w->status = status;
    w->ready = true;
    cond_signal(&w->wake);
    lock_drop(&w->lock);
}

static void on_append(void *user, ig_status status, const audit_ref *ref)
{
    waiter *w = user;
    w->ref = *ref;
    wake_waiter(w, status);
}

static void on_admit(void *user, ig_status status, audit_token *token)
{
    waiter *w = user;
    w->token = token;
    wake_waiter(w, status);
}

/* Ends the waiter. `queued` is what queueing gave; the report only comes after success. */
static ig_status waiter_end(waiter *w, audit_log *l, ig_status queued)
{
    lock_take(&w->lock);
    while (queued == IG_OK && !w->ready) cond_wait(&w->wake, &w->lock);
    lock_drop(&w->lock);
    cond_done(&w->wake);
    lock_done(&w->lock);
    if (queued != IG_OK) return queued;
    return w->status == IG_OK ? IG_OK : audit_log_alive(l);
}

/* ---- appending ---- */

ig_status audit_append_async(audit_log *l, event *e, audit_append_fn fn, void *user)
{
    if (e->type != EVENT_BOOT && e->type != EVENT_DENIED)
        return ig_fail(IG_EINVAL, "audit log: %s has its own call", event_type_name(e->type));
    return append_any(l, e, e->type == EVENT_BOOT, fn, user);
}

ig_status audit_append(audit_log *l, event *e, audit_ref *ret_ref)
{
    waiter w;
    TRY(waiter_init(&w));
    TRY(waiter_end(&w, l, audit_append_async(l, e, on_append, &w)));
    *ret_ref = w.ref;
    return IG_OK;
}

ig_status log_append_wait(audit_log *l, event *e, bool sign, audit_ref *ret_ref)
{
    waiter w;
    TRY(waiter_init(&w));
    TRY(waiter_end(&w, l, append_any(l, e, sign, on_append, &w)));
    *ret_ref = w.ref;
    return IG_OK;
}

/* ---- tokens ---- */

audit_token_kind audit_token_what(const audit_token *t) { return t->kind; }
const audit_ref *audit_token_ref(const audit_token *t) { return &t->ref; }
const char *audit_token_req(const audit_token *t) { return t->req; }

/* Takes the memory that the done will need, so that a done cannot fail for lack of it. */
static ig_status token_new(audit_log *l, audit_token_kind kind, str req, audit_token **ret_token)
{
    static const char blank[EVENT_MAX_DONE] = {0};
    audit_token *t = mem_calloc(1, sizeof *t);
    if (!t) return IG_ENOMEM;
    t->l = l;
    t->kind = kind;
    memcpy(t->req, req.p, req.n < sizeof t->req ? req.n : sizeof t->req - 1);
    t->done.shared = t->done.sign = t->done.reserved = true;
    buf_init(&t->done.leaf, EVENT_MAX_DONE);
    if (kind == AUDIT_TOKEN_REQUEST) buf_add(&t->done.leaf, blank, sizeof blank);
    ig_status st = buf_status(&t->done.leaf);
    buf_clear(&t->done.leaf);
    if (st != IG_OK) {
        buf_done(&t->done.leaf);
        mem_free(t);
        return st;
    }
    lock_take(&l->lock);
    l->n_tokens++;
    lock_drop(&l->lock);
    *ret_token = t;
    return IG_OK;
}

static void token_drop(audit_token *t, bool release_room)
{
    lock_take(&t->l->lock);
    t->l->n_tokens--;
    if (release_room) t->l->reserved -= DONE_CHARGE;
    lock_drop(&t->l->lock);
    buf_done(&t->done.leaf);
    mem_free(t);
}

void audit_token_free(audit_token *t)
{
    if (t) token_drop(t, t->kind == AUDIT_TOKEN_REQUEST && !t->finished);
}

ig_status audit_load(audit_log *l, event *e, audit_token **ret_probe)
{
    audit_token *t;
    if (e->type != EVENT_LOAD) return ig_fail(IG_EINVAL, "audit log: not a load event");
    TRY(token_new(l, AUDIT_TOKEN_PROBE, (str){"", 0}, &t));
    ig_status st = log_append_wait(l, e, true, &t->ref);
    if (st != IG_OK) {
        token_drop(t, false);
        return st;
    }
    *ret_probe = t;
    return IG_OK;
}

static void admit_durable(void *user, ig_status status, const audit_ref *ref)
{
    audit_token *t = user;
    audit_admit_fn fn = t->fn;
    void *fn_user = t->user;
    t->ref = *ref;
    if (status != IG_OK) {
        token_drop(t, true);
        t = NULL;
    }
    fn(fn_user, status, t);
}

ig_status audit_admit_async(audit_log *l, event *e, audit_admit_fn fn, void *user)
{
    audit_token *t;
    if (e->type != EVENT_ADMIT) return ig_fail(IG_EINVAL, "audit log: not an admit event");
    TRY(token_new(l, AUDIT_TOKEN_REQUEST, event_get_str(e, EV_ADMIT_REQ), &t));
    t->fn = fn;
    t->user = user;
    node *n = node_new(false, admit_durable, t);
    ig_status st = n ? enqueue(l, e, n, true) : IG_ENOMEM;
    if (st != IG_OK) {
        node_free(n);
        token_drop(t, false);
    }
    return st;
}

ig_status audit_admit(audit_log *l, event *e, audit_token **ret_token)
{
    waiter w;
    TRY(waiter_init(&w));
    TRY(waiter_end(&w, l, audit_admit_async(l, e, on_admit, &w)));
    *ret_token = w.token;
    return IG_OK;
}

ig_status audit_done_async(audit_token *t, event *e, audit_append_fn fn, void *user)
{
    if (t->kind != AUDIT_TOKEN_REQUEST || t->finished || e->type != EVENT_DONE)
        return ig_fail(IG_EINVAL, "audit log: a done belongs to one admitted request, once");
    event_str(e, EV_DONE_REQ, t->req);
    event_int(e, EV_DONE_ADMIT_I, (int64_t)t->ref.index);
    event_hex(e, EV_DONE_ADMIT_H, t->ref.leaf.b);
    t->done.fn = fn;
    t->done.user = user;
    buf_clear(&t->done.leaf);
    t->finished = true; /* before queueing: its report may free the token */
    ig_status st = enqueue(t->l, e, &t->done, false);
    if (st != IG_OK) t->finished = false;
    return st;
}

ig_status audit_done(audit_token *t, event *e, audit_ref *ret_ref)
{
    waiter w;
    TRY(waiter_init(&w));
    TRY(waiter_end(&w, t->l, audit_done_async(t, e, on_append, &w)));
    *ret_ref = w.ref;
    return IG_OK;
}

/* ---- reading ---- */

ig_status audit_checkpoint(audit_log *l, checkpoint *ret_checkpoint, buf *ret_note)
{
    return store_latest(l->w.s, ret_checkpoint, ret_note);
}

ig_status audit_leaf(audit_log *l, uint64_t index, buf *ret_leaf)
{
    return store_leaf(l->w.s, index, ret_leaf);
}

ig_status audit_receipt(audit_log *l, uint64_t done, const commit_secret *secret,
                        const receipt_opening *openings, size_t n_openings, buf *ret_receipt)
{
    return receipt_write(l->w.s, done, secret, openings, n_openings, ret_receipt);
}

void audit_log_stats(audit_log *l, audit_stats *ret_stats)
{
    store *s = l->w.s;
    lock_take(&l->lock);
    *ret_stats = (audit_stats){.n_syncs = l->n_syncs,
                               .n_checkpoints = l->n_notes,
                               .queued_bytes = l->queued,
                               .reserved_bytes = l->reserved,
                               .room_bytes = l->room,
                               .n_derived_failures = l->n_derived_failures};
    lock_drop(&l->lock);
    lock_take(&s->lock);
    ret_stats->size = s->range.size;
    ret_stats->signed_size = s->latest.size;
    lock_drop(&s->lock);
}

const audit_recovery *audit_log_recovery(const audit_log *l) { return &l->recovery; }
const log_vkey *audit_log_vkey(const audit_log *l) { return &l->w.s->vkey; }

void audit_log_mach(const audit_log *l, uint8_t ret_mach[SHA256_N])
{
    memcpy(ret_mach, l->mach, SHA256_N);
}
