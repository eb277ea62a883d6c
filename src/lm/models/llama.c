/* llama.c: the Llama family: Llama 2 and 3, SmolLM2, Mistral, TinyLlama.
 *
 * Names and shapes are Hugging Face's (D hidden, H heads, G kv heads, d head_dim, F ffn, V vocab):
 *   model.embed_tokens [V, D]; lm_head [V, D] unless tied; model.norm [D];
 *   model.layers.i.input_layernorm, .post_attention_layernorm [D];
 *   model.layers.i.self_attn.{q,k,v,o}_proj [H d, D] [G d, D] [G d, D] [D, H d];
 *   model.layers.i.mlp.{gate,up,down}_proj [F, D] [F, D] [D, F]. */
#include <stdio.h>
#include "lm/model.h"

typedef struct layer {
    ig_array attn_norm, ffn_norm; /* [D] f32 */
    linear q, k, v, o, gate, up, down;
} layer;

typedef struct llama {
    linear embed, head; /* head unused when tied */
    ig_array norm;      /* [D] f32 */
    bool tied;
    int64_t n_layers;
    layer *layer; /* owned */
} llama;

static void llama_free(void *model)
{
    llama *m = model;
    if (!m) return;
    for (int64_t i = 0; m->layer && i < m->n_layers; i++) {
        layer *l = &m->layer[i];
        linear *all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < N_ELEM(all); j++) linear_drop(all[j]);
        ig_drop(&l->attn_norm);
        ig_drop(&l->ffn_norm);
    }
    mem_free(m->layer);
    linear_drop(&m->embed);
    linear_drop(&m->head);
    ig_drop(&m->norm);
    mem_free(m);
}
AUTO_FN(llama_ptr, llama *, llama_free)

static ig_status bind_layer(binder *b, int64_t i, layer *l)
{
    const lm_config *c = b->config;
    int64_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    const struct {
        const char *name;
        int64_t n, k;
        bool bias;
        linear *to;
    } matrix[] = {
        {"self_attn.q_proj", q, c->hidden, c->attention_bias, &l->q},
        {"self_attn.k_proj", kv, c->hidden, c->attention_bias, &l->k},
        {"self_attn.v_proj", kv, c->hidden, c->attention_bias, &l->v},
        {"self_attn.o_proj", c->hidden, q, c->attention_bias, &l->o},
        {"mlp.gate_proj", c->ffn, c->hidden, false, &l->gate},
        {"mlp.up_proj", c->ffn, c->hidden, false, &l->up},
        {"mlp.down_proj", c->hidden, c->ffn, false, &l->down},
    };
    char path[128];
    for (size_t j = 0; j < N_ELEM(matrix); j++) {
        snprintf(path, sizeof path, "model.layers.%lld.%s", (long long)i, matrix[j].name);
        TRY(bind_linear(b, path, matrix[j].n, matrix[j].k, matrix[j].bias, matrix[j].to));
    }
    snprintf(path, sizeof path, "model.layers.%lld.input_layernorm.weight", (long long)i);
    TRY(bind_vector(b, path, c->hidden, &l->attn_norm));
    snprintf(path, sizeof path, "model.layers.%lld.post_attention_layernorm.weight", (long long)i);
    return bind_vector(b, path, c->hidden, &l->ffn_norm);
}

static ig_status llama_bind(binder *b, void **ret_model)
{
    const lm_config *c = b->config;
    AUTO(llama_ptr) m = mem_calloc(1, sizeof *m);
    if (!m) return IG_ENOMEM;
    m->layer = mem_calloc((size_t)c->layers, sizeof *m->layer);
    if (!m->layer) return IG_ENOMEM;
    m->n_layers = c->layers;
    m->tied = c->tied;
    TRY(bind_linear(b, "model.embed_tokens", c->vocab, c->hidden, false, &m->embed));
    if (!c->tied) TRY(bind_linear(b, "lm_head", c->vocab, c->hidden, false, &m->head));
    TRY(bind_vector(b, "model.norm.weight", c->hidden, &m->norm));
    for (int64_t i = 0; i < c->layers; i++) TRY(bind_layer(b, i, &m->layer[i]));
    *ret_model = STEAL(m);
    return IG_OK;
}

static ig_array attention(const lm_config *c, const arithmetic *a, const layer *l, ig_array h,
                          const step_in *in, ig_array rope, ig_state *kv)
{
    const linear *readers[] = {&l->q, &l->k, &l->v}, *reader_o[] = {&l->o};
    activation x =
        activation_of(ig_rms_norm(h, l->attn_norm, c->norm_eps), matrix_group(readers, 3));
    ig_array q =
        ig_rope(split_heads(linear_apply(a, &x, &l->q), c->heads), in->positions, rope, false);
    ig_array k =
        ig_rope(split_heads(linear_apply(a, &x, &l->k), c->kv_heads), in->positions, rope, false);
    ig_array v = split_heads(linear_apply(a, &x, &l->v), c->kv_heads);
    ig_array pool =
        ig_paged_write(ig_state_array(kv), k, v, in->slots, c->kv_heads, c->head_dim, a->kv_type);
    float scale = 1.0f / __builtin_sqrtf((float)c->head_dim);
    ig_array y = ig_paged_attention(q, pool, in->pages, in->seq, in->positions, c->kv_heads,
                                    a->kv_type, scale);
    activation merged = activation_of(merge_heads(y), matrix_group(reader_o, 1));
    return linear_apply(a, &merged, &l->o);
}

static ig_array feed_forward(const lm_config *c, const arithmetic *a, const layer *l, ig_array h)
{
    const linear *readers[] = {&l->gate, &l->up}, *reader_down[] = {&l->down};
    activation x =
        activation_of(ig_rms_norm(h, l->ffn_norm, c->norm_eps), matrix_group(readers, 2));
    ig_array y = ig_multiply(ig_silu(linear_apply(a, &x, &l->gate)), linear_apply(a, &x, &l->up));
    activation wide = activation_of(y, matrix_group(reader_down, 1));
    return linear_apply(a, &wide, &l->down);
}

static ig_array llama_forward(const void *model, const lm_config *c, const arithmetic *a,
                              const step_in *in, ig_array rope, ig_state *const *kv)
{
    const llama *m = model;
    const linear *head = m->tied ? &m->embed : &m->head, *reader_head[] = {head};
    ig_array h = linear_rows(&m->embed, in->tokens); /* [T, D] */
    for (int64_t i = 0; i < m->n_layers; i++) {
        h = ig_add(h, attention(c, a, &m->layer[i], h, in, rope, kv[i]));
        h = ig_add(h, feed_forward(c, a, &m->layer[i], h));
    }
    activation last = activation_of(ig_rms_norm(ig_take(h, in->out_rows, 0), m->norm, c->norm_eps),
                                    matrix_group(reader_head, 1));
    return linear_apply(a, &last, head); /* [O, V] */
}

static int64_t llama_step_bytes(const void *model)
{
    const llama *m = model;
    int64_t n = linear_bytes(m->tied ? &m->embed : &m->head);
    for (int64_t i = 0; i < m->n_layers; i++) {
        const layer *l = &m->layer[i];
        const linear *all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < N_ELEM(all); j++) n += linear_bytes(all[j]);
    }
    return n;
}

extern const family family_llama;
const family family_llama = {"llama", llama_bind, llama_free, llama_forward, llama_step_bytes};
