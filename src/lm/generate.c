/* generate.c: the simple way to an answer: one session, stepped until it ends; and the known
 * answer that proves a model and a machine. */
#include <string.h>
#include "base/digest.h"
#include "lm/lm.h"

#define KAT_PROMPT 24
#define KAT_NEW 16

AUTO_FN(session_ptr, ig_lm_session *, ig_lm_session_free)
AUTO_FN(stream_ptr, ig_lm_stream *, ig_lm_stream_free)

/* Feeds what is pending, as much as a step takes, until a token comes or the session ends. */
static ig_status next_token(ig_lm *lm, ig_lm_session *s, ig_lm_result *ret_result)
{
    do {
        int64_t pending = ig_lm_session_pending(s);
        int32_t n = pending < lm->options.max_tokens ? (int32_t)pending : lm->options.max_tokens;
        TRY(ig_lm_step(lm, &(ig_lm_feed){s, n}, 1, ret_result));
    } while (ret_result->token < 0 && ret_result->finish == IG_LM_RUNNING);
    return IG_OK;
}

static ig_status run(ig_lm *lm, ig_lm_session *s, ig_lm_stream *stream, ig_lm_on_text on_text,
                     void *user, ig_lm_finish *ret_finish)
{
    ig_lm_result r;
    const char *text;
    size_t n;
    do {
        TRY(next_token(lm, s, &r));
        if (r.finish == IG_LM_FAILED)
            return ig_fail(IG_EDEVICE, "the model gave logits that are not finite");
        if (r.finish == IG_LM_STOP) break;
        TRY(ig_lm_stream_push(stream, r.token, &text, &n));
        if (n && !on_text(user, text, n)) return ig_fail(IG_ECANCELLED, "the caller asked to stop");
    } while (r.finish == IG_LM_RUNNING);
    TRY(ig_lm_stream_flush(stream, &text, &n));
    if (n && !on_text(user, text, n)) return ig_fail(IG_ECANCELLED, "the caller asked to stop");
    *ret_finish = r.finish;
    return IG_OK;
}

ig_status ig_lm_generate(ig_lm *lm, const ig_lm_prompt *prompt, const ig_lm_sampling *sampling,
                         int64_t max_new, ig_lm_on_text on_text, void *user,
                         ig_lm_finish *ret_finish)
{
    AUTO(session_ptr) s = NULL;
    AUTO(stream_ptr) stream = NULL;
    ig_lm_session_spec spec = {.max_new = max_new};
    spec.prompt = ig_lm_prompt_ids(prompt, &spec.n_prompt);
    if (sampling) spec.sampling = *sampling;
    if (!max_new)
        spec.max_new =
            spec.n_prompt < lm->options.context ? lm->options.context - spec.n_prompt : 1;
    TRY(ig_lm_session_new(lm, &spec, &s));
    TRY(ig_lm_stream_new(lm, &stream));
    return run(lm, s, stream, on_text, user, ret_finish);
}

static ig_status answer(ig_lm *lm, ig_lm_session *s, sha256_ctx *tokens, sha256_ctx *logits)
{
    ig_lm_result r;
    do {
        TRY(next_token(lm, s, &r));
        if (r.finish == IG_LM_FAILED)
            return ig_fail(IG_EVERIFY, "the known prompt gave logits that are not finite");
        sha256_add(tokens, &r.token, sizeof r.token);
        sha256_add(logits, r.logits, (size_t)lm->config.vocab * sizeof *r.logits);
    } while (r.finish == IG_LM_RUNNING);
    return IG_OK;
}

ig_status ig_lm_known_answer(ig_lm *lm, ig_lm_kat *ret_kat)
{
    AUTO(session_ptr) s = NULL;
    int32_t prompt[KAT_PROMPT];
    sha256_ctx tokens, logits;
    for (int64_t i = 0; i < KAT_PROMPT; i++)
        prompt[i] = (int32_t)((i * 7919 + 17) % lm->config.vocab);
    ig_lm_session_spec spec = {.prompt = prompt,
                               .n_prompt = KAT_PROMPT,
                               .max_new = KAT_NEW,
                               .sampling = {.ignore_stop = 1},
                               .tenant = "known answer"};
    if (lm->options.context < KAT_PROMPT + KAT_NEW)
        return ig_fail(IG_EINVAL, "the known answer needs a context of %d tokens",
                       KAT_PROMPT + KAT_NEW);
    TRY(ig_lm_session_new(lm, &spec, &s));
    TRY(sha256_init(&tokens));
    ig_status status = sha256_init(&logits);
    if (status == IG_OK) {
        ig_lm_kat kat;
        status = answer(lm, s, &tokens, &logits);
        sha256_final(&tokens, kat.tokens_sha256);
        sha256_final(&logits, kat.logits_sha256);
        if (status == IG_OK) *ret_kat = kat;
    }
    sha256_done(&tokens);
    return status;
}
