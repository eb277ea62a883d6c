/* plan.c: the step of a model as one plan: every mix of prompt chunks and single tokens, of any
 * sessions. */
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

ig_status lm_plan(ig_lm *lm)
{
    if (lm->plan) return IG_OK;
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
    TRY(ig_compile(trace_step, lm, &spec, &lm->plan));
    lm->n_plans++;
    ig_plan_set_timing(lm->plan, lm->timing);
    return IG_OK;
}
