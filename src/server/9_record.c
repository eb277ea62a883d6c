/* 9_record.c: what became of a request.
 * takes    a finished request: text and tokens of each choice, outcome, times
 * gives    the done event's fields; after it is durable and under a checkpoint, the receipt and
 * the last bytes
 * refuses  nothing; if the event cannot be written, the stream ends with an error and without
 * [DONE], a body becomes an error
 * touches  the log through pipeline.c; the request's output */
#include <string.h>
#include "base/clock.h"
#include "ingot/device.h"
#include "server/answer.h"
#include "server/stage.h"

static const char *const outcome_names[] = {"ok", "cancelled", "error", "timeout", "refused"};

static ig_status add_prompt(request *r, event *e)
{
    uint8_t commit[SHA256_N];
    size_t n_text;
    int64_t n;
    if (!r->prompt) return IG_OK;
    const char *text = ig_lm_prompt_rendered(r->prompt, &n_text);
    const int32_t *ids = ig_lm_prompt_ids(r->prompt, &n);
    TRY(commit_make(&r->secret, "in.text", text, n_text, commit));
    event_hex(e, EV_DONE_IN_TEXT, commit);
    event_int(e, EV_DONE_IN_BYTES, (int64_t)n_text);
    TRY(commit_make_ids(&r->secret, "in.ids", (const uint32_t *)ids, (size_t)n, commit));
    event_hex(e, EV_DONE_IN_IDS, commit);
    event_int(e, EV_DONE_IN_N, n);
    event_int(e, EV_DONE_IN_CACHED, r->n_cached);
    return IG_OK;
}

static ig_status add_answers(request *r, event *e)
{
    event_commit out[API_MAX_CHOICES], tout[API_MAX_CHOICES];
    for (int i = 0; i < r->api.n; i++) {
        const choice *c = &r->choice[i];
        char name[24];
        snprintf(name, sizeof name, "out.%d", i);
        TRY(commit_make(&r->secret, name, c->text.data ? c->text.data : "", c->text.n,
                        out[i].commit));
        out[i].n = (int64_t)c->text.n;
        snprintf(name, sizeof name, "tout.%d", i);
        TRY(commit_make_ids(&r->secret, name, (const uint32_t *)c->ids, (size_t)c->n_ids,
                            tout[i].commit));
        tout[i].n = c->n_ids;
    }
    event_commits(e, EV_DONE_OUT, out, (size_t)r->api.n);
    event_commits(e, EV_DONE_TOUT, tout, (size_t)r->api.n);
    return IG_OK;
}

/* One digest over the choices' digests, committed: it would otherwise tell equal answers. */
static ig_status add_trace(request *r, event *e)
{
    uint8_t all[API_MAX_CHOICES * SHA256_N], commit[SHA256_N];
    if (!r->sv->config.number[SET_trace_logits] || !r->t_start) return IG_OK;
    for (int i = 0; i < r->api.n; i++)
        memcpy(all + i * SHA256_N, r->choice[i].trace_digest, SHA256_N);
    TRY(commit_make(&r->secret, "trace", all, (size_t)r->api.n * SHA256_N, commit));
    event_hex(e, EV_DONE_EXEC_TRACE, commit);
    return IG_OK;
}

ig_status stage_record_event(server *sv, request *r, event *e)
{
    event_init(e, EVENT_DONE);
    event_str(e, EV_DONE_STATUS, outcome_names[r->outcome]);
    event_str(e, EV_DONE_FINISH,
              r->outcome == OUTCOME_OK ? answer_finish_name(r->choice[0].finish) : "none");
    event_int(e, EV_DONE_HTTP,
              r->error.http && !r->started                     ? r->error.http
              : r->outcome == OUTCOME_CANCELLED && !r->started ? 0
                                                               : 200);
    if (r->error.http) event_str(e, EV_DONE_ERR, r->error.code);
    TRY(add_prompt(r, e));
    if (r->t_start) {
        TRY(add_answers(r, e));
        event_str(e, EV_DONE_EXEC_ISA, ig_device_isa());
        event_int(e, EV_DONE_EXEC_THREADS, ig_device_threads());
        event_int(e, EV_DONE_US_QUEUE, r->t_start - r->t_admit);
        if (r->t_first) {
            event_int(e, EV_DONE_US_PREFILL, r->t_first - r->t_start);
            event_int(e, EV_DONE_US_TTFT, r->t_first - r->t_admit);
            event_int(e, EV_DONE_US_DECODE, r->t_end - r->t_first);
        }
    }
    TRY(add_trace(r, e));
    lock_take(&r->lock);
    event_int(e, EV_DONE_SENT, r->sent);
    lock_drop(&r->lock);
    event_int(e, EV_DONE_US_TOTAL, r->t_end - r->t_admit);
    event_str(e, EV_DONE_VERIFIED, "full");
    event_str(e, EV_DONE_RESIDENCY, "mapped");
    stage_count(&sv->stage[STAGE_RECORD].n_in, 1);
    return IG_OK;
}

/* The receipt with the token ids of prompt and answers opened, so that it can be replayed. */
static ig_status make_receipt(request *r, buf *ret_receipt)
{
    receipt_opening open[1 + API_MAX_CHOICES];
    char names[API_MAX_CHOICES][24];
    size_t n = 0;
    int64_t n_ids;
    const int32_t *ids = ig_lm_prompt_ids(r->prompt, &n_ids);
    open[n++] = (receipt_opening){"in.ids", ids, (size_t)n_ids * sizeof *ids};
    for (int i = 0; i < r->api.n; i++) {
        snprintf(names[i], sizeof names[i], "tout.%d", i);
        open[n++] = (receipt_opening){names[i], r->choice[i].ids,
                                      (size_t)r->choice[i].n_ids * sizeof(int32_t)};
    }
    return audit_receipt(r->sv->log, r->done.index, &r->secret, open, n, ret_receipt);
}

static void last_chunks(request *r, str proof, buf *out)
{
    for (int i = 0; i < r->api.n; i++)
        answer_finish_chunk(r, i, i == r->api.n - 1 ? proof : (str){"", 0}, out);
    if (r->api.include_usage) answer_usage_chunk(r, out);
    buf_str(out, "data: [DONE]\n\n");
}

/* The whole answer, or the end of a stream. A receipt that cannot be made, or memory that is not
 * there, turns it into an error. */
static void put_answer(request *r, buf *out)
{
    AUTO(buf) proof = {0};
    buf_init(&proof, RECEIPT_MAX);
    if (!r->recorded) {
        api_error_set(&r->error, 500, "server_error", "audit_log_unavailable", NULL,
                      "the completion could not be recorded, so the answer is withheld");
    } else if (make_receipt(r, &proof) != IG_OK) {
        api_error_set(&r->error, 500, "server_error", "receipt_unavailable", NULL,
                      "the receipt could not be written: %s", ig_error_message());
    } else {
        str text = {proof.data, proof.n};
        r->api.stream ? last_chunks(r, text, out) : answer_body(r, text, out);
        if (buf_status(out) == IG_OK) return;
        api_error_set(&r->error, 500, "server_error", "internal_error", NULL,
                      "the answer could not be put together: %s", ig_error_message());
    }
    buf_clear(out);
}

void stage_record_answer(server *sv, request *r)
{
    AUTO(buf) out = {0};
    bool stream = r->started && r->stream;
    buf_init(&out, REQUEST_MAX_BODY);
    if (r->outcome == OUTCOME_OK) put_answer(r, &out);
    if (r->error.http)
        stream ? answer_error_chunk(&r->error, &out) : api_error_body(&r->error, &out);
    if (!stream && (r->error.http || r->outcome == OUTCOME_OK))
        request_start(r, r->error.http ? r->error.http : 200, false);
    request_finish(r, out.data, out.n);
    stage_count(&sv->stage[STAGE_RECORD].n_out, 1);
    stage_count(&sv->stage[STAGE_RECORD].units, 1);
    if (r->t_end) stage_count(&sv->stage[STAGE_RECORD].us, clock_mono_us() - r->t_end);
}
