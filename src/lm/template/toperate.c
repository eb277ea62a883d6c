/* toperate.c: arithmetic with Python's meanings. Integers have 64 bits: what Python would make
 * longer is an error. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "lm/template/trun.h"

static const char *const symbols[] = {"+", "-", "*", "/", "//", "%", "**"};

static ig_status wrong_types(toperator op, tval a, tval b)
{
    return ig_fail(IG_EINVAL, "%s does not work on a %s and a %s", symbols[op], tval_type(a),
                   tval_type(b));
}

static bool trusted_number(tval v) { return v.kind == T_BOOL || v.trusted; }

static bool int_power(int64_t a, int64_t n, int64_t *ret)
{
    int64_t result = 1;
    for (;;) { /* by squares; the last square is not needed and may not fit */
        if (n & 1 && __builtin_mul_overflow(result, a, &result)) return false;
        n >>= 1;
        if (!n) break;
        if (__builtin_mul_overflow(a, a, &a)) return false;
    }
    *ret = result;
    return true;
}

/* Rounds down; b is not 0. False where the result does not fit. */
static bool int_floor(int64_t a, int64_t b, int64_t *ret_quotient, int64_t *ret_rest)
{
    if (b == -1) {
        *ret_rest = 0;
        return !__builtin_sub_overflow((int64_t)0, a, ret_quotient);
    }
    *ret_quotient = a / b - (a % b != 0 && (a < 0) != (b < 0));
    *ret_rest = a - *ret_quotient * b;
    return true;
}

static ig_status divided_by_zero(void) { return ig_fail(IG_EINVAL, "division by zero"); }

static ig_status operate_ints(toperator op, int64_t a, int64_t b, bool trusted, tval *ret)
{
    int64_t i = 0, rest = 0;
    bool fits = true;
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD)) return divided_by_zero();
    switch (op) {
    case OP_ADD: fits = !__builtin_add_overflow(a, b, &i); break;
    case OP_SUB: fits = !__builtin_sub_overflow(a, b, &i); break;
    case OP_MUL: fits = !__builtin_mul_overflow(a, b, &i); break;
    case OP_FLOORDIV: fits = int_floor(a, b, &i, &rest); break;
    case OP_MOD: fits = int_floor(a, b, &rest, &i); break;
    case OP_POW: fits = int_power(a, b, &i); break;
    default: /* OP_DIV */ *ret = tval_float((double)a / (double)b, trusted); return IG_OK;
    }
    if (!fits) return ig_fail(IG_ELIMIT, "the result of %s does not fit into 64 bits", symbols[op]);
    *ret = tval_int(i, trusted);
    return IG_OK;
}

/* CPython's float_divmod. */
static void float_floor(double a, double b, double *ret_quotient, double *ret_rest)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
            rest += b;
            quotient -= 1;
        }
    } else {
        rest = copysign(0.0, b);
    }
    if (quotient != 0) {
        double down = floor(quotient);
        quotient = quotient - down > 0.5 ? down + 1 : down;
    } else {
        quotient = copysign(0.0, a / b);
    }
    *ret_quotient = quotient;
    *ret_rest = rest;
}

static ig_status operate_floats(toperator op, double a, double b, bool trusted, tval *ret)
{
    double f = 0, quotient, rest;
    if (b == 0 && (op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD)) return divided_by_zero();
    float_floor(a, b != 0 ? b : 1, &quotient, &rest);
    switch (op) {
    case OP_ADD: f = a + b; break;
    case OP_SUB: f = a - b; break;
    case OP_MUL: f = a * b; break;
    case OP_DIV: f = a / b; break;
    case OP_FLOORDIV: f = quotient; break;
    case OP_MOD: f = rest; break;
    default:
        if ((a == 0 && b < 0) || (a < 0 && b != floor(b)))
            return ig_fail(IG_EINVAL, "%g ** %g is not a real number", a, b);
        f = pow(a, b);
        if (isinf(f) && isfinite(a) && isfinite(b))
            return ig_fail(IG_EINVAL, "%g ** %g is too large", a, b);
    }
    *ret = tval_float(f, trusted);
    return IG_OK;
}

ig_status toperate_concat(trun *r, const tstr *a, const tstr *b, const tstr **ret)
{
    if (a->n + b->n > r->limits.max_output)
        return ig_fail(IG_ELIMIT, "a string of more than %zu bytes", r->limits.max_output);
    *ret = !a->n ? b : !b->n ? a : tstr_concat(r->a, a, b);
    return *ret ? IG_OK : r->a->status;
}

/* +; Markup and str together escape the str. */
static ig_status add_strs(trun *r, const tstr *a, const tstr *b, tval *ret)
{
    bool markup = a->markup || b->markup;
    if (markup && !a->markup) TRY(ttext_escape(r, a, &a));
    if (markup && !b->markup) TRY(ttext_escape(r, b, &b));
    tstr *s = tstr_concat(r->a, a, b);
    if (!s) return r->a->status;
    if (s->n > r->limits.max_output)
        return ig_fail(IG_ELIMIT, "a string of more than %zu bytes", r->limits.max_output);
    s->markup = markup;
    *ret = tval_str(s);
    return IG_OK;
}

static ig_status join_seqs(trun *r, const tseq *a, const tseq *b, tval *ret)
{
    tseq *s;
    TRY(tval_new_seq(r, a->kind, a->n + b->n, a->trusted && b->trusted, &s));
    if (a->n) memcpy(s->items, a->items, a->n * sizeof *s->items);
    if (b->n) memcpy(s->items + a->n, b->items, b->n * sizeof *s->items);
    *ret = tval_seq(s);
    return IG_OK;
}

static ig_status repeat_str(trun *r, const tstr *s, int64_t n, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    TRY(tstr_flatten(r->a, s));
    if (n > 0 && s->n > r->limits.max_output / (size_t)n)
        return ig_fail(IG_ELIMIT, "a string of more than %zu bytes", r->limits.max_output);
    tbuild_init(&b, r->limits.max_output);
    if (s->n && n > 0) TRY(trun_charge(r, s->n * (size_t)n + (size_t)n));
    for (int64_t i = 0; i < n && s->n; i++) tbuild_sub(&b, s, 0, s->n);
    TRY(tbuild_take(&b, r->a, &made));
    ((tstr *)made)->markup = s->markup; /* just made */
    *ret = tval_str(made);
    return IG_OK;
}

static ig_status repeat_seq(trun *r, const tseq *s, int64_t n, tval *ret)
{
    tseq *made;
    size_t total;
    if (n < 0) n = 0;
    if (!mem_mul(s->n, (size_t)n, &total)) return ig_fail(IG_ELIMIT, "a list that large");
    TRY(trun_charge(r, total));
    TRY(tval_new_seq(r, s->kind, total, s->trusted, &made));
    for (size_t i = 0; i < total; i++) made->items[i] = s->items[i % s->n];
    *ret = tval_seq(made);
    return IG_OK;
}

static bool is_list(tval v) { return v.kind == T_SEQ && v.seq->kind <= SEQ_TUPLE; }

static ig_status operate_others(trun *r, toperator op, tval a, tval b, tval *ret)
{
    if (op == OP_ADD && a.kind == T_STR && b.kind == T_STR) return add_strs(r, a.s, b.s, ret);
    if (op == OP_ADD && is_list(a) && is_list(b) && a.seq->kind == b.seq->kind)
        return join_seqs(r, a.seq, b.seq, ret);
    if (op == OP_MUL && a.kind == T_STR && tval_is_integral(b))
        return repeat_str(r, a.s, tval_integer(b), ret);
    if (op == OP_MUL && b.kind == T_STR && tval_is_integral(a))
        return repeat_str(r, b.s, tval_integer(a), ret);
    if (op == OP_MUL && is_list(a) && tval_is_integral(b))
        return repeat_seq(r, a.seq, tval_integer(b), ret);
    if (op == OP_MUL && is_list(b) && tval_is_integral(a))
        return repeat_seq(r, b.seq, tval_integer(a), ret);
    if (op == OP_MOD && a.kind == T_STR) return toperate_format(r, a.s, b, ret);
    return wrong_types(op, a, b);
}

ig_status toperate_binary(trun *r, toperator op, tval a, tval b, tval *ret)
{
    if (a.kind == T_UNDEFINED) return tval_fail_undefined(a);
    if (b.kind == T_UNDEFINED && !(op == OP_MOD && a.kind == T_STR)) return tval_fail_undefined(b);
    if (!tval_is_number(a) || !tval_is_number(b)) return operate_others(r, op, a, b, ret);
    bool trusted = trusted_number(a) && trusted_number(b);
    bool ints =
        tval_is_integral(a) && tval_is_integral(b) && !(op == OP_POW && tval_integer(b) < 0);
    if (ints) return operate_ints(op, tval_integer(a), tval_integer(b), trusted, ret);
    return operate_floats(op, tval_number(a), tval_number(b), trusted, ret);
}

ig_status toperate_unary(trun *r, toperator op, tval a, tval *ret)
{
    (void)r;
    if (a.kind == T_UNDEFINED) return tval_fail_undefined(a);
    if (!tval_is_number(a))
        return ig_fail(IG_EINVAL, "%s does not work on a %s", op == OP_NEG ? "-" : "+",
                       tval_type(a));
    if (a.kind == T_FLOAT) {
        *ret = tval_float(op == OP_NEG ? -a.f : a.f, a.trusted);
        return IG_OK;
    }
    return operate_ints(op == OP_NEG ? OP_SUB : OP_ADD, 0, tval_integer(a), trusted_number(a), ret);
}
