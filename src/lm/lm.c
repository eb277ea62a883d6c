/* lm.c: opens a model directory, binds it, gives it pages; facts about it. Every step of opening
 * can fail and leaves nothing behind. */
#include "lm/lm.h"
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "ingot/device.h"
#include "ingot/fast.h"
#include "lm/rope_table.h"
#include "lm/template.h"

#define MAX_TEXT_BYTES ((size_t)4 << 20)
#define DEFAULT_CONTEXT 8192

static void default_options(const lm_config *c, ig_lm_options *o)
{
    if (!o->context) o->context = c->context < DEFAULT_CONTEXT ? c->context : DEFAULT_CONTEXT;
    if (!o->kv_tokens) o->kv_tokens = 4 * o->context;
    if (!o->kv_type) o->kv_type = IG_F16;
    if (!o->max_tokens) o->max_tokens = 512;
    if (!o->max_sessions) o->max_sessions = 64;
    if (!o->max_outputs) o->max_outputs = 64;
}

static ig_status check_options(const lm_config *c, const ig_lm_options *o)
{
    int64_t longest = c->context < ROPE_TABLE_MAX ? c->context : ROPE_TABLE_MAX;
    const struct {
        const char *name;
        int64_t v, most;
    } range[] = {
        {"context", o->context, longest},         {"kv_tokens", o->kv_tokens, (int64_t)1 << 31},
        {"max_tokens", o->max_tokens, 1 << 16},   {"max_sessions", o->max_sessions, 4096},
        {"max_outputs", o->max_outputs, 1 << 16},
    };
    for (size_t i = 0; i < N_ELEM(range); i++)
        if (range[i].v < 1 || range[i].v > range[i].most)
            return ig_fail(IG_EINVAL, "%s %lld: this model takes 1 to %lld", range[i].name,
                           (long long)range[i].v, (long long)range[i].most);
    if (!ig_page_bytes(c->kv_heads, c->head_dim, o->kv_type))
        return ig_fail(IG_EINVAL, "KV type %s: float32, float16, bfloat16 or int8 is possible",
                       ig_dtype_name(o->kv_type));
    if (o->arithmetic != IG_LM_INT8 && o->arithmetic != IG_LM_EXACT)
        return ig_fail(IG_EINVAL, "arithmetic %d does not exist", (int)o->arithmetic);
    return IG_OK;
}

/* Reads dir/name; *ret_found false when it is not there and was not required. */
static ig_status read_part(const char *dir, const char *name, size_t max, bool required,
                           buf *ret_path, buf *ret_text, bool *ret_found)
{
    TRY(file_join(ret_path, dir, name));
    *ret_found = file_exists(ret_path->data);
    if (!*ret_found && !required) return IG_OK;
    return file_read(ret_path->data, max, ret_text);
}

static ig_status open_config(ig_lm *lm, const char *dir)
{
    AUTO(buf) path = {0}, text = {0}, generation_path = {0}, generation = {0};
    bool found;
    buf_init(&path, 0), buf_init(&text, 0), buf_init(&generation_path, 0), buf_init(&generation, 0);
    TRY(read_part(dir, "config.json", CONFIG_MAX_BYTES, true, &path, &text, &found));
    TRY(config_read(path.data, (str){text.data, text.n}, &lm->config));
    TRY(read_part(dir, "generation_config.json", CONFIG_MAX_BYTES, false, &generation_path,
                  &generation, &found));
    if (found)
        TRY(config_read_generation(generation_path.data, (str){generation.data, generation.n},
                                   &lm->config));
    return IG_OK;
}

static ig_status open_tokenizer(ig_lm *lm, const char *dir)
{
    AUTO(buf) path = {0}, text = {0};
    bool found;
    buf_init(&path, 0), buf_init(&text, 0);
    TRY(read_part(dir, "tokenizer.json", TOKENIZER_MAX_JSON_BYTES, true, &path, &text, &found));
    TRY(tokenizer_open(path.data, (str){text.data, text.n}, &lm->tokenizer));
    if ((int64_t)tokenizer_vocab_size(lm->tokenizer) > lm->config.vocab)
        return ig_fail(IG_EFORMAT, "%s: %zu tokens, but config.json has a vocab_size of %lld",
                       path.data, tokenizer_vocab_size(lm->tokenizer), (long long)lm->config.vocab);
    return IG_OK;
}

/* "bos_token": text, or an object with "content". */
static ig_status token_text(const char *what, const json_t *root, const char *key, char **ret_text)
{
    const json_t *v = json_object_get(root, key);
    const char *s =
        json_is_object(v) ? json_string_value(json_object_get(v, "content")) : json_string_value(v);
    if (v && !json_is_null(v) && !s) return ig_fail(IG_EFORMAT, "%s: %s: expected text", what, key);
    *ret_text = mem_strdup(s ? s : "");
    return *ret_text ? IG_OK : IG_ENOMEM;
}

/* The text of "chat_template": a string, or the list entry named "default". NULL when absent. */
static const json_t *template_text(const json_t *root)
{
    const json_t *v = json_object_get(root, "chat_template"), *entry;
    size_t i;
    if (!json_is_array(v)) return json_is_string(v) ? v : NULL;
    json_array_foreach(v, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name && !strcmp(name, "default")) return json_object_get(entry, "template");
    }
    return NULL;
}

static ig_status add_stop(ig_lm *lm, const char *token)
{
    int32_t id;
    if (!*token || !tokenizer_id(lm->tokenizer, str_of(token), &id) ||
        config_is_stop(&lm->config, id))
        return IG_OK;
    if (lm->config.n_stops == CONFIG_MAX_STOPS)
        return ig_fail(IG_ELIMIT, "more than %d stop tokens", CONFIG_MAX_STOPS);
    lm->config.stop[lm->config.n_stops++] = id;
    return IG_OK;
}

/* tokenizer_config.json and chat_template.jinja: the template, BOS and EOS. The file wins over the
 * config's key. */
static ig_status open_chat(ig_lm *lm, const char *dir)
{
    AUTO(buf) path = {0}, text = {0}, jinja_path = {0}, jinja = {0};
    AUTO(json_ptr) root = NULL;
    bool found;
    buf_init(&path, 0), buf_init(&text, 0), buf_init(&jinja_path, 0), buf_init(&jinja, 0);
    TRY(read_part(dir, "tokenizer_config.json", MAX_TEXT_BYTES, false, &path, &text, &found));
    if (found) TRY(json_parse(path.data, (str){text.data, text.n}, MAX_TEXT_BYTES, 16, &root));
    TRY(token_text(path.data, root, "bos_token", &lm->bos));
    TRY(token_text(path.data, root, "eos_token", &lm->eos));
    TRY(add_stop(lm, lm->eos));
    TRY(read_part(dir, "chat_template.jinja", TEMPLATE_MAX_BYTES, false, &jinja_path, &jinja,
                  &found));
    if (found) return template_parse(jinja_path.data, (str){jinja.data, jinja.n}, &lm->chat);
    const json_t *v = template_text(root);
    if (!v) return IG_OK;
    return template_parse(path.data, (str){json_string_value(v), json_string_length(v)}, &lm->chat);
}

static ig_status bind_all(ig_lm *lm)
{
    AUTO(binder) b = {0};
    TRY(bind_open(lm->weights, &lm->config, &b));
    TRY(lm->family->bind(&b, &lm->model));
    TRY(bind_finish(&b));
    lm->n_parameters = b.n_parameters;
    lm->n_bytes = b.n_bytes;
    return IG_OK;
}

static ig_status open_weights(ig_lm *lm, const char *dir)
{
    TRY(ig_weights_open(dir, &lm->weights));
    lm->family = family_find(lm->config.family);
    ig_scope *scope = ig_scope_open();
    if (!scope) return IG_ENOMEM;
    ig_status bound = bind_all(lm), closed = ig_scope_close(scope);
    return bound != IG_OK ? bound : closed;
}

static ig_status open_rope(ig_lm *lm)
{
    int64_t half = lm->config.head_dim / 2, dims[3] = {lm->options.context, 2, half};
    float *table = mem_aligned(64, (size_t)(lm->options.context * 2 * half) * sizeof *table);
    if (!table) return IG_ENOMEM;
    rope_table_fill(&lm->config, lm->options.context, table);
    ig_scope *scope = ig_scope_open();
    size_t n_bytes = (size_t)(dims[0] * 2 * half) * sizeof *table;
    ig_array a = ig_array_adopt(table, n_bytes, IG_F32, dims, 3, mem_free, table);
    if (ig_is_empty(a)) mem_free(table);
    ig_hold(&lm->rope, a);
    ig_status closed = ig_scope_close(scope);
    return ig_is_empty(lm->rope) && closed == IG_OK ? IG_ENOMEM : closed;
}

/* The ledger of pages; their memory is taken by lm_plan. */
static ig_status open_pool(ig_lm *lm)
{
    int64_t n_pages = (lm->options.kv_tokens + IG_PAGE_POSITIONS - 1) / IG_PAGE_POSITIONS;
    lm->max_pages = (lm->options.context + IG_PAGE_POSITIONS - 1) / IG_PAGE_POSITIONS;
    TRY(kvpool_new((int32_t)n_pages, &lm->pool));
    lm->kv = mem_calloc((size_t)lm->config.layers, sizeof *lm->kv);
    lm->scratch = mem_aligned(64, sampler_scratch_bytes(lm->config.vocab));
    return lm->kv && lm->scratch ? IG_OK : IG_ENOMEM;
}

static int64_t kv_bytes(const ig_lm *lm)
{
    const lm_config *c = &lm->config;
    return ig_page_bytes(c->kv_heads, c->head_dim, lm->options.kv_type) * kvpool_n_pages(lm->pool) *
           c->layers;
}

AUTO_FN(lm_ptr, ig_lm *, ig_lm_close)

ig_status ig_lm_open(const char *model_dir, const ig_lm_options *options, ig_lm **ret_lm)
{
    AUTO(lm_ptr) lm = mem_calloc(1, sizeof *lm);
    if (!lm) return IG_ENOMEM;
    if (!model_dir) return ig_fail(IG_EINVAL, "ig_lm_open: no directory");
    int64_t begin = clock_mono_us();
    if (options) lm->options = *options;
    TRY(open_config(lm, model_dir));
    default_options(&lm->config, &lm->options);
    TRY(check_options(&lm->config, &lm->options));
    lm->arith = (arithmetic){lm->options.arithmetic == IG_LM_INT8, lm->options.kv_type};
    snprintf(lm->kset, sizeof lm->kset, "%s%s", ig_kset(), lm->arith.int8 ? "" : "/exact");
    TRY(open_tokenizer(lm, model_dir));
    TRY(open_chat(lm, model_dir));
    int64_t text_open = clock_mono_us();
    TRY(open_weights(lm, model_dir));
    TRY(open_rope(lm));
    TRY(open_pool(lm));
    lm->n_to_touch = kv_bytes(lm);
    for (int64_t i = 0; i < ig_lm_n_files(lm); i++)
        lm->n_to_touch += ig_weights_file_at(lm->weights, i).n_bytes;
    lm->times.text_us = text_open - begin;
    lm->times.bind_us = clock_mono_us() - text_open;
    *ret_lm = STEAL(lm);
    return IG_OK;
}

void ig_lm_close(ig_lm *lm)
{
    if (!lm) return;
    ig_plan_free(lm->plan);
    if (lm->family && lm->model) lm->family->free(lm->model);
    ig_drop(&lm->rope);
    for (int64_t i = 0; lm->kv && i < lm->config.layers; i++) ig_state_free(lm->kv[i]);
    mem_free(lm->kv);
    kvpool_free(lm->pool);
    mem_free(lm->scratch);
    ig_weights_free(lm->weights);
    tokenizer_free(lm->tokenizer);
    template_free(lm->chat);
    mem_free(lm->bos);
    mem_free(lm->eos);
    config_done(&lm->config);
    mem_free(lm);
}

ig_status ig_lm_warm(ig_lm *lm)
{
    int64_t begin = clock_mono_us(), n_files = ig_weights_n_files(lm->weights);
    for (int64_t i = 0; i < n_files; i++) {
        ig_weights_populate(lm->weights, i);
        lm_touched(lm, ig_weights_file_at(lm->weights, i).n_bytes);
    }
    lm->times.touch_us += clock_mono_us() - begin;
    TRY(lm_plan(lm));
    int64_t planned = clock_mono_us();
    const int64_t one[N_SYMS] = {[SYM_TOKENS] = 1, [SYM_SEQS] = 1, [SYM_OUT] = 1};
    TRY(ig_plan_tune(lm->plan, one, N_SYMS));
    lm->times.tune_us = clock_mono_us() - planned;
    return IG_OK;
}

void ig_lm_get_facts(const ig_lm *lm, ig_lm_facts *f)
{
    const lm_config *c = &lm->config;
    int64_t page_bytes = ig_page_bytes(c->kv_heads, c->head_dim, lm->options.kv_type);
    ig_plan_stats plan = {0};
    if (lm->plan) ig_plan_get_stats(lm->plan, &plan);
    *f = (ig_lm_facts){
        .family = c->family,
        .vocab = c->vocab,
        .layers = c->layers,
        .hidden = c->hidden,
        .heads = c->heads,
        .kv_heads = c->kv_heads,
        .head_dim = c->head_dim,
        .ffn = c->ffn,
        .context = lm->options.context,
        .model_context = c->context,
        .parameters = lm->n_parameters,
        .file_bytes = lm->n_bytes,
        .weight_bytes = lm->family->step_bytes(lm->model),
        .kv_bytes_per_token = page_bytes / IG_PAGE_POSITIONS * c->layers,
        .kv_pool_bytes = kv_bytes(lm),
        .kv_pages = kvpool_n_pages(lm->pool),
        .kv_pages_free = kvpool_n_free(lm->pool),
        .kv_pages_cached = kvpool_n_cached(lm->pool),
        .arena_bytes = plan.arena_bytes,
        .n_plans = lm->n_plans,
        .times = lm->times,
        .kset = lm->kset,
        .kv_type = ig_dtype_name(lm->options.kv_type),
    };
}

ig_status ig_lm_unchanged(const ig_lm *lm) { return ig_weights_unchanged(lm->weights); }

int64_t ig_lm_n_files(const ig_lm *lm) { return ig_weights_n_files(lm->weights); }

ig_status ig_lm_file_at(const ig_lm *lm, int64_t i, struct ig_weights_file *ret_file)
{
    if (i < 0 || i >= ig_weights_n_files(lm->weights))
        return ig_fail(IG_EINVAL, "file %lld of %lld", (long long)i,
                       (long long)ig_weights_n_files(lm->weights));
    *ret_file = ig_weights_file_at(lm->weights, i);
    return IG_OK;
}
