/* eval.h: evaluation inside the library. */
#ifndef ARRAY_EVAL_H
#define ARRAY_EVAL_H
#include "array/core/device.h"

/* Evaluates the n arrays (as ig_eval). Nodes of a trace are refused. */
IG_MUST_USE ig_status eval_arrays(const ig_array *a, int n);
/* The operand of an evaluated array. */
void eval_operand(ig_array a, operand *ret_operand);
/* Is the value there? Once true, layouts do not change. */
static inline bool node_is_done(const ig_node *n)
{
    return __atomic_load_n(&n->done, __ATOMIC_ACQUIRE);
}
/* The one evaluation lock of the process: for what changes evaluated nodes (array.c). */
void eval_lock(void);
void eval_unlock(void);
#endif
