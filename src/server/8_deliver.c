/* 8_deliver.c: from tokens to the client's text.
 * takes    a sampled token of a choice
 * gives    text, never half a character, never the start of a stop string that may still come
 * refuses  nothing by itself; a reader too slow for its buffer is cancelled by request_write
 * touches  the choice's stream and buffers (engine thread), the request's output under its lock */
#define _GNU_SOURCE /* memmem */
#include <string.h>
#include "server/answer.h"
#include "server/stage.h"

/* Offset of the first stop string in the held text, or -1. */
static int64_t find_stop(const request *r, const buf *held)
{
    int64_t first = -1;
    for (int32_t i = 0; i < r->api.n_stops; i++) {
        const char *at =
            held->n ? memmem(held->data, held->n, r->api.stops[i].p, r->api.stops[i].n) : NULL;
        if (at && (first < 0 || at - held->data < first)) first = at - held->data;
    }
    return first;
}

/* Length of the longest end of the held text that begins a stop string. */
static size_t may_begin_stop(const request *r, const buf *held)
{
    size_t keep = 0;
    for (int32_t i = 0; i < r->api.n_stops; i++) {
        str stop = r->api.stops[i];
        size_t most = stop.n - 1 < held->n ? stop.n - 1 : held->n;
        for (size_t k = most; k > keep; k--)
            if (!memcmp(held->data + held->n - k, stop.p, k)) keep = k;
    }
    return keep;
}

/* The first n bytes of the held text leave. */
static void release(request *r, int i, size_t n, str logprobs)
{
    choice *c = &r->choice[i];
    str text = {c->held.data ? c->held.data : "", n};
    if (!n && !logprobs.n) return;
    buf_add(&c->text, text.p, n);
    if (r->api.stream) {
        AUTO(buf) chunk = {0};
        buf_init(&chunk, (size_t)64 << 20);
        answer_text_chunk(r, i, text, logprobs, &chunk);
        request_write(r, chunk.data, chunk.n);
    }
    stage_count(&r->sv->stage[STAGE_DELIVER].units, (int64_t)n);
    if (n) {
        memmove(c->held.data, c->held.data + n, c->held.n - n);
        c->held.n -= n;
    }
}

static ig_status take_token(request *r, int i, const ig_lm_result *result, buf *entry)
{
    choice *c = &r->choice[i];
    const char *text;
    size_t n;
    if (r->sv->config.number[SET_trace_logits] && result->logits)
        sha256_add(&c->trace, result->logits, (size_t)r->sv->model.facts.vocab * sizeof(float));
    if (r->api.logprobs) {
        answer_logprob(r, result, !r->api.stream && c->logprobs.n, entry);
        if (!r->api.stream) buf_add(&c->logprobs, entry->data, entry->n);
    }
    if (ig_lm_is_stop(r->sv->model.lm, result->token)) return IG_OK;
    TRY(ig_lm_stream_push(c->stream, result->token, &text, &n));
    buf_add(&c->held, text, n);
    return buf_status(&c->held);
}

bool stage_deliver(server *sv, request *r, int i, const ig_lm_result *result, api_error *ret_error)
{
    choice *c = &r->choice[i];
    AUTO(buf) entry = {0};
    buf_init(&entry, (size_t)1 << 20);
    stage_count(&sv->stage[STAGE_DELIVER].n_in, 1);
    if (take_token(r, i, result, &entry) != IG_OK) {
        api_error_set(ret_error, 500, "server_error", "internal_error", NULL, "%s",
                      ig_error_message());
        return false;
    }
    str logprobs = {entry.data ? entry.data : "", r->api.stream ? entry.n : 0};
    int64_t stop = find_stop(r, &c->held);
    if (stop >= 0) {
        release(r, i, (size_t)stop, logprobs);
        buf_clear(&c->held);
        c->finish = IG_LM_STOP;
        return true;
    }
    release(r, i, c->held.n - may_begin_stop(r, &c->held), logprobs);
    c->finish = result->finish;
    return true;
}

void stage_deliver_rest(request *r, int i)
{
    choice *c = &r->choice[i];
    const char *text;
    size_t n;
    str none = {"", 0};
    bool by_stop_string = c->finish == IG_LM_STOP && !c->held.n;
    if (c->stream && ig_lm_stream_flush(c->stream, &text, &n) == IG_OK && !by_stop_string) {
        buf_add(&c->held, text, n);
        int64_t stop = find_stop(r, &c->held);
        if (stop >= 0) {
            c->finish = IG_LM_STOP;
            c->held.n = (size_t)stop;
        }
    }
    release(r, i, c->held.n, none);
}
