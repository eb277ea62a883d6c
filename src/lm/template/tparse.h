/* tparse.h: shared by the two halves of the parser: statements (tparse.c) and expressions
 * (texpr.c). */
#ifndef LM_TEMPLATE_TPARSE_H
#define LM_TEMPLATE_TPARSE_H
#include "base/map.h"
#include "lm/template/tast.h"
#include "lm/template/tlex.h"

typedef struct tparse {
    template *t; /* being built */
    tlex lex;
    ttoken now, next; /* one token of look-ahead */
    map *names;       /* name to index */
    size_t cap_names;
    int depth;   /* nesting now */
    int n_loops; /* loops around this place within its function */
    /* Branches around this place: an unknown filter there fails only when reached. */
    int n_conditions;
    bool uses_varargs, uses_kwargs, uses_caller; /* seen in the macro being parsed */
} tparse;

/* A list that grows in the heap until it is moved into the arena. */
typedef struct tgrow {
    tnode **at; /* owned */
    size_t n, cap;
} tgrow;
static inline void tgrow_auto(tgrow *g) { mem_free(g->at); }
ig_status tgrow_add(tgrow *g, tnode *n);
ig_status tgrow_take(tgrow *g, tparse *p, tnodes *ret);

ig_status tparse_fail(const tparse *p, uint32_t line, const char *format, ...) IG_PRINTF(3, 4);
ig_status tparse_enter(tparse *p);
static inline void tparse_leave(tparse *p) { p->depth--; }
ig_status tparse_node(tparse *p, tnode_kind kind, uint32_t line, tnode **ret);
ig_status tparse_skip(tparse *p);                /* to the next token */
bool tparse_is(const tparse *p, const char *op); /* the current token is this operator */
bool tparse_is_name(const tparse *p, const char *name);
ig_status tparse_expect(tparse *p, const char *op);        /* an operator, and moves behind it */
ig_status tparse_expect_name(tparse *p, const char *name); /* NULL: any */
ig_status tparse_intern(tparse *p, str name, uint32_t *ret);
ig_status tparse_text(tparse *p, str s, const tstr **ret); /* borrows the bytes of the template */

/* texpr.c */
ig_status texpr_parse(tparse *p, bool conditional, tnode **ret);
/* Expressions with commas between them make a tuple; stops before the names in `stop` (may be
 * NULL). */
ig_status texpr_tuple(tparse *p, bool conditional, const char *stop, tnode **ret);
/* Names, tuples of them, or with `attributes` also x.y: what can be assigned to. */
ig_status texpr_target(tparse *p, bool attributes, tnode **ret);
/* `| a | b(x)` over object; with `inline_first` the first filter has no bar in front. */
ig_status texpr_filters(tparse *p, tnode *object, bool inline_first, tnode **ret);
#endif
