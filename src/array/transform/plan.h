/* plan.h: what compiling leaves for replays. */
#ifndef TRANSFORM_PLAN_H
#define TRANSFORM_PLAN_H
#include <stdatomic.h>
#include "array/core/buffer.h"
#include "array/core/device.h"
#include "base/buf.h"

#define PLAN_MAX_ARGS 4096               /* inputs, or outputs */
#define PLAN_TEXT_MAX ((size_t)16 << 20) /* bytes of ig_plan_format */

struct ig_plan {
    const device *dev;
    step *steps;    /* [n_steps], by phase; arguments in mem */
    int32_t *first; /* [n_phases + 1] */
    int32_t n_steps, n_phases;
    step_mem *mem;
    buffer *arena, *in_mem; /* intermediate values; the inputs, one after the other */
    char **input;           /* [n_inputs] into in_mem */
    const char **output;    /* [n_outputs] into arena, a constant or a state */
    int n_inputs, n_outputs;
    ig_array *constants; /* held: values that steps and outputs read in place */
    size_t n_constants;
    int n_symbols;
    char *symbol_name[IG_MAX_SYMBOLS]; /* owned */
    int64_t capacity[IG_MAX_SYMBOLS];
    int64_t sym[1 + IG_MAX_SYMBOLS]; /* of the replay in progress: what run_ctx.sym points to */
    buf text;                        /* one line a step */
    ig_plan_stats stats;
    bool timing;
    atomic_bool busy; /* a replay is in progress */
};
#endif
