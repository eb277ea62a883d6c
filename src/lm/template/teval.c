/* teval.c: expressions and calls. */
#include <string.h>
#include "lm/template/trun.h"

static ig_status eval_list(trun *r, const tnode *n, tval *ret)
{
    tseq *s;
    TRY(tval_new_seq(r, n->kind == E_LIST ? SEQ_LIST : SEQ_TUPLE, n->items.n, true, &s));
    for (size_t i = 0; i < s->n; i++) TRY(trun_eval(r, n->items.at[i], &s->items[i]));
    *ret = tval_seq(s);
    return IG_OK;
}

static ig_status eval_dict(trun *r, const tnode *n, tval *ret)
{
    tdict *d;
    TRY(tval_new_dict(r, n->dict.keys.n, true, &d));
    for (size_t i = 0; i < n->dict.keys.n; i++) {
        tval key, value;
        TRY(trun_eval(r, n->dict.keys.at[i], &key));
        TRY(trun_eval(r, n->dict.values.at[i], &value));
        TRY(tval_dict_set(r, d, key, value));
    }
    *ret = tval_dict(d);
    return IG_OK;
}

static ig_status eval_text(trun *r, const tnode *n, const tstr **ret)
{
    tval v;
    TRY(trun_eval(r, n, &v));
    if (v.kind != T_STR) return ttext_of(r, v, ret);
    *ret = v.s; /* not made flat: appending piece by piece stays linear */
    return IG_OK;
}

/* a ~ b ~ c, at least two of them. */
static ig_status eval_concat(trun *r, const tnode *n, tval *ret)
{
    const tstr *all, *part;
    TRY(eval_text(r, n->items.at[0], &all));
    for (size_t i = 1; i < n->items.n; i++) {
        TRY(eval_text(r, n->items.at[i], &part));
        TRY(toperate_concat(r, all, part, &all));
    }
    if (all->markup) { /* ~ gives a plain string */
        tstr *plain = arena_alloc(r->a, 1, sizeof *plain);
        if (!plain) return r->a->status;
        *plain = *all;
        plain->markup = false;
        all = plain;
    }
    *ret = tval_str(all);
    return IG_OK;
}

static ig_status compare(trun *r, toperator op, tval a, tval b, bool *ret)
{
    int c = 0;
    if (op == OP_IN || op == OP_NOT_IN) {
        TRY(tval_in(r, a, b, ret));
        *ret ^= op == OP_NOT_IN;
        return IG_OK;
    }
    if (op == OP_EQ || op == OP_NE) {
        TRY(tval_equal(r, a, b, ret));
        *ret ^= op == OP_NE;
        return IG_OK;
    }
    TRY(tval_order(r, a, b, &c)); /* 2 where one is NaN: nothing holds */
    *ret = op == OP_LT   ? c == -1
           : op == OP_GT ? c == 1
           : op == OP_LE ? c == -1 || c == 0
                         : c == 1 || c == 0;
    return IG_OK;
}

/* a < b < c: each pair must hold, each operand is evaluated once. */
static ig_status eval_compare(trun *r, const tnode *n, tval *ret)
{
    tval left, right;
    bool holds = true;
    TRY(trun_eval(r, n->compare.first, &left));
    for (size_t i = 0; i < n->compare.rest.n && holds; i++) {
        TRY(trun_eval(r, n->compare.rest.at[i], &right));
        TRY(compare(r, n->compare.ops[i], left, right, &holds));
        left = right;
    }
    *ret = tval_bool(holds);
    return IG_OK;
}

static ig_status eval_and_or(trun *r, const tnode *n, tval *ret)
{
    TRY(trun_eval(r, n->op.a, ret));
    return tval_truth(*ret) == (n->kind == E_AND) ? trun_eval(r, n->op.b, ret) : IG_OK;
}

static ig_status eval_cond(trun *r, const tnode *n, tval *ret)
{
    tval test;
    TRY(trun_eval(r, n->cond.test, &test));
    if (tval_truth(test)) return trun_eval(r, n->cond.then, ret);
    if (n->cond.otherwise) return trun_eval(r, n->cond.otherwise, ret);
    return tval_undefined(r, str_of("if without else"), NULL, ret);
}

static ig_status eval_optional(trun *r, const tnode *n, tval *ret)
{
    *ret = tval_none();
    return n ? trun_eval(r, n, ret) : IG_OK;
}

static ig_status eval_item(trun *r, const tnode *n, tval *ret)
{
    tval object, from, to, step;
    const tnode *index = n->item.index;
    TRY(trun_eval(r, n->item.object, &object));
    if (index->kind != E_SLICE) {
        TRY(trun_eval(r, index, &from));
        return tattr_item(r, object, from, ret);
    }
    TRY(eval_optional(r, index->slice.from, &from));
    TRY(eval_optional(r, index->slice.to, &to));
    TRY(eval_optional(r, index->slice.step, &step));
    return tattr_slice(r, object, from, to, step, ret);
}

static ig_status eval_unary(trun *r, const tnode *n, tval *ret)
{
    tval a;
    TRY(trun_eval(r, n->op.a, &a));
    if (n->kind == E_UNARY) return toperate_unary(r, n->op.op, a, ret);
    *ret = tval_bool(!tval_truth(a));
    return IG_OK;
}

static ig_status eval_binary(trun *r, const tnode *n, tval *ret)
{
    tval a, b;
    TRY(trun_eval(r, n->op.a, &a));
    TRY(trun_eval(r, n->op.b, &b));
    return toperate_binary(r, n->op.op, a, b, ret);
}

/* --- calls */

/* *x and **x, appended to what is written out. */
static ig_status spread(trun *r, const tcall *c, targs *args, size_t n_extra_named)
{
    tval star = tval_missing(), named = tval_missing();
    const tseq *more = NULL;
    if (c->star) {
        TRY(trun_eval(r, c->star, &star));
        TRY(tval_iterate(r, star, &more));
    }
    if (c->star_star) TRY(trun_eval(r, c->star_star, &named));
    if (c->star_star && named.kind != T_DICT)
        return ig_fail(IG_EINVAL, "** wants a dict, not a %s", tval_type(named));
    size_t n = args->n + (more ? more->n : 0),
           k = args->n_named + n_extra_named + (c->star_star ? named.dict->n : 0);
    tval *v = arena_alloc(r->a, n, sizeof *v),
         *values = v ? arena_alloc(r->a, k, sizeof *values) : NULL;
    const tstr **names = values ? arena_alloc(r->a, k, sizeof *names) : NULL;
    if (!names) return r->a->status;
    if (args->n) memcpy(v, args->v, args->n * sizeof *v);
    if (more && more->n) memcpy(v + args->n, more->items, more->n * sizeof *v);
    if (args->n_named) memcpy(values, args->named, args->n_named * sizeof *values);
    if (args->n_named) memcpy(names, args->names, args->n_named * sizeof *names);
    size_t at = args->n_named;
    for (size_t i = 0; c->star_star && i < named.dict->n; i++, at++) {
        TRY(targs_str(r, "**", named.dict->keys[i], &names[at]));
        values[at] = named.dict->values[i];
    }
    *args = (targs){n, at, v, names, values};
    return IG_OK;
}

static ig_status eval_args(trun *r, const tcall *c, size_t n_extra_named, targs *ret)
{
    targs args = {.n = c->args.n, .n_named = c->named.n, .names = c->names};
    args.v = arena_alloc(r->a, args.n, sizeof *args.v);
    args.named = args.v ? arena_alloc(r->a, args.n_named, sizeof *args.named) : NULL;
    if (!args.named) return r->a->status;
    for (size_t i = 0; i < args.n; i++) TRY(trun_eval(r, c->args.at[i], &args.v[i]));
    for (size_t i = 0; i < args.n_named; i++) TRY(trun_eval(r, c->named.at[i], &args.named[i]));
    if (c->star || c->star_star || n_extra_named) TRY(spread(r, c, &args, n_extra_named));
    *ret = args;
    return IG_OK;
}

/* Takes the named argument `name` out of those not used yet. */
static bool take_named(const targs *args, bool *used, const tstr *name, tval *ret)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (!used[i] && tstr_eq(args->names[i], name)) {
            used[i] = true;
            *ret = args->named[i];
            return true;
        }
    return false;
}

/* A parameter that was not given: its default, evaluated in the macro's scope, or undefined. */
static ig_status default_of(trun *r, const tparams *p, size_t i, tval *ret)
{
    size_t first = p->n - p->defaults.n;
    if (i >= first) return trun_eval(r, p->defaults.at[i - first], ret);
    return tval_undefined(r, tstr_bytes(r->t->names[p->names[i]]), NULL, ret);
}

/* varargs, kwargs and caller, where the macro's body mentions them. */
static ig_status bind_extras(trun *r, const tmacro *m, const targs *args, bool *used)
{
    const tparams *p = &m->node->macro.params;
    tval caller, v;
    bool has_caller = take_named(args, used, r->t->names[r->t->caller], &caller);
    if (p->uses_caller && has_caller) TRY(trun_bind(r, r->scope, r->t->caller, caller));
    if (has_caller && !p->uses_caller)
        return ig_fail(IG_EINVAL, "this macro does not use a caller");
    if (p->uses_varargs) {
        tseq *s;
        size_t n = args->n > p->n ? args->n - p->n : 0;
        TRY(tval_new_seq(r, SEQ_TUPLE, n, true, &s));
        if (n) memcpy(s->items, args->v + p->n, n * sizeof *s->items);
        TRY(trun_bind(r, r->scope, r->t->varargs, tval_seq(s)));
    } else if (args->n > p->n) {
        return ig_fail(IG_EINVAL, "the macro takes at most %zu arguments, %zu were given", p->n,
                       args->n);
    }
    tdict *d;
    TRY(tval_new_dict(r, args->n_named, true, &d));
    for (size_t i = 0; i < args->n_named; i++) {
        if (used[i]) continue;
        if (!p->uses_kwargs)
            return ig_fail(IG_EINVAL, "the macro has no parameter %.*s", (int)args->names[i]->n,
                           args->names[i]->p);
        TRY(tval_dict_set(r, d, tval_str(args->names[i]), args->named[i]));
    }
    v = tval_dict(d);
    return p->uses_kwargs ? trun_bind(r, r->scope, r->t->kwargs, v) : IG_OK;
}

static ig_status call_macro(trun *r, const tmacro *m, const targs *args, tval *ret)
{
    const tparams *p = &m->node->macro.params;
    tscope *scope = r->scope;
    bool *used = arena_zero(r->a, args->n_named, sizeof *used);
    if (!used) return r->a->status;
    TRY(trun_push_scope(r, m->scope));
    for (size_t i = 0; i < p->n; i++) {
        tval v;
        if (i < args->n)
            v = args->v[i];
        else if (!take_named(args, used, r->t->names[p->names[i]], &v))
            TRY(default_of(r, p, i, &v));
        TRY(trun_bind(r, r->scope, p->names[i], v));
    }
    TRY(bind_extras(r, m, args, used));
    TRY(trun_capture(r, &m->node->macro.body, ret));
    r->scope = scope;
    return IG_OK;
}

ig_status trun_call(trun *r, tval callee, const targs *args, tval *ret)
{
    switch (callee.kind) {
    case T_MACRO: return call_macro(r, callee.macro, args, ret);
    case T_FUNCTION: return tglobal_call(r, callee.function, args, ret);
    case T_METHOD: return tmethod_call(r, callee.method, args, ret);
    case T_UNDEFINED: return tval_fail_undefined(callee);
    case T_JOINER:
        if (args->n || args->n_named) return ig_fail(IG_EINVAL, "a joiner takes no arguments");
        TRY(tval_new_str(r, "", 0, true, ret));
        if (callee.joiner->used) *ret = tval_str(callee.joiner->separator);
        callee.joiner->used = true;
        return IG_OK;
    default: return ig_fail(IG_EINVAL, "a %s cannot be called", tval_type(callee));
    }
}

ig_status trun_eval_call(trun *r, const tnode *n, const tval *caller, tval *ret)
{
    tval callee;
    targs args;
    TRY(trun_eval(r, n->call.callee, &callee));
    TRY(eval_args(r, &n->call.call, caller != NULL, &args));
    if (caller) { /* eval_args left room for it */
        args.names[args.n_named] = r->t->names[r->t->caller];
        args.named[args.n_named++] = *caller;
    }
    return trun_call(r, callee, &args, ret);
}

static ig_status eval_filter(trun *r, const tnode *n, tval *ret)
{
    tval v;
    targs args;
    if (n->apply.row < 0)
        return ig_fail(IG_EUNSUPPORTED, "no filter named %.*s", (int)n->apply.name->n,
                       n->apply.name->p);
    TRY(trun_eval(r, n->apply.object, &v));
    TRY(eval_args(r, &n->apply.call, 0, &args));
    return tfilter_call(r, n->apply.row, v, &args, ret);
}

static ig_status eval_test(trun *r, const tnode *n, tval *ret)
{
    tval v;
    targs args;
    bool holds;
    if (n->apply.row < 0)
        return ig_fail(IG_EUNSUPPORTED, "no test named %.*s", (int)n->apply.name->n,
                       n->apply.name->p);
    TRY(trun_eval(r, n->apply.object, &v));
    TRY(eval_args(r, &n->apply.call, 0, &args));
    TRY(ttest_call(r, n->apply.row, v, &args, &holds));
    *ret = tval_bool(holds);
    return IG_OK;
}

static ig_status eval_attr(trun *r, const tnode *n, tval *ret)
{
    tval object;
    TRY(trun_eval(r, n->attr.object, &object));
    return tattr_get(r, object, n->attr.name, ret);
}

static ig_status eval_name(trun *r, const tnode *n, tval *ret)
{
    *ret = r->block;
    return n->name == TAST_NAME_BLOCK ? IG_OK : trun_lookup(r, n->name, ret);
}

static ig_status eval_node(trun *r, const tnode *n, tval *ret)
{
    switch (n->kind) {
    case E_CONST: *ret = n->constant; return IG_OK;
    case E_NAME: return eval_name(r, n, ret);
    case E_LIST:
    case E_TUPLE: return eval_list(r, n, ret);
    case E_DICT: return eval_dict(r, n, ret);
    case E_ATTR: return eval_attr(r, n, ret);
    case E_ITEM: return eval_item(r, n, ret);
    case E_CALL: return trun_eval_call(r, n, NULL, ret);
    case E_FILTER: return eval_filter(r, n, ret);
    case E_TEST: return eval_test(r, n, ret);
    case E_NOT:
    case E_UNARY: return eval_unary(r, n, ret);
    case E_BINARY: return eval_binary(r, n, ret);
    case E_AND:
    case E_OR: return eval_and_or(r, n, ret);
    case E_COND: return eval_cond(r, n, ret);
    case E_CONCAT: return eval_concat(r, n, ret);
    case E_COMPARE: return eval_compare(r, n, ret);
    default:
        /* a slice outside brackets: the parser makes none */
        return ig_fail(IG_EFORMAT, "an expression in the wrong place");
    }
}

ig_status trun_eval(trun *r, const tnode *n, tval *ret)
{
    ig_status status = trun_charge(r, 1);
    if (status == IG_OK) status = trun_enter(r);
    if (status == IG_OK) status = eval_node(r, n, ret);
    TRY(trun_locate(r, n->line, status));
    trun_leave(r);
    return IG_OK;
}
