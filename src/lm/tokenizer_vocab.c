/* tokenizer_vocab.c: token texts and ids, both ways (contract in tokenizer_vocab.h). */
#include "lm/tokenizer_vocab.h"
#include <string.h>
#include "base/digest.h"

uint64_t hash_bytes(const char *p, size_t n, uint64_t seed)
{
    uint64_t h = seed ^ n * 0x9e3779b97f4a7c15u, w;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&w, p, 8);
        h = (h ^ w) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    w = 0;
    for (size_t i = 0; i < n; i++) w |= (uint64_t)(uint8_t)p[i] << 8 * i;
    return hash_mix(h ^ w);
}

ig_status vocab_init(vocab *v, size_t n_ids, size_t n_pool)
{
    *v = (vocab){0};
    TRY(random_bytes(&v->seed, sizeof v->seed));
    size_t n_slots = 16;
    while (n_slots < n_ids * 2) n_slots *= 2;
    v->pool = mem_alloc(n_pool);
    v->at = mem_calloc(n_ids, sizeof *v->at);
    v->n_text = mem_alloc(n_ids * sizeof *v->n_text);
    v->slots = mem_calloc(n_slots, sizeof *v->slots);
    if (!v->pool || !v->at || !v->n_text || !v->slots) {
        vocab_done(v);
        return IG_ENOMEM;
    }
    memset(v->n_text, 0xff, n_ids * sizeof *v->n_text);
    v->cap_pool = n_pool;
    v->n_ids = n_ids;
    v->mask = n_slots - 1;
    return IG_OK;
}

void vocab_done(vocab *v)
{
    mem_free(v->pool);
    mem_free(v->at);
    mem_free(v->n_text);
    mem_free(v->slots);
    *v = (vocab){0};
}

/* The slot that holds text, or the empty one where it belongs. */
static size_t find_slot(const vocab *v, str text)
{
    for (size_t i = hash_bytes(text.p, text.n, v->seed) & v->mask;; i = (i + 1) & v->mask) {
        if (v->slots[i] == 0) return i;
        uint32_t id = v->slots[i] - 1;
        if (v->n_text[id] == text.n && memcmp(v->pool + v->at[id], text.p, text.n) == 0) return i;
    }
}

bool vocab_put(vocab *v, str text, int32_t id)
{
    if (v->n_text[id] != VOCAB_HOLE) return false;
    if (text.n) memcpy(v->pool + v->n_pool, text.p, text.n);
    v->at[id] = (uint32_t)v->n_pool;
    v->n_text[id] = (uint32_t)text.n;
    v->n_pool += text.n;
    size_t slot = find_slot(v, text);
    v->n_tokens += v->slots[slot] == 0;
    v->slots[slot] = (uint32_t)id + 1;
    return true;
}

int32_t vocab_find(const vocab *v, str text)
{
    if (!v->slots) return -1;
    return (int32_t)v->slots[find_slot(v, text)] - 1;
}

bool vocab_text(const vocab *v, int32_t id, str *ret_text)
{
    if (id < 0 || (size_t)id >= v->n_ids || v->n_text[id] == VOCAB_HOLE) return false;
    *ret_text = (str){v->pool + v->at[id], v->n_text[id]};
    return true;
}
