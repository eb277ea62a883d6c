/* tokenizer_trie.h: byte trie with hashed edges; finds the tokens that begin at a place of a
 * text. */
#ifndef LM_TOKENIZER_TRIE_H
#define LM_TOKENIZER_TRIE_H
#include "base/str.h"

#define TRIE_NONE UINT32_MAX
#define TRIE_ROOT 0u
#define TRIE_MAX_NODES ((size_t)1 << 28)

typedef struct trie {
    uint64_t *edges; /* open addressing: from << 36 | byte << 28 | to; 0: empty */
    size_t mask, n_edges;
    uint64_t seed;      /* random: texts come from outside */
    uint32_t root[256]; /* children of the root, TRIE_NONE */
    int32_t *value;     /* [n_nodes]; -1: no text ends here */
    size_t n_nodes, cap_nodes;
} trie;

IG_MUST_USE ig_status trie_init(trie *t);
void trie_done(trie *t);
/* Sets the value of a text (n > 0); `replace` says which of two equal texts counts. */
IG_MUST_USE ig_status trie_put(trie *t, str text, int32_t value, bool replace);
uint32_t trie_step(const trie *t, uint32_t node, uint8_t byte); /* TRIE_NONE: no edge */
static inline bool trie_is_empty(const trie *t) { return t->n_nodes <= 1; }
#endif
