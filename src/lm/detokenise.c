/* detokenise.c: the decoders of tokenizer.json as a chain that takes tokens one by one (contract
 * in detokenise.h). tokenizer_decode is this chain run to its end, so both give the same bytes
 * by making.
 *
 * Up to the first decoder that joins (ByteLevel, Fuse, or none at all) steps pass whole tokens;
 * behind it there is one text that grows, passed in fragments of whole characters. A step that
 * needs to see more before it can speak holds back: ByteFallback the run of byte tokens (one bad
 * byte spoils the whole run), BPEDecoder the last token (its suffix is no space), Strip the end,
 * Replace what may begin a match. Steps that would need the whole text hold all of it. */
#include "lm/detokenise.h"
#include <string.h>
#include "lm/tokenizer_impl.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

typedef struct stage {
    const decode_step *step;
    bool text_in;  /* takes fragments of one text, not tokens */
    buf held;      /* what cannot be passed on yet */
    buf work;      /* a result before it is passed on */
    size_t count;  /* tokens seen; STRIP: characters stripped at the start */
    size_t n_hold; /* STRIP: characters held at the end */
    bool started;  /* STRIP: the start is over */
} stage;

struct detokenise {
    const tokenizer *t;
    bool skip_special;
    stage *stages;
    size_t n;
    regex_run run; /* for Replace by a pattern */
    buf *out;      /* of the current call */
};

ig_status detokenise_new(const tokenizer *t, bool skip_special, detokenise **ret_detokenise)
{
    AUTO(detokenise_ptr) d = mem_calloc(1, sizeof *d);
    if (!d) return IG_ENOMEM;
    d->t = t;
    d->skip_special = skip_special;
    d->stages = mem_calloc(t->n_decode, sizeof *d->stages);
    if (!d->stages) return IG_ENOMEM;
    d->n = t->n_decode;
    bool joined = false, patterns = false;
    for (size_t i = 0; i < d->n; i++) {
        decode_kind kind = t->decode[i].kind;
        d->stages[i].step = &t->decode[i];
        d->stages[i].text_in = joined;
        buf_init(&d->stages[i].held, MAX_WORK_BYTES);
        buf_init(&d->stages[i].work, MAX_WORK_BYTES);
        joined = joined || kind == DECODE_BYTE_LEVEL || kind == DECODE_FUSE || kind == DECODE_JOIN;
        patterns = patterns || (kind == DECODE_REPLACE && !t->decode[i].literal);
    }
    if (patterns) TRY(regex_run_init(&d->run));
    *ret_detokenise = STEAL(d);
    return IG_OK;
}

void detokenise_free(detokenise *d)
{
    if (!d) return;
    for (size_t i = 0; i < d->n; i++) {
        buf_done(&d->stages[i].held);
        buf_done(&d->stages[i].work);
    }
    mem_free(d->stages);
    regex_run_done(&d->run);
    mem_free(d);
}

static ig_status take(detokenise *d, size_t k, str s);

/* Passes what step k has made to the next one. */
static ig_status emit(detokenise *d, size_t k, str s)
{
    if (k + 1 < d->n) return take(d, k + 1, s);
    buf_add(d->out, s.p, s.n);
    return buf_status(d->out);
}

/* What a buffer holds; never a null pointer. */
static str content(const buf *b) { return (str){b->data ? b->data : "", b->n}; }

/* ---- replacing ---- */

/* s with every `what` (n > 0) replaced, in out. */
static void replace_all(buf *out, str s, str what, str by)
{
    size_t done = 0;
    for (size_t i = 0; i + what.n <= s.n;) {
        if (memcmp(s.p + i, what.p, what.n)) {
            i++;
            continue;
        }
        buf_add(out, s.p + done, i - done);
        buf_add(out, by.p, by.n);
        done = i += what.n;
    }
    buf_add(out, s.p + done, s.n - done);
}

static ig_status replace_pattern(detokenise *d, buf *out, const decode_step *step, str s)
{
    regex_iter it = regex_over(step->pattern, &d->run, s.p, s.n);
    size_t done = 0, at, end;
    for (bool found = s.n > 0; found;) {
        TRY(regex_next(&it, &found, &at, &end));
        if (!found) break;
        buf_add(out, s.p + done, at - done);
        buf_add(out, step->text, step->n_text);
        done = end;
    }
    buf_add(out, s.p + done, s.n - done);
    return IG_OK;
}

/* Replaces in a growing text; holds back an end that may begin a match. */
static ig_status replace_growing(detokenise *d, size_t k, str s)
{
    stage *g = &d->stages[k];
    const decode_step *step = g->step;
    buf_add(&g->held, s.p, s.n);
    TRY(buf_status(&g->held));
    if (g->held.n == 0) return IG_OK;
    size_t done = 0, i = 0;
    buf_clear(&g->work);
    while (i < g->held.n) {
        size_t left = g->held.n - i, n = left < step->n_literal ? left : step->n_literal;
        if (memcmp(g->held.data + i, step->literal, n)) {
            i++;
            continue;
        }
        if (n < step->n_literal) break;
        buf_add(&g->work, g->held.data + done, i - done);
        buf_add(&g->work, step->text, step->n_text);
        done = i += n;
    }
    buf_add(&g->work, g->held.data + done, i - done);
    TRY(buf_status(&g->work));
    g->held.n -= i;
    memmove(g->held.data, g->held.data + i, g->held.n);
    return emit(d, k, content(&g->work));
}

/* ---- bytes to text ---- */

/* How many bytes at p (which begin no valid character) one U+FFFD stands for; *ret_open: more
 * bytes could still make them a character. */
static size_t broken(const uint8_t *p, size_t n, bool *ret_open)
{
    uint8_t lo = 0x80, hi = 0xbf;
    size_t need = p[0] < 0xc2 || p[0] > 0xf4 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i = 1;
    if (p[0] == 0xe0) lo = 0xa0;
    if (p[0] == 0xed) hi = 0x9f;
    if (p[0] == 0xf0) lo = 0x90;
    if (p[0] == 0xf4) hi = 0x8f;
    for (; i < need && i < n && p[i] >= lo && p[i] <= hi; i++) {
        lo = 0x80;
        hi = 0xbf;
    }
    *ret_open = i == n && i < need;
    return i;
}

/* Passes on the text in g->held; an unfinished character stays there, or at the end becomes
 * U+FFFD. */
static ig_status pass_bytes(detokenise *d, size_t k, bool end)
{
    stage *g = &d->stages[k];
    TRY(buf_status(&g->held));
    size_t i = 0, n;
    uint32_t cp;
    buf_clear(&g->work);
    while (i < g->held.n) {
        const char *p = g->held.data + i;
        bool open = false;
        if ((n = utf8_decode(p, g->held.n - i, &cp))) {
            buf_add(&g->work, p, n);
        } else {
            n = broken((const uint8_t *)p, g->held.n - i, &open);
            if (open && !end) break;
            buf_str(&g->work, REPLACEMENT);
        }
        i += n;
    }
    TRY(buf_status(&g->work));
    if (i) {
        g->held.n -= i;
        memmove(g->held.data, g->held.data + i, g->held.n);
    }
    return g->work.n ? emit(d, k, content(&g->work)) : IG_OK;
}

/* A token of the byte-level alphabet as bytes; any other token as it is. */
static void add_byte_level(buf *out, str s)
{
    size_t n_before = out->n;
    for (size_t i = 0, n; i < s.n; i += n) {
        uint8_t b;
        if (!byte_level_byte(unicode_at(s.p + i, &n), &b)) {
            out->n = n_before;
            buf_add(out, s.p, s.n);
            return;
        }
        buf_char(out, (char)b);
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<0x0A>"; a plus for the first digit counts as 0, as the reference's number parser has it. */
static bool byte_token(str s, uint8_t *ret_byte)
{
    if (s.n != 6 || memcmp(s.p, "<0x", 3) || s.p[5] != '>') return false;
    int hi = s.p[3] == '+' ? 0 : hex_digit(s.p[3]), lo = hex_digit(s.p[4]);
    if (hi < 0 || lo < 0) return false;
    *ret_byte = (uint8_t)(hi << 4 | lo);
    return true;
}

/* The end of a run of byte tokens: its text, or one U+FFFD per byte. */
static ig_status pass_run(detokenise *d, size_t k)
{
    stage *g = &d->stages[k];
    TRY(buf_status(&g->held));
    size_t n = g->held.n;
    if (n == 0) return IG_OK;
    if (utf8_valid(g->held.data, n)) {
        TRY(emit(d, k, content(&g->held)));
    } else {
        for (size_t i = 0; i < n; i++) TRY(emit(d, k, str_of(REPLACEMENT)));
    }
    buf_clear(&g->held);
    return IG_OK;
}

static ig_status byte_fallback(detokenise *d, size_t k, str s)
{
    uint8_t b;
    if (byte_token(s, &b)) {
        buf_char(&d->stages[k].held, (char)b);
        return IG_OK;
    }
    TRY(pass_run(d, k));
    return emit(d, k, s);
}

/* ---- the other steps ---- */

static bool at_char(str s, size_t i, const decode_step *step)
{
    return s.n - i >= step->n_text && memcmp(s.p + i, step->text, step->n_text) == 0;
}

static str strip_token(const decode_step *step, str s)
{
    size_t at = 0, n = step->n_text;
    for (size_t i = 0; i < step->start && at_char(s, at, step); i++) at += n;
    for (size_t i = 0; i < step->stop && s.n >= at + n && at_char(s, s.n - n, step); i++) s.n -= n;
    return (str){s.p + at, s.n - at};
}

static ig_status strip_growing(detokenise *d, size_t k, str s)
{
    stage *g = &d->stages[k];
    const decode_step *step = g->step;
    buf_clear(&g->work);
    for (size_t i = 0, n; i < s.n; i += n) {
        bool hit = at_char(s, i, step);
        if (hit)
            n = step->n_text;
        else
            (void)unicode_at(s.p + i, &n);
        if (hit && !g->started && g->count < step->start) {
            g->count++;
            continue;
        }
        g->started = true;
        if (hit && g->n_hold < step->stop) {
            g->n_hold++;
            continue;
        }
        for (; !hit && g->n_hold; g->n_hold--) buf_add(&g->work, step->text, step->n_text);
        buf_add(&g->work, s.p + i, n);
    }
    TRY(buf_status(&g->work));
    return g->work.n ? emit(d, k, content(&g->work)) : IG_OK;
}

static ig_status metaspace(detokenise *d, size_t k, str s, bool first)
{
    stage *g = &d->stages[k];
    str by = first && g->step->prefix ? (str){"", 0} : (str){" ", 1};
    buf_clear(&g->work);
    replace_all(&g->work, s, (str){g->step->text, g->step->n_text}, by);
    TRY(buf_status(&g->work));
    return emit(d, k, content(&g->work));
}

/* Spaces that English writes and WordPiece tokens lose, one replacement after another. */
static ig_status cleanup(buf *out, str s)
{
    static const char *const pairs[][2] = {
        {" .", "."},   {" ?", "?"},     {" !", "!"},     {" ,", ","},
        {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    AUTO(buf) tmp = {0};
    buf_init(&tmp, out->max);
    buf_add(out, s.p, s.n);
    for (size_t i = 0; i < N_ELEM(pairs); i++) {
        TRY(buf_status(out));
        buf_clear(&tmp);
        replace_all(&tmp, content(out), str_of(pairs[i][0]), str_of(pairs[i][1]));
        TRY(buf_status(&tmp));
        buf_clear(out);
        buf_add(out, tmp.data, tmp.n);
    }
    return buf_status(out);
}

static ig_status pass_wordpiece(detokenise *d, size_t k, str s, bool first)
{
    stage *g = &d->stages[k];
    str prefix = {g->step->text, g->step->n_text};
    buf_clear(&g->held);
    if (!first && !str_starts(s, prefix)) buf_char(&g->held, ' ');
    if (!first && str_starts(s, prefix)) s = (str){s.p + prefix.n, s.n - prefix.n};
    buf_add(&g->held, s.p, s.n);
    TRY(buf_status(&g->held));
    if (!g->step->cleanup) return emit(d, k, content(&g->held));
    buf_clear(&g->work);
    TRY(cleanup(&g->work, content(&g->held)));
    return emit(d, k, content(&g->work));
}

/* The token in g->held, its suffix made a space or, at the end, nothing. */
static ig_status pass_suffixed(detokenise *d, size_t k, const char *by)
{
    stage *g = &d->stages[k];
    buf_clear(&g->work);
    TRY(buf_status(&g->held));
    if (g->step->n_text)
        replace_all(&g->work, content(&g->held), (str){g->step->text, g->step->n_text}, str_of(by));
    else
        buf_add(&g->work, g->held.data, g->held.n);
    TRY(buf_status(&g->work));
    buf_clear(&g->held);
    return emit(d, k, content(&g->work));
}

static ig_status replace_token(detokenise *d, size_t k, str s)
{
    stage *g = &d->stages[k];
    const decode_step *step = g->step;
    buf_clear(&g->work);
    if (step->literal)
        replace_all(&g->work, s, (str){step->literal, step->n_literal},
                    (str){step->text, step->n_text});
    else
        TRY(replace_pattern(d, &g->work, step, s));
    TRY(buf_status(&g->work));
    return emit(d, k, content(&g->work));
}

/* ---- the chain ---- */

/* A whole token. */
static ig_status take_token(detokenise *d, size_t k, str s)
{
    stage *g = &d->stages[k];
    bool first = g->count++ == 0;
    switch (g->step->kind) {
    case DECODE_BYTE_LEVEL: add_byte_level(&g->held, s); return pass_bytes(d, k, false);
    case DECODE_BYTE_FALLBACK: return byte_fallback(d, k, s);
    case DECODE_STRIP: return emit(d, k, strip_token(g->step, s));
    case DECODE_REPLACE: return replace_token(d, k, s);
    case DECODE_METASPACE: return metaspace(d, k, s, first);
    case DECODE_WORDPIECE: return pass_wordpiece(d, k, s, first);
    case DECODE_BPE:
        if (!first) TRY(pass_suffixed(d, k, " "));
        buf_add(&g->held, s.p, s.n);
        return IG_OK;
    case DECODE_JOIN:
        if (!first) TRY(emit(d, k, str_of(" ")));
        return emit(d, k, s);
    default: return emit(d, k, s);
    }
}

/* A fragment of the one text. */
static ig_status take(detokenise *d, size_t k, str s)
{
    stage *g = &d->stages[k];
    if (!g->text_in) return take_token(d, k, s);
    switch (g->step->kind) {
    case DECODE_FUSE: return emit(d, k, s);
    case DECODE_STRIP: return strip_growing(d, k, s);
    case DECODE_METASPACE: return metaspace(d, k, s, true);
    case DECODE_REPLACE:
        if (g->step->literal) return replace_growing(d, k, s);
        break;
    default: break;
    }
    buf_add(&g->held, s.p, s.n);
    return buf_status(&g->held);
}

/* The end of the one text, for steps that held all of it. */
static ig_status end_text(detokenise *d, size_t k)
{
    stage *g = &d->stages[k];
    AUTO(buf) all = {0};
    buf_init(&all, MAX_WORK_BYTES);
    switch (g->step->kind) {
    case DECODE_FUSE:
    case DECODE_STRIP:
    case DECODE_METASPACE: return IG_OK;
    case DECODE_REPLACE:
        if (g->step->literal) return emit(d, k, content(&g->held));
        break;
    default: break;
    }
    buf_add(&all, g->held.data, g->held.n);
    TRY(buf_status(&all));
    buf_clear(&g->held);
    return take_token(d, k, content(&all));
}

static ig_status end_tokens(detokenise *d, size_t k)
{
    switch (d->stages[k].step->kind) {
    case DECODE_BYTE_LEVEL: return pass_bytes(d, k, true);
    case DECODE_BYTE_FALLBACK: return pass_run(d, k);
    case DECODE_BPE: return d->stages[k].count ? pass_suffixed(d, k, "") : IG_OK;
    default: return IG_OK;
    }
}

static void reset(stage *g)
{
    buf_clear(&g->held);
    g->count = g->n_hold = 0;
    g->started = false;
}

ig_status detokenise_push(detokenise *d, int32_t id, buf *ret_text)
{
    const tokenizer *t = d->t;
    str s;
    if (id < 0 || (size_t)id >= t->n_ids) return IG_OK;
    if (t->added_of[id] >= 0)
        s = t->added[t->added_of[id]].match;
    else if (!vocab_text(&t->vocab, id, &s))
        return IG_OK;
    if (d->skip_special && tokenizer_is_special(t, id)) return IG_OK;
    d->out = ret_text;
    return take(d, 0, s);
}

ig_status detokenise_flush(detokenise *d, buf *ret_text)
{
    ig_status status = IG_OK;
    d->out = ret_text;
    for (size_t k = 0; k < d->n; k++) {
        if (status == IG_OK && d->stages[k].text_in) status = end_text(d, k);
        if (status == IG_OK) status = end_tokens(d, k);
    }
    for (size_t k = 0; k < d->n; k++) reset(&d->stages[k]);
    return status;
}

/* ---- one token by itself ---- */

static bool apply(detokenise *d, const decode_step *step, str s, buf *out)
{
    switch (step->kind) {
    case DECODE_BYTE_LEVEL: add_byte_level(out, s); return true;
    case DECODE_BYTE_FALLBACK: {
        uint8_t b;
        if (byte_token(s, &b))
            buf_char(out, (char)b);
        else
            buf_add(out, s.p, s.n);
        return true;
    }
    case DECODE_REPLACE:
        if (!step->literal) return replace_pattern(d, out, step, s) == IG_OK;
        replace_all(out, s, (str){step->literal, step->n_literal}, (str){step->text, step->n_text});
        return true;
    case DECODE_METASPACE:
        replace_all(out, s, (str){step->text, step->n_text}, (str){" ", 1});
        return true;
    case DECODE_WORDPIECE: {
        str prefix = {step->text, step->n_text};
        if (str_starts(s, prefix))
            s = (str){s.p + prefix.n, s.n - prefix.n};
        else
            buf_char(out, ' ');
        buf_add(out, s.p, s.n);
        return true;
    }
    case DECODE_BPE:
        if (step->n_text)
            replace_all(out, s, (str){step->text, step->n_text}, (str){" ", 1});
        else
            buf_add(out, s.p, s.n);
        return true;
    default: buf_add(out, s.p, s.n); return true;
    }
}

bool tokenizer_token_bytes(const tokenizer *t, int32_t id, buf *ret_bytes)
{
    str s;
    AUTO(detokenise_ptr) d = NULL;
    if (!tokenizer_token(t, id, &s)) return false;
    if (t->added_of[id] >= 0) return buf_add(ret_bytes, s.p, s.n), true;
    if (detokenise_new(t, false, &d) != IG_OK) {
        ret_bytes->status = IG_ENOMEM;
        return true;
    }
    buf *from = &d->stages[0].held, *to = &d->stages[0].work;
    buf_add(from, s.p, s.n);
    /* a raw byte is no text any more: no later step looks at it */
    for (size_t i = 0; i < t->n_decode && utf8_valid(from->data, from->n); i++) {
        buf *swap = from;
        buf_clear(to);
        if (!apply(d, &t->decode[i], content(from), to)) return false;
        from = to;
        to = swap;
    }
    if (from->status != IG_OK && ret_bytes->status == IG_OK) ret_bytes->status = from->status;
    buf_add(ret_bytes, from->data, from->n);
    return true;
}
