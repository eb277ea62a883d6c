/* 6_prefill.c: prompt tokens, many in one step.
 * takes    running requests whose prompt is not in the KV cache yet
 * gives    rows of the next step; with the last of them the first token
 * refuses  nothing
 * touches  sessions (engine thread). Limit: arithmetic: two operations per weight and token. */
#include "base/clock.h"
#include "server/stage.h"

static bool in_prompt(const choice *c)
{
    int64_t n_out;
    if (!c->session) return false;
    ig_lm_session_output(c->session, &n_out);
    return n_out == 0 && ig_lm_session_pending(c->session) > 0;
}

int32_t stage_prefill_rows(server *sv, request *r, int32_t budget, ig_lm_feed *feeds,
                           step_row *rows, int32_t n, int32_t max)
{
    (void)sv;
    for (int i = 0; i < r->api.n && n < max && budget > 0; i++) {
        choice *c = &r->choice[i];
        if (!in_prompt(c)) continue;
        int64_t pending = ig_lm_session_pending(c->session);
        int32_t take = pending < budget ? (int32_t)pending : budget;
        feeds[n] = (ig_lm_feed){c->session, take};
        rows[n++] = (step_row){r, i, true};
        budget -= take;
    }
    return n;
}

void stage_prefill_took(server *sv, request *r, int32_t n_tokens, bool first_token, int64_t us)
{
    stage_counters *c = &sv->stage[STAGE_PREFILL];
    stage_count(&c->units, n_tokens);
    stage_count(&c->us, us);
    if (first_token && !r->t_first) {
        r->t_first = clock_mono_us();
        stage_count(&c->n_out, 1);
    }
}
