/* tstrmethod.c: the methods of str. Positions are code points, as Python counts. */
#include <string.h>
#include "lm/template/trun.h"
#include "lm/template/tunicode.h"

/* --- pieces that filters use too */

static bool holds(const tstr *set, uint32_t cp)
{
    for (tchars it = tchars_of(set); tchars_next(&it);)
        if (it.cp == cp) return true;
    return false;
}

static ig_status sub(trun *r, const tstr *s, size_t from, size_t to, tval *ret)
{
    const tstr *made = tstr_sub(r->a, s, from, to);
    if (!made) return r->a->status;
    *ret = tval_str(made);
    return IG_OK;
}

ig_status tstrmethod_strip(trun *r, const tstr *s, const tstr *chars, tstrip sides, tval *ret)
{
    size_t from = 0, to = s->n;
    uint32_t cp;
    TRY(trun_charge(r, s->n));
    if (!chars) {
        if (sides & STRIP_LEFT) from = tunicode_leading(s->p, s->n);
        if (sides & STRIP_RIGHT) to -= tunicode_trailing(s->p + from, s->n - from);
        return sub(r, s, from, to, ret);
    }
    while ((sides & STRIP_LEFT) && from < to) {
        size_t n = utf8_decode(s->p + from, to - from, &cp);
        TRY(trun_charge(r, chars->n));
        if (!holds(chars, cp)) break;
        from += n;
    }
    while ((sides & STRIP_RIGHT) && from < to) {
        size_t at = to;
        while (at > from && (s->p[--at] & 0xc0) == 0x80) {}
        utf8_decode(s->p + at, to - at, &cp);
        TRY(trun_charge(r, chars->n));
        if (!holds(chars, cp)) break;
        to = at;
    }
    return sub(r, s, from, to, ret);
}

ig_status tstrmethod_replace(trun *r, const tstr *s, const tstr *old, const tstr *new,
                             int64_t count, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    size_t at = 0;
    uint32_t cp;
    TRY(trun_charge(r, s->n));
    tbuild_init(&b, r->limits.max_output);
    while (count != 0) {
        size_t found = tstr_find(s, old, at);
        if (found == SIZE_MAX) break;
        TRY(trun_charge(r, new->n));
        tbuild_sub(&b, s, at, found);
        tbuild_sub(&b, new, 0, new->n);
        count--;
        at = found + old->n;
        if (old->n) continue;
        if (at == s->n) break; /* an empty text stands in front of every character and at the end */
        size_t n = utf8_decode(s->p + at, s->n - at, &cp);
        tbuild_sub(&b, s, at, at + n);
        at += n;
    }
    tbuild_sub(&b, s, at, s->n);
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

ig_status tstrmethod_case(trun *r, const tstr *s, int how, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    TRY(trun_charge(r, 16 * s->n));
    tbuild_init(&b, r->limits.max_output);
    tunicode_case(&b, s, (tcase)how);
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

/* Sequences of values made one by one. */
typedef struct pieces {
    tval *at; /* owned */
    size_t n, cap;
} pieces;
static void pieces_auto(pieces *p) { mem_free(p->at); }

static ig_status add_piece(trun *r, pieces *p, const tstr *s, size_t from, size_t to)
{
    TRY(trun_charge(r, 64));
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 16;
        tval *grown = mem_realloc(p->at, cap * sizeof *grown);
        if (!grown) return IG_ENOMEM;
        p->at = grown;
        p->cap = cap;
    }
    TRY(sub(r, s, from, to, &p->at[p->n]));
    p->n++;
    return IG_OK;
}

static ig_status take_pieces(trun *r, pieces *p, tseq **ret)
{
    TRY(tval_new_seq(r, SEQ_LIST, p->n, true, ret));
    if (p->n) memcpy((*ret)->items, p->at, p->n * sizeof *p->at);
    return IG_OK;
}

/* Bytes of the line end at p, or 0. */
static size_t line_end(const char *p, size_t n)
{
    uint32_t cp;
    size_t len = utf8_decode(p, n, &cp);
    if (cp == '\r' && n > 1 && p[1] == '\n') return 2;
    bool ends = (cp >= 0xa && cp <= 0xd) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
                cp == 0x2028 || cp == 0x2029;
    return ends ? len : 0;
}

ig_status tstrmethod_lines(trun *r, const tstr *s, bool keep_ends, tseq **ret)
{
    AUTO(pieces) p = {0};
    size_t start = 0;
    TRY(trun_charge(r, s->n));
    for (size_t i = 0; i < s->n;) {
        size_t n = (s->p[i] & 0xc0) == 0x80 ? 0 : line_end(s->p + i, s->n - i);
        if (n) {
            TRY(add_piece(r, &p, s, start, keep_ends ? i + n : i));
            start = i + n;
        }
        i += n ? n : 1;
    }
    if (start < s->n) TRY(add_piece(r, &p, s, start, s->n));
    return take_pieces(r, &p, ret);
}

ig_status tstrmethod_pad(trun *r, const tstr *s, int64_t width, const tstr *fill, tstrip side,
                         tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *made;
    int64_t n = width - (int64_t)tstr_chars(s), left;
    if (n <= 0) return sub(r, s, 0, s->n, ret);
    if ((uint64_t)n > r->limits.max_output)
        return ig_fail(IG_ELIMIT, "a string of more than %zu bytes", r->limits.max_output);
    left = side == STRIP_LEFT    ? n
           : side == STRIP_RIGHT ? 0
                                 : n / 2 + (n & width & 1); /* as CPython's center */
    TRY(trun_charge(r, (size_t)n));
    tbuild_init(&b, r->limits.max_output);
    for (int64_t i = 0; i < left; i++) tbuild_sub(&b, fill, 0, fill->n);
    tbuild_sub(&b, s, 0, s->n);
    for (int64_t i = left; i < n; i++) tbuild_sub(&b, fill, 0, fill->n);
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

bool tstrmethod_has_case(const tstr *s, bool upper)
{
    bool any = false;
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        if (tunicode_cased(it.cp) && !(upper ? tunicode_upper(it.cp) : tunicode_lower(it.cp)))
            return false;
        any |= tunicode_cased(it.cp);
    }
    return any;
}

/* --- methods: (self, arguments in the order of the row's parameters) */

static ig_status opt_str(trun *r, const char *what, tval v, const tstr **ret)
{
    *ret = NULL;
    return v.kind == T_MISSING || v.kind == T_NONE ? IG_OK : targs_str(r, what, v, ret);
}

static ig_status strip(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *chars;
    TRY(opt_str(r, "strip", v[0], &chars));
    return tstrmethod_strip(r, self.s, chars, STRIP_BOTH, ret);
}

static ig_status lstrip(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *chars;
    TRY(opt_str(r, "lstrip", v[0], &chars));
    return tstrmethod_strip(r, self.s, chars, STRIP_LEFT, ret);
}

static ig_status rstrip(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *chars;
    TRY(opt_str(r, "rstrip", v[0], &chars));
    return tstrmethod_strip(r, self.s, chars, STRIP_RIGHT, ret);
}

static ig_status replace(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *old, *new;
    int64_t count;
    TRY(targs_str(r, "replace", v[0], &old));
    TRY(targs_str(r, "replace", v[1], &new));
    TRY(targs_int("replace", v[2], -1, &count));
    return tstrmethod_replace(r, self.s, old, new, count, ret);
}

static ig_status lower(trun *r, tval self, const tval *v, tval *ret)
{
    return (void)v, tstrmethod_case(r, self.s, CASE_LOWER, ret);
}
static ig_status upper(trun *r, tval self, const tval *v, tval *ret)
{
    return (void)v, tstrmethod_case(r, self.s, CASE_UPPER, ret);
}
static ig_status title(trun *r, tval self, const tval *v, tval *ret)
{
    return (void)v, tstrmethod_case(r, self.s, CASE_TITLE, ret);
}
static ig_status casefold(trun *r, tval self, const tval *v, tval *ret)
{
    return (void)v, tstrmethod_case(r, self.s, CASE_FOLD, ret);
}

static ig_status capitalize(trun *r, tval self, const tval *v, tval *ret)
{
    return (void)v, tstrmethod_case(r, self.s, CASE_CAPITALIZE, ret);
}

static ig_status split_spaces(trun *r, const tstr *s, int64_t max, tval *ret)
{
    AUTO(pieces) p = {0};
    tseq *made;
    size_t at = tunicode_leading(s->p, s->n);
    while (at < s->n && max != 0) {
        size_t end = at;
        while (end < s->n &&
               !((s->p[end] & 0xc0) != 0x80 && tunicode_leading(s->p + end, s->n - end)))
            end++;
        TRY(add_piece(r, &p, s, at, end));
        at = end + tunicode_leading(s->p + end, s->n - end);
        max--;
    }
    if (at < s->n) TRY(add_piece(r, &p, s, at, s->n)); /* past the limit: the rest as it is */
    TRY(take_pieces(r, &p, &made));
    *ret = tval_seq(made);
    return IG_OK;
}

static ig_status split(trun *r, tval self, const tval *v, tval *ret)
{
    AUTO(pieces) p = {0};
    const tstr *sep, *s = self.s;
    int64_t max;
    tseq *made;
    TRY(opt_str(r, "split", v[0], &sep));
    TRY(targs_int("split", v[1], -1, &max));
    TRY(trun_charge(r, s->n));
    if (!sep) return split_spaces(r, s, max, ret);
    if (!sep->n) return ig_fail(IG_EINVAL, "split: the separator is empty");
    size_t at = 0, found;
    while (max-- != 0 && (found = tstr_find(s, sep, at)) != SIZE_MAX) {
        TRY(add_piece(r, &p, s, at, found));
        at = found + sep->n;
    }
    TRY(add_piece(r, &p, s, at, s->n));
    TRY(take_pieces(r, &p, &made));
    *ret = tval_seq(made);
    return IG_OK;
}

static ig_status rsplit(trun *r, tval self, const tval *v, tval *ret)
{
    AUTO(pieces) p = {0};
    const tstr *sep, *s = self.s;
    int64_t max;
    tseq *made;
    TRY(opt_str(r, "rsplit", v[0], &sep));
    TRY(targs_int("rsplit", v[1], -1, &max));
    if (max < 0) return split(r, self, v, ret);
    if (!sep) return ig_fail(IG_EUNSUPPORTED, "rsplit at white space with a limit");
    if (!sep->n) return ig_fail(IG_EINVAL, "rsplit: the separator is empty");
    size_t end = s->n, found;
    while (max-- > 0 && (found = tstr_rfind(s, sep, end)) != SIZE_MAX) {
        TRY(trun_charge(r, end - found));
        TRY(add_piece(r, &p, s, found + sep->n, end));
        end = found;
    }
    TRY(add_piece(r, &p, s, 0, end));
    TRY(take_pieces(r, &p, &made));
    for (size_t i = 0; i < made->n; i++) made->items[i] = p.at[made->n - 1 - i];
    *ret = tval_seq(made);
    return IG_OK;
}

static ig_status splitlines(trun *r, tval self, const tval *v, tval *ret)
{
    tseq *lines;
    TRY(tstrmethod_lines(r, self.s, tval_truth(v[0]), &lines));
    *ret = tval_seq(lines);
    return IG_OK;
}

static ig_status three_parts(trun *r, const tstr *s, const size_t cuts[4], tval *ret)
{
    tseq *made;
    TRY(tval_new_seq(r, SEQ_TUPLE, 3, true, &made));
    for (size_t i = 0; i < 3; i++) TRY(sub(r, s, cuts[i], cuts[i + 1], &made->items[i]));
    *ret = tval_seq(made);
    return IG_OK;
}

static ig_status partition(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *sep, *s = self.s;
    TRY(targs_str(r, "partition", v[0], &sep));
    if (!sep->n) return ig_fail(IG_EINVAL, "partition: the separator is empty");
    TRY(trun_charge(r, s->n));
    size_t found = tstr_find(s, sep, 0);
    if (found == SIZE_MAX) return three_parts(r, s, (size_t[]){0, s->n, s->n, s->n}, ret);
    return three_parts(r, s, (size_t[]){0, found, found + sep->n, s->n}, ret);
}

static ig_status rpartition(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *sep, *s = self.s;
    TRY(targs_str(r, "rpartition", v[0], &sep));
    if (!sep->n) return ig_fail(IG_EINVAL, "rpartition: the separator is empty");
    TRY(trun_charge(r, s->n));
    size_t found = tstr_rfind(s, sep, s->n);
    if (found == SIZE_MAX) return three_parts(r, s, (size_t[]){0, 0, 0, s->n}, ret);
    return three_parts(r, s, (size_t[]){0, found, found + sep->n, s->n}, ret);
}

/* Bytes [*from, *to) of characters [start, end), as slices cut; false where start lies behind
 * end. */
static ig_status window(trun *r, const char *what, const tstr *s, tval start, tval end,
                        size_t *from, size_t *to, bool *ret_valid)
{
    int64_t n = (int64_t)tstr_chars(s), a, b;
    TRY(trun_charge(r, s->n));
    TRY(targs_int(what, start, 0, &a));
    TRY(targs_int(what, end, n, &b));
    if (b > n) b = n;
    if (b < 0 && (b += n) < 0) b = 0;
    if (a < 0 && (a += n) < 0) a = 0;
    *ret_valid = a <= b;
    *from = tstr_offset(s, (size_t)(a < n ? a : n));
    *to = tstr_offset(s, (size_t)b);
    return IG_OK;
}

static bool matches(const tstr *s, size_t from, size_t to, const tstr *part, bool at_end)
{
    if (part->n > to - from) return false;
    return !memcmp(at_end ? s->p + to - part->n : s->p + from, part->p, part->n);
}

static ig_status affix(trun *r, const char *what, tval self, const tval *v, bool at_end, tval *ret)
{
    const tstr *part;
    size_t from, to;
    bool valid, found = false;
    tseq one = {.n = 1, .items = (tval[]){v[0]}};
    const tseq *parts = v[0].kind == T_SEQ && v[0].seq->kind == SEQ_TUPLE ? v[0].seq : &one;
    TRY(window(r, what, self.s, v[1], v[2], &from, &to, &valid));
    for (size_t i = 0; i < parts->n; i++) {
        TRY(targs_str(r, what, parts->items[i], &part));
        TRY(trun_charge(r, part->n));
        found |= valid && matches(self.s, from, to, part, at_end);
    }
    *ret = tval_bool(found);
    return IG_OK;
}

static ig_status startswith(trun *r, tval self, const tval *v, tval *ret)
{
    return affix(r, "startswith", self, v, false, ret);
}
static ig_status endswith(trun *r, tval self, const tval *v, tval *ret)
{
    return affix(r, "endswith", self, v, true, ret);
}

static ig_status removeprefix(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *part;
    TRY(targs_str(r, "removeprefix", v[0], &part));
    return sub(r, self.s, matches(self.s, 0, self.s->n, part, false) ? part->n : 0, self.s->n, ret);
}

static ig_status removesuffix(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *part;
    TRY(targs_str(r, "removesuffix", v[0], &part));
    return sub(r, self.s, 0, self.s->n - (matches(self.s, 0, self.s->n, part, true) ? part->n : 0),
               ret);
}

/* find, rfind, index, rindex: the position in characters, or -1. */
static ig_status locate(trun *r, const char *what, tval self, const tval *v, bool last,
                        int64_t *ret)
{
    const tstr *part, *s = self.s;
    size_t from, to, found = SIZE_MAX;
    bool valid;
    TRY(targs_str(r, what, v[0], &part));
    TRY(window(r, what, s, v[1], v[2], &from, &to, &valid));
    if (valid) found = last ? tstr_rfind(s, part, to) : tstr_find(s, part, from);
    if (found != SIZE_MAX && (found < from || found + part->n > to)) found = SIZE_MAX;
    *ret = -1;
    if (found == SIZE_MAX) return IG_OK;
    *ret = 0;
    for (size_t i = 0; i < found; i++) *ret += (s->p[i] & 0xc0) != 0x80;
    return IG_OK;
}

static ig_status find(trun *r, tval self, const tval *v, tval *ret)
{
    *ret = tval_int(0, true);
    return locate(r, "find", self, v, false, &ret->i);
}

static ig_status rfind(trun *r, tval self, const tval *v, tval *ret)
{
    *ret = tval_int(0, true);
    return locate(r, "rfind", self, v, true, &ret->i);
}

static ig_status index_of(trun *r, tval self, const tval *v, tval *ret)
{
    TRY(find(r, self, v, ret));
    return ret->i < 0 ? ig_fail(IG_EINVAL, "index: the text does not occur") : IG_OK;
}

static ig_status rindex_of(trun *r, tval self, const tval *v, tval *ret)
{
    TRY(rfind(r, self, v, ret));
    return ret->i < 0 ? ig_fail(IG_EINVAL, "rindex: the text does not occur") : IG_OK;
}

static ig_status count(trun *r, tval self, const tval *v, tval *ret)
{
    const tstr *part, *s = self.s;
    size_t from, to;
    bool valid;
    int64_t n = 0;
    TRY(targs_str(r, "count", v[0], &part));
    TRY(window(r, "count", s, v[1], v[2], &from, &to, &valid));
    *ret = tval_int(0, true);
    if (!valid) return IG_OK;
    if (!part->n) { /* between all characters and at both ends */
        for (n = 1; from < to; from++) n += (s->p[from] & 0xc0) != 0x80;
    } else {
        for (size_t at = from; (at = tstr_find(s, part, at)) != SIZE_MAX && at + part->n <= to;
             at += part->n)
            n++;
    }
    *ret = tval_int(n, true);
    return IG_OK;
}

static ig_status join(trun *r, tval self, const tval *v, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tseq *items;
    const tstr *made;
    if (self.s->markup)
        return ig_fail(IG_EUNSUPPORTED, "join of a string that went through the filter safe");
    TRY(tval_iterate(r, v[0], &items));
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < items->n; i++) {
        if (items->items[i].kind != T_STR)
            return ig_fail(IG_EINVAL, "join: item %zu is a %s, not a string", i,
                           tval_type(items->items[i]));
        TRY(trun_charge(r, self.s->n + items->items[i].s->n));
        if (i) tbuild_str(&b, self.s);
        tbuild_str(&b, items->items[i].s);
    }
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

static ig_status pad(trun *r, const char *what, tval self, const tval *v, tstrip side, tval *ret)
{
    const tstr *fill = tstr_of(r->a, " ");
    int64_t width;
    if (!fill) return r->a->status;
    TRY(targs_int(what, v[0], 0, &width));
    if (v[1].kind != T_MISSING) TRY(targs_str(r, what, v[1], &fill));
    if (tstr_chars(fill) != 1)
        return ig_fail(IG_EINVAL, "%s: the filling must be one character", what);
    return tstrmethod_pad(r, self.s, width, fill, side, ret);
}

static ig_status ljust(trun *r, tval self, const tval *v, tval *ret)
{
    return pad(r, "ljust", self, v, STRIP_RIGHT, ret);
}
static ig_status rjust(trun *r, tval self, const tval *v, tval *ret)
{
    return pad(r, "rjust", self, v, STRIP_LEFT, ret);
}
static ig_status center(trun *r, tval self, const tval *v, tval *ret)
{
    return pad(r, "center", self, v, STRIP_BOTH, ret);
}

static ig_status zfill(trun *r, tval self, const tval *v, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tstr *s = self.s, *made;
    int64_t width, n;
    size_t sign = s->n && (s->p[0] == '+' || s->p[0] == '-');
    TRY(targs_int("zfill", v[0], 0, &width));
    n = width - (int64_t)tstr_chars(s);
    if (n > (int64_t)r->limits.max_output)
        return ig_fail(IG_ELIMIT, "a string of more than %zu bytes", r->limits.max_output);
    tbuild_init(&b, r->limits.max_output);
    tbuild_sub(&b, s, 0, sign);
    if (n > 0) TRY(trun_charge(r, (size_t)n));
    for (int64_t i = 0; i < n; i++) tbuild_text(&b, "0", true);
    tbuild_sub(&b, s, sign, s->n);
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

/* All characters are of the class, and there is one. */
static ig_status all(trun *r, tval self, bool (*is)(uint32_t), tval *ret)
{
    bool yes = self.s->n != 0;
    TRY(trun_charge(r, 4 * self.s->n));
    for (tchars it = tchars_of(self.s); yes && tchars_next(&it);) yes = is(it.cp);
    *ret = tval_bool(yes);
    return IG_OK;
}

static bool alnum(uint32_t cp) { return tunicode_alpha(cp) || tunicode_number(cp); }
static bool ascii(uint32_t cp) { return cp < 0x80; }
static ig_status isalpha_of(trun *r, tval s, const tval *v, tval *ret)
{
    return (void)v, all(r, s, tunicode_alpha, ret);
}
static ig_status isalnum_of(trun *r, tval s, const tval *v, tval *ret)
{
    return (void)v, all(r, s, alnum, ret);
}
static ig_status isdigit_of(trun *r, tval s, const tval *v, tval *ret)
{
    return (void)v, all(r, s, tunicode_digit, ret);
}
static ig_status isdecimal_of(trun *r, tval s, const tval *v, tval *ret)
{
    return (void)v, all(r, s, tunicode_decimal, ret);
}
static ig_status isspace_of(trun *r, tval s, const tval *v, tval *ret)
{
    return (void)v, all(r, s, tunicode_space, ret);
}

static ig_status isascii_of(trun *r, tval s, const tval *v, tval *ret)
{
    (void)v;
    TRY(all(r, s, ascii, ret));
    ret->b |= s.s->n == 0; /* unlike the others, true of an empty string */
    return IG_OK;
}

static ig_status islower_of(trun *r, tval s, const tval *v, tval *ret)
{
    (void)v;
    *ret = tval_bool(tstrmethod_has_case(s.s, false));
    return trun_charge(r, 4 * s.s->n);
}

static ig_status isupper_of(trun *r, tval s, const tval *v, tval *ret)
{
    (void)v;
    *ret = tval_bool(tstrmethod_has_case(s.s, true));
    return trun_charge(r, 4 * s.s->n);
}

/* "{} {0}" with positional arguments and neither attributes nor formats. */
static ig_status format(trun *r, tval self, const tval *v, tval *ret)
{
    AUTO(tbuild) b = {0};
    const tseq *args = v[0].seq;
    const tstr *s = self.s, *made;
    size_t next = 0;
    if (s->markup)
        return ig_fail(IG_EUNSUPPORTED, "format of a string that went through the filter safe");
    tbuild_init(&b, r->limits.max_output);
    for (size_t i = 0; i < s->n; i++) {
        bool brace = s->p[i] == '{' || s->p[i] == '}',
             twice = brace && i + 1 < s->n && s->p[i + 1] == s->p[i];
        if (!brace || twice) {
            tbuild_sub(&b, s, i,
                       i + 1); /* a byte of a longer character at a time is fine: its mark is one */
            i += twice;
            continue;
        }
        const char *end = s->p[i] == '{' ? memchr(s->p + i, '}', s->n - i) : NULL;
        str name = {s->p + i + 1, end ? (size_t)(end - s->p) - i - 1 : 0};
        int64_t index = (int64_t)next;
        if (!end || (name.n && !str_int(name, 0, 1000, &index)))
            return ig_fail(IG_EUNSUPPORTED,
                           "format with names, attributes or formats inside braces");
        if (!name.n) next++;
        if ((size_t)index >= args->n) return ig_fail(IG_EINVAL, "format: not enough arguments");
        TRY(ttext_str(r, &b, args->items[index]));
        i += name.n + 1;
    }
    TRY(trun_charge(r, s->n));
    TRY(tbuild_take(&b, r->a, &made));
    *ret = tval_str(made);
    return IG_OK;
}

#define REFUSED(name)                   \
    {                                   \
        name, NULL, "", 0, false, false \
    }
const tmethod_row tstrmethod_rows[] = {
    {"capitalize", capitalize, "", 0, true, false},
    {"casefold", casefold, "", 0, true, false},
    {"center", center, "width fillchar", 1, true, false},
    {"count", count, "sub start end", 1, false, false},
    {"endswith", endswith, "suffix start end", 1, false, false},
    {"find", find, "sub start end", 1, false, false},
    {"format", format, NULL, 0, false, false},
    {"index", index_of, "sub start end", 1, false, false},
    {"isalnum", isalnum_of, "", 0, false, false},
    {"isalpha", isalpha_of, "", 0, false, false},
    {"isascii", isascii_of, "", 0, false, false},
    {"isdecimal", isdecimal_of, "", 0, false, false},
    {"isdigit", isdigit_of, "", 0, false, false},
    {"islower", islower_of, "", 0, false, false},
    {"isspace", isspace_of, "", 0, false, false},
    {"isupper", isupper_of, "", 0, false, false},
    {"join", join, "iterable", 1, false, false},
    {"ljust", ljust, "width fillchar", 1, true, false},
    {"lower", lower, "", 0, true, false},
    {"lstrip", lstrip, "chars", 0, true, false},
    {"partition", partition, "sep", 1, true, false},
    {"removeprefix", removeprefix, "prefix", 1, true, false},
    {"removesuffix", removesuffix, "suffix", 1, true, false},
    {"replace", replace, "old new count", 2, true, false},
    {"rfind", rfind, "sub start end", 1, false, false},
    {"rindex", rindex_of, "sub start end", 1, false, false},
    {"rjust", rjust, "width fillchar", 1, true, false},
    {"rpartition", rpartition, "sep", 1, true, false},
    {"rsplit", rsplit, "sep maxsplit", 0, true, false},
    {"rstrip", rstrip, "chars", 0, true, false},
    {"split", split, "sep maxsplit", 0, true, false},
    {"splitlines", splitlines, "keepends", 0, true, false},
    {"startswith", startswith, "prefix start end", 1, false, false},
    {"strip", strip, "chars", 0, true, false},
    {"title", title, "", 0, true, false},
    {"upper", upper, "", 0, true, false},
    {"zfill", zfill, "width", 1, true, false},
    REFUSED("encode"),
    REFUSED("expandtabs"),
    REFUSED("format_map"),
    REFUSED("isidentifier"),
    REFUSED("isnumeric"),
    REFUSED("isprintable"),
    REFUSED("istitle"),
    REFUSED("maketrans"),
    REFUSED("swapcase"),
    REFUSED("translate"),
};
const size_t tstrmethod_n_rows = N_ELEM(tstrmethod_rows);
