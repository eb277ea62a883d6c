/* wordpiece.c: the longest token that begins a piece, then the longest "##" token that continues
 * it, to the end; a piece that cannot be covered, or is too long, is the unknown token. */
#include "lm/tokenizer_impl.h"

static ig_status unknown(const tokenizer *t, encoder *e, size_t n_out, bool forbid)
{
    e->n_out = n_out;
    if (forbid && t->unk_control) return IG_OK;
    if (t->unk_id < 0)
        return ig_fail(IG_EFORMAT,
                       "the text needs the unknown token, and the tokenizer's vocabulary lacks it");
    return encoder_out(e, t->unk_id);
}

static size_t count_chars(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* Longest token at the start of `rest`: its id and bytes, or NO_TOKEN. */
static int32_t longest(const tokenizer *t, str rest, uint32_t node, bool forbid, size_t *ret_n)
{
    int32_t found = NO_TOKEN;
    for (size_t i = 0; i < rest.n; i++) {
        node = trie_step(&t->trie, node, (uint8_t)rest.p[i]);
        if (node == TRIE_NONE) break;
        int32_t id = t->trie.value[node];
        if (id < 0 || (forbid && id_is_control(t, id))) continue;
        found = id;
        *ret_n = i + 1;
    }
    return found;
}

ig_status wordpiece_encode(const tokenizer *t, encoder *e, str piece, bool forbid)
{
    size_t n_out = e->n_out;
    if (count_chars(piece) > t->wordpiece.max_chars) return unknown(t, e, n_out, forbid);
    uint32_t inner = TRIE_ROOT; /* the node of the prefix */
    for (size_t i = 0; i < t->wordpiece.n_prefix && inner != TRIE_NONE; i++)
        inner = trie_step(&t->trie, inner, (uint8_t)t->wordpiece.prefix[i]);
    for (size_t at = 0, n; at < piece.n; at += n) {
        uint32_t node = at ? inner : TRIE_ROOT;
        int32_t id = NO_TOKEN;
        if (node != TRIE_NONE) id = longest(t, (str){piece.p + at, piece.n - at}, node, forbid, &n);
        if (id < 0) return unknown(t, e, n_out, forbid);
        TRY(encoder_out(e, id));
    }
    return IG_OK;
}
