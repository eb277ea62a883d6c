/* model.c: binding of tensors by the config's shapes, and the graph pieces that families share. */
#include "lm/model.h"
#include <stdio.h>
#include <string.h>

#define MAX_NAME 256

/* --- binding */
ig_status bind_open(const ig_weights *w, const lm_config *c, binder *ret_binder)
{
    map *bound = NULL;
    TRY(map_new((size_t)ig_weights_count(w) + 1, &bound));
    *ret_binder = (binder){.weights = w, .config = c, .bound = bound};
    return IG_OK;
}

void bind_done(binder *b)
{
    map_free(b->bound);
    *b = (binder){0};
}

static void shape_text(ig_array a, char *out, size_t cap)
{
    size_t n = 0;
    out[0] = 0;
    for (int d = 0; d < ig_ndim(a) && n < cap; d++)
        n += (size_t)snprintf(out + n, cap - n, "%s%lld", d ? ", " : "", (long long)ig_dim(a, d));
}

static bool is_float(ig_dtype t) { return t == IG_F32 || t == IG_F16 || t == IG_BF16; }

/* One tensor of shape [n] (k 0) or [n, k] into a slot. `floating`: f32, f16, bf16; else codes. */
static ig_status bind_tensor(binder *b, const char *name, int64_t n, int64_t k, bool floating,
                             ig_array *ret_slot)
{
    char have[128];
    if (!ig_weights_has(b->weights, name))
        return ig_fail(IG_EFORMAT, "tensor %s is missing: the config needs it", name);
    ig_array a = ig_weights_get(b->weights, name);
    if (ig_is_empty(a)) return ig_error_code();
    shape_text(a, have, sizeof have);
    if (ig_dim(a, 0) != n || (k ? ig_ndim(a) != 2 || ig_dim(a, 1) != k : ig_ndim(a) != 1))
        return ig_fail(IG_ESHAPE, "tensor %s has shape [%s], the config needs [%lld%s%.0lld]", name,
                       have, (long long)n, k ? ", " : "", (long long)k);
    if (floating ? !is_float(ig_type(a)) : ig_type(a) != IG_U32)
        return ig_fail(IG_EDTYPE, "tensor %s is %s, expected %s", name, ig_dtype_name(ig_type(a)),
                       floating ? "float32, float16 or bfloat16" : "uint32 codes");
    TRY(map_put(b->bound, str_of(name), 1, NULL));
    b->n_bytes += ig_nbytes(a);
    ig_hold(ret_slot, a);
    return IG_OK;
}

static ig_status bind_quantised(binder *b, const char *path, config_quant quant, linear *w)
{
    char name[MAX_NAME];
    if (w->k % quant.group || w->k * quant.bits % 32)
        return ig_fail(IG_EFORMAT, "%s: rows of %lld elements are not whole groups of %d", path,
                       (long long)w->k, quant.group);
    w->q.group = quant.group;
    w->q.bits = quant.bits;
    snprintf(name, sizeof name, "%s.weight", path);
    TRY(bind_tensor(b, name, w->n, w->k * quant.bits / 32, false, &w->q.codes));
    snprintf(name, sizeof name, "%s.scales", path);
    TRY(bind_tensor(b, name, w->n, w->k / quant.group, true, &w->q.scales));
    snprintf(name, sizeof name, "%s.biases", path);
    TRY(bind_tensor(b, name, w->n, w->k / quant.group, true, &w->q.biases));
    if (ig_type(w->q.scales) != ig_type(w->q.biases))
        return ig_fail(IG_EDTYPE, "%s: scales are %s, biases %s", path,
                       ig_dtype_name(ig_type(w->q.scales)), ig_dtype_name(ig_type(w->q.biases)));
    return IG_OK;
}

ig_status bind_linear(binder *b, const char *path, int64_t n, int64_t k, bool has_bias,
                      linear *ret_linear)
{
    char name[MAX_NAME];
    config_quant quant = config_quant_of(b->config, path);
    linear *w = ret_linear;
    w->n = n;
    w->k = k;
    if (quant.bits) {
        TRY(bind_quantised(b, path, quant, w));
    } else {
        snprintf(name, sizeof name, "%s.weight", path);
        TRY(bind_tensor(b, name, n, k, true, &w->w));
    }
    b->n_parameters += n * k;
    if (!has_bias) return IG_OK;
    snprintf(name, sizeof name, "%s.bias", path);
    return bind_vector(b, name, n, &w->bias);
}

ig_status bind_vector(binder *b, const char *name, int64_t n, ig_array *ret_slot)
{
    ig_array raw = {0};
    TRY(bind_tensor(b, name, n, 0, true, &raw));
    ig_array wide = ig_astype(raw, IG_F32);
    ig_status s = ig_eval(&wide, 1);
    if (s == IG_OK) ig_hold(ret_slot, wide);
    ig_drop(&raw);
    b->n_parameters += n;
    return s;
}

ig_status bind_finish(binder *b)
{
    int64_t value;
    for (int64_t i = 0; i < ig_weights_count(b->weights); i++) {
        const char *name = ig_weights_name(b->weights, i);
        if (!map_get(b->bound, str_of(name), &value))
            return ig_fail(IG_EFORMAT,
                           "tensor %s is in the files but the config has no place for it", name);
    }
    return IG_OK;
}

void linear_drop(linear *w)
{
    ig_drop(&w->q.codes);
    ig_drop(&w->q.scales);
    ig_drop(&w->q.biases);
    ig_drop(&w->w);
    ig_drop(&w->bias);
}

int64_t linear_bytes(const linear *w)
{
    return w->q.bits ? ig_nbytes(w->q.codes) + ig_nbytes(w->q.scales) + ig_nbytes(w->q.biases)
                     : ig_nbytes(w->w);
}

/* --- graph pieces */
activation activation_of(ig_array x, int32_t group) { return (activation){.x = x, .group = group}; }

int32_t matrix_group(const linear *const *w, int n)
{
    int32_t group = 32;
    for (int i = 0; i < n; i++)
        if (w[i]->q.group > group) group = w[i]->q.group;
    return group;
}

static bool takes_int8(const arithmetic *a, const linear *w)
{
    return a->int8 && (w->q.bits == 4 || w->q.bits == 8);
}

ig_array linear_apply(const arithmetic *a, activation *x, const linear *w)
{
    ig_array y;
    if (takes_int8(a, w)) {
        if (ig_is_empty(x->rows.rec)) x->rows = ig_int8_rows(x->x, x->group);
        y = ig_quantized_matmul_rows8(x->rows, w->q);
    } else if (w->q.bits) {
        y = ig_quantized_matmul(x->x, w->q, true);
    } else {
        y = ig_matmul(x->x, ig_transpose(w->w, NULL, 0));
    }
    return ig_is_empty(w->bias) ? y : ig_add(y, w->bias);
}

ig_array linear_rows(const linear *w, ig_array ids)
{
    return w->q.bits ? ig_take_quantized(w->q, ids) : ig_astype(ig_take(w->w, ids, 0), IG_F32);
}

ig_array split_heads(ig_array x, int64_t n_heads)
{
    return ig_reshape(x, (int64_t[]){ig_dim(x, 0), n_heads, ig_dim(x, 1) / n_heads}, 3);
}

ig_array merge_heads(ig_array x)
{
    return ig_reshape(x, (int64_t[]){ig_dim(x, 0), ig_dim(x, 1) * ig_dim(x, 2)}, 2);
}

#define FAMILY(architecture, model_type, name) extern const family family_##name;
#include "lm/models/models.def"
#undef FAMILY
static const family *const all[] = {
#define FAMILY(architecture, model_type, name) &family_##name,
#include "lm/models/models.def"
#undef FAMILY
};

const family *family_find(const char *name)
{
    for (size_t i = 0; i < N_ELEM(all); i++)
        if (!strcmp(all[i]->name, name)) return all[i];
    return NULL;
}
