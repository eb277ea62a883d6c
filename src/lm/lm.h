/* lm.h (internal): the loaded model and its sessions.
 *
 * Ownership: an ig_lm owns everything below it; sessions borrow it and hold pages of its pool.
 * Locks: none; text parts are immutable after opening, the rest belongs to the engine thread. */
#ifndef LM_LM_H
#define LM_LM_H
#include "ingot/lm.h"
#include "lm/detokenise.h"
#include "lm/kvpool.h"
#include "lm/model.h"
#include "lm/sampler.h"
#include "lm/tokenizer.h"

struct template;

struct ig_lm {
    lm_config config;
    ig_lm_options options; /* defaults filled in */
    ig_weights *weights;
    const family *family;          /* static */
    void *model;                   /* family's */
    int64_t n_parameters, n_bytes; /* bound */
    tokenizer *tokenizer;
    struct template *chat; /* NULL when the model has no chat template */
    char *bos, *eos;       /* owned; texts for the template, "" when absent */
    arithmetic arith;
    char kset[48]; /* numeric contract with arithmetic */
    /* engine part */
    ig_array rope; /* slot: [context, 2, head_dim / 2] */
    ig_state **kv; /* owned: [layers]; each NULL until warm or the first step */
    kvpool *pool;
    int64_t max_pages; /* of one session */
    ig_plan *plan;     /* NULL until warm or the first step */
    int64_t n_plans;
    ig_lm_times times;
    int64_t n_touched, n_to_touch; /* bytes, for the caller's progress; the arena not counted */
    void *scratch;                 /* sampler's */
    ig_lm_step_stats stats;
    bool timing;
};

struct ig_lm_session {
    ig_lm *lm;
    int32_t *token;             /* owned: [n_prompt + max_new] */
    int64_t n_prompt, n_tokens; /* known tokens: prompt and output */
    int64_t n_fed;              /* tokens whose K and V are in the cache */
    int64_t n_cached;           /* of them taken from shared pages */
    int64_t max_new;
    bool all_logits;
    ig_lm_finish finish;
    sampler sampler;
    int32_t *page; /* owned: [n_pages] */
    int32_t n_pages;
    kvpool_key *key; /* owned: of the prompt's whole pages */
    int32_t n_keys, n_published;
    kvpool_key root; /* digest of the tenant: where key chains start */
};

/* plan.c: builds the plan of the step; inputs in the order of step_in. */
enum { IN_TOKENS, IN_POSITIONS, IN_SEQ, IN_SLOTS, IN_OUT_ROWS, IN_PAGES, N_INPUTS };
enum { OUT_LOGITS, OUT_ARGMAX, N_OUTPUTS };
IG_MUST_USE ig_status lm_plan(ig_lm *lm);
/* n_bytes more are touched: tells the caller. */
void lm_touched(ig_lm *lm, int64_t n_bytes);
#endif
