/* compile.c: ig_compile: calls the function once, keeps what its outputs and states need, evaluates
 * what does not depend on inputs, and has the rest arranged into a plan. */
#include <string.h>
#include "array/core/eval.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include "array/transform/arrange.h"
#include "array/transform/touch.h"
#include "base/clock.h"
#include "ingot/ops.h"

#define ALIGN_INPUT 64

typedef struct compiler {
    const ig_plan_spec *spec;
    ig_plan *plan; /* under construction */
    trace *trace;
    ig_array *output; /* [n_outputs] held */
    program prog;
    size_t cap_constants;
} compiler;

/* --- the specification */

static ig_status check_counts(const ig_plan_spec *s)
{
    if (s->n_symbols < 0 || s->n_symbols > IG_MAX_SYMBOLS)
        return ig_fail(IG_ELIMIT, "ig_compile: %d symbols, at most %d", s->n_symbols,
                       IG_MAX_SYMBOLS);
    if (s->n_inputs < 0 || s->n_inputs > PLAN_MAX_ARGS)
        return ig_fail(IG_ELIMIT, "ig_compile: %d inputs, at most %d", s->n_inputs, PLAN_MAX_ARGS);
    if (s->n_outputs < 0 || s->n_outputs > PLAN_MAX_ARGS)
        return ig_fail(IG_ELIMIT, "ig_compile: %d outputs, at most %d", s->n_outputs,
                       PLAN_MAX_ARGS);
    if ((s->n_symbols && !s->symbols) || (s->n_inputs && !s->inputs))
        return ig_fail(IG_EINVAL, "ig_compile: %d symbols and %d inputs, a list is missing",
                       s->n_symbols, s->n_inputs);
    for (int i = 0; i < s->n_symbols; i++)
        if (!s->symbols[i].name || s->symbols[i].capacity < 1)
            return ig_fail(IG_EINVAL,
                           "ig_compile: symbol %d needs a name and a capacity of at least 1", i);
    return IG_OK;
}

static ig_status input_spec(const ig_plan_spec *p, int i, spec *ret_spec)
{
    const ig_input *in = &p->inputs[i];
    const char *name = in->name ? in->name : "";
    bool symbolic = in->symbol >= 0;
    if ((unsigned)in->dtype >= IG_N_DTYPES)
        return ig_fail(IG_EDTYPE, "ig_compile: input %d (%s): dtype %d does not exist", i, name,
                       (int)in->dtype);
    if (in->ndim < symbolic || in->ndim > IG_MAX_NDIM || in->symbol >= p->n_symbols)
        return ig_fail(
            IG_EINVAL,
            "ig_compile: input %d (%s): %d dimensions and symbol %d; there are %d symbols", i, name,
            in->ndim, in->symbol, p->n_symbols);
    spec s = {.dtype = in->dtype,
              .ndim = (int8_t)in->ndim,
              .sym = (int8_t)(symbolic ? 1 + in->symbol : 0)};
    for (int d = 0; d < in->ndim; d++) s.dim[d] = in->dims[d];
    if (symbolic) s.dim[0] = p->symbols[in->symbol].capacity;
    ig_status st = shape_check("ig_compile", &s);
    if (st != IG_OK) return ig_fail_context(st, "input %d (%s): ", i, name);
    *ret_spec = s;
    return IG_OK;
}

static ig_status take_symbols(compiler *c)
{
    ig_plan *p = c->plan;
    p->sym[0] = 1;
    for (int i = 0; i < c->spec->n_symbols; i++) {
        p->symbol_name[i] = mem_strdup(c->spec->symbols[i].name);
        if (!p->symbol_name[i]) return IG_ENOMEM;
        p->capacity[i] = c->spec->symbols[i].capacity;
        p->n_symbols = i + 1;
    }
    return IG_OK;
}

/* --- tracing */

/* What the caller reads must be row-major, its own (an input is written again before the output is
 * read last), and at its newest where it is a state. */
static ig_status take_output(compiler *c, ig_array a, int i)
{
    if (ig_is_empty(a)) return ig_fail(IG_EINVAL, "ig_compile: output %d is empty", i);
    const ig_node *n = a.node;
    bool plain_state = n->trace == c->trace && n->state && !view_is(n->op);
    if (plain_state) {
        for (size_t k = 0; k < c->trace->n_states; k++) {
            const trace_state *s = &c->trace->state[k];
            if (s->state == n->state && s->now->version != n->version)
                return ig_fail(
                    IG_EINVAL,
                    "ig_compile: output %d is a version of a state that was written over", i);
        }
    } else if (n->trace != c->trace || n->op == OP_input || view_is(n->op)) {
        a = ig_contiguous(a);
        if (ig_is_empty(a)) return ig_error_code() == IG_OK ? IG_EINVAL : ig_error_code();
    }
    ig_hold(&c->output[i], a);
    return IG_OK;
}

/* What failed in the function without being coped with shows when its scope is closed. */
static ig_status call_function(compiler *c, ig_trace_fn fn, void *user)
{
    const ig_plan_spec *s = c->spec;
    AUTO(mem_ptr) memory =
        mem_calloc((size_t)s->n_inputs + (size_t)s->n_outputs + 1, sizeof(ig_array));
    if (!memory) return IG_ENOMEM;
    ig_array *in = memory, *out = in + s->n_inputs;
    for (int i = 0; i < s->n_inputs; i++) {
        spec x;
        TRY(input_spec(s, i, &x));
        in[i] = trace_input(c->trace, &x, i);
        if (ig_is_empty(in[i])) return IG_ENOMEM;
    }
    ig_status st = fn(user, in, s->n_inputs, out, s->n_outputs);
    if (st != IG_OK)
        return ig_error_code() == IG_OK ? ig_fail(st, "ig_compile: the traced function failed")
                                        : st;
    for (int i = 0; i < s->n_outputs; i++) TRY(take_output(c, out[i], i));
    return IG_OK;
}

static ig_status trace_function(compiler *c, ig_trace_fn fn, void *user)
{
    ig_scope *scope = ig_scope_open();
    if (!scope) return IG_ENOMEM;
    ig_status st = trace_begin(c->spec->symbols, c->spec->n_symbols, &c->trace);
    if (st == IG_OK) {
        st = call_function(c, fn, user);
        trace_end(c->trace);
    }
    ig_status closed = ig_scope_close(scope);
    return closed != IG_OK ? closed : st;
}

/* --- what is needed */

static bool traced(const compiler *c, ig_array a) { return a.node && a.node->trace == c->trace; }

static bool is_leaf(const ig_node *n) { return n->op == OP_input || n->op == OP_state; }

static void mark_roots(const compiler *c, bool *live)
{
    const trace *t = c->trace;
    for (size_t i = 0; i < t->n_nodes; i++) t->node[i]->mark = (uint32_t)i;
    for (int i = 0; i < c->spec->n_outputs; i++)
        if (traced(c, c->output[i])) live[c->output[i].node->mark] = true;
    for (size_t i = 0; i < t->n_states; i++) live[t->state[i].now->mark] = true;
    for (size_t i = t->n_nodes; i-- > 0;)
        for (int j = 0; live[i] && j < t->node[i]->n_in; j++)
            if (traced(c, t->node[i]->in[j])) live[t->node[i]->in[j].node->mark] = true;
}

static ig_status find_live(compiler *c)
{
    const trace *t = c->trace;
    program *p = &c->prog;
    AUTO(mem_ptr) memory = mem_calloc(t->n_nodes, sizeof(bool));
    p->node = mem_calloc(t->n_nodes, sizeof(ig_node *));
    p->keep = mem_calloc(t->n_nodes, sizeof(bool));
    if (!memory || !p->node || !p->keep) return IG_ENOMEM;
    bool *live = memory;
    mark_roots(c, live);
    for (size_t i = 0; i < t->n_nodes; i++) {
        if (!live[i] || is_leaf(t->node[i])) continue;
        t->node[i]->mark = (uint32_t)p->n;
        p->node[p->n++] = t->node[i];
    }
    for (int i = 0; i < c->spec->n_outputs; i++)
        if (traced(c, c->output[i]) && !is_leaf(c->output[i].node))
            p->keep[c->output[i].node->mark] = true;
    return IG_OK;
}

static ig_status add_constant(compiler *c, ig_array a)
{
    ig_plan *p = c->plan;
    if (p->n_constants == c->cap_constants) {
        size_t cap = c->cap_constants ? 2 * c->cap_constants : 64;
        ig_array *grown = mem_realloc(p->constants, cap * sizeof *grown);
        if (!grown) return IG_ENOMEM;
        memset(grown + c->cap_constants, 0, (cap - c->cap_constants) * sizeof *grown);
        p->constants = grown;
        c->cap_constants = cap;
    }
    ig_hold(&p->constants[p->n_constants++], a);
    return IG_OK;
}

/* What the live operations read from outside the trace is evaluated once and held. */
static ig_status evaluate_constants(compiler *c)
{
    for (size_t i = 0; i < c->prog.n; i++) {
        const ig_node *n = c->prog.node[i];
        for (int j = 0; j < n->n_in; j++)
            if (n->in[j].node && !traced(c, n->in[j])) TRY(add_constant(c, n->in[j]));
    }
    for (int i = 0; i < c->spec->n_outputs; i++)
        if (!traced(c, c->output[i])) TRY(add_constant(c, c->output[i]));
    return eval_arrays(c->plan->constants, (int)c->plan->n_constants);
}

/* --- memory of inputs and outputs */

static ig_status make_inputs(compiler *c)
{
    ig_plan *p = c->plan;
    const ig_plan_spec *s = c->spec;
    AUTO(mem_ptr) memory = mem_calloc((size_t)s->n_inputs + 1, sizeof(size_t));
    p->input = mem_calloc((size_t)s->n_inputs + 1, sizeof *p->input);
    p->output = mem_calloc((size_t)s->n_outputs + 1, sizeof *p->output);
    if (!memory || !p->input || !p->output) return IG_ENOMEM;
    size_t *at = memory, total = 0;
    for (int i = 0; i < s->n_inputs; i++) {
        spec x;
        TRY(input_spec(s, i, &x));
        at[i] = total;
        size_t n = (size_t)shape_size(&x) * ig_dtype_size(x.dtype);
        if (!mem_add(total, n, &total) || !mem_add(total, ALIGN_INPUT - 1, &total))
            return ig_fail(IG_ELIMIT, "ig_compile: the inputs are larger than memory can be");
        total &= ~(size_t)(ALIGN_INPUT - 1);
    }
    TRY(touch_new(total, &p->in_mem));
    for (int i = 0; i < s->n_inputs; i++) p->input[i] = p->in_mem->ptr + at[i];
    p->n_inputs = s->n_inputs;
    p->n_outputs = s->n_outputs;
    return IG_OK;
}

static ig_status build(compiler *c, ig_trace_fn fn, void *user)
{
    int64_t start = clock_mono_us();
    TRY(check_counts(c->spec));
    TRY(take_symbols(c));
    c->output = mem_calloc((size_t)c->spec->n_outputs + 1, sizeof *c->output);
    if (!c->output) return IG_ENOMEM;
    TRY(make_inputs(c));
    TRY(trace_function(c, fn, user));
    int64_t traced_at = clock_mono_us();
    TRY(find_live(c));
    TRY(evaluate_constants(c));
    c->prog.trace = c->trace;
    c->prog.output = c->output;
    c->prog.fuse = !c->spec->no_fusion;
    TRY(step_mem_new(&c->plan->mem));
    TRY(arrange(&c->prog, c->plan));
    c->plan->stats.trace_us = traced_at - start;
    c->plan->stats.compile_us = clock_mono_us() - traced_at;
    return IG_OK;
}

ig_status ig_compile(ig_trace_fn fn, void *user, const ig_plan_spec *spec_in, ig_plan **ret_plan)
{
    if (!fn || !spec_in || !ret_plan)
        return ig_fail(IG_EINVAL, "ig_compile: function, specification and result are needed");
    compiler c = {.spec = spec_in, .plan = mem_calloc(1, sizeof(ig_plan))};
    if (!c.plan) return IG_ENOMEM;
    c.plan->dev = device_default();
    buf_init(&c.plan->text, PLAN_TEXT_MAX);
    ig_status st = build(&c, fn, user);
    for (int i = 0; c.output && i < spec_in->n_outputs; i++) ig_drop(&c.output[i]);
    mem_free(c.output);
    mem_free(c.prog.node);
    mem_free(c.prog.keep);
    trace_free(c.trace);
    if (st != IG_OK) {
        ig_plan_free(c.plan);
        return st;
    }
    memory_count_plan();
    *ret_plan = c.plan;
    return IG_OK;
}
