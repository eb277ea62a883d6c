/* answer.c: writes chunks and bodies straight into a buffer. */
#include "server/answer.h"
#include <string.h>

static void head(const request *r, const char *object, buf *out)
{
    buf_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", r->id, object,
               (long long)r->created);
    buf_json_string(out, r->sv->model.name, strlen(r->sv->model.name));
    buf_printf(out, ",\"system_fingerprint\":\"%s\",\"choices\":[", r->sv->model.fingerprint);
}

static const char *object_of(const request *r, bool chunk)
{
    if (r->api.kind == API_COMPLETIONS) return "text_completion";
    return chunk ? "chat.completion.chunk" : "chat.completion";
}

const char *answer_finish_name(ig_lm_finish f)
{
    return f == IG_LM_STOP ? "stop" : f == IG_LM_LENGTH ? "length" : "none";
}

static void logprobs_part(const request *r, str entries, buf *out)
{
    if (!r->api.logprobs) {
        buf_str(out, "null");
        return;
    }
    buf_str(out, "{\"content\":[");
    buf_add(out, entries.p, entries.n);
    buf_str(out, "],\"refusal\":null}");
}

/* One choice of a chunk. `delta` NULL: the finishing chunk. */
static void chunk_choice(const request *r, int i, const str *delta, bool role, str logprobs,
                         buf *out)
{
    const choice *c = &r->choice[i];
    buf_printf(out, "{\"index\":%d,", i);
    if (r->api.kind == API_CHAT) {
        buf_str(out, "\"delta\":{");
        if (role) buf_str(out, "\"role\":\"assistant\",");
        if (delta) {
            buf_str(out, "\"content\":");
            buf_json_string(out, delta->p, delta->n);
        }
        buf_str(out, "}");
    } else {
        buf_str(out, "\"text\":");
        buf_json_string(out, delta ? delta->p : "", delta ? delta->n : 0);
    }
    buf_str(out, ",\"logprobs\":");
    logprobs_part(r, logprobs, out);
    if (delta)
        buf_str(out, ",\"finish_reason\":null}");
    else
        buf_printf(out, ",\"finish_reason\":\"%s\"}", answer_finish_name(c->finish));
}

static void close_chunk(buf *out) { buf_str(out, "}\n\n"); }

void answer_open_chunk(const request *r, int i, buf *out)
{
    str empty = {"", 0};
    buf_str(out, "data: ");
    head(r, object_of(r, true), out);
    chunk_choice(r, i, &empty, true, empty, out);
    buf_str(out, "]");
    close_chunk(out);
}

void answer_text_chunk(const request *r, int i, str text, str logprobs, buf *out)
{
    buf_str(out, "data: ");
    head(r, object_of(r, true), out);
    chunk_choice(r, i, &text, false, logprobs, out);
    buf_str(out, "]");
    close_chunk(out);
}

/* The extra field: where the request stands in the log, and its receipt. */
static void audit_part(const request *r, str proof, buf *out)
{
    if (!proof.n) return;
    buf_printf(
        out,
        ",\"audit\":{\"id\":\"%s\",\"origin\":\"%s\",\"admit\":%llu,\"done\":%llu,\"receipt\":",
        r->id, audit_log_vkey(r->sv->log)->name,
        (unsigned long long)audit_token_ref(r->token)->index, (unsigned long long)r->done.index);
    buf_json_string(out, proof.p, proof.n);
    buf_char(out, '}');
}

void answer_finish_chunk(const request *r, int i, str proof, buf *out)
{
    str empty = {"", 0};
    buf_str(out, "data: ");
    head(r, object_of(r, true), out);
    chunk_choice(r, i, NULL, false, empty, out);
    buf_str(out, "]");
    audit_part(r, proof, out);
    close_chunk(out);
}

void answer_usage_counts(const request *r, int64_t *ret_prompt, int64_t *ret_completion)
{
    int64_t n = 0;
    if (r->prompt) ig_lm_prompt_ids(r->prompt, &n);
    *ret_prompt = n;
    *ret_completion = 0;
    for (int i = 0; i < r->api.n; i++) *ret_completion += r->choice[i].n_ids;
}

static void usage(const request *r, buf *out)
{
    int64_t prompt, completion;
    answer_usage_counts(r, &prompt, &completion);
    buf_printf(out,
               "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
               "\"prompt_tokens_details\":{\"cached_tokens\":%lld}}",
               (long long)prompt, (long long)completion, (long long)(prompt + completion),
               (long long)r->n_cached);
}

void answer_usage_chunk(const request *r, buf *out)
{
    buf_str(out, "data: ");
    head(r, object_of(r, true), out);
    buf_str(out, "],");
    usage(r, out);
    close_chunk(out);
}

void answer_error_chunk(const api_error *e, buf *out)
{
    buf_str(out, "data: ");
    api_error_body(e, out);
    buf_str(out, "\n\n");
}

static void body_choice(const request *r, int i, buf *out)
{
    const choice *c = &r->choice[i];
    str text = {c->text.data ? c->text.data : "", c->text.n},
        entries = {c->logprobs.data ? c->logprobs.data : "", c->logprobs.n};
    buf_printf(out, "%s{\"index\":%d,", i ? "," : "", i);
    buf_str(out, r->api.kind == API_CHAT ? "\"message\":{\"role\":\"assistant\",\"content\":"
                                         : "\"text\":");
    buf_json_string(out, text.p, text.n);
    if (r->api.kind == API_CHAT) buf_str(out, ",\"refusal\":null}");
    buf_str(out, ",\"logprobs\":");
    logprobs_part(r, entries, out);
    buf_printf(out, ",\"finish_reason\":\"%s\"}", answer_finish_name(c->finish));
}

void answer_body(const request *r, str proof, buf *out)
{
    head(r, object_of(r, false), out);
    for (int i = 0; i < r->api.n; i++) body_choice(r, i, out);
    buf_str(out, "],");
    usage(r, out);
    audit_part(r, proof, out);
    buf_char(out, '}');
}

/* "token":"...","logprob":x,"bytes":[...]: bytes that are not UTF-8 show as U+FFFD in the text. */
static void token_part(const request *r, int32_t id, float logprob, buf *out)
{
    char bytes[512];
    size_t n = 0;
    if (ig_lm_token_bytes(r->sv->model.lm, id, bytes, sizeof bytes, &n) != IG_OK) n = 0;
    if (n >= sizeof bytes) n = sizeof bytes - 1;
    buf_str(out, "\"token\":");
    buf_json_string(out, bytes, n);
    buf_printf(out, ",\"logprob\":%.9g,\"bytes\":[", (double)logprob);
    for (size_t i = 0; i < n; i++) buf_printf(out, "%s%d", i ? "," : "", (unsigned char)bytes[i]);
    buf_char(out, ']');
}

void answer_logprob(const request *r, const ig_lm_result *result, bool more, buf *out)
{
    buf_str(out, more ? ",{" : "{");
    token_part(r, result->token, result->logprob, out);
    buf_str(out, ",\"top_logprobs\":[");
    for (int32_t i = 0; i < result->n_top; i++) {
        buf_str(out, i ? ",{" : "{");
        token_part(r, result->top[i].id, result->top[i].logprob, out);
        buf_char(out, '}');
    }
    buf_str(out, "]}");
}
