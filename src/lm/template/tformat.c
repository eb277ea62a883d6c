/* tformat.c: "%s %d" % x and the filter format: %s %r %d %i %x %X %o %f %e %g %c %% with flags,
 * width and precision, and %(name)s. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "lm/template/trun.h"

#define MAX_WIDTH 10000

typedef struct formatting {
    trun *r;
    tbuild *out;
    const tstr *format;
    size_t at; /* byte behind the % */
    tval arguments;
    size_t n_used; /* of a tuple, or 0 or 1 */
    /* of this conversion */
    bool left, zero, plus, space, alternate;
    int64_t width, precision; /* -1: not given */
    tval value;
} formatting;

static ig_status malformed(void)
{
    return ig_fail(IG_EINVAL, "an incomplete or unknown %% conversion in a format");
}

static char peek(const formatting *f) { return f->at < f->format->n ? f->format->p[f->at] : 0; }

static ig_status take_number(formatting *f, int64_t *ret)
{
    int64_t n = 0;
    while (peek(f) >= '0' && peek(f) <= '9') {
        n = n * 10 + (f->format->p[f->at++] - '0');
        if (n > MAX_WIDTH)
            return ig_fail(IG_ELIMIT, "a width of more than %d in a format", MAX_WIDTH);
    }
    *ret = n;
    return IG_OK;
}

/* %(name)s takes its value from a dict. */
static ig_status take_named(formatting *f)
{
    size_t start = ++f->at;
    const tval *found;
    while (f->at < f->format->n && f->format->p[f->at] != ')') f->at++;
    if (f->at == f->format->n || f->arguments.kind != T_DICT) return malformed();
    tval key;
    TRY(tval_new_str(f->r, f->format->p + start, f->at++ - start, true, &key));
    TRY(tval_dict_find(f->r, f->arguments.dict, key, &found));
    if (!found) return ig_fail(IG_EINVAL, "a format names a key that is missing");
    f->value = *found;
    f->n_used = SIZE_MAX;
    return IG_OK;
}

static ig_status take_next(formatting *f)
{
    const tval *a = &f->arguments;
    bool tuple = a->kind == T_SEQ && a->seq->kind == SEQ_TUPLE;
    if (f->n_used >= (tuple ? a->seq->n : 1))
        return ig_fail(IG_EINVAL, "not enough arguments for a format");
    f->value = tuple ? a->seq->items[f->n_used] : *a;
    f->n_used++;
    return IG_OK;
}

/* Puts text into the width, zeros behind the sign where asked. */
static void pad(const formatting *f, const char *text, bool trusted, bool number)
{
    int64_t n = (int64_t)strlen(text),
            sign = number && (*text == '-' || *text == '+' || *text == ' ');
    bool zeros = f->zero && number && !f->left;
    if (zeros) tbuild_add(f->out, text, (size_t)sign, trusted);
    for (int64_t i = n; i < f->width && !f->left; i++)
        tbuild_text(f->out, zeros ? "0" : " ", trusted);
    tbuild_text(f->out, zeros ? text + sign : text, trusted);
    for (int64_t i = n; i < f->width && f->left; i++) tbuild_text(f->out, " ", trusted);
}

static ig_status format_text(formatting *f, bool repr)
{
    AUTO(tbuild) b = {0};
    const tstr *s;
    tbuild_init(&b, f->r->limits.max_output);
    TRY(repr ? ttext_repr(f->r, &b, f->value) : ttext_str(f->r, &b, f->value));
    TRY(tbuild_take(&b, f->r->a, &s));
    int64_t n = (int64_t)tstr_chars(s);
    if (f->precision >= 0 && f->precision < n) n = f->precision;
    for (int64_t i = n; i < f->width && !f->left; i++) tbuild_text(f->out, " ", true);
    tbuild_sub(f->out, s, 0, tstr_offset(s, (size_t)n));
    for (int64_t i = n; i < f->width && f->left; i++) tbuild_text(f->out, " ", true);
    return IG_OK;
}

static ig_status format_integer(formatting *f, char conversion)
{
    char text[128];
    tval v = f->value;
    bool decimal = conversion == 'd' || conversion == 'i' || conversion == 'u';
    if (v.kind == T_FLOAT && decimal && fabs(v.f) < 9e18) v = tval_int((int64_t)v.f, v.trusted);
    if (!tval_is_integral(v))
        return ig_fail(IG_EINVAL, "%%%c wants an integer, not a %s", conversion, tval_type(v));
    int64_t i = tval_integer(v);
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char *sign = i < 0 ? "-" : f->plus ? "+" : f->space ? " " : "";
    const char *prefix = !f->alternate || decimal ? ""
                         : conversion == 'x'      ? "0x"
                         : conversion == 'X'      ? "0X"
                                                  : "0o";
    const char *how = decimal             ? "%s%s%.*llu"
                      : conversion == 'x' ? "%s%s%.*llx"
                      : conversion == 'X' ? "%s%s%.*llX"
                                          : "%s%s%.*llo";
    if (f->precision > 64) return ig_fail(IG_ELIMIT, "a precision of more than 64 in a format");
    snprintf(text, sizeof text, how, sign, prefix, f->precision < 0 ? 1 : (int)f->precision,
             (unsigned long long)magnitude);
    pad(f, text, v.kind == T_BOOL || v.trusted, true);
    return IG_OK;
}

static ig_status format_float(formatting *f, char conversion)
{
    char text[512], how[8] = {'%', '.', '*', conversion, 0};
    int precision = f->precision < 0 ? 6 : (int)f->precision;
    if (!tval_is_number(f->value))
        return ig_fail(IG_EINVAL, "%%%c wants a number, not a %s", conversion, tval_type(f->value));
    if (precision > 64 || f->alternate)
        return ig_fail(IG_EUNSUPPORTED, "a format with # or a precision of more than 64");
    double d = tval_number(f->value);
    int sign = !signbit(d) && (f->plus || f->space);
    if (sign) text[0] = f->plus ? '+' : ' ';
    snprintf(text + sign, sizeof text - 1, how, precision, d);
    for (char *p = text; *p; p++) /* whatever the locale has for a decimal point */
        if (!strchr("0123456789+- eEinfaINFA", *p)) *p = '.';
    pad(f, text, f->value.kind == T_BOOL || f->value.trusted, true);
    return IG_OK;
}

static ig_status format_char(formatting *f)
{
    tval v = f->value;
    if (v.kind == T_STR) {
        TRY(tstr_flatten(f->r->a, v.s));
        if (tstr_chars(v.s) == 1) return format_text(f, false);
    }
    if (!tval_is_integral(v) || v.i < 0 || v.i > 0x10ffff || (v.i >= 0xd800 && v.i < 0xe000))
        return ig_fail(IG_EINVAL, "%%c wants a character");
    char text[5] = {0};
    utf8_encode((uint32_t)v.i, text);
    pad(f, text, v.trusted, false);
    return IG_OK;
}

static ig_status convert(formatting *f)
{
    f->left = f->zero = f->plus = f->space = f->alternate = false;
    f->width = 0;
    f->precision = -1;
    bool named = peek(f) == '(';
    if (named) TRY(take_named(f));
    for (;; f->at++) {
        if (peek(f) == '-')
            f->left = true;
        else if (peek(f) == '0')
            f->zero = true;
        else if (peek(f) == '+')
            f->plus = true;
        else if (peek(f) == ' ')
            f->space = true;
        else if (peek(f) == '#')
            f->alternate = true;
        else
            break;
    }
    TRY(take_number(f, &f->width));
    if (peek(f) == '.') {
        f->at++;
        TRY(take_number(f, &f->precision));
    }
    char c = peek(f);
    f->at++;
    if (c == '%') {
        tbuild_sub(f->out, f->format, f->at - 1, f->at);
        return IG_OK;
    }
    if (!c || !strchr("srdiuxXofFeEgGc", c)) return malformed();
    if (!named) TRY(take_next(f));
    if (c == 's' || c == 'r') return format_text(f, c == 'r');
    if (c == 'c') return format_char(f);
    return strchr("fFeEgG", c) ? format_float(f, c) : format_integer(f, c);
}

ig_status toperate_format(trun *r, const tstr *format, tval arguments, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    TRY(tstr_flatten(r->a, format));
    if (format->markup)
        return ig_fail(IG_EUNSUPPORTED, "a format that went through the filter safe");
    tbuild_init(&b, r->limits.max_output);
    formatting f = {.r = r, .out = &b, .format = format, .arguments = arguments};
    while (f.at < format->n) {
        const char *p = memchr(format->p + f.at, '%', format->n - f.at);
        size_t end = p ? (size_t)(p - format->p) : format->n;
        tbuild_sub(&b, format, f.at, end);
        f.at = end + 1;
        if (p) TRY(convert(&f));
    }
    bool tuple = arguments.kind == T_SEQ && arguments.seq->kind == SEQ_TUPLE;
    /* Python does not mind what is left of anything that takes an index, tuples and strings
     * excepted */
    bool indexed = arguments.kind == T_DICT || arguments.kind == T_UNDEFINED ||
                   (arguments.kind == T_SEQ && !tuple && arguments.seq->kind <= SEQ_RANGE);
    bool all_used = indexed || f.n_used >= (tuple ? arguments.seq->n : 1);
    if (!all_used) return ig_fail(IG_EINVAL, "a format does not use all of its arguments");
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}
