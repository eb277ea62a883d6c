/* trun.h: one rendering, shared by the files of the interpreter. */
#ifndef LM_TEMPLATE_TRUN_H
#define LM_TEMPLATE_TRUN_H
#include "lm/template.h"
#include "lm/template/tast.h"
#include "lm/template/tval.h"

/* Names bound in one block; look-ups go outward. */
typedef struct tscope {
    struct tscope *outer;
    struct tbinding {
        uint32_t name;
        tval value;
    } * bindings;
    uint32_t n, cap;
} tscope;

struct trun {
    const template *t;
    arena *a;               /* of all values */
    template_limits limits; /* no zeros */
    int64_t steps;          /* left */
    int32_t depth;          /* now */
    tscope *scope;          /* innermost */
    tbuild *out;            /* where output goes */
    struct tdate {
        int year, month, day, hour, minute, second;
    } date;
    bool has_date;
    bool located;           /* the error recorded names its line already */
    bool broken, continued; /* a loop is being left, or its next round begun */
    tval block;             /* text of the innermost filter or set block, for its filters */
    int64_t n_macros;       /* made so far; each keeps the scopes around it */
    json_t *parsed;         /* documents that from_json read, alive until the end */
};

struct tmacro {
    const tnode *node; /* S_MACRO or S_CALL */
    tscope *scope;     /* where it was defined */
};

/* Iterates a for statement's values, one ahead where loop.last or loop.nextitem asks. */
struct tloop {
    const tnode *node; /* S_FOR */
    tseq *source;
    size_t at;     /* next item of source */
    tscope *outer; /* the scope around the loop, for its filter */
    int64_t index0;
    int64_t length;              /* -1 until asked */
    tval before, current, after; /* after: T_MISSING while not looked at */
    bool at_end;                 /* looked ahead and found nothing */
    bool filtered;               /* source holds only what the filter let through */
    tval changed;                /* what changed() was last called with */
};

/* Arguments of a call as written. */
typedef struct targs {
    size_t n, n_named;
    tval *v; /* positional */
    const tstr **names;
    tval *named;
} targs;

/* --- trun.c: statements */
ig_status trun_run(trun *r, const tnodes *body);
ig_status trun_capture(trun *r, const tnodes *body,
                       tval *ret);                 /* what a body writes, as a string */
ig_status trun_push_scope(trun *r, tscope *outer); /* the caller puts r->scope back */
ig_status trun_bind(trun *r, tscope *s, uint32_t name, tval value);
ig_status trun_lookup(trun *r, uint32_t name, tval *ret);
/* Puts the place in front of the message of a failure, unless it has one; gives status back. */
ig_status trun_locate(trun *r, uint32_t line, ig_status status);
ig_status trun_loop_peek(trun *r, tloop *l, bool *ret_more);
ig_status trun_loop_length(trun *r, tloop *l, int64_t *ret);
/* Counts work, one step for 64: n bytes or items were looked at. */
ig_status trun_charge(trun *r, size_t n);
ig_status trun_enter(trun *r); /* one level deeper; every success needs a trun_leave */
static inline void trun_leave(trun *r) { r->depth--; }

/* --- teval.c: expressions */
ig_status trun_eval(trun *r, const tnode *n, tval *ret);
ig_status trun_eval_call(trun *r, const tnode *n, const tval *caller,
                         tval *ret); /* E_CALL; caller may be NULL */
ig_status trun_call(trun *r, tval callee, const targs *args, tval *ret);

/* --- targs.c: arguments to parameters. `params` is "a b c"; *out gets one value each, T_MISSING
 * where not given; the first n_needed must be. `what` names the callee. */
ig_status targs_bind(const targs *args, const char *what, const char *params, size_t n_needed,
                     tval *out);
ig_status targs_int(const char *what, tval v, int64_t dflt, int64_t *ret);
ig_status targs_str(trun *r, const char *what, tval v, const tstr **ret);

/* --- ttext.c: values as text */
ig_status ttext_str(trun *r, tbuild *b, tval v);       /* str(v) */
ig_status ttext_of(trun *r, tval v, const tstr **ret); /* str(v), flat */
ig_status ttext_repr(trun *r, tbuild *b, tval v);      /* repr(v) */
typedef struct ttext_json {
    bool ascii, sort_keys, pretty;
    const tstr *indent, *item, *colon;
} ttext_json;
ig_status ttext_tojson(trun *r, tbuild *b, tval v, const ttext_json *how);
ig_status ttext_escape(trun *r, const tstr *s, const tstr **ret); /* & < > ' " */
void ttext_float(double f, char out[32]);                         /* repr of a float */

/* --- toperate.c: operators */
ig_status toperate_binary(trun *r, toperator op, tval a, tval b, tval *ret);
ig_status toperate_unary(trun *r, toperator op, tval a, tval *ret);
ig_status toperate_concat(trun *r, const tstr *a, const tstr *b, const tstr **ret);
ig_status toperate_format(trun *r, const tstr *format, tval arguments, tval *ret); /* "%s" % x */

/* --- tattr.c: attributes and items */
ig_status tattr_get(trun *r, tval v, const tstr *name, tval *ret); /* v.name */
ig_status tattr_only(trun *r, tval v, const tstr *name,
                     tval *ret);                              /* v|attr(name): never an item */
ig_status tattr_item(trun *r, tval v, tval index, tval *ret); /* v[index] */
ig_status tattr_slice(trun *r, tval v, tval from, tval to, tval step,
                      tval *ret); /* T_NONE: left out */

/* --- tmethod.c, tstrmethod.c */
#define TMETHOD_MAX_ARGS 4
typedef struct tmethod_row {
    const char *name;
    ig_status (*call)(trun *r, tval self, const tval *v,
                      tval *ret); /* NULL: exists in Python, not here */
    const char *params; /* one value each in v; NULL: v is one tuple of all positional arguments */
    size_t n_needed;
    bool wraps;   /* on Markup: string arguments are escaped, the result is Markup */
    bool mutates; /* the sandbox hides it */
} tmethod_row;
struct tmethod {
    tval self;
    const tmethod_row *row;
};
extern const tmethod_row tstrmethod_rows[];
extern const size_t tstrmethod_n_rows;
const tmethod_row *tmethod_find(tval self, const tstr *name);
ig_status tmethod_call(trun *r, const tmethod *m, const targs *args, tval *ret);
ig_status tmethod_mark(trun *r, tval *v); /* makes a string, or the strings of a list, Markup */
/* Strings for methods and filters; everything here is flat. */
typedef enum tstrip { STRIP_LEFT = 1, STRIP_RIGHT = 2, STRIP_BOTH = 3 } tstrip;
ig_status tstrmethod_strip(trun *r, const tstr *s, const tstr *chars, tstrip sides,
                           tval *ret); /* chars NULL: white space */
ig_status tstrmethod_replace(trun *r, const tstr *s, const tstr *old, const tstr *new,
                             int64_t count, tval *ret);
ig_status tstrmethod_case(trun *r, const tstr *s, int how, tval *ret); /* a tcase */
ig_status tstrmethod_lines(trun *r, const tstr *s, bool keep_ends, tseq **ret);
ig_status tstrmethod_pad(trun *r, const tstr *s, int64_t width, const tstr *fill, tstrip side,
                         tval *ret);                 /* where the padding goes */
bool tstrmethod_has_case(const tstr *s, bool upper); /* isupper, islower */

/* --- tfilter.c, ttest.c, tglobal.c: tables by name; -1 where there is none */
int tfilter_find(str name);
ig_status tfilter_call(trun *r, int filter, tval v, const targs *args, tval *ret);
int ttest_find(str name);
ig_status ttest_call(trun *r, int test, tval v, const targs *args, bool *ret);
const tfunction *tglobal_find(str name);
ig_status tglobal_call(trun *r, const tfunction *f, const targs *args, tval *ret);
#endif
