/* tinylm.c: see tinylm.h. One table gives tensors and config.json alike. */
#include "support/tinylm.h"
#include <math.h>
#include "base/threefry.h"
#include "ingot/io.h"
#include "ingot/ops.h"
#include "ingot/quant.h"
#include "support/test.h"
#include "support/tmp.h"

#define HIDDEN 96
#define HEADS 3
#define HEAD_DIM 32
#define FFN 192
#define LAYERS 2
#define MAX_TENSORS 96

typedef struct matrix {
    const char *path; /* below model.layers.i, or whole */
    int n, k, bits, group;
    ig_dtype scales;
} matrix;

/* bits 0: float16. The first that matches a path counts; layer 1 has another mixture. */
static const matrix whole[] = {
    {"model.embed_tokens", TINYLM_VOCAB, HIDDEN, 8, 32, IG_F32},
    {"lm_head", TINYLM_VOCAB, HIDDEN, 4, 32, IG_F16},
};
static const matrix layers[LAYERS][7] = {
    {{"self_attn.q_proj", HEADS *HEAD_DIM, HIDDEN, 4, 32, IG_F16},
     {"self_attn.k_proj", HEAD_DIM, HIDDEN, 8, 32, IG_BF16},
     {"self_attn.v_proj", HEAD_DIM, HIDDEN, 8, 32, IG_F16},
     {"self_attn.o_proj", HIDDEN, HEADS *HEAD_DIM, 4, 32, IG_BF16},
     {"mlp.gate_proj", FFN, HIDDEN, 4, 32, IG_F16},
     {"mlp.up_proj", FFN, HIDDEN, 0, 0, IG_F16},
     {"mlp.down_proj", HIDDEN, FFN, 8, 64, IG_F32}},
    {{"self_attn.q_proj", HEADS *HEAD_DIM, HIDDEN, 8, 32, IG_F32},
     {"self_attn.k_proj", HEAD_DIM, HIDDEN, 4, 32, IG_F16},
     {"self_attn.v_proj", HEAD_DIM, HIDDEN, 4, 32, IG_F32},
     {"self_attn.o_proj", HIDDEN, HEADS *HEAD_DIM, 0, 0, IG_F16},
     {"mlp.gate_proj", FFN, HIDDEN, 8, 32, IG_F16},
     {"mlp.up_proj", FFN, HIDDEN, 4, 32, IG_BF16},
     {"mlp.down_proj", HIDDEN, FFN, 4, 64, IG_F16}},
};

typedef struct writer {
    const tinylm_fault *fault;
    char name[MAX_TENSORS][96];
    const char *names[MAX_TENSORS];
    ig_array array[MAX_TENSORS];
    int n;
    uint32_t seed; /* of the next tensor */
} writer;

static uint32_t word(uint32_t seed, uint32_t i)
{
    uint32_t out[2];
    threefry2x32((const uint32_t[2]){0x7109, seed}, (const uint32_t[2]){i, 0}, out);
    return out[0];
}

/* [n, k] (k 0: [n]) of mean + spread * [-1, 1), as dtype. */
static ig_array uniform(uint32_t seed, int n, int k, double mean, double spread, ig_dtype dtype)
{
    static float v[TINYLM_VOCAB * HIDDEN];
    int64_t dims[2] = {n, k}, size = (int64_t)n * (k ? k : 1);
    assert_true(size <= (int64_t)(sizeof v / sizeof v[0]));
    for (int64_t i = 0; i < size; i++)
        v[i] = (float)(mean + spread * (ldexp(word(seed, (uint32_t)i) >> 8, -23) - 1));
    return ig_astype(ig_array_copy(v, IG_F32, dims, k ? 2 : 1), dtype);
}

static bool is(const char *name, const char *other) { return other && !strcmp(name, other); }

static void add(writer *w, const char *name, ig_array a)
{
    if (is(name, w->fault->missing)) return;
    if (is(name, w->fault->retyped)) a = ig_astype(a, IG_I32);
    if (is(name, w->fault->reshaped)) {
        int64_t start[2] = {0}, stop[2] = {1, INT64_MAX}, step[2] = {1, 1};
        int n = ig_ndim(a);
        a = ig_concatenate((ig_array[]){a, ig_slice(a, start, n, stop, n, step, n)}, 2, 0);
    }
    assert_true(w->n < MAX_TENSORS);
    snprintf(w->name[w->n], sizeof w->name[0], "%s", name);
    w->names[w->n] = w->name[w->n];
    w->array[w->n++] = a;
}

static void add_part(writer *w, const char *path, const char *part, ig_array a)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", path, part);
    add(w, name, a);
}

static ig_array codes(uint32_t seed, int n, int k, int bits)
{
    static uint32_t v[TINYLM_VOCAB * HIDDEN / 4];
    int64_t dims[2] = {n, k * bits / 32};
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) v[i] = word(seed, (uint32_t)i);
    return ig_array_copy(v, IG_U32, dims, 2);
}

/* Quantised values are spread evenly over about [-1, 1] * scale_of. */
static void add_matrix(writer *w, const char *path, const matrix *m)
{
    double reach = 1.5 / sqrt(m->k), step = 2 * reach / (1 << m->bits);
    uint32_t seed = w->seed++;
    if (!m->bits) {
        add_part(w, path, "weight", uniform(seed, m->n, m->k, 0, reach, IG_F16));
        return;
    }
    ig_array scales = uniform(seed + 1000, m->n, m->k / m->group, step, step / 4, m->scales);
    if (w->fault->is_nan && is(path, "model.embed_tokens")) {
        const int64_t start[] = {TINYLM_NAN, 0}, stop[] = {TINYLM_NAN + 1, INT64_MAX},
                      by[] = {1, 1};
        scales = ig_slice_update(scales, ig_scalar_f32(NAN), start, 2, stop, 2, by, 2);
    }
    add_part(w, path, "weight", codes(seed, m->n, m->k, m->bits));
    add_part(w, path, "scales", scales);
    add_part(w, path, "biases",
             uniform(seed + 2000, m->n, m->k / m->group, -reach, reach / 8, m->scales));
}

static void add_vector(writer *w, const char *name, int n, double mean, double spread)
{
    uint32_t seed = w->seed++;
    add(w, name, uniform(seed, n, 0, mean, spread, seed % 2 ? IG_F32 : IG_BF16));
}

static void add_layer(writer *w, int i)
{
    char path[64];
    for (int j = 0; j < 7; j++) {
        const matrix *m = &layers[i][j];
        snprintf(path, sizeof path, "model.layers.%d.%s", i, m->path);
        add_matrix(w, path, m);
        if (strncmp(m->path, "self_attn", 9)) continue;
        snprintf(path, sizeof path, "model.layers.%d.%s.bias", i, m->path);
        add_vector(w, path, m->n, 0, 0.25);
    }
    snprintf(path, sizeof path, "model.layers.%d.input_layernorm.weight", i);
    add_vector(w, path, HIDDEN, 1, 0.25);
    snprintf(path, sizeof path, "model.layers.%d.post_attention_layernorm.weight", i);
    add_vector(w, path, HIDDEN, 1, 0.25);
}

static void write_tensors(const char *dir, const tinylm_fault *fault)
{
    static writer w;
    ig_scope *scope = ig_scope_open();
    w = (writer){.fault = fault};
    for (size_t i = 0; i < 2; i++) add_matrix(&w, whole[i].path, &whole[i]);
    add_vector(&w, "model.norm.weight", HIDDEN, 4, 1);
    for (int i = 0; i < LAYERS; i++) add_layer(&w, i);
    if (fault->extra) add(&w, fault->extra, ig_scalar_f32(1));
    assert_ok(ig_eval(w.array, w.n));
    assert_ok(ig_save_safetensors(tmp_path(dir, "model.safetensors"), w.names, w.array, w.n));
    assert_ok(ig_scope_close(scope));
}

static int override(char *out, size_t cap, const char *path, const matrix *m)
{
    if (!m->bits) return snprintf(out, cap, ",\n \"%s\": false", path);
    return snprintf(out, cap, ",\n \"%s\": {\"bits\": %d, \"group_size\": %d}", path, m->bits,
                    m->group);
}

const char *tinylm_config(void)
{
    static char text[4096];
    char path[64];
    int n = snprintf(
        text, sizeof text,
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
        " \"vocab_size\": %d, \"hidden_size\": %d, \"num_hidden_layers\": %d,\n"
        " \"num_attention_heads\": %d, \"num_key_value_heads\": 1, \"intermediate_size\": %d,\n"
        " \"max_position_embeddings\": %d, \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0,\n"
        " \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0,\n"
        " \"low_freq_factor\": 1.0,\n"
        " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 128},\n"
        " \"attention_bias\": true, \"tie_word_embeddings\": false, \"hidden_act\": \"silu\",\n"
        " \"eos_token_id\": %d, \"quantization\": {\"bits\": 4, \"group_size\": 32",
        TINYLM_VOCAB, HIDDEN, LAYERS, HEADS, FFN, TINYLM_CONTEXT, TINYLM_EOS);
    for (size_t i = 0; i < 2; i++)
        n += override(text + n, sizeof text - (size_t)n, whole[i].path, &whole[i]);
    for (int i = 0; i < 7 * LAYERS; i++) {
        const matrix *m = &layers[i / 7][i % 7];
        snprintf(path, sizeof path, "model.layers.%d.%s", i / 7, m->path);
        n += override(text + n, sizeof text - (size_t)n, path, m);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "}}\n");
    assert_true((size_t)n < sizeof text);
    return text;
}

/* Bytes as tokens, in the byte-level alphabet: printable ones stand for themselves, the others for
 * U+0100 and up. Ids 0 to 2 are control tokens. */
static void write_tokenizer(const char *dir)
{
    static char text[8192];
    int n = snprintf(text, sizeof text,
                     "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, "
                     "\"added_tokens\": [");
    static const char *const control[] = {"<unk>", "<s>", "</s>"};
    for (int i = 0; i < 3; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": "
                      "false, \"rstrip\": false, \"normalized\": false, \"special\": true}",
                      i ? ", " : "", i, control[i]);
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                  "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, "
                  "\"post_processor\": null, \"decoder\": {\"type\": \"ByteLevel\", "
                  "\"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, "
                  "\"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                  "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                  "\"fuse_unk\": false, \"byte_fallback\": false, \"vocab\": {"
                  "\"<unk>\": 0, \"<s>\": 1, \"</s>\": 2");
    for (int b = 0, high = 0x100; b < 256; b++) {
        bool printable = (b > ' ' && b < 0x7f) || (b > 0xa0 && b != 0xad);
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"\\u%04x\": %d",
                      printable ? b : high++, 3 + b);
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "}, \"merges\": []}}");
    assert_true((size_t)n < sizeof text);
    tmp_write(dir, "tokenizer.json", text, (unsigned long)n);
}

void tinylm_write(const char *dir, const tinylm_fault *fault)
{
    static const tinylm_fault none;
    if (!fault) fault = &none;
    const char *config = fault->config ? fault->config : tinylm_config();
    write_tensors(dir, fault);
    tmp_write(dir, "config.json", config, strlen(config));
    write_tokenizer(dir);
    if (fault->tokenizer)
        tmp_write(dir, "tokenizer.json", fault->tokenizer, strlen(fault->tokenizer));
}

void tinylm_prompt(uint32_t seed, int64_t vocab, int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t id = (int32_t)(word(seed, (uint32_t)i) % (uint64_t)vocab);
        ids[i] = id == TINYLM_EOS || id == TINYLM_NAN ? 11 : id;
    }
}
