/* map.c: hash map from byte strings to int64 (contract in map.h). Open addressing over entry
 * numbers; entries lie in the order of insertion; keys live in chunks and never move, so a borrowed
 * key stays valid until map_free. The hash is SipHash-1-3 under a key drawn for each map: whoever
 * chooses the strings cannot choose the collisions. */
#include "base/map.h"
#include <string.h>
#include <sys/random.h>
#include "base/clock.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define FIRST_SLOTS 16
#define MAX_ENTRIES ((size_t)1 << 31)

typedef struct entry {
    const char *key; /* in a chunk */
    size_t n_key;
    uint64_t hash;
    int64_t value;
} entry;

typedef struct chunk {
    struct chunk *next;
    size_t n, cap; /* bytes used and there */
    char bytes[];
} chunk;

struct map {
    entry *entries; /* [cap_entries], owned */
    size_t n_entries;
    size_t cap_entries;
    size_t max_entries;
    uint32_t *slots; /* [n_slots], owned: entry number + 1, 0 free; a power of two */
    size_t n_slots;  /* at least twice cap_entries */
    chunk *chunks;   /* newest first, owned */
    uint64_t seed[2];
};

static uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

static uint64_t hash_of(const map *m, str key)
{
    uint64_t v[4] = {m->seed[0] ^ 0x736f6d6570736575, m->seed[1] ^ 0x646f72616e646f6d,
                     m->seed[0] ^ 0x6c7967656e657261, m->seed[1] ^ 0x7465646279746573};
    size_t i = 0;
    uint64_t w;
    for (; i + 8 <= key.n; i += 8) {
        memcpy(&w, key.p + i, 8);
        v[3] ^= w;
        sip_round(v);
        v[0] ^= w;
    }
    w = (uint64_t)key.n << 56;
    for (int shift = 0; i < key.n; i++, shift += 8) w |= (uint64_t)(uint8_t)key.p[i] << shift;
    v[3] ^= w;
    sip_round(v);
    v[0] ^= w;
    v[2] ^= 0xff;
    for (int r = 0; r < 3; r++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

ig_status map_new(size_t max_entries, map **ret_map)
{
    if (max_entries > MAX_ENTRIES)
        return ig_fail(IG_EINVAL, "map: %zu entries asked for, at most %zu are possible",
                       max_entries, MAX_ENTRIES);
    map *m = mem_calloc(1, sizeof *m);
    if (!m) return IG_ENOMEM;
    m->max_entries = max_entries;
    if (getrandom(m->seed, sizeof m->seed, GRND_NONBLOCK) != (ssize_t)sizeof m->seed) {
        m->seed[0] = (uint64_t)clock_mono_ns(); /* early boot: still not known to an outsider */
        m->seed[1] = (uint64_t)(uintptr_t)m;
    }
    *ret_map = m;
    return IG_OK;
}

void map_free(map *m)
{
    if (!m) return;
    for (chunk *c = m->chunks, *next; c; c = next) {
        next = c->next;
        mem_free(c);
    }
    mem_free(m->entries);
    mem_free(m->slots);
    mem_free(m);
}

/* The slot of key, or the free slot where it belongs. n_slots > 0. */
static size_t slot_of(const map *m, str key, uint64_t hash)
{
    size_t i = hash & (m->n_slots - 1);
    for (; m->slots[i]; i = (i + 1) & (m->n_slots - 1)) {
        const entry *e = &m->entries[m->slots[i] - 1];
        if (e->hash == hash && str_eq((str){e->key, e->n_key}, key)) break;
    }
    return i;
}

/* Doubles both tables; the map is unchanged on failure. */
static ig_status grow(map *m)
{
    size_t n_slots = m->n_slots ? m->n_slots * 2 : FIRST_SLOTS, cap = n_slots / 2;
    uint32_t *slots = mem_calloc(n_slots, sizeof *slots);
    entry *entries = slots ? mem_realloc(m->entries, cap * sizeof *entries) : NULL;
    if (!entries) {
        mem_free(slots);
        return IG_ENOMEM;
    }
    mem_free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    m->entries = entries;
    m->cap_entries = cap;
    for (size_t e = 0; e < m->n_entries; e++) {
        size_t i = entries[e].hash & (n_slots - 1);
        while (slots[i]) i = (i + 1) & (n_slots - 1);
        slots[i] = (uint32_t)(e + 1);
    }
    return IG_OK;
}

static const char *copy_key(map *m, str key)
{
    chunk *c = m->chunks;
    if (!c || key.n > c->cap - c->n) {
        size_t cap = key.n > CHUNK_BYTES ? key.n : CHUNK_BYTES, n_bytes;
        if (m->n_entries == 0 && key.n < 1024) cap = 1024; /* small maps stay small */
        if (!mem_add(sizeof *c, cap, &n_bytes) || !(c = mem_alloc(n_bytes))) return NULL;
        *c = (chunk){.next = m->chunks, .cap = cap};
        m->chunks = c;
    }
    char *to = c->bytes + c->n;
    if (key.n) memcpy(to, key.p, key.n);
    c->n += key.n;
    return to;
}

ig_status map_put(map *m, str key, int64_t value, bool *ret_existed)
{
    uint64_t hash = hash_of(m, key);
    size_t i = m->n_slots ? slot_of(m, key, hash) : 0;
    bool existed = m->n_slots && m->slots[i];
    if (existed) {
        m->entries[m->slots[i] - 1].value = value;
    } else {
        if (m->n_entries >= m->max_entries)
            return ig_fail(IG_ELIMIT, "map: more than %zu entries", m->max_entries);
        if (m->n_entries == m->cap_entries) {
            TRY(grow(m));
            i = slot_of(m, key, hash);
        }
        const char *copy = copy_key(m, key);
        if (!copy) return IG_ENOMEM;
        m->entries[m->n_entries++] = (entry){copy, key.n, hash, value};
        m->slots[i] = (uint32_t)m->n_entries;
    }
    if (ret_existed) *ret_existed = existed;
    return IG_OK;
}

bool map_get(const map *m, str key, int64_t *ret_value)
{
    if (!m->n_slots) return false;
    uint32_t e = m->slots[slot_of(m, key, hash_of(m, key))];
    if (!e) return false;
    *ret_value = m->entries[e - 1].value;
    return true;
}

size_t map_n(const map *m) { return m->n_entries; }

void map_at(const map *m, size_t i, str *ret_key, int64_t *ret_value)
{
    const entry *e = &m->entries[i];
    *ret_key = (str){e->key, e->n_key};
    *ret_value = e->value;
}
