/* 3_warm.c: nothing is left for the first request to pay, and machine and model are proven.
 * takes    a bound model and the probe token of its load event
 * gives    touched weights, pages and arena; the plan; a known answer equal to the signed one
 * refuses  a known answer that differs: the machine computes other bits than the packager's, or
 * the wrong model was signed
 * touches  the model; kat.json. Limit: storage, then arithmetic. */
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "server/model_stage.h"

#define MAX_KAT ((size_t)1 << 20)

static ig_status hex_field(const char *what, const json_t *o, const char *key,
                           uint8_t out[SHA256_N])
{
    str s = {0};
    TRY(json_get_str(what, o, key, &s));
    if (!hex_decode(s, out, SHA256_N))
        return ig_fail(IG_EFORMAT, "%s: %s: expected 64 hex digits", what, key);
    return IG_OK;
}

/* The entry of this kset and KV type. */
static ig_status find_answer(const char *what, const json_t *root, const ig_lm_facts *f,
                             const json_t **ret_entry)
{
    json_t *list = NULL, *entry;
    size_t i;
    TRY(json_get_arr(what, root, "answers", &list));
    json_array_foreach(list, i, entry)
    {
        const char *kset = json_string_value(json_object_get(entry, "kset")),
                   *kv = json_string_value(json_object_get(entry, "kv"));
        if (kset && kv && !strcmp(kset, f->kset) && !strcmp(kv, f->kv_type)) {
            *ret_entry = entry;
            return IG_OK;
        }
    }
    return ig_fail(
        IG_EVERIFY,
        "%s: no known answer for arithmetic %s with a %s KV cache: pack the model with this "
        "version",
        what, f->kset, f->kv_type);
}

ig_status kat_check(const char *model_dir, ig_lm *lm)
{
    AUTO(buf) path = {0}, text = {0};
    AUTO(json_ptr) root = NULL;
    const json_t *entry = NULL;
    ig_lm_facts facts;
    ig_lm_kat want = {0}, have = {0};
    buf_init(&text, 0);
    TRY(file_join(&path, model_dir, "kat.json"));
    TRY(file_read(path.data, MAX_KAT, &text));
    TRY(json_parse(path.data, (str){text.data, text.n}, MAX_KAT, 8, &root));
    ig_lm_get_facts(lm, &facts);
    TRY(find_answer(path.data, root, &facts, &entry));
    TRY(hex_field(path.data, entry, "tokens", want.tokens_sha256));
    TRY(hex_field(path.data, entry, "logits", want.logits_sha256));
    TRY(ig_lm_known_answer(lm, &have));
    if (memcmp(&want, &have, sizeof want))
        return ig_fail(
            IG_EVERIFY,
            "%s: the known prompt gives other %s on this machine than when the model was packed",
            path.data,
            memcmp(want.tokens_sha256, have.tokens_sha256, SHA256_N) ? "tokens" : "logits");
    return IG_OK;
}

ig_status warm_run(server *sv, const audit_token *probe, ready_times *times)
{
    AUTO(buf) model_dir = {0};
    if (!probe || audit_token_what(probe) != AUDIT_TOKEN_PROBE) {
        buf_init(&model_dir, 0);
        return ig_fail(IG_EINVAL, "warming up needs the token of a load event");
    }
    TRY(file_join(&model_dir, sv->config.text[SET_bundle], "model"));
    server_phase(sv, "touching");
    TRY(ig_lm_warm(sv->model.lm));
    ig_lm_get_facts(sv->model.lm, &sv->model.facts);
    const ig_lm_facts *f = &sv->model.facts;
    ready_mark(times, READY_TOUCH);
    ready_move(times, READY_TOUCH, READY_PLAN, f->times.plan_us);
    ready_move(times, READY_TOUCH, READY_TUNE, f->times.tune_us);
    times->touch_bytes = f->file_bytes + f->kv_pool_bytes + f->arena_bytes;
    server_phase(sv, "proving");
    TRY(kat_check(model_dir.data, sv->model.lm));
    ready_mark(times, READY_PROVE);
    stage_count(&sv->stage[STAGE_WARM].units, times->touch_bytes);
    stage_count(&sv->stage[STAGE_WARM].us, ready_stage_us(times, STAGE_WARM));
    return IG_OK;
}

static ig_status answer_of(const char *model_dir, ig_lm_arithmetic arithmetic, ig_dtype kv_type,
                           bool first, buf *out)
{
    ig_lm *lm = NULL;
    ig_lm_kat kat = {0};
    ig_lm_facts facts;
    ig_lm_options o = {.context = 64,
                       .kv_tokens = 64,
                       .kv_type = kv_type,
                       .arithmetic = arithmetic,
                       .max_tokens = 32,
                       .max_sessions = 1,
                       .max_outputs = 1};
    TRY(ig_lm_open(model_dir, &o, &lm));
    ig_status s = ig_lm_known_answer(lm, &kat);
    ig_lm_get_facts(lm, &facts);
    if (s == IG_OK) {
        buf_printf(out, "%s\n{\"kset\":\"%s\",\"kv\":\"%s\",\"tokens\":\"", first ? "" : ",",
                   facts.kset, facts.kv_type);
        buf_hex(out, kat.tokens_sha256, SHA256_N);
        buf_str(out, "\",\"logits\":\"");
        buf_hex(out, kat.logits_sha256, SHA256_N);
        buf_str(out, "\"}");
    }
    ig_lm_close(lm);
    return s;
}

ig_status kat_write(const char *model_dir)
{
    static const ig_dtype kv_types[] = {IG_F16, IG_BF16, IG_I8, IG_F32};
    AUTO(buf) path = {0}, out = {0};
    buf_init(&out, MAX_KAT);
    TRY(file_join(&path, model_dir, "kat.json"));
    buf_str(&out,
            "{\"format\":1,\"prompt\":\"token i of 24 is (7919 i + 17) mod vocabulary; 16 greedy "
            "tokens\",\"answers\":[");
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < N_ELEM(kv_types); i++)
            TRY(answer_of(model_dir, a ? IG_LM_EXACT : IG_LM_INT8, kv_types[i], !a && !i, &out));
    buf_str(&out, "\n]}\n");
    TRY(buf_status(&out));
    return file_write_atomic(path.data, out.data, out.n, 0644);
}
