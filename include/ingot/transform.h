/* transform.h: plans (compiled functions), row symbols and state.
 *
 * ig_compile calls a graph-building function once and lowers what it built to a plan: phases of
 * kernels over one arena. A replay creates no node, allocates nothing and takes no lock (unless
 * another thread is replaying, or a worker sleeps for lack of work). Its values are those of
 * eager evaluation, bit for bit.
 *
 * A first dimension may be a row symbol with a capacity; a replay takes its actual value, which
 * may be 0, and never pads. What depends on no input is computed once, when the plan is made.
 *
 * ig_state is memory that plans write in place. In a trace its array is a version: a write
 * (ig_put_rows, ig_slice_update, ig_paged_write) consumes one version and returns the next;
 * reading a consumed one is an error. Reads and writes happen in the order of the trace. Writes
 * are kept even if no output depends on them. */
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
IG_API IG_MUST_USE ig_status ig_state_new(ig_dtype dtype, const int64_t *dims, int ndim,
                                          ig_state **ret_state);
IG_API void ig_state_free(ig_state *s); /* after every plan that uses it; NULL is fine */
IG_API void *ig_state_data(ig_state *s);
IG_API int64_t ig_state_nbytes(const ig_state *s);
/* The current version as an array: inside a trace the value that later reads and one write depend
 * on. Outside a trace: an array that shares the memory and keeps it alive. */
IG_API ig_array ig_state_array(ig_state *s);

/* name is copied; capacity >= 1. */
typedef struct ig_symbol {
    const char *name;
    int64_t capacity;
} ig_symbol;

typedef struct ig_input {
    const char *name; /* for messages */
    ig_dtype dtype;
    int ndim;
    int64_t dims[IG_MAX_NDIM]; /* dims[0] is ignored where symbol >= 0 */
    int symbol;                /* index into symbols for dims[0], or -1 */
} ig_input;

/* Builds the graph: inputs in the order of the spec, outputs to ret_outputs. Runs inside a scope
 * of its own, on the thread that calls ig_compile. Must not evaluate what depends on inputs, nor
 * compile. */
typedef ig_status (*ig_trace_fn)(void *user, const ig_array *inputs, int n_inputs,
                                 ig_array *ret_outputs, int n_outputs);

typedef struct ig_plan_spec {
    const ig_symbol *symbols;
    int n_symbols; /* <= IG_MAX_SYMBOLS */
    const ig_input *inputs;
    int n_inputs;
    int n_outputs;
    int no_fusion; /* 1: every operation its own step (tests compare bits) */
} ig_plan_spec;

/* The plan holds the constants it reads and keeps the kernels chosen now; it borrows states. */
IG_API IG_MUST_USE ig_status ig_compile(ig_trace_fn fn, void *user, const ig_plan_spec *spec,
                                        ig_plan **ret_plan);
IG_API void ig_plan_free(ig_plan *p); /* not while it is being replayed; NULL is fine */
/* Buffer of input i, sized for the capacity; write rows [0, actual) before a replay. Owned by the
 * plan, which never writes it. NULL when there is no such input. */
IG_API void *ig_plan_input(ig_plan *p, int i);
/* Row-major output i, with room for the capacity: valid until the next replay. An output that is a
 * version of a state is the state's own memory. NULL when there is no such output. */
IG_API const void *ig_plan_output(ig_plan *p, int i);
/* Runs the plan for the actual symbol values (0 <= value <= capacity, else IG_ELIMIT). One
 * replay at a time per plan (a second one gets IG_EINVAL); several plans may be replayed by
 * several threads: they share the workers, one after another. */
IG_API IG_MUST_USE ig_status ig_plan_replay(ig_plan *p, const int64_t *values, int n_values);

/* Chooses the prefetch distance of steps that stream constant weights, shape by shape, by running
 * these steps for the given symbol values: few rows, as where reading weights takes the time. Takes
 * about 15 ms a shape. No bit of any replay depends on it; outputs are undefined until the next
 * replay, states are left alone. Errors as ig_plan_replay. */
IG_API IG_MUST_USE ig_status ig_plan_tune(ig_plan *p, const int64_t *values, int n_values);

typedef struct ig_plan_stats {
    int64_t n_steps, n_phases, n_replays;
    int64_t arena_bytes;
    int64_t trace_us, compile_us;
    int64_t touch_us;     /* of compile_us: zeroing the arena */
    int64_t kernel_ns;    /* inside kernels, all workers, summed over timed replays */
    int64_t wait_ns;      /* at phase ends, all workers, likewise */
    int64_t wall_ns;      /* of all replays */
    int64_t weight_bytes; /* constant bytes read by one replay of one row */
} ig_plan_stats;
IG_API void ig_plan_get_stats(const ig_plan *p, ig_plan_stats *ret_stats);
IG_API void ig_plan_set_timing(ig_plan *p, bool on);
/* Text of the plan (one line a step: phase, operations, shapes, kernel), NUL-terminated, truncated
 * to cap. Returns the bytes it wanted. */
IG_API size_t ig_plan_format(const ig_plan *p, char *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
