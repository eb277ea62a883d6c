/* session.c: one sequence: its tokens, its pages, its sampler. Pages for prompt and answer are
 * reserved at birth, so a session that runs never waits and is never evicted. */
#include "lm/lm.h"
#include <string.h>
#include "base/digest.h"
#include "ingot/fast.h"

static int64_t pages_for(int64_t n_tokens)
{
    return (n_tokens + IG_PAGE_POSITIONS - 1) / IG_PAGE_POSITIONS;
}

ig_status ig_lm_fits(const ig_lm *lm, int64_t n_prompt, int64_t max_new)
{
    if (n_prompt < 1)
        return ig_fail(IG_EINVAL, "the prompt is empty: at least one token is needed");
    if (max_new < 1)
        return ig_fail(IG_EINVAL, "max_new %lld: at least one token must be asked for",
                       (long long)max_new);
    if (n_prompt > lm->options.context || max_new > lm->options.context - n_prompt)
        return ig_fail(IG_ELIMIT,
                       "%lld prompt tokens and %lld to generate exceed the context of %lld tokens",
                       (long long)n_prompt, (long long)max_new, (long long)lm->options.context);
    if (pages_for(n_prompt + max_new) > kvpool_n_pages(lm->pool))
        return ig_fail(IG_ELIMIT, "%lld tokens need %lld KV pages, the pool has %d",
                       (long long)(n_prompt + max_new), (long long)pages_for(n_prompt + max_new),
                       kvpool_n_pages(lm->pool));
    return IG_OK;
}

/* key of page i = SHA-256(key of page i - 1, tokens of page i). */
static kvpool_key chain(const kvpool_key *before, const int32_t *tokens)
{
    uint8_t bytes[KVPOOL_KEY_N + 4 * IG_PAGE_POSITIONS];
    kvpool_key key;
    memcpy(bytes, before, KVPOOL_KEY_N);
    memcpy(bytes + KVPOOL_KEY_N, tokens, 4 * IG_PAGE_POSITIONS);
    sha256(bytes, sizeof bytes, key.b);
    return key;
}

static ig_status make_keys(ig_lm_session *s, const char *tenant)
{
    sha256(tenant ? tenant : "", tenant ? strlen(tenant) + 1 : 0, s->root.b);
    s->n_keys = (int32_t)(s->n_prompt / IG_PAGE_POSITIONS);
    s->key = mem_calloc((size_t)s->n_keys + 1, sizeof *s->key);
    if (!s->key) return IG_ENOMEM;
    for (int32_t i = 0; i < s->n_keys; i++)
        s->key[i] = chain(i ? &s->key[i - 1] : &s->root, s->token + (int64_t)i * IG_PAGE_POSITIONS);
    return IG_OK;
}

/* Shares the longest known prefix (at least the last prompt token is computed anew), takes the
 * rest. */
static ig_status reserve_pages(ig_lm_session *s)
{
    kvpool *pool = s->lm->pool;
    int32_t n_all = (int32_t)pages_for(s->n_prompt + s->max_new);
    int32_t may_share = s->all_logits || s->lm->options.no_prefix_cache
                            ? 0
                            : (int32_t)((s->n_prompt - 1) / IG_PAGE_POSITIONS);
    s->page = mem_calloc((size_t)n_all, sizeof *s->page);
    if (!s->page) return IG_ENOMEM;
    while (s->n_pages < may_share) {
        int32_t page = kvpool_match(pool, &s->key[s->n_pages]);
        if (page < 0) break;
        s->page[s->n_pages++] = page;
    }
    s->n_published = s->n_pages;
    s->n_fed = s->n_cached = (int64_t)s->n_pages * IG_PAGE_POSITIONS;
    TRY(kvpool_take(pool, n_all - s->n_pages, s->page + s->n_pages));
    s->n_pages = n_all;
    return IG_OK;
}

static ig_status check_tokens(const ig_lm *lm, const int32_t *token, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= lm->config.vocab)
            return ig_fail(IG_EINVAL, "prompt token %lld is %d, not in a vocabulary of %lld",
                           (long long)i, token[i], (long long)lm->config.vocab);
    return IG_OK;
}

AUTO_FN(session_ptr, ig_lm_session *, ig_lm_session_free)

ig_status ig_lm_session_new(ig_lm *lm, const ig_lm_session_spec *spec, ig_lm_session **ret_session)
{
    if (!spec->prompt) return ig_fail(IG_EINVAL, "ig_lm_session_new: no prompt");
    TRY(ig_lm_fits(lm, spec->n_prompt, spec->max_new));
    TRY(check_tokens(lm, spec->prompt, spec->n_prompt));
    AUTO(session_ptr) s = mem_calloc(1, sizeof *s);
    if (!s) return IG_ENOMEM;
    s->lm = lm;
    s->n_prompt = s->n_tokens = spec->n_prompt;
    s->max_new = spec->max_new;
    s->all_logits = spec->all_logits;
    s->token = mem_calloc((size_t)(spec->n_prompt + spec->max_new), sizeof *s->token);
    if (!s->token) return IG_ENOMEM;
    memcpy(s->token, spec->prompt, (size_t)spec->n_prompt * sizeof *s->token);
    TRY(sampler_init(&spec->sampling, lm->config.vocab, &s->sampler));
    for (int64_t i = 0; i < s->n_prompt; i++) sampler_prompt(&s->sampler, s->token[i]);
    TRY(make_keys(s, spec->tenant));
    TRY(reserve_pages(s));
    *ret_session = STEAL(s);
    return IG_OK;
}

/* Pages of generated tokens become shareable when the session ends: one arithmetic serves prompt
 * and answer. */
static void publish_output(ig_lm_session *s)
{
    if (s->lm->options.no_prefix_cache || s->finish == IG_LM_FAILED || !s->key) return;
    kvpool_key key = s->n_keys ? s->key[s->n_keys - 1] : s->root;
    for (int32_t i = s->n_keys; (int64_t)(i + 1) * IG_PAGE_POSITIONS <= s->n_fed; i++) {
        key = chain(&key, s->token + (int64_t)i * IG_PAGE_POSITIONS);
        kvpool_publish(s->lm->pool, s->page[i], &key);
    }
}

void ig_lm_session_free(ig_lm_session *s)
{
    if (!s) return;
    if (s->page && s->n_pages) publish_output(s);
    for (int32_t i = s->n_pages; s->page && i-- > 0;)
        kvpool_release(s->lm->pool, s->page[i]); /* last first: prefixes outlive tails */
    mem_free(s->page);
    mem_free(s->key);
    mem_free(s->token);
    sampler_done(&s->sampler);
    mem_free(s);
}

int64_t ig_lm_session_pending(const ig_lm_session *s)
{
    return s->finish == IG_LM_RUNNING ? s->n_tokens - s->n_fed : 0;
}

int64_t ig_lm_session_cached(const ig_lm_session *s) { return s->n_cached; }

const int32_t *ig_lm_session_output(const ig_lm_session *s, int64_t *ret_n)
{
    *ret_n = s->n_tokens - s->n_prompt;
    return s->token + s->n_prompt;
}
