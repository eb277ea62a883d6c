/* step.c: one replay for a mix of sessions: writes the small input arrays, replays, samples.
 * Creates no node, allocates nothing. */
#include <string.h>
#include "base/clock.h"
#include "ingot/fast.h"
#include "lm/lm.h"

/* What one feed adds to the step. */
typedef struct rows {
    int32_t n_tokens, n_out;
} rows;

static int32_t out_rows_of(const ig_lm_feed *f)
{
    const ig_lm_session *s = f->session;
    if (s->all_logits && s->n_fed < s->n_prompt) return f->n_tokens;
    return f->n_tokens == ig_lm_session_pending(s);
}

static ig_status check(const ig_lm *lm, const ig_lm_feed *feeds, int32_t n, rows *ret_total)
{
    rows total = {0, 0};
    if (n < 1 || n > lm->options.max_sessions)
        return ig_fail(IG_ELIMIT, "a step takes 1 to %d sessions, not %d", lm->options.max_sessions,
                       n);
    for (int32_t i = 0; i < n; i++) {
        if (feeds[i].session->lm != lm)
            return ig_fail(IG_EINVAL, "feed %d: the session belongs to another model", i);
        int64_t pending = ig_lm_session_pending(feeds[i].session);
        if (feeds[i].n_tokens < 1 || feeds[i].n_tokens > pending)
            return ig_fail(IG_EINVAL, "feed %d: %d tokens, the session has %lld pending", i,
                           feeds[i].n_tokens, (long long)pending);
        if (feeds[i].n_tokens > lm->options.max_tokens - total.n_tokens)
            return ig_fail(IG_ELIMIT, "a step takes at most %d tokens", lm->options.max_tokens);
        for (int32_t j = 0; j < i; j++)
            if (feeds[j].session == feeds[i].session)
                return ig_fail(IG_EINVAL, "feeds %d and %d are of one session", j, i);
        total.n_tokens += feeds[i].n_tokens;
        total.n_out += out_rows_of(&feeds[i]);
        if (total.n_out > lm->options.max_outputs)
            return ig_fail(IG_ELIMIT,
                           "a step gives logits for at most %d rows (option max_outputs)",
                           lm->options.max_outputs);
    }
    *ret_total = total;
    return IG_OK;
}

static void write_inputs(ig_lm *lm, const ig_lm_feed *feeds, int32_t n)
{
    int32_t *in[N_INPUTS], t = 0, o = 0;
    for (int i = 0; i < N_INPUTS; i++) in[i] = ig_plan_input(lm->plan, i);
    for (int32_t i = 0; i < n; i++) {
        const ig_lm_session *s = feeds[i].session;
        int32_t n_out = out_rows_of(&feeds[i]), end = t + feeds[i].n_tokens;
        for (int64_t p = s->n_fed; t < end; t++, p++) {
            in[IN_TOKENS][t] = s->token[p];
            in[IN_POSITIONS][t] = (int32_t)p;
            in[IN_SEQ][t] = i;
            in[IN_SLOTS][t] = s->page[p / IG_PAGE_POSITIONS] * IG_PAGE_POSITIONS +
                              (int32_t)(p % IG_PAGE_POSITIONS);
            if (end - t <= n_out) in[IN_OUT_ROWS][o++] = t;
        }
        memcpy(in[IN_PAGES] + (int64_t)i * lm->max_pages, s->page,
               (size_t)s->n_pages * sizeof *s->page);
    }
}

static void fail_session(ig_lm_session *s, ig_lm_result *r)
{
    r->token = -1;
    r->finish = s->finish = IG_LM_FAILED;
}

/* The session's last row gives its next token. */
static void sample(ig_lm *lm, ig_lm_session *s, const float *row, int32_t best, ig_lm_result *r)
{
    uint32_t index = (uint32_t)(s->n_tokens - s->n_prompt);
    if (sampler_is_plain(&s->sampler) && sampler_finite(row, lm->config.vocab)) {
        r->token = best;
    } else if (!sampler_pick(&s->sampler, row, index, lm->scratch, &r->token)) {
        fail_session(s, r);
        return;
    }
    if (s->sampler.p.n_logprobs)
        sampler_logprobs(&s->sampler, row, r->token, &r->logprob, r->top, &r->n_top);
    s->token[s->n_tokens++] = r->token;
    sampler_output(&s->sampler, r->token);
    if (config_is_stop(&lm->config, r->token) && !s->sampler.p.ignore_stop)
        s->finish = IG_LM_STOP;
    else if (s->n_tokens - s->n_prompt == s->max_new)
        s->finish = IG_LM_LENGTH;
    r->finish = s->finish;
}

static void publish_prompt(ig_lm_session *s)
{
    if (s->lm->options.no_prefix_cache) return;
    for (; s->n_published < s->n_keys &&
           (int64_t)(s->n_published + 1) * IG_PAGE_POSITIONS <= s->n_fed;
         s->n_published++)
        kvpool_publish(s->lm->pool, s->page[s->n_published], &s->key[s->n_published]);
}

static void read_outputs(ig_lm *lm, const ig_lm_feed *feeds, int32_t n, ig_lm_result *ret_results)
{
    const float *logits = ig_plan_output(lm->plan, OUT_LOGITS);
    const uint32_t *best = ig_plan_output(lm->plan, OUT_ARGMAX);
    int64_t o = 0;
    for (int32_t i = 0; i < n; i++) {
        ig_lm_session *s = feeds[i].session;
        ig_lm_result *r = &ret_results[i];
        *r = (ig_lm_result){.token = -1, .n_rows = out_rows_of(&feeds[i])};
        bool samples = feeds[i].n_tokens == ig_lm_session_pending(s);
        s->n_fed += feeds[i].n_tokens;
        if (r->n_rows) r->logits = logits + o * lm->config.vocab;
        o += r->n_rows;
        if (s->all_logits && !sampler_finite(r->logits, r->n_rows * lm->config.vocab))
            fail_session(s, r);
        else if (samples)
            sample(lm, s, logits + (o - 1) * lm->config.vocab, (int32_t)best[o - 1], r);
        if (s->finish != IG_LM_FAILED) publish_prompt(s);
    }
}

ig_status ig_lm_step(ig_lm *lm, const ig_lm_feed *feeds, int32_t n, ig_lm_result *ret_results)
{
    rows total = {0, 0};
    int64_t begin = clock_mono_ns();
    TRY(lm_plan(lm));
    TRY(check(lm, feeds, n, &total));
    write_inputs(lm, feeds, n);
    const int64_t values[N_SYMS] = {
        [SYM_TOKENS] = total.n_tokens, [SYM_SEQS] = n, [SYM_OUT] = total.n_out};
    TRY(ig_plan_replay(lm->plan, values, N_SYMS));
    read_outputs(lm, feeds, n, ret_results);
    lm->stats.n_steps++;
    lm->stats.n_tokens += total.n_tokens;
    lm->stats.n_outputs += total.n_out;
    lm->stats.wall_ns += clock_mono_ns() - begin;
    return IG_OK;
}

void ig_lm_get_step_stats(const ig_lm *lm, ig_lm_step_stats *ret_stats)
{
    ig_plan_stats p = {0};
    *ret_stats = lm->stats;
    if (!lm->plan) return;
    ig_plan_get_stats(lm->plan, &p);
    ret_stats->plan_ns = p.wall_ns;
    ret_stats->kernel_ns = p.kernel_ns;
    ret_stats->wait_ns = p.wait_ns;
}

void ig_lm_set_timing(ig_lm *lm, bool on)
{
    lm->timing = on;
    if (lm->plan) ig_plan_set_timing(lm->plan, on);
}

size_t ig_lm_format_plan(const ig_lm *lm, char *out, size_t cap)
{
    return lm->plan ? ig_plan_format(lm->plan, out, cap) : 0;
}
