/* texpr.c: expressions, one function per level of precedence, as jinja2/parser.py has them. */
#include <string.h>
#include "lm/template/tparse.h"
#include "lm/template/trun.h"

static ig_status parse_unary(tparse *p, bool filters, tnode **ret);
static ig_status parse_primary(tparse *p, tnode **ret);
static ig_status parse_postfix(tparse *p, tnode *n, tnode **ret);

static ig_status new_op(tparse *p, tnode_kind kind, uint32_t line, toperator op, tnode *a, tnode *b,
                        tnode **ret)
{
    tnode *n;
    TRY(tparse_node(p, kind, line, &n));
    n->op.op = op;
    n->op.a = a;
    n->op.b = b;
    *ret = n;
    return IG_OK;
}

static ig_status new_const(tparse *p, uint32_t line, tval v, tnode **ret)
{
    tnode *n;
    TRY(tparse_node(p, E_CONST, line, &n));
    n->constant = v;
    *ret = n;
    return IG_OK;
}

/* Of the rows, the operator at the current token, if any. */
typedef struct op_row {
    const char *text;
    toperator op;
} op_row;

static const op_row *op_here(const tparse *p, const op_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tparse_is(p, rows[i].text)) return &rows[i];
    return NULL;
}

static ig_status parse_pow(tparse *p, tnode **ret)
{
    tnode *left, *right;
    TRY(parse_unary(p, true, &left));
    while (tparse_is(p, "**")) {
        uint32_t line = p->now.line;
        TRY(tparse_skip(p));
        TRY(parse_unary(p, true, &right));
        TRY(new_op(p, E_BINARY, line, OP_POW, left, right, &left));
    }
    *ret = left;
    return IG_OK;
}

static ig_status parse_product(tparse *p, tnode **ret)
{
    static const op_row rows[] = {{"*", OP_MUL}, {"/", OP_DIV}, {"//", OP_FLOORDIV}, {"%", OP_MOD}};
    const op_row *row;
    tnode *left, *right;
    TRY(parse_pow(p, &left));
    while ((row = op_here(p, rows, N_ELEM(rows)))) {
        uint32_t line = p->now.line;
        TRY(tparse_skip(p));
        TRY(parse_pow(p, &right));
        TRY(new_op(p, E_BINARY, line, row->op, left, right, &left));
    }
    *ret = left;
    return IG_OK;
}

static ig_status parse_concat(tparse *p, tnode **ret)
{
    AUTO(tgrow) parts = {0};
    tnode *n;
    uint32_t line = p->now.line;
    TRY(parse_product(p, &n));
    if (tparse_is(p, "~")) {
        TRY(tgrow_add(&parts, n));
        while (tparse_is(p, "~")) {
            TRY(tparse_skip(p));
            TRY(parse_product(p, &n));
            TRY(tgrow_add(&parts, n));
        }
        TRY(tparse_node(p, E_CONCAT, line, &n));
        TRY(tgrow_take(&parts, p, &n->items));
    }
    *ret = n;
    return IG_OK;
}

static ig_status parse_sum(tparse *p, tnode **ret)
{
    static const op_row rows[] = {{"+", OP_ADD}, {"-", OP_SUB}};
    const op_row *row;
    tnode *left, *right;
    TRY(parse_concat(p, &left));
    while ((row = op_here(p, rows, N_ELEM(rows)))) {
        uint32_t line = p->now.line;
        TRY(tparse_skip(p));
        TRY(parse_concat(p, &right));
        TRY(new_op(p, E_BINARY, line, row->op, left, right, &left));
    }
    *ret = left;
    return IG_OK;
}

/* The comparison at the current token, moving behind it. */
static ig_status take_comparison(tparse *p, bool *ret_found, toperator *ret_op)
{
    static const op_row rows[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE},
                                  {">=", OP_GE}, {"<", OP_LT},  {">", OP_GT}};
    const op_row *row = op_here(p, rows, N_ELEM(rows));
    bool is_in = tparse_is_name(p, "in");
    bool not_in =
        tparse_is_name(p, "not") && p->next.kind == K_NAME && str_eq(p->next.text, str_of("in"));
    *ret_found = row || is_in || not_in;
    if (!*ret_found) return IG_OK;
    *ret_op = row ? row->op : is_in ? OP_IN : OP_NOT_IN;
    if (not_in) TRY(tparse_skip(p));
    return tparse_skip(p);
}

static ig_status parse_compare(tparse *p, tnode **ret)
{
    AUTO(tgrow) rest = {0};
    toperator ops[64], op = OP_EQ;
    tnode *first, *n;
    bool found;
    uint32_t line = p->now.line;
    TRY(parse_sum(p, &first));
    for (;;) {
        TRY(take_comparison(p, &found, &op));
        if (!found) break;
        if (rest.n == N_ELEM(ops))
            return tparse_fail(p, line, "more than %zu comparisons in a row", N_ELEM(ops));
        ops[rest.n] = op;
        TRY(parse_sum(p, &n));
        TRY(tgrow_add(&rest, n));
    }
    *ret = first;
    if (!rest.n) return IG_OK;
    TRY(tparse_node(p, E_COMPARE, line, &n));
    n->compare.first = first;
    n->compare.ops = arena_alloc(&p->t->memory, rest.n, sizeof *ops);
    if (!n->compare.ops) return p->t->memory.status;
    memcpy(n->compare.ops, ops, rest.n * sizeof *ops);
    TRY(tgrow_take(&rest, p, &n->compare.rest));
    *ret = n;
    return IG_OK;
}

static ig_status parse_not(tparse *p, tnode **ret)
{
    if (!tparse_is_name(p, "not")) return parse_compare(p, ret);
    uint32_t line = p->now.line;
    tnode *n;
    TRY(tparse_enter(p));
    TRY(tparse_skip(p));
    TRY(parse_not(p, &n));
    tparse_leave(p);
    return new_op(p, E_NOT, line, OP_POS, n, NULL, ret);
}

static ig_status parse_and(tparse *p, tnode **ret)
{
    tnode *left, *right;
    TRY(parse_not(p, &left));
    while (tparse_is_name(p, "and")) {
        uint32_t line = p->now.line;
        TRY(tparse_skip(p));
        TRY(parse_not(p, &right));
        TRY(new_op(p, E_AND, line, OP_POS, left, right, &left));
    }
    *ret = left;
    return IG_OK;
}

static ig_status parse_or(tparse *p, tnode **ret)
{
    tnode *left, *right;
    TRY(parse_and(p, &left));
    while (tparse_is_name(p, "or")) {
        uint32_t line = p->now.line;
        TRY(tparse_skip(p));
        TRY(parse_and(p, &right));
        TRY(new_op(p, E_OR, line, OP_POS, left, right, &left));
    }
    *ret = left;
    return IG_OK;
}

ig_status texpr_parse(tparse *p, bool conditional, tnode **ret)
{
    tnode *then, *n;
    TRY(tparse_enter(p));
    TRY(parse_or(p, &then));
    while (conditional && tparse_is_name(p, "if")) {
        TRY(tparse_node(p, E_COND, p->now.line, &n));
        TRY(tparse_skip(p));
        n->cond.then = then;
        p->n_conditions++;
        TRY(parse_or(p, &n->cond.test));
        if (tparse_is_name(p, "else")) {
            TRY(tparse_skip(p));
            TRY(texpr_parse(p, true, &n->cond.otherwise));
        }
        p->n_conditions--;
        then = n;
    }
    tparse_leave(p);
    *ret = then;
    return IG_OK;
}

ig_status texpr_tuple(tparse *p, bool conditional, const char *stop, tnode **ret)
{
    AUTO(tgrow) items = {0};
    bool is_tuple = false;
    uint32_t line = p->now.line;
    tnode *n = NULL;
    for (;;) {
        bool end = p->now.kind == K_PRINT_END || p->now.kind == K_TAG_END || tparse_is(p, ")");
        if (end || (stop && tparse_is_name(p, stop))) break;
        TRY(texpr_parse(p, conditional, &n));
        TRY(tgrow_add(&items, n));
        if (!tparse_is(p, ",")) break;
        is_tuple = true;
        TRY(tparse_skip(p));
    }
    *ret = n;
    if (!is_tuple && items.n) return IG_OK;
    if (!items.n && !tparse_is(p, ")")) return tparse_fail(p, line, "expected an expression");
    TRY(tparse_node(p, E_TUPLE, line, &n));
    *ret = n;
    return tgrow_take(&items, p, &n->items);
}

static ig_status target_name(tparse *p, bool attributes, tnode **ret)
{
    static const char *const constants[] = {"true",  "false", "none", "True",
                                            "False", "None",  "loop"};
    tnode *n;
    str name = p->now.text;
    if (p->now.kind != K_NAME) return tparse_fail(p, p->now.line, "expected a name to assign to");
    for (size_t i = 0; i < N_ELEM(constants); i++)
        if (str_eq(name, str_of(constants[i])))
            return tparse_fail(p, p->now.line, "cannot assign to %s", constants[i]);
    TRY(tparse_node(p, E_NAME, p->now.line, &n));
    TRY(tparse_intern(p, name, &n->name));
    TRY(tparse_skip(p));
    *ret = n;
    if (!attributes || !tparse_is(p, ".")) return IG_OK;
    TRY(tparse_skip(p));
    uint32_t variable = n->name;
    n->kind = E_TARGET_ATTR;
    n->target.name = variable;
    TRY(tparse_text(p, p->now.text, &n->target.attr));
    return tparse_expect_name(p, NULL);
}

ig_status texpr_target(tparse *p, bool attributes, tnode **ret)
{
    AUTO(tgrow) items = {0};
    bool is_tuple = false;
    uint32_t line = p->now.line;
    tnode *n = NULL;
    TRY(tparse_enter(p));
    do {
        if (items.n) {
            is_tuple = true;
            TRY(tparse_skip(p));
            if (p->now.kind == K_TAG_END || tparse_is_name(p, "in") || tparse_is(p, ")") ||
                tparse_is(p, "="))
                break;
        }
        if (tparse_is(p, "(")) {
            TRY(tparse_skip(p));
            TRY(texpr_target(p, attributes, &n));
            TRY(tparse_expect(p, ")"));
        } else {
            TRY(target_name(p, attributes, &n));
        }
        TRY(tgrow_add(&items, n));
    } while (tparse_is(p, ","));
    tparse_leave(p);
    *ret = n;
    if (!is_tuple) return IG_OK;
    TRY(tparse_node(p, E_TUPLE, line, &n));
    *ret = n;
    return tgrow_take(&items, p, &n->items);
}

/* --- calls, filters, tests */

typedef struct growing_call {
    tgrow args, named;
    const tstr *names[64];
} growing_call;
static inline void growing_call_auto(growing_call *g)
{
    tgrow_auto(&g->args);
    tgrow_auto(&g->named);
}

static ig_status parse_argument(tparse *p, growing_call *g, tcall *c)
{
    tnode *n;
    bool star = tparse_is(p, "*"), star_star = tparse_is(p, "**");
    bool named =
        p->now.kind == K_NAME && p->next.kind == K_OPERATOR && str_eq(p->next.text, str_of("="));
    if (star || star_star || named) {
        if (c->star_star || (star && c->star))
            return tparse_fail(p, p->now.line, "invalid order of arguments in a call");
    } else if (c->star || c->star_star || g->named.n) {
        return tparse_fail(p, p->now.line, "a positional argument behind a named one");
    }
    if (named) {
        if (g->named.n == N_ELEM(g->names))
            return tparse_fail(p, p->now.line, "too many named arguments");
        TRY(tparse_text(p, p->now.text, &g->names[g->named.n]));
        TRY(tparse_skip(p));
    }
    if (star || star_star || named) TRY(tparse_skip(p));
    TRY(texpr_parse(p, true, &n));
    if (star) c->star = n;
    if (star_star) c->star_star = n;
    if (named) return tgrow_add(&g->named, n);
    return star || star_star ? IG_OK : tgrow_add(&g->args, n);
}

static ig_status parse_arguments(tparse *p, tcall *ret)
{
    AUTO(growing_call) g = {0};
    TRY(tparse_expect(p, "("));
    while (!tparse_is(p, ")")) {
        TRY(parse_argument(p, &g, ret));
        if (!tparse_is(p, ",")) break;
        TRY(tparse_skip(p));
    }
    TRY(tparse_expect(p, ")"));
    ret->names = arena_alloc(&p->t->memory, g.named.n, sizeof *ret->names);
    if (!ret->names) return p->t->memory.status;
    memcpy(ret->names, g.names, g.named.n * sizeof *ret->names);
    TRY(tgrow_take(&g.args, p, &ret->args));
    return tgrow_take(&g.named, p, &ret->named);
}

/* A filter's or test's name, which may have dots in it. */
static ig_status parse_dotted(tparse *p, tnode *n, bool filter)
{
    str name = p->now.text;
    TRY(tparse_expect_name(p, NULL));
    while (tparse_is(p, ".")) {
        TRY(tparse_skip(p));
        name.n = (size_t)(p->now.text.p + p->now.text.n - name.p);
        TRY(tparse_expect_name(p, NULL));
    }
    n->apply.row = filter ? tfilter_find(name) : ttest_find(name);
    if (n->apply.row < 0 && !p->n_conditions)
        return tparse_fail(p, n->line, "no %s named %.*s", filter ? "filter" : "test", (int)name.n,
                           name.p);
    return tparse_text(p, name, &n->apply.name);
}

ig_status texpr_filters(tparse *p, tnode *object, bool inline_first, tnode **ret)
{
    while (inline_first || tparse_is(p, "|")) {
        tnode *n;
        if (!inline_first) TRY(tparse_skip(p));
        inline_first = false;
        TRY(tparse_node(p, E_FILTER, p->now.line, &n));
        TRY(parse_dotted(p, n, true));
        if (tparse_is(p, "(")) TRY(parse_arguments(p, &n->apply.call));
        n->apply.object = object;
        object = n;
    }
    *ret = object;
    return IG_OK;
}

/* Does a test's only argument follow without parentheses? */
static bool bare_argument_here(const tparse *p)
{
    if (p->now.kind == K_NAME)
        return !tparse_is_name(p, "else") && !tparse_is_name(p, "or") && !tparse_is_name(p, "and");
    return p->now.kind == K_CONST || tparse_is(p, "[") || tparse_is(p, "{");
}

static ig_status parse_test(tparse *p, tnode *object, tnode **ret)
{
    AUTO(tgrow) args = {0};
    uint32_t line = p->now.line;
    tnode *n, *arg;
    TRY(tparse_skip(p));
    bool negated = tparse_is_name(p, "not");
    if (negated) TRY(tparse_skip(p));
    TRY(tparse_node(p, E_TEST, line, &n));
    n->apply.object = object;
    TRY(parse_dotted(p, n, false));
    if (tparse_is(p, "(")) {
        TRY(parse_arguments(p, &n->apply.call));
    } else if (bare_argument_here(p)) {
        if (tparse_is_name(p, "is"))
            return tparse_fail(p, p->now.line, "tests with is cannot be chained");
        TRY(parse_primary(p, &arg));
        TRY(parse_postfix(p, arg, &arg));
        TRY(tgrow_add(&args, arg));
        TRY(tgrow_take(&args, p, &n->apply.call.args));
    }
    *ret = n;
    return negated ? new_op(p, E_NOT, line, OP_POS, n, NULL, ret) : IG_OK;
}

static ig_status parse_call(tparse *p, tnode *callee, tnode **ret)
{
    tnode *n;
    TRY(tparse_node(p, E_CALL, p->now.line, &n));
    n->call.callee = callee;
    *ret = n;
    return parse_arguments(p, &n->call.call);
}

/* --- subscripts */

static ig_status parse_index(tparse *p, tnode **ret)
{
    tnode *n = NULL, *s;
    uint32_t line = p->now.line;
    if (!tparse_is(p, ":")) {
        TRY(texpr_parse(p, true, &n));
        *ret = n;
        if (!tparse_is(p, ":")) return IG_OK;
    }
    TRY(tparse_skip(p));
    TRY(tparse_node(p, E_SLICE, line, &s));
    s->slice.from = n;
    if (!tparse_is(p, ":") && !tparse_is(p, "]") && !tparse_is(p, ","))
        TRY(texpr_parse(p, true, &s->slice.to));
    if (tparse_is(p, ":")) {
        TRY(tparse_skip(p));
        if (!tparse_is(p, "]") && !tparse_is(p, ",")) TRY(texpr_parse(p, true, &s->slice.step));
    }
    *ret = s;
    return IG_OK;
}

static ig_status parse_subscript(tparse *p, tnode *object, tnode **ret)
{
    tnode *n;
    uint32_t line = p->now.line;
    bool dot = tparse_is(p, ".");
    TRY(tparse_skip(p));
    if (dot && p->now.kind == K_NAME) {
        TRY(tparse_node(p, E_ATTR, line, &n));
        n->attr.object = object;
        TRY(tparse_text(p, p->now.text, &n->attr.name));
        *ret = n;
        return tparse_skip(p);
    }
    TRY(tparse_node(p, E_ITEM, line, &n));
    n->item.object = object;
    *ret = n;
    if (dot) {
        if (p->now.kind != K_CONST || p->now.value.kind != T_INT)
            return tparse_fail(p, line, "expected a name or a number behind a dot");
        TRY(new_const(p, line, p->now.value, &n->item.index));
        return tparse_skip(p);
    }
    TRY(parse_index(p, &n->item.index));
    if (tparse_is(p, ",")) return tparse_fail(p, line, "an index with a comma is not supported");
    return tparse_expect(p, "]");
}

static ig_status parse_postfix(tparse *p, tnode *n, tnode **ret)
{
    for (;;) {
        if (tparse_is(p, ".") || tparse_is(p, "["))
            TRY(parse_subscript(p, n, &n));
        else if (tparse_is(p, "("))
            TRY(parse_call(p, n, &n));
        else
            break;
    }
    *ret = n;
    return IG_OK;
}

/* --- primaries */

static ig_status parse_name(tparse *p, tnode **ret)
{
    static const struct {
        const char *name;
        tkind kind;
        bool b;
    } constants[] = {
        {"true", T_BOOL, true},   {"True", T_BOOL, true},  {"false", T_BOOL, false},
        {"False", T_BOOL, false}, {"none", T_NONE, false}, {"None", T_NONE, false},
    };
    tnode *n;
    str name = p->now.text;
    for (size_t i = 0; i < N_ELEM(constants); i++) {
        if (!str_eq(name, str_of(constants[i].name))) continue;
        TRY(new_const(p, p->now.line, (tval){.kind = constants[i].kind, .b = constants[i].b}, ret));
        return tparse_skip(p);
    }
    TRY(tparse_node(p, E_NAME, p->now.line, &n));
    TRY(tparse_intern(p, name, &n->name));
    p->uses_varargs |= str_eq(name, str_of("varargs"));
    p->uses_kwargs |= str_eq(name, str_of("kwargs"));
    p->uses_caller |= str_eq(name, str_of("caller"));
    *ret = n;
    return tparse_skip(p);
}

/* A number, or strings next to each other as one. */
static ig_status parse_const(tparse *p, tnode **ret)
{
    tnode *n;
    TRY(new_const(p, p->now.line, p->now.value, &n));
    TRY(tparse_skip(p));
    while (n->constant.kind == T_STR && p->now.kind == K_CONST && p->now.value.kind == T_STR) {
        const tstr *a = n->constant.s, *b = p->now.value.s;
        char *joined = arena_alloc(&p->t->memory, a->n + b->n, 1);
        tstr *s = joined ? tstr_new(&p->t->memory, joined, a->n + b->n, true) : NULL;
        if (!s) return p->t->memory.status;
        memcpy(joined, a->p, a->n);
        memcpy(joined + a->n, b->p, b->n);
        tstr_chars(s);
        n->constant.s = s;
        TRY(tparse_skip(p));
    }
    *ret = n;
    return IG_OK;
}

static ig_status parse_list(tparse *p, tnode **ret)
{
    AUTO(tgrow) items = {0};
    tnode *n, *list;
    TRY(tparse_node(p, E_LIST, p->now.line, &list));
    TRY(tparse_skip(p));
    while (!tparse_is(p, "]")) {
        TRY(texpr_parse(p, true, &n));
        TRY(tgrow_add(&items, n));
        if (!tparse_is(p, ",")) break;
        TRY(tparse_skip(p));
    }
    *ret = list;
    TRY(tgrow_take(&items, p, &list->items));
    return tparse_expect(p, "]");
}

static ig_status parse_dict(tparse *p, tnode **ret)
{
    AUTO(tgrow) keys = {0}, values = {0};
    tnode *n, *dict;
    TRY(tparse_node(p, E_DICT, p->now.line, &dict));
    TRY(tparse_skip(p));
    while (!tparse_is(p, "}")) {
        TRY(texpr_parse(p, true, &n));
        TRY(tgrow_add(&keys, n));
        TRY(tparse_expect(p, ":"));
        TRY(texpr_parse(p, true, &n));
        TRY(tgrow_add(&values, n));
        if (!tparse_is(p, ",")) break;
        TRY(tparse_skip(p));
    }
    *ret = dict;
    TRY(tgrow_take(&keys, p, &dict->dict.keys));
    TRY(tgrow_take(&values, p, &dict->dict.values));
    return tparse_expect(p, "}");
}

static ig_status parse_primary(tparse *p, tnode **ret)
{
    if (p->now.kind == K_NAME) return parse_name(p, ret);
    if (p->now.kind == K_CONST) return parse_const(p, ret);
    if (tparse_is(p, "[")) return parse_list(p, ret);
    if (tparse_is(p, "{")) return parse_dict(p, ret);
    if (!tparse_is(p, "("))
        return tparse_fail(p, p->now.line, "expected an expression, found %.*s", (int)p->now.text.n,
                           p->now.text.p);
    TRY(tparse_skip(p));
    TRY(texpr_tuple(p, true, NULL, ret));
    return tparse_expect(p, ")");
}

static ig_status parse_unary(tparse *p, bool filters, tnode **ret)
{
    tnode *n;
    uint32_t line = p->now.line;
    bool minus = tparse_is(p, "-"), plus = tparse_is(p, "+");
    if (minus || plus) {
        TRY(tparse_enter(p));
        TRY(tparse_skip(p));
        TRY(parse_unary(p, false, &n));
        tparse_leave(p);
        TRY(new_op(p, E_UNARY, line, minus ? OP_NEG : OP_POS, n, NULL, &n));
    } else {
        TRY(parse_primary(p, &n));
    }
    TRY(parse_postfix(p, n, &n));
    while (filters) {
        if (tparse_is(p, "|"))
            TRY(texpr_filters(p, n, false, &n));
        else if (tparse_is_name(p, "is"))
            TRY(parse_test(p, n, &n));
        else if (tparse_is(p, "("))
            TRY(parse_call(p, n, &n));
        else
            break;
    }
    *ret = n;
    return IG_OK;
}
