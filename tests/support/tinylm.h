/* tinylm.h: a Llama that a test writes itself: a few layers of random weights with every odd thing
 * that the real ones have: 4 and 8 bits, groups of 32 and 64, a 16-bit matrix, scales of three
 * types, biases, grouped heads, llama3 rotary scaling, widths that fill no vector. The same bytes
 * on every machine: weights are Threefry words. */
#ifndef SUPPORT_TINYLM_H
#define SUPPORT_TINYLM_H
#include "ingot/lm.h"

#define TINYLM_VOCAB 300
#define TINYLM_CONTEXT 512
#define TINYLM_EOS 2 /* the only stop token */
#define TINYLM_NAN 7 /* the token whose embedding is_nan makes NaN */

/* What is wrong with the model; zero: nothing. Names are of tensors. */
typedef struct tinylm_fault {
    const char *missing;   /* left out */
    const char *extra;     /* written besides */
    const char *reshaped;  /* one row too many */
    const char *retyped;   /* int32 instead of its type */
    bool is_nan;           /* the embedding of TINYLM_NAN is NaN */
    const char *config;    /* config.json's text */
    const char *tokenizer; /* tokenizer.json's text */
} tinylm_fault;

/* Writes the model's files into dir. fault may be NULL. A failure fails the test. */
void tinylm_write(const char *dir, const tinylm_fault *fault);
/* The text of config.json, for tests that change a word of it. Static. */
const char *tinylm_config(void);
/* A deterministic prompt: n ids that are no stop token and not TINYLM_NAN. */
void tinylm_prompt(uint32_t seed, int64_t vocab, int32_t *ids, int64_t n);
#endif
