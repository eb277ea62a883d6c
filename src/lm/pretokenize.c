/* pretokenize.c: cuts a normalised text into the pieces that the model sees one by one.
 *
 * Each step takes all pieces and gives all pieces, as in `tokenizers`: a step either cuts (the
 * text stays) or rewrites (every piece into a new text). Pieces are never empty. */
#include <string.h>
#include "lm/tokenizer_impl.h"

/* ---- matches of a pattern in one piece, covering it ---- */

static ig_status match_regex(encoder *e, const pre_step *s, const char *text, stretch in)
{
    regex_iter it = regex_over(s->pattern, &e->run, text + in.at, in.n);
    size_t done = 0, at, end;
    for (;;) {
        bool found;
        TRY(regex_next(&it, &found, &at, &end));
        if (!found) break;
        if (at > done) TRY(pieces_add(&e->matches, in.at + done, at - done, s->invert));
        TRY(pieces_add(&e->matches, in.at + at, end - at, !s->invert));
        done = end;
    }
    if (done < in.n) TRY(pieces_add(&e->matches, in.at + done, in.n - done, s->invert));
    return IG_OK;
}

static bool in_class(const pre_step *s, uint32_t cp)
{
    switch (s->class) {
    case CLASS_NUMERIC: return unicode_is_numeric(cp);
    case CLASS_PUNCTUATION: return unicode_is_punctuation(cp);
    case CLASS_SPACE: return unicode_is_space(cp);
    default: return cp == s->one;
    }
}

static ig_status match_class(encoder *e, const pre_step *s, const char *text, stretch in)
{
    size_t done = 0;
    for (size_t i = 0, n; i < in.n; i += n) {
        if (!in_class(s, unicode_at(text + in.at + i, &n))) continue;
        if (i > done) TRY(pieces_add(&e->matches, in.at + done, i - done, false));
        TRY(pieces_add(&e->matches, in.at + i, n, true));
        done = i + n;
    }
    if (done < in.n) TRY(pieces_add(&e->matches, in.at + done, in.n - done, false));
    return IG_OK;
}

/* Whitespace: runs of word characters, runs of other characters that are not space. */
static ig_status match_words(encoder *e, const char *text, stretch in)
{
    size_t from = 0;
    int last = 0; /* 0 space, 1 word, 2 other */
    for (size_t i = 0, n = 0; i <= in.n; i += n) {
        int kind = 0;
        if (i < in.n) {
            uint32_t cp = unicode_at(text + in.at + i, &n);
            kind = unicode_is_word(cp) ? 1 : unicode_is_space(cp) ? 0 : 2;
        }
        if (kind != last || i == in.n) {
            if (last) TRY(pieces_add(&e->matches, in.at + from, i - from, false));
            from = i;
            last = kind;
        }
        if (i == in.n) break;
    }
    return IG_OK;
}

/* ---- what becomes of the matches ---- */

/* Joins matches in place, walking forward, and returns how many are left. */
static size_t join_forward(stretch *m, size_t n, split_behaviour behaviour)
{
    size_t out = 0;
    bool last = false;
    for (size_t i = 0; i < n; i++) {
        bool match = m[i].match;
        bool join = behaviour == SPLIT_CONTIGUOUS ? match == last : match && !last;
        if (join && out)
            m[out - 1].n = m[i].at + m[i].n - m[out - 1].at;
        else
            m[out++] = m[i];
        last = match;
    }
    return out;
}

/* The same backward: a match joins what follows it. The result lies at the end of m. */
static size_t join_backward(stretch *m, size_t n)
{
    size_t out = n;
    bool last = false;
    for (size_t i = n; i-- > 0;) {
        bool match = m[i].match;
        if (match && !last && out < n) {
            m[out].n += m[out].at - m[i].at;
            m[out].at = m[i].at;
        } else {
            m[--out] = m[i];
        }
        last = match;
    }
    memmove(m, m + out, (n - out) * sizeof *m);
    return n - out;
}

static ig_status split(encoder *e, const pre_step *s, const char *text, const piece_list *in,
                       piece_list *out)
{
    for (size_t i = 0; i < in->n; i++) {
        piece_list *m = &e->matches;
        m->n = 0;
        if (s->kind == PRE_PATTERN)
            TRY(match_regex(e, s, text, in->p[i]));
        else if (s->kind == PRE_CLASS)
            TRY(match_class(e, s, text, in->p[i]));
        else
            TRY(match_words(e, text, in->p[i]));
        if (s->behaviour == SPLIT_CONTIGUOUS || s->behaviour == SPLIT_PREVIOUS)
            m->n = join_forward(m->p, m->n, s->behaviour);
        else if (s->behaviour == SPLIT_NEXT)
            m->n = join_backward(m->p, m->n);
        for (size_t k = 0; k < m->n; k++)
            if (m->p[k].n && !(s->behaviour == SPLIT_REMOVED && m->p[k].match))
                TRY(pieces_add(out, m->p[k].at, m->p[k].n, false));
    }
    return IG_OK;
}

/* ---- rewriting ---- */

static ig_status metaspace(const pre_step *s, text_view in, stretch p, text_buf *out)
{
    const char *text = in.p + p.at;
    uint8_t first = in.mark ? in.mark[p.at] : 0;
    bool has = text[0] == ' ' || (p.n >= s->n_meta && memcmp(text, s->meta, s->n_meta) == 0);
    TRY(text_reserve(out, ((size_t)p.n + 1) * s->n_meta));
    if (!has &&
        (s->scheme == PREPEND_ALWAYS || (s->scheme == PREPEND_FIRST && (first & MARK_START))))
        text_put(out, s->meta, s->n_meta, first);
    for (uint32_t i = 0; i < p.n; i++) {
        uint8_t mark = in.mark ? in.mark[p.at + i] : 0;
        if (text[i] == ' ')
            text_put(out, s->meta, s->n_meta, mark);
        else
            text_put(out, text + i, 1, mark);
    }
    return IG_OK;
}

static ig_status space(text_view in, stretch p, text_buf *out)
{
    TRY(text_reserve(out, (size_t)p.n + 1));
    if (in.p[p.at] != ' ') text_put(out, " ", 1, in.mark ? in.mark[p.at] : 0);
    memcpy(out->p + out->n, in.p + p.at, p.n);
    if (out->marked) memcpy(out->mark + out->n, in.mark + p.at, p.n);
    out->n += p.n;
    return IG_OK;
}

static ig_status byte_level(text_view in, stretch p, text_buf *out)
{
    TRY(text_reserve(out, (size_t)p.n * 2));
    char *to = out->p + out->n;
    for (uint32_t i = 0; i < p.n; i++) {
        uint32_t cp = byte_level_char((uint8_t)in.p[p.at + i]);
        size_t n = cp < 0x80 ? 1 : 2;
        if (n == 1) {
            *to++ = (char)cp;
        } else {
            *to++ = (char)(0xc0 | cp >> 6);
            *to++ = (char)(0x80 | (cp & 63));
        }
        if (out->marked) memset(out->mark + (to - out->p) - n, in.mark ? in.mark[p.at + i] : 0, n);
    }
    out->n = (size_t)(to - out->p);
    return IG_OK;
}

static ig_status rewrite(const pre_step *s, text_view in, const piece_list *pieces, text_buf *out,
                         piece_list *out_pieces)
{
    out->n = 0;
    out->marked = in.mark != NULL;
    for (size_t i = 0; i < pieces->n; i++) {
        size_t at = out->n;
        if (s->kind == PRE_METASPACE)
            TRY(metaspace(s, in, pieces->p[i], out));
        else if (s->kind == PRE_SPACE)
            TRY(space(in, pieces->p[i], out));
        else
            TRY(byte_level(in, pieces->p[i], out));
        TRY(pieces_add(out_pieces, at, out->n - at, false));
    }
    return IG_OK;
}

ig_status pretokenize(const tokenizer *t, encoder *e, text_view in, text_view *ret_text,
                      const piece_list **ret_pieces)
{
    int now = 0, text = 0; /* which list holds the pieces, which buffer is free */
    e->pieces[0].n = 0;
    if (in.n) TRY(pieces_add(&e->pieces[0], 0, in.n, false));
    for (size_t i = 0; i < t->n_pre; i++) {
        const pre_step *s = &t->pre[i];
        piece_list *to = &e->pieces[now ^ 1];
        to->n = 0;
        if (s->kind == PRE_METASPACE || s->kind == PRE_SPACE || s->kind == PRE_BYTE_LEVEL) {
            TRY(rewrite(s, in, &e->pieces[now], &e->pre[text], to));
            in = text_of(&e->pre[text]);
            text ^= 1;
        } else {
            TRY(split(e, s, in.p, &e->pieces[now], to));
        }
        now ^= 1;
    }
    *ret_text = in;
    *ret_pieces = &e->pieces[now];
    return IG_OK;
}
