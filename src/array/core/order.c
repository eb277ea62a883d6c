/* order.c: the order in which a graph is evaluated (see order.h).
 *
 * Depth first, and of a node's inputs the one first that needs the most memory beyond what it
 * leaves behind (Sethi and Ullman's rule). For add(e1, add(e2, add(e3, ...))) left to right
 * would hold every e at once; this order holds two. Two passes: need of each node from its
 * inputs, then the order. Both keep their own stack, so depth is bounded by memory only. */
#include "array/core/order.h"
#include "array/core/eval.h"
#include "array/core/grow.h"
#include "array/core/shape.h"
#include "array/core/view.h"

/* Doubles: the sums of huge sizes must not overflow, and only their order counts. */
typedef struct visit {
    ig_node *node;
    double need; /* bytes alive at the worst moment while the node is made from nothing */
    double size; /* bytes alive after it */
    bool ordered;
} visit;

typedef struct frame {
    ig_node *node;
    int next; /* input to look at next */
} frame;

typedef struct walk {
    /* A node's mark is its index here if this slot says so: marks of earlier walks stay. */
    visit *visit;
    size_t n, cap;
    frame *stack;
    size_t depth, cap_stack;
} walk;

static bool is_known(const walk *w, const ig_node *n)
{
    return n->mark < w->n && w->visit[n->mark].node == n;
}

static visit *visit_of(const walk *w, const ig_node *n) { return &w->visit[n->mark]; }

static bool waits(const ig_node *n) { return n && !node_is_done(n); }

static ig_status push(walk *w, ig_node *n)
{
    TRY(grow(&w->stack, w->depth, &w->cap_stack, ORDER_MAX_NODES, sizeof *w->stack,
             "operations below one another"));
    w->stack[w->depth++] = (frame){n, 0};
    return IG_OK;
}

static ig_status enter(walk *w, ig_node *n)
{
    TRY(grow(&w->visit, w->n, &w->cap, ORDER_MAX_NODES, sizeof *w->visit,
             "operations in one evaluation"));
    n->mark = (uint32_t)w->n;
    w->visit[w->n++] = (visit){.node = n};
    return push(w, n);
}

/* Of the waiting inputs that are not taken yet, the one to make first; -1 when there is none.
 * taken: a bit per input. */
static int best_input(const walk *w, const ig_node *n, uint64_t taken)
{
    int best = -1;
    double best_gain = 0;
    for (int k = 0; k < n->n_in; k++) {
        if (taken >> k & 1 || !waits(n->in[k].node)) continue;
        const visit *v = visit_of(w, n->in[k].node);
        double gain = v->need - v->size;
        if (v->ordered || (best >= 0 && gain <= best_gain)) continue;
        best = k;
        best_gain = gain;
    }
    return best;
}
_Static_assert(IG_MAX_INPUTS <= 64, "inputs are bits of a word");

/* Need and size of a node whose inputs have theirs. A view keeps what it looks at. */
static void weigh(walk *w, ig_node *n)
{
    double kept = 0, need = 0, own = 0;
    uint64_t taken = 0;
    for (int k; (k = best_input(w, n, taken)) >= 0;) {
        const visit *v = visit_of(w, n->in[k].node);
        for (int j = k; j < n->n_in; j++)
            if (n->in[j].node == n->in[k].node) taken |= (uint64_t)1 << j;
        if (kept + v->need > need) need = kept + v->need;
        kept += v->size;
    }
    for (int k = 0; k < n->n_out; k++) own += (double)shape_nbytes(&n->out[k]);
    visit *v = visit_of(w, n);
    v->size = view_is(n->op) ? kept : own;
    v->need = kept + (view_is(n->op) ? 0 : own);
    if (need > v->need) v->need = need;
}

static ig_status weigh_below(walk *w, ig_node *root)
{
    if (!waits(root) || is_known(w, root)) return IG_OK;
    TRY(enter(w, root));
    while (w->depth) {
        frame *f = &w->stack[w->depth - 1];
        if (f->next == f->node->n_in) {
            weigh(w, f->node);
            w->depth--;
            continue;
        }
        ig_node *in = f->node->in[f->next++].node;
        if (waits(in) && !is_known(w, in)) TRY(enter(w, in));
    }
    return IG_OK;
}

static ig_status order_below(walk *w, ig_node *root, order *o)
{
    if (!waits(root) || visit_of(w, root)->ordered) return IG_OK;
    TRY(push(w, root));
    while (w->depth) {
        ig_node *n = w->stack[w->depth - 1].node;
        int k = best_input(w, n, 0);
        if (k >= 0) {
            TRY(push(w, n->in[k].node));
            continue;
        }
        w->depth--;
        visit_of(w, n)->ordered = true;
        TRY(grow(&o->node, o->n, &o->cap, ORDER_MAX_NODES, sizeof *o->node, "operations"));
        o->node[o->n++] = n;
    }
    return IG_OK;
}

static ig_status walk_roots(walk *w, const ig_array *roots, int n_roots, order *o)
{
    for (int i = 0; i < n_roots; i++) TRY(weigh_below(w, roots[i].node));
    for (int i = 0; i < n_roots; i++) TRY(order_below(w, roots[i].node, o));
    return IG_OK;
}

ig_status order_make(const ig_array *roots, int n_roots, order *ret_order)
{
    walk w = {0};
    order o = {0};
    ig_status st = walk_roots(&w, roots, n_roots, &o);
    for (size_t i = 0; i < o.n; i++) o.node[i]->mark = (uint32_t)i;
    mem_free(w.visit);
    mem_free(w.stack);
    if (st != IG_OK)
        order_done(&o);
    else
        *ret_order = o;
    return st;
}

void order_done(order *o)
{
    mem_free(o->node);
    *o = (order){0};
}
