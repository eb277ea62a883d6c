/* sampler.h: from a row of logits to a token, with the same bits on every machine.
 *
 * Order: logit bias; repetition penalty (tokens of prompt and output: positive logits divided,
 * others multiplied), then presence and frequency penalties (tokens of the output: minus presence
 * + frequency * count); temperature (a true division); candidates sorted by (logit descending, id
 * ascending); min-p (exp(l - l0) >= min_p), top-k, top-p (shortest prefix whose f32 running sum
 * reaches top_p of the whole); inverse CDF. All sums are f32 in candidate order. u =
 * (Threefry-2x32(key = seed high, low; counter = choice, output index)[0] >> 8) * 2^-24.
 * Temperature 0 takes the lowest id of the largest logit. Log-probabilities are of the raw logits:
 * (l - max) - log(sum of exp(l - max)), the sum in the order of docs/numerics.md. The caller's
 * floating-point mode does not show. */
#ifndef LM_SAMPLER_H
#define LM_SAMPLER_H
#include "base/mem.h"
#include "ingot/lm.h"

typedef struct sampler {
    ig_lm_sampling p; /* p.bias owned */
    int64_t vocab;
    uint16_t
        *n_out; /* owned: times a token stands in the output, saturating; NULL without penalties */
    uint8_t *seen; /* owned: 1 where a token stands anywhere; NULL without repetition penalty */
} sampler;

/* Checks ranges and copies. IG_EINVAL names the parameter. */
IG_MUST_USE ig_status sampler_init(const ig_lm_sampling *p, int64_t vocab, sampler *ret_sampler);
void sampler_done(sampler *s);
/* A token of the prompt, or of the output, went by. */
void sampler_prompt(sampler *s, int32_t id);
void sampler_output(sampler *s, int32_t id);
/* True when the token is simply the argmax of the raw logits. */
bool sampler_is_plain(const sampler *s);

/* Memory that picking needs, shared by all samplers of a thread. */
size_t sampler_scratch_bytes(int64_t vocab);
/* Picks output number index. false: the row holds a NaN or an infinity. Allocates nothing. */
bool sampler_pick(const sampler *s, const float *logits, uint32_t index, void *scratch,
                  int32_t *ret_id);
/* Log-probability of id, and the p.n_logprobs most likely (highest first, lower id first among
 * equals). */
void sampler_logprobs(const sampler *s, const float *logits, int32_t id, float *ret_logprob,
                      ig_lm_logprob *ret_top, int32_t *ret_n);
bool sampler_finite(const float *logits, int64_t n);
#endif
