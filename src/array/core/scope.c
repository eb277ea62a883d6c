/* scope.c: scopes as autorelease pools. Owns the stack of open scopes of each thread.
 *
 * A scope holds one reference to every array made while it was the innermost one, and an error
 * record (base/status.h). Closing drops the references; whatever else holds an array (a consumer
 * in a graph, a slot, an outer scope) keeps it. ig_scope_eval closes before it evaluates: then
 * only consumers hold the intermediates, and each dies when its last consumer has run. */
#include "array/core/scope.h"
#include "array/core/eval.h"
#include "array/core/grow.h"
#include "base/status.h"

struct ig_scope {
    status_record record;
    ig_scope *below; /* the enclosing scope, or NULL */
    ig_node **node;  /* [n], one reference each */
    size_t n, cap;
};

static _Thread_local ig_scope *top;

bool scope_is_open(void) { return top != NULL; }

static bool is_mine(const ig_scope *s)
{
    for (const ig_scope *t = top; t; t = t->below)
        if (t == s) return true;
    return false;
}

ig_scope *ig_scope_open(void)
{
    ig_scope *s = mem_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->below = top;
    status_push(&s->record);
    top = s;
    return s;
}

ig_status scope_add(ig_node *n)
{
    ig_status st = top ? IG_OK : ig_fail(IG_EINVAL, "no scope is open on this thread");
    if (st == IG_OK)
        st = grow(&top->node, top->n, &top->cap, SCOPE_MAX_NODES, sizeof *top->node,
                  "arrays in one scope: open inner ones");
    if (st != IG_OK) {
        node_drop(n);
        return st;
    }
    top->node[top->n++] = n;
    return IG_OK;
}

/* Newest first: consumers go before what they read, so most nodes die alone. */
static ig_status close_top(void)
{
    ig_scope *s = top;
    top = s->below;
    while (s->n > 0) node_drop(s->node[--s->n]);
    bool own = !s->record.handed_up;
    ig_status st = status_pop(&s->record);
    mem_free(s->node);
    mem_free(s);
    return own ? st : IG_OK;
}

ig_status ig_scope_close(ig_scope *s)
{
    if (!s) return IG_OK; /* never opened: its arrays went to the enclosing scope */
    if (!is_mine(s)) return ig_fail(IG_EINVAL, "scope_close: not an open scope of this thread");
    while (top != s) (void)close_top(); /* hands failures up, to s at last */
    return close_top();
}

/* What holds the arrays while their scope goes. */
static ig_status hold_all(const char *what, const ig_array *a, int n)
{
    for (int i = 0; i < n; i++) {
        if (!ig_is_empty(a[i])) {
            node_hold(a[i].node);
            continue;
        }
        while (i > 0) node_drop(a[--i].node);
        ig_status st = ig_error_code();
        return st != IG_OK ? st : ig_fail(IG_EINVAL, "%s: an array is empty", what);
    }
    return IG_OK;
}

/* Drops the references of a[from..n). */
static void drop_from(const ig_array *a, int from, int n)
{
    for (int i = from; i < n; i++) node_drop(a[i].node);
}

/* Moves the held arrays to the innermost scope; without one the caller has them as slots. */
static ig_status give(const ig_array *a, int n, ig_array *ret_a)
{
    for (int i = 0; top && i < n; i++) {
        ig_status st = scope_add(a[i].node);
        if (st != IG_OK) {
            drop_from(a, i + 1, n);
            return st;
        }
    }
    for (int i = 0; i < n; i++) ret_a[i] = a[i];
    return IG_OK;
}

/* Holds the arrays beyond the scope. On failure the scope is closed and nothing is held. */
static ig_status leave(const char *what, ig_scope *s, const ig_array *a, int n)
{
    bool listed = n == 0 || (n > 0 && a);
    ig_status held =
        listed ? hold_all(what, a, n) : ig_fail(IG_EINVAL, "%s: %d arrays, none given", what, n);
    ig_status closed = ig_scope_close(s);
    if (held != IG_OK) return held;
    if (closed != IG_OK) drop_from(a, 0, n);
    return closed;
}

ig_status ig_scope_return(ig_scope *s, ig_array a, ig_array *ret_a)
{
    TRY(leave("scope_return", s, &a, 1));
    return give(&a, 1, ret_a);
}

ig_status ig_scope_eval(ig_scope *s, const ig_array *a, int n, ig_array *ret_a)
{
    TRY(leave("scope_eval", s, a, n));
    ig_status st = eval_arrays(a, n);
    if (st != IG_OK) {
        drop_from(a, 0, n);
        return st;
    }
    return give(a, n, ret_a);
}

void ig_hold(ig_array *slot, ig_array a)
{
    if (!ig_is_empty(a)) node_hold(a.node);
    ig_node *old = slot->node;
    *slot = a;
    node_drop(old);
}

void ig_drop(ig_array *slot)
{
    ig_node *old = slot->node;
    *slot = (ig_array){0};
    node_drop(old);
}
