/* prompt.c: text, token ids or messages as a prompt; tokens as text, whole or streaming.
 * Thread-safe: reads immutable parts only. */
#include <string.h>
#include "base/json.h"
#include "lm/lm.h"
#include "lm/template.h"

#define MAX_MESSAGES_BYTES ((size_t)64 << 20)
#define MAX_PROMPT_TOKENS ((size_t)1 << 24)

struct ig_lm_prompt {
    token_ids ids;
    char *text; /* owned: rendered text; "" for token prompts */
    size_t n_text;
};

struct ig_lm_stream {
    detokenise *d;
    buf text;
};

void ig_lm_prompt_free(ig_lm_prompt *p)
{
    if (!p) return;
    token_ids_done(&p->ids);
    mem_free(p->text);
    mem_free(p);
}
AUTO_FN(prompt_ptr, ig_lm_prompt *, ig_lm_prompt_free)

static ig_lm_prompt *prompt_new(const char *text, size_t n)
{
    AUTO(prompt_ptr) p = mem_calloc(1, sizeof *p);
    if (!p) return NULL;
    token_ids_init(&p->ids, MAX_PROMPT_TOKENS);
    p->text = mem_alloc(n + 1);
    if (!p->text) return NULL;
    if (n) memcpy(p->text, text, n);
    p->text[n] = 0;
    p->n_text = n;
    return STEAL(p);
}

ig_status ig_lm_prompt_text(const ig_lm *lm, const char *text, size_t n, int flags,
                            ig_lm_prompt **ret_prompt)
{
    AUTO(prompt_ptr) p = prompt_new(text, n);
    if (!p) return IG_ENOMEM;
    tokenizer_flags f = {.add_special = flags & IG_LM_ADD_SPECIAL,
                         .parse_special = flags & IG_LM_PARSE_SPECIAL};
    TRY(tokenizer_encode(lm->tokenizer, (str){p->text, n}, f, &p->ids));
    *ret_prompt = STEAL(p);
    return IG_OK;
}

ig_status ig_lm_prompt_tokens(const ig_lm *lm, const int32_t *ids, int64_t n,
                              ig_lm_prompt **ret_prompt)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= lm->config.vocab)
            return ig_fail(IG_EINVAL, "prompt token %lld is %d, not in a vocabulary of %lld",
                           (long long)i, ids[i], (long long)lm->config.vocab);
    AUTO(prompt_ptr) p = prompt_new("", 0);
    if (!p) return IG_ENOMEM;
    TRY(token_ids_add(&p->ids, ids, (size_t)n));
    *ret_prompt = STEAL(p);
    return IG_OK;
}

static ig_status check_role(const json_t *message, size_t i)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!json_is_object(message)) return ig_fail(IG_EINVAL, "messages[%zu]: expected an object", i);
    for (size_t k = 0; role && k < N_ELEM(roles); k++)
        if (!strcmp(role, roles[k])) return IG_OK;
    return ig_fail(IG_EINVAL,
                   "messages[%zu].role: expected system, developer, user, assistant or tool", i);
}

static ig_status encode_spans(const ig_lm *lm, const template_output *out, token_ids *ids)
{
    AUTO(mem_ptr) memory = mem_calloc(out->n_spans + 1, sizeof(tokenizer_span));
    tokenizer_span *spans = memory;
    if (!spans) return IG_ENOMEM;
    for (size_t i = 0; i < out->n_spans; i++)
        spans[i] = (tokenizer_span){{out->text + out->spans[i].offset, out->spans[i].n},
                                    out->spans[i].trusted};
    return tokenizer_encode_spans(lm->tokenizer, spans, out->n_spans, false, ids);
}

static ig_status parse_option(const char *what, const char *text, json_t **ret_json)
{
    return text ? json_parse(what, str_of(text), MAX_MESSAGES_BYTES, 64, ret_json) : IG_OK;
}

ig_status ig_lm_prompt_chat(const ig_lm *lm, const char *messages_json, size_t n,
                            const ig_lm_chat_options *options, ig_lm_prompt **ret_prompt)
{
    static const ig_lm_chat_options none = {0};
    const ig_lm_chat_options *o = options ? options : &none;
    AUTO(json_ptr) messages = NULL;
    AUTO(json_ptr) kwargs = NULL;
    AUTO(json_ptr) tools = NULL;
    AUTO(template_output) out = {0};
    const json_t *message;
    size_t i;
    if (!lm->chat)
        return ig_fail(
            IG_EUNSUPPORTED,
            "this model has no chat template: use plain completions, or pack it with one");
    TRY(json_parse("messages", (str){messages_json, n}, MAX_MESSAGES_BYTES, 64, &messages));
    TRY(parse_option("chat_template_kwargs", o->kwargs_json, &kwargs));
    TRY(parse_option("tools", o->tools_json, &tools));
    if (!json_is_array(messages) || !json_array_size(messages))
        return ig_fail(IG_EINVAL, "messages: expected a list of at least one message");
    json_array_foreach(messages, i, message) TRY(check_role(message, i));
    const template_input in = {.messages = messages,
                               .tools = tools,
                               .kwargs = kwargs,
                               .bos_token = lm->bos,
                               .eos_token = lm->eos,
                               .add_generation_prompt = !o->no_generation_prompt,
                               .date = o->date};
    TRY(template_render(lm->chat, &in, &out));
    AUTO(prompt_ptr) p = prompt_new(out.text, out.n);
    if (!p) return IG_ENOMEM;
    TRY(encode_spans(lm, &out, &p->ids));
    *ret_prompt = STEAL(p);
    return IG_OK;
}

const int32_t *ig_lm_prompt_ids(const ig_lm_prompt *p, int64_t *ret_n)
{
    *ret_n = (int64_t)p->ids.n;
    return p->ids.id;
}

const char *ig_lm_prompt_rendered(const ig_lm_prompt *p, size_t *ret_n)
{
    if (ret_n) *ret_n = p->n_text;
    return p->text;
}

static void copy_text(const buf *b, char *out, size_t cap, size_t *ret_n)
{
    size_t n = b->n < cap ? b->n : cap ? cap - 1 : 0;
    if (n) memcpy(out, b->data, n);
    if (cap) out[n] = 0;
    *ret_n = b->n;
}

ig_status ig_lm_detokenize(const ig_lm *lm, const int32_t *ids, int64_t n, char *out, size_t cap,
                           size_t *ret_n)
{
    AUTO(buf) text = {0};
    buf_init(&text, TOKENIZER_MAX_TEXT_BYTES);
    TRY(tokenizer_decode(lm->tokenizer, ids, (size_t)n, true, &text));
    copy_text(&text, out, cap, ret_n);
    return IG_OK;
}

ig_status ig_lm_token_bytes(const ig_lm *lm, int32_t id, char *out, size_t cap, size_t *ret_n)
{
    AUTO(buf) text = {0};
    buf_init(&text, TOKENIZER_MAX_TOKEN_BYTES);
    if (!tokenizer_token_bytes(lm->tokenizer, id, &text))
        return ig_fail(IG_EINVAL, "id %d has no token", id);
    TRY(buf_status(&text));
    copy_text(&text, out, cap, ret_n);
    return IG_OK;
}

bool ig_lm_is_stop(const ig_lm *lm, int32_t id) { return config_is_stop(&lm->config, id); }

AUTO_FN(stream_ptr, ig_lm_stream *, ig_lm_stream_free)

ig_status ig_lm_stream_new(const ig_lm *lm, ig_lm_stream **ret_stream)
{
    AUTO(stream_ptr) s = mem_calloc(1, sizeof *s);
    if (!s) return IG_ENOMEM;
    buf_init(&s->text, TOKENIZER_MAX_TEXT_BYTES);
    TRY(detokenise_new(lm->tokenizer, true, &s->d));
    *ret_stream = STEAL(s);
    return IG_OK;
}

void ig_lm_stream_free(ig_lm_stream *s)
{
    if (!s) return;
    detokenise_free(s->d);
    buf_done(&s->text);
    mem_free(s);
}

static void give(const ig_lm_stream *s, const char **ret_text, size_t *ret_n)
{
    *ret_text = s->text.data ? s->text.data : "";
    *ret_n = s->text.n;
}

ig_status ig_lm_stream_push(ig_lm_stream *s, int32_t id, const char **ret_text, size_t *ret_n)
{
    buf_clear(&s->text);
    TRY(detokenise_push(s->d, id, &s->text));
    give(s, ret_text, ret_n);
    return IG_OK;
}

ig_status ig_lm_stream_flush(ig_lm_stream *s, const char **ret_text, size_t *ret_n)
{
    buf_clear(&s->text);
    TRY(detokenise_flush(s->d, &s->text));
    give(s, ret_text, ret_n);
    return IG_OK;
}
