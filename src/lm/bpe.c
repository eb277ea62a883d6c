/* bpe.c: byte-pair encoding: the characters of a piece become tokens, then the neighbouring pair
 * of lowest rank (leftmost of equals) is merged until no pair has a merge.
 *
 * Short pieces are scanned for the lowest rank, long ones keep candidates in a heap over a
 * linked list, so that a megabyte without a split takes n log n steps. Both are compared with
 * the reference on the same texts. */
#include <string.h>
#include "base/digest.h"
#include "lm/tokenizer_impl.h"

#define N_SHORT 64 /* symbols; above, the heap is faster */
#define NONE UINT32_MAX
#define EMPTY UINT64_MAX

/* ---- merges ---- */

static const merge *find_merge(const tokenizer *t, uint32_t left, uint32_t right, bool forbid)
{
    const bpe *b = &t->bpe;
    uint64_t pair = (uint64_t)left << 32 | right;
    for (size_t i = hash_mix(pair ^ b->seed) & b->mask;; i = (i + 1) & b->mask) {
        const merge *m = &b->slots[i];
        if (m->pair == pair) return forbid && id_is_control(t, (int32_t)m->id) ? NULL : m;
        if (m->pair == EMPTY) return NULL;
    }
}

static void put_merge(bpe *b, uint64_t pair, uint32_t rank, uint32_t id)
{
    size_t i = hash_mix(pair ^ b->seed) & b->mask;
    while (b->slots[i].pair != EMPTY && b->slots[i].pair != pair) i = (i + 1) & b->mask;
    b->slots[i] = (merge){pair, rank, id};
}

/* "left right", or ["left", "right"]. */
static ig_status merge_texts(const char *what, size_t rank, const json_t *j, str *ret_left,
                             str *ret_right)
{
    if (json_is_array(j) && json_array_size(j) == 2 && json_is_string(json_array_get(j, 0)) &&
        json_is_string(json_array_get(j, 1))) {
        const json_t *l = json_array_get(j, 0), *r = json_array_get(j, 1);
        *ret_left = (str){json_string_value(l), json_string_length(l)};
        *ret_right = (str){json_string_value(r), json_string_length(r)};
        return IG_OK;
    }
    if (json_is_string(j)) {
        str s = {json_string_value(j), json_string_length(j)};
        const char *space = memchr(s.p, ' ', s.n);
        size_t n_left = space ? (size_t)(space - s.p) : s.n;
        if (space && !memchr(space + 1, ' ', s.n - n_left - 1)) {
            *ret_left = (str){s.p, n_left};
            *ret_right = (str){space + 1, s.n - n_left - 1};
            return IG_OK;
        }
    }
    return ig_fail(IG_EFORMAT, "%s: merges[%zu]: expected \"left right\" or [\"left\", \"right\"]",
                   what, rank);
}

static ig_status load_merge(const char *what, size_t index, size_t rank, const json_t *j,
                            tokenizer *t, buf *whole)
{
    str part[2];
    TRY(merge_texts(what, index, j, &part[0], &part[1]));
    int32_t id[3];
    for (int k = 0; k < 2; k++) {
        id[k] = vocab_find(&t->vocab, part[k]);
        if (id[k] < 0)
            return ig_fail(IG_EFORMAT, "%s: merges[%zu]: \"%.*s\" is not in the vocabulary", what,
                           index, (int)(part[k].n < 200 ? part[k].n : 200), part[k].p);
    }
    if (part[1].n < t->bpe.n_prefix)
        return ig_fail(IG_EFORMAT,
                       "%s: merges[%zu]: the right side lacks the continuing_subword_prefix", what,
                       index);
    buf_clear(whole);
    buf_add(whole, part[0].p, part[0].n);
    buf_add(whole, part[1].p + t->bpe.n_prefix, part[1].n - t->bpe.n_prefix);
    TRY(buf_status(whole));
    id[2] = vocab_find(&t->vocab, (str){whole->data, whole->n});
    if (id[2] < 0)
        return ig_fail(IG_EFORMAT, "%s: merges[%zu]: its result \"%.*s\" is not in the vocabulary",
                       what, index, (int)(whole->n < 200 ? whole->n : 200), whole->data);
    put_merge(&t->bpe, (uint64_t)id[0] << 32 | (uint32_t)id[1], (uint32_t)rank, (uint32_t)id[2]);
    return IG_OK;
}

static bool is_version_line(const json_t *j)
{
    return json_is_string(j) && strncmp(json_string_value(j), "#version", 8) == 0;
}

ig_status bpe_load_merges(const char *what, const json_t *merges, tokenizer *t)
{
    bpe *b = &t->bpe;
    size_t n = json_array_size(merges), n_slots = 16, rank = 0;
    if (n > TOKENIZER_MAX_MERGES)
        return ig_fail(IG_ELIMIT, "%s: %zu merges, at most %zu are read", what, n,
                       TOKENIZER_MAX_MERGES);
    while (n_slots < n * 2) n_slots *= 2;
    TRY(random_bytes(&b->seed, sizeof b->seed));
    b->slots = mem_alloc(n_slots * sizeof *b->slots);
    if (!b->slots) return IG_ENOMEM;
    b->mask = n_slots - 1;
    for (size_t i = 0; i < n_slots; i++) b->slots[i].pair = EMPTY;
    AUTO(buf) whole = {0};
    buf_init(&whole, TOKENIZER_MAX_TOKEN_BYTES * 2);
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(merges, i);
        if (is_version_line(j)) continue;
        TRY(load_merge(what, i, rank++, j, t, &whole));
    }
    for (uint32_t cp = 0; cp < N_DIRECT; cp++) {
        char utf8[4];
        b->direct[cp] = vocab_find(&t->vocab, (str){utf8, utf8_encode(cp, utf8)});
    }
    return IG_OK;
}

void bpe_done(bpe *b)
{
    mem_free(b->slots);
    mem_free(b->prefix);
    mem_free(b->suffix);
    *b = (bpe){0};
}

/* ---- characters to first symbols ---- */

/* A character with the affixes that its place asks for. */
static ig_status affixed(const bpe *b, encoder *e, str c, bool first, bool last, str *ret_word)
{
    size_t n_prefix = first ? 0 : b->n_prefix, n_suffix = last ? b->n_suffix : 0;
    *ret_word = c;
    if (n_prefix + n_suffix == 0) return IG_OK;
    TRY(array_reserve((void **)&e->word, &e->cap_word, n_prefix + c.n + n_suffix, 1));
    if (n_prefix) memcpy(e->word, b->prefix, n_prefix);
    memcpy(e->word + n_prefix, c.p, c.n);
    if (n_suffix) memcpy(e->word + n_prefix + c.n, b->suffix, n_suffix);
    *ret_word = (str){e->word, n_prefix + c.n + n_suffix};
    return IG_OK;
}

static ig_status add_symbol(encoder *e, size_t *n, uint32_t id)
{
    TRY(array_reserve((void **)&e->symbols, &e->cap_symbols, *n + 1, sizeof *e->symbols));
    e->symbols[(*n)++].id = id;
    return IG_OK;
}

static ig_status unk_missing(void)
{
    return ig_fail(
        IG_EFORMAT,
        "the tokenizer names an unknown token that its vocabulary lacks, and the text needs it");
}

/* e->symbols[].id of the piece's characters. Unknown characters become bytes, the unknown token
 * (fused with its neighbours if so configured) or nothing. */
static ig_status first_symbols(const tokenizer *t, encoder *e, str piece, bool forbid,
                               size_t *ret_n)
{
    const bpe *b = &t->bpe;
    bool plain = b->n_prefix + b->n_suffix == 0, unk = false;
    size_t n = 0;
    for (size_t i = 0, len; i < piece.n; i += len) {
        uint32_t cp = unicode_at(piece.p + i, &len);
        str c = {piece.p + i, len};
        int32_t id;
        if (plain && cp < N_DIRECT) {
            id = b->direct[cp];
        } else {
            TRY(affixed(b, e, c, i == 0, i + len == piece.n, &c));
            id = vocab_find(&t->vocab, c);
        }
        if (forbid && id_is_control(t, id)) id = NO_TOKEN;
        if (id < 0 && b->byte_fallback && has_bytes(t, c)) {
            for (size_t k = 0; k < c.n; k++)
                TRY(add_symbol(e, &n, (uint32_t)t->byte_id[(uint8_t)c.p[k]]));
            continue;
        }
        if (id < 0 && (!t->has_unk || (forbid && t->unk_control))) continue;
        if (unk && (id >= 0 || !b->fuse_unk)) {
            TRY(add_symbol(e, &n, (uint32_t)t->unk_id));
            unk = false;
        }
        if (id >= 0)
            TRY(add_symbol(e, &n, (uint32_t)id));
        else if (t->unk_id < 0)
            return unk_missing();
        else
            unk = true;
    }
    if (unk) TRY(add_symbol(e, &n, (uint32_t)t->unk_id));
    *ret_n = n;
    return IG_OK;
}

/* ---- merging ---- */

static ig_status merge_short(const tokenizer *t, encoder *e, size_t n, bool forbid)
{
    uint32_t id[N_SHORT], rank[N_SHORT], to[N_SHORT];
    for (size_t i = 0; i < n; i++) id[i] = e->symbols[i].id;
    for (size_t i = 0; i + 1 < n; i++) {
        const merge *m = find_merge(t, id[i], id[i + 1], forbid);
        rank[i] = m ? m->rank : NONE;
        to[i] = m ? m->id : 0;
    }
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best]) best = i;
        if (rank[best] == NONE) break;
        id[best] = to[best];
        size_t tail = n - best - 2;
        memmove(id + best + 1, id + best + 2, tail * sizeof *id);
        if (tail) {
            memmove(rank + best, rank + best + 1, tail * sizeof *rank);
            memmove(to + best, to + best + 1, tail * sizeof *to);
        }
        n--;
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < n; i++) {
            const merge *m = find_merge(t, id[i], id[i + 1], forbid);
            rank[i] = m ? m->rank : NONE;
            to[i] = m ? m->id : 0;
        }
    }
    for (size_t i = 0; i < n; i++) TRY(encoder_out(e, (int32_t)id[i]));
    return IG_OK;
}

static bool before(bpe_entry a, bpe_entry b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static ig_status heap_push(encoder *e, bpe_entry x)
{
    TRY(array_reserve((void **)&e->heap, &e->cap_heap, e->n_heap + 1, sizeof *e->heap));
    size_t i = e->n_heap++;
    for (; i && before(x, e->heap[(i - 1) / 2]); i = (i - 1) / 2) e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = x;
    return IG_OK;
}

static bpe_entry heap_pop(encoder *e)
{
    bpe_entry top = e->heap[0], x = e->heap[--e->n_heap];
    size_t i = 0, child;
    for (; (child = 2 * i + 1) < e->n_heap; i = child) {
        if (child + 1 < e->n_heap && before(e->heap[child + 1], e->heap[child])) child++;
        if (!before(e->heap[child], x)) break;
        e->heap[i] = e->heap[child];
    }
    e->heap[i] = x;
    return top;
}

static ig_status push_pair(const tokenizer *t, encoder *e, uint32_t left, uint32_t right,
                           bool forbid)
{
    const merge *m = find_merge(t, e->symbols[left].id, e->symbols[right].id, forbid);
    return m ? heap_push(e, (bpe_entry){m->rank, left, m->id}) : IG_OK;
}

static ig_status merge_long(const tokenizer *t, encoder *e, size_t n, bool forbid)
{
    bpe_symbol *s = e->symbols;
    e->n_heap = 0;
    for (size_t i = 0; i < n; i++) {
        s[i].prev = i ? (uint32_t)i - 1 : NONE;
        s[i].next = i + 1 < n ? (uint32_t)i + 1 : NONE;
        s[i].dead = false;
    }
    for (size_t i = 0; i + 1 < n; i++) TRY(push_pair(t, e, (uint32_t)i, (uint32_t)i + 1, forbid));
    while (e->n_heap) {
        bpe_entry top = heap_pop(e);
        uint32_t right = s[top.at].next;
        if (s[top.at].dead || right == NONE) continue;
        /* an entry whose pair has changed since */
        const merge *m = find_merge(t, s[top.at].id, s[right].id, forbid);
        if (!m || m->id != top.id) continue;
        s[top.at].id = top.id;
        s[top.at].next = s[right].next;
        s[right].dead = true;
        if (s[right].next != NONE) s[s[right].next].prev = top.at;
        if (s[top.at].prev != NONE) TRY(push_pair(t, e, s[top.at].prev, top.at, forbid));
        if (s[top.at].next != NONE) TRY(push_pair(t, e, top.at, s[top.at].next, forbid));
    }
    for (uint32_t i = 0; i != NONE; i = s[i].next) TRY(encoder_out(e, (int32_t)s[i].id));
    return IG_OK;
}

ig_status bpe_encode(const tokenizer *t, encoder *e, str piece, bool forbid)
{
    if (t->bpe.ignore_merges) {
        int32_t id = vocab_find(&t->vocab, piece);
        if (id >= 0 && !(forbid && id_is_control(t, id))) return encoder_out(e, id);
    }
    size_t n = 0;
    TRY(first_symbols(t, e, piece, forbid, &n));
    if (n == 0) return IG_OK;
    return n <= N_SHORT ? merge_short(t, e, n, forbid) : merge_long(t, e, n, forbid);
}
