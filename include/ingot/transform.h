/* transform.h: plans (compiled functions), row symbols and state.
 *
 * ig_compile calls a graph-building function once and lowers what it built to a plan: phases of kernels over
 * one arena. A replay creates no node, allocates nothing and takes no lock.
 * A first dimension may be a row symbol with a capacity; a replay takes its actual value and never pads.
 * ig_state is memory that plans write in place; a write consumes a version and returns the next. */
#ifndef INGOT_TRANSFORM_H
#define INGOT_TRANSFORM_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif

#define IG_MAX_SYMBOLS 8

typedef struct ig_state ig_state;
typedef struct ig_plan ig_plan;

/* A zeroed state of the given shape (huge pages where the system has them). */
IG_API IG_MUST_USE ig_status ig_state_new(ig_dtype dtype, const int64_t *dims, int ndim, ig_state **ret_state);
IG_API void ig_state_free(ig_state *s);           /* after every plan that uses it */
IG_API void *ig_state_data(ig_state *s);
IG_API int64_t ig_state_nbytes(const ig_state *s);
/* The current version as an array: inside a trace the value that later reads and one write depend on. Outside a trace:
 * an array that shares the memory. */
IG_API ig_array ig_state_array(ig_state *s);

typedef struct ig_symbol { const char *name; int64_t capacity; } ig_symbol;
typedef struct ig_input {
    const char *name;
    ig_dtype dtype;
    int ndim;
    int64_t dims[IG_MAX_NDIM];   /* dims[0] is ignored where symbol >= 0 */
    int symbol;                  /* index into symbols for dims[0], or -1 */
} ig_input;

/* Builds the graph: inputs in the order of the spec, outputs to ret_outputs. Runs inside a scope of its own. */
typedef ig_status (*ig_trace_fn)(void *user, const ig_array *inputs, int n_inputs, ig_array *ret_outputs, int n_outputs);

typedef struct ig_plan_spec {
    const ig_symbol *symbols; int n_symbols;     /* <= IG_MAX_SYMBOLS */
    const ig_input *inputs; int n_inputs;
    int n_outputs;
    int no_fusion;                               /* 1: every operation its own step (tests compare bits) */
} ig_plan_spec;

IG_API IG_MUST_USE ig_status ig_compile(ig_trace_fn fn, void *user, const ig_plan_spec *spec, ig_plan **ret_plan);
IG_API void ig_plan_free(ig_plan *p);
/* Buffer of input i, sized for the capacity; write rows [0, actual) before a replay. Owned by the plan. */
IG_API void *ig_plan_input(ig_plan *p, int i);
/* Row-major output i: valid until the next replay. */
IG_API const void *ig_plan_output(ig_plan *p, int i);
/* Runs the plan for the actual symbol values (0 <= value <= capacity, else IG_ELIMIT). One replay at a time per plan; several
 * plans may be replayed by several threads (they share the pool, one after another). */
IG_API IG_MUST_USE ig_status ig_plan_replay(ig_plan *p, const int64_t *values, int n_values);

typedef struct ig_plan_stats {
    int64_t n_steps, n_phases, n_replays;
    int64_t arena_bytes;
    int64_t trace_us, compile_us;
    int64_t kernel_ns;          /* inside kernels, all workers, summed over replays (when timing is on) */
    int64_t wait_ns;            /* at phase ends, all workers */
    int64_t wall_ns;            /* of replays */
    int64_t weight_bytes;       /* constant bytes read by one replay of one row */
} ig_plan_stats;
IG_API void ig_plan_get_stats(const ig_plan *p, ig_plan_stats *ret_stats);
IG_API void ig_plan_set_timing(ig_plan *p, bool on);
/* Text of the plan (one line a step: phase, operation, shapes, kernel), truncated to cap. */
IG_API size_t ig_plan_format(const ig_plan *p, char *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
