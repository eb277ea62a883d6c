/* tune.h: choices of steps that no bit depends on, made by measuring. */
#ifndef CPU_TUNE_H
#define CPU_TUNE_H
#include "array/core/device.h"

/* Sets *ahead of all steps that have one. Runs them, by themselves, for the symbol values of sym:
 * what they write is undefined afterwards. Takes about 15 ms for each shape among them, and at
 * least one pass over all of them. */
IG_MUST_USE ig_status tune_steps(const step *steps, int n, const int64_t *sym);
#endif
