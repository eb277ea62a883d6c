/* 7_decode.c: one token per sequence and step.
 * takes    running sessions that have sampled and not ended
 * gives    one row each in the next step
 * refuses  logits that are not finite: the session fails, others go on (the step reports it)
 * touches  sessions (engine thread). Limit: memory bandwidth: every step reads all weights once. */
#include "server/stage.h"

int32_t stage_decode_rows(server *sv, request *r, ig_lm_feed *feeds, step_row *rows, int32_t n,
                          int32_t max)
{
    (void)sv;
    for (int i = 0; i < r->api.n && n < max; i++) {
        choice *c = &r->choice[i];
        int64_t n_out;
        if (!c->session || !ig_lm_session_pending(c->session)) continue;
        ig_lm_session_output(c->session, &n_out);
        if (!n_out) continue;
        feeds[n] = (ig_lm_feed){c->session, 1};
        rows[n++] = (step_row){r, i, false};
    }
    return n;
}

void stage_decode_took(server *sv, int32_t n_tokens, int64_t us)
{
    stage_counters *c = &sv->stage[STAGE_DECODE];
    stage_count(&c->units, n_tokens);
    stage_count(&c->us, us);
    stage_count(&c->n_out, 1); /* steps that decoded */
}
