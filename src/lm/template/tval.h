/* tval.h: values of the template interpreter: Python's, as far as templates see them. All live in
 * the arena of one rendering and never change, except namespaces, generators (which are used up),
 * loops, cyclers and joiners. */
#ifndef LM_TEMPLATE_TVAL_H
#define LM_TEMPLATE_TVAL_H
#include <jansson.h>
#include "lm/template/tstr.h"

typedef struct trun trun; /* one rendering: trun.h */

typedef enum tkind {
    T_MISSING, /* an argument that was not given; no template ever sees it */
    T_UNDEFINED,
    T_NONE,
    T_BOOL,
    T_INT,
    T_FLOAT,
    T_STR,
    T_SEQ,
    T_DICT,
    T_NAMESPACE,
    T_MACRO,
    T_FUNCTION, /* a global function */
    T_METHOD,   /* a method of a value */
    T_LOOP,
    T_CYCLER,
    T_JOINER,
    N_TKINDS
} tkind;

typedef struct tseq tseq;
typedef struct tdict tdict;
typedef struct tspace tspace;
typedef struct tmacro tmacro;
typedef struct tmethod tmethod;
typedef struct tloop tloop;
typedef struct tcycler tcycler;
typedef struct tjoiner tjoiner;
typedef struct tfunction tfunction;
typedef struct tundefined tundefined;

typedef struct tval {
    tkind kind;
    bool trusted; /* of numbers: where their digits count as the template's */
    union {
        bool b;
        int64_t i;
        double f;
        const tstr *s;
        tseq *seq;
        tdict *dict;
        tspace *space;
        tmacro *macro;
        tmethod *method;
        tloop *loop;
        tcycler *cycler;
        tjoiner *joiner;
        const tfunction *function;
        const tundefined *undefined;
    };
} tval;

struct tundefined {
    const char *name; /* what was looked for; not NUL-terminated */
    size_t n_name;
    const char *owner; /* type of the object it was looked for in; NULL: a variable */
};

typedef enum tseq_kind { SEQ_LIST, SEQ_TUPLE, SEQ_RANGE, SEQ_VIEW, SEQ_GENERATOR } tseq_kind;
struct tseq {
    tseq_kind kind;
    bool trusted; /* its punctuation is the template's */
    size_t n;
    size_t at; /* generators: items used up */
    tval *items;
};

struct tdict {
    bool trusted;
    size_t n;
    tval *keys; /* in order of insertion; strings, numbers, bools, none */
    tval *values;
    /* Positions of the string keys, sorted by key; made at the first look-up of a large dict. */
    uint32_t *order;
    size_t n_order;
};

struct tspace { /* namespace(): the one thing a template can change */
    size_t n, cap;
    const tstr **names;
    tval *values;
};

struct tcycler {
    size_t n, at;
    const tval *items;
};
struct tjoiner {
    const tstr *separator;
    bool used;
};

static inline tval tval_none(void) { return (tval){.kind = T_NONE}; }
static inline tval tval_missing(void) { return (tval){.kind = T_MISSING}; }
static inline tval tval_bool(bool b) { return (tval){.kind = T_BOOL, .b = b}; }
static inline tval tval_int(int64_t i, bool trusted)
{
    return (tval){.kind = T_INT, .trusted = trusted, .i = i};
}
static inline tval tval_float(double f, bool trusted)
{
    return (tval){.kind = T_FLOAT, .trusted = trusted, .f = f};
}
static inline tval tval_str(const tstr *s) { return (tval){.kind = T_STR, .s = s}; }
static inline tval tval_seq(tseq *s) { return (tval){.kind = T_SEQ, .seq = s}; }
static inline tval tval_dict(tdict *d) { return (tval){.kind = T_DICT, .dict = d}; }
static inline bool tval_is_integral(tval v) { return v.kind == T_INT || v.kind == T_BOOL; }
static inline bool tval_is_number(tval v) { return tval_is_integral(v) || v.kind == T_FLOAT; }
static inline int64_t tval_integer(tval v) { return v.kind == T_BOOL ? v.b : v.i; }
static inline double tval_number(tval v)
{
    return v.kind == T_FLOAT ? v.f : (double)tval_integer(v);
}

/* Name of its Python type, for messages: "str", "dict", "undefined". */
const char *tval_type(tval v);
ig_status tval_undefined(trun *r, str name, const char *owner, tval *ret);
/* "'x' is undefined", or "'dict' has no attribute 'x'". */
ig_status tval_fail_undefined(tval v);

ig_status tval_new_str(trun *r, const char *p, size_t n, bool trusted, tval *ret);
/* A sequence of n unset items. */
ig_status tval_new_seq(trun *r, tseq_kind kind, size_t n, bool trusted, tseq **ret);
/* A dict with room for cap entries. */
ig_status tval_new_dict(trun *r, size_t cap, bool trusted, tdict **ret);
/* Adds or replaces an entry; there must be room. Fails where the key cannot be one. */
ig_status tval_dict_set(trun *r, tdict *d, tval key, tval value);
/* *ret is NULL when absent; an error where the key cannot be one. */
ig_status tval_dict_find(trun *r, tdict *d, tval key, const tval **ret);
ig_status tval_space_set(trun *r, tspace *s, const tstr *name, tval value);
const tval *tval_space_find(const tspace *s, const tstr *name);

/* JSON as values: strings are borrowed, everything is marked `trusted`. */
ig_status tval_of_json(trun *r, const json_t *j, bool trusted, tval *ret);

bool tval_truth(tval v);
/* Python's ==. */
ig_status tval_equal(trun *r, tval a, tval b, bool *ret);
/* Python's <, as -1, 0, 1, or 2 where one is NaN; a type error where the two do not compare. */
ig_status tval_order(trun *r, tval a, tval b, int *ret);
/* len(); a type error where there is none. */
ig_status tval_len(trun *r, tval v, int64_t *ret);
/* item in container */
ig_status tval_in(trun *r, tval item, tval container, bool *ret);
/* The items that iterating v gives, as a sequence that must not be changed. Uses up a generator. */
ig_status tval_iterate(trun *r, tval v, const tseq **ret);
bool tval_is_iterable(tval v);

/* Stable sort of n items by keys, ascending or descending, as sorted(key=..., reverse=...). */
ig_status tval_sort(trun *r, tval *items, const tval *keys, size_t n, bool reverse);
#endif
