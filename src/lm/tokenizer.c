/* tokenizer.c: opening, encoding and looking up (contract in tokenizer.h; the way of a text in
 * tokenizer_impl.h). A call to encode takes an idle encoder, so concurrent calls share nothing
 * but the list of idle ones; an encoder remembers the ids of short pieces it has met. */
#include "lm/tokenizer.h"
#include <string.h>
#include "lm/detokenise.h"
#include "lm/tokenizer_impl.h"

#define MAX_IDLE 8                       /* encoders kept; more may be at work */
#define MAX_IDLE_BYTES ((size_t)4 << 20) /* one that grew larger on a huge text is not kept */

struct encoder_pool {
    lock lock;
    encoder *idle;
    size_t n_idle;
};

/* ---- growable things ---- */

ig_status array_reserve(void **p, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) return IG_OK;
    size_t n = *cap ? *cap : 64, n_bytes;
    while (n < need) n *= 2;
    if (need > MAX_WORK_BYTES || !mem_mul(n, size, &n_bytes))
        return ig_fail(IG_ELIMIT, "the text needs over %zu bytes while it is tokenised",
                       MAX_WORK_BYTES);
    void *grown = mem_realloc(*p, n_bytes);
    if (!grown) return IG_ENOMEM;
    *p = grown;
    *cap = n;
    return IG_OK;
}

ig_status text_reserve(text_buf *t, size_t more)
{
    TRY(array_reserve((void **)&t->p, &t->cap, t->n + more, 1));
    if (t->marked) TRY(array_reserve((void **)&t->mark, &t->cap_mark, t->n + more, 1));
    return IG_OK;
}

static void text_done(text_buf *t)
{
    mem_free(t->p);
    mem_free(t->mark);
}

ig_status pieces_add(piece_list *l, size_t at, size_t n, bool match)
{
    TRY(array_reserve((void **)&l->p, &l->cap, l->n + 1, sizeof *l->p));
    l->p[l->n++] = (stretch){(uint32_t)at, (uint32_t)n, match};
    return IG_OK;
}

void token_ids_init(token_ids *v, size_t max) { *v = (token_ids){.max = max}; }

void token_ids_done(token_ids *v)
{
    mem_free(v->id);
    *v = (token_ids){.max = v->max};
}

ig_status token_ids_add(token_ids *v, const int32_t *ids, size_t n)
{
    if (n > v->max - v->n) return ig_fail(IG_ELIMIT, "the text has over %zu tokens", v->max);
    if (v->n + n > v->cap) {
        size_t cap = v->cap ? v->cap : 64;
        while (cap < v->n + n) cap *= 2;
        int32_t *id = mem_realloc(v->id, cap * sizeof *id);
        if (!id) return IG_ENOMEM;
        v->id = id;
        v->cap = cap;
    }
    if (n) memcpy(v->id + v->n, ids, n * sizeof *ids);
    v->n += n;
    return IG_OK;
}

/* ---- encoders ---- */

ig_status encoder_new(encoder **ret_encoder)
{
    AUTO(encoder_ptr) e = mem_calloc(1, sizeof *e);
    if (!e) return IG_ENOMEM;
    TRY(regex_run_init(&e->run));
    *ret_encoder = STEAL(e);
    return IG_OK;
}

void encoder_free(encoder *e)
{
    if (!e) return;
    regex_run_done(&e->run);
    text_done(&e->joined);
    for (int i = 0; i < 2; i++) {
        text_done(&e->norm[i]);
        text_done(&e->pre[i]);
        mem_free(e->pieces[i].p);
    }
    void *const owned[] = {e->matches.p, e->code, e->code2, e->code_mark, e->code_mark2, e->symbols,
                           e->heap,      e->path, e->word,  e->out,       e->cache};
    for (size_t i = 0; i < N_ELEM(owned); i++) mem_free(owned[i]);
    mem_free(e);
}

ig_status encoder_out(encoder *e, int32_t id)
{
    TRY(array_reserve((void **)&e->out, &e->cap_out, e->n_out + 1, sizeof *e->out));
    e->out[e->n_out++] = id;
    return IG_OK;
}

static ig_status encoder_take(const tokenizer *t, encoder **ret_encoder)
{
    lock_take(&t->pool->lock);
    encoder *e = t->pool->idle;
    if (e) {
        t->pool->idle = e->next;
        t->pool->n_idle--;
    }
    lock_drop(&t->pool->lock);
    if (!e) return encoder_new(ret_encoder);
    *ret_encoder = e;
    return IG_OK;
}

static size_t text_bytes(const text_buf *t) { return t->cap + t->cap_mark; }

static size_t encoder_bytes(const encoder *e)
{
    size_t n = text_bytes(&e->joined) + e->cap_word + e->cap_out * sizeof *e->out;
    for (int i = 0; i < 2; i++)
        n += text_bytes(&e->norm[i]) + text_bytes(&e->pre[i]) + e->pieces[i].cap * sizeof(stretch);
    n += e->matches.cap * sizeof(stretch) + e->cap_code * 2 * (sizeof *e->code + 1);
    n += e->cap_symbols * sizeof *e->symbols + e->cap_heap * sizeof *e->heap;
    return n + e->cap_path * sizeof *e->path;
}

static void encoder_put(const tokenizer *t, encoder *e)
{
    bool keep = encoder_bytes(e) <= MAX_IDLE_BYTES;
    lock_take(&t->pool->lock);
    if (keep && t->pool->n_idle < MAX_IDLE) {
        e->next = t->pool->idle;
        t->pool->idle = e;
        t->pool->n_idle++;
        e = NULL;
    }
    lock_drop(&t->pool->lock);
    encoder_free(e);
}

/* ---- opening ---- */

ig_status tokenizer_open(const char *what, str json, tokenizer **ret_tokenizer)
{
    AUTO(tokenizer_ptr) t = mem_calloc(1, sizeof *t);
    if (!t) return IG_ENOMEM;
    struct encoder_pool *pool = mem_calloc(1, sizeof *pool);
    if (!pool) return IG_ENOMEM;
    ig_status s = lock_init(&pool->lock, RANK_LEAF);
    if (s != IG_OK) {
        mem_free(pool);
        return s;
    }
    t->pool = pool;
    TRY(load_tokenizer(what, json, t));
    *ret_tokenizer = STEAL(t);
    return IG_OK;
}

static void pool_free(struct encoder_pool *pool)
{
    if (!pool) return;
    while (pool->idle) {
        encoder *e = pool->idle;
        pool->idle = e->next;
        encoder_free(e);
    }
    lock_done(&pool->lock);
    mem_free(pool);
}

void tokenizer_free(tokenizer *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->n_added; i++) mem_free(t->added[i].normal);
    components_done(t);
    bpe_done(&t->bpe);
    mem_free(t->unigram.score);
    mem_free(t->wordpiece.prefix);
    vocab_done(&t->vocab);
    vocab_done(&t->added_vocab);
    trie_done(&t->trie);
    trie_done(&t->raw_trie);
    trie_done(&t->norm_trie);
    mem_free(t->added);
    mem_free(t->added_of);
    mem_free(t->id_flags);
    pool_free(t->pool);
    mem_free(t);
}

/* ---- pieces to ids ---- */

static ig_status model_encode(const tokenizer *t, encoder *e, str word, bool forbid)
{
    e->n_out = 0;
    switch (t->kind) {
    case MODEL_BPE: return bpe_encode(t, e, word, forbid);
    case MODEL_UNIGRAM: return unigram_encode(t, e, word, forbid);
    default: return wordpiece_encode(t, e, word, forbid);
    }
}

/* The ids of a short piece from the cache, or from the model and into the cache. */
static ig_status cached_encode(const tokenizer *t, encoder *e, str word)
{
    if (word.n > CACHE_KEY) return model_encode(t, e, word, false);
    if (!e->cache && !(e->cache = mem_calloc(CACHE_SLOTS, sizeof *e->cache))) return IG_ENOMEM;
    uint64_t hash = hash_bytes(word.p, word.n, t->vocab.seed);
    cache_slot *c = &e->cache[hash % CACHE_SLOTS];
    if (c->n_key == word.n && c->hash == hash && memcmp(c->key, word.p, word.n) == 0) {
        e->n_out = 0;
        TRY(array_reserve((void **)&e->out, &e->cap_out, CACHE_IDS, sizeof *e->out));
        memcpy(e->out, c->id, sizeof c->id);
        e->n_out = c->n_id;
        return IG_OK;
    }
    TRY(model_encode(t, e, word, false));
    if (e->n_out > CACHE_IDS) return IG_OK;
    c->hash = hash;
    c->n_key = (uint8_t)word.n;
    c->n_id = (uint8_t)e->n_out;
    memcpy(c->key, word.p, word.n);
    if (e->n_out) memcpy(c->id, e->out, e->n_out * sizeof *e->out);
    return IG_OK;
}

static ig_status encode_word(const tokenizer *t, encoder *e, str word, bool forbid, token_ids *ids)
{
    TRY(cached_encode(t, e, word));
    bool control = false;
    for (size_t i = 0; forbid && i < e->n_out; i++)
        control = control || id_is_control(t, e->out[i]);
    if (control) TRY(model_encode(t, e, word, true));
    return token_ids_add(ids, e->out, e->n_out);
}

/* Normalised text without added tokens. */
static ig_status encode_plain(const tokenizer *t, encoder *e, text_view text, bool forbid,
                              token_ids *ids)
{
    const piece_list *pieces;
    TRY(pretokenize(t, e, text, &text, &pieces));
    for (size_t i = 0; i < pieces->n; i++)
        TRY(encode_word(t, e, (str){text.p + pieces->p[i].at, pieces->p[i].n}, forbid, ids));
    return IG_OK;
}

static text_view cut(text_view v, added_match m)
{
    return (text_view){v.p + m.at, m.end - m.at, v.mark ? v.mark + m.at : NULL};
}

static bool all_trusted(text_view v, bool trusted)
{
    if (!v.mark) return trusted;
    for (size_t i = 0; i < v.n; i++)
        if (!(v.mark[i] & MARK_TRUSTED)) return false;
    return true;
}

/* Raw text without added tokens. */
static ig_status encode_stretch(const tokenizer *t, encoder *e, text_view text, bool trusted,
                                token_ids *ids)
{
    bool forbid = !all_trusted(text, trusted);
    if (trie_is_empty(&t->norm_trie)) {
        if (!t->first_scheme) text.mark = NULL; /* nobody asks any more */
        TRY(normalise(t, e, text, &text));
        return encode_plain(t, e, text, forbid, ids);
    }
    TRY(normalise(t, e, text, &text));
    added_scan scan = {.t = t, .trie = &t->norm_trie, .text = text, .trusted = !forbid};
    added_match m;
    while (added_next(&scan, &m)) {
        if (m.token)
            TRY(token_ids_add(ids, &m.token->id, 1));
        else
            TRY(encode_plain(t, e, cut(text, m), forbid, ids));
    }
    return IG_OK;
}

static ig_status encode_text(const tokenizer *t, encoder *e, text_view text, bool trusted,
                             token_ids *ids)
{
    added_scan scan = {.t = t, .trie = &t->raw_trie, .text = text, .trusted = trusted};
    added_match m;
    while (added_next(&scan, &m)) {
        if (m.token)
            TRY(token_ids_add(ids, &m.token->id, 1));
        else
            TRY(encode_stretch(t, e, cut(text, m), trusted, ids));
    }
    return IG_OK;
}

/* ---- spans ---- */

static ig_status check_span(const tokenizer_span *s, size_t i, size_t n_spans, size_t *total)
{
    if (s->text.n > TOKENIZER_MAX_TEXT_BYTES - *total)
        return ig_fail(IG_ELIMIT, "a text of over %zu bytes cannot be tokenised",
                       TOKENIZER_MAX_TEXT_BYTES);
    *total += s->text.n;
    if (utf8_valid(s->text.p, s->text.n)) return IG_OK;
    size_t at = 0, n;
    uint32_t cp;
    while (at < s->text.n && (n = utf8_decode(s->text.p + at, s->text.n - at, &cp))) at += n;
    if (n_spans == 1) return ig_fail(IG_EINVAL, "the text is not UTF-8 at byte %zu", at);
    return ig_fail(IG_EINVAL, "span %zu of the text is not UTF-8 at byte %zu", i, at);
}

/* The spans as one text, with marks where they matter. */
static ig_status join(const tokenizer *t, encoder *e, const tokenizer_span *spans, size_t n,
                      text_view *ret_text, bool *ret_trusted)
{
    size_t total = 0;
    bool any[2] = {false, false};
    for (size_t i = 0; i < n; i++) {
        TRY(check_span(&spans[i], i, n, &total));
        if (spans[i].text.n) any[spans[i].trusted] = true;
    }
    *ret_trusted = any[true] && !any[false];
    e->joined.n = 0;
    e->joined.marked = (any[true] && any[false]) || t->first_scheme;
    if (n == 1 && !e->joined.marked) {
        *ret_text = (text_view){spans[0].text.p, spans[0].text.n, NULL};
        return IG_OK;
    }
    TRY(text_reserve(&e->joined, total));
    for (size_t i = 0; i < n; i++)
        if (spans[i].text.n)
            text_put(&e->joined, spans[i].text.p, spans[i].text.n,
                     spans[i].trusted ? MARK_TRUSTED : 0);
    size_t first = 0;
    if (total) (void)unicode_at(e->joined.p, &first);
    for (size_t i = 0; e->joined.marked && i < first; i++) e->joined.mark[i] |= MARK_START;
    *ret_text = text_of(&e->joined);
    return IG_OK;
}

static ig_status encode_all(const tokenizer *t, encoder *e, const tokenizer_span *spans,
                            size_t n_spans, bool add_special, token_ids *ids)
{
    text_view text = {0};
    bool trusted = false;
    TRY(join(t, e, spans, n_spans, &text, &trusted));
    for (size_t i = 0; i < t->n_post; i++) {
        if (t->post[i] == NO_TOKEN)
            TRY(encode_text(t, e, text, trusted, ids));
        else if (add_special)
            TRY(token_ids_add(ids, &t->post[i], 1));
    }
    return IG_OK;
}

ig_status tokenizer_encode_spans(const tokenizer *t, const tokenizer_span *spans, size_t n_spans,
                                 bool add_special, token_ids *ret_ids)
{
    encoder *e = NULL;
    size_t n = ret_ids->n;
    TRY(encoder_take(t, &e));
    ig_status s = encode_all(t, e, spans, n_spans, add_special, ret_ids);
    encoder_put(t, e);
    if (s != IG_OK) ret_ids->n = n;
    return s;
}

ig_status tokenizer_encode(const tokenizer *t, str text, tokenizer_flags flags, token_ids *ret_ids)
{
    tokenizer_span span = {text, flags.parse_special};
    return tokenizer_encode_spans(t, &span, 1, flags.add_special, ret_ids);
}

/* ---- ids to text, one by one ---- */

size_t tokenizer_vocab_size(const tokenizer *t) { return t->n_ids; }

bool tokenizer_id(const tokenizer *t, str token, int32_t *ret_id)
{
    int32_t index = vocab_find(&t->added_vocab, token);
    int32_t id = index >= 0 ? t->added[index].id : vocab_find(&t->vocab, token);
    if (id < 0) return false;
    *ret_id = id;
    return true;
}

static bool has_id(const tokenizer *t, int32_t id) { return id >= 0 && (size_t)id < t->n_ids; }

bool tokenizer_token(const tokenizer *t, int32_t id, str *ret_token)
{
    if (has_id(t, id) && t->added_of[id] >= 0) {
        *ret_token = t->added[t->added_of[id]].content;
        return true;
    }
    return vocab_text(&t->vocab, id, ret_token);
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    return has_id(t, id) && (t->id_flags[id] & ID_SPECIAL);
}

bool tokenizer_is_control(const tokenizer *t, int32_t id) { return id_is_control(t, id); }

ig_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n_ids, bool skip_special,
                           buf *ret_text)
{
    AUTO(detokenise_ptr) d = NULL;
    TRY(detokenise_new(t, skip_special, &d));
    for (size_t i = 0; i < n_ids; i++) TRY(detokenise_push(d, ids[i], ret_text));
    return detokenise_flush(d, ret_text);
}

/* ---- the byte-level alphabet ---- */

/* Printable bytes stand for themselves, the 68 others for U+0100 and on. */
uint32_t byte_level_char(uint8_t b)
{
    if (b < 33) return 256u + b;
    if (b < 127) return b;
    if (b < 161) return b == 127 ? 289u : 290u + (b - 128u);
    return b == 173 ? 323u : b;
}

bool byte_level_byte(uint32_t cp, uint8_t *ret_byte)
{
    uint32_t b = cp;
    if (cp >= 256 && cp < 289)
        b = cp - 256;
    else if (cp == 289)
        b = 127;
    else if (cp >= 290 && cp < 323)
        b = cp - 290 + 128;
    else if (cp == 323)
        b = 173;
    if (b > 255 || byte_level_char((uint8_t)b) != cp) return false;
    *ret_byte = (uint8_t)b;
    return true;
}
