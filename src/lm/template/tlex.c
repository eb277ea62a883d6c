/* tlex.c: follows jinja2/lexer.py with trim_blocks and lstrip_blocks on and
 * keep_trailing_newline off. Where tags begin, how "-" and "+" beside them strip, and which
 * tokens exist are all there. */
#include "lm/template/tlex.h"
#include <string.h>
#include "lm/template/tunicode.h"

static ig_status fail(const tlex *l, const char *message)
{
    return ig_fail(IG_EFORMAT, "%s: line %u: %s", l->what, l->line, message);
}

ig_status tlex_open(tlex *l, const char *what, str text, arena *memory)
{
    *l = (tlex){.what = what, .line = 1, .line_start = true, .memory = memory};
    if (text.n > TEMPLATE_MAX_BYTES)
        return ig_fail(IG_ELIMIT, "%s: %zu bytes of template, at most %zu are read", what, text.n,
                       TEMPLATE_MAX_BYTES);
    if (!utf8_valid(text.p, text.n)) return ig_fail(IG_EFORMAT, "%s: not valid UTF-8", what);
    char *p = arena_alloc(memory, text.n, 1);
    size_t n = 0;
    if (!p) return memory->status;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\r' && i + 1 < text.n && text.p[i + 1] == '\n') continue;
        p[n++] = text.p[i] == '\r' ? '\n' : text.p[i];
    }
    if (n && p[n - 1] == '\n') n--;
    l->text = (str){p, n};
    return IG_OK;
}

static bool at(const tlex *l, size_t i, const char *s)
{
    size_t n = strlen(s);
    return i <= l->text.n && n <= l->text.n - i && !memcmp(l->text.p + i, s, n);
}

static size_t skip_space(const tlex *l, size_t i)
{
    return i + tunicode_leading(l->text.p + i, l->text.n - i);
}

/* Moves to byte `to`, counting lines. */
static void advance(tlex *l, size_t to)
{
    for (size_t i = l->at; i < to; i++) l->line += l->text.p[i] == '\n';
    if (to > l->at) l->line_start = l->text.p[to - 1] == '\n';
    l->at = to;
}

/* If a tag ends at i ("%}", "-%}", "+%}", with end "%}"), the byte behind it and what it strips;
 * else 0. */
static size_t tag_end(const tlex *l, size_t i, const char *end, bool plus, bool trims)
{
    if (at(l, i, "-") && at(l, i + 1, end)) return skip_space(l, i + 3);
    if (plus && at(l, i, "+") && at(l, i + 1, end)) return i + 3;
    if (!at(l, i, end)) return 0;
    return trims && at(l, i + 2, "\n") ? i + 3 : i + 2;
}

/* Text [from, to) in front of a tag that begins with `sign`, stripped; none may be left. */
static str data_before(const tlex *l, size_t from, size_t to, char sign, bool is_print)
{
    const char *p = l->text.p;
    if (sign == '-') return (str){p + from, to - from - tunicode_trailing(p + from, to - from)};
    if (sign == '+' || is_print) return (str){p + from, to - from};
    size_t line = to;
    while (line > from && p[line - 1] != '\n') line--;
    bool blank = line < to && tunicode_leading(p + line, to - line) == to - line;
    return (str){p + from, (line > from || l->line_start) && blank ? line - from : to - from};
}

static char sign_at(const tlex *l, size_t i)
{
    return at(l, i, "-") ? '-' : at(l, i, "+") ? '+' : 0;
}

/* Is the tag at i `{% word %}`? Then the byte behind it. raw trims no newline, endraw does. */
static size_t word_tag(const tlex *l, size_t i, const char *word, bool trims)
{
    i = skip_space(l, i + 2 + (sign_at(l, i + 2) != 0));
    if (!at(l, i, word)) return 0;
    return tag_end(l, skip_space(l, i + strlen(word)), "%}", trims, trims);
}

static ig_status give_data(tlex *l, str data, uint32_t line, ttoken *ret)
{
    const tstr *s = tstr_new(l->memory, data.p, data.n, true);
    if (!s) return l->memory->status;
    tstr_chars(s);
    *ret = (ttoken){K_DATA, line, data, tval_str(s)};
    return IG_OK;
}

/* At the body of a raw block: its text up to {% endraw %}. */
static ig_status lex_raw(tlex *l, ttoken *ret)
{
    for (size_t i = l->at; i < l->text.n; i++) {
        size_t end = at(l, i, "{%") ? word_tag(l, i, "endraw", true) : 0;
        if (!end) continue;
        str data = data_before(l, l->at, i, sign_at(l, i + 2), false);
        uint32_t line = l->line;
        advance(l, end);
        return give_data(l, data, line, ret);
    }
    return fail(l, "raw block without {% endraw %}");
}

/* At a comment behind "{#": moves behind its end. */
static ig_status skip_comment(tlex *l)
{
    for (size_t i = l->at; i < l->text.n; i++) {
        size_t end = tag_end(l, i, "#}", true, true);
        if (!end) continue;
        advance(l, end);
        return IG_OK;
    }
    return fail(l, "comment without #}");
}

static size_t next_tag(const tlex *l)
{
    for (size_t i = l->at; i + 1 < l->text.n; i++)
        if (l->text.p[i] == '{' && strchr("%{#", l->text.p[i + 1]) && l->text.p[i + 1]) return i;
    return l->text.n;
}

/* One step outside tags: data, the beginning of a tag, or an empty K_DATA where a comment was. */
static ig_status lex_data(tlex *l, ttoken *ret)
{
    size_t tag = next_tag(l);
    uint32_t line = l->line;
    if (tag == l->text.n) {
        str rest = {l->text.p + l->at, tag - l->at};
        advance(l, tag);
        if (rest.n) return give_data(l, rest, line, ret);
        *ret = (ttoken){.kind = K_END, .line = line};
        return IG_OK;
    }
    char what = l->text.p[tag + 1], sign = sign_at(l, tag + 2);
    str data = data_before(l, l->at, tag, sign, what == '{');
    if (data.n) { /* the tag itself comes with the next call, with nothing in front of it */
        advance(l, tag);
        return give_data(l, data, line, ret);
    }
    size_t raw = what == '%' ? word_tag(l, tag, "raw", false) : 0;
    advance(l, raw ? raw : tag + 2 + (sign != 0));
    if (raw) return lex_raw(l, ret);
    *ret = (ttoken){
        what == '{' ? K_PRINT_BEGIN : K_TAG_BEGIN, l->line, {l->text.p + tag, 2}, tval_missing()};
    if (what != '#') l->mode = what == '{' ? LEX_PRINT : LEX_TAG;
    if (what != '#') return IG_OK;
    *ret = (ttoken){.kind = K_DATA, .line = line};
    return skip_comment(l);
}

static bool is_digit(const tlex *l, size_t i)
{
    return i < l->text.n && l->text.p[i] >= '0' && l->text.p[i] <= '9';
}

static bool is_word(const tlex *l, size_t i)
{
    char c = i < l->text.n ? l->text.p[i] : 0;
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* Digits with single underscores between them: the byte behind. */
static size_t digits(const tlex *l, size_t i)
{
    while (is_digit(l, i) || (at(l, i, "_") && is_digit(l, i + 1) && is_digit(l, i - 1))) i++;
    return i;
}

/* The byte behind a float that starts at i, or 0. */
static size_t float_end(const tlex *l, size_t i)
{
    size_t end = digits(l, i), exponent;
    bool fraction = at(l, end, ".") && is_digit(l, end + 1);
    if (fraction) end = digits(l, end + 1);
    exponent = at(l, end, "e") || at(l, end, "E") ? end + 1 : 0;
    if (exponent) exponent += sign_at(l, exponent) != 0;
    if (exponent && is_digit(l, exponent)) return digits(l, exponent);
    return fraction ? end : 0;
}

/* The written digits without underscores; false when there are absurdly many. */
static bool plain_number(str s, char *out, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '_') continue;
        if (n + 1 >= cap) return false;
        out[n++] = s.p[i];
    }
    out[n] = 0;
    return true;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static ig_status lex_integer(tlex *l, ttoken *ret)
{
    size_t i = l->at;
    int base = 10;
    int64_t value = 0;
    char mark = at(l, i, "0") && i + 1 < l->text.n ? l->text.p[i + 1] | 0x20 : 0;
    if (mark == 'x' || mark == 'o' || mark == 'b') {
        int b = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
        size_t first = i + 2 + at(l, i + 2, "_");
        if (first < l->text.n && digit_value(l->text.p[first]) < b) base = b, i = first;
    }
    bool zero = base == 10 && at(l, i, "0"); /* only zeros follow a leading zero */
    for (; i < l->text.n; i++) {
        if (l->text.p[i] == '_' && i > l->at && i + 1 < l->text.n &&
            digit_value(l->text.p[i + 1]) < base && !(zero && l->text.p[i + 1] != '0'))
            continue;
        int d = digit_value(l->text.p[i]);
        if (d >= base || (zero && d)) break;
        if (__builtin_mul_overflow(value, (int64_t)base, &value) ||
            __builtin_add_overflow(value, (int64_t)d, &value))
            return fail(l, "an integer is larger than 64 bits");
    }
    *ret = (ttoken){K_CONST, l->line, {l->text.p + l->at, i - l->at}, tval_int(value, true)};
    advance(l, i);
    return IG_OK;
}

static ig_status lex_number(tlex *l, ttoken *ret)
{
    char plain[128];
    double f = 0;
    size_t end = l->at && l->text.p[l->at - 1] == '.' ? 0 : float_end(l, l->at);
    if (!end) return lex_integer(l, ret);
    str s = {l->text.p + l->at, end - l->at};
    if (!plain_number(s, plain, sizeof plain) || !str_double(str_of(plain), &f))
        return fail(l, "a number cannot be read");
    *ret = (ttoken){K_CONST, l->line, s, tval_float(f, true)};
    advance(l, end);
    return IG_OK;
}

/* A backslash escape at s.p[*i], behind the backslash; appends what it means. */
static ig_status unescape(const tlex *l, str s, size_t *i, char *out, size_t *n)
{
    static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    char c = s.p[(*i)++];
    if (c == '\n') return IG_OK;
    for (const char *p = plain; *p; p += 2)
        if (c == p[0]) {
            out[(*n)++] = p[1];
            return IG_OK;
        }
    uint32_t cp = 0;
    size_t want = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0, got = 0;
    if (c >= '0' && c <= '7') {
        (*i)--;
        for (; got < 3 && *i < s.n && s.p[*i] >= '0' && s.p[*i] <= '7'; got++)
            cp = cp * 8 + (uint32_t)(s.p[(*i)++] - '0');
    } else if (want) {
        for (; got < want && *i < s.n && digit_value(s.p[*i]) < 16; got++)
            cp = cp << 4 | (uint32_t)digit_value(s.p[(*i)++]);
        if (got < want) return fail(l, "an escape in a string is cut short");
    } else if (c == 'N' || (c & 0x80)) {
        return fail(l, "this escape in a string is not supported");
    } else { /* Python keeps the backslash of what is no escape */
        out[(*n)++] = '\\';
        out[(*n)++] = c;
        return IG_OK;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return fail(l, "an escape in a string is not a character");
    *n += utf8_encode(cp, out + *n);
    return IG_OK;
}

static ig_status lex_string(tlex *l, ttoken *ret)
{
    char quote = l->text.p[l->at];
    size_t end = l->at + 1, n = 0;
    while (end < l->text.n && l->text.p[end] != quote) end += l->text.p[end] == '\\' ? 2 : 1;
    if (end >= l->text.n) return fail(l, "a string without end");
    str s = {l->text.p + l->at + 1, end - l->at - 1};
    char *out = arena_alloc(l->memory, s.n, 1);
    if (!out) return l->memory->status;
    for (size_t i = 0; i < s.n;) {
        if (s.p[i] == '\\') {
            i++;
            TRY(unescape(l, s, &i, out, &n));
        } else {
            out[n++] = s.p[i++];
        }
    }
    const tstr *v = tstr_new(l->memory, out, n, true);
    if (!v) return l->memory->status;
    tstr_chars(v); /* counted now: constants are shared by threads */
    *ret = (ttoken){K_CONST, l->line, s, tval_str(v)};
    advance(l, end + 1);
    return IG_OK;
}

static ig_status balance(tlex *l, char c)
{
    const char *open = "({[", *close = ")}]";
    if (strchr(open, c)) {
        if (l->n_brackets == sizeof l->brackets) return fail(l, "brackets nested too deep");
        l->brackets[l->n_brackets++] = close[strchr(open, c) - open];
    } else if (strchr(close, c)) {
        if (!l->n_brackets || l->brackets[--l->n_brackets] != c)
            return fail(l, "a closing bracket without its opening one");
    }
    return IG_OK;
}

static ig_status lex_operator(tlex *l, ttoken *ret)
{
    static const char *const ops[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (size_t i = 0; i < N_ELEM(ops); i++) {
        if (!at(l, l->at, ops[i])) continue;
        TRY(balance(l, ops[i][0]));
        *ret = (ttoken){K_OPERATOR, l->line, {l->text.p + l->at, strlen(ops[i])}, tval_missing()};
        advance(l, l->at + strlen(ops[i]));
        return IG_OK;
    }
    uint32_t cp;
    size_t n = utf8_decode(l->text.p + l->at, l->text.n - l->at, &cp);
    return ig_fail(IG_EFORMAT, "%s: line %u: unexpected character %.*s in a tag", l->what, l->line,
                   (int)n, l->text.p + l->at);
}

/* One step inside a tag. */
static ig_status lex_tag(tlex *l, ttoken *ret)
{
    advance(l, skip_space(l, l->at));
    bool print = l->mode == LEX_PRINT;
    size_t end = l->n_brackets ? 0 : tag_end(l, l->at, print ? "}}" : "%}", !print, !print);
    if (l->at == l->text.n) return fail(l, print ? "{{ without }}" : "{% without %}");
    if (end) {
        *ret = (ttoken){
            print ? K_PRINT_END : K_TAG_END, l->line, {l->text.p + l->at, 2}, tval_missing()};
        advance(l, end);
        l->mode = LEX_DATA;
        return IG_OK;
    }
    char c = l->text.p[l->at];
    if (is_digit(l, l->at)) return lex_number(l, ret);
    if (c == '"' || c == '\'') return lex_string(l, ret);
    if (!is_word(l, l->at)) return lex_operator(l, ret);
    size_t word = l->at;
    while (is_word(l, word)) word++;
    *ret = (ttoken){K_NAME, l->line, {l->text.p + l->at, word - l->at}, tval_missing()};
    advance(l, word);
    return IG_OK;
}

ig_status tlex_next(tlex *l, ttoken *ret)
{
    if (l->mode != LEX_DATA) return lex_tag(l, ret);
    do TRY(lex_data(l, ret));
    while (ret->kind == K_DATA && !ret->text.n);
    return IG_OK;
}
