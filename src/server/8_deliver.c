/* 8_deliver.c: from tokens to the client's text.
 * takes    a sampled token of a choice
 * gives    text, never half a character, never the start of a stop string that may still come
 * refuses  nothing by itself; a reader too slow for its buffer is cancelled by request_write
 * touches  the choice's stream and buffers (engine thread), the request's output under its lock */
#include <string.h>
#include "server/answer.h"
#include "server/stage.h"
#include "server/words.h"

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

/* The first n bytes of the held text leave. On failure none of them has: what the client gets and
 * what `out` commits to never differ. */
static ig_status release(request *r, int i, size_t n, str logprobs)
{
    choice *c = &r->choice[i];
    str text = {c->held.data ? c->held.data : "", n};
    AUTO(buf) chunk = {0};
    buf_init(&chunk, (size_t)64 << 20);
    if (!n && !logprobs.n) return IG_OK;
    if (r->api.stream) answer_text_chunk(r, i, text, logprobs, &chunk);
    TRY(buf_status(&chunk));
    buf_add(&c->text, text.p, n);
    TRY(buf_status(&c->text));
    if (r->api.stream) request_write(r, chunk.data, chunk.n);
    stage_count(&r->sv->stage[STAGE_DELIVER].units, (int64_t)n);
    if (n) {
        memmove(c->held.data, c->held.data + n, c->held.n - n);
        c->held.n -= n;
    }
    return IG_OK;
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
        TRY(buf_status(entry));
        if (!r->api.stream) buf_add(&c->logprobs, entry->data, entry->n);
        TRY(buf_status(&c->logprobs));
    }
    if (ig_lm_is_stop(r->sv->model.lm, result->token)) return IG_OK;
    TRY(ig_lm_stream_push(c->stream, result->token, &text, &n));
    buf_add(&c->held, text, n);
    return buf_status(&c->held);
}

static ig_status deliver(request *r, int i, const ig_lm_result *result)
{
    choice *c = &r->choice[i];
    AUTO(buf) entry = {0};
    buf_init(&entry, (size_t)1 << 20);
    TRY(take_token(r, i, result, &entry));
    str logprobs = {entry.data ? entry.data : "", r->api.stream ? entry.n : 0};
    int64_t stop = words_first_stop(&r->api, (str){c->held.data, c->held.n});
    if (stop < 0) {
        TRY(release(r, i, c->held.n - may_begin_stop(r, &c->held), logprobs));
        c->finish = result->finish;
        return IG_OK;
    }
    TRY(release(r, i, (size_t)stop, logprobs));
    buf_clear(&c->held);
    c->cut = true;
    c->finish = IG_LM_STOP;
    return IG_OK;
}

bool stage_deliver(server *sv, request *r, int i, const ig_lm_result *result, api_error *ret_error)
{
    stage_count(&sv->stage[STAGE_DELIVER].n_in, 1);
    if (deliver(r, i, result) == IG_OK) return true;
    api_error_set(ret_error, 500, "server_error", "internal_error", NULL, "%s", ig_error_message());
    return false;
}

ig_status stage_deliver_rest(request *r, int i)
{
    choice *c = &r->choice[i];
    const char *text;
    size_t n;
    if (c->cut || !c->stream) return IG_OK;
    TRY(ig_lm_stream_flush(c->stream, &text, &n));
    buf_add(&c->held, text, n);
    TRY(buf_status(&c->held));
    int64_t stop = words_first_stop(&r->api, (str){c->held.data, c->held.n});
    if (stop >= 0) {
        c->finish = IG_LM_STOP;
        c->held.n = (size_t)stop;
    }
    return release(r, i, c->held.n, (str){"", 0});
}
