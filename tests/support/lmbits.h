/* lmbits.h: one request under many circumstances that must not show: threads, chunks, neighbours
 * who come, go and push prefixes out, shared prefixes, instruction sets. What it got is compared
 * with the goldens of the kset, tests/golden/bits-<kset>.txt: a line "case tokens logits" each,
 * SHA-256 of the int32 tokens and of the float32 words of their logits rows. */
#ifndef SUPPORT_LMBITS_H
#define SUPPORT_LMBITS_H
#include "ingot/lm.h"

/* What decides the bits. */
typedef struct bits_case {
    const char *name; /* of the golden line */
    ig_dtype kv;
    ig_lm_arithmetic arithmetic;
    bool sampled; /* every sampling parameter in use; else greedy */
    bool every;   /* the rows of all prompt positions, too */
    int64_t n_prompt, n_new;
} bits_case;

/* Opens model_dir for the case with the instruction set and runs the request in each way; each must
 * give the golden. few: only alone, in sevens, and in the crowd. */
void bits_run(const char *model_dir, const bits_case *c, const char *isa, bool few);
#endif
