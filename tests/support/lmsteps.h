/* lmsteps.h: many steps of a model whose batch changes at every step, and what they cost. */
#ifndef SUPPORT_LMSTEPS_H
#define SUPPORT_LMSTEPS_H
#include "ingot/lm.h"

/* n_steps steps of a warm model at two threads: at each one of 1 to 8 streams joins or leaves, and
 * each feeds a chunk of 1 to 64 tokens. No step may make a node, an allocation or a plan; fails the
 * test otherwise. Prints what a step costs: of 100 steps each, those where the plan's own share was
 * least (machines are shared). */
void lmsteps_run(ig_lm *lm, int n_steps);
#endif
