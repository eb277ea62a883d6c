/* test_tokenizer_golden.c: ids and decoded text of 10,000 strings equal those of the `tokenizers`
 * library, for tokenizers that together use every component (make_tokenizers.py writes them). */
#include "lm/detokenise.h"
#include "lm/gguf_tokenizer.h"
#include "lm/tokenizer.h"
#include "tokenizer_strings.h"

TEST(the_generator_here_and_in_python_make_the_same_strings)
{
    string_parts s;
    sha256_ctx c;
    uint8_t digest[SHA256_N];
    char hex[2 * SHA256_N + 1];
    AUTO(buf) text;
    buf_init(&text, 1 << 20);
    strings_open(&s);
    assert_ok(sha256_init(&c));
    for (size_t i = 0; i < N_STRINGS; i++) {
        make_string(&s, i, &text);
        if (i) sha256_add(&c, "", 1);
        sha256_add(&c, text.data, text.n);
    }
    sha256_final(&c, digest);
    for (int i = 0; i < SHA256_N; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, json_string_value(json_object_get(s.root, "sha256")));
    strings_close(&s);
}

static void open_file(const char *name, tokenizer **ret)
{
    char file[128];
    AUTO(buf) json;
    snprintf(file, sizeof file, "%s.json", name);
    read_golden(file, &json);
    assert_ok(tokenizer_open(file, (str){json.data, json.n}, ret));
}

static void compare_file(void **state)
{
    AUTO(tokenizer_ptr) t = NULL;
    open_file(*state, &t);
    compare_with_golden(*state, t);
}

/* The vocabulary as the GGUF has it, from its compact form. */
typedef struct smollm2 {
    str *tokens, *merges;
    int32_t *types;
    char *pool;
    gguf_tokenizer g;
} smollm2;

static str keep(smollm2 *s, size_t *used, str a, const char *between, str b)
{
    char *p = s->pool + *used;
    size_t n = strlen(between);
    memcpy(p, a.p, a.n);
    memcpy(p + a.n, between, n);
    memcpy(p + a.n + n, b.p, b.n);
    *used += a.n + n + b.n;
    return (str){p, a.n + n + b.n};
}

static void smollm2_open(smollm2 *s)
{
    AUTO(buf) b;
    uint32_t n[3]; /* specials, tokens that no merge makes, merges */
    read_golden("smollm2.vocab", &b);
    memcpy(n, b.data, sizeof n);
    size_t n_tokens = n[1] + n[2], at = sizeof n, used = 0;
    s->tokens = calloc(n_tokens, sizeof *s->tokens);
    s->merges = calloc(n[2], sizeof *s->merges);
    s->types = calloc(n_tokens, sizeof *s->types);
    s->pool = malloc(4 << 20);
    for (uint32_t i = 0; i < n[1]; i++) {
        size_t len = (uint8_t)b.data[at++];
        s->tokens[i] = keep(s, &used, (str){b.data + at, len}, "", str_of(""));
        at += len;
    }
    for (uint32_t i = 0; i < n[2]; i++, at += 4) {
        uint16_t id[2];
        memcpy(id, b.data + at, 4);
        s->merges[i] = keep(s, &used, s->tokens[id[0]], " ", s->tokens[id[1]]);
        s->tokens[n[1] + i] = keep(s, &used, s->tokens[id[0]], "", s->tokens[id[1]]);
    }
    for (size_t i = 0; i < n_tokens; i++) s->types[i] = i < n[0] ? 3 : 1;
    s->g = (gguf_tokenizer){.model = str_of("gpt2"),
                            .pre = str_of("smollm"),
                            .tokens = s->tokens,
                            .n_tokens = n_tokens,
                            .types = s->types,
                            .merges = s->merges,
                            .n_merges = n[2],
                            .bos_id = 1,
                            .eos_id = 2,
                            .unk_id = 0};
}

static void smollm2_close(smollm2 *s)
{
    free(s->tokens);
    free(s->merges);
    free(s->types);
    free(s->pool);
}

TEST(the_tokenizer_in_smollm2s_gguf_equals_the_reference_built_from_it)
{
    smollm2 s;
    AUTO(buf) json;
    AUTO(tokenizer_ptr) t = NULL;
    smollm2_open(&s);
    buf_init(&json, 64 << 20);
    assert_ok(gguf_tokenizer_to_json(&s.g, &json));
    assert_ok(tokenizer_open("smollm2", (str){json.data, json.n}, &t));
    assert_int_equal(tokenizer_vocab_size(t), 49152);
    compare_with_golden("smollm2", t);
    smollm2_close(&s);
}

/* Every prefix that has been pushed is a prefix of what all ids up to there decode to; with the
 * flush it is all of it. */
static void stream(const tokenizer *t, const int32_t *ids, size_t n)
{
    AUTO(detokenise_ptr) d = NULL;
    AUTO(buf) pushed;
    AUTO(buf) whole;
    buf_init(&pushed, 64 << 20);
    buf_init(&whole, 64 << 20);
    assert_ok(detokenise_new(t, true, &d));
    for (size_t k = 0; k < n; k++) {
        assert_ok(detokenise_push(d, ids[k], &pushed));
        assert_true(utf8_valid(pushed.data, pushed.n));
        buf_clear(&whole);
        assert_ok(tokenizer_decode(t, ids, k + 1, true, &whole));
        assert_true(pushed.n <= whole.n);
        assert_true(pushed.n == 0 || !memcmp(pushed.data, whole.data, pushed.n));
    }
    assert_ok(detokenise_flush(d, &pushed));
    buf_clear(&whole);
    assert_ok(tokenizer_decode(t, ids, n, true, &whole));
    assert_int_equal(pushed.n, whole.n);
    assert_true(whole.n == 0 || !memcmp(pushed.data, whole.data, whole.n));
}

static void stream_file(void **state)
{
    AUTO(tokenizer_ptr) t = NULL;
    AUTO(buf) text;
    string_parts s;
    buf_init(&text, 1 << 20);
    open_file(*state, &t);
    strings_open(&s);
    for (size_t i = 1; i < 400; i++) {
        AUTO(token_ids) ids;
        token_ids_init(&ids, 1 << 20);
        make_string(&s, i, &text);
        str string = {text.data, text.n};
        assert_ok(tokenizer_encode(t, string, (tokenizer_flags){.parse_special = true}, &ids));
        if (i % 3 == 0) /* what no text encodes to: broken characters, odd runs of bytes */
            for (size_t k = 0; k < ids.n; k++)
                ids.id[k] = (int32_t)((size_t)(ids.id[k] * 31 + 7) % tokenizer_vocab_size(t));
        stream(t, ids.id, ids.n < 40 ? ids.n : 40);
    }
    strings_close(&s);
}

#define FILES(X) \
    X(gpt2)      \
    X(llama3)    \
    X(qwen2)     \
    X(starcoder) \
    X(tekken)    \
    X(deepseek)  \
    X(llama2)    \
    X(mistral)   \
    X(bert) X(bert_cased) X(t5) X(unigram_bytes) X(classic) X(prefixed) X(bare)
#define GOLDEN_CASE(n) {"ids_and_texts_equal_the_reference_for_" #n, compare_file, NULL, NULL, #n},
#define STREAM_CASE(n) {"streaming_equals_decoding_for_" #n, stream_file, NULL, NULL, #n},

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_generator_here_and_in_python_make_the_same_strings),
        FILES(GOLDEN_CASE) FILES(STREAM_CASE)
            CASE(the_tokenizer_in_smollm2s_gguf_equals_the_reference_built_from_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
