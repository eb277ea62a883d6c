/* trace.h: the graph of a function while ig_compile calls it.
 *
 * A trace is bound to the thread that began it; traces do not nest. Operations that read a traced
 * array belong to the trace; they have no bytes and cannot be evaluated. Operations on untraced
 * arrays stay ordinary nodes: the plan evaluates them once and takes them as constants.
 *
 * Order: `node` lists the operations as they were made. Each comes after its inputs and, since
 * reading or writing a consumed version of a state is refused when the operation is made, after
 * every write of the versions before the one it reads and before the write that consumes it. Any
 * run in this order is right. */
#ifndef ARRAY_TRACE_H
#define ARRAY_TRACE_H
#include "array/core/node.h"

#define TRACE_MAX_NODES ((size_t)1 << 20)
#define TRACE_MAX_STATES 4096

typedef struct trace_state {
    ig_state *state; /* borrowed */
    ig_node *now;    /* held: the current version; OP_state until something is written */
} trace_state;

typedef struct trace {
    const ig_symbol *symbols; /* borrowed: names in messages */
    int n_symbols;
    ig_node **node; /* held, in the order of making; leaves (input, state) too */
    size_t n_nodes, cap_nodes;
    trace_state *state; /* in the order of first use; what `now` writes is a root of the plan */
    size_t n_states, cap_states;
} trace;

/* Begins a trace on this thread. symbols must live until trace_free. IG_EINVAL if one is open. */
IG_MUST_USE ig_status trace_begin(const ig_symbol *symbols, int n_symbols, trace **ret_trace);
/* The thread's trace is over; its nodes stay until trace_free. */
void trace_end(trace *t);
void trace_free(trace *t); /* NULL is fine; ends it if it is still open */
AUTO_FN(trace_ptr, trace *, trace_free)
trace *trace_current(void); /* NULL outside a trace */

/* Leaves; they join the innermost scope. trace_input: node->i[0] is index. */
ig_array trace_input(trace *t, const spec *s, int64_t index);
/* The current version of a state (OP_state at its first use). */
ig_array trace_state_array(trace *t, ig_state *state, const spec *s);

/* For node_apply: checks the versions that a call reads, and adds the node to the trace. */
IG_MUST_USE ig_status trace_check(trace *t, const op_call *call);
IG_MUST_USE ig_status trace_add(trace *t, ig_node *n);
#endif
