/* tokenizer_added.c: added tokens: reading them and finding them in a text, leftmost and
 * longest.
 *
 * A token that the file marks "normalized" is searched in the normalised text, by its normalised
 * form; the others in the raw text, before. Ids follow the reference: a token that the
 * vocabulary has keeps the vocabulary's id, any other gets the next free one, whatever the file
 * says beside it. */
#include <string.h>
#include <strings.h>
#include "lm/tokenizer_impl.h"

/* ---- reading ---- */

static ig_status read_flags(const char *what, const json_t *j, added_token *a)
{
    TRY(json_opt_bool(what, j, "single_word", false, &a->single_word));
    TRY(json_opt_bool(what, j, "lstrip", false, &a->lstrip));
    TRY(json_opt_bool(what, j, "rstrip", false, &a->rstrip));
    TRY(json_opt_bool(what, j, "normalized", true, &a->normalized));
    return json_opt_bool(what, j, "special", false, &a->special);
}

/* White space only, also as SentencePiece writes it. */
static bool is_blank(str s)
{
    for (size_t i = 0, n; i < s.n; i += n) {
        uint32_t cp = unicode_at(s.p + i, &n);
        if (!unicode_is_space(cp) && cp != 0x2581) return false;
    }
    return true;
}

static ig_status give_id(const char *what, const tokenizer *t, str content, size_t *next,
                         int32_t *ret_id)
{
    str taken;
    *ret_id = vocab_find(&t->vocab, content);
    if (*ret_id >= 0) return IG_OK;
    if (*next >= TOKENIZER_MAX_TOKENS)
        return ig_fail(IG_ELIMIT, "%s: added_tokens: over %zu token ids", what,
                       TOKENIZER_MAX_TOKENS);
    *ret_id = (int32_t)(*next)++;
    if (!vocab_text(&t->vocab, *ret_id, &taken)) return IG_OK;
    return ig_fail(
        IG_EFORMAT,
        "%s: added_tokens: \"%.*s\" would get id %d, which \"%.*s\" of the vocabulary has", what,
        (int)content.n, content.p, *ret_id, (int)taken.n, taken.p);
}

/* Sets a->match: the content, or what the normalisers make of it. */
static ig_status set_match(const tokenizer *t, encoder *e, added_token *a)
{
    a->match = a->content;
    if (!a->normalized || t->n_norm == 0) return IG_OK;
    text_view v;
    TRY(normalise(t, e, (text_view){a->content.p, a->content.n, NULL}, &v));
    if (v.n == a->content.n && memcmp(v.p, a->content.p, v.n) == 0) return IG_OK;
    a->normal = mem_dup(v.p, v.n);
    if (!a->normal) return IG_ENOMEM;
    a->match = (str){a->normal, v.n};
    return IG_OK;
}

static ig_status read_one(const char *what, size_t i, const json_t *j, tokenizer *t, encoder *e,
                          size_t *next)
{
    char where[256];
    str content;
    added_token a = {0};
    snprintf(where, sizeof where, "%.200s: added_tokens[%zu]", what, i);
    TRY(json_get_str(where, j, "content", &content));
    TRY(read_flags(where, j, &a));
    if (content.n == 0) return IG_OK;
    int32_t index = vocab_find(&t->added_vocab, content);
    if (index >= 0) { /* said again: the later flags count, but special it stays */
        added_token *old = &t->added[index];
        a.id = old->id;
        a.special = a.special || old->special;
        mem_free(old->normal);
        old->normal = NULL;
    } else {
        TRY(give_id(what, t, content, next, &a.id));
        index = (int32_t)t->n_added++;
        (void)vocab_put(&t->added_vocab, content, index);
    }
    (void)vocab_text(&t->added_vocab, index, &a.content);
    a.control = !is_blank(a.content);
    t->added[index] = a;
    return set_match(t, e, &t->added[index]);
}

static ig_status measure(const char *what, const json_t *list, size_t *ret_bytes)
{
    size_t n = json_array_size(list), bytes = 0;
    if (n > TOKENIZER_MAX_TOKENS)
        return ig_fail(IG_ELIMIT, "%s: %zu added_tokens, at most %zu are read", what, n,
                       TOKENIZER_MAX_TOKENS);
    for (size_t i = 0; i < n; i++) {
        size_t n_text = json_string_length(json_object_get(json_array_get(list, i), "content"));
        if (n_text > TOKENIZER_MAX_TOKEN_BYTES)
            return ig_fail(IG_ELIMIT, "%s: added_tokens[%zu] has %zu bytes, at most %zu are read",
                           what, i, n_text, TOKENIZER_MAX_TOKEN_BYTES);
        bytes += n_text;
    }
    *ret_bytes = bytes;
    return IG_OK;
}

/* Tables by id: which added token, special, control. */
static ig_status index_ids(tokenizer *t)
{
    t->n_ids = t->vocab.n_ids;
    for (size_t i = 0; i < t->n_added; i++)
        if ((size_t)t->added[i].id >= t->n_ids) t->n_ids = (size_t)t->added[i].id + 1;
    t->added_of = mem_alloc(t->n_ids * sizeof *t->added_of);
    t->id_flags = mem_calloc(t->n_ids, 1);
    if (!t->added_of || !t->id_flags) return IG_ENOMEM;
    memset(t->added_of, 0xff, t->n_ids * sizeof *t->added_of);
    for (size_t i = 0; i < t->n_added; i++) {
        const added_token *a = &t->added[i];
        t->added_of[a->id] = (int32_t)i;
        /* the reference asks whether the text that it decodes is that of a special token */
        int32_t same = vocab_find(&t->added_vocab, a->match);
        if (same >= 0 && t->added[same].special) t->id_flags[a->id] |= ID_SPECIAL;
        if (a->control) t->id_flags[a->id] |= ID_CONTROL;
    }
    return IG_OK;
}

/* Some files name <|endoftext|> or the like as unknown token; one whose name says "unk" is
 * harmless. */
static void judge_unk(tokenizer *t)
{
    str s;
    if (!id_is_control(t, t->unk_id) || !vocab_text(&t->vocab, t->unk_id, &s)) return;
    t->unk_control = true;
    for (size_t i = 0; i + 3 <= s.n; i++)
        if (strncasecmp(s.p + i, "unk", 3) == 0) t->unk_control = false;
}

static ig_status index_texts(tokenizer *t)
{
    TRY(trie_init(&t->raw_trie));
    TRY(trie_init(&t->norm_trie));
    for (size_t i = 0; i < t->n_added; i++) {
        const added_token *a = &t->added[i];
        if (a->match.n == 0) continue; /* normalised away: nothing to find */
        TRY(trie_put(a->normalized ? &t->norm_trie : &t->raw_trie, a->match, (int32_t)i, false));
        t->norm_control = t->norm_control || (a->normalized && a->control);
    }
    return IG_OK;
}

ig_status load_added(const char *what, const json_t *root, tokenizer *t)
{
    json_t *list = json_object_get(root, "added_tokens");
    if (list && !json_is_null(list)) TRY(json_get_arr(what, root, "added_tokens", &list));
    size_t bytes = 0, n = json_array_size(list), next = t->vocab.n_tokens;
    TRY(measure(what, list, &bytes));
    AUTO(encoder_ptr) e = NULL;
    TRY(encoder_new(&e));
    TRY(vocab_init(&t->added_vocab, n, bytes));
    t->added = mem_calloc(n, sizeof *t->added);
    if (!t->added) return IG_ENOMEM;
    for (size_t i = 0; i < n; i++) TRY(read_one(what, i, json_array_get(list, i), t, e, &next));
    TRY(index_ids(t));
    judge_unk(t);
    return index_texts(t);
}

/* ---- finding ---- */

/* Longest token at s->text.p + at that may be found there. */
static const added_token *longest_at(const added_scan *s, size_t at, size_t *ret_end)
{
    const added_token *found = NULL;
    bool trusted = s->trusted || s->text.mark;
    uint32_t node = TRIE_ROOT;
    for (size_t i = at; i < s->text.n; i++) {
        node = trie_step(s->trie, node, (uint8_t)s->text.p[i]);
        if (node == TRIE_NONE) break;
        if (s->text.mark) trusted = trusted && (s->text.mark[i] & MARK_TRUSTED);
        int32_t index = s->trie->value[node];
        if (index < 0 || (s->t->added[index].control && !trusted)) continue;
        found = &s->t->added[index];
        *ret_end = i + 1;
    }
    return found;
}

static bool is_single_word(text_view text, size_t at, size_t end)
{
    size_t n;
    if (at > 0 && unicode_is_word(unicode_at(unicode_before(text.p + at), &n))) return false;
    return end == text.n || !unicode_is_word(unicode_at(text.p + end, &n));
}

/* Widens a match over the white space beside it, as its token asks. */
static void strip_beside(const added_scan *s, added_match *m)
{
    size_t n;
    while (m->token->lstrip && m->at > s->at) {
        const char *p = unicode_before(s->text.p + m->at);
        if (!unicode_is_space(unicode_at(p, &n))) break;
        m->at = (size_t)(p - s->text.p);
    }
    if (m->token->lstrip && m->at < s->at) m->at = s->at; /* a token before took the space */
    while (m->token->rstrip && m->end < s->text.n) {
        if (!unicode_is_space(unicode_at(s->text.p + m->end, &n))) break;
        m->end += n;
    }
}

static bool find(added_scan *s, added_match *ret_match)
{
    while (s->search < s->text.n) {
        size_t at = s->search, end;
        const added_token *a = NULL;
        if (s->trie->root[(uint8_t)s->text.p[at]] != TRIE_NONE) a = longest_at(s, at, &end);
        if (!a) {
            s->search++;
            continue;
        }
        s->search = end;
        if (a->single_word && !is_single_word(s->text, at, end)) continue;
        *ret_match = (added_match){at, end, a};
        strip_beside(s, ret_match);
        if (ret_match->at < ret_match->end) return true;
    }
    return false;
}

bool added_next(added_scan *s, added_match *ret_match)
{
    added_match m = s->found;
    s->found.token = NULL;
    if (!m.token && !find(s, &m)) {
        if (s->at >= s->text.n) return false;
        *ret_match = (added_match){s->at, s->text.n, NULL};
        s->at = s->text.n;
        return true;
    }
    if (s->at < m.at) {
        *ret_match = (added_match){s->at, m.at, NULL};
        s->found = m;
        s->at = m.at;
        return true;
    }
    *ret_match = m;
    s->at = m.end;
    return true;
}
