/* tparse.c: statements, and the template as a whole. Tags that need other templates (include,
 * import, extends, block) are refused by name. */
#include "lm/template/tparse.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lm/template/trun.h"

#define MAX_MEMORY ((size_t)128 << 20)
#define MAX_NAMES 65536

ig_status tgrow_add(tgrow *g, tnode *n)
{
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 8;
        tnode **at = mem_realloc(g->at, cap * sizeof *at);
        if (!at) return IG_ENOMEM;
        g->at = at;
        g->cap = cap;
    }
    g->at[g->n++] = n;
    return IG_OK;
}

ig_status tgrow_take(tgrow *g, tparse *p, tnodes *ret)
{
    tnode **at = arena_alloc(&p->t->memory, g->n, sizeof *at);
    if (!at) return p->t->memory.status;
    if (g->n) memcpy(at, g->at, g->n * sizeof *at);
    *ret = (tnodes){at, g->n};
    g->n = 0;
    return IG_OK;
}

ig_status tparse_fail(const tparse *p, uint32_t line, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return ig_fail(IG_EFORMAT, "%s: line %u: %s", p->lex.what, line, message);
}

static ig_status unsupported(const tparse *p, uint32_t line, const char *what)
{
    return ig_fail(IG_EUNSUPPORTED, "%s: line %u: %s is not supported", p->lex.what, line, what);
}

ig_status tparse_enter(tparse *p)
{
    if (++p->depth > TAST_MAX_DEPTH)
        return ig_fail(IG_ELIMIT, "%s: line %u: nested more than %d deep", p->lex.what, p->now.line,
                       TAST_MAX_DEPTH);
    return IG_OK;
}

ig_status tparse_node(tparse *p, tnode_kind kind, uint32_t line, tnode **ret)
{
    tnode *n = arena_zero(&p->t->memory, 1, sizeof *n);
    if (!n) return p->t->memory.status;
    n->kind = kind;
    n->line = line;
    *ret = n;
    return IG_OK;
}

ig_status tparse_skip(tparse *p)
{
    p->now = p->next;
    return p->now.kind == K_END ? IG_OK : tlex_next(&p->lex, &p->next);
}

bool tparse_is(const tparse *p, const char *op)
{
    return p->now.kind == K_OPERATOR && str_eq(p->now.text, str_of(op));
}

bool tparse_is_name(const tparse *p, const char *name)
{
    return p->now.kind == K_NAME && str_eq(p->now.text, str_of(name));
}

ig_status tparse_expect(tparse *p, const char *op)
{
    if (!tparse_is(p, op))
        return tparse_fail(p, p->now.line, "expected %s, found %.*s", op, (int)p->now.text.n,
                           p->now.text.p);
    return tparse_skip(p);
}

ig_status tparse_expect_name(tparse *p, const char *name)
{
    if (p->now.kind != K_NAME || (name && !tparse_is_name(p, name)))
        return tparse_fail(p, p->now.line, "expected %s, found %.*s", name ? name : "a name",
                           (int)p->now.text.n, p->now.text.p);
    return tparse_skip(p);
}

ig_status tparse_text(tparse *p, str s, const tstr **ret)
{
    tstr *t = tstr_new(&p->t->memory, s.p, s.n, true);
    if (!t) return p->t->memory.status;
    tstr_chars(t); /* counted now: constants are shared by threads */
    *ret = t;
    return IG_OK;
}

ig_status tparse_intern(tparse *p, str name, uint32_t *ret)
{
    template *t = p->t;
    int64_t index;
    if (map_get(p->names, name, &index)) {
        *ret = (uint32_t)index;
        return IG_OK;
    }
    if (t->n_names ==
        p->cap_names) { /* the old arrays stay in the arena: together as large again */
        size_t cap = p->cap_names ? 2 * p->cap_names : 64;
        const tstr **names = arena_alloc(&t->memory, cap, sizeof *names);
        const tfunction **globals = arena_alloc(&t->memory, cap, sizeof *globals);
        if (!names || !globals) return t->memory.status;
        if (t->n_names) memcpy(names, t->names, t->n_names * sizeof *names);
        if (t->n_names) memcpy(globals, t->globals, t->n_names * sizeof *globals);
        t->names = names;
        t->globals = globals;
        p->cap_names = cap;
    }
    TRY(tparse_text(p, name, &t->names[t->n_names]));
    t->globals[t->n_names] = tglobal_find(name);
    TRY(map_put(p->names, name, t->n_names, NULL));
    *ret = t->n_names++;
    return IG_OK;
}

static ig_status parse_body(tparse *p, const char *const *ends, tnodes *ret);

/* `%}`, statements up to one of the tags in `ends`; the current token is then that tag's name. */
static ig_status parse_block(tparse *p, const char *const *ends, tnodes *ret)
{
    if (tparse_is(p, ":")) TRY(tparse_skip(p));
    if (p->now.kind != K_TAG_END)
        return tparse_fail(p, p->now.line, "expected %%}, found %.*s", (int)p->now.text.n,
                           p->now.text.p);
    TRY(tparse_skip(p));
    return parse_body(p, ends, ret);
}

#define ENDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static ig_status parse_if(tparse *p, tnode **ret)
{
    AUTO(tgrow) tests = {0}, bodies = {0}; /* a body travels as a S_SCOPE node */
    tnode *n = NULL, *test = NULL, *body = NULL;
    TRY(tparse_node(p, S_IF, p->now.line, &n));
    p->n_conditions++;
    do {
        TRY(tparse_skip(p));
        TRY(texpr_tuple(p, false, NULL, &test));
        TRY(tgrow_add(&tests, test));
        TRY(tparse_node(p, S_SCOPE, p->now.line, &body));
        TRY(parse_block(p, ENDS("elif", "else", "endif"), &body->with.body));
        TRY(tgrow_add(&bodies, body));
    } while (tparse_is_name(p, "elif"));
    if (tparse_is_name(p, "else")) {
        TRY(tparse_skip(p));
        TRY(parse_block(p, ENDS("endif"), &n->branch.otherwise));
    }
    p->n_conditions--;
    n->branch.bodies = arena_alloc(&p->t->memory, bodies.n, sizeof *n->branch.bodies);
    if (!n->branch.bodies) return p->t->memory.status;
    for (size_t i = 0; i < bodies.n; i++) n->branch.bodies[i] = bodies.at[i]->with.body;
    TRY(tgrow_take(&tests, p, &n->branch.tests));
    *ret = n;
    return tparse_skip(p);
}

static ig_status parse_for(tparse *p, tnode **ret)
{
    tnode *n = NULL;
    TRY(tparse_node(p, S_FOR, p->now.line, &n));
    TRY(tparse_skip(p));
    TRY(texpr_target(p, false, &n->loop.target));
    TRY(tparse_expect_name(p, "in"));
    TRY(texpr_tuple(p, false, "recursive", &n->loop.iter));
    if (tparse_is_name(p, "if")) {
        TRY(tparse_skip(p));
        TRY(texpr_parse(p, true, &n->loop.filter));
    }
    if (tparse_is_name(p, "recursive")) return unsupported(p, n->line, "a recursive loop");
    p->n_loops++;
    TRY(parse_block(p, ENDS("else", "endfor"), &n->loop.body));
    p->n_loops--;
    if (tparse_is_name(p, "else")) {
        TRY(tparse_skip(p));
        TRY(parse_block(p, ENDS("endfor"), &n->loop.otherwise));
    }
    *ret = n;
    return tparse_skip(p);
}

static ig_status parse_set(tparse *p, tnode **ret)
{
    tnode *n = NULL, *target = NULL, *text = NULL;
    uint32_t line = p->now.line;
    TRY(tparse_skip(p));
    TRY(texpr_target(p, true, &target));
    bool plain = tparse_is(p, "=");
    TRY(tparse_node(p, plain ? S_SET : S_SET_BLOCK, line, &n));
    *ret = n;
    if (plain) {
        n->set.target = target;
        TRY(tparse_skip(p));
        return texpr_tuple(p, true, NULL, &n->set.value);
    }
    n->block.target = target;
    TRY(tparse_node(p, E_NAME, line, &text));
    text->name = TAST_NAME_BLOCK;
    TRY(texpr_filters(p, text, false, &n->block.filter));
    TRY(parse_block(p, ENDS("endset"), &n->block.body));
    return tparse_skip(p);
}

static ig_status parse_filter_block(tparse *p, tnode **ret)
{
    tnode *n = NULL, *text = NULL;
    TRY(tparse_node(p, S_FILTER, p->now.line, &n));
    TRY(tparse_node(p, E_NAME, p->now.line, &text));
    text->name = TAST_NAME_BLOCK;
    TRY(tparse_skip(p));
    TRY(texpr_filters(p, text, true, &n->block.filter));
    TRY(parse_block(p, ENDS("endfilter"), &n->block.body));
    *ret = n;
    return tparse_skip(p);
}

/* (a, b=1) of a macro or call block. */
static ig_status parse_signature(tparse *p, tparams *ret)
{
    AUTO(tgrow) names = {0}, defaults = {0};
    tnode *n = NULL;
    TRY(tparse_expect(p, "("));
    while (!tparse_is(p, ")")) {
        if (names.n) TRY(tparse_expect(p, ","));
        if (p->now.kind != K_NAME)
            return tparse_fail(p, p->now.line, "expected the name of a parameter");
        TRY(tparse_node(p, E_NAME, p->now.line, &n));
        TRY(tparse_intern(p, p->now.text, &n->name));
        TRY(tparse_skip(p));
        TRY(tgrow_add(&names, n));
        if (tparse_is(p, "=")) {
            TRY(tparse_skip(p));
            TRY(texpr_parse(p, true, &n));
            TRY(tgrow_add(&defaults, n));
        } else if (defaults.n) {
            return tparse_fail(p, p->now.line,
                               "a parameter without default behind one with a default");
        }
    }
    ret->n = names.n;
    ret->names = arena_alloc(&p->t->memory, names.n, sizeof *ret->names);
    if (!ret->names) return p->t->memory.status;
    for (size_t i = 0; i < names.n; i++) ret->names[i] = names.at[i]->name;
    TRY(tgrow_take(&defaults, p, &ret->defaults));
    return tparse_skip(p);
}

/* The body of a macro or call block, which is a function of its own: no break out of it. */
static ig_status parse_function(tparse *p, tnode *n, const char *end)
{
    bool varargs = p->uses_varargs, kwargs = p->uses_kwargs, caller = p->uses_caller;
    int n_loops = p->n_loops;
    p->uses_varargs = p->uses_kwargs = p->uses_caller = false;
    p->n_loops = 0;
    TRY(parse_block(p, ENDS(end), &n->macro.body));
    n->macro.params.uses_varargs = p->uses_varargs;
    n->macro.params.uses_kwargs = p->uses_kwargs;
    n->macro.params.uses_caller = p->uses_caller;
    p->uses_varargs |= varargs;
    p->uses_kwargs |= kwargs;
    p->uses_caller |= caller;
    p->n_loops = n_loops;
    return tparse_skip(p);
}

static ig_status parse_macro(tparse *p, tnode **ret)
{
    tnode *n = NULL;
    TRY(tparse_node(p, S_MACRO, p->now.line, &n));
    TRY(tparse_skip(p));
    if (p->now.kind != K_NAME) return tparse_fail(p, n->line, "expected the name of a macro");
    TRY(tparse_intern(p, p->now.text, &n->macro.name));
    TRY(tparse_skip(p));
    TRY(parse_signature(p, &n->macro.params));
    *ret = n;
    return parse_function(p, n, "endmacro");
}

static ig_status parse_call_block(tparse *p, tnode **ret)
{
    tnode *n = NULL;
    TRY(tparse_node(p, S_CALL, p->now.line, &n));
    TRY(tparse_intern(p, str_of("caller"), &n->macro.name));
    TRY(tparse_skip(p));
    if (tparse_is(p, "(")) TRY(parse_signature(p, &n->macro.params));
    TRY(texpr_parse(p, true, &n->macro.call));
    if (n->macro.call->kind != E_CALL)
        return tparse_fail(p, n->line, "expected a call in a call block");
    *ret = n;
    return parse_function(p, n, "endcall");
}

static ig_status parse_with(tparse *p, tnode **ret)
{
    AUTO(tgrow) targets = {0}, values = {0};
    tnode *n = NULL, *e = NULL;
    TRY(tparse_node(p, S_WITH, p->now.line, &n));
    TRY(tparse_skip(p));
    while (p->now.kind != K_TAG_END) {
        if (targets.n) TRY(tparse_expect(p, ","));
        TRY(texpr_target(p, false, &e));
        TRY(tgrow_add(&targets, e));
        TRY(tparse_expect(p, "="));
        TRY(texpr_parse(p, true, &e));
        TRY(tgrow_add(&values, e));
    }
    TRY(tgrow_take(&targets, p, &n->with.targets));
    TRY(tgrow_take(&values, p, &n->with.values));
    TRY(parse_block(p, ENDS("endwith"), &n->with.body));
    *ret = n;
    return tparse_skip(p);
}

/* {% generation %} marks the assistant's text for training; for rendering it is a scope. */
static ig_status parse_generation(tparse *p, tnode **ret)
{
    tnode *n = NULL;
    int n_loops = p->n_loops;
    TRY(tparse_node(p, S_SCOPE, p->now.line, &n));
    TRY(tparse_skip(p));
    p->n_loops = 0;
    TRY(parse_block(p, ENDS("endgeneration"), &n->with.body));
    p->n_loops = n_loops;
    *ret = n;
    return tparse_skip(p);
}

static ig_status parse_jump(tparse *p, tnode **ret)
{
    bool is_break = tparse_is_name(p, "break");
    if (!p->n_loops)
        return tparse_fail(p, p->now.line, "%s outside a loop", is_break ? "break" : "continue");
    TRY(tparse_node(p, is_break ? S_BREAK : S_CONTINUE, p->now.line, ret));
    return tparse_skip(p);
}

static ig_status parse_print_tag(tparse *p, tnode **ret)
{
    TRY(tparse_node(p, S_PRINT, p->now.line, ret));
    TRY(tparse_skip(p));
    return texpr_parse(p, true, &(*ret)->print);
}

/* At the name of a tag; ends in front of its `%}`. */
static ig_status parse_statement(tparse *p, tnode **ret)
{
    static const struct {
        const char *tag;
        ig_status (*parse)(tparse *, tnode **);
    } tags[] = {
        {"if", parse_if},           {"for", parse_for},
        {"set", parse_set},         {"macro", parse_macro},
        {"call", parse_call_block}, {"filter", parse_filter_block},
        {"with", parse_with},       {"generation", parse_generation},
        {"break", parse_jump},      {"continue", parse_jump},
        {"print", parse_print_tag},
    };
    static const char *const refused[] = {"include", "import",     "from", "extends",
                                          "block",   "autoescape", "do",   "trans"};
    if (p->now.kind != K_NAME) return tparse_fail(p, p->now.line, "expected the name of a tag");
    for (size_t i = 0; i < N_ELEM(tags); i++)
        if (tparse_is_name(p, tags[i].tag)) return tags[i].parse(p, ret);
    for (size_t i = 0; i < N_ELEM(refused); i++)
        if (tparse_is_name(p, refused[i])) return unsupported(p, p->now.line, refused[i]);
    return tparse_fail(p, p->now.line, "unknown tag %.*s, or one that closes what is not open",
                       (int)p->now.text.n, p->now.text.p);
}

static bool is_end(const tparse *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (tparse_is_name(p, *ends)) return true;
    return false;
}

static ig_status parse_tag(tparse *p, tnode **ret)
{
    TRY(tparse_enter(p));
    TRY(parse_statement(p, ret));
    tparse_leave(p);
    if (p->now.kind != K_TAG_END)
        return tparse_fail(p, p->now.line, "expected %%}, found %.*s", (int)p->now.text.n,
                           p->now.text.p);
    return tparse_skip(p);
}

static ig_status parse_print(tparse *p, tnode **ret)
{
    TRY(tparse_node(p, S_PRINT, p->now.line, ret));
    TRY(tparse_skip(p));
    TRY(texpr_tuple(p, true, NULL, &(*ret)->print));
    if (p->now.kind != K_PRINT_END)
        return tparse_fail(p, p->now.line, "expected }}, found %.*s", (int)p->now.text.n,
                           p->now.text.p);
    return tparse_skip(p);
}

static ig_status parse_body(tparse *p, const char *const *ends, tnodes *ret)
{
    AUTO(tgrow) body = {0};
    while (p->now.kind != K_END) {
        tnode *n;
        if (p->now.kind == K_DATA) {
            TRY(tparse_node(p, S_TEXT, p->now.line, &n));
            n->text = p->now.value.s;
            TRY(tparse_skip(p));
        } else if (p->now.kind == K_PRINT_BEGIN) {
            TRY(parse_print(p, &n));
        } else {
            TRY(tparse_skip(p));
            if (is_end(p, ends)) return tgrow_take(&body, p, ret);
            TRY(parse_tag(p, &n));
        }
        TRY(tgrow_add(&body, n));
    }
    if (!ends) return tgrow_take(&body, p, ret);
    while (ends[1]) ends++; /* the last one closes the block */
    return tparse_fail(p, p->now.line, "the template ends where {%% %s %%} should close a block",
                       *ends);
}

static ig_status parse(template *t, str text)
{
    AUTO(map_ptr) names = NULL;
    TRY(map_new(MAX_NAMES, &names));
    tparse p = {.t = t, .names = names};
    TRY(tparse_intern(&p, str_of("loop"), &t->loop));
    TRY(tparse_intern(&p, str_of("caller"), &t->caller));
    TRY(tparse_intern(&p, str_of("varargs"), &t->varargs));
    TRY(tparse_intern(&p, str_of("kwargs"), &t->kwargs));
    TRY(tlex_open(&p.lex, t->what, text, &t->memory));
    TRY(tlex_next(&p.lex, &p.now));
    if (p.now.kind == K_END)
        p.next = p.now;
    else
        TRY(tlex_next(&p.lex, &p.next));
    return parse_body(&p, NULL, &t->body);
}

ig_status template_parse(const char *what, str text, template **ret_template)
{
    AUTO(template_ptr) t = mem_calloc(1, sizeof *t);
    if (!t) return IG_ENOMEM;
    arena_init(&t->memory, MAX_MEMORY);
    t->what = mem_strdup(what);
    if (!t->what) return IG_ENOMEM;
    TRY(parse(t, text));
    *ret_template = STEAL(t);
    return IG_OK;
}

void template_free(template *t)
{
    if (!t) return;
    arena_done(&t->memory);
    mem_free(t->what);
    mem_free(t);
}

bool template_mentions(const template *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_names; i++)
        if (tstr_is(t->names[i], name)) return true;
    return false;
}
