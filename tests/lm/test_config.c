/* config.json and generation_config.json: what the published Llama family says is read, what this
 * build does not do is refused by name, contradictions name both sides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "lm/config.h"
#include "support/walk.h"

/* Head of a small valid config, without its closing brace. */
#define BASE                                                                                  \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\",\"vocab_size\":1000," \
    "\"hidden_size\":64,\"num_hidden_layers\":2,\"num_attention_heads\":4,"                   \
    "\"intermediate_size\":128"

static void read_ok(const char *json, lm_config *ret)
{
    if (config_read("config.json", str_of(json), ret) != IG_OK) fail_msg("%s", ig_error_message());
}

static void smollm2_is_read(void **state)
{
    (void)state;
    AUTO(lm_config) c = {0};
    read_ok(
        "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":1,"
        "\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":576,\"initializer_range\":0.04,"
        "\"intermediate_size\":1536,\"is_llama_config\":true,\"max_position_embeddings\":8192,"
        "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":9,"
        "\"num_hidden_layers\":30,\"num_key_value_heads\":3,\"pad_token_id\":2,"
        "\"rms_norm_eps\":1e-05,\"rope_interleaved\":false,\"rope_scaling\":null,"
        "\"rope_theta\":100000,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
        "\"vocab_size\":49152}",
        &c);
    assert_string_equal(c.family, "llama");
    assert_true(c.vocab == 49152 && c.hidden == 576 && c.layers == 30 && c.heads == 9 &&
                c.kv_heads == 3);
    assert_true(c.head_dim == 64 && c.ffn == 1536 && c.context == 8192 && c.tied &&
                !c.attention_bias);
    assert_true(c.rope_theta == 100000 && c.scaling == ROPE_PLAIN && c.norm_eps == 1e-5f);
    assert_true(c.quant.bits == 0 && c.n_stops == 1 && config_is_stop(&c, 2) &&
                !config_is_stop(&c, 1));
}

static void llama_3_scaling_and_stop_list_are_read(void **state)
{
    (void)state;
    AUTO(lm_config) c = {0};
    read_ok("{\"architectures\":[\"LlamaForCausalLM\"],\"eos_token_id\":[128001,128008,128009],"
            "\"hidden_size\":4096,\"intermediate_size\":14336,\"max_position_embeddings\":131072,"
            "\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
            "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":8.0,"
            "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
            "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
            "\"rope_theta\":500000.0,\"vocab_size\":128256}",
            &c);
    assert_true(c.scaling == ROPE_LLAMA3 && c.scale_factor == 8 && c.low_freq_factor == 1);
    assert_true(c.high_freq_factor == 4 && c.original_context == 8192 && c.head_dim == 128 &&
                !c.tied);
    assert_true(c.n_stops == 3 && config_is_stop(&c, 128008));
    const char *more = "{\"eos_token_id\":[128009,7],\"temperature\":0.6}";
    assert_int_equal(config_read_generation("generation_config.json", str_of(more), &c), IG_OK);
    assert_true(c.n_stops == 4 && config_is_stop(&c, 7));
    const char *one = "{\"eos_token_id\":9}", *none = "{\"eos_token_id\":null}";
    assert_int_equal(config_read_generation("generation_config.json", str_of(one), &c), IG_OK);
    assert_int_equal(config_read_generation("generation_config.json", str_of(none), &c), IG_OK);
    assert_int_equal(c.n_stops, 5);
}

static void mistral_nemo_has_a_head_size_of_its_own(void **state)
{
    (void)state;
    AUTO(lm_config) c = {0};
    read_ok("{\"architectures\":[\"MistralForCausalLM\"],\"head_dim\":128,\"hidden_size\":5120,"
            "\"intermediate_size\":14336,\"max_position_embeddings\":131072,"
            "\"model_type\":\"mistral\",\"num_attention_heads\":32,\"num_hidden_layers\":40,"
            "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":1000000.0,"
            "\"sliding_window\":null,\"vocab_size\":131072}",
            &c);
    assert_true(c.head_dim == 128 && c.heads == 32 && c.hidden == 5120);
    assert_string_equal(c.family, "llama");
}

static void rope_is_read_in_all_three_spellings(void **state)
{
    (void)state;
    AUTO(lm_config) a = {0};
    AUTO(lm_config) b = {0};
    AUTO(lm_config) c = {0};
    read_ok(BASE ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}}", &a);
    assert_true(a.scaling == ROPE_LINEAR && a.scale_factor == 4 && a.rope_theta == 10000);
    read_ok(BASE ",\"rope_theta\":500,\"rope_scaling\":{\"rope_type\":\"default\"}}", &b);
    assert_true(b.scaling == ROPE_PLAIN && b.scale_factor == 1 && b.rope_theta == 500);
    read_ok(BASE ",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":900}}",
            &c);
    assert_true(c.scaling == ROPE_LINEAR && c.scale_factor == 2 && c.rope_theta == 900);
}

static void quantisation_and_its_overrides_are_read(void **state)
{
    (void)state;
    AUTO(lm_config) c = {0};
    read_ok(BASE ",\"quantization\":{\"group_size\":64,\"bits\":4,\"mode\":\"affine\","
                 "\"model.embed_tokens\":{\"group_size\":32,\"bits\":8},\"lm_head\":false}}",
            &c);
    assert_true(c.quant.bits == 4 && c.quant.group == 64 && c.n_overrides == 2);
    config_quant q = config_quant_of(&c, "model.embed_tokens");
    assert_true(q.bits == 8 && q.group == 32);
    assert_int_equal(config_quant_of(&c, "lm_head").bits, 0);
    q = config_quant_of(&c, "model.layers.0.mlp.up_proj");
    assert_true(q.bits == 4 && q.group == 64);
}

typedef struct refusal {
    const char *json;
    ig_status status;
    const char *part; /* of the message */
} refusal;

static void what_cannot_be_right_or_is_not_done_is_refused(void **state)
{
    (void)state;
    static const refusal rows[] = {
        {"", IG_EFORMAT, "not valid JSON"},
        {"[]", IG_EFORMAT, "expected an object"},
        {"{}", IG_EUNSUPPORTED, "(none given)"},
        {"{\"architectures\":[\"MambaForCausalLM\"]}", IG_EUNSUPPORTED, "MambaForCausalLM"},
        {"{\"model_type\":\"llama\"}", IG_EFORMAT, "vocab_size is missing"},
        {BASE ",\"vocab_size\":7}", IG_EFORMAT, "duplicate"},
        {BASE ",\"num_key_value_heads\":3}", IG_EFORMAT,
         "num_attention_heads 4 is not a multiple of num_key_value_heads 3"},
        {BASE ",\"num_key_value_heads\":0}", IG_EFORMAT, "num_key_value_heads"},
        {BASE ",\"num_key_value_heads\":-1}", IG_EFORMAT, "num_key_value_heads"},
        {BASE ",\"num_key_value_heads\":\"4\"}", IG_EFORMAT, "num_key_value_heads"},
        {BASE ",\"head_dim\":7}", IG_EFORMAT, "head_dim 7 is odd"},
        {BASE ",\"head_dim\":99999}", IG_EFORMAT, "head_dim"},
        {BASE ",\"max_position_embeddings\":0}", IG_EFORMAT, "max_position_embeddings"},
        {BASE ",\"rms_norm_eps\":-1}", IG_EFORMAT, "rms_norm_eps"},
        {BASE ",\"rope_theta\":0}", IG_EFORMAT, "rope_theta"},
        {BASE ",\"rope_scaling\":5}", IG_EFORMAT, "rope_scaling: expected an object"},
        {BASE ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", IG_EUNSUPPORTED,
         "rope_scaling type yarn"},
        {BASE ",\"rope_scaling\":{\"type\":\"linear\"}}", IG_EFORMAT, "factor is missing"},
        {BASE ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}}", IG_EFORMAT, "factor"},
        {BASE ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}}", IG_EFORMAT,
         "low_freq_factor is missing"},
        {BASE ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
              "\"high_freq_factor\":1,"
              "\"original_max_position_embeddings\":8192}}",
         IG_EFORMAT, "high_freq_factor 1 is not above low_freq_factor 4"},
        {BASE ",\"hidden_act\":\"gelu\"}", IG_EUNSUPPORTED, "hidden_act gelu"},
        {BASE ",\"mlp_bias\":true}", IG_EUNSUPPORTED, "mlp_bias"},
        {BASE ",\"attention_bias\":1}", IG_EFORMAT, "attention_bias"},
        {BASE ",\"partial_rotary_factor\":0.5}", IG_EUNSUPPORTED, "partial_rotary_factor"},
        {BASE ",\"sliding_window\":1024}", IG_EUNSUPPORTED,
         "sliding_window 1024 is shorter than max_position_embeddings 2048"},
        {BASE ",\"eos_token_id\":1000}", IG_EFORMAT, "1000 is not a token of a vocabulary of 1000"},
        {BASE ",\"eos_token_id\":[1,-2]}", IG_EFORMAT, "eos_token_id"},
        {BASE ",\"quantization\":7}", IG_EFORMAT, "quantization: expected an object"},
        {BASE ",\"quantization\":{\"bits\":4}}", IG_EFORMAT, "group_size"},
        {BASE ",\"quantization\":{\"bits\":7,\"group_size\":64}}", IG_EFORMAT, "no such format"},
        {BASE ",\"quantization\":{\"bits\":4,\"group_size\":48}}", IG_EFORMAT, "no such format"},
        {BASE ",\"quantization\":{\"bits\":4,\"group_size\":32,\"mode\":\"mxfp4\"}}",
         IG_EUNSUPPORTED, "mode mxfp4"},
        {BASE
         ",\"quantization\":{\"bits\":4,\"group_size\":32,\"a.b\":{\"bits\":1,\"group_size\":32}}}",
         IG_EFORMAT, "bits"},
        {BASE ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}", IG_EUNSUPPORTED,
         "gptq"},
        {"{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":10,\"hidden_size\":65,"
         "\"num_hidden_layers\":1,"
         "\"num_attention_heads\":4,\"intermediate_size\":8}",
         IG_EFORMAT, "hidden_size 65 is not a multiple of num_attention_heads 4"},
        {"{\"architectures\":[\"LlamaForCausalLM\"],\"vocab_size\":99999999999}", IG_EFORMAT,
         "vocab_size"},
    };
    for (size_t i = 0; i < N_ELEM(rows); i++) {
        lm_config c = {.layers = 77};
        ig_status s = config_read("config.json", str_of(rows[i].json), &c);
        if (s != rows[i].status || !strstr(ig_error_message(), rows[i].part))
            fail_msg("%s: %s, %s", rows[i].json, ig_status_name(s), ig_error_message());
        assert_non_null(strstr(ig_error_message(), "config.json"));
        assert_int_equal(c.layers, 77); /* untouched */
    }
}

static void a_sliding_window_as_long_as_the_context_is_none(void **state)
{
    (void)state;
    AUTO(lm_config) c = {0};
    read_ok(BASE ",\"sliding_window\":4096,\"max_position_embeddings\":4096}", &c);
    assert_int_equal(c.context, 4096);
}

static ig_status read_and_drop(void *user)
{
    AUTO(lm_config) c = {0};
    return config_read("config.json", str_of(user), &c);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    char json[] =
        BASE ",\"quantization\":{\"group_size\":64,\"bits\":4,\"a\":{\"group_size\":32,\"bits\":8},"
             "\"b\":false}}";
    assert_true(walk_memory(read_and_drop, json) >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_is_read),
        cmocka_unit_test(llama_3_scaling_and_stop_list_are_read),
        cmocka_unit_test(mistral_nemo_has_a_head_size_of_its_own),
        cmocka_unit_test(rope_is_read_in_all_three_spellings),
        cmocka_unit_test(quantisation_and_its_overrides_are_read),
        cmocka_unit_test(what_cannot_be_right_or_is_not_done_is_refused),
        cmocka_unit_test(a_sliding_window_as_long_as_the_context_is_none),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
