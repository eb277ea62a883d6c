/* tast.h: a parsed template. Nodes live in the template's arena and never change after parsing. */
#ifndef LM_TEMPLATE_TAST_H
#define LM_TEMPLATE_TAST_H
#include "lm/template.h"
#include "lm/template/tval.h"

/* Deepest nesting that the parser follows; one level of a template is a few levels of C. */
#define TAST_MAX_DEPTH 200

typedef enum toperator {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOT_IN,
    OP_NEG,
    OP_POS
} toperator;

typedef enum tnode_kind {
    /* expressions */
    E_CONST,
    E_NAME,
    E_LIST,
    E_TUPLE,
    E_DICT,
    E_ATTR,
    E_ITEM,
    E_SLICE,
    E_CALL,
    E_FILTER,
    E_TEST,
    E_UNARY,
    E_BINARY,
    E_AND,
    E_OR,
    E_NOT,
    E_COND,
    E_CONCAT,
    E_COMPARE,
    E_TARGET_ATTR,
    /* statements */
    S_TEXT,
    S_PRINT,
    S_IF,
    S_FOR,
    S_SET,
    S_SET_BLOCK,
    S_MACRO,
    S_CALL,
    S_FILTER,
    S_WITH,
    S_SCOPE,
    S_BREAK,
    S_CONTINUE
} tnode_kind;

typedef struct tnode tnode;
typedef struct tnodes {
    tnode **at;
    size_t n;
} tnodes;

typedef struct tcall { /* arguments as written */
    tnodes args;
    tnodes named;
    const tstr **names;      /* of named */
    tnode *star, *star_star; /* *x, **x; NULL: absent */
} tcall;

typedef struct tparams { /* of a macro or call block */
    size_t n;
    uint32_t *names;
    tnodes defaults; /* of the last parameters */
    bool uses_varargs, uses_kwargs, uses_caller;
} tparams;

struct tnode {
    tnode_kind kind;
    uint32_t line; /* from 1 */
    union {
        tval constant;    /* E_CONST */
        const tstr *text; /* S_TEXT */
        uint32_t name;    /* E_NAME: index into names */
        tnodes items;     /* E_LIST, E_TUPLE, E_CONCAT */
        struct {
            tnodes keys, values;
        } dict;
        struct {
            tnode *object;
            const tstr *name;
        } attr; /* E_ATTR */
        struct {
            uint32_t name;
            const tstr *attr;
        } target; /* E_TARGET_ATTR */
        struct {
            tnode *object, *index;
        } item; /* E_ITEM */
        struct {
            tnode *from, *to, *step;
        } slice; /* NULL: left out */
        struct {
            tnode *callee;
            tcall call;
        } call; /* E_CALL */
        struct {
            tnode *object;
            int row;
            const tstr *name;
            tcall call;
        } apply; /* E_FILTER, E_TEST; row -1: unknown, an error when reached */
        struct {
            toperator op;
            tnode *a, *b;
        } op; /* E_UNARY, E_BINARY, E_AND, E_OR, E_NOT */
        struct {
            tnode *test, *then, *otherwise;
        } cond; /* E_COND; otherwise may be NULL */
        struct {
            tnode *first;
            toperator *ops;
            tnodes rest;
        } compare;
        tnode *print; /* S_PRINT */
        struct {
            tnodes tests;
            tnodes *bodies;
            tnodes otherwise;
        } branch; /* S_IF */
        struct {
            tnode *target, *iter, *filter;
            tnodes body, otherwise;
        } loop; /* S_FOR */
        struct {
            tnode *target, *value;
        } set; /* S_SET */
        struct {
            tnode *target;
            tnode *filter;
            tnodes body;
        } block; /* S_SET_BLOCK; S_FILTER without target */
        struct {
            uint32_t name;
            tparams params;
            tnodes body;
            tnode *call;
        } macro; /* S_MACRO; S_CALL: call is the call it serves */
        struct {
            tnodes targets, values, body;
        } with; /* S_WITH; S_SCOPE: body only */
    };
};

/* The innermost object of a chain of filters over a block is this node; it evaluates to the block's
 * text. */
#define TAST_NAME_BLOCK UINT32_MAX

struct template
{
    arena memory;
    tnodes body;
    const tstr **names;        /* every name that occurs, once */
    const tfunction **globals; /* what a name means where nothing binds it; NULL: undefined */
    uint32_t n_names;
    uint32_t loop, caller, varargs, kwargs; /* indices of these names */
    char *what;                             /* owned: names the template in errors */
};
#endif
