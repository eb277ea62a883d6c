/* tokenizer_vocab.h: token texts and ids, both ways, in three flat arrays. */
#ifndef LM_TOKENIZER_VOCAB_H
#define LM_TOKENIZER_VOCAB_H
#include "base/str.h"

#define VOCAB_HOLE UINT32_MAX

typedef struct vocab {
    char *pool; /* all texts */
    size_t n_pool, cap_pool;
    uint32_t *at;     /* [n_ids] offset in pool */
    uint32_t *n_text; /* [n_ids] bytes; VOCAB_HOLE: no such id */
    size_t n_ids;     /* highest id + 1 */
    size_t n_tokens;  /* distinct texts */
    uint32_t *slots;  /* open addressing: id + 1, 0 empty */
    size_t mask;      /* slots - 1 */
    uint64_t seed;    /* random: keys come from outside */
} vocab;

/* Room for ids below n_ids whose texts have n_pool bytes together. */
IG_MUST_USE ig_status vocab_init(vocab *v, size_t n_ids, size_t n_pool);
void vocab_done(vocab *v);
/* False when the id is taken. A text that exists already means the newer id from then on. */
bool vocab_put(vocab *v, str text, int32_t id);
int32_t vocab_find(const vocab *v, str text); /* -1 when absent */
bool vocab_text(const vocab *v, int32_t id, str *ret_text);

uint64_t hash_bytes(const char *p, size_t n, uint64_t seed);
static inline uint64_t hash_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}
#endif
