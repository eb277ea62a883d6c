/* tokenizer_strings.h: the 10,000 strings that tokenizers are compared on, made by the same
 * generator as in tests/golden/scripts/make_tokenizers.py. For tests only: a failure fails the
 * running test. */
#ifndef TESTS_LM_TOKENIZER_STRINGS_H
#define TESTS_LM_TOKENIZER_STRINGS_H
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "lm/tokenizer.h"
#include "support/test.h"

#define GOLDEN "tests/golden/lm/tokenizers/"
#define N_STRINGS 10000
#define N_SAMPLE 60 /* strings whose ids are committed in full */
#define STRINGS_SEED 20240229

typedef struct string_parts {
    json_t *root;
    size_t *corpus_at; /* byte offset of each character, and of the end */
    size_t n_corpus;
    const char *corpus;
    json_t *fragments, *blocks;
    uint64_t random;
} string_parts;

static inline uint32_t random_below(string_parts *s, uint64_t n)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(((z ^ z >> 31) >> 33) % n);
}

static inline void read_golden(const char *name, buf *ret)
{
    char path[256];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    assert_ok(file_read(path, 16 << 20, ret));
}

static inline void strings_open(string_parts *s)
{
    buf text;
    read_golden("strings.json", &text);
    *s = (string_parts){.random = STRINGS_SEED};
    assert_ok(json_parse("strings.json", (str){text.data, text.n}, 16 << 20, 8, &s->root));
    buf_done(&text);
    json_t *corpus = json_object_get(s->root, "corpus");
    s->corpus = json_string_value(corpus);
    size_t n = json_string_length(corpus);
    s->corpus_at = calloc(n + 1, sizeof *s->corpus_at);
    for (size_t i = 0; i < n; i++)
        if (((uint8_t)s->corpus[i] & 0xc0) != 0x80) s->corpus_at[s->n_corpus++] = i;
    s->corpus_at[s->n_corpus] = n;
    s->fragments = json_object_get(s->root, "fragments");
    s->blocks = json_object_get(s->root, "blocks");
}

static inline void strings_close(string_parts *s)
{
    free(s->corpus_at);
    json_decref(s->root);
}

static inline void add_code(buf *b, uint32_t cp)
{
    char utf8[4];
    buf_add(b, utf8, utf8_encode(cp, utf8));
}

static inline void random_block(string_parts *s, uint32_t *first, uint32_t *n)
{
    json_t *block = json_array_get(s->blocks, random_below(s, json_array_size(s->blocks)));
    *first = (uint32_t)json_integer_value(json_array_get(block, 0));
    *n = (uint32_t)json_integer_value(json_array_get(block, 1)) - *first + 1;
}

static inline void add_part(string_parts *s, buf *b)
{
    uint32_t kind = random_below(s, 10), first, n;
    if (kind < 3) {
        size_t at = random_below(s, s->n_corpus), end = at + 1 + random_below(s, 60);
        if (end > s->n_corpus) end = s->n_corpus;
        buf_add(b, s->corpus + s->corpus_at[at], s->corpus_at[end] - s->corpus_at[at]);
    } else if (kind < 5) {
        random_block(s, &first, &n);
        for (uint32_t k = 1 + random_below(s, 8); k; k--) add_code(b, first + random_below(s, n));
    } else if (kind < 7) {
        json_t *f = json_array_get(s->fragments, random_below(s, json_array_size(s->fragments)));
        buf_add(b, json_string_value(f), json_string_length(f));
    } else if (kind == 7) {
        random_block(s, &first, &n);
        uint32_t cp = first + random_below(s, n);
        for (uint32_t k = 1 + random_below(s, 20); k; k--) add_code(b, cp);
    } else if (kind == 8) {
        for (uint32_t k = 1 + random_below(s, 3); k; k--) {
            uint32_t cp = random_below(s, 0x110000 - 0x800);
            add_code(b, cp < 0xd800 ? cp : cp + 0x800);
        }
    } else {
        static const char spaced[] = " \t\n0123456789";
        for (uint32_t k = 1 + random_below(s, 6); k; k--)
            buf_char(b, spaced[random_below(s, sizeof spaced - 1)]);
    }
}

/* The i-th string; call with i = 0, 1, 2, ... */
static inline void make_string(string_parts *s, size_t i, buf *b)
{
    buf_clear(b);
    if (i == 0) return;
    for (uint32_t n = i % 500 == 0 ? 200 : 1 + random_below(s, 10); n; n--) add_part(s, b);
    assert_ok(buf_status(b));
}

/* SHA-256 of ids and of both decoded texts. */
static inline void digest_of(const tokenizer *t, const token_ids *ids, uint8_t ret[SHA256_N])
{
    sha256_ctx c;
    assert_ok(sha256_init(&c));
    sha256_add(&c, ids->id, ids->n * sizeof *ids->id);
    for (int skip = 0; skip < 2; skip++) {
        AUTO(buf) text;
        buf_init(&text, 64 << 20);
        assert_ok(tokenizer_decode(t, ids->id, ids->n, skip, &text));
        sha256_add(&c, "\xff", 1);
        sha256_add(&c, text.data ? text.data : "", text.n);
    }
    sha256_final(&c, ret);
}

/* The ids are what the next line of NAME.sample says. */
static inline void check_sample(const char *name, const buf *sample, size_t *at, size_t i,
                                const token_ids *ids)
{
    AUTO(buf) line;
    buf_init(&line, 1 << 20);
    for (size_t k = 0; k < ids->n; k++) buf_printf(&line, k ? " %d" : "%d", ids->id[k]);
    buf_char(&line, '\n');
    if (sample->n - *at < line.n || memcmp(sample->data + *at, line.data, line.n))
        fail_msg("%s: string %zu: ids %s", name, i, line.data);
    *at += line.n;
}

/* Ids and texts of all strings equal what the reference gave (NAME.digests, NAME.sample). */
static inline void compare_with_golden(const char *name, const tokenizer *t)
{
    char file[128];
    AUTO(buf) digests;
    AUTO(buf) sample;
    AUTO(buf) text;
    string_parts s;
    size_t at = 0, n_wrong = 0;
    snprintf(file, sizeof file, "%s.digests", name);
    read_golden(file, &digests);
    snprintf(file, sizeof file, "%s.sample", name);
    read_golden(file, &sample);
    assert_int_equal(digests.n, N_STRINGS * 4);
    buf_init(&text, 1 << 20);
    strings_open(&s);
    for (size_t i = 0; i < N_STRINGS; i++) {
        AUTO(token_ids) ids;
        uint8_t digest[SHA256_N];
        token_ids_init(&ids, 1 << 20);
        make_string(&s, i, &text);
        tokenizer_flags flags = {.add_special = true, .parse_special = true};
        assert_ok(tokenizer_encode(t, (str){text.data, text.n}, flags, &ids));
        if (i < N_SAMPLE) check_sample(name, &sample, &at, i, &ids);
        digest_of(t, &ids, digest);
        if (memcmp(digest, digests.data + 4 * i, 4) && n_wrong++ < 5)
            print_error("%s: string %zu differs: %.*s\n", name, i, (int)text.n, text.data);
    }
    strings_close(&s);
    assert_int_equal(n_wrong, 0);
}
#endif
