/* eval.c: evaluation (contract in core/eval.h): orders what is missing (core/order.c), groups it
 * (group.c), and runs group by group.
 *
 * One evaluation at a time in a process: the kernels share one pool of workers anyway, and a
 * graph that two threads share is then computed once. A node's value is published by its `done`
 * flag; after it the node's inputs are dropped, so that a buffer goes back as soon as its last
 * consumer has run. An output may take over the bytes of an input that dies with the group
 * (donation). */
#include "array/core/eval.h"
#include "array/core/buffer.h"
#include "array/core/order.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include "array/fuse/group.h"
#include "base/thread.h"

static lock eval_guard = {PTHREAD_MUTEX_INITIALIZER, RANK_EVAL};

void eval_lock(void) { lock_take(&eval_guard); }

void eval_unlock(void) { lock_drop(&eval_guard); }

void eval_operand(ig_array a, operand *ret_operand)
{
    const layout *l = node_layout(a);
    operand o = {.ptr = l->buf->ptr + l->offset, .s = *node_spec(a)};
    for (int i = 0; i < o.s.ndim; i++) o.stride[i] = l->stride[i];
    *ret_operand = o;
}

static void publish(ig_node *n)
{
    __atomic_store_n(&n->done, 1, __ATOMIC_RELEASE);
    node_drop_inputs(n);
}

/* --- donation --- */

/* How many references to each node below a group go when the group's root drops its inputs. */
typedef struct release {
    const ig_node *node;
    int n_refs;
} release;
#define MAX_RELEASES 160

static release *release_of(release *list, int *n, const ig_node *node)
{
    for (int i = 0; i < *n; i++)
        if (list[i].node == node) return &list[i];
    if (*n == MAX_RELEASES) return NULL;
    list[*n] = (release){.node = node};
    return &list[(*n)++];
}

static bool dies(const release *r)
{
    return r->n_refs == atomic_load_explicit(&r->node->refs, memory_order_acquire);
}

/* Plays the release of root's inputs through: the operations inside the group have no value and
 * go with it, unless somebody else holds them. Too large a group: fewer nodes are listed, fewer
 * donations found. */
static int releases(const ig_node *root, release *list)
{
    int n = 0;
    const ig_node *inside[MAX_RELEASES] = {root};
    for (int at = 0, n_inside = 1; at < n_inside; at++)
        for (int k = 0; k < inside[at]->n_in; k++) {
            const ig_node *in = inside[at]->in[k].node;
            release *r = in ? release_of(list, &n, in) : NULL;
            if (!r) continue;
            r->n_refs++;
            if (!node_is_done(in) && dies(r)) inside[n_inside++] = in;
        }
    return n;
}

/* May the bytes of input j be the bytes of output 0? */
static bool fits_output(const work *w, int j)
{
    const layout *l = node_layout(w->in[j]);
    const spec *in = node_spec(w->in[j]);
    return shape_nbytes(in) == shape_nbytes(&w->node->out[0]) && !l->buf->adopted &&
           atomic_load_explicit(&l->buf->refs, memory_order_acquire) == 1 &&
           view_is_contiguous(in, l->stride) && device_in_place(w, j);
}

/* The input whose buffer output 0 takes over, or -1. */
static int find_donor(const work *w)
{
    release list[MAX_RELEASES];
    int n = -1;
    for (int j = 0; j < w->n_in; j++) {
        if (ig_is_empty(w->in[j]) || !fits_output(w, j)) continue;
        if (n < 0) n = releases(w->node, list);
        for (int i = 0; i < n; i++)
            if (list[i].node == w->in[j].node && dies(&list[i])) return j;
    }
    return -1;
}

/* --- running one group --- */

typedef struct evaluation {
    const device *dev;
    step_mem *mem;
    int64_t sym[1 + IG_MAX_SYMBOLS]; /* outside plans there are no symbols */
} evaluation;

/* Gives every output of the group's root a buffer and a row-major layout. The node is not done
 * yet. */
static ig_status place_outputs(const work *w, ig_node *root)
{
    int donor = find_donor(w);
    for (int k = 0; k < root->n_out; k++) {
        layout *l = &root->lay[k];
        if (k == 0 && donor >= 0) {
            const layout *from = node_layout(w->in[donor]);
            l->buf = buffer_hold(from->buf);
            l->offset = from->offset;
        } else {
            TRY(buffer_new((size_t)shape_nbytes(&root->out[k]), &l->buf));
            l->offset = 0;
        }
        view_contiguous(&root->out[k], l->stride);
    }
    return IG_OK;
}

static ig_status lower_and_run(evaluation *e, const work *w)
{
    operand in[IG_MAX_INPUTS] = {0}, out[NODE_MAX_OUT];
    for (int k = 0; k < w->n_in; k++)
        if (!ig_is_empty(w->in[k])) eval_operand(w->in[k], &in[k]);
    for (int k = 0; k < w->node->n_out; k++)
        eval_operand((ig_array){(ig_node *)w->node, (uint32_t)k}, &out[k]);
    step s = {0};
    const int32_t first[2] = {0, 1};
    step_mem_reset(e->mem);
    TRY(e->dev->lower(w, in, out, e->mem, &s));
    return e->dev->run(&s, first, 1, e->sym, NULL);
}

static void forget_outputs(ig_node *n)
{
    for (int k = 0; k < n->n_out; k++) {
        buffer_drop(n->lay[k].buf);
        n->lay[k].buf = NULL;
    }
}

static ig_status run_work(evaluation *e, const work *w)
{
    ig_node *root = (ig_node *)w->node; /* evaluation is what may write to nodes */
    ig_status st = place_outputs(w, root);
    if (st != IG_OK) st = ig_fail_context(st, "%s: ", op_table[root->op].name);
    if (st == IG_OK) st = lower_and_run(e, w);
    if (st != IG_OK) {
        forget_outputs(root);
        return st;
    }
    publish(root);
    return IG_OK;
}

/* Lets the view share its input's buffer. False when strides cannot say it. */
static bool resolve_view(ig_node *n)
{
    const layout *from = node_layout(n->in[0]);
    operand in, out;
    eval_operand(n->in[0], &in);
    if (!view_layout(n, &in, &out)) return false;
    n->lay[0].buf = buffer_hold(from->buf);
    n->lay[0].offset = from->offset + (out.ptr - in.ptr);
    for (int i = 0; i < out.s.ndim; i++) n->lay[0].stride[i] = out.stride[i];
    publish(n);
    return true;
}

static ig_status run_group(evaluation *e, const work *w)
{
    if (w->kind == WORK_NODE && view_is(w->node->op) && resolve_view((ig_node *)w->node))
        return IG_OK;
    return run_work(e, w);
}

/* What the caller asked for must have bytes; what is only held elsewhere may stay inside a group
 * and be made again if asked for. */
static bool *mark_kept(const order *o, const ig_array *roots, int n)
{
    bool *keep = mem_calloc(o->n, sizeof *keep);
    for (int i = 0; keep && i < n; i++)
        if (!node_is_done(roots[i].node)) keep[roots[i].node->mark] = true;
    return keep;
}

static ig_status run_order(const order *o, const ig_array *roots, int n)
{
    AUTO(step_mem_ptr) mem = NULL;
    AUTO(group_ptr) groups = NULL;
    AUTO(mem_ptr) keep = mark_kept(o, roots, n);
    evaluation e = {.dev = device_default(), .sym = {1}};
    ew_program prog;
    work w;
    TRY(step_mem_new(&mem));
    e.mem = mem;
    if (!keep) return IG_ENOMEM;
    TRY(group_nodes(o->node, keep, o->n, true, &groups));
    for (size_t i = 0; i < group_count(groups); i++) {
        group_get(groups, i, &w, &prog);
        TRY(run_group(&e, &w));
    }
    return IG_OK;
}

/* --- entry --- */

static ig_status check_roots(const ig_array *a, int n, bool *ret_all_done)
{
    bool all_done = true;
    if (n < 0 || (n > 0 && !a)) return ig_fail(IG_EINVAL, "eval: %d arrays, none given", n);
    for (int i = 0; i < n; i++) {
        if (ig_is_empty(a[i])) {
            ig_status st = ig_error_code();
            return st != IG_OK ? st : ig_fail(IG_EINVAL, "eval: array %d of %d is empty", i + 1, n);
        }
        if (a[i].node->trace)
            return ig_fail(IG_EINVAL,
                           "eval: the result of %s has no value: its function is being "
                           "compiled",
                           op_table[a[i].node->op].name);
        all_done &= node_is_done(a[i].node);
    }
    *ret_all_done = all_done;
    return IG_OK;
}

ig_status eval_arrays(const ig_array *a, int n)
{
    bool all_done = false;
    TRY(check_roots(a, n, &all_done));
    if (all_done) return IG_OK;
    eval_lock();
    order o = {0};
    ig_status st = order_make(a, n, &o);
    if (st == IG_OK) st = run_order(&o, a, n);
    eval_unlock();
    order_done(&o);
    return st;
}

ig_status ig_eval(const ig_array *a, int n) { return eval_arrays(a, n); }
