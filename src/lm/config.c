/* config.c: reads config.json of the families in models.def. */
#include "lm/config.h"
#include <string.h>
#include "base/json.h"

#define MAX_DIM ((int64_t)1 << 24)

typedef struct family_row {
    const char *architecture, *model_type, *family;
} family_row;
static const family_row families[] = {
#define FAMILY(architecture, model_type, family) {architecture, model_type, #family},
#include "lm/models/models.def"
#undef FAMILY
};
static const char supported[] =
#define FAMILY(architecture, model_type, family) " " architecture
#include "lm/models/models.def"
#undef FAMILY
    ;

void config_done(lm_config *c)
{
    for (size_t i = 0; c->overrides && i < c->n_overrides; i++) mem_free(c->overrides[i].path);
    mem_free(c->overrides);
    *c = (lm_config){0};
}

static ig_status read_family(const char *what, const json_t *root, lm_config *c)
{
    const json_t *list = json_object_get(root, "architectures");
    const char *arch = json_string_value(json_array_get(list, 0));
    const char *type = json_string_value(json_object_get(root, "model_type"));
    for (size_t i = 0; i < N_ELEM(families); i++)
        if (arch ? !strcmp(arch, families[i].architecture)
                 : type && !strcmp(type, families[i].model_type)) {
            c->family = families[i].family;
            return IG_OK;
        }
    return ig_fail(IG_EUNSUPPORTED, "%s: architecture %s is not supported; supported:%s", what,
                   arch ? arch : (type ? type : "(none given)"), supported);
}

static ig_status read_sizes(const char *what, const json_t *root, lm_config *c)
{
    TRY(json_get_int(what, root, "vocab_size", 1, MAX_DIM, &c->vocab));
    TRY(json_get_int(what, root, "hidden_size", 1, MAX_DIM, &c->hidden));
    TRY(json_get_int(what, root, "num_hidden_layers", 1, 4096, &c->layers));
    TRY(json_get_int(what, root, "num_attention_heads", 1, 65536, &c->heads));
    TRY(json_opt_int(what, root, "num_key_value_heads", 1, 65536, c->heads, &c->kv_heads));
    TRY(json_get_int(what, root, "intermediate_size", 1, MAX_DIM, &c->ffn));
    TRY(json_opt_int(what, root, "max_position_embeddings", 1, (int64_t)1 << 31, 2048,
                     &c->context));
    if (c->heads % c->kv_heads)
        return ig_fail(IG_EFORMAT,
                       "%s: num_attention_heads %lld is not a multiple of num_key_value_heads %lld",
                       what, (long long)c->heads, (long long)c->kv_heads);
    const json_t *head_dim = json_object_get(root, "head_dim");
    if (!json_is_integer(head_dim) && c->hidden % c->heads)
        return ig_fail(IG_EFORMAT,
                       "%s: hidden_size %lld is not a multiple of num_attention_heads %lld", what,
                       (long long)c->hidden, (long long)c->heads);
    TRY(json_opt_int(what, root, "head_dim", 1, 4096, c->hidden / c->heads, &c->head_dim));
    if (c->head_dim % 2)
        return ig_fail(IG_EFORMAT, "%s: head_dim %lld is odd: rotary embedding needs pairs", what,
                       (long long)c->head_dim);
    return IG_OK;
}

/* A factor that the kind of scaling cannot do without. */
static ig_status need_factor(const char *what, const json_t *s, const char *key, double lo,
                             double *ret)
{
    TRY(json_opt_num(what, s, key, lo, 1e6, 0, ret));
    return *ret ? IG_OK : ig_fail(IG_EFORMAT, "%s: rope_scaling: %s is missing", what, key);
}

/* rope_theta and rope_scaling; newer files have both in rope_parameters. */
static ig_status read_rope(const char *what, const json_t *root, lm_config *c)
{
    json_t *s = json_object_get(root, "rope_scaling");
    json_t *both = json_object_get(root, "rope_parameters");
    str type = {0};
    c->scale_factor = 1;
    TRY(json_opt_num(what, root, "rope_theta", 1, 1e12, 10000, &c->rope_theta));
    if (!s || json_is_null(s)) s = both;
    if (!s || json_is_null(s)) return IG_OK;
    if (!json_is_object(s))
        return ig_fail(IG_EFORMAT, "%s: rope_scaling: expected an object", what);
    TRY(json_opt_num(what, s, "rope_theta", 1, 1e12, c->rope_theta, &c->rope_theta));
    TRY(json_opt_str(what, s, "rope_type", &type));
    if (!type.p) TRY(json_opt_str(what, s, "type", &type));
    if (!type.p || str_eq(type, str_of("default"))) return IG_OK;
    TRY(need_factor(what, s, "factor", 1, &c->scale_factor));
    if (str_eq(type, str_of("linear"))) {
        c->scaling = ROPE_LINEAR;
        return IG_OK;
    }
    if (!str_eq(type, str_of("llama3")))
        return ig_fail(IG_EUNSUPPORTED,
                       "%s: rope_scaling type %.*s is not supported (default, linear, llama3)",
                       what, (int)type.n, type.p);
    c->scaling = ROPE_LLAMA3;
    TRY(need_factor(what, s, "low_freq_factor", 1e-3, &c->low_freq_factor));
    TRY(need_factor(what, s, "high_freq_factor", 1e-3, &c->high_freq_factor));
    TRY(json_get_int(what, s, "original_max_position_embeddings", 1, (int64_t)1 << 31,
                     &c->original_context));
    if (c->high_freq_factor <= c->low_freq_factor)
        return ig_fail(IG_EFORMAT,
                       "%s: rope_scaling: high_freq_factor %g is not above low_freq_factor %g",
                       what, c->high_freq_factor, c->low_freq_factor);
    return IG_OK;
}

/* What changes the arithmetic and is not done here. */
static ig_status refuse_others(const char *what, const json_t *root, const lm_config *c)
{
    str act = {0};
    bool mlp_bias;
    double partial;
    TRY(json_opt_str(what, root, "hidden_act", &act));
    if (act.p && !str_eq(act, str_of("silu")))
        return ig_fail(IG_EUNSUPPORTED, "%s: hidden_act %.*s is not supported (silu is)", what,
                       (int)act.n, act.p);
    TRY(json_opt_bool(what, root, "mlp_bias", false, &mlp_bias));
    if (mlp_bias) return ig_fail(IG_EUNSUPPORTED, "%s: mlp_bias true is not supported", what);
    TRY(json_opt_num(what, root, "partial_rotary_factor", 0, 1, 1, &partial));
    if (partial != 1)
        return ig_fail(IG_EUNSUPPORTED, "%s: partial_rotary_factor %g is not supported", what,
                       partial);
    const json_t *window = json_object_get(root, "sliding_window");
    if (json_is_integer(window) && json_integer_value(window) < c->context)
        return ig_fail(
            IG_EUNSUPPORTED,
            "%s: sliding_window %lld is shorter than max_position_embeddings %lld: sliding "
            "attention is not supported; a smaller max_position_embeddings runs the model "
            "within its window",
            what, (long long)json_integer_value(window), (long long)c->context);
    return IG_OK;
}

static ig_status read_quant(const char *what, const json_t *v, config_quant *q)
{
    int64_t bits = 0, group = 0;
    str mode = {0};
    TRY(json_get_int(what, v, "bits", 2, 8, &bits));
    TRY(json_get_int(what, v, "group_size", 32, 128, &group));
    TRY(json_opt_str(what, v, "mode", &mode));
    if (mode.p && !str_eq(mode, str_of("affine")))
        return ig_fail(IG_EUNSUPPORTED, "%s: quantization mode %.*s is not supported (affine is)",
                       what, (int)mode.n, mode.p);
    if (bits == 7 || (group != 32 && group != 64 && group != 128))
        return ig_fail(IG_EFORMAT, "%s: quantization: bits %lld, group_size %lld: no such format",
                       what, (long long)bits, (long long)group);
    *q = (config_quant){(int32_t)bits, (int32_t)group};
    return IG_OK;
}

/* What other tools write: GPTQ, AWQ, bitsandbytes. MLX's own key is "quantization". */
static ig_status refuse_method(const char *what, const json_t *root)
{
    const json_t *q = json_object_get(root, "quantization_config");
    str method = {0};
    if (!json_is_object(q)) return IG_OK;
    TRY(json_opt_str(what, q, "quant_method", &method));
    return ig_fail(IG_EUNSUPPORTED,
                   "%s: quantization_config: %.*s is not supported: pack the model's 16-bit files",
                   what, method.p ? (int)method.n : 10, method.p ? method.p : "this method");
}

static ig_status read_quantization(const char *what, const json_t *root, lm_config *c)
{
    json_t *q = json_object_get(root, "quantization"), *value;
    const char *key;
    if (!q || json_is_null(q)) return refuse_method(what, root);
    if (!json_is_object(q))
        return ig_fail(IG_EFORMAT, "%s: quantization: expected an object", what);
    TRY(read_quant(what, q, &c->quant));
    if (json_object_size(q) > CONFIG_MAX_OVERRIDES)
        return ig_fail(IG_ELIMIT, "%s: quantization: more than %d entries", what,
                       CONFIG_MAX_OVERRIDES);
    c->overrides = mem_calloc(json_object_size(q) + 1, sizeof *c->overrides);
    if (!c->overrides) return IG_ENOMEM;
    json_object_foreach(q, key, value)
    {
        if (!json_is_object(value) && !json_is_false(value)) continue; /* bits, group_size, mode */
        config_override *o = &c->overrides[c->n_overrides++];
        o->path = mem_strdup(key);
        if (!o->path) return IG_ENOMEM;
        if (json_is_object(value)) TRY(read_quant(what, value, &o->quant));
    }
    return IG_OK;
}

static ig_status read_stops(const char *what, const json_t *root, lm_config *c)
{
    const json_t *eos = json_object_get(root, "eos_token_id");
    size_t n = json_is_array(eos) ? json_array_size(eos) : json_is_integer(eos) ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_is_array(eos) ? json_array_get(eos, i) : eos;
        int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= c->vocab)
            return ig_fail(IG_EFORMAT,
                           "%s: eos_token_id: %lld is not a token of a vocabulary of %lld", what,
                           (long long)id, (long long)c->vocab);
        if (config_is_stop(c, (int32_t)id)) continue;
        if (c->n_stops == CONFIG_MAX_STOPS)
            return ig_fail(IG_ELIMIT, "%s: more than %d stop tokens", what, CONFIG_MAX_STOPS);
        c->stop[c->n_stops++] = (int32_t)id;
    }
    return IG_OK;
}

static ig_status read_all(const char *what, const json_t *root, lm_config *c)
{
    double eps = 0;
    TRY(read_family(what, root, c));
    TRY(read_sizes(what, root, c));
    TRY(json_opt_num(what, root, "rms_norm_eps", 0, 1, 1e-6, &eps));
    c->norm_eps = (float)eps;
    TRY(read_rope(what, root, c));
    TRY(json_opt_bool(what, root, "tie_word_embeddings", false, &c->tied));
    TRY(json_opt_bool(what, root, "attention_bias", false, &c->attention_bias));
    TRY(refuse_others(what, root, c));
    TRY(read_quantization(what, root, c));
    return read_stops(what, root, c);
}

ig_status config_read(const char *what, str json, lm_config *ret_config)
{
    AUTO(json_ptr) root = NULL;
    AUTO(lm_config) c = {0};
    TRY(json_parse(what, json, CONFIG_MAX_BYTES, 16, &root));
    if (!json_is_object(root)) return ig_fail(IG_EFORMAT, "%s: expected an object", what);
    TRY(read_all(what, root, &c));
    *ret_config = c;
    c = (lm_config){0};
    return IG_OK;
}

ig_status config_read_generation(const char *what, str json, lm_config *c)
{
    AUTO(json_ptr) root = NULL;
    TRY(json_parse(what, json, CONFIG_MAX_BYTES, 16, &root));
    return read_stops(what, root, c);
}

config_quant config_quant_of(const lm_config *c, const char *path)
{
    for (size_t i = 0; i < c->n_overrides; i++)
        if (!strcmp(c->overrides[i].path, path)) return c->overrides[i].quant;
    return c->quant;
}

bool config_is_stop(const lm_config *c, int32_t id)
{
    for (size_t i = 0; i < c->n_stops; i++)
        if (c->stop[i] == id) return true;
    return false;
}
