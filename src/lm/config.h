/* config.h: config.json and generation_config.json as checked numbers.
 *
 * What the file says but this build does not do is refused by name; contradictions name both
 * sides. */
#ifndef LM_CONFIG_H
#define LM_CONFIG_H
#include "base/buf.h"
#include "base/str.h"

#define CONFIG_MAX_BYTES ((size_t)1 << 20)
#define CONFIG_MAX_STOPS 32
#define CONFIG_MAX_OVERRIDES 4096

typedef enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3 } rope_scaling;

typedef struct config_quant {
    int32_t bits, group; /* 0 bits: the tensor is not quantised */
} config_quant;

typedef struct config_override {
    char *path;
    config_quant quant;
} config_override; /* path owned: "model.layers.0.mlp.up_proj" */

typedef struct lm_config {
    const char *family; /* static: a family of models.def */
    int64_t vocab;      /* rows of the embedding */
    int64_t hidden;     /* width of the residual stream */
    int64_t layers;
    int64_t heads, kv_heads; /* kv_heads divides heads */
    int64_t head_dim;        /* even */
    int64_t ffn;             /* width inside the feed-forward part */
    int64_t context;         /* max_position_embeddings */
    float norm_eps;
    double rope_theta;
    rope_scaling scaling;
    double scale_factor;                      /* linear, llama3 */
    double low_freq_factor, high_freq_factor; /* llama3 */
    int64_t original_context;                 /* llama3 */
    bool tied;                                /* the output projection is the embedding */
    bool attention_bias;                      /* q, k, v, o have biases */
    config_quant quant;         /* of every matrix not named in overrides; bits 0: none */
    config_override *overrides; /* owned */
    size_t n_overrides;
    int32_t stop[CONFIG_MAX_STOPS]; /* union of eos ids */
    size_t n_stops;
} lm_config;

/* `what` names config.json in errors. */
IG_MUST_USE ig_status config_read(const char *what, str json, lm_config *ret_config);
/* Adds eos_token_id (a number or a list) of generation_config.json to the stops. */
IG_MUST_USE ig_status config_read_generation(const char *what, str json, lm_config *c);
void config_done(lm_config *c);
static inline void lm_config_auto(lm_config *c) { config_done(c); }
/* Quantisation of the matrix at path ("model.layers.0.mlp.up_proj"). */
config_quant config_quant_of(const lm_config *c, const char *path);
bool config_is_stop(const lm_config *c, int32_t id);
#endif
