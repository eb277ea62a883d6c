/* node.c: graph nodes: making them (one allocation each), holding and releasing them.
 *
 * Release is iterative: a node whose last reference goes is chained to a list, and the list
 * drops its inputs in turn, so a chain of any length is released in constant stack. */
#include "array/core/node.h"
#include <string.h>
#include "base/mem.h"
#include "array/core/buffer.h"
#include "array/core/scope.h"
#include "array/core/trace.h"
#include "array/core/view.h"
#include "base/status.h"

/* --- calls --- */

void call_in(op_call *c, ig_array a)
{
    if (c->n_in == IG_MAX_INPUTS)
        c->error = "more inputs than an operation can take (64)";
    else
        c->in[c->n_in++] = a;
}

void call_arrays(op_call *c, const ig_array *xs, int n_xs)
{
    if (n_xs < 1 || !xs) c->error = "an empty list of arrays";
    for (int i = 0; i < n_xs && !c->error; i++) call_in(c, xs[i]);
}

void call_int(op_call *c, int64_t v)
{
    if (c->n_i == CALL_MAX_INTS)
        c->error = "too many integer arguments";
    else
        c->i[c->n_i++] = v;
}

void call_num(op_call *c, double v)
{
    if (c->n_f == (int)N_ELEM(c->f))
        c->error = "too many number arguments";
    else
        c->f[c->n_f++] = v;
}

static bool list_fits(op_call *c, const void *p, int n)
{
    if (n < 0 || (n > 0 && !p)) c->error = "a list of dims or axes without values";
    if (n > IG_MAX_NDIM) c->error = "a list of dims or axes longer than 16";
    return !c->error;
}

void call_dims(op_call *c, const int64_t *d, int n_d)
{
    if (!list_fits(c, d, n_d)) return;
    call_int(c, n_d);
    for (int i = 0; i < n_d; i++) call_int(c, d[i]);
}

void call_axes(op_call *c, const int *a, int n_a)
{
    if (!list_fits(c, a, n_a)) return;
    call_int(c, n_a);
    for (int i = 0; i < n_a; i++) call_int(c, a[i]);
}

/* --- nodes --- */

static size_t node_bytes(const op_call *c, int n_out)
{
    return sizeof(ig_node) + (size_t)c->n_in * sizeof(ig_array) + (size_t)c->n_i * sizeof(int64_t) +
           (size_t)c->n_f * sizeof(double) + (size_t)n_out * (sizeof(spec) + sizeof(layout));
}
_Static_assert(sizeof(ig_node) % 8 == 0 && sizeof(spec) % 8 == 0 && sizeof(layout) % 8 == 0,
               "parts of a node's allocation must stay aligned");

ig_status node_new(const op_call *c, const spec *out, int n_out, ig_node **ret_node)
{
    ig_node *n = mem_calloc(1, node_bytes(c, n_out));
    if (!n) return IG_ENOMEM;
    atomic_init(&n->refs, 1);
    n->op = (uint16_t)c->op;
    n->n_out = (uint8_t)n_out;
    n->n_in = c->n_in;
    n->n_i = c->n_i;
    n->n_f = c->n_f;
    n->in = (ig_array *)(n + 1);
    n->i = (int64_t *)(n->in + n->n_in);
    n->f = (double *)(n->i + n->n_i);
    n->out = (spec *)(n->f + n->n_f);
    n->lay = (layout *)(n->out + n_out);
    for (int k = 0; k < n->n_in; k++) {
        n->in[k] = c->in[k];
        if (n->in[k].node) node_hold(n->in[k].node);
    }
    memcpy(n->i, c->i, (size_t)n->n_i * sizeof *n->i);
    memcpy(n->f, c->f, (size_t)n->n_f * sizeof *n->f);
    memcpy(n->out, out, (size_t)n_out * sizeof *out);
    memory_count_node(1, 1);
    *ret_node = n;
    return IG_OK;
}

ig_node *node_hold(ig_node *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

/* Drops one reference; a node that dies goes to the front of the list. */
static ig_node *unref(ig_node *n, ig_node *dying)
{
    if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return dying;
    n->link = dying;
    return n;
}

static void free_list(ig_node *dying)
{
    while (dying) {
        ig_node *n = dying;
        dying = n->link;
        for (int k = 0; k < n->n_in; k++) dying = unref(n->in[k].node, dying);
        for (int k = 0; k < n->n_out; k++) buffer_drop(n->lay[k].buf);
        for (int k = 0; k < n->n_out; k++) buffer_drop(n->lay[k].flat);
        mem_free(n);
        memory_count_node(0, -1);
    }
}

void node_drop(ig_node *n) { free_list(unref(n, NULL)); }

void node_drop_inputs(ig_node *n)
{
    ig_node *dying = NULL;
    for (int k = 0; k < n->n_in; k++) dying = unref(n->in[k].node, dying);
    n->n_in = 0;
    free_list(dying);
}

/* --- applying an operation --- */

/* Does an empty input end the call? An optional input may be empty, unless something failed
 * before in this scope: then it is probably empty because of that. */
static bool passes_empty(const op_call *c)
{
    const char *kinds = op_table[c->op].in_kinds;
    const status_record *r = status_top();
    bool failed = r->code != IG_OK && !r->handed_up;
    int last = (int)strlen(kinds) - 1;
    for (int k = 0; k < c->n_in; k++) {
        bool optional = kinds[k < last ? k : last] == 'o';
        if (ig_is_empty(c->in[k]) && (!optional || failed)) return true;
    }
    return false;
}

/* The trace that the inputs belong to, if any: it must be the one open on this thread. */
static ig_status find_trace(const op_call *c, trace **ret_trace)
{
    trace *found = NULL;
    for (int k = 0; k < c->n_in; k++)
        if (c->in[k].node && c->in[k].node->trace) found = c->in[k].node->trace;
    if (found && found != trace_current())
        return ig_fail(IG_EINVAL, "%s: an input belongs to a trace that is not open on this thread",
                       op_table[c->op].name);
    *ret_trace = found;
    return found ? trace_check(found, c) : IG_OK;
}

/* Writes of a state and views of it carry the state on (see trace.h). */
static void carry_state(ig_node *n)
{
    const ig_node *from = n->n_in ? n->in[0].node : NULL;
    if (!from || !from->state) return;
    bool writes = op_writes((op_code)n->op);
    if (!writes && !view_is(n->op)) return;
    n->state = from->state;
    n->version = from->version + writes;
}

bool op_writes(op_code op)
{
    return op == OP_put_rows || op == OP_slice_update || op == OP_paged_write;
}

static ig_status apply(op_call *c, ig_node **ret_node)
{
    const op_info *info = &op_table[c->op];
    if (c->error) return ig_fail(IG_EINVAL, "%s: %s", info->name, c->error);
    if (!scope_is_open())
        return ig_fail(IG_EINVAL, "%s: no scope is open on this thread (ig_scope_open)",
                       info->name);
    trace *t = NULL;
    spec out[NODE_MAX_OUT];
    int n_out = 1;
    TRY(find_trace(c, &t));
    TRY(info->shape(c, out, &n_out));
    ig_node *n = NULL;
    TRY(node_new(c, out, n_out, &n));
    carry_state(n);
    ig_status st = t ? trace_add(t, n) : IG_OK;
    if (st != IG_OK) {
        node_drop(n);
        return st;
    }
    TRY(scope_add(n));
    *ret_node = n;
    return IG_OK;
}

ig_array node_apply(op_call *c)
{
    ig_node *n = NULL;
    if (!c->error && passes_empty(c)) return (ig_array){0};
    if (apply(c, &n) != IG_OK) return (ig_array){0};
    return (ig_array){n, 0};
}
