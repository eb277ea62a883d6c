/* trun.c: runs statements. A failure names the line of the innermost expression or statement. */
#include "lm/template/trun.h"
#include <string.h>

ig_status trun_charge(trun *r, size_t n)
{
    r->steps -= (int64_t)((n + 63) / 64);
    return r->steps < 0 ? ig_fail(IG_ELIMIT, "more than %lld steps", (long long)r->limits.max_steps)
                        : IG_OK;
}

ig_status trun_enter(trun *r)
{
    if (r->depth >= r->limits.max_depth)
        return ig_fail(IG_ELIMIT, "nested more than %d deep", r->limits.max_depth);
    r->depth++;
    return IG_OK;
}

ig_status trun_locate(trun *r, uint32_t line, ig_status status)
{
    if (status == IG_OK || r->located) return status;
    r->located = true;
    return ig_fail_context(status, "%s: line %u: ", r->t->what, line);
}

/* --- scopes */

ig_status trun_push_scope(trun *r, tscope *outer)
{
    tscope *s = arena_zero(r->a, 1, sizeof *s);
    if (!s) return r->a->status;
    s->outer = outer;
    r->scope = s;
    return IG_OK;
}

ig_status trun_bind(trun *r, tscope *s, uint32_t name, tval value)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->bindings[i].name == name) {
            s->bindings[i].value = value;
            return trun_charge(r, i);
        }
    TRY(trun_charge(r, s->n));
    if (s->n == s->cap) {
        uint32_t cap = s->cap ? 2 * s->cap : 4;
        struct tbinding *grown = arena_alloc(r->a, cap, sizeof *grown);
        if (!grown) return r->a->status;
        if (s->n) memcpy(grown, s->bindings, s->n * sizeof *grown);
        s->bindings = grown;
        s->cap = cap;
    }
    s->bindings[s->n++] = (struct tbinding){name, value};
    return IG_OK;
}

ig_status trun_lookup(trun *r, uint32_t name, tval *ret)
{
    size_t n_seen = 0;
    for (const tscope *s = r->scope; s; n_seen += s->n, s = s->outer)
        for (uint32_t i = 0; i < s->n; i++)
            if (s->bindings[i].name == name) {
                *ret = s->bindings[i].value;
                return trun_charge(r, n_seen + i);
            }
    TRY(trun_charge(r, n_seen));
    if (r->t->globals[name]) {
        *ret = (tval){.kind = T_FUNCTION, .function = r->t->globals[name]};
        return IG_OK;
    }
    return tval_undefined(r, tstr_bytes(r->t->names[name]), NULL, ret);
}

/* --- assignment */

static ig_status assign(trun *r, const tnode *target, tval value);

static ig_status unpack(trun *r, const tnodes *targets, tval value)
{
    const tseq *items;
    TRY(tval_iterate(r, value, &items));
    if (items->n != targets->n)
        return ig_fail(IG_EINVAL, "%zu values cannot be unpacked into %zu names", items->n,
                       targets->n);
    for (size_t i = 0; i < targets->n; i++) TRY(assign(r, targets->at[i], items->items[i]));
    return IG_OK;
}

static ig_status assign(trun *r, const tnode *target, tval value)
{
    tval space;
    if (target->kind == E_NAME) return trun_bind(r, r->scope, target->name, value);
    if (target->kind == E_TUPLE) return unpack(r, &target->items, value);
    TRY(trun_lookup(r, target->target.name, &space));
    if (space.kind != T_NAMESPACE)
        return ig_fail(IG_EINVAL, "an attribute can be set of a namespace only, not of a %s",
                       tval_type(space));
    return tval_space_set(r, space.space, target->target.attr, value);
}

/* --- output of a block as a value */

static ig_status run_body(trun *r, const tnodes *body);

ig_status trun_capture(trun *r, const tnodes *body, tval *ret)
{
    AUTO(tbuild) b = {0};
    tbuild *out = r->out;
    const tstr *s = NULL;
    tbuild_init(&b, r->limits.max_output);
    r->out = &b;
    ig_status status = run_body(r, body);
    r->out = out;
    TRY(status);
    TRY(tbuild_take(&b, r->a, &s));
    *ret = tval_str(s);
    return IG_OK;
}

/* The text of a block in a scope of its own, put through its filters. */
static ig_status filtered_block(trun *r, const tnode *n, tval *ret)
{
    tscope *outer = r->scope;
    tval block = r->block;
    TRY(trun_push_scope(r, outer));
    TRY(trun_capture(r, &n->block.body, &r->block));
    TRY(trun_eval(r, n->block.filter, ret));
    r->scope = outer;
    r->block = block;
    return IG_OK;
}

/* --- loops */

/* The next item of the source that the loop's filter lets through. */
static ig_status next_item(trun *r, tloop *l, tval *ret, bool *ret_more)
{
    tseq *s = l->source;
    size_t *at = s->kind == SEQ_GENERATOR ? &s->at : &l->at;
    tscope *scope = r->scope;
    for (*ret_more = false; !*ret_more && *at < s->n;) {
        tval keep = tval_bool(true);
        *ret = s->items[(*at)++];
        if (l->node->loop.filter && !l->filtered) {
            TRY(trun_push_scope(r, l->outer));
            TRY(assign(r, l->node->loop.target, *ret));
            TRY(trun_eval(r, l->node->loop.filter, &keep));
            r->scope = scope;
        }
        *ret_more = tval_truth(keep);
    }
    return IG_OK;
}

ig_status trun_loop_peek(trun *r, tloop *l, bool *ret_more)
{
    bool more = true;
    if (l->after.kind == T_MISSING && !l->at_end) {
        TRY(next_item(r, l, &l->after, &more));
        if (!more) {
            l->after = tval_missing();
            l->at_end = true;
        }
    }
    *ret_more = !l->at_end;
    return IG_OK;
}

/* All items that are left, so that they can be counted. */
static ig_status read_ahead(trun *r, tloop *l)
{
    tseq *rest;
    size_t n = 0, left = l->source->n - (l->source->kind == SEQ_GENERATOR ? l->source->at : l->at);
    TRY(tval_new_seq(r, SEQ_LIST, left, true, &rest));
    for (bool more = true;;) {
        tval item;
        TRY(next_item(r, l, &item, &more));
        if (!more) break;
        rest->items[n++] = item;
    }
    rest->n = n;
    l->source = rest;
    l->at = 0;
    l->filtered = true;
    l->length = (int64_t)n + l->index0 + 1 + (l->after.kind != T_MISSING);
    return IG_OK;
}

ig_status trun_loop_length(trun *r, tloop *l, int64_t *ret)
{
    if (l->length < 0 && (l->node->loop.filter || l->source->kind == SEQ_GENERATOR))
        TRY(read_ahead(r, l));
    if (l->length < 0) l->length = (int64_t)l->source->n;
    *ret = l->length;
    return IG_OK;
}

static ig_status advance(trun *r, tloop *l, bool *ret_more)
{
    tval item = l->after;
    *ret_more = !l->at_end;
    if (l->at_end) return IG_OK;
    l->after = tval_missing();
    if (item.kind == T_MISSING) TRY(next_item(r, l, &item, ret_more));
    if (!*ret_more) return IG_OK;
    l->before = l->current;
    l->current = item;
    l->index0++;
    return IG_OK;
}

static ig_status loop_source(trun *r, tval v, tseq **ret)
{
    const tseq *items;
    if (v.kind == T_SEQ) { /* a generator is used up only as far as the loop goes */
        *ret = v.seq;
        return IG_OK;
    }
    TRY(tval_iterate(r, v, &items));
    *ret = (tseq *)items; /* a loop reads a list and never writes it */
    return IG_OK;
}

/* One round of a loop, in a scope of its own: that of the round before, unless a macro keeps it. */
static ig_status run_round(trun *r, tloop *l, tscope **scope)
{
    int64_t n_macros = r->n_macros;
    if (*scope)
        (*scope)->n = 0;
    else
        TRY(trun_push_scope(r, l->outer));
    *scope = r->scope = *scope ? *scope : r->scope;
    TRY(trun_bind(r, r->scope, r->t->loop, (tval){.kind = T_LOOP, .loop = l}));
    TRY(assign(r, l->node->loop.target, l->current));
    TRY(run_body(r, &l->node->loop.body));
    if (r->n_macros != n_macros) *scope = NULL;
    r->scope = l->outer;
    r->continued = false;
    return IG_OK;
}

static ig_status run_for(trun *r, const tnode *n)
{
    tval over;
    tscope *scope = NULL;
    bool more = false;
    TRY(trun_eval(r, n->loop.iter, &over));
    tloop *l = arena_zero(r->a, 1, sizeof *l);
    if (!l) return r->a->status;
    *l = (tloop){.node = n, .outer = r->scope, .index0 = -1, .length = -1};
    TRY(loop_source(r, over, &l->source));
    while (!r->broken) {
        TRY(advance(r, l, &more));
        if (!more) break;
        TRY(run_round(r, l, &scope));
    }
    r->broken = false;
    if (l->index0 >= 0 || !n->loop.otherwise.n) return IG_OK;
    TRY(trun_push_scope(r, l->outer));
    TRY(run_body(r, &n->loop.otherwise));
    r->scope = l->outer;
    return IG_OK;
}

/* --- other statements */

static ig_status run_text(trun *r, const tnode *n)
{
    TRY(trun_charge(r, n->text->n));
    tbuild_str(r->out, n->text);
    return tbuild_status(r->out);
}

static ig_status run_print(trun *r, const tnode *n)
{
    tval v;
    TRY(trun_eval(r, n->print, &v));
    return ttext_str(r, r->out, v);
}

static ig_status run_if(trun *r, const tnode *n)
{
    for (size_t i = 0; i < n->branch.tests.n; i++) {
        tval v;
        TRY(trun_eval(r, n->branch.tests.at[i], &v));
        if (tval_truth(v)) return run_body(r, &n->branch.bodies[i]);
    }
    return run_body(r, &n->branch.otherwise);
}

static ig_status run_set(trun *r, const tnode *n)
{
    tval v;
    TRY(trun_eval(r, n->set.value, &v));
    return assign(r, n->set.target, v);
}

static ig_status run_set_block(trun *r, const tnode *n)
{
    tval v;
    TRY(filtered_block(r, n, &v));
    return assign(r, n->block.target, v);
}

static ig_status run_filter(trun *r, const tnode *n)
{
    tval v;
    TRY(filtered_block(r, n, &v));
    return ttext_str(r, r->out, v);
}

static ig_status new_macro(trun *r, const tnode *n, tval *ret)
{
    tmacro *m = arena_alloc(r->a, 1, sizeof *m);
    if (!m) return r->a->status;
    *m = (tmacro){n, r->scope};
    r->n_macros++;
    *ret = (tval){.kind = T_MACRO, .macro = m};
    return IG_OK;
}

static ig_status run_macro(trun *r, const tnode *n)
{
    tval m;
    TRY(new_macro(r, n, &m));
    return trun_bind(r, r->scope, n->macro.name, m);
}

static ig_status run_call(trun *r, const tnode *n)
{
    tval caller, v;
    TRY(new_macro(r, n, &caller));
    TRY(trun_eval_call(r, n->macro.call, &caller, &v));
    return ttext_str(r, r->out, v);
}

static ig_status run_with(trun *r, const tnode *n)
{
    tscope *outer = r->scope, *inner;
    TRY(trun_push_scope(r, outer));
    inner = r->scope;
    for (size_t i = 0; i < n->with.targets.n; i++) { /* values are evaluated outside */
        tval v;
        r->scope = outer;
        TRY(trun_eval(r, n->with.values.at[i], &v));
        r->scope = inner;
        TRY(assign(r, n->with.targets.at[i], v));
    }
    TRY(run_body(r, &n->with.body));
    r->scope = outer;
    return IG_OK;
}

static ig_status run_jump(trun *r, const tnode *n)
{
    if (n->kind == S_BREAK)
        r->broken = true;
    else
        r->continued = true;
    return IG_OK;
}

static ig_status run_statement(trun *r, const tnode *n)
{
    switch (n->kind) {
    case S_TEXT: return run_text(r, n);
    case S_PRINT: return run_print(r, n);
    case S_IF: return run_if(r, n);
    case S_FOR: return run_for(r, n);
    case S_SET: return run_set(r, n);
    case S_SET_BLOCK: return run_set_block(r, n);
    case S_MACRO: return run_macro(r, n);
    case S_CALL: return run_call(r, n);
    case S_FILTER: return run_filter(r, n);
    case S_WITH:
    case S_SCOPE: return run_with(r, n);
    default: return run_jump(r, n);
    }
}

static ig_status run_body(trun *r, const tnodes *body)
{
    for (size_t i = 0; i < body->n && !r->broken && !r->continued; i++) {
        const tnode *n = body->at[i];
        ig_status status = trun_charge(r, 1);
        if (status == IG_OK) status = trun_enter(r);
        if (status == IG_OK) status = run_statement(r, n);
        TRY(trun_locate(r, n->line, status));
        trun_leave(r);
    }
    return IG_OK;
}

ig_status trun_run(trun *r, const tnodes *body) { return run_body(r, body); }
