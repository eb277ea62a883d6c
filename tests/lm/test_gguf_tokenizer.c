/* test_gguf_tokenizer.c: a GGUF's tokenizer rewritten as tokenizer.json gives the ids of the
 * reference. (SmolLM2's own, and 10,000 strings: test_tokenizer_golden.c.) */
#include "lm/gguf_tokenizer.h"
#include "lm/tokenizer.h"
#include "support/walk.h"
#include "tokenizer_strings.h"

/* A GGUF's arrays, made from a golden file. */
typedef struct arrays {
    json_t *root;
    str *tokens, *merges;
    int32_t *types;
    float *scores;
    buf pool; /* texts of merges */
    gguf_tokenizer g;
} arrays;

static void arrays_close(arrays *a)
{
    json_decref(a->root);
    free(a->tokens);
    free(a->merges);
    free(a->types);
    free(a->scores);
    buf_done(&a->pool);
}

static str text_of(const json_t *j) { return (str){json_string_value(j), json_string_length(j)}; }

static void arrays_open(arrays *a, const char *file, size_t max_tokens)
{
    AUTO(buf) text;
    read_golden(file, &text);
    *a = (arrays){.tokens = calloc(max_tokens, sizeof(str)),
                  .merges = calloc(max_tokens, sizeof(str)),
                  .types = calloc(max_tokens, sizeof(int32_t)),
                  .scores = calloc(max_tokens, sizeof(float))};
    buf_init(&a->pool, 1 << 20);
    assert_ok(json_parse(file, (str){text.data, text.n}, 1 << 20, 24, &a->root));
    a->g = (gguf_tokenizer){.tokens = a->tokens,
                            .merges = a->merges,
                            .types = a->types,
                            .scores = a->scores,
                            .bos_id = -1,
                            .eos_id = -1,
                            .unk_id = -1};
}

static void set_token(arrays *a, int64_t id, str text, int32_t type)
{
    a->tokens[id] = text;
    a->types[id] = type;
    if ((size_t)id >= a->g.n_tokens) a->g.n_tokens = (size_t)id + 1;
}

/* What a converter writes for a byte-level tokenizer.json. */
static void from_byte_level(arrays *a, const char *file, const char *pre)
{
    const char *key;
    json_t *value;
    size_t i;
    arrays_open(a, file, 4096);
    json_t *model = json_object_get(a->root, "model");
    json_object_foreach(json_object_get(model, "vocab"), key, value)
        set_token(a, json_integer_value(value), str_of(key), 1);
    json_array_foreach(json_object_get(a->root, "added_tokens"), i, value)
    {
        bool special = json_is_true(json_object_get(value, "special"));
        bool normalized = json_is_true(json_object_get(value, "normalized"));
        /* a GGUF cannot say "normalized": such a token is left unused here */
        set_token(a, json_integer_value(json_object_get(value, "id")),
                  text_of(json_object_get(value, "content")),
                  special      ? 3
                  : normalized ? 5
                               : 4);
    }
    json_t *merges = json_object_get(model, "merges");
    size_t at[4096];
    json_array_foreach(merges, i, value)
    {
        at[i] = a->pool.n;
        buf_printf(&a->pool, "%s %s", json_string_value(json_array_get(value, 0)),
                   json_string_value(json_array_get(value, 1)));
    }
    at[i] = a->pool.n;
    a->g.n_merges = i;
    for (i = 0; i < a->g.n_merges; i++)
        a->merges[i] = (str){a->pool.data + at[i], at[i + 1] - at[i]};
    a->g.model = str_of("gpt2");
    a->g.pre = str_of(pre);
}

static void from_spm(arrays *a)
{
    size_t i;
    json_t *value;
    arrays_open(a, "spm.vocab", 4096);
    json_array_foreach(json_object_get(a->root, "tokens"), i, value)
        set_token(a, (int64_t)i, text_of(value), 1);
    json_array_foreach(json_object_get(a->root, "types"), i, value) a->types[i] =
        (int32_t)json_integer_value(value);
    json_array_foreach(json_object_get(a->root, "scores"), i, value) a->scores[i] =
        (float)json_number_value(value);
    a->g.model = str_of("llama");
    a->g.bos_id = 1;
    a->g.eos_id = 2;
    a->g.unk_id = 0;
    a->g.add_bos = a->g.add_eos = a->g.add_space_prefix = true;
}

static void open_converted(const arrays *a, tokenizer **ret)
{
    AUTO(buf) json;
    buf_init(&json, 16 << 20);
    assert_ok(gguf_tokenizer_to_json(&a->g, &json));
    assert_ok(tokenizer_open("converted", (str){json.data, json.n}, ret));
}

static void encode(const tokenizer *t, const buf *text, token_ids *ret)
{
    token_ids_init(ret, 1 << 20);
    tokenizer_flags flags = {.add_special = true, .parse_special = true};
    assert_ok(tokenizer_encode(t, (str){text->data, text->n}, flags, ret));
}

static void compare(const tokenizer *a, const tokenizer *b)
{
    string_parts s;
    AUTO(buf) text;
    buf_init(&text, 1 << 20);
    strings_open(&s);
    for (size_t i = 0; i < 2000; i++) {
        AUTO(token_ids) x;
        AUTO(token_ids) y;
        make_string(&s, i, &text);
        encode(a, &text, &x);
        encode(b, &text, &y);
        if (x.n != y.n || (x.n && memcmp(x.id, y.id, x.n * sizeof *x.id)))
            fail_msg("string %zu: %.*s", i, (int)text.n, text.data);
    }
    strings_close(&s);
}

TEST(the_names_of_pre_tokenisers_stand_for_the_published_patterns)
{
    static const char *const pairs[][2] = {{"gpt2.json", "gpt-2"},
                                           {"llama3.json", "llama-bpe"},
                                           {"qwen2.json", "qwen2"},
                                           {"deepseek.json", "deepseek-v3"}};
    for (size_t i = 0; i < N_ELEM(pairs); i++) {
        arrays a;
        AUTO(tokenizer_ptr) converted = NULL;
        AUTO(tokenizer_ptr) original = NULL;
        AUTO(buf) json;
        from_byte_level(&a, pairs[i][0], pairs[i][1]);
        a.g.add_bos = i == 1;
        for (size_t id = 0; id < a.g.n_tokens; id++)
            if (str_eq(a.tokens[id], str_of("<|begin_of_text|>"))) a.g.bos_id = (int64_t)id;
        open_converted(&a, &converted);
        read_golden(pairs[i][0], &json);
        assert_ok(tokenizer_open(pairs[i][0], (str){json.data, json.n}, &original));
        compare(converted, original);
        arrays_close(&a);
    }
}

TEST(every_known_name_gives_a_tokenizer_that_opens)
{
    static const char *const names[] = {
        "gpt-2",     "gpt2",      "mpt",         "olmo",      "smollm",     "starcoder",
        "refact",    "command-r", "codeshell",   "llama-bpe", "llama3",     "llama-v3",
        "smaug-bpe", "dbrx",      "chatglm-bpe", "glm4",      "qwen2",      "deepseek-r1-qwen",
        "stablelm2", "tekken",    "gpt-4o",      "llama4",    "deepseek-v3"};
    arrays a;
    from_byte_level(&a, "gpt2.json", "");
    for (size_t i = 0; i < N_ELEM(names); i++) {
        AUTO(tokenizer_ptr) t = NULL;
        a.g.pre = str_of(names[i]);
        open_converted(&a, &t);
        assert_int_equal(tokenizer_vocab_size(t), a.g.n_tokens);
    }
    arrays_close(&a);
}

TEST(merges_of_sentencepiece_follow_from_its_scores_as_the_reference_converter_has_them)
{
    arrays a;
    AUTO(tokenizer_ptr) t = NULL;
    from_spm(&a);
    open_converted(&a, &t);
    compare_with_golden("spm", t);
    arrays_close(&a);
}

TEST(what_a_gguf_lacks_or_makes_up_is_refused)
{
    arrays a;
    AUTO(buf) json;
    buf_init(&json, 16 << 20);
    from_byte_level(&a, "gpt2.json", "my-own");
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EUNSUPPORTED, "pre \"my-own\"");
    a.g.pre = str_of("");
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EUNSUPPORTED, "pre \"\"");
    a.g.pre = str_of("gpt-2");
    a.g.n_merges = 0;
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EFORMAT, "no tokenizer.ggml.merges");
    a.g.model = str_of("t5");
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EUNSUPPORTED, "model \"t5\"");
    a.g.model = str_of("llama");
    a.g.scores = NULL;
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EFORMAT, "no tokenizer.ggml.scores");
    a.g.bos_id = 100000;
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EFORMAT, "bos_token_id is 100000");
    a.g.bos_id = -1;
    a.tokens[5] = str_of("\xff");
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EFORMAT, "tokens[5] is not UTF-8");
    a.g.n_tokens = 0;
    assert_fails(gguf_tokenizer_to_json(&a.g, &json), IG_EFORMAT, "no tokenizer.ggml.tokens");
    arrays_close(&a);
}

static ig_status convert(void *user)
{
    const arrays *a = user;
    AUTO(buf) json;
    buf_init(&json, 16 << 20);
    return gguf_tokenizer_to_json(&a->g, &json);
}

TEST(every_failing_allocation_of_a_conversion_is_reported)
{
    arrays a;
    from_spm(&a);
    assert_true(walk_memory(convert, &a) > 5);
    arrays_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_names_of_pre_tokenisers_stand_for_the_published_patterns),
        CASE(every_known_name_gives_a_tokenizer_that_opens),
        CASE(merges_of_sentencepiece_follow_from_its_scores_as_the_reference_converter_has_them),
        CASE(what_a_gguf_lacks_or_makes_up_is_refused),
        CASE(every_failing_allocation_of_a_conversion_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
