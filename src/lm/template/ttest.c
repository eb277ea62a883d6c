/* ttest.c: the tests behind `is`, as jinja2/tests.py has them. */
#include <string.h>
#include "lm/template/trun.h"

typedef struct ttest_row {
    const char *name;
    ig_status (*call)(trun *r, tval v, const tval *a, bool *ret);
    const char *params;
} ttest_row;

#define KIND_TEST(name, expression)                                  \
    static ig_status name(trun *r, tval v, const tval *a, bool *ret) \
    {                                                                \
        (void)r, (void)a;                                            \
        *ret = (expression);                                         \
        return IG_OK;                                                \
    }
KIND_TEST(is_defined, v.kind != T_UNDEFINED)
KIND_TEST(is_undefined, v.kind == T_UNDEFINED)
KIND_TEST(is_none, v.kind == T_NONE)
KIND_TEST(is_boolean, v.kind == T_BOOL)
KIND_TEST(is_true, v.kind == T_BOOL && v.b)
KIND_TEST(is_false, v.kind == T_BOOL && !v.b)
KIND_TEST(is_integer, v.kind == T_INT)
KIND_TEST(is_float, v.kind == T_FLOAT)
KIND_TEST(is_number, tval_is_number(v))
KIND_TEST(is_string, v.kind == T_STR)
KIND_TEST(is_mapping, v.kind == T_DICT)
KIND_TEST(is_iterable, tval_is_iterable(v))
/* what has a length and takes an index; jinja's Undefined says yes to both */
KIND_TEST(is_sequence, v.kind == T_STR || v.kind == T_DICT || v.kind == T_UNDEFINED ||
                           (v.kind == T_SEQ && v.seq->kind <= SEQ_RANGE))
KIND_TEST(is_callable, v.kind == T_MACRO || v.kind == T_FUNCTION || v.kind == T_METHOD ||
                           v.kind == T_JOINER || v.kind == T_UNDEFINED)
KIND_TEST(is_escaped, v.kind == T_STR && v.s->markup)

/* v % n == rest */
static ig_status leaves(trun *r, tval v, tval n, int64_t rest, bool *ret)
{
    tval m;
    TRY(toperate_binary(r, OP_MOD, v, n, &m));
    return tval_equal(r, m, tval_int(rest, true), ret);
}

static ig_status is_odd(trun *r, tval v, const tval *a, bool *ret)
{
    return (void)a, leaves(r, v, tval_int(2, true), 1, ret);
}
static ig_status is_even(trun *r, tval v, const tval *a, bool *ret)
{
    return (void)a, leaves(r, v, tval_int(2, true), 0, ret);
}
static ig_status is_divisible(trun *r, tval v, const tval *a, bool *ret)
{
    return leaves(r, v, a[0], 0, ret);
}

static ig_status has_case(trun *r, tval v, bool upper, bool *ret)
{
    const tstr *s;
    TRY(ttext_of(r, v, &s));
    *ret = tstrmethod_has_case(s, upper);
    return trun_charge(r, 4 * s->n);
}

static ig_status is_lower(trun *r, tval v, const tval *a, bool *ret)
{
    return (void)a, has_case(r, v, false, ret);
}
static ig_status is_upper(trun *r, tval v, const tval *a, bool *ret)
{
    return (void)a, has_case(r, v, true, ret);
}

static ig_status is_filter(trun *r, tval v, const tval *a, bool *ret)
{
    (void)a;
    *ret = false;
    if (v.kind != T_STR) return IG_OK;
    TRY(tstr_flatten(r->a, v.s));
    *ret = tfilter_find(tstr_bytes(v.s)) >= 0;
    return IG_OK;
}

static ig_status is_test(trun *r, tval v, const tval *a, bool *ret)
{
    (void)a;
    *ret = false;
    if (v.kind != T_STR) return IG_OK;
    TRY(tstr_flatten(r->a, v.s));
    *ret = ttest_find(tstr_bytes(v.s)) >= 0;
    return IG_OK;
}

/* Python's `is`: exact for none, booleans and containers; numbers and strings count as the same
 * object when they are equal, where Python promises nothing. */
static ig_status is_same(trun *r, tval v, const tval *a, bool *ret)
{
    *ret = v.kind == a[0].kind;
    if (!*ret) return IG_OK;
    if (v.kind == T_SEQ || v.kind == T_DICT) {
        *ret = v.seq == a[0].seq;
        return IG_OK;
    }
    return tval_equal(r, v, a[0], ret);
}

static ig_status is_in(trun *r, tval v, const tval *a, bool *ret)
{
    return tval_in(r, v, a[0], ret);
}
static ig_status is_eq(trun *r, tval v, const tval *a, bool *ret)
{
    return tval_equal(r, v, a[0], ret);
}

static ig_status is_ne(trun *r, tval v, const tval *a, bool *ret)
{
    TRY(tval_equal(r, v, a[0], ret));
    *ret = !*ret;
    return IG_OK;
}

/* The order of v and a[0] is one of two. */
static ig_status ordered(trun *r, tval v, const tval *a, int one, int other, bool *ret)
{
    int c;
    TRY(tval_order(r, v, a[0], &c));
    *ret = c == one || c == other;
    return IG_OK;
}

static ig_status is_lt(trun *r, tval v, const tval *a, bool *ret)
{
    return ordered(r, v, a, -1, -1, ret);
}
static ig_status is_le(trun *r, tval v, const tval *a, bool *ret)
{
    return ordered(r, v, a, -1, 0, ret);
}
static ig_status is_gt(trun *r, tval v, const tval *a, bool *ret)
{
    return ordered(r, v, a, 1, 1, ret);
}
static ig_status is_ge(trun *r, tval v, const tval *a, bool *ret)
{
    return ordered(r, v, a, 1, 0, ret);
}

static const ttest_row rows[] = {
    {"!=", is_ne, "other"},
    {"<", is_lt, "other"},
    {"<=", is_le, "other"},
    {"==", is_eq, "other"},
    {">", is_gt, "other"},
    {">=", is_ge, "other"},
    {"boolean", is_boolean, ""},
    {"callable", is_callable, ""},
    {"defined", is_defined, ""},
    {"divisibleby", is_divisible, "num"},
    {"eq", is_eq, "other"},
    {"equalto", is_eq, "other"},
    {"escaped", is_escaped, ""},
    {"even", is_even, ""},
    {"false", is_false, ""},
    {"filter", is_filter, ""},
    {"float", is_float, ""},
    {"ge", is_ge, "other"},
    {"greaterthan", is_gt, "other"},
    {"gt", is_gt, "other"},
    {"in", is_in, "seq"},
    {"integer", is_integer, ""},
    {"iterable", is_iterable, ""},
    {"le", is_le, "other"},
    {"lessthan", is_lt, "other"},
    {"lower", is_lower, ""},
    {"lt", is_lt, "other"},
    {"mapping", is_mapping, ""},
    {"ne", is_ne, "other"},
    {"none", is_none, ""},
    {"number", is_number, ""},
    {"odd", is_odd, ""},
    {"sameas", is_same, "other"},
    {"sequence", is_sequence, ""},
    {"string", is_string, ""},
    {"test", is_test, ""},
    {"true", is_true, ""},
    {"undefined", is_undefined, ""},
    {"upper", is_upper, ""},
};

int ttest_find(str name)
{
    for (size_t i = 0; i < N_ELEM(rows); i++)
        if (str_eq(name, str_of(rows[i].name))) return (int)i;
    return -1;
}

ig_status ttest_call(trun *r, int test, tval v, const targs *args, bool *ret)
{
    tval a[1] = {{0}}; /* T_MISSING */
    TRY(targs_bind(args, rows[test].name, rows[test].params, *rows[test].params != 0, a));
    return rows[test].call(r, v, a, ret);
}
