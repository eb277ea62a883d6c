/* pipeline.c: moves requests from stage to stage and writes every audit event about them.
 *
 *   HTTP thread   pipeline_submit: parse, stage 4, admit event (queued)
 *   log writer    on_admitted: the token exists, the request goes to a text worker
 *   text worker   stage 5 prepare, then to the engine; or the last bytes of a recorded request
 *   engine        stage 5 start and form, one step, stages 6 to 8, done event (queued) when all
 *   choices are over
 *   log writer    on_done: durable and under a checkpoint, the request goes to a text worker for
 *   stage 9
 *
 * A client is told nothing of a request before its admit is durable, and no finish, body or [DONE]
 * before its done is. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "server/pipeline.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include "base/clock.h"
#include "server/answer.h"
#include "server/stage.h"

#define WATCH_US 50000
#define PING_US 15000000
#define STRANGERS_US 1000000 /* between two events about clients without a key */
#define N_TEXT 2

typedef struct engine {
    server *sv;
    request **waiting; /* owned: prepared, in order of arrival */
    request **running; /* owned */
    int32_t n_waiting, n_running, cap;
    ig_lm_feed *feeds; /* owned: [sessions] */
    step_row *rows;
    ig_lm_result *results;
    int64_t turn; /* fairness clock */
} engine;

/* --- the list of open requests */
static bool open_add(server *sv, request *r, api_error *ret_error)
{
    lock_take(&sv->lock);
    bool room = stage_admit_room(sv, ret_error);
    if (room) sv->open[sv->n_open++] = r;
    lock_drop(&sv->lock);
    return room;
}

static void open_remove(server *sv, request *r)
{
    lock_take(&sv->lock);
    for (int32_t i = 0; i < sv->n_open; i++)
        if (sv->open[i] == r) {
            sv->open[i] = sv->open[--sv->n_open];
            break;
        }
    lock_drop(&sv->lock);
}

static void remember(server *sv, const request *r)
{
    lock_take(&sv->lock);
    recent *slot = &sv->recent[sv->n_recent++ % SERVER_N_RECENT];
    snprintf(slot->id, sizeof slot->id, "%s", r->id);
    slot->done = r->done.index;
    lock_drop(&sv->lock);
}

bool pipeline_find_done(server *sv, const char *id, uint64_t *ret_done)
{
    bool found = false;
    lock_take(&sv->lock);
    uint64_t n = sv->n_recent < SERVER_N_RECENT ? sv->n_recent : SERVER_N_RECENT;
    for (uint64_t i = 0; i < n && !found; i++)
        if (!strcmp(sv->recent[i].id, id)) {
            *ret_done = sv->recent[i].done;
            found = true;
        }
    lock_drop(&sv->lock);
    return found;
}

/* The pipeline is through with r. */
static void finish(request *r)
{
    if (r->recorded) remember(r->sv, r);
    open_remove(r->sv, r);
    request_drop(r);
}

void pipeline_log_lost(server *sv, const char *why)
{
    lock_take(&sv->lock);
    bool first = !*sv->dead;
    if (first) snprintf(sv->dead, sizeof sv->dead, "%s", *why ? why : "a write failed");
    lock_drop(&sv->lock);
    atomic_store(&sv->log_lost, true);
    if (first && sv->callbacks.log_dead) sv->callbacks.log_dead(sv->callbacks.user, why);
}

/* --- stage 9, first half: the done event */
static void on_done(void *user, ig_status status, const audit_ref *ref)
{
    request *r = user;
    r->recorded = status == IG_OK;
    if (status == IG_OK) r->done = *ref;
    queue_push(&r->sv->text, r);
}

/* A done that cannot be made (memory) ends admissions as a dead log does: from then on this session
 * has an admit without its done, which only the next start can close. */
static void record(request *r)
{
    event *e = mem_alloc(sizeof *e);
    r->t_end = clock_mono_us();
    ig_status s = e ? stage_record_event(r->sv, r, e) : IG_ENOMEM;
    if (s == IG_OK) s = audit_done_async(r->token, e, on_done, r);
    mem_free(e);
    if (s == IG_OK) return;
    pipeline_log_lost(r->sv, ig_error_message());
    queue_push(&r->sv->text, r);
}

static void refuse(request *r, const api_error *e)
{
    r->outcome = e->http >= 500 ? OUTCOME_ERROR : OUTCOME_REFUSED;
    r->error = *e;
    record(r);
}

/* --- stage 4 */
static void on_admitted(void *user, ig_status status, audit_token *token)
{
    request *r = user;
    r->token = token;
    if (status != IG_OK) {
        r->outcome = OUTCOME_ERROR;
        api_error_set(&r->error, 503, "server_error", "audit_log_unavailable", NULL,
                      "the request could not be recorded, so it was not computed");
    }
    stage_count(&r->sv->stage[STAGE_ADMIT].us, clock_mono_us() - r->t_admit);
    queue_push(&r->sv->text, r);
}

/* Nothing waits for it. */
static void on_denied(void *user, ig_status status, const audit_ref *ref)
{
    (void)user, (void)status, (void)ref;
}

/* A refusal that cannot be recorded, for want of room or memory, is still a refusal: it computes
 * nothing and is no reason to end the log. */
static void put_denied(server *sv, const char *api, const api_key *key, const api_error *error,
                       int64_t n)
{
    event *e = mem_alloc(sizeof *e);
    if (!e) return;
    event_init(e, EVENT_DENIED);
    event_str(e, EV_DENIED_API, api);
    if (key) event_str(e, EV_DENIED_AUTH_KID, key->id);
    event_str(e, EV_DENIED_REASON, api_error_reason(error));
    event_int(e, EV_DENIED_HTTP, error->http);
    event_str(e, EV_DENIED_ERR, error->code);
    event_int(e, EV_DENIED_N, n);
    if (audit_append_async(sv->log, e, on_denied, NULL) != IG_OK) ig_error_clear();
    mem_free(e);
}

/* Whoever reaches the port can be refused for want of a key as often as they like: such refusals
 * are counted, and the watcher writes the count, lest strangers fill the log's disk. */
void pipeline_denied(server *sv, const char *api, const api_key *key, const api_error *error)
{
    if (error->http == 401)
        atomic_fetch_add(&sv->n_strangers, 1);
    else
        put_denied(sv, api, key, error, 1);
}

static void tell_strangers(server *sv)
{
    static const api_error unknown = {.http = 401, .code = "invalid_api_key"};
    int64_t n = atomic_exchange(&sv->n_strangers, 0);
    if (n) put_denied(sv, "other", NULL, &unknown, n);
}

static ig_status admit(server *sv, request *r)
{
    char storage[8][32];
    event *e = mem_alloc(sizeof *e);
    if (!e) return IG_ENOMEM;
    ig_status s = stage_admit_event(sv, r, e, storage);
    if (s == IG_OK) s = audit_admit_async(sv->log, e, on_admitted, r);
    mem_free(e);
    return s;
}

/* The date that templates may print, recorded in admit. */
static void set_date(request *r)
{
    time_t now = (time_t)r->created;
    struct tm tm;
    if (r->api.kind == API_CHAT && gmtime_r(&now, &tm))
        strftime(r->date, sizeof r->date, "%Y-%m-%d", &tm);
}

bool pipeline_submit(server *sv, request *r, api_error *ret_error)
{
    const char *api = r->api.kind == API_CHAT ? "chat" : "completions";
    stage_count(&sv->stage[STAGE_ADMIT].n_in, 1);
    r->t_admit = clock_mono_us();
    r->deadline = r->t_admit + sv->config.number[SET_deadline] * 1000000;
    set_date(r);
    bool ok = stage_admit(sv, r, ret_error);
    if (ok) {
        request_hold(r);
        ok = open_add(sv, r, ret_error);
        if (ok && admit(sv, r) != IG_OK) {
            ok = false;
            api_error_set(ret_error, 503, "server_error", "audit_log_unavailable", NULL,
                          "the request could not be recorded: %s", ig_error_message());
            open_remove(sv, r);
        }
        if (!ok) request_drop(r);
    }
    if (ok) {
        stage_count(&sv->stage[STAGE_ADMIT].n_out, 1);
        stage_count(&sv->stage[STAGE_ADMIT].units, 1);
        return true;
    }
    stage_count(&sv->stage[STAGE_ADMIT].n_refused, 1);
    pipeline_denied(sv, api, r->key, ret_error);
    return false;
}

void pipeline_disconnected(request *r)
{
    lock_take(&r->lock);
    r->conn = NULL;
    r->suspended = false;
    if (!r->ended) atomic_store(&r->gone, true);
    lock_drop(&r->lock);
    request_drop(r);
}

/* --- text workers */
static void open_stream(request *r)
{
    AUTO(buf) out = {0};
    buf_init(&out, (size_t)1 << 16);
    request_start(r, 200, true);
    for (int i = 0; i < r->api.n; i++) answer_open_chunk(r, i, &out);
    if (out.status != IG_OK) atomic_store(&r->gone, true);
    request_write(r, out.data, out.n);
}

static void prepare(server *sv, request *r)
{
    api_error e;
    stage_count(&sv->stage[STAGE_SCHEDULE].n_in, 1);
    if (!stage_schedule_prepare(sv, r, &e)) {
        stage_count(&sv->stage[STAGE_SCHEDULE].n_refused, 1);
        refuse(r, &e);
        return;
    }
    if (r->api.stream) open_stream(r);
    queue_push(&sv->ready, r);
}

static void *text_main(void *arg)
{
    server *sv = arg;
    request *r;
    while ((r = queue_pop(&sv->text, -1))) {
        ig_error_clear();
        if (r->token && !r->t_end) {
            prepare(sv, r);
            continue;
        }
        stage_record_answer(sv, r);
        finish(r);
    }
    return NULL;
}

/* --- engine */
static void no_memory(request *r)
{
    if (r->error.http) return;
    api_error_set(&r->error, 500, "server_error", "internal_error", NULL,
                  "no memory to finish the answer");
}

/* Takes the tokens out of a choice's session and frees its pages. */
static void close_choice(request *r, int i)
{
    choice *c = &r->choice[i];
    if (!c->session) return;
    const int32_t *ids = ig_lm_session_output(c->session, &c->n_ids);
    c->ids = mem_alloc((size_t)(c->n_ids ? c->n_ids : 1) * sizeof *ids);
    if (c->ids)
        memcpy(c->ids, ids, (size_t)c->n_ids * sizeof *ids);
    else
        no_memory(r);
    if (!c->ids) c->n_ids = 0;
    if (r->sv->config.number[SET_trace_logits]) sha256_final(&c->trace, c->trace_digest);
    ig_lm_session_free(c->session);
    c->session = NULL;
    if (stage_deliver_rest(r, i) != IG_OK) no_memory(r);
}

/* An error that closing brings out wins over an answer that was fine until then: what done commits
 * to must be what the client has. */
static void end_request(engine *g, request *r, outcome o)
{
    for (int i = 0; i < r->api.n; i++) close_choice(r, i);
    r->outcome = o == OUTCOME_OK && r->error.http ? OUTCOME_ERROR : o;
    for (int32_t i = 0; i < g->n_running; i++)
        if (g->running[i] == r) {
            memmove(&g->running[i], &g->running[i + 1],
                    (size_t)(--g->n_running - i) * sizeof *g->running);
            break;
        }
    record(r);
}

static bool all_over(const request *r)
{
    for (int i = 0; i < r->api.n; i++)
        if (r->choice[i].finish == IG_LM_RUNNING) return false;
    return true;
}

/* Why an open request may not go on, with the error that its client gets; OUTCOME_OK: it may. */
static outcome interrupted(request *r)
{
    server *sv = r->sv;
    if (atomic_load(&r->gone)) return OUTCOME_CANCELLED;
    if (atomic_load(&r->late)) {
        api_error_set(&r->error, 504, "server_error", "timeout", NULL,
                      "the request ran longer than %lld seconds",
                      (long long)sv->config.number[SET_deadline]);
        return OUTCOME_TIMEOUT;
    }
    if (atomic_load(&sv->log_lost))
        api_error_set(&r->error, 503, "server_error", "audit_log_unavailable", NULL,
                      "the audit log cannot be written, so the answer ends here");
    else if (atomic_load(&sv->cut))
        api_error_set(&r->error, 503, "server_error", "shutting_down", NULL,
                      "the server is shutting down: ask another one");
    else
        return OUTCOME_OK;
    return OUTCOME_ERROR;
}

static void drop_waiting(engine *g, int32_t i)
{
    memmove(&g->waiting[i], &g->waiting[i + 1], (size_t)(--g->n_waiting - i) * sizeof *g->waiting);
}

static void drop_interrupted(engine *g)
{
    for (int32_t i = g->n_waiting - 1; i >= 0; i--) {
        request *r = g->waiting[i];
        outcome o = interrupted(r);
        if (o == OUTCOME_OK) continue;
        drop_waiting(g, i);
        end_request(g, r, o);
    }
    for (int32_t i = g->n_running - 1; i >= 0; i--) {
        request *r = g->running[i];
        outcome o = interrupted(r);
        if (o != OUTCOME_OK) end_request(g, r, o);
    }
}

/* Whose turn: the waiting request of the key that was served longest ago, the earliest of its
 * requests. */
static int32_t next_turn(const engine *g)
{
    int32_t best = 0;
    for (int32_t i = 1; i < g->n_waiting; i++) {
        int64_t mine = g->waiting[i]->key ? g->waiting[i]->key->served : 0;
        int64_t his = g->waiting[best]->key ? g->waiting[best]->key->served : 0;
        if (mine < his) best = i;
    }
    return best;
}

static int32_t running_choices(const engine *g)
{
    int32_t n = 0;
    for (int32_t i = 0; i < g->n_running; i++) n += g->running[i]->api.n;
    return n;
}

static void start_waiting(engine *g)
{
    while (g->n_waiting) {
        int32_t i = next_turn(g);
        request *r = g->waiting[i];
        if (running_choices(g) + r->api.n > g->sv->config.number[SET_sessions] && g->n_running)
            return;
        started s = stage_schedule_start(g->sv, r, r->token);
        if (s == START_LATER && g->n_running) return;
        drop_waiting(g, i);
        if (r->key) r->key->served = ++g->turn;
        if (s == STARTED) {
            g->running[g->n_running++] = r;
            stage_count(&g->sv->stage[STAGE_SCHEDULE].n_out, 1);
            continue;
        }
        if (s == START_LATER)
            api_error_set(&r->error, 503, "server_error", "kv_cache_full", NULL,
                          "the KV cache cannot hold this request: %s", ig_error_message());
        end_request(g, r, r->error.http >= 500 ? OUTCOME_ERROR : OUTCOME_REFUSED);
    }
}

static void take_result(engine *g, const step_row *row, const ig_lm_feed *feed,
                        const ig_lm_result *result, int64_t us)
{
    request *r = row->r;
    if (row->prefill) stage_prefill_took(g->sv, r, feed->n_tokens, result->token >= 0, us);
    if (result->finish == IG_LM_FAILED) {
        api_error_set(&r->error, 500, "server_error", "numeric_error", NULL,
                      "the model gave logits that are not finite");
        r->choice[row->choice].finish = IG_LM_FAILED;
        return;
    }
    if (result->token < 0) return;
    if (!stage_deliver(g->sv, r, row->choice, result, &r->error)) {
        r->choice[row->choice].finish = IG_LM_FAILED;
        return;
    }
    if (r->choice[row->choice].finish != IG_LM_RUNNING) close_choice(r, row->choice);
}

static void count_step(server *sv, const step_row *rows, const ig_lm_feed *feeds, int32_t n,
                       int64_t us)
{
    int32_t n_decode = 0, n_tokens = 0;
    for (int32_t i = 0; i < n; i++) {
        n_decode += !rows[i].prefill;
        n_tokens += feeds[i].n_tokens;
    }
    if (n_decode) stage_decode_took(sv, n_decode, us * n_decode / n_tokens);
}

static void fail_all(engine *g)
{
    atomic_store(&g->sv->ready_flag, false);
    while (g->n_running) {
        request *r = g->running[g->n_running - 1];
        api_error_set(&r->error, 500, "server_error", "internal_error", NULL, "a step failed: %s",
                      ig_error_message());
        end_request(g, r, OUTCOME_ERROR);
    }
}

static void step(engine *g)
{
    int32_t n = stage_schedule_form(g->sv, g->running, g->n_running, g->feeds, g->rows),
            n_tokens = 0;
    if (!n) return;
    for (int32_t i = 0; i < n; i++) n_tokens += g->feeds[i].n_tokens;
    int64_t begin = clock_mono_us();
    if (ig_lm_step(g->sv->model.lm, g->feeds, n, g->results) != IG_OK) {
        fail_all(g);
        return;
    }
    int64_t us = clock_mono_us() - begin;
    atomic_store(&g->sv->ready_flag, true);
    count_step(g->sv, g->rows, g->feeds, n, us);
    for (int32_t i = 0; i < n; i++)
        take_result(g, &g->rows[i], &g->feeds[i], &g->results[i],
                    us * g->feeds[i].n_tokens / n_tokens);
    for (int32_t i = g->n_running - 1; i >= 0; i--) {
        request *r = g->running[i];
        if (r->error.http)
            end_request(g, r, OUTCOME_ERROR);
        else if (all_over(r))
            end_request(g, r, OUTCOME_OK);
    }
}

static void engine_free(engine *g)
{
    mem_free(g->waiting);
    mem_free(g->running);
    mem_free(g->feeds);
    mem_free(g->rows);
    mem_free(g->results);
    mem_free(g);
}

static void *engine_main(void *arg)
{
    engine *g = arg;
    server *sv = g->sv;
    for (;;) {
        request *r;
        int64_t wait = g->n_running || g->n_waiting ? 0 : clock_mono_us() + 200000;
        ig_error_clear();
        atomic_store(&sv->engine_beat_us, clock_mono_us());
        while (g->n_waiting < g->cap && (r = queue_pop(&sv->ready, wait))) {
            g->waiting[g->n_waiting++] = r;
            wait = 0;
        }
        if (atomic_load(&sv->stopping) && !g->n_running && !g->n_waiting) break;
        drop_interrupted(g);
        start_waiting(g);
        step(g);
    }
    engine_free(g);
    return NULL;
}

static ig_status engine_new(server *sv, engine **ret_engine)
{
    engine *g = mem_calloc(1, sizeof *g);
    size_t n = (size_t)sv->config.number[SET_sessions], cap = (size_t)sv->config.number[SET_queue];
    if (!g) return IG_ENOMEM;
    g->sv = sv;
    g->cap = (int32_t)cap;
    g->waiting = mem_calloc(cap + 1, sizeof *g->waiting);
    g->running = mem_calloc(cap + 1, sizeof *g->running);
    g->feeds = mem_calloc(n + 1, sizeof *g->feeds);
    g->rows = mem_calloc(n + 1, sizeof *g->rows);
    g->results = mem_calloc(n + 1, sizeof *g->results);
    if (!g->waiting || !g->running || !g->feeds || !g->rows || !g->results) {
        engine_free(g);
        return IG_ENOMEM;
    }
    *ret_engine = g;
    return IG_OK;
}

/* --- watcher */
static bool hung_up(int fd)
{
    char byte;
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
    if (fd < 0 || poll(&p, 1, 0) <= 0) return false;
    if (p.revents & (POLLHUP | POLLERR | POLLRDHUP)) return true;
    return p.revents & POLLIN && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Under the server's lock. */
static void watch_request(request *r, int64_t now)
{
    static const char ping[] = ": ping\n\n";
    bool quiet = false;
    lock_take(&r->lock);
    if (r->conn && !r->ended && hung_up(r->fd)) atomic_store(&r->gone, true);
    if (now > r->deadline) atomic_store(&r->late, true);
    quiet = r->started && r->stream && !r->ended && now - r->quiet_since > PING_US;
    lock_drop(&r->lock);
    if (quiet) request_write(r, ping, sizeof ping - 1);
}

static void *watch_main(void *arg)
{
    server *sv = arg;
    int64_t told = 0;
    lock_take(&sv->lock);
    while (!atomic_load(&sv->stopping)) {
        (void)cond_wait_until(&sv->stop_watching, &sv->lock, clock_mono_us() + WATCH_US);
        int64_t now = clock_mono_us();
        for (int32_t i = 0; i < sv->n_open; i++) watch_request(sv->open[i], now);
        if (now - told < STRANGERS_US || !atomic_load(&sv->n_strangers)) continue;
        lock_drop(&sv->lock);
        tell_strangers(sv);
        told = now;
        lock_take(&sv->lock);
    }
    lock_drop(&sv->lock);
    tell_strangers(sv);
    return NULL;
}

/* --- start and stop */
static ig_status start_threads(server *sv)
{
    engine *g;
    for (; sv->n_text < N_TEXT; sv->n_text++)
        TRY(thread_start(&sv->text_thread[sv->n_text], "ingot text", 0, text_main, sv));
    TRY(engine_new(sv, &g));
    atomic_store(&sv->engine_beat_us, clock_mono_us()); /* before its first turn somebody may ask */
    ig_status s = thread_start(&sv->engine_thread, "ingot engine", 0, engine_main, g);
    if (s != IG_OK) {
        engine_free(g);
        return s;
    }
    sv->has_engine = true;
    TRY(thread_start(&sv->watch_thread, "ingot watch", 0, watch_main, sv));
    sv->has_watch = true;
    return IG_OK;
}

ig_status pipeline_start(server *sv)
{
    sv->cap_open = (int32_t)sv->config.number[SET_queue];
    sv->open = mem_calloc((size_t)sv->cap_open + 1, sizeof *sv->open);
    sv->recent = mem_calloc(SERVER_N_RECENT, sizeof *sv->recent);
    if (!sv->open || !sv->recent) return IG_ENOMEM;
    TRY(queue_init(&sv->text));
    ig_status s = queue_init(&sv->ready);
    if (s != IG_OK) {
        queue_done(&sv->text);
        return s;
    }
    sv->has_queues = true;
    TRY(start_threads(sv));
    atomic_store(&sv->ready_flag, true);
    return IG_OK;
}

static int32_t stop_admitting(server *sv)
{
    lock_take(&sv->lock);
    sv->draining = true;
    int32_t n = sv->n_open;
    lock_drop(&sv->lock);
    return n;
}

static void stop_threads(server *sv)
{
    struct timespec pause = {0, 10000000};
    int64_t patience = clock_mono_us() + sv->config.number[SET_drain] * 1000000;
    while (stop_admitting(sv)) {
        if (clock_mono_us() > patience) atomic_store(&sv->cut, true);
        nanosleep(&pause, NULL);
    }
    lock_take(&sv->lock);
    atomic_store(&sv->stopping, true);
    cond_signal(&sv->stop_watching);
    lock_drop(&sv->lock);
    queue_close(&sv->ready);
    if (sv->has_engine) pthread_join(sv->engine_thread, NULL);
    if (sv->has_watch) pthread_join(sv->watch_thread, NULL);
    queue_close(&sv->text);
    for (int i = 0; i < sv->n_text; i++) pthread_join(sv->text_thread[i], NULL);
    sv->has_engine = sv->has_watch = false;
    sv->n_text = 0;
}

void pipeline_stop(server *sv)
{
    if (sv->has_queues) {
        stop_threads(sv);
        queue_done(&sv->ready);
        queue_done(&sv->text);
        sv->has_queues = false;
    }
    mem_free(sv->open);
    mem_free(sv->recent);
    sv->open = NULL;
    sv->recent = NULL;
}

bool pipeline_ready(server *sv, char *ret_why, size_t cap)
{
    char dead[256];
    int64_t beat = clock_mono_us() - atomic_load(&sv->engine_beat_us);
    lock_take(&sv->lock);
    bool draining = sv->draining;
    memcpy(dead, sv->dead, sizeof dead);
    lock_drop(&sv->lock);
    *ret_why = 0;
    if (*dead)
        snprintf(ret_why, cap, "the audit log is dead: %s", dead);
    else if (draining)
        snprintf(ret_why, cap, "shutting down");
    else if (!atomic_load(&sv->ready_flag))
        snprintf(ret_why, cap, "the last engine step failed");
    else if (beat > 30000000)
        snprintf(ret_why, cap, "the engine has not moved for %lld s", (long long)(beat / 1000000));
    return !*ret_why;
}
