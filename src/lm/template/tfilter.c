/* tfilter.c: the filters, as jinja2/filters.py has them, with Hugging Face's tojson. Filters over
 * sequences (map, select, sort, ...) are in tfilter_seq.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "lm/template/tfilter.h"
#include "lm/template/tunicode.h"
#include "base/json.h"

#define MAX_JSON_DEPTH 64

/* --- strings */

static ig_status text(trun *r, tval v, const tstr **ret) { return ttext_of(r, v, ret); }

static ig_status with_case(trun *r, tval v, tcase how, tval *ret)
{
    const tstr *s;
    TRY(text(r, v, &s));
    TRY(tstrmethod_case(r, s, how, ret));
    return s->markup ? tmethod_mark(r, ret) : IG_OK;
}

static ig_status lower(trun *r, tval v, const tval *a, tval *ret)
{
    return (void)a, with_case(r, v, CASE_LOWER, ret);
}
static ig_status upper(trun *r, tval v, const tval *a, tval *ret)
{
    return (void)a, with_case(r, v, CASE_UPPER, ret);
}
static ig_status capitalize(trun *r, tval v, const tval *a, tval *ret)
{
    return (void)a, with_case(r, v, CASE_CAPITALIZE, ret);
}

/* Jinja's title: words begin behind white space and - ( { [ <, not at every letter behind a
 * non-letter. */
static ig_status title(trun *r, tval v, const tval *a, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *s, *made;
    bool start = true;
    (void)a;
    TRY(text(r, v, &s));
    TRY(trun_charge(r, 16 * s->n));
    tbuild_init(&b, r->limits.max_output);
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        const tstr *c = tstr_sub(r->a, s, it.at, it.next);
        if (!c) return r->a->status;
        tunicode_case(&b, c, start ? CASE_UPPER : CASE_LOWER);
        start = it.cp < 0x80 ? strchr("-({[<", (int)it.cp) != NULL || tunicode_space(it.cp)
                             : tunicode_space(it.cp);
    }
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

static ig_status trim(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s, *chars = NULL;
    TRY(text(r, v, &s));
    if (a[0].kind != T_MISSING && a[0].kind != T_NONE) TRY(targs_str(r, "trim", a[0], &chars));
    return tstrmethod_strip(r, s, chars, STRIP_BOTH, ret);
}

static ig_status replace(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s, *old, *new;
    int64_t count;
    TRY(text(r, v, &s));
    TRY(text(r, a[0], &old));
    TRY(text(r, a[1], &new));
    TRY(targs_int("replace", a[2], -1, &count));
    return tstrmethod_replace(r, s, old, new, count, ret);
}

static ig_status string(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s;
    (void)a;
    TRY(text(r, v, &s));
    *ret = tval_str(s);
    return IG_OK;
}

static ig_status safe(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s;
    (void)a;
    TRY(text(r, v, &s));
    *ret = tval_str(s);
    return tmethod_mark(r, ret);
}

static ig_status escape(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s;
    (void)a;
    TRY(text(r, v, &s));
    if (!s->markup) TRY(ttext_escape(r, s, &s));
    *ret = tval_str(s);
    return IG_OK;
}

static ig_status center(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *s, *space = tstr_of(r->a, " ");
    int64_t width;
    if (!space) return r->a->status;
    TRY(text(r, v, &s));
    TRY(targs_int("center", a[0], 80, &width));
    return tstrmethod_pad(r, s, width, space, STRIP_BOTH, ret);
}

static ig_status spaces(trun *r, int64_t n, const tstr **ret)
{
    if (n > 10000) return ig_fail(IG_ELIMIT, "an indentation of more than 10000 columns");
    if (n < 0) n = 0;
    char *p = arena_alloc(r->a, (size_t)n, 1);
    if (!p) return r->a->status;
    memset(p, ' ', (size_t)n);
    *ret = tstr_new(r->a, p, (size_t)n, true);
    return *ret ? IG_OK : r->a->status;
}

/* The indentation that an argument gives: columns, or the text itself. */
static ig_status indentation(trun *r, const char *what, tval v, int64_t dflt, const tstr **ret)
{
    int64_t width;
    if (v.kind == T_STR) return targs_str(r, what, v, ret);
    TRY(targs_int(what, v, dflt, &width));
    return spaces(r, width, ret);
}

static ig_status indent(trun *r, tval v, const tval *a, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *s, *by, *made;
    tseq *lines;
    bool first = tval_truth(a[1]), blank = tval_truth(a[2]);
    TRY(targs_str(r, "indent", v, &s));
    TRY(indentation(r, "indent", a[0], 4, &by));
    const tstr *newline = tstr_of(r->a, "\n");
    if (!newline) return r->a->status;
    TRY(toperate_concat(r, s, newline, &s));
    TRY(tstr_flatten(r->a, s));
    TRY(tstrmethod_lines(r, s, false, &lines));
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < lines->n; i++) {
        const tstr *line = lines->items[i].s;
        if (i) tbuild_text(&b, "\n", true);
        if (i ? line->n || blank : first) tbuild_str(&b, by);
        tbuild_str(&b, line);
    }
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

static ig_status format(trun *r, tval v, const targs *args, tval *ret)
{
    const tstr *s;
    TRY(text(r, v, &s));
    if (args->n && args->n_named)
        return ig_fail(IG_EINVAL, "format takes positional or named arguments, not both");
    if (args->n_named) {
        tdict *d;
        TRY(tval_new_dict(r, args->n_named, true, &d));
        for (size_t i = 0; i < args->n_named; i++)
            TRY(tval_dict_set(r, d, tval_str(args->names[i]), args->named[i]));
        return toperate_format(r, s, tval_dict(d), ret);
    }
    tseq *all;
    TRY(tval_new_seq(r, SEQ_TUPLE, args->n, true, &all));
    if (args->n) memcpy(all->items, args->v, args->n * sizeof *args->v);
    return toperate_format(r, s, tval_seq(all), ret);
}

/* --- JSON */

static ig_status separators(trun *r, tval v, ttext_json *how)
{
    const tseq *pair;
    how->item = tstr_of(r->a, how->pretty ? "," : ", ");
    how->colon = tstr_of(r->a, ": ");
    if (!how->item || !how->colon) return r->a->status;
    if (v.kind == T_MISSING || v.kind == T_NONE) return IG_OK;
    TRY(tval_iterate(r, v, &pair));
    if (pair->n != 2) return ig_fail(IG_EINVAL, "tojson: separators must be two strings");
    TRY(targs_str(r, "tojson", pair->items[0], &how->item));
    return targs_str(r, "tojson", pair->items[1], &how->colon);
}

static ig_status tojson(trun *r, tval v, const tval *a, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    bool indented = a[1].kind != T_MISSING && a[1].kind != T_NONE;
    ttext_json how = {.ascii = tval_truth(a[0]), .pretty = indented, .sort_keys = tval_truth(a[3])};
    TRY(indentation(r, "tojson", a[1], 0, &how.indent));
    TRY(separators(r, a[2], &how));
    tbuild_init(&b, r->limits.max_output);
    TRY(ttext_tojson(r, &b, v, &how));
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

/* Not Jinja's: some published templates expect their server to have it. */
static ig_status from_json(trun *r, tval v, const tval *a, tval *ret)
{
    AUTO(json_ptr) j = NULL;
    const tstr *s;
    (void)a;
    TRY(targs_str(r, "from_json", v, &s));
    TRY(trun_charge(r, s->n));
    TRY(json_parse("from_json", tstr_bytes(s), r->limits.max_output, MAX_JSON_DEPTH, &j));
    if (!r->parsed) r->parsed = json_array(); /* keeps the text that values borrow */
    if (!r->parsed || json_array_append(r->parsed, j))
        return ig_fail(IG_ENOMEM, "out of memory in from_json");
    return tval_of_json(r, j, !s->spans && s->trusted, ret);
}

/* --- numbers */

/* s without surrounding white space and with the digits of all scripts as ASCII, or false.
 * Underscores between digits are dropped. */
static bool plain_number(const tstr *s, char *out, size_t cap)
{
    size_t from = tunicode_leading(s->p, s->n), n = 0;
    size_t to = s->n - tunicode_trailing(s->p + from, s->n - from);
    bool digit = false;
    while (from < to) {
        uint32_t cp;
        from += utf8_decode(s->p + from, to - from, &cp);
        int value = tunicode_decimal_value(cp);
        bool joins = cp == '_' && digit && from < to && s->p[from] >= '0' && s->p[from] <= '9';
        digit = value >= 0;
        if (joins) continue;
        if (cp == '_' || (cp >= 0x80 && !digit) || n + 1 >= cap) return false;
        out[n++] = digit ? (char)('0' + value) : (char)cp;
    }
    out[n] = 0;
    return n != 0;
}

/* Python's float(s). */
static bool float_of(const tstr *s, double *ret)
{
    char plain[256];
    static const struct {
        const char *name;
        double value;
    } words[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
    if (!plain_number(s, plain, sizeof plain)) return false;
    char *p = plain + (*plain == '-' || *plain == '+'), dotted[sizeof plain + 4];
    double sign = *plain == '-' ? -1 : 1;
    for (size_t i = 0; i < N_ELEM(words); i++)
        if (!strcasecmp(p, words[i].name)) {
            *ret = sign * words[i].value;
            return true;
        }
    size_t whole = strspn(p, "0123456789"),
           fraction = p[whole] == '.' ? strspn(p + whole + 1, "0123456789") : 0;
    if (whole + fraction == 0) return false;
    const char *rest = p + whole + (p[whole] == '.') + fraction;
    snprintf(dotted, sizeof dotted, "%.*s.%.*s%s", whole ? (int)whole : 1, whole ? p : "0",
             fraction ? (int)fraction : 1, fraction ? p + whole + 1 : "0", rest);
    if (!str_double(str_of(dotted), ret)) return false;
    *ret *= sign;
    return true;
}

/* Python's int(s, base); false also where it does not fit. */
static bool int_of(const tstr *s, int64_t base, int64_t *ret)
{
    char plain[256];
    if (!plain_number(s, plain, sizeof plain) || base < 2 || base > 36) return false;
    const char *p = plain + (*plain == '-' || *plain == '+'), *prefix = base == 16  ? "xX"
                                                                        : base == 8 ? "oO"
                                                                        : base == 2 ? "bB"
                                                                                    : "";
    if (p[0] == '0' && p[1] && strchr(prefix, p[1]) && *prefix) p += 2;
    if (!*p) return false;
    int64_t value = 0;
    for (; *p; p++) {
        int d = *p >= '0' && *p <= '9'                     ? *p - '0'
                : (*p | 0x20) >= 'a' && (*p | 0x20) <= 'z' ? (*p | 0x20) - 'a' + 10
                                                           : 99;
        if (d >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (int64_t)d, &value))
            return false;
    }
    *ret = *plain == '-' ? -value : value;
    return true;
}

static bool trusted_str(const tstr *s) { return !s->spans && s->trusted; }

/* The whole part of f, or the default where there is none. */
static ig_status truncated(double f, bool trusted, tval dflt, bool fails, tval *ret)
{
    if (fabs(f) < 9.2e18) {
        *ret = tval_int((int64_t)f, trusted);
        return IG_OK;
    }
    if (fails || isfinite(f)) return ig_fail(IG_EINVAL, "int: %g does not fit into 64 bits", f);
    *ret = dflt;
    return IG_OK;
}

static ig_status to_int(trun *r, tval v, const tval *a, tval *ret)
{
    tval dflt = a[0].kind == T_MISSING ? tval_int(0, true) : a[0];
    int64_t base, i;
    double f;
    TRY(targs_int("int", a[1], 10, &base));
    *ret = dflt;
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    if (tval_is_integral(v)) *ret = tval_int(tval_integer(v), v.kind == T_BOOL || v.trusted);
    if (v.kind == T_FLOAT && !isnan(v.f)) return truncated(v.f, v.trusted, dflt, true, ret);
    if (v.kind != T_STR) return IG_OK;
    TRY(tstr_flatten(r->a, v.s));
    if (int_of(v.s, base, &i))
        *ret = tval_int(i, trusted_str(v.s));
    else if (float_of(v.s, &f) && !isnan(f))
        return truncated(f, trusted_str(v.s), dflt, false, ret);
    return IG_OK;
}

static ig_status to_float(trun *r, tval v, const tval *a, tval *ret)
{
    double f;
    *ret = a[0].kind == T_MISSING ? tval_float(0, true) : a[0];
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    if (tval_is_number(v)) *ret = tval_float(tval_number(v), v.kind == T_BOOL || v.trusted);
    if (v.kind != T_STR) return IG_OK;
    TRY(tstr_flatten(r->a, v.s));
    if (float_of(v.s, &f)) *ret = tval_float(f, trusted_str(v.s));
    return IG_OK;
}

static ig_status absolute(trun *r, tval v, const tval *a, tval *ret)
{
    (void)a;
    if (v.kind == T_UNDEFINED) return tval_fail_undefined(v);
    if (!tval_is_number(v)) return ig_fail(IG_EINVAL, "abs of a %s", tval_type(v));
    return toperate_unary(r,
                          v.kind == T_FLOAT ? (signbit(v.f) ? OP_NEG : OP_POS)
                                            : (tval_integer(v) < 0 ? OP_NEG : OP_POS),
                          v, ret);
}

static ig_status round_to(trun *r, tval v, const tval *a, tval *ret)
{
    char digits[400];
    const tstr *method = NULL;
    int64_t precision;
    TRY(targs_int("round", a[0], 0, &precision));
    if (a[1].kind != T_MISSING) TRY(targs_str(r, "round", a[1], &method));
    if (!tval_is_number(v)) return ig_fail(IG_EINVAL, "round of a %s", tval_type(v));
    if (precision < 0 || precision > 30)
        return ig_fail(IG_EUNSUPPORTED, "round to a precision outside 0 to 30");
    *ret = v;
    bool common = !method || tstr_is(method, "common");
    if (common && tval_is_integral(v))
        *ret = tval_int(tval_integer(v), v.kind == T_BOOL || v.trusted);
    if (common && (v.kind != T_FLOAT || !isfinite(v.f)))
        return IG_OK; /* Python's round of an int is an int */
    double f = tval_number(v), scale = pow(10, (double)precision);
    if (common) { /* half to even of the exact binary value, which is what printf does */
        snprintf(digits, sizeof digits, "%.*f", (int)precision, f);
        for (char *p = digits; *p; p++) /* whatever the locale has for a decimal point */
            if (!strchr("0123456789-", *p)) *p = '.';
        size_t n = strlen(digits);
        if (!strchr(digits, '.')) snprintf(digits + n, sizeof digits - n, ".0");
        if (!str_double(str_of(digits), &f))
            return ig_fail(IG_EINVAL, "round: %g is out of range", f);
    } else if (tstr_is(method, "ceil") || tstr_is(method, "floor")) {
        f = (tstr_is(method, "ceil") ? ceil(f * scale) : floor(f * scale)) / scale;
    } else {
        return ig_fail(IG_EINVAL, "round: the method must be common, ceil or floor");
    }
    *ret = tval_float(f, v.trusted);
    return IG_OK;
}

/* --- any value */

static ig_status dflt(trun *r, tval v, const tval *a, tval *ret)
{
    bool absent = v.kind == T_UNDEFINED || (tval_truth(a[1]) && !tval_truth(v));
    *ret = v;
    if (absent && a[0].kind == T_MISSING) return tval_new_str(r, "", 0, true, ret);
    if (absent) *ret = a[0];
    return IG_OK;
}

static ig_status attr(trun *r, tval v, const tval *a, tval *ret)
{
    const tstr *name;
    TRY(targs_str(r, "attr", a[0], &name));
    return tattr_only(r, v, name, ret);
}

static ig_status length(trun *r, tval v, const tval *a, tval *ret)
{
    int64_t n;
    (void)a;
    TRY(tval_len(r, v, &n));
    *ret = tval_int(n, true);
    return IG_OK;
}

/* --- the table */

static const tfilter_row rows[] = {
    {"abs", absolute, NULL, "", 0},
    {"attr", attr, NULL, "name", 1},
    {"capitalize", capitalize, NULL, "", 0},
    {"center", center, NULL, "width", 0},
    {"count", length, NULL, "", 0},
    {"d", dflt, NULL, "default_value boolean", 0},
    {"default", dflt, NULL, "default_value boolean", 0},
    {"dictsort", tfilter_dictsort, NULL, "case_sensitive by reverse", 0},
    {"e", escape, NULL, "", 0},
    {"escape", escape, NULL, "", 0},
    {"first", tfilter_first, NULL, "", 0},
    {"float", to_float, NULL, "default", 0},
    {"format", NULL, format, NULL, 0},
    {"from_json", from_json, NULL, "", 0},
    {"indent", indent, NULL, "width first blank", 0},
    {"int", to_int, NULL, "default base", 0},
    {"items", tfilter_items, NULL, "", 0},
    {"join", tfilter_join, NULL, "d attribute", 0},
    {"last", tfilter_last, NULL, "", 0},
    {"length", length, NULL, "", 0},
    {"list", tfilter_list, NULL, "", 0},
    {"lower", lower, NULL, "", 0},
    {"map", NULL, tfilter_map, NULL, 0},
    {"max", tfilter_max, NULL, "case_sensitive attribute", 0},
    {"min", tfilter_min, NULL, "case_sensitive attribute", 0},
    {"reject", NULL, tfilter_reject, NULL, 0},
    {"rejectattr", NULL, tfilter_rejectattr, NULL, 0},
    {"replace", replace, NULL, "old new count", 2},
    {"reverse", tfilter_reverse, NULL, "", 0},
    {"round", round_to, NULL, "precision method", 0},
    {"safe", safe, NULL, "", 0},
    {"select", NULL, tfilter_select, NULL, 0},
    {"selectattr", NULL, tfilter_selectattr, NULL, 0},
    {"sort", tfilter_sort, NULL, "reverse case_sensitive attribute", 0},
    {"string", string, NULL, "", 0},
    {"sum", tfilter_sum, NULL, "attribute start", 0},
    {"title", title, NULL, "", 0},
    {"tojson", tojson, NULL, "ensure_ascii indent separators sort_keys", 0},
    {"trim", trim, NULL, "chars", 0},
    {"unique", tfilter_unique, NULL, "case_sensitive attribute", 0},
    {"upper", upper, NULL, "", 0},
};

int tfilter_find(str name)
{
    for (size_t i = 0; i < N_ELEM(rows); i++)
        if (str_eq(name, str_of(rows[i].name))) return (int)i;
    return -1;
}

ig_status tfilter_call(trun *r, int filter, tval v, const targs *args, tval *ret)
{
    tval a[TMETHOD_MAX_ARGS] = {{0}}; /* T_MISSING */
    const tfilter_row *row = &rows[filter];
    if (v.kind == T_STR) TRY(tstr_flatten(r->a, v.s));
    if (row->call_args) return row->call_args(r, v, args, ret);
    TRY(targs_bind(args, row->name, row->params, row->n_needed, a));
    return row->call(r, v, a, ret);
}
