/* tstr.c: see tstr.h. */
#define _GNU_SOURCE
#include "lm/template/tstr.h"
#include <assert.h>
#include <string.h>

tstr *tstr_new(arena *a, const char *p, size_t n, bool trusted)
{
    tstr *s = arena_alloc(a, 1, sizeof *s);
    if (s) *s = (tstr){.p = p, .n = n, .n_chars = n ? SIZE_MAX : 0, .trusted = trusted};
    return s;
}

tstr *tstr_of(arena *a, const char *s) { return tstr_new(a, s, strlen(s), true); }

tstr *tstr_concat(arena *a, const tstr *l, const tstr *r)
{
    tstr *s = tstr_new(a, NULL, l->n + r->n, true);
    if (!s) return NULL;
    s->left = l;
    s->right = r;
    s->height = 1 + (l->height > r->height ? l->height : r->height);
    return s;
}

/* The leaves from left to right, without recursion: at most one pending right child per level. */
static ig_status add_leaves(tbuild *b, const tstr *s)
{
    AUTO(mem_ptr) memory = mem_alloc((s->height + 1) * sizeof(const tstr *));
    const tstr **pending = memory;
    size_t n = 0;
    if (!pending) return IG_ENOMEM;
    for (;;) {
        while (!s->p) {
            pending[n++] = s->right;
            s = s->left;
        }
        tbuild_sub(b, s, 0, s->n);
        if (!n) return IG_OK;
        s = pending[--n];
    }
}

ig_status tstr_flatten(arena *a, const tstr *s)
{
    AUTO(tbuild) b = {0};
    const tstr *flat;
    if (s->p) return IG_OK;
    tbuild_init(&b, s->n);
    TRY(add_leaves(&b, s));
    TRY(tbuild_take(&b, a, &flat));
    bool markup = s->markup;
    *(tstr *)s =
        *flat; /* the same value in another shape: pairs are made in the arena, never const */
    ((tstr *)s)->markup = markup;
    return IG_OK;
}

/* The span that holds byte `at`, or the last. */
static size_t span_at(const tstr *s, size_t at)
{
    size_t lo = 0, hi = s->n_spans - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->spans[mid].end <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

tstr *tstr_sub(arena *a, const tstr *s, size_t from, size_t to)
{
    if (from >= to) return tstr_new(a, "", 0, true);
    tstr *r = tstr_new(a, s->p + from, to - from, s->trusted);
    if (!r) return NULL;
    r->markup = s->markup;
    if (!s->spans) return r;
    size_t first = span_at(s, from), last = span_at(s, to - 1);
    r->trusted = s->spans[first].trusted;
    if (first == last) return r;
    tspan *spans = arena_alloc(a, last - first + 1, sizeof *spans);
    if (!spans) return NULL;
    for (size_t i = first; i <= last; i++)
        spans[i - first] = (tspan){s->spans[i].end - from, s->spans[i].trusted};
    spans[last - first].end = to - from;
    r->spans = spans;
    r->n_spans = last - first + 1;
    return r;
}

size_t tstr_chars(const tstr *s)
{
    if (s->n_chars == SIZE_MAX) {
        size_t n = 0;
        for (size_t i = 0; i < s->n; i++) n += (s->p[i] & 0xc0) != 0x80;
        ((tstr *)s)->n_chars = n; /* a cache */
    }
    return s->n_chars;
}

size_t tstr_offset(const tstr *s, size_t i_char)
{
    size_t i = 0;
    if (tstr_chars(s) == s->n) return i_char < s->n ? i_char : s->n;
    for (; i < s->n; i++)
        if ((s->p[i] & 0xc0) != 0x80 && i_char-- == 0) break;
    return i;
}

bool tstr_eq(const tstr *a, const tstr *b) { return a->n == b->n && !memcmp(a->p, b->p, a->n); }

bool tstr_is(const tstr *s, const char *literal)
{
    return s->n == strlen(literal) && !memcmp(s->p, literal, s->n);
}

int tstr_cmp(const tstr *a, const tstr *b)
{
    int c = memcmp(a->p, b->p, a->n < b->n ? a->n : b->n); /* UTF-8 sorts as its code points do */
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

size_t tstr_find(const tstr *s, const tstr *needle, size_t from)
{
    if (from > s->n) return SIZE_MAX;
    if (!needle->n) return from;
    const char *p = memmem(s->p + from, s->n - from, needle->p, needle->n);
    return p ? (size_t)(p - s->p) : SIZE_MAX;
}

size_t tstr_rfind(const tstr *s, const tstr *needle, size_t to)
{
    if (to > s->n) to = s->n;
    if (needle->n > to) return SIZE_MAX;
    for (size_t at = to - needle->n;; at--) {
        if (!memcmp(s->p + at, needle->p, needle->n)) return at;
        if (!at) return SIZE_MAX;
    }
}

void tbuild_init(tbuild *b, size_t max_bytes)
{
    *b = (tbuild){0};
    buf_init(&b->bytes, max_bytes);
}

void tbuild_done(tbuild *b)
{
    buf_done(&b->bytes);
    mem_free(b->spans);
    b->spans = NULL;
    b->n_spans = b->cap = 0;
}

void tbuild_add(tbuild *b, const char *p, size_t n, bool trusted)
{
    if (!n || b->failed) return;
    buf_add(&b->bytes, p, n);
    if (b->n_spans && b->spans[b->n_spans - 1].trusted == trusted) {
        b->spans[b->n_spans - 1].end = b->bytes.n;
        return;
    }
    if (b->n_spans == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 8;
        tspan *grown = mem_realloc(b->spans, cap * sizeof *grown);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->spans = grown;
        b->cap = cap;
    }
    b->spans[b->n_spans++] = (tspan){b->bytes.n, trusted};
}

void tbuild_text(tbuild *b, const char *s, bool trusted) { tbuild_add(b, s, strlen(s), trusted); }

void tbuild_char(tbuild *b, uint32_t cp, bool trusted)
{
    char utf8[4];
    tbuild_add(b, utf8, utf8_encode(cp, utf8), trusted);
}

void tbuild_sub(tbuild *b, const tstr *s, size_t from, size_t to)
{
    if (from >= to) return;
    if (!s->spans) {
        tbuild_add(b, s->p + from, to - from, s->trusted);
        return;
    }
    for (size_t i = span_at(s, from); from < to; i++) {
        size_t end = s->spans[i].end < to ? s->spans[i].end : to;
        tbuild_add(b, s->p + from, end - from, s->spans[i].trusted);
        from = end;
    }
}

void tbuild_str(tbuild *b, const tstr *s)
{
    if (s->p)
        tbuild_sub(b, s, 0, s->n);
    else if (add_leaves(b, s) != IG_OK)
        b->failed = true;
}

ig_status tbuild_status(const tbuild *b)
{
    if (b->failed) return IG_ENOMEM;
    return buf_status(&b->bytes);
}

ig_status tbuild_take(tbuild *b, arena *a, const tstr **ret_str)
{
    TRY(tbuild_status(b));
    char *p = arena_alloc(a, b->bytes.n, 1);
    if (!p) return a->status;
    if (b->bytes.n) memcpy(p, b->bytes.data, b->bytes.n);
    tstr *s = tstr_new(a, p, b->bytes.n, !b->n_spans || b->spans[0].trusted);
    if (!s) return a->status;
    if (b->n_spans > 1) {
        tspan *spans = arena_alloc(a, b->n_spans, sizeof *spans);
        if (!spans) return a->status;
        memcpy(spans, b->spans, b->n_spans * sizeof *spans);
        s->spans = spans;
        s->n_spans = b->n_spans;
    }
    buf_clear(&b->bytes);
    b->n_spans = 0;
    *ret_str = s;
    return IG_OK;
}

tchars tchars_of(const tstr *s) { return (tchars){.s = s, .trusted = s->trusted}; }

bool tchars_next(tchars *it)
{
    const tstr *s = it->s;
    it->at = it->next;
    if (it->at >= s->n) return false;
    size_t n = utf8_decode(s->p + it->at, s->n - it->at, &it->cp);
    assert(n); /* every string is UTF-8: sources are checked where they come in */
    it->next += n;
    if (s->spans) {
        while (s->spans[it->span].end <= it->at) it->span++;
        it->trusted = s->spans[it->span].trusted;
    }
    return true;
}
