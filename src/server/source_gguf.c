/* source_gguf.c: a GGUF of the llama architecture under Hugging Face names. GGUF interleaves the
 * two halves of each head in the rows of Q and
 * K (row 2 i + j of a head holds row j d/2 + i); they are put back here, exactly, row by row. */
#include <stdio.h>
#include <string.h>
#include "base/half.h"
#include "io/gguf.h"
#include "lm/gguf_tokenizer.h"
#include "server/source_int.h"

#define N_LAYERS_MAX 4096

typedef struct name_pair {
    const char *gguf, *hf;
} name_pair;
static const name_pair global_names[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
};
static const name_pair layer_names[] = {
    {"attn_norm", "input_layernorm"}, {"ffn_norm", "post_attention_layernorm"},
    {"attn_q", "self_attn.q_proj"},   {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},   {"attn_output", "self_attn.o_proj"},
    {"ffn_gate", "mlp.gate_proj"},    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

static const char *look_up(const name_pair *list, size_t n_list, const char *stem)
{
    for (size_t i = 0; i < n_list; i++)
        if (!strcmp(list[i].gguf, stem)) return list[i].hf;
    return NULL;
}

/* "blk.3.attn_q.weight" to "model.layers.3.self_attn.q_proj.weight"; false when the llama
 * architecture has no such tensor. */
static bool hf_name(const char *name, char *out, size_t cap)
{
    char stem[64], part[16];
    int layer, used = 0;
    const char *hf;
    if (sscanf(name, "blk.%d.%63[a-z_].%15[a-z]%n", &layer, stem, part, &used) == 3 &&
        !name[used]) {
        hf = look_up(layer_names, N_ELEM(layer_names), stem);
        if (hf) snprintf(out, cap, "model.layers.%d.%s.%s", layer, hf, part);
        return hf && layer >= 0 && layer < N_LAYERS_MAX;
    }
    if (sscanf(name, "%63[a-z_].%15[a-z]%n", stem, part, &used) == 2 && !name[used]) {
        hf = look_up(global_names, N_ELEM(global_names), stem);
        if (hf) snprintf(out, cap, "%s.%s", hf, part);
        return hf;
    }
    return false;
}

static ig_dtype keep_dtype(const gguf_tensor *g)
{
    return g->type == GGML_F32 ? IG_F32 : g->type == GGML_F16 ? IG_F16 : IG_BF16;
}

static ig_status add_tensor(source *s, const gguf *g, int64_t i, int64_t heads, int64_t kv_heads)
{
    const gguf_tensor *x = &g->tensor[i];
    char name[128];
    source_tensor *t;
    if (!hf_name(x->name, name, sizeof name))
        return ig_fail(IG_EUNSUPPORTED, "%s: tensor %s has no place in the llama architecture%s",
                       s->path, x->name,
                       strcmp(x->name, "rope_freqs.weight")
                           ? ""
                           : ": pack this model from its Hugging Face directory, whose "
                             "config.json says how its rotary frequencies are scaled");
    if (x->ndim > 2)
        return ig_fail(IG_ESHAPE, "%s: tensor %s has %d dims, expected 1 or 2", s->path, x->name,
                       x->ndim);
    TRY(source_add(s, name, &t));
    t->ndim = x->ndim;
    t->n = x->dim[0];
    t->k = x->ndim == 2 ? x->dim[1] : 1;
    t->n_parameters = t->n * t->k;
    t->dtype = x->ndim == 1 ? IG_F32 : keep_dtype(x);
    t->type_name = gguf_type_name(x->type);
    t->is_matrix = x->ndim == 2;
    t->file_index = i;
    if (t->is_matrix && !gguf_affine_bits(x->type, &t->affine_bits)) t->affine_bits = 0;
    if (strstr(name, "q_proj")) t->permuted_heads = heads;
    if (strstr(name, "k_proj")) t->permuted_heads = kv_heads;
    if (t->permuted_heads && (t->n % t->permuted_heads || t->n / t->permuted_heads % 2))
        return ig_fail(IG_ESHAPE, "%s: tensor %s: %lld rows do not make %lld heads of pairs",
                       s->path, x->name, (long long)t->n, (long long)t->permuted_heads);
    return IG_OK;
}

static void close_gguf(void *impl) { gguf_free(impl); }

/* Row of the file that holds row r of the Hugging Face matrix. */
static int64_t file_row(const source_tensor *t, int64_t r)
{
    if (!t->permuted_heads) return r;
    int64_t d = t->n / t->permuted_heads, head = r / d, j = r % d / (d / 2), i = r % (d / 2);
    return head * d + 2 * i + j;
}

static const gguf_tensor *tensor_of(const source *s, const source_tensor *t)
{
    return &((const gguf *)s->impl)->tensor[t->file_index];
}

static ig_status rows(const source *s, const source_tensor *t, int64_t row, int64_t n, float *out)
{
    const gguf_tensor *x = tensor_of(s, t);
    if (t->ndim == 1) {
        size_t element = x->n_bytes / (size_t)t->n;
        gguf_decode(x->type, x->p + (size_t)row * element, n, out);
        return IG_OK;
    }
    for (int64_t r = 0; r < n; r++)
        gguf_decode(x->type, x->p + (size_t)file_row(t, row + r) * x->row_bytes, t->k,
                    out + r * t->k);
    return IG_OK;
}

/* f32 and f16 rows as they are; every other type decoded to bf16. */
static ig_status raw_rows(const source *s, const source_tensor *t, int64_t row, int64_t n,
                          void *out)
{
    const gguf_tensor *x = tensor_of(s, t);
    size_t row_bytes = (size_t)t->k * ig_dtype_size(t->dtype);
    AUTO(mem_ptr) memory = NULL;
    if (t->ndim == 1) return rows(s, t, row, n, out);
    if (x->type == GGML_F32 || x->type == GGML_F16 || x->type == GGML_BF16) {
        for (int64_t r = 0; r < n; r++)
            memcpy((char *)out + (size_t)r * row_bytes,
                   x->p + (size_t)file_row(t, row + r) * x->row_bytes, row_bytes);
        return IG_OK;
    }
    float *wide = memory = mem_alloc((size_t)t->k * sizeof *wide);
    if (!wide) return IG_ENOMEM;
    for (int64_t r = 0; r < n; r++) {
        uint16_t *to = (uint16_t *)out + r * t->k;
        gguf_decode(x->type, x->p + (size_t)file_row(t, row + r) * x->row_bytes, t->k, wide);
        for (int64_t i = 0; i < t->k; i++) to[i] = f32_to_bf16(wide[i]);
    }
    return IG_OK;
}

static ig_status affine(const source *s, const source_tensor *t, int64_t row, int64_t n,
                        uint8_t *codes, uint16_t *scales, uint16_t *biases)
{
    const gguf_tensor *x = tensor_of(s, t);
    size_t code_bytes = (size_t)t->k * (size_t)t->affine_bits / 8, groups = (size_t)t->k / 32;
    for (int64_t r = 0; r < n; r++)
        if (!gguf_affine_row(x->type, x->p + (size_t)file_row(t, row + r) * x->row_bytes, t->k,
                             codes + (size_t)r * code_bytes, scales + (size_t)r * groups,
                             biases + (size_t)r * groups))
            return ig_fail(
                IG_EUNSUPPORTED,
                "%s: tensor %s: a group's bias does not fit float16; pack it with --bits 8 or 16",
                s->path, x->name);
    return IG_OK;
}

static ig_status get_int(const gguf *g, const char *key, int64_t dflt, int64_t *ret)
{
    uint64_t v;
    if (dflt >= 0 && !gguf_find(g, key)) {
        *ret = dflt;
        return IG_OK;
    }
    TRY(gguf_get_u64(g, key, 1u << 31, &v));
    *ret = (int64_t)v;
    return IG_OK;
}

static ig_status get_num(const gguf *g, const char *key, double dflt, double *ret)
{
    *ret = dflt;
    return gguf_find(g, key) ? gguf_get_f64(g, key, ret) : IG_OK;
}

/* "rope_scaling" of the config: null, or linear, which GGUF can say too. Other kinds have values
 * that it does not hold, and a part of each head that is not rotated is not done here. */
static ig_status put_rope_scaling(const gguf *g, int64_t head_dim, buf *b)
{
    str type = str_of("none");
    int64_t rotated;
    double factor;
    TRY(get_int(g, "llama.rope.dimension_count", head_dim, &rotated));
    if (rotated != head_dim)
        return ig_fail(IG_EUNSUPPORTED,
                       "%s: llama.rope.dimension_count %lld: only whole heads (%lld) can turn",
                       g->path, (long long)rotated, (long long)head_dim);
    TRY(get_num(g, "llama.rope.scale_linear", 1, &factor)); /* what older files have */
    if (gguf_find(g, "llama.rope.scaling.type"))
        TRY(gguf_get_str(g, "llama.rope.scaling.type", &type));
    if (str_eq(type, str_of("linear")))
        TRY(gguf_get_f64(g, "llama.rope.scaling.factor", &factor));
    else if (!str_eq(type, str_of("none")))
        return ig_fail(
            IG_EUNSUPPORTED,
            "%s: llama.rope.scaling.type %.*s is not supported (none, linear): pack this "
            "model from its Hugging Face directory",
            g->path, (int)(type.n < 40 ? type.n : 40), type.p);
    if (factor == 1)
        buf_str(b, "null");
    else
        buf_printf(b, "{\"rope_type\":\"linear\",\"factor\":%.9g}", factor);
    return IG_OK;
}

static ig_status config(const source *s, buf *b)
{
    const gguf *g = s->impl;
    const gguf_tensor *embed = gguf_tensor_find(g, "token_embd.weight");
    int64_t layers, hidden, ffn, heads, kv_heads, context, head_dim, bos, eos;
    double eps, theta;
    if (!embed || embed->ndim != 2)
        return ig_fail(IG_EFORMAT, "%s: tensor token_embd.weight is missing", s->path);
    TRY(get_int(g, "llama.block_count", -1, &layers));
    TRY(get_int(g, "llama.embedding_length", -1, &hidden));
    TRY(get_int(g, "llama.feed_forward_length", -1, &ffn));
    TRY(get_int(g, "llama.attention.head_count", -1, &heads));
    TRY(get_int(g, "llama.attention.head_count_kv", heads, &kv_heads));
    TRY(get_int(g, "llama.context_length", 2048, &context));
    TRY(get_int(g, "tokenizer.ggml.bos_token_id", 0, &bos));
    TRY(get_int(g, "tokenizer.ggml.eos_token_id", 0, &eos));
    TRY(get_num(g, "llama.attention.layer_norm_rms_epsilon", 1e-5, &eps));
    TRY(get_num(g, "llama.rope.freq_base", 10000, &theta));
    if (!heads) return ig_fail(IG_EFORMAT, "%s: llama.attention.head_count is 0", s->path);
    TRY(get_int(g, "llama.attention.key_length", hidden / heads, &head_dim));
    buf_printf(b,
               "{\"architectures\":[\"LlamaForCausalLM\"],\"model_type\":\"llama\","
               "\"hidden_act\":\"silu\","
               "\"vocab_size\":%lld,\"hidden_size\":%lld,\"intermediate_size\":%lld,"
               "\"num_hidden_layers\":%lld,"
               "\"num_attention_heads\":%lld,\"num_key_value_heads\":%lld,\"head_dim\":%lld,"
               "\"max_position_embeddings\":%lld,\"rms_norm_eps\":%.9g,\"rope_theta\":%.17g,"
               "\"rope_scaling\":",
               (long long)embed->dim[0], (long long)hidden, (long long)ffn, (long long)layers,
               (long long)heads, (long long)kv_heads, (long long)head_dim, (long long)context, eps,
               theta);
    TRY(put_rope_scaling(g, head_dim, b));
    buf_printf(b,
               ",\"attention_bias\":false,\"mlp_bias\":false,\"tie_word_embeddings\":%s,"
               "\"bos_token_id\":%lld,\"eos_token_id\":%lld}",
               gguf_tensor_find(g, "output.weight") ? "false" : "true", (long long)bos,
               (long long)eos);
    return buf_status(b);
}

static ig_status no_quantization(const source *s, buf *b)
{
    (void)s;
    return buf_status(b);
}

/* --- tokenizer */
static ig_status strings(const gguf *g, const char *key, str **ret_list, size_t *ret_n)
{
    const gguf_value *v;
    TRY(gguf_get_array(g, key, GGUF_STRING, &v));
    str *list = mem_calloc((size_t)v->n + 1, sizeof *list);
    if (!list) return IG_ENOMEM;
    const uint8_t *at = v->p;
    for (uint64_t i = 0; i < v->n; i++) list[i] = gguf_next_string(&at);
    *ret_list = list;
    *ret_n = (size_t)v->n;
    return IG_OK;
}

/* An optional numeric array of n_tokens values, converted. */
static ig_status numbers(const gguf *g, const char *key, size_t n, bool floats, void **ret_list)
{
    const gguf_value *v = gguf_find(g, key);
    if (!v) return IG_OK;
    if (v->kind != GGUF_ARRAY || v->element == GGUF_STRING || v->n != n)
        return ig_fail(IG_EFORMAT, "%s: key %s: expected %zu numbers", g->path, key, n);
    char *list = mem_calloc(n + 1, 4);
    if (!list) return IG_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        float f = (float)gguf_num(v, i);
        int32_t k = floats ? 0 : (int32_t)gguf_int(v, i);
        memcpy(list + 4 * i, floats ? (void *)&f : (void *)&k, 4);
    }
    *ret_list = list;
    return IG_OK;
}

static bool flag(const gguf *g, const char *key, bool dflt)
{
    const gguf_value *v = gguf_find(g, key);
    return v && v->kind == GGUF_BOOL ? v->p[0] != 0 : dflt;
}

static ig_status tokenizer_json(const gguf *g, buf *ret_json)
{
    AUTO(mem_ptr) tokens = NULL;
    AUTO(mem_ptr) merge_memory = NULL;
    AUTO(mem_ptr) score_memory = NULL;
    AUTO(mem_ptr) type_memory = NULL;
    gguf_tokenizer t = {0};
    TRY(gguf_get_str(g, "tokenizer.ggml.model", &t.model));
    if (gguf_find(g, "tokenizer.ggml.pre")) TRY(gguf_get_str(g, "tokenizer.ggml.pre", &t.pre));
    TRY(strings(g, "tokenizer.ggml.tokens", (str **)&tokens, &t.n_tokens));
    if (gguf_find(g, "tokenizer.ggml.merges"))
        TRY(strings(g, "tokenizer.ggml.merges", (str **)&merge_memory, &t.n_merges));
    TRY(numbers(g, "tokenizer.ggml.scores", t.n_tokens, true, &score_memory));
    TRY(numbers(g, "tokenizer.ggml.token_type", t.n_tokens, false, &type_memory));
    t.tokens = tokens;
    t.merges = merge_memory;
    t.scores = score_memory;
    t.types = type_memory;
    bool llama = str_eq(t.model, str_of("llama"));
    TRY(get_int(g, "tokenizer.ggml.bos_token_id", (int64_t)UINT32_MAX, &t.bos_id));
    TRY(get_int(g, "tokenizer.ggml.eos_token_id", (int64_t)UINT32_MAX, &t.eos_id));
    TRY(get_int(g, "tokenizer.ggml.unknown_token_id", (int64_t)UINT32_MAX, &t.unk_id));
    if (t.bos_id == UINT32_MAX) t.bos_id = -1;
    if (t.eos_id == UINT32_MAX) t.eos_id = -1;
    if (t.unk_id == UINT32_MAX) t.unk_id = -1;
    t.add_bos = flag(g, "tokenizer.ggml.add_bos_token", llama);
    t.add_eos = flag(g, "tokenizer.ggml.add_eos_token", false);
    t.add_space_prefix = flag(g, "tokenizer.ggml.add_space_prefix", true);
    return gguf_tokenizer_to_json(&t, ret_json);
}

/* The text of the token that a key names, where the file has one. */
static ig_status add_token(buf *b, const gguf *g, const char *field, const char *key)
{
    const gguf_value *tokens;
    uint64_t id;
    str s = {0};
    if (!gguf_find(g, key)) return IG_OK;
    TRY(gguf_get_u64(g, key, UINT32_MAX, &id));
    TRY(gguf_get_array(g, "tokenizer.ggml.tokens", GGUF_STRING, &tokens));
    if (id >= tokens->n) return IG_OK;
    const uint8_t *at = tokens->p;
    for (uint64_t i = 0; i <= id; i++) s = gguf_next_string(&at);
    buf_printf(b, ",\"%s\":", field);
    buf_json_string(b, s.p, s.n);
    return IG_OK;
}

static ig_status tokenizer_config(const gguf *g, buf *b)
{
    str chat;
    buf_str(
        b,
        "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"clean_up_tokenization_spaces\":false");
    TRY(add_token(b, g, "bos_token", "tokenizer.ggml.bos_token_id"));
    TRY(add_token(b, g, "eos_token", "tokenizer.ggml.eos_token_id"));
    TRY(add_token(b, g, "pad_token", "tokenizer.ggml.padding_token_id"));
    if (gguf_find(g, "tokenizer.chat_template")) {
        TRY(gguf_get_str(g, "tokenizer.chat_template", &chat));
        if (!utf8_valid(chat.p, chat.n))
            return ig_fail(IG_EFORMAT, "%s: key tokenizer.chat_template: not UTF-8", g->path);
        buf_str(b, ",\"chat_template\":");
        buf_json_string(b, chat.p, chat.n);
    }
    buf_str(b, "}\n");
    return buf_status(b);
}

static ig_status files(const source *s, source_file *f, int *n)
{
    const gguf *g = s->impl;
    int64_t bos, eos;
    TRY(tokenizer_json(g, &source_add_file(f, n, "tokenizer.json")->content));
    TRY(tokenizer_config(g, &source_add_file(f, n, "tokenizer_config.json")->content));
    TRY(get_int(g, "tokenizer.ggml.bos_token_id", 0, &bos));
    TRY(get_int(g, "tokenizer.ggml.eos_token_id", 0, &eos));
    buf *b = &source_add_file(f, n, "generation_config.json")->content;
    buf_printf(b, "{\"bos_token_id\":%lld,\"eos_token_id\":[%lld]}\n", (long long)bos,
               (long long)eos);
    return buf_status(b);
}

static const source_format format_gguf = {"gguf",          rows,  raw_rows,  affine, config,
                                          no_quantization, files, close_gguf};

ig_status source_open_gguf(source *s)
{
    gguf *g = NULL;
    str arch;
    int64_t heads, kv_heads;
    TRY(gguf_open(s->path, &g));
    s->impl = g;
    s->format = &format_gguf;
    TRY(gguf_get_str(g, "general.architecture", &arch));
    if (!str_eq(arch, str_of("llama")))
        return ig_fail(IG_EUNSUPPORTED, "%s: architecture %.*s is not supported (llama is)",
                       s->path, (int)(arch.n < 40 ? arch.n : 40), arch.p);
    TRY(get_int(g, "llama.attention.head_count", -1, &heads));
    TRY(get_int(g, "llama.attention.head_count_kv", heads, &kv_heads));
    if (heads < 1 || kv_heads < 1) return ig_fail(IG_EFORMAT, "%s: a head count is 0", s->path);
    for (size_t i = 0; i < g->n_tensors; i++) TRY(add_tensor(s, g, (int64_t)i, heads, kv_heads));
    AUTO(buf) unused = {0}; /* what its config cannot say is refused before hours of packing */
    buf_init(&unused, SOURCE_MAX_TEXT);
    return config(s, &unused);
}
