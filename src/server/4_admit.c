/* 4_admit.c: may this request join the queue?
 * takes    a parsed request of an authenticated client
 * gives    a place in the queue, the fields of the admit event
 * refuses  another model's name, more tokens than the context could ever hold, a full queue, a
 * draining server, a dead log
 * touches  counters only: no text is tokenised, nothing is computed, before the event that
 * pipeline.c writes is durable */
#include <stdio.h>
#include <string.h>
#include "ingot/device.h"
#include "server/stage.h"

static bool refuse(api_error *e, int http, const char *type, const char *code, const char *param,
                   const char *text)
{
    api_error_set(e, http, type, code, param, "%s", text);
    return false;
}

bool stage_admit_room(const server *sv, api_error *e)
{
    if (*sv->dead) {
        api_error_set(e, 503, "server_error", "audit_log_unavailable", NULL,
                      "the audit log cannot be written (%s): no request is admitted", sv->dead);
        return false;
    }
    if (sv->draining)
        return refuse(e, 503, "server_error", "shutting_down", NULL,
                      "the server is shutting down: ask another one");
    if (sv->n_open >= sv->cap_open)
        return refuse(e, 429, "rate_limit_error", "queue_full", NULL,
                      "the queue is full: try again in a few seconds");
    return true;
}

bool stage_admit(server *sv, request *r, api_error *ret_error)
{
    const served *m = &sv->model;
    if (r->api.model.n && !str_eq(r->api.model, str_of(m->name))) {
        api_error_set(ret_error, 404, "invalid_request_error", "model_not_found", "model",
                      "there is no model '%.*s' here; this server has '%s'",
                      (int)(r->api.model.n < 100 ? r->api.model.n : 100), r->api.model.p, m->name);
        return false;
    }
    r->max_tokens = r->api.max_tokens ? r->api.max_tokens : sv->config.number[SET_max_tokens];
    if (r->max_tokens >= m->facts.context) {
        if (r->api.max_tokens) {
            api_error_set(
                ret_error, 400, "invalid_request_error", "context_length_exceeded", "max_tokens",
                "'max_tokens' %lld leaves no room for a prompt in a context of %lld tokens",
                (long long)r->max_tokens, (long long)m->facts.context);
            return false;
        }
        r->max_tokens = m->facts.context / 2;
    }
    return true;
}

/* A seed that the operator cannot pick: from the root of a checkpoint that the event names. */
static ig_status choose_seed(server *sv, request *r, event *e)
{
    checkpoint at;
    AUTO(buf) note = {0};
    if (r->api.has_seed) {
        r->seed = r->api.sampling.seed;
        event_str(e, EV_ADMIT_SEED_FROM, "client");
        return IG_OK;
    }
    TRY(audit_checkpoint(sv->log, &at, &note));
    TRY(commit_seed(at.root.b, r->id, &r->seed));
    event_str(e, EV_ADMIT_SEED_FROM, "log");
    event_int(e, EV_ADMIT_SEED_SIZE, (int64_t)at.size);
    event_hex(e, EV_ADMIT_SEED_ROOT, at.root.b);
    return IG_OK;
}

static float or_one(float v) { return v == 0 ? 1 : v; }

ig_status stage_admit_event(server *sv, request *r, event *e, char storage[8][32])
{
    const served *m = &sv->model;
    const ig_lm_sampling *p = &r->api.sampling;
    uint8_t commit[SHA256_N];
    event_init(e, EVENT_ADMIT);
    event_str(e, EV_ADMIT_REQ, r->id);
    event_str(e, EV_ADMIT_KIND, "request");
    event_str(e, EV_ADMIT_API, r->api.kind == API_CHAT ? "chat" : "completions");
    if (r->key) {
        event_str(e, EV_ADMIT_TENANT, r->key->tenant);
        event_str(e, EV_ADMIT_AUTH_KID, r->key->id);
    }
    event_int(e, EV_ADMIT_LOAD_I, (int64_t)m->load.index);
    event_hex(e, EV_ADMIT_LOAD_H, m->load.leaf.b);
    event_hex(e, EV_ADMIT_MODEL_ROOT, m->root);
    event_str(e, EV_ADMIT_ENG_KSET, m->facts.kset);
    event_str(e, EV_ADMIT_ENG_KV, m->facts.kv_type);
    TRY(commit_make(&r->secret, "in.body", r->body.data, r->body.n, commit));
    event_hex(e, EV_ADMIT_IN_COMMIT, commit);
    event_int(e, EV_ADMIT_IN_BYTES, (int64_t)r->body.n);
    event_int(e, EV_ADMIT_P_N, r->api.n);
    event_int(e, EV_ADMIT_P_STREAM, r->api.stream);
    event_int(e, EV_ADMIT_P_MAX_TOKENS, r->max_tokens);
    event_dec(e, EV_ADMIT_P_TEMPERATURE, (double)p->temperature, storage[0]);
    event_dec(e, EV_ADMIT_P_TOP_P, (double)or_one(p->top_p), storage[1]);
    event_int(e, EV_ADMIT_P_TOP_K, p->top_k);
    event_dec(e, EV_ADMIT_P_MIN_P, (double)p->min_p, storage[2]);
    event_dec(e, EV_ADMIT_P_REPETITION, (double)or_one(p->repetition_penalty), storage[3]);
    event_dec(e, EV_ADMIT_P_PRESENCE, (double)p->presence_penalty, storage[4]);
    event_dec(e, EV_ADMIT_P_FREQUENCY, (double)p->frequency_penalty, storage[5]);
    event_int(e, EV_ADMIT_P_LOGPROBS, p->n_logprobs);
    event_int(e, EV_ADMIT_P_N_STOP, r->api.n_stops);
    event_int(e, EV_ADMIT_P_N_BIAS, p->n_bias);
    TRY(choose_seed(sv, r, e));
    snprintf(storage[6], 32, "%llu", (unsigned long long)r->seed);
    event_str(e, EV_ADMIT_SEED_VALUE, storage[6]);
    if (*r->date) event_str(e, EV_ADMIT_DATE, r->date);
    event_ids(e, r->api.ignored, (size_t)r->api.n_ignored);
    return IG_OK;
}
