/* arrange.h: from the operations of a trace to steps: which phase each runs in, where its values
 * lie, and what it becomes on the device. */
#ifndef TRANSFORM_ARRANGE_H
#define TRANSFORM_ARRANGE_H
#include "array/core/trace.h"
#include "array/transform/plan.h"

/* What is compiled: live operations of a trace in order, node->mark of each its index. */
typedef struct program {
    trace *trace;
    ig_node **node; /* [n] no leaves; borrowed from the trace */
    bool *keep;     /* [n] an output of the plan */
    size_t n;
    const ig_array *output; /* [plan->n_outputs] */
    bool fuse;
} program;

/* Fills steps, phases, arena, outputs, texts and their counts of a plan whose inputs have memory
 * and whose constants have been evaluated. */
IG_MUST_USE ig_status arrange(const program *prog, ig_plan *plan);
#endif
