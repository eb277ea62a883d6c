/* unigram.c: the most probable cut of a piece into tokens (Viterbi over the vocabulary's trie).
 * Of equally good paths the first found wins, as in the reference; scores are summed in double
 * in the same order. */
#include "lm/tokenizer_impl.h"

#define NOT_REACHED UINT32_MAX

static void offer(best_path *to, double score, uint32_t from, int32_t id, bool unk)
{
    if (to->from == NOT_REACHED || score > to->score) *to = (best_path){score, from, id, unk};
}

/* best[i]: the best way to the first i bytes. */
static ig_status search(const tokenizer *t, encoder *e, str piece, bool forbid)
{
    best_path *best = e->path;
    for (size_t i = 0; i <= piece.n; i++) best[i] = (best_path){0, NOT_REACHED, 0, false};
    for (size_t at = 0, len; at < piece.n; at += len) {
        (void)unicode_at(piece.p + at, &len);
        double here = best[at].score;
        bool single = false;
        uint32_t node = TRIE_ROOT;
        for (size_t end = at; end < piece.n;) {
            node = trie_step(&t->trie, node, (uint8_t)piece.p[end]);
            if (node == TRIE_NONE) break;
            end++;
            int32_t id = t->trie.value[node];
            if (id < 0 || (forbid && id_is_control(t, id))) continue;
            offer(&best[end], t->unigram.score[id] + here, (uint32_t)at, id, id == t->unk_id);
            single = single || end - at == len;
        }
        if (single) continue;
        if (t->unk_id < 0)
            return ig_fail(IG_EFORMAT,
                           "the text needs the unknown token, and the tokenizer has no unk_id");
        offer(&best[at + len], t->unigram.unk_score + here, (uint32_t)at, t->unk_id, true);
    }
    return IG_OK;
}

/* Ids of piece[at, end), which one node or a run of unknown nodes covers. */
static ig_status emit(const tokenizer *t, encoder *e, str text, int32_t id, bool unk, bool forbid)
{
    if (!unk) return encoder_out(e, id);
    id = vocab_find(&t->vocab, text); /* a run of unknown characters may spell a token */
    if (id >= 0 && !(forbid && id_is_control(t, id))) return encoder_out(e, id);
    if (!t->unigram.byte_fallback || !has_bytes(t, text))
        return forbid && t->unk_control ? IG_OK : encoder_out(e, t->unk_id);
    for (size_t i = 0; i < text.n; i++) TRY(encoder_out(e, t->byte_id[(uint8_t)text.p[i]]));
    return IG_OK;
}

ig_status unigram_encode(const tokenizer *t, encoder *e, str piece, bool forbid)
{
    TRY(array_reserve((void **)&e->path, &e->cap_path, piece.n + 1, sizeof *e->path));
    TRY(search(t, e, piece, forbid));
    best_path *best = e->path;
    /* turn the links round: best[i].from becomes where the node that begins at i ends */
    uint32_t next = NOT_REACHED;
    int32_t id = 0;
    bool unk = false;
    for (uint32_t at = (uint32_t)piece.n;;) {
        best_path node = best[at];
        best[at].from = next;
        best[at].id = id;
        best[at].unk = unk;
        if (at == 0) break;
        next = at;
        id = node.id;
        unk = node.unk;
        at = node.from;
    }
    for (uint32_t at = 0, end; at < piece.n; at = end) {
        end = best[at].from;
        if (best[at].unk)
            while (end < piece.n && best[end].unk) end = best[end].from;
        TRY(emit(t, e, (str){piece.p + at, end - at}, best[at].id, best[at].unk, forbid));
    }
    return IG_OK;
}
