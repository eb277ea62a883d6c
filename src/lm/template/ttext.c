/* ttext.c: values as text, as Python's str, repr and json.dumps write them. Punctuation of a
 * container has the container's mark, digits the number's, characters their own. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "lm/template/trun.h"
#include "lm/template/tunicode.h"

/* The digits and the decimal exponent of f (finite, >= 0) with the fewest digits that read back as
 * f: 0.d1d2... * 10^exponent. Reads snprintf's digits only, so that no locale matters. */
static int shortest_digits(double f, char digits[20], int *ret_exponent)
{
    for (int precision = 0;; precision++) {
        char text[64], plain[64];
        double back;
        int n = 0, e = 0;
        snprintf(text, sizeof text, "%.*e", precision, f);
        const char *exp = strchr(text, 'e');
        for (const char *p = text; p < exp; p++)
            if (*p >= '0' && *p <= '9') digits[n++] = *p;
        for (const char *p = exp + 2; *p; p++) e = e * 10 + (*p - '0');
        if (exp[1] == '-') e = -e;
        snprintf(plain, sizeof plain, "%c.%.*se%d", digits[0], n > 1 ? n - 1 : 1,
                 n > 1 ? digits + 1 : "0", e);
        if (precision == 16 || (str_double(str_of(plain), &back) && back == f)) {
            while (n > 1 && digits[n - 1] == '0') n--;
            *ret_exponent = e + 1;
            return n;
        }
    }
}

void ttext_float(double f, char out[32])
{
    char digits[20];
    int e, n, at = 0;
    if (isnan(f) || isinf(f)) {
        snprintf(out, 32, "%s", isnan(f) ? "nan" : f < 0 ? "-inf" : "inf");
        return;
    }
    if (signbit(f)) out[at++] = '-';
    n = shortest_digits(fabs(f), digits, &e);
    size_t room = 32 - (size_t)at;
    if (e > 16 || e < -3)
        snprintf(out + at, room, "%c%s%.*se%c%02d", digits[0], n > 1 ? "." : "", n - 1, digits + 1,
                 e > 0 ? '+' : '-', e > 0 ? e - 1 : 1 - e);
    else if (e <= 0)
        snprintf(out + at, room, "0.%.*s%.*s", -e, "000", n, digits);
    else if (n <= e)
        snprintf(out + at, room, "%.*s%.*s.0", n, digits, e - n, "0000000000000000");
    else
        snprintf(out + at, room, "%.*s.%.*s", e, digits, n - e, digits + e);
}

static void add_int(tbuild *b, int64_t i, bool trusted)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)i);
    tbuild_text(b, text, trusted);
}

static void add_float(tbuild *b, double f, bool trusted)
{
    char text[32];
    ttext_float(f, text);
    tbuild_text(b, text, trusted);
}

/* repr of a string: single quotes unless only they occur, unprintable characters as escapes. */
static ig_status repr_str(trun *r, tbuild *b, const tstr *s)
{
    TRY(tstr_flatten(r->a, s));
    TRY(trun_charge(r, s->n));
    char quote = memchr(s->p, '\'', s->n) && !memchr(s->p, '"', s->n) ? '"' : '\'';
    bool trusted = s->spans ? s->spans[0].trusted
                            : s->trusted; /* the opening quote goes with the first character */
    if (s->markup) tbuild_text(b, "Markup(", true);
    tbuild_add(b, &quote, 1, trusted);
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        char text[16];
        uint32_t c = it.cp;
        trusted = it.trusted;
        if (c == (uint32_t)quote || c == '\\')
            snprintf(text, sizeof text, "\\%c", (char)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (tunicode_printable(c)) {
            tbuild_char(b, c, trusted);
            continue;
        } else
            snprintf(text, sizeof text,
                     c < 0x100     ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x"
                                   : "\\U%08x",
                     c);
        tbuild_text(b, text, trusted);
    }
    tbuild_add(b, &quote, 1, trusted);
    if (s->markup) tbuild_text(b, ")", true);
    return IG_OK;
}

static ig_status repr_seq(trun *r, tbuild *b, const tseq *s)
{
    bool tuple = s->kind == SEQ_TUPLE, t = s->trusted;
    if (s->kind != SEQ_LIST && !tuple)
        return ig_fail(IG_EUNSUPPORTED, "a %s as text", tval_type(tval_seq((tseq *)s)));
    tbuild_text(b, tuple ? "(" : "[", t);
    for (size_t i = 0; i < s->n; i++) {
        if (i) tbuild_text(b, ", ", t);
        TRY(ttext_repr(r, b, s->items[i]));
    }
    if (tuple && s->n == 1) tbuild_text(b, ",", t);
    tbuild_text(b, tuple ? ")" : "]", t);
    return IG_OK;
}

static ig_status repr_dict(trun *r, tbuild *b, const tdict *d)
{
    tbuild_text(b, "{", d->trusted);
    for (size_t i = 0; i < d->n; i++) {
        if (i) tbuild_text(b, ", ", d->trusted);
        TRY(ttext_repr(r, b, d->keys[i]));
        tbuild_text(b, ": ", d->trusted);
        TRY(ttext_repr(r, b, d->values[i]));
    }
    tbuild_text(b, "}", d->trusted);
    return IG_OK;
}

static ig_status repr_any(trun *r, tbuild *b, tval v)
{
    switch (v.kind) {
    case T_UNDEFINED: tbuild_text(b, "Undefined", true); return IG_OK;
    case T_NONE: tbuild_text(b, "None", true); return IG_OK;
    case T_BOOL: tbuild_text(b, v.b ? "True" : "False", true); return IG_OK;
    case T_INT: add_int(b, v.i, v.trusted); return IG_OK;
    case T_FLOAT: add_float(b, v.f, v.trusted); return IG_OK;
    case T_STR: return repr_str(r, b, v.s);
    case T_SEQ: return repr_seq(r, b, v.seq);
    case T_DICT: return repr_dict(r, b, v.dict);
    default: return ig_fail(IG_EUNSUPPORTED, "a %s as text", tval_type(v));
    }
}

ig_status ttext_repr(trun *r, tbuild *b, tval v)
{
    TRY(trun_enter(r));
    TRY(repr_any(r, b, v));
    trun_leave(r);
    return tbuild_status(b);
}

ig_status ttext_str(trun *r, tbuild *b, tval v)
{
    if (v.kind == T_UNDEFINED) return IG_OK;
    if (v.kind != T_STR) return ttext_repr(r, b, v);
    TRY(trun_charge(r, v.s->n));
    tbuild_str(b, v.s);
    return tbuild_status(b);
}

ig_status ttext_of(trun *r, tval v, const tstr **ret)
{
    AUTO(tbuild) b = {0};
    if (v.kind == T_STR) {
        *ret = v.s;
        return tstr_flatten(r->a, v.s);
    }
    tbuild_init(&b, r->limits.max_output);
    TRY(ttext_str(r, &b, v));
    return tbuild_take(&b, r->a, ret);
}

/* --- JSON */

static ig_status json_str(trun *r, tbuild *b, const tstr *s, bool ascii)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: character, letter */
    TRY(tstr_flatten(r->a, s));
    TRY(trun_charge(r, s->n));
    bool trusted = s->spans ? s->spans[0].trusted : s->trusted;
    tbuild_text(b, "\"", trusted);
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        char text[16] = "";
        uint32_t c = it.cp;
        trusted = it.trusted;
        for (const char *e = escapes; *e && c < 0x80; e += 2)
            if (c == (uint8_t)e[0]) snprintf(text, sizeof text, "\\%c", e[1]);
        if (!*text && (c < 0x20 || (ascii && c >= 0x80 && c < 0x10000)))
            snprintf(text, sizeof text, "\\u%04x", c);
        if (ascii && c >= 0x10000)
            snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                     0xdc00 + (c & 0x3ff));
        if (*text)
            tbuild_text(b, text, trusted);
        else
            tbuild_char(b, c, trusted);
    }
    tbuild_text(b, "\"", trusted);
    return IG_OK;
}

/* Punctuation of a container: trusted only where both are. */
static void json_punctuation(tbuild *b, const tstr *s, bool trusted)
{
    if (trusted)
        tbuild_str(b, s);
    else
        tbuild_add(b, s->p, s->n, false);
}

static void json_newline(tbuild *b, const ttext_json *how, int level, bool trusted)
{
    if (!how->pretty) return;
    tbuild_text(b, "\n", trusted);
    for (int i = 0; i < level; i++) json_punctuation(b, how->indent, trusted);
}

static ig_status json_any(trun *r, tbuild *b, tval v, const ttext_json *how, int level);

static ig_status json_seq(trun *r, tbuild *b, const tseq *s, const ttext_json *how, int level)
{
    if (s->kind != SEQ_LIST && s->kind != SEQ_TUPLE)
        return ig_fail(IG_EINVAL, "a %s cannot be written as JSON", tval_type(tval_seq((tseq *)s)));
    tbuild_text(b, "[", s->trusted);
    for (size_t i = 0; i < s->n; i++) {
        if (i) json_punctuation(b, how->item, s->trusted);
        json_newline(b, how, level + 1, s->trusted);
        TRY(json_any(r, b, s->items[i], how, level + 1));
    }
    if (s->n) json_newline(b, how, level, s->trusted);
    tbuild_text(b, "]", s->trusted);
    return IG_OK;
}

/* A key that is no string, as json.dumps makes one of it. */
static ig_status json_key(trun *r, tbuild *b, tval key, const ttext_json *how)
{
    if (key.kind == T_STR) return json_str(r, b, key.s, how->ascii);
    tbuild_text(b, "\"", key.trusted);
    TRY(json_any(r, b, key, how, 0));
    tbuild_text(b, "\"", key.trusted);
    return IG_OK;
}

/* Positions of a dict's entries in the order to write. */
static ig_status key_order(trun *r, const tdict *d, bool sorted, const tval **ret_values,
                           const tval **ret_keys)
{
    *ret_keys = d->keys;
    *ret_values = d->values;
    if (!sorted) return IG_OK;
    tval *keys = arena_alloc(r->a, d->n, sizeof *keys),
         *values = keys ? arena_alloc(r->a, d->n, sizeof *values) : NULL;
    if (!values) return r->a->status;
    if (d->n) memcpy(keys, d->keys, d->n * sizeof *keys);
    if (d->n) memcpy(values, d->values, d->n * sizeof *values);
    TRY(tval_sort(r, values, d->keys, d->n, false));
    TRY(tval_sort(r, keys, d->keys, d->n, false));
    *ret_keys = keys;
    *ret_values = values;
    return IG_OK;
}

static ig_status json_dict(trun *r, tbuild *b, const tdict *d, const ttext_json *how, int level)
{
    const tval *keys, *values;
    TRY(key_order(r, d, how->sort_keys, &values, &keys));
    tbuild_text(b, "{", d->trusted);
    for (size_t i = 0; i < d->n; i++) {
        if (i) json_punctuation(b, how->item, d->trusted);
        json_newline(b, how, level + 1, d->trusted);
        TRY(json_key(r, b, keys[i], how));
        json_punctuation(b, how->colon, d->trusted);
        TRY(json_any(r, b, values[i], how, level + 1));
    }
    if (d->n) json_newline(b, how, level, d->trusted);
    tbuild_text(b, "}", d->trusted);
    return IG_OK;
}

static void json_float(tbuild *b, double f, bool trusted)
{
    if (isfinite(f))
        add_float(b, f, trusted);
    else
        tbuild_text(b, isnan(f) ? "NaN" : f < 0 ? "-Infinity" : "Infinity", trusted);
}

static ig_status json_value(trun *r, tbuild *b, tval v, const ttext_json *how, int level)
{
    switch (v.kind) {
    case T_NONE: tbuild_text(b, "null", true); return IG_OK;
    case T_BOOL: tbuild_text(b, v.b ? "true" : "false", true); return IG_OK;
    case T_INT: add_int(b, v.i, v.trusted); return IG_OK;
    case T_FLOAT: json_float(b, v.f, v.trusted); return IG_OK;
    case T_STR: return json_str(r, b, v.s, how->ascii);
    case T_SEQ: return json_seq(r, b, v.seq, how, level);
    case T_DICT: return json_dict(r, b, v.dict, how, level);
    default: return ig_fail(IG_EINVAL, "a %s cannot be written as JSON", tval_type(v));
    }
}

static ig_status json_any(trun *r, tbuild *b, tval v, const ttext_json *how, int level)
{
    TRY(trun_enter(r));
    TRY(json_value(r, b, v, how, level));
    trun_leave(r);
    return tbuild_status(b);
}

ig_status ttext_tojson(trun *r, tbuild *b, tval v, const ttext_json *how)
{
    return json_any(r, b, v, how, 0);
}

ig_status ttext_escape(trun *r, const tstr *s, const tstr **ret)
{
    static const struct {
        char c;
        const char *text;
    } rows[] = {{'&', "&amp;"}, {'>', "&gt;"}, {'<', "&lt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    AUTO(tbuild) b = {0};
    tbuild_init(&b, r->limits.max_output);
    TRY(tstr_flatten(r->a, s));
    TRY(trun_charge(r, s->n));
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        const char *text = NULL;
        for (size_t i = 0; i < N_ELEM(rows); i++)
            if (it.cp == (uint8_t)rows[i].c) text = rows[i].text;
        if (text)
            tbuild_text(&b, text, it.trusted);
        else
            tbuild_sub(&b, s, it.at, it.next);
    }
    TRY(tbuild_take(&b, r->a, ret));
    ((tstr *)*ret)->markup = true; /* just made */
    return IG_OK;
}
