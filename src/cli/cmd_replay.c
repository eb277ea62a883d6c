/* cmd_replay.c: ingot replay: compute a recorded answer again from its receipt and compare token
 * by token; then see that the recorded text is that of the tokens and, where the request is given,
 * that the prompt's tokens are those of the request.
 * Exit codes: 0 identical, 1 differs (the first token that does is named), 2 not replayable
 * (contract, model or input missing). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "audit/key.h"
#include "audit/sign.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "ingot/audit.h"
#include "ingot/device.h"
#include "ingot/lm.h"
#include "server/words.h"

enum { REPLAY_IDENTICAL = 0, REPLAY_DIFFERS = 1, REPLAY_IMPOSSIBLE = 2 };
#define MAX_RECEIPT ((size_t)16 << 20)
#define MAX_REQUEST ((size_t)1 << 30)

typedef struct replay {
    const char *bundle, *trust, *vkey, *request, *isa;
    int64_t threads;
    bool json;
    bool other_model; /* the bundle's root is not the recorded one */
    ig_audit_receipt *receipt;
    json_t *load, *admit, *done;
    ig_lm *lm;
    ig_lm_sampling sampling;
    api_request parsed; /* of --request: messages, logit biases, stop strings */
} replay;

static void replay_auto(replay *r)
{
    ig_lm_close(r->lm);
    json_decref(r->load);
    json_decref(r->admit);
    json_decref(r->done);
    ig_audit_receipt_close(r->receipt);
    api_request_done(&r->parsed);
}

static ig_status event_json(const ig_audit_receipt *r, const char *which, json_t **ret_json)
{
    const char *text;
    size_t n;
    TRY(ig_audit_receipt_event(r, which, &text, &n));
    return json_parse(which, (str){text, n}, (size_t)1 << 16, 8, ret_json);
}

static const char *text_of(const json_t *event, const char *object, const char *key)
{
    const json_t *o = object ? json_object_get(event, object) : event;
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static int64_t int_of(const json_t *event, const char *object, const char *key)
{
    return json_integer_value(
        json_object_get(object ? json_object_get(event, object) : event, key));
}

static float number_of(const json_t *event, const char *key)
{
    double d = 0;
    const char *s = text_of(event, "params", key);
    return str_double(str_of(s), &d) ? (float)d : 0;
}

static ig_status open_receipt(replay *r, const char *path)
{
    AUTO(buf) text = {0};
    log_vkey v;
    if (!r->vkey) {
        buf_init(&text, 0);
        return ig_fail(IG_EINVAL, "--key FILE is needed: the log's verifier key (.vkey)");
    }
    TRY(file_read(path, MAX_RECEIPT, &text));
    TRY(log_vkey_read(r->vkey, &v));
    ig_status s = ig_audit_receipt_open(text.data ? text.data : "", text.n, v.text, &r->receipt);
    if (s != IG_OK) return ig_fail_context(s, "%s: ", path);
    TRY(event_json(r->receipt, "load", &r->load));
    TRY(event_json(r->receipt, "admit", &r->admit));
    return event_json(r->receipt, "done", &r->done);
}

/* Most tokens of a recorded choice. */
static int64_t longest_answer(const replay *r)
{
    const json_t *list = json_object_get(r->done, "tout");
    int64_t most = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        int64_t n = int_of(json_array_get(list, i), NULL, "n");
        if (n > most) most = n;
    }
    return most;
}

/* Verifies the bundle, says if its root is another than the recorded one, opens it under the
 * recorded contract. The context is what the answer used: max_tokens may be beyond the model's. */
static ig_status open_model(replay *r)
{
    AUTO(buf) model = {0}, sig = {0};
    ig_audit_model m;
    const char *kset = text_of(r->admit, "eng", "kset");
    size_t n = strlen(ig_kset());
    int64_t total = int_of(r->done, "in", "n") + longest_answer(r);
    buf_init(&sig, 0);
    TRY(file_join(&model, r->bundle, "model"));
    TRY(file_join(&sig, r->bundle, "model.sig"));
    if (strncmp(kset, ig_kset(), n) || (kset[n] && strcmp(kset + n, "/exact")))
        return ig_fail(IG_EUNSUPPORTED,
                       "the answer was computed under the numeric contract %s; this program has %s",
                       kset, ig_kset());
    TRY(ig_audit_model_verify(model.data, sig.data, r->trust, NULL, NULL, &m));
    r->other_model = strcmp(m.root, text_of(r->admit, "model", "root")) != 0;
    if (r->other_model)
        fprintf(stderr, "note: the bundle's root is %s, the answer was made by %s\n", m.root,
                text_of(r->admit, "model", "root"));
    ig_dtype kv_type = IG_F16;
    if (!ig_dtype_of_name(text_of(r->admit, "eng", "kv"), &kv_type))
        return ig_fail(IG_EINVAL, "%s: there is no such KV type: float16, bfloat16, int8, float32",
                       text_of(r->admit, "eng", "kv"));
    ig_lm_options o = {.arithmetic = kset[n] ? IG_LM_EXACT : IG_LM_INT8,
                       .kv_type = kv_type,
                       .context = total,
                       .kv_tokens = total,
                       .max_sessions = 1,
                       .max_outputs = 1};
    return ig_lm_open(model.data, &o, &r->lm);
}

/* Logit biases and stop strings are text of the request: without its body there is no replay of
 * biases, and no text to compare where there were stop strings. */
static ig_status read_request(replay *r)
{
    AUTO(buf) body = {0};
    api_error e;
    ig_lm_facts f;
    buf_init(&body, 0);
    if (!r->request && !int_of(r->admit, "params", "n_bias")) return IG_OK;
    if (!r->request)
        return ig_fail(IG_ENOTFOUND,
                       "the request had logit biases: give its body with --request FILE");
    TRY(file_read(r->request, MAX_REQUEST, &body));
    TRY(ig_audit_receipt_check(r->receipt, "in.body", body.data ? body.data : "", body.n));
    ig_lm_get_facts(r->lm, &f);
    api_kind kind = strcmp(text_of(r->admit, NULL, "api"), "chat") ? API_COMPLETIONS : API_CHAT;
    if (!api_parse(kind, (str){body.data ? body.data : "", body.n}, f.vocab, &r->parsed, &e))
        return ig_fail(IG_EFORMAT, "%s: %s", r->request, e.message);
    r->sampling.bias = r->parsed.bias;
    r->sampling.n_bias = r->parsed.sampling.n_bias;
    return IG_OK;
}

static ig_status read_sampling(replay *r)
{
    ig_lm_sampling *s = &r->sampling;
    char *end;
    s->temperature = number_of(r->admit, "temperature");
    s->top_p = number_of(r->admit, "top_p");
    s->min_p = number_of(r->admit, "min_p");
    s->top_k = (int32_t)int_of(r->admit, "params", "top_k");
    s->repetition_penalty = number_of(r->admit, "repetition");
    s->presence_penalty = number_of(r->admit, "presence");
    s->frequency_penalty = number_of(r->admit, "frequency");
    s->seed = strtoull(text_of(r->admit, "seed", "value"), &end, 10);
    s->ignore_stop = 1;
    return read_request(r);
}

/* Steps until n tokens are there or one differs; *ret_at is how many agree. */
static ig_status compare(replay *r, const int32_t *prompt, int64_t n_prompt, const int32_t *want,
                         int64_t n, int32_t choice, int64_t *ret_at, int32_t *ret_other)
{
    ig_lm_session *s = NULL;
    ig_lm_session_spec spec = {
        .prompt = prompt, .n_prompt = n_prompt, .max_new = n, .sampling = r->sampling};
    ig_lm_result result = {.token = -1};
    ig_status status = IG_OK;
    int64_t at = 0;
    spec.sampling.choice = (uint32_t)choice;
    TRY(ig_lm_session_new(r->lm, &spec, &s));
    while (at < n && status == IG_OK) {
        int64_t pending = ig_lm_session_pending(s);
        status = ig_lm_step(r->lm, &(ig_lm_feed){s, (int32_t)(pending < 512 ? pending : 512)}, 1,
                            &result);
        if (status != IG_OK || (result.token < 0 && result.finish == IG_LM_RUNNING)) continue;
        if (result.finish == IG_LM_FAILED || result.token != want[at]) break;
        at++;
    }
    ig_lm_session_free(s);
    *ret_at = at;
    *ret_other = result.token;
    return status;
}

static ig_status opened_ids(const replay *r, const char *name, const int32_t **ret_ids,
                            int64_t *ret_n)
{
    const void *bytes;
    size_t n;
    TRY(ig_audit_receipt_opened(r->receipt, name, &bytes, &n));
    if (n % sizeof(int32_t)) return ig_fail(IG_EFORMAT, "%s: %zu bytes are no token ids", name, n);
    int32_t *copy = mem_alloc(n ? n : 1); /* aligned */
    if (!copy) return IG_ENOMEM;
    memcpy(copy, bytes, n);
    *ret_ids = copy;
    *ret_n = (int64_t)(n / sizeof(int32_t));
    return IG_OK;
}

static void list_differences(const replay *r)
{
    const char *isa = text_of(r->done, "exec", "isa");
    int64_t threads = int_of(r->done, "exec", "threads");
    if (*isa && strcmp(isa, ig_device_isa()))
        fprintf(stderr, "note: kernels %s then, %s now\n", isa, ig_device_isa());
    if (threads && threads != ig_device_threads())
        fprintf(stderr, "note: %lld threads then, %d now\n", (long long)threads,
                ig_device_threads());
}

/* The end of the line that says how it went: was it the model of the receipt? */
static const char *model_words(const replay *r)
{
    if (r->json) return r->other_model ? "false" : "true";
    return r->other_model ? ", by another model" : "";
}

static int tell_token(const replay *r, int32_t choice, int64_t at, int64_t n, int32_t recorded,
                      int32_t computed)
{
    printf(r->json ? "{\"replay\":\"differs\",\"choice\":%d,\"token\":%lld,\"of\":%lld,"
                     "\"recorded\":%d,\"computed\":%d,\"same_model\":%s}\n"
                   : "differs: choice %d, token %lld of %lld is %d in the log and %d now%s\n",
           choice, (long long)at, (long long)n, recorded, computed, model_words(r));
    return REPLAY_DIFFERS;
}

static int tell_words(const replay *r, const char *name, const char *what)
{
    printf(r->json ? "{\"replay\":\"differs\",\"what\":\"%s\",\"why\":\"%s\",\"same_model\":%s}\n"
                   : "differs: %s: %s%s\n",
           name, what, model_words(r));
    return REPLAY_DIFFERS;
}

/* The prompt's tokens may be checked only against the request that they are of. */
static ig_status check_prompt(const replay *r, const int32_t *ids, int64_t n, int *ret_code)
{
    ig_lm_prompt *p = NULL;
    int64_t n_now;
    if (!r->request) return IG_OK;
    TRY(words_prompt(r->lm, &r->parsed, text_of(r->admit, NULL, "date"), 2 * MAX_REQUEST, &p));
    const int32_t *now = ig_lm_prompt_ids(p, &n_now);
    if (n_now != n || memcmp(now, ids, (size_t)n * sizeof *ids))
        *ret_code = tell_words(r, "prompt", "the recorded tokens are not those of the request");
    ig_lm_prompt_free(p);
    return IG_OK;
}

/* Is the recorded text that of the recorded tokens, and does it end where they say? Stop strings
 * are known from the request only. */
static ig_status check_words(const replay *r, int32_t choice, const int32_t *ids, int64_t n,
                             int *ret_code)
{
    AUTO(buf) text = {0};
    char name[16];
    bool cut = false;
    if (!r->request && int_of(r->admit, "params", "n_stop")) return IG_OK;
    TRY(words_answer(r->lm, &r->parsed, ids, n, &text, &cut));
    snprintf(name, sizeof name, "out.%d", choice);
    ig_status s = ig_audit_receipt_check(r->receipt, name, text.data ? text.data : "", text.n);
    if (s == IG_EVERIFY)
        *ret_code = tell_words(r, name, "the recorded text is not that of the recorded tokens");
    if (s != IG_OK) return s == IG_EVERIFY ? IG_OK : s;
    if (!choice && !strcmp(text_of(r->done, NULL, "finish"), "stop") && !cut &&
        !(n && ig_lm_is_stop(r->lm, ids[n - 1])))
        *ret_code = tell_words(r, name, "it ends as stopped, but nothing in it stops it");
    return IG_OK;
}

static ig_status replay_choice(replay *r, int32_t choice, const int32_t *prompt, int64_t n_prompt,
                               int64_t *ret_same, int *ret_code)
{
    AUTO(mem_ptr) memory = NULL;
    const int32_t *want = NULL;
    int64_t n = 0, at = 0;
    int32_t other = -1;
    char name[16];
    snprintf(name, sizeof name, "tout.%d", choice);
    TRY(opened_ids(r, name, &want, &n));
    memory = (void *)(uintptr_t)want;
    if (n) TRY(compare(r, prompt, n_prompt, want, n, choice, &at, &other));
    *ret_same = at;
    if (at < n) {
        *ret_code = tell_token(r, choice, at, n, want[at], other);
        return IG_OK;
    }
    return strcmp(text_of(r->done, NULL, "status"), "ok")
               ? IG_OK
               : check_words(r, choice, want, n, ret_code);
}

static ig_status replay_all(replay *r, int *ret_code)
{
    AUTO(mem_ptr) memory = NULL;
    const int32_t *prompt = NULL;
    int64_t n_prompt = 0, n_choices = int_of(r->admit, "params", "n"), total = 0,
            begin = clock_mono_us();
    TRY(opened_ids(r, "in.ids", &prompt, &n_prompt));
    memory = (void *)(uintptr_t)prompt;
    TRY(check_prompt(r, prompt, n_prompt, ret_code));
    for (int32_t i = 0; i < n_choices && !*ret_code; i++) {
        int64_t same = 0;
        TRY(replay_choice(r, i, prompt, n_prompt, &same, ret_code));
        total += same;
    }
    if (!*ret_code)
        printf(r->json ? "{\"replay\":\"identical\",\"tokens\":%lld,\"seconds\":%.3f,"
                         "\"same_model\":%s}\n"
                       : "identical: %lld tokens, %.2f s%s\n",
               (long long)total, (double)(clock_mono_us() - begin) * 1e-6, model_words(r));
    return IG_OK;
}

static ig_status run_replay(replay *r, const char *receipt, int *ret_code)
{
    if (r->isa) TRY(ig_device_set_isa(r->isa));
    if (r->threads) TRY(ig_device_set_threads((int)r->threads));
    TRY(open_receipt(r, receipt));
    TRY(open_model(r));
    TRY(read_sampling(r));
    list_differences(r);
    return replay_all(r, ret_code);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(replay_auto))) replay r = {.trust = "/etc/ingot/trust"};
    text_list args;
    int code, result = REPLAY_IDENTICAL;
    const option_info options[] = {
        {"bundle", 0, "DIR", "bundle to compute with", OPT_TEXT, &r.bundle, 0, 0},
        {"trust", 0, "FILE|DIR", "trusted publisher keys; default /etc/ingot/trust", OPT_TEXT,
         &r.trust, 0, 0},
        {"key", 0, "FILE", "the log's verifier key (.vkey)", OPT_TEXT, &r.vkey, 0, 0},
        {"request", 0, "FILE",
         "raw request body: its prompt, stop strings and logit biases are checked", OPT_TEXT,
         &r.request, 0, 0},
        {"isa", 0, "NAME", "kernels to use: ref, avx2, avx512, neon", OPT_TEXT, &r.isa, 0, 0},
        {"threads", 't', "N", "compute threads", OPT_INT, &r.threads, 1, 256},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &r.json, 0, 0},
        {0},
    };
    cli_parse("replay", argc, argv, options, &args, 1, 1, &code);
    if (code >= 0) return code;
    if (!r.bundle) return cli_usage("replay", "--bundle DIR is needed");
    ig_status s = run_replay(&r, args.text[0], &result);
    if (s == IG_OK) return result;
    cli_fail("replay", s);
    return REPLAY_IMPOSSIBLE;
}

const command_info command_replay = {run};
