/* trace.c: the graph of a function being compiled (see trace.h). Owns which trace is open on
 * each thread. */
#include "array/core/trace.h"
#include "array/core/grow.h"
#include "array/core/scope.h"
#include "array/core/view.h"

static _Thread_local trace *current;

/* What nodes belong to that somebody holds when their trace is gone: open on no thread. */
static const trace over;

trace *trace_current(void) { return current; }

ig_status trace_begin(const ig_symbol *symbols, int n_symbols, trace **ret_trace)
{
    if (current) return ig_fail(IG_EINVAL, "a function is already being traced on this thread");
    trace *t = mem_calloc(1, sizeof *t);
    if (!t) return IG_ENOMEM;
    t->symbols = symbols;
    t->n_symbols = n_symbols;
    current = t;
    *ret_trace = t;
    return IG_OK;
}

void trace_end(trace *t)
{
    if (current == t) current = NULL;
}

void trace_free(trace *t)
{
    if (!t) return;
    trace_end(t);
    for (size_t i = 0; i < t->n_states; i++) node_drop(t->state[i].now);
    while (t->n_nodes > 0) {
        ig_node *n = t->node[--t->n_nodes];
        n->trace = (trace *)(uintptr_t)&over;
        node_drop(n);
    }
    mem_free(t->state);
    mem_free(t->node);
    mem_free(t);
}

static trace_state *find_state(trace *t, const ig_state *state)
{
    for (size_t i = 0; i < t->n_states; i++)
        if (t->state[i].state == state) return &t->state[i];
    return NULL;
}

ig_status trace_check(trace *t, const op_call *c)
{
    const char *op = op_table[c->op].name;
    for (int k = 0; k < c->n_in; k++) {
        const ig_node *n = c->in[k].node;
        if (!n || !n->state) continue;
        const trace_state *s = find_state(t, n->state);
        if (!s || s->now->version != n->version)
            return ig_fail(
                IG_EINVAL,
                "%s: argument %s is a version of a state that %s has overwritten: use the "
                "array that the write returned",
                op, op_in_name(c->op, k), s ? op_table[s->now->op].name : "another trace");
        if (k == 0 && op_writes(c->op) && view_is(n->op))
            return ig_fail(IG_EINVAL,
                           "%s: argument %s is a view of a state: write to the state itself", op,
                           op_in_name(c->op, k));
    }
    return IG_OK;
}

ig_status trace_add(trace *t, ig_node *n)
{
    TRY(grow(&t->node, t->n_nodes, &t->cap_nodes, TRACE_MAX_NODES, sizeof *t->node,
             "operations in a trace"));
    n->trace = t;
    t->node[t->n_nodes++] = node_hold(n);
    if (!n->state || !op_writes((op_code)n->op)) return IG_OK;
    trace_state *s = find_state(t, n->state); /* trace_check has seen it */
    node_drop(s->now);
    s->now = node_hold(n);
    return IG_OK;
}

/* A leaf of the trace: in the trace's list and in the innermost scope. */
static ig_status add_leaf(trace *t, const op_call *c, const spec *s, ig_state *state,
                          ig_node **ret_node)
{
    ig_node *n = NULL;
    TRY(node_new(c, s, 1, &n));
    n->state = state;
    ig_status st = trace_add(t, n);
    if (st != IG_OK) {
        node_drop(n);
        return st;
    }
    TRY(scope_add(n));
    *ret_node = n;
    return IG_OK;
}

ig_array trace_input(trace *t, const spec *s, int64_t index)
{
    op_call c = {.op = OP_input};
    call_int(&c, index);
    ig_node *n = NULL;
    return add_leaf(t, &c, s, NULL, &n) == IG_OK ? (ig_array){n, 0} : (ig_array){0};
}

ig_array trace_state_array(trace *t, ig_state *state, const spec *s)
{
    trace_state *known = find_state(t, state);
    if (known) {
        ig_array a = {known->now, 0};
        return scope_add(node_hold(a.node)) == IG_OK ? a : (ig_array){0};
    }
    op_call c = {.op = OP_state};
    ig_node *n = NULL;
    if (grow(&t->state, t->n_states, &t->cap_states, TRACE_MAX_STATES, sizeof *t->state,
             "states in a trace") != IG_OK ||
        add_leaf(t, &c, s, state, &n) != IG_OK)
        return (ig_array){0};
    t->state[t->n_states++] = (trace_state){state, node_hold(n)};
    return (ig_array){n, 0};
}
