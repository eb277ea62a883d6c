/* source_hf.c: a Hugging Face directory (safetensors in f32, f16, bf16, or already quantised by
 * MLX) as a source. */
#include <string.h>
#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "ingot/io.h"
#include "server/source_int.h"

#define MAX_CONFIG ((size_t)1 << 20)

typedef struct hf {
    ig_weights *weights;
    json_t *config; /* owned */
} hf;

static void close_hf(void *impl)
{
    hf *h = impl;
    ig_weights_free(h->weights);
    json_decref(h->config);
    mem_free(h);
}

static bool ends(const char *name, const char *tail)
{
    return str_ends(str_of(name), str_of(tail));
}

/* Buffers that older checkpoints carry and nothing reads; an output matrix that the config says is
 * the embedding. */
static bool is_unused(const hf *h, const char *name)
{
    return ends(name, "rotary_emb.inv_freq") ||
           (json_is_true(json_object_get(h->config, "tie_word_embeddings")) &&
            !strncmp(name, "lm_head.", 8));
}

static const char *type_name(ig_dtype t)
{
    return t == IG_F32    ? "F32"
           : t == IG_F16  ? "F16"
           : t == IG_BF16 ? "BF16"
           : t == IG_U32  ? "packed"
                          : NULL;
}

/* Weights behind the packed codes `name`: a scale is one group's, and config.json says how long
 * groups are, for all or for this matrix. */
static ig_status packed_parameters(const hf *h, const char *name, int64_t *ret_n)
{
    AUTO(buf) b = {0};
    buf_init(&b, MAX_CONFIG);
    buf_printf(&b, "%.*s", (int)(strlen(name) - (ends(name, ".weight") ? 7 : 0)), name);
    TRY(buf_status(&b));
    const json_t *all = json_object_get(h->config, "quantization"),
                 *own = json_object_get(json_object_get(all, b.data), "group_size"),
                 *group = own ? own : json_object_get(all, "group_size");
    int64_t size = json_is_integer(group) ? json_integer_value(group) : 0;
    buf_str(&b, ".scales");
    TRY(buf_status(&b));
    ig_array scales = ig_weights_get(h->weights, b.data);
    if (ig_is_empty(scales)) return ig_error_code();
    if (size < 1 || size > 128)
        return ig_fail(IG_EFORMAT, "%s: packed codes, but config.json gives no group_size", name);
    *ret_n = ig_size(scales) * size;
    return IG_OK;
}

static ig_status add_tensor(source *s, const hf *h, const char *name)
{
    source_tensor *t;
    ig_array a = ig_weights_get(h->weights, name);
    if (ig_is_empty(a)) return ig_error_code();
    if (ig_ndim(a) < 1 || ig_ndim(a) > 2 || !type_name(ig_type(a)))
        return ig_fail(
            IG_EUNSUPPORTED,
            "%s: tensor %s: %s with %d dims; expected float32, float16 or bfloat16 with 1 or 2",
            s->path, name, ig_dtype_name(ig_type(a)), ig_ndim(a));
    TRY(source_add(s, name, &t));
    t->ndim = ig_ndim(a);
    t->n = ig_dim(a, 0);
    t->k = t->ndim == 2 ? ig_dim(a, 1) : 1;
    t->dtype = ig_type(a);
    t->type_name = type_name(t->dtype);
    t->is_packed =
        t->dtype == IG_U32 || (t->ndim == 2 && (ends(name, ".scales") || ends(name, ".biases")));
    t->is_matrix = t->ndim == 2 && !t->is_packed && ends(name, ".weight");
    t->n_parameters = t->is_packed ? 0 : t->n * t->k;
    return t->dtype == IG_U32 ? packed_parameters(h, name, &t->n_parameters) : IG_OK;
}

static ig_status add_all(source *s, const hf *h)
{
    for (int64_t i = 0; i < ig_weights_count(h->weights); i++) {
        const char *name = ig_weights_name(h->weights, i);
        if (is_unused(h, name)) continue;
        ig_scope *scope = ig_scope_open();
        ig_status added = add_tensor(s, h, name), closed = ig_scope_close(scope);
        if (added != IG_OK) return added;
        TRY(closed);
    }
    return IG_OK;
}

static ig_status raw_rows(const source *s, const source_tensor *t, int64_t row, int64_t n,
                          void *out)
{
    const hf *h = s->impl;
    const void *data = NULL;
    size_t row_bytes = (size_t)t->k * ig_dtype_size(t->dtype);
    ig_scope *scope = ig_scope_open();
    ig_status got = ig_data(ig_weights_get(h->weights, t->name), &data);
    if (got == IG_OK)
        memcpy(out, (const char *)data + (size_t)row * row_bytes, (size_t)n * row_bytes);
    ig_status closed = ig_scope_close(scope);
    return got != IG_OK ? got : closed;
}

static ig_status rows(const source *s, const source_tensor *t, int64_t row, int64_t n, float *out)
{
    if (t->dtype == IG_F32) return raw_rows(s, t, row, n, out);
    size_t count = (size_t)(n * t->k);
    AUTO(mem_ptr) memory = mem_alloc(count * sizeof(uint16_t));
    uint16_t *half = memory;
    if (!half) return IG_ENOMEM;
    TRY(raw_rows(s, t, row, n, half));
    for (size_t i = 0; i < count; i++)
        out[i] = t->dtype == IG_F16 ? f16_to_f32(half[i]) : bf16_to_f32(half[i]);
    return IG_OK;
}

static ig_status affine(const source *s, const source_tensor *t, int64_t row, int64_t n,
                        uint8_t *codes, uint16_t *scales, uint16_t *biases)
{
    (void)row, (void)n, (void)codes, (void)scales, (void)biases;
    return ig_fail(IG_EUNSUPPORTED, "%s: tensor %s has no affine groups", s->path, t->name);
}

static ig_status dump(const json_t *v, buf *ret_json)
{
    json_write(v, ret_json);
    return buf_status(ret_json);
}

static ig_status config(const source *s, buf *ret_json)
{
    const hf *h = s->impl;
    AUTO(json_ptr) copy = json_copy(h->config);
    if (!copy) return ig_fail(IG_ENOMEM, "no memory to copy config.json");
    json_object_del(copy, "quantization");
    json_object_del(copy, "quantization_config");
    return dump(copy, ret_json);
}

static ig_status quantization(const source *s, buf *ret_json)
{
    const hf *h = s->impl;
    const json_t *q = json_object_get(h->config, "quantization");
    return json_is_object(q) ? dump(q, ret_json) : IG_OK;
}

static ig_status files(const source *s, source_file *list, int *n)
{
    static const char *const names[] = {
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
        "special_tokens_map.json",
        "LICENSE",
        "README.md",
    };
    for (size_t i = 0; i < N_ELEM(names); i++) {
        AUTO(buf) path = {0};
        TRY(file_join(&path, s->path, names[i]));
        if (!file_exists(path.data)) {
            if (!i)
                return ig_fail(IG_ENOTFOUND,
                               "%s: not there; save the tokenizer in its fast form first",
                               path.data);
            continue;
        }
        source_file *f = &list[(*n)++];
        f->name = names[i];
        TRY(file_read(path.data, SOURCE_MAX_TEXT, &f->content));
    }
    return IG_OK;
}

static const source_format format_hf = {"safetensors", rows,         raw_rows, affine,
                                        config,        quantization, files,    close_hf};

ig_status source_open_hf(source *s)
{
    AUTO(buf) path = {0}, text = {0};
    buf_init(&text, 0);
    hf *h = mem_calloc(1, sizeof *h);
    if (!h) {
        buf_init(&path, 0);
        return IG_ENOMEM;
    }
    s->impl = h;
    s->format = &format_hf;
    TRY(file_join(&path, s->path, "config.json"));
    TRY(file_read(path.data, MAX_CONFIG, &text));
    TRY(json_parse(path.data, (str){text.data, text.n}, MAX_CONFIG, 16, &h->config));
    if (!json_is_object(h->config)) return ig_fail(IG_EFORMAT, "%s: expected an object", path.data);
    const json_t *foreign = json_object_get(h->config, "quantization_config");
    if (foreign && !json_is_null(foreign) && !json_object_get(h->config, "quantization"))
        return ig_fail(IG_EUNSUPPORTED,
                       "%s: quantization_config of another tool; pack from the unquantised model",
                       path.data);
    TRY(ig_weights_open(s->path, &h->weights));
    return add_all(s, h);
}
