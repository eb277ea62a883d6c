/* tokenizer_trie.c: byte trie with hashed edges (contract in tokenizer_trie.h). One probe per
 * byte; an edge is one word, so that a quarter of a million tokens fit in a few MB. */
#include "lm/tokenizer_trie.h"
#include <string.h>
#include "base/digest.h"
#include "lm/tokenizer_vocab.h"

#define FIRST_EDGES ((size_t)256)
#define FROM_BITS 36
#define BYTE_BITS 28
#define TO_MASK (((uint64_t)1 << BYTE_BITS) - 1)

static size_t home(const trie *t, uint32_t node, uint8_t byte)
{
    return hash_mix(((uint64_t)node << 8 | byte) ^ t->seed) & t->mask;
}

ig_status trie_init(trie *t)
{
    *t = (trie){0};
    memset(t->root, 0xff, sizeof t->root);
    TRY(random_bytes(&t->seed, sizeof t->seed));
    t->edges = mem_calloc(FIRST_EDGES, sizeof *t->edges);
    t->value = mem_alloc(FIRST_EDGES * sizeof *t->value);
    if (!t->edges || !t->value) {
        trie_done(t);
        return IG_ENOMEM;
    }
    t->mask = FIRST_EDGES - 1;
    t->cap_nodes = FIRST_EDGES;
    t->value[0] = -1;
    t->n_nodes = 1;
    return IG_OK;
}

void trie_done(trie *t)
{
    mem_free(t->edges);
    mem_free(t->value);
    *t = (trie){0};
}

uint32_t trie_step(const trie *t, uint32_t node, uint8_t byte)
{
    if (node == TRIE_ROOT) return t->root[byte];
    uint64_t key = (uint64_t)node << 8 | byte;
    for (size_t i = home(t, node, byte);; i = (i + 1) & t->mask) {
        uint64_t edge = t->edges[i];
        if (edge >> BYTE_BITS == key) return (uint32_t)(edge & TO_MASK);
        if (edge == 0) return TRIE_NONE;
    }
}

static void place(trie *t, uint64_t edge)
{
    size_t i = home(t, (uint32_t)(edge >> FROM_BITS), (uint8_t)(edge >> BYTE_BITS));
    while (t->edges[i]) i = (i + 1) & t->mask;
    t->edges[i] = edge;
}

static ig_status grow_edges(trie *t)
{
    size_t n = (t->mask + 1) * 2;
    uint64_t *old = t->edges, *edges = mem_calloc(n, sizeof *edges);
    if (!edges) return IG_ENOMEM;
    size_t n_old = t->mask + 1;
    t->edges = edges;
    t->mask = n - 1;
    for (size_t i = 0; i < n_old; i++)
        if (old[i]) place(t, old[i]);
    mem_free(old);
    return IG_OK;
}

static ig_status add_node(trie *t, uint32_t from, uint8_t byte, uint32_t *ret_node)
{
    if (t->n_nodes == TRIE_MAX_NODES)
        return ig_fail(IG_ELIMIT, "the token texts need over %zu trie nodes", TRIE_MAX_NODES);
    if (t->n_nodes == t->cap_nodes) {
        int32_t *value = mem_realloc(t->value, t->cap_nodes * 2 * sizeof *value);
        if (!value) return IG_ENOMEM;
        t->value = value;
        t->cap_nodes *= 2;
    }
    if (from != TRIE_ROOT && (t->n_edges + 1) * 3 > (t->mask + 1) * 2) TRY(grow_edges(t));
    uint32_t node = (uint32_t)t->n_nodes++;
    t->value[node] = -1;
    if (from == TRIE_ROOT) {
        t->root[byte] = node;
    } else {
        place(t, (uint64_t)from << FROM_BITS | (uint64_t)byte << BYTE_BITS | node);
        t->n_edges++;
    }
    *ret_node = node;
    return IG_OK;
}

ig_status trie_put(trie *t, str text, int32_t value, bool replace)
{
    uint32_t node = TRIE_ROOT;
    for (size_t i = 0; i < text.n; i++) {
        uint32_t next = trie_step(t, node, (uint8_t)text.p[i]);
        if (next == TRIE_NONE) TRY(add_node(t, node, (uint8_t)text.p[i], &next));
        node = next;
    }
    if (replace || t->value[node] < 0) t->value[node] = value;
    return IG_OK;
}
