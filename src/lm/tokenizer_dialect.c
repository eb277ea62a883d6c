/* tokenizer_dialect.c: Oniguruma's syntax as PCRE2 understands it.
 *
 * Published patterns are written for Oniguruma (Ruby syntax). What differs:
 * - \s \w \d \b \h and \p{..} follow Oniguruma's tables; PCRE2's \s holds U+180E, its \w lacks
 *   marks;
 * - scripts mean Script, not Script_Extensions; code points newer than PCRE2's tables are added;
 * - x{1,3}+ repeats x{1,3} instead of being possessive; {,n} means {0,n}; a brace that begins no
 *   interval is a literal; (?m: lets the dot match a line end;
 * - plain groups capture: nothing here refers back, so they become (?:.
 * Two differences stay: (?i:) folds one character to one ("ss" is not "\u00df"), and \p{Mn}
 * holds U+1171E. Anything not known to mean the same is refused by name, back references and
 * class set operations among them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "lm/tokenizer_regex.h"
#include "lm/tokenizer_tables.h"
#include "lm/tokenizer_unicode.h"

#define MAX_GROUPS 250

typedef struct translator {
    const char *where;
    str in;
    size_t at; /* next byte of in */
    buf *out;
    size_t atom;              /* where the last atom begins in out; SIZE_MAX: none */
    size_t group[MAX_GROUPS]; /* where each open group begins in out */
    size_t n_groups;
} translator;

static ig_status refuse(const translator *t, const char *what)
{
    return ig_fail(IG_EUNSUPPORTED, "%s: %s at byte %zu of the pattern %.*s is not supported",
                   t->where, what, t->at, (int)(t->in.n < 400 ? t->in.n : 400), t->in.p);
}

static bool peek(const translator *t, const char *s)
{
    size_t n = strlen(s);
    return t->in.n - t->at >= n && memcmp(t->in.p + t->at, s, n) == 0;
}

static void put_range(buf *out, uint32_t first, uint32_t last)
{
    buf_printf(out, first == last ? "\\x{%x}" : "\\x{%x}-\\x{%x}", first, last);
}

static void put_ranges(buf *out, const code_range *r, size_t n)
{
    for (size_t i = 0; i < n; i++) put_range(out, r[i].first, r[i].last);
}

/* The newer members of a general category ("L", "Lu"). */
static void put_newer(buf *out, const char *gc)
{
    for (size_t i = 0; i < N_ELEM(regex_gc); i++)
        if (regex_gc[i].gc[0] == gc[0] && (!gc[1] || regex_gc[i].gc[1] == gc[1]))
            put_range(out, regex_gc[i].first, regex_gc[i].last);
}

static const char space_set[] = "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}"
                                "\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
static const char not_space_set[] =
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}";

static void put_category(buf *out, const char *gc)
{
    buf_printf(out, "\\p{%s}", gc);
    put_newer(out, gc);
}

static void put_alphabetic(buf *out)
{
    buf_str(out, "\\p{Alphabetic}");
    put_ranges(out, regex_alphabetic, N_ELEM(regex_alphabetic));
}

/* Oniguruma's \w outside brackets also holds six Latin-1 numbers, inside it does not. */
static void put_word(buf *out, bool in_class)
{
    if (!in_class) buf_str(out, "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}");
    put_alphabetic(out);
    put_category(out, "M");
    put_category(out, "Nd");
    put_category(out, "Pc");
}

static bool put_script(buf *out, const char *name)
{
    bool known = false;
    for (size_t i = 0; i < N_ELEM(regex_scripts); i++) {
        if (strcasecmp(regex_scripts[i].script, name)) continue;
        if (!known) buf_printf(out, "\\p{sc:%s}", regex_scripts[i].script);
        known = true;
        if (regex_scripts[i].first <= regex_scripts[i].last)
            put_range(out, regex_scripts[i].first, regex_scripts[i].last);
    }
    return known;
}

static bool put_gc(buf *out, const char *name)
{
    static const char *const known[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc",
                                        "Me", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps",
                                        "Pe", "Pi", "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So",
                                        "Z",  "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
    static const char *const longer[][2] = {{"Letter", "L"}, {"Mark", "M"},
                                            {"Number", "N"}, {"Punctuation", "P"},
                                            {"Symbol", "S"}, {"Separator", "Z"}};
    for (size_t i = 0; i < N_ELEM(longer); i++)
        if (strcasecmp(longer[i][0], name) == 0) name = longer[i][1];
    for (size_t i = 0; i < N_ELEM(known); i++)
        if (strcasecmp(known[i], name) == 0) return put_category(out, known[i]), true;
    return false;
}

/* The members of a named property, as items of a class. */
static bool put_property(buf *out, const char *name, bool in_class)
{
    if (put_gc(out, name) || put_script(out, name)) return true;
    if (!strcasecmp(name, "Any")) return buf_str(out, "\\x00-\\x{10ffff}"), true;
    if (!strcasecmp(name, "Alphabetic") || !strcasecmp(name, "Alpha"))
        return put_alphabetic(out), true;
    if (!strcasecmp(name, "Alnum")) return put_alphabetic(out), put_category(out, "Nd"), true;
    if (!strcasecmp(name, "Digit")) return put_category(out, "Nd"), true;
    if (!strcasecmp(name, "Word")) return put_word(out, in_class), true;
    if (!strcasecmp(name, "Space")) return buf_str(out, space_set), true;
    return false;
}

/* \p{..} behind the p, in a class or (with brackets) outside. */
static ig_status property(translator *t, bool negated, bool in_class)
{
    if (!peek(t, "{")) return refuse(t, "\\p without braces");
    const char *close = memchr(t->in.p + t->at, '}', t->in.n - t->at);
    if (!close) return refuse(t, "\\p{ without }");
    const char *p = t->in.p + t->at + 1;
    if (*p == '^') negated = !negated, p++;
    char name[32];
    size_t n = 0;
    for (; p < close; p++) {
        if (*p == ' ' || *p == '_' || *p == '-') continue;
        if (n + 1 == sizeof name || !isalnum((unsigned char)*p)) return refuse(t, "this property");
        name[n++] = *p;
    }
    name[n] = 0;
    if (negated && in_class) return refuse(t, "a negated property inside [ ]");
    if (!in_class) buf_str(t->out, negated ? "[^" : "[");
    if (!put_property(t->out, name, in_class)) {
        char what[64];
        snprintf(what, sizeof what, "\\p{%s}", name);
        return refuse(t, what);
    }
    if (!in_class) buf_char(t->out, ']');
    t->at = (size_t)(close - t->in.p) + 1;
    return IG_OK;
}

static void put_literal(buf *out, const char *p, size_t n)
{
    if (n == 1 && ispunct((unsigned char)*p)) buf_char(out, '\\');
    if (n == 1 && *p == 0)
        buf_str(out, "\\x00");
    else
        buf_add(out, p, n);
}

static bool hex(const translator *t, size_t at, size_t n, uint32_t *ret)
{
    uint32_t v = 0;
    if (n == 0 || n > 8 || t->in.n - at < n) return false;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)t->in.p[at + i];
        if (!isxdigit(c)) return false;
        v = v * 16 + (uint32_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    *ret = v;
    return true;
}

/* \x41 \x{1f600} \u3042 behind the letter. */
static ig_status code_escape(translator *t, char letter, uint32_t *ret_cp)
{
    uint32_t cp = 0;
    size_t n = letter == 'u' ? 4 : 2;
    bool ok;
    if (letter == 'x' && peek(t, "{")) {
        const char *close = memchr(t->in.p + t->at, '}', t->in.n - t->at);
        n = close ? (size_t)(close - t->in.p) - t->at - 1 : 0;
        ok = hex(t, t->at + 1, n, &cp);
        n += 2;
    } else {
        ok =
            hex(t, t->at, n, &cp) && (letter == 'u' || cp < 0x80); /* a lone byte is no character */
    }
    if (!ok || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) return refuse(t, "this code point");
    t->at += n;
    *ret_cp = cp;
    return IG_OK;
}

/* A character of a class or a literal outside one: one code point, written so that PCRE2 takes
 * it as such. */
static ig_status single(translator *t, bool in_class, bool *ret_single)
{
    static const char from[] = "tnrfvae", to[] = "\t\n\r\f\v\a\033";
    *ret_single = true;
    char c = t->in.p[t->at];
    if (c != '\\') {
        size_t n;
        (void)unicode_at(t->in.p + t->at, &n);
        put_literal(t->out, t->in.p + t->at, n);
        t->at += n;
        return IG_OK;
    }
    if (t->at + 1 == t->in.n) return refuse(t, "a backslash at the end");
    c = t->in.p[t->at + 1];
    const char *control = strchr(from, c);
    uint32_t cp = 0;
    if (c && control) {
        cp = (uint32_t)to[control - from];
    } else if (c == 'b' && in_class) {
        cp = 8;
    } else if (c == 'x' || c == 'u') {
        t->at += 2;
        TRY(code_escape(t, c, &cp));
        t->at -= 2;
    } else if (isalnum((unsigned char)c)) {
        *ret_single = false;
        return IG_OK;
    } else {
        t->at++;
        size_t n;
        (void)unicode_at(t->in.p + t->at, &n);
        put_literal(t->out, t->in.p + t->at, n);
        t->at += n;
        return IG_OK;
    }
    t->at += 2;
    buf_printf(t->out, "\\x{%x}", cp);
    return IG_OK;
}

/* \s \w \d \h \p{..} and their negations; t->at is at the backslash. */
static ig_status class_escape(translator *t, bool in_class)
{
    char c = t->in.p[t->at + 1], what[4] = {'\\', c, 0, 0};
    bool upper = c >= 'A' && c <= 'Z';
    if (c == 'p' || c == 'P') {
        t->at += 2;
        return property(t, upper, in_class);
    }
    if (!strchr("sSwWdDhH", c)) return refuse(t, what);
    if (in_class && upper && c != 'S') return refuse(t, what);
    t->at += 2;
    if (in_class && c == 'S') return buf_str(t->out, not_space_set), IG_OK;
    if (!in_class) buf_str(t->out, upper ? "[^" : "[");
    switch (c | 32) {
    case 's': buf_str(t->out, space_set); break;
    case 'w': put_word(t->out, in_class); break;
    case 'd': put_category(t->out, "Nd"); break;
    default: buf_str(t->out, "0-9a-fA-F"); break;
    }
    if (!in_class) buf_char(t->out, ']');
    return IG_OK;
}

static ig_status posix_class(translator *t)
{
    static const char *const known[] = {"alpha", "alnum", "digit", "space", "word"};
    for (size_t i = 0; i < N_ELEM(known); i++) {
        char form[16];
        snprintf(form, sizeof form, "[:%s:]", known[i]);
        if (!peek(t, form)) continue;
        t->at += strlen(form);
        (void)put_property(t->out, known[i], true);
        return IG_OK;
    }
    return refuse(t, "a class inside a class");
}

/* [..] from the bracket on. */
static ig_status class_(translator *t)
{
    t->at++;
    buf_char(t->out, '[');
    if (peek(t, "^")) buf_char(t->out, '^'), t->at++;
    if (peek(t, "]")) return refuse(t, "an empty class");
    while (t->at < t->in.n && t->in.p[t->at] != ']') {
        if (peek(t, "&&")) return refuse(t, "&&");
        if (t->in.p[t->at] == '[') {
            TRY(posix_class(t));
            continue;
        }
        bool one;
        TRY(single(t, true, &one));
        if (!one) {
            TRY(class_escape(t, true));
            continue;
        }
        /* a range, unless the hyphen is the last character */
        if (!peek(t, "-") || peek(t, "-]")) continue;
        t->at++;
        buf_char(t->out, '-');
        if (t->at == t->in.n || t->in.p[t->at] == '[') return refuse(t, "this range");
        TRY(single(t, true, &one));
        if (!one) return refuse(t, "this range");
    }
    if (t->at == t->in.n) return refuse(t, "[ without ]");
    t->at++;
    buf_char(t->out, ']');
    return IG_OK;
}

/* (?i-m: and the like behind "(?". The letters that both know, with m for PCRE2's s. */
static ig_status group_options(translator *t, size_t start)
{
    buf_str(t->out, "(?");
    size_t at = t->at;
    for (; at < t->in.n && strchr("im-", t->in.p[at]) && t->in.p[at]; at++)
        buf_char(t->out, t->in.p[at] == 'm' ? 's' : t->in.p[at]);
    if (at == t->in.n || at == t->at) return refuse(t, "this group");
    if (t->in.p[at] == ')' && start == 0) { /* for the whole pattern */
        t->at = at + 1;
        buf_char(t->out, ')');
        t->n_groups--;
        t->atom = SIZE_MAX;
        return IG_OK;
    }
    if (t->in.p[at] != ':') return refuse(t, "this group");
    t->at = at + 1;
    buf_char(t->out, ':');
    return IG_OK;
}

static ig_status open_group(translator *t)
{
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (t->n_groups == MAX_GROUPS) return refuse(t, "so deep a nesting of groups");
    size_t start = t->at;
    t->group[t->n_groups++] = t->out->n;
    t->atom = SIZE_MAX;
    for (size_t i = 0; i < N_ELEM(same); i++)
        if (peek(t, same[i])) {
            buf_str(t->out, same[i]);
            t->at += strlen(same[i]);
            return IG_OK;
        }
    t->at++;
    if (peek(t, "?")) {
        t->at++;
        return group_options(t, start);
    }
    if (peek(t, "*")) return refuse(t, "(*");
    buf_str(t->out, "(?:");
    return IG_OK;
}

/* Puts (?: .. ) around the last atom. */
static ig_status wrap_atom(translator *t)
{
    AUTO(buf) tail = {0};
    buf_init(&tail, t->out->max);
    buf_add(&tail, t->out->data + t->atom, t->out->n - t->atom);
    TRY(buf_status(&tail));
    t->out->n = t->atom;
    buf_str(t->out, "(?:");
    buf_add(t->out, tail.data, tail.n);
    buf_char(t->out, ')');
    return IG_OK;
}

/* {n} {n,} {n,m} {,m}: false when the brace begins none. */
static bool interval(const translator *t, size_t *ret_n, uint32_t *ret_lo, uint32_t *ret_hi,
                     bool *ret_range)
{
    size_t i = t->at + 1;
    uint32_t v[2] = {0, UINT32_MAX};
    bool digits[2] = {false, false}, range = false;
    for (int k = 0; k < 2; k++) {
        uint32_t x = 0;
        for (; i < t->in.n && isdigit((unsigned char)t->in.p[i]) && x <= 100000;
             i++, digits[k] = true)
            x = x * 10 + (uint32_t)(t->in.p[i] - '0');
        if (digits[k]) v[k] = x;
        if (k == 0 && i < t->in.n && t->in.p[i] == ',') {
            range = true;
            i++;
        } else if (k == 0) {
            break;
        }
    }
    if (i >= t->in.n || t->in.p[i] != '}' || (!digits[0] && !digits[1])) return false;
    if (!range) v[1] = v[0];
    *ret_n = i + 1 - t->at;
    *ret_lo = v[0];
    *ret_hi = v[1];
    *ret_range = range;
    return true;
}

static ig_status quantifier(translator *t)
{
    char c = t->in.p[t->at];
    size_t n = 1;
    uint32_t lo = 0, hi = 0;
    bool range = false;
    if (c == '{' && !interval(t, &n, &lo, &hi, &range)) {
        t->atom = t->out->n;
        buf_str(t->out, "\\{");
        t->at++;
        return IG_OK;
    }
    if (t->atom == SIZE_MAX) return refuse(t, "a repetition of nothing");
    t->at += n;
    if (c != '{') {
        buf_char(t->out, c);
    } else if (hi == UINT32_MAX) {
        buf_printf(t->out, "{%u,}", lo);
    } else {
        buf_printf(t->out, "{%u,%u}", lo, hi);
    }
    if (peek(t, "?")) {
        if (c == '{' && !range) return refuse(t, "{n}?");
        buf_char(t->out, '?');
        t->at++;
    } else if (peek(t, "+") && c != '{') {
        buf_char(t->out, '+');
        t->at++;
    }
    /* whatever repetition follows repeats the repetition, as in x{1,3}+ */
    if (t->at < t->in.n && strchr("*+?", t->in.p[t->at]) && t->in.p[t->at]) return wrap_atom(t);
    if (peek(t, "{")) return wrap_atom(t);
    return IG_OK;
}

static ig_status escape(translator *t)
{
    if (t->at + 1 == t->in.n) return refuse(t, "a backslash at the end");
    char c = t->in.p[t->at + 1];
    if (c == 'b' || c == 'B') {
        AUTO(buf) w = {0};
        buf_init(&w, 1 << 16);
        put_word(&w, false);
        TRY(buf_status(&w));
        const char *second = c == 'b' ? "!" : "=", *third = c == 'b' ? "=" : "!";
        buf_printf(t->out, "(?:(?<=[%s])(?%s[%s])|(?<![%s])(?%s[%s]))", w.data, second, w.data,
                   w.data, third, w.data);
        t->at += 2;
        return IG_OK;
    }
    if (strchr("AzZG", c) && c) {
        buf_add(t->out, t->in.p + t->at, 2);
        t->at += 2;
        return IG_OK;
    }
    bool one;
    TRY(single(t, false, &one));
    return one ? IG_OK : class_escape(t, false);
}

static ig_status item(translator *t)
{
    char c = t->in.p[t->at];
    if (c == '(') return open_group(t);
    if (c == ')') {
        if (t->n_groups == 0) return refuse(t, "an unopened )");
        t->atom = t->group[--t->n_groups];
        buf_char(t->out, ')');
        t->at++;
        return IG_OK;
    }
    if (c == '|') {
        buf_char(t->out, '|');
        t->at++;
        t->atom = SIZE_MAX;
        return IG_OK;
    }
    if (c == '*' || c == '+' || c == '?' || c == '{') return quantifier(t);
    t->atom = t->out->n;
    if (c == '[') return class_(t);
    if (c == '\\') return escape(t);
    if (c == '.' || c == '^' || c == '$') {
        buf_char(t->out, c);
        t->at++;
        return IG_OK;
    }
    bool one;
    return single(t, false, &one);
}

ig_status regex_translate(const char *where, str pattern, buf *ret_pattern)
{
    if (!utf8_valid(pattern.p, pattern.n))
        return ig_fail(IG_EFORMAT, "%s: a pattern that is not UTF-8", where);
    translator t = {.where = where, .in = pattern, .out = ret_pattern, .atom = SIZE_MAX};
    while (t.at < pattern.n && ret_pattern->status == IG_OK) TRY(item(&t));
    if (t.n_groups) return refuse(&t, "( without )");
    buf_add(ret_pattern, "", 0);
    return buf_status(ret_pattern);
}
