/* plan.c: the step of a model as one plan: every mix of prompt chunks and single tokens, of any
 * sessions. */
#include "base/clock.h"
#include "ingot/fast.h"
#include "lm/lm.h"

static ig_status trace_step(void *user, const ig_array *in, int n_in, ig_array *ret_out, int n_out)
{
    ig_lm *lm = user;
    step_in step = {in[IN_TOKENS], in[IN_POSITIONS], in[IN_SEQ],
                    in[IN_SLOTS],  in[IN_OUT_ROWS],  in[IN_PAGES]};
    (void)n_in, (void)n_out;
    ig_array logits =
        lm->family->forward(lm->model, &lm->config, &lm->arith, &step, lm->rope, lm->kv);
    ret_out[OUT_LOGITS] = logits;
    ret_out[OUT_ARGMAX] = ig_argmax(logits, -1, false);
    return ig_is_empty(logits) ? ig_error_code() : IG_OK;
}

void lm_touched(ig_lm *lm, int64_t n_bytes)
{
    lm->n_touched += n_bytes;
    if (lm->options.progress)
        lm->options.progress(lm->options.progress_user, lm->n_touched, lm->n_to_touch);
}

/* The pages of all layers, zeroed: most of a server's memory, hence not taken by opening. What an
 * earlier failure left is kept. */
static ig_status touch_pages(ig_lm *lm)
{
    int64_t page_bytes =
        ig_page_bytes(lm->config.kv_heads, lm->config.head_dim, lm->options.kv_type);
    const int64_t dims[2] = {kvpool_n_pages(lm->pool), page_bytes};
    for (int64_t i = 0; i < lm->config.layers; i++) {
        if (lm->kv[i]) continue;
        TRY(ig_state_new(IG_U8, dims, 2, &lm->kv[i]));
        lm_touched(lm, dims[0] * dims[1]);
    }
    return IG_OK;
}

static ig_status compile(ig_lm *lm)
{
    const ig_symbol symbols[N_SYMS] = {
        [SYM_TOKENS] = {"n_tokens", lm->options.max_tokens},
        [SYM_SEQS] = {"n_seqs", lm->options.max_sessions},
        [SYM_OUT] = {"n_out", lm->options.max_outputs},
    };
    const ig_input inputs[N_INPUTS] = {
        [IN_TOKENS] = {"tokens", IG_I32, 1, {0}, SYM_TOKENS},
        [IN_POSITIONS] = {"positions", IG_I32, 1, {0}, SYM_TOKENS},
        [IN_SEQ] = {"seq", IG_I32, 1, {0}, SYM_TOKENS},
        [IN_SLOTS] = {"slots", IG_I32, 1, {0}, SYM_TOKENS},
        [IN_OUT_ROWS] = {"out_rows", IG_I32, 1, {0}, SYM_OUT},
        [IN_PAGES] = {"pages", IG_I32, 2, {0, lm->max_pages}, SYM_SEQS},
    };
    const ig_plan_spec spec = {.symbols = symbols,
                               .n_symbols = N_SYMS,
                               .inputs = inputs,
                               .n_inputs = N_INPUTS,
                               .n_outputs = N_OUTPUTS};
    return ig_compile(trace_step, lm, &spec, &lm->plan);
}

ig_status lm_plan(ig_lm *lm)
{
    ig_plan_stats stats;
    if (lm->plan) return IG_OK;
    int64_t begin = clock_mono_us();
    TRY(touch_pages(lm));
    int64_t touched = clock_mono_us();
    TRY(compile(lm));
    ig_plan_get_stats(lm->plan, &stats);
    lm->times.touch_us += touched - begin + stats.touch_us;
    lm->times.plan_us = clock_mono_us() - touched - stats.touch_us;
    lm->n_plans++;
    ig_plan_set_timing(lm->plan, lm->timing);
    return IG_OK;
}
