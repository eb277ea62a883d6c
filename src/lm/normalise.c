/* normalise.c: the normalisers of tokenizer.json, one text through all of them.
 *
 * Marks (tokenizer_impl.h) travel along: what is made of several characters is trusted only if
 * all of them were. Canonical ordering and composition are done here with utf8proc's tables,
 * because utf8proc's own ordering takes quadratic time on long runs of combining marks and keeps
 * no marks. */
#include <string.h>
#include <utf8proc.h>
#include "lm/tokenizer_impl.h"

/* ---- code points ---- */

static ig_status reserve_codes(encoder *e, size_t need)
{
    if (need <= e->cap_code) return IG_OK;
    size_t cap = e->cap_code, caps[4] = {cap, cap, cap, cap};
    TRY(array_reserve((void **)&e->code, &caps[0], need, sizeof *e->code));
    TRY(array_reserve((void **)&e->code2, &caps[1], need, sizeof *e->code2));
    TRY(array_reserve((void **)&e->code_mark, &caps[2], need, 1));
    TRY(array_reserve((void **)&e->code_mark2, &caps[3], need, 1));
    e->cap_code = caps[0];
    for (int i = 1; i < 4; i++)
        if (caps[i] < e->cap_code) e->cap_code = caps[i];
    return IG_OK;
}

static uint8_t combining_class(uint32_t cp)
{
    if (cp < 0x300 || unicode_is_unnormalised(cp)) return 0;
    return (uint8_t)utf8proc_get_property((utf8proc_int32_t)cp)->combining_class;
}

/* Code points of the full decomposition of `in`, with marks, in e->code. */
static ig_status decompose(encoder *e, text_view in, bool compat, size_t *ret_n)
{
    utf8proc_option_t options =
        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
    size_t n = 0;
    for (size_t i = 0, len; i < in.n; i += len) {
        uint32_t cp = unicode_at(in.p + i, &len);
        uint8_t mark = in.mark ? in.mark[i] : 0;
        utf8proc_int32_t parts[32] = {(utf8proc_int32_t)cp};
        utf8proc_ssize_t n_parts = 1;
        if (cp >= 0xa0 && !unicode_is_unnormalised(cp))
            n_parts = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, 32, options, NULL);
        if (n_parts < 1 || n_parts > 32)
            return ig_fail(IG_EFORMAT, "U+%04X does not decompose", cp);
        TRY(reserve_codes(e, n + (size_t)n_parts));
        for (utf8proc_ssize_t k = 0; k < n_parts; k++) {
            e->code[n] = (uint32_t)parts[k];
            e->code_mark[n++] = mark;
        }
    }
    *ret_n = n;
    return IG_OK;
}

/* Stable sort of code[from, to) by combining class, in linear time. Where the text begins stays
 * at its place, as in the reference, which aligns what it reorders by position. */
static void order_run(encoder *e, size_t from, size_t to)
{
    size_t count[257] = {0};
    for (size_t i = from; i < to; i++) count[combining_class(e->code[i]) + 1]++;
    for (size_t k = 1; k < 257; k++) count[k] += count[k - 1];
    for (size_t i = from; i < to; i++) {
        size_t at = from + count[combining_class(e->code[i])]++;
        e->code2[at] = e->code[i];
        e->code_mark2[at] = e->code_mark[i] & MARK_TRUSTED;
    }
    memcpy(e->code + from, e->code2 + from, (to - from) * sizeof *e->code);
    for (size_t i = from; i < to; i++)
        e->code_mark[i] = (e->code_mark[i] & MARK_START) | e->code_mark2[i];
}

static void order(encoder *e, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t from = i;
        uint8_t last = 0, class;
        bool sorted = true;
        for (; i < n && (class = combining_class(e->code[i])) != 0; i++) {
            sorted = sorted && class >= last;
            last = class;
        }
        if (!sorted) order_run(e, from, i);
        i += i == from;
    }
}

/* The character that a and b make together, or 0. */
static uint32_t compose_pair(uint32_t a, uint32_t b)
{
    if (b < 0x300 || unicode_is_unnormalised(a) || unicode_is_unnormalised(b)) return 0;
    utf8proc_int32_t pair[3] = {(utf8proc_int32_t)a, (utf8proc_int32_t)b};
    utf8proc_ssize_t n = utf8proc_normalize_utf32(pair, 2, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return n == 1 ? (uint32_t)pair[0] : 0;
}

static size_t compose(encoder *e, size_t n)
{
    size_t out = 0, starter = SIZE_MAX;
    int last = -1; /* class of what stands between the starter and here; -1: nothing */
    for (size_t i = 0; i < n; i++) {
        int class = combining_class(e->code[i]);
        uint32_t whole = 0;
        if (starter != SIZE_MAX && last < class) whole = compose_pair(e->code[starter], e->code[i]);
        if (whole) {
            e->code[starter] = whole;
            e->code_mark[starter] &= e->code_mark[i] | MARK_START;
            continue;
        }
        if (class == 0) {
            starter = out;
            last = -1;
        } else {
            last = class;
        }
        e->code[out] = e->code[i];
        e->code_mark[out++] = e->code_mark[i];
    }
    return out;
}

static ig_status put_code(text_buf *out, uint32_t cp, uint8_t mark)
{
    char utf8[4];
    TRY(text_reserve(out, 4));
    text_put(out, utf8, utf8_encode(cp, utf8), mark);
    return IG_OK;
}

static ig_status unicode_form(encoder *e, norm_kind kind, text_view in, text_buf *out)
{
    size_t n = 0;
    TRY(decompose(e, in, kind == NORM_NFKC || kind == NORM_NFKD, &n));
    order(e, n);
    if (kind == NORM_NFC || kind == NORM_NFKC) n = compose(e, n);
    for (size_t i = 0; i < n; i++) TRY(put_code(out, e->code[i], e->code_mark[i]));
    return IG_OK;
}

/* True when the form leaves the text as it is, seen from its bytes alone: for NFC everything below
 * U+0300 (first bytes up to 0xcb), for the others ASCII. */
static bool form_is_noop(norm_kind kind, text_view in)
{
    uint8_t limit = kind == NORM_NFC ? 0xcc : 0x80;
    for (size_t i = 0; i < in.n; i++)
        if ((uint8_t)in.p[i] >= limit) return false;
    return true;
}

/* ---- one character at a time ---- */

static uint32_t nmt(uint32_t cp)
{
    if ((cp >= 1 && cp <= 8) || cp == 0xb || (cp >= 0xe && cp <= 0x1f) || cp == 0x7f ||
        cp == 0x8f || cp == 0x9f)
        return UINT32_MAX; /* dropped */
    if (cp == 9 || cp == 10 || cp == 12 || cp == 13 || cp == 0x1680 ||
        (cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
        cp == 0xfeff || cp == 0xfffd)
        return ' ';
    return cp;
}

/* What one character becomes: up to three. */
static size_t map_char(norm_kind kind, uint32_t cp, uint32_t ret[3])
{
    ret[0] = cp;
    switch (kind) {
    case NORM_LOWERCASE: return unicode_lower(cp, ret);
    case NORM_STRIP_ACCENTS: return !unicode_is_combining(cp);
    case NORM_STRIP_NONSPACING: return !unicode_is_nonspacing(cp);
    case NORM_CLEAN:
        if (unicode_is_space(cp)) ret[0] = ' ';
        return !unicode_is_other(cp);
    case NORM_CHINESE:
        if (!unicode_is_chinese(cp)) return 1;
        ret[0] = ret[2] = ' ';
        ret[1] = cp;
        return 3;
    case NORM_NMT: ret[0] = nmt(cp); return ret[0] != UINT32_MAX;
    default: return 1;
    }
}

static ig_status map_chars(norm_kind kind, text_view in, text_buf *out)
{
    for (size_t i = 0, n; i < in.n; i += n) {
        uint32_t to[3], cp = unicode_at(in.p + i, &n);
        size_t n_to = map_char(kind, cp, to);
        for (size_t k = 0; k < n_to; k++) TRY(put_code(out, to[k], in.mark ? in.mark[i] : 0));
    }
    return IG_OK;
}

static ig_status byte_level(text_view in, text_buf *out)
{
    for (size_t i = 0; i < in.n; i++)
        TRY(put_code(out, byte_level_char((uint8_t)in.p[i]), in.mark ? in.mark[i] : 0));
    return IG_OK;
}

/* ---- the rest ---- */

static ig_status put_view(text_buf *out, text_view in, size_t at, size_t end)
{
    TRY(text_reserve(out, end - at));
    memcpy(out->p + out->n, in.p + at, end - at);
    if (out->marked) memcpy(out->mark + out->n, in.mark + at, end - at);
    out->n += end - at;
    return IG_OK;
}

static text_view strip(text_view in, bool left, bool right)
{
    size_t at = 0, end = in.n, n;
    while (left && at < end && unicode_is_space(unicode_at(in.p + at, &n))) at += n;
    while (right && end > at) {
        const char *p = unicode_before(in.p + end);
        if (!unicode_is_space(unicode_at(p, &n))) break;
        end = (size_t)(p - in.p);
    }
    return (text_view){in.p + at, end - at, in.mark ? in.mark + at : NULL};
}

static ig_status prepend(const norm_step *s, text_view in, text_buf *out)
{
    if (in.n == 0) return IG_OK;
    TRY(text_reserve(out, s->n_text));
    text_put(out, s->text, s->n_text, in.mark ? in.mark[0] : 0);
    return put_view(out, in, 0, in.n);
}

/* What replaces a match comes from the match's last character; it is trusted if all of the match
 * was. */
static uint8_t match_mark(text_view in, size_t at, size_t end)
{
    if (!in.mark) return 0;
    if (at == end) return at ? in.mark[at - 1] : MARK_START | MARK_TRUSTED;
    uint8_t mark = in.mark[end - 1];
    for (size_t i = at; i < end; i++) mark &= in.mark[i] | MARK_START;
    return mark;
}

static ig_status replace(encoder *e, const norm_step *s, text_view in, text_buf *out)
{
    regex_iter it = regex_over(s->pattern, &e->run, in.p, in.n);
    size_t done = 0, at, end;
    if (in.n == 0) return IG_OK;
    for (;;) {
        bool found;
        TRY(regex_next(&it, &found, &at, &end));
        if (!found) return put_view(out, in, done, in.n);
        TRY(put_view(out, in, done, at));
        TRY(text_reserve(out, s->n_text));
        text_put(out, s->text, s->n_text, match_mark(in, at, end));
        done = end;
    }
}

/* ---- SentencePiece's charsmap ---- */

#define MAX_CHARSMAP_BYTES ((size_t)16 << 20)

ig_status charsmap_open(const char *what, str base64, charsmap *ret_map)
{
    size_t n = 0, cap = base64.n / 4 * 3 + 3;
    if (cap > MAX_CHARSMAP_BYTES)
        return ig_fail(IG_ELIMIT, "%s: precompiled_charsmap is over %zu bytes", what,
                       MAX_CHARSMAP_BYTES);
    AUTO(mem_ptr) bytes = mem_alloc(cap);
    if (!bytes) return IG_ENOMEM;
    if (!base64_decode(base64, bytes, cap, &n) || n < 4)
        return ig_fail(IG_EFORMAT, "%s: precompiled_charsmap is not base64", what);
    uint32_t n_trie;
    memcpy(&n_trie, bytes, 4);
    if (n_trie > n - 4 || n_trie < 4)
        return ig_fail(IG_EFORMAT, "%s: precompiled_charsmap says its trie has %u bytes of %zu",
                       what, n_trie, n - 4);
    size_t n_units = n_trie / 4;
    const char *strings = (const char *)bytes + 4 + n_units * 4;
    size_t n_strings = n - 4 - n_units * 4;
    if (!utf8_valid(strings, n_strings))
        return ig_fail(IG_EFORMAT, "%s: the strings of precompiled_charsmap are not UTF-8", what);
    AUTO(mem_ptr) units = mem_dup((const char *)bytes + 4, n_units * 4);
    char *copy = mem_dup(strings, n_strings);
    if (!units || !copy) {
        mem_free(copy);
        return IG_ENOMEM;
    }
    *ret_map = (charsmap){STEAL(units), n_units, copy, n_strings};
    return IG_OK;
}

/* The replacement of the *shortest* key that begins `key`, as the reference has it. A trie that
 * points outside itself has no entry. */
static bool charsmap_find(const charsmap *m, const char *key, size_t n, str *ret_text)
{
    size_t node = 0;
    uint32_t unit = m->units[0];
    node ^= (size_t)(unit >> 10) << ((unit & 512) >> 6);
    for (size_t i = 0; i < n && key[i]; i++) {
        uint8_t c = (uint8_t)key[i];
        node ^= c;
        if (node >= m->n_units) return false;
        unit = m->units[node];
        if ((unit & (0x80000000u | 0xff)) != c) return false;
        node ^= (size_t)(unit >> 10) << ((unit & 512) >> 6);
        if (!(unit >> 8 & 1)) continue;
        if (node >= m->n_units) return false;
        size_t at = m->units[node] & 0x7fffffff;
        if (at > m->n_strings) return false;
        const char *end = memchr(m->strings + at, 0, m->n_strings - at);
        *ret_text =
            (str){m->strings + at, end ? (size_t)(end - m->strings) - at : m->n_strings - at};
        return utf8_valid(ret_text->p, ret_text->n);
    }
    return false;
}

/* Marks of what in[at, end) becomes. The text begins where the output does, also behind a start
 * that is dropped: the reference aligns what follows with the dropped characters. */
static uint8_t all_marks(text_view in, size_t at, size_t end, bool first)
{
    if (!in.mark) return 0;
    uint8_t mark = in.mark[at];
    for (size_t i = at; i < end; i++) mark &= in.mark[i] | MARK_START;
    return first ? mark | (in.mark[0] & MARK_START) : mark;
}

/* End of the grapheme that begins at `at`. */
static size_t grapheme_end(text_view in, size_t at)
{
    utf8proc_int32_t state = 0;
    size_t n;
    uint32_t a = unicode_at(in.p + at, &n);
    for (at += n; at < in.n; at += n) {
        uint32_t b = unicode_at(in.p + at, &n);
        if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)a, (utf8proc_int32_t)b, &state))
            break;
        a = b;
    }
    return at;
}

static ig_status precompiled(const charsmap *m, text_view in, text_buf *out)
{
    for (size_t at = 0, end; at < in.n; at = end) {
        str to;
        end = grapheme_end(in, at);
        if (end - at < 6 && charsmap_find(m, in.p + at, end - at, &to)) {
            TRY(text_reserve(out, to.n));
            text_put(out, to.p, to.n, all_marks(in, at, end, out->n == 0));
            continue;
        }
        for (size_t i = at, n; i < end; i += n) {
            (void)unicode_at(in.p + i, &n);
            str same = {in.p + i, n};
            if (!charsmap_find(m, in.p + i, n, &to)) to = same;
            TRY(text_reserve(out, to.n));
            text_put(out, to.p, to.n, all_marks(in, i, i + n, out->n == 0));
        }
    }
    return IG_OK;
}

/* ---- all steps ---- */

/* One step; *ret_out is the input itself where nothing changes. */
static ig_status step(encoder *e, const norm_step *s, text_view in, text_buf *out,
                      text_view *ret_out)
{
    *ret_out = in;
    if (s->kind <= NORM_NFKD && form_is_noop(s->kind, in)) return IG_OK;
    if (s->kind == NORM_STRIP) return *ret_out = strip(in, s->left, s->right), IG_OK;
    out->n = 0;
    out->marked = in.mark != NULL;
    TRY(text_reserve(out, in.n));
    switch (s->kind) {
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD: TRY(unicode_form(e, s->kind, in, out)); break;
    case NORM_PREPEND: TRY(prepend(s, in, out)); break;
    case NORM_REPLACE: TRY(replace(e, s, in, out)); break;
    case NORM_PRECOMPILED: TRY(precompiled(&s->map, in, out)); break;
    case NORM_BYTE_LEVEL: TRY(byte_level(in, out)); break;
    default: TRY(map_chars(s->kind, in, out)); break;
    }
    *ret_out = text_of(out);
    return IG_OK;
}

ig_status normalise(const tokenizer *t, encoder *e, text_view in, text_view *ret_out)
{
    int to = 0; /* a step never writes where its input lies */
    for (size_t i = 0; i < t->n_norm; i++) {
        TRY(step(e, &t->norm[i], in, &e->norm[to], &in));
        if (in.p == e->norm[to].p) to ^= 1;
    }
    *ret_out = in;
    return IG_OK;
}
