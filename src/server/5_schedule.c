/* 5_schedule.c: from an admitted request to a place in a step.
 * takes    an admitted request and its token
 * gives    the rendered prompt as token ids; sessions with all their KV pages reserved; the rows
 * of the next step
 * refuses  what the template refuses; prompts that do not fit the context (400,
 * context_length_exceeded)
 * touches  text parts of the model from text workers; the page ledger from the engine thread
 * A request waits until all pages of prompt + max_tokens are free: what runs is never evicted.
 * Keys take turns. */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "server/stage.h"
#include "server/words.h"

bool stage_schedule_prepare(server *sv, request *r, api_error *ret_error)
{
    int64_t n;
    ig_status s = words_prompt(sv->model.lm, &r->api, r->date,
                               2 * (size_t)sv->config.number[SET_max_body], &r->prompt);
    if (s != IG_OK) {
        bool client = s == IG_EINVAL || s == IG_EFORMAT || s == IG_ELIMIT || s == IG_EUNSUPPORTED;
        api_error_set(ret_error, client ? 400 : 500,
                      client ? "invalid_request_error" : "server_error",
                      client ? "invalid_prompt" : "internal_error",
                      r->api.kind == API_CHAT ? "messages" : "prompt", "%s", ig_error_message());
        return false;
    }
    ig_lm_prompt_ids(r->prompt, &n);
    if (ig_lm_fits(sv->model.lm, n, r->max_tokens) == IG_OK) return true;
    if (!r->api.max_tokens &&
        n < sv->model.facts.context) { /* the default gives way to the prompt */
        r->max_tokens = sv->model.facts.context - n;
        if (ig_lm_fits(sv->model.lm, n, r->max_tokens) == IG_OK) return true;
    }
    api_error_set(ret_error, 400, "invalid_request_error", "context_length_exceeded",
                  r->api.kind == API_CHAT ? "messages" : "prompt", "%s", ig_error_message());
    return false;
}

static ig_status start_choice(server *sv, request *r, int i)
{
    choice *c = &r->choice[i];
    ig_lm_session_spec spec = {.max_new = r->max_tokens,
                               .sampling = r->api.sampling,
                               .tenant = r->key ? r->key->tenant : NULL};
    spec.prompt = ig_lm_prompt_ids(r->prompt, &spec.n_prompt);
    spec.sampling.seed = r->seed;
    spec.sampling.choice = (uint32_t)i;
    TRY(ig_lm_stream_new(sv->model.lm, &c->stream));
    if (sv->config.number[SET_trace_logits]) TRY(sha256_init(&c->trace));
    return ig_lm_session_new(sv->model.lm, &spec, &c->session);
}

/* The token is the proof that the admit event is durable: without one nothing starts. */
started stage_schedule_start(server *sv, request *r, const audit_token *token)
{
    if (!token || audit_token_what(token) != AUDIT_TOKEN_REQUEST) return START_REFUSED;
    ig_status s = IG_OK;
    for (int i = 0; i < r->api.n && s == IG_OK; i++) s = start_choice(sv, r, i);
    if (s == IG_OK) {
        r->n_cached = ig_lm_session_cached(r->choice[0].session);
        r->t_start = clock_mono_us();
        int64_t n_prompt;
        ig_lm_prompt_ids(r->prompt, &n_prompt);
        stage_count(&sv->stage[STAGE_SCHEDULE].us, r->t_start - r->t_admit);
        stage_count(&sv->stage[STAGE_SCHEDULE].units, r->api.n * (n_prompt + r->max_tokens));
        return STARTED;
    }
    for (int i = 0; i < r->api.n; i++) {
        choice *c = &r->choice[i];
        ig_lm_session_free(c->session);
        ig_lm_stream_free(c->stream);
        sha256_done(&c->trace);
        c->session = NULL;
        c->stream = NULL;
    }
    if (s == IG_EBUSY) return START_LATER;
    api_error_set(&r->error, s == IG_EINVAL || s == IG_ELIMIT ? 400 : 500,
                  s == IG_EINVAL || s == IG_ELIMIT ? "invalid_request_error" : "server_error",
                  s == IG_EINVAL || s == IG_ELIMIT ? "invalid_value" : "internal_error", NULL, "%s",
                  ig_error_message());
    return START_REFUSED;
}

int32_t stage_schedule_form(server *sv, request *const *running, int32_t n_running,
                            ig_lm_feed *feeds, step_row *rows)
{
    int32_t n = 0, budget = (int32_t)sv->config.number[SET_step_tokens],
            max = (int32_t)sv->config.number[SET_sessions];
    if (max > budget) max = budget;
    for (int32_t i = 0; i < n_running; i++)
        n = stage_decode_rows(sv, running[i], feeds, rows, n, max);
    budget -= n;
    for (int32_t i = 0; i < n_running && budget > 0; i++) {
        int32_t before = n;
        n = stage_prefill_rows(sv, running[i], budget, feeds, rows, n, max);
        for (int32_t k = before; k < n; k++) budget -= feeds[k].n_tokens;
    }
    return n;
}
