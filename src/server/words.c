/* words.c: prompts and answers as text and as tokens (contract in words.h). */
#define _GNU_SOURCE /* memmem */
#include "server/words.h"
#include <string.h>
#include "base/json.h"

#define MAX_ANSWER ((size_t)1 << 28)

static ig_status chat_prompt(const ig_lm *lm, const api_request *r, const char *date, size_t max,
                             ig_lm_prompt **ret_prompt)
{
    AUTO(buf) messages = {0}, kwargs = {0};
    buf_init(&messages, max);
    buf_init(&kwargs, max);
    json_write(r->messages, &messages);
    if (r->kwargs) json_write(r->kwargs, &kwargs);
    TRY(buf_status(&messages));
    TRY(buf_status(&kwargs));
    ig_lm_chat_options o = {.date = date, .kwargs_json = kwargs.data};
    return ig_lm_prompt_chat(lm, messages.data, messages.n, &o, ret_prompt);
}

static ig_status ids_prompt(const ig_lm *lm, const json_t *list, ig_lm_prompt **ret_prompt)
{
    size_t n = json_array_size(list);
    AUTO(mem_ptr) memory = mem_calloc(n + 1, sizeof(int32_t));
    int32_t *ids = memory;
    if (!ids) return IG_ENOMEM;
    for (size_t i = 0; i < n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return ig_lm_prompt_tokens(lm, ids, (int64_t)n, ret_prompt);
}

ig_status words_prompt(const ig_lm *lm, const api_request *r, const char *date, size_t max,
                       ig_lm_prompt **ret_prompt)
{
    if (r->kind == API_CHAT) return chat_prompt(lm, r, date, max, ret_prompt);
    if (json_is_array(r->prompt)) return ids_prompt(lm, r->prompt, ret_prompt);
    return ig_lm_prompt_text(lm, json_string_value(r->prompt), json_string_length(r->prompt),
                             IG_LM_ADD_SPECIAL, ret_prompt);
}

int64_t words_first_stop(const api_request *r, str text)
{
    int64_t first = -1;
    for (int32_t i = 0; i < r->n_stops; i++) {
        const char *at = text.n ? memmem(text.p, text.n, r->stops[i].p, r->stops[i].n) : NULL;
        if (at && (first < 0 || at - text.p < first)) first = at - text.p;
    }
    return first;
}

/* What stops a stream stops it before its last bytes are flushed. */
static bool cut(const api_request *r, buf *text)
{
    int64_t stop = words_first_stop(r, (str){text->data, text->n});
    if (stop >= 0) text->n = (size_t)stop;
    return stop >= 0;
}

static ig_status spell(ig_lm_stream *s, const ig_lm *lm, const api_request *r, const int32_t *ids,
                       int64_t n, buf *text, bool *ret_cut)
{
    const char *part;
    size_t n_part;
    for (int64_t i = 0; i < n; i++) {
        if (ig_lm_is_stop(lm, ids[i])) continue;
        TRY(ig_lm_stream_push(s, ids[i], &part, &n_part));
        buf_add(text, part, n_part);
    }
    *ret_cut = cut(r, text);
    if (*ret_cut) return buf_status(text);
    TRY(ig_lm_stream_flush(s, &part, &n_part));
    buf_add(text, part, n_part);
    *ret_cut = cut(r, text);
    return buf_status(text);
}

ig_status words_answer(const ig_lm *lm, const api_request *r, const int32_t *ids, int64_t n,
                       buf *ret_text, bool *ret_cut)
{
    ig_lm_stream *s = NULL;
    buf_init(ret_text, MAX_ANSWER);
    TRY(ig_lm_stream_new(lm, &s));
    ig_status status = spell(s, lm, r, ids, n, ret_text, ret_cut);
    ig_lm_stream_free(s);
    return status;
}
