/* api.c: see api.h; the fields are in api.def. Every refusal names the field and what was
 * expected. */
#include "server/api.h"
#include <float.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"

typedef enum handling { USED, IGNORED, REFUSED } handling;
typedef struct field {
    const char *name;
    bool chat, completions;
    handling handling;
} field;
#define ON_CHAT true, false
#define ON_COMPLETIONS false, true
#define ON_BOTH true, true
static const field fields[] = {
#define FIELD(endpoint, name, handling) {#name, ON_##endpoint, handling},
#include "server/api.def"
#undef FIELD
};

void api_error_set(api_error *e, int http, const char *type, const char *code, const char *param,
                   const char *format, ...)
{
    va_list args;
    *e = (api_error){.http = http, .type = type, .code = code};
    if (param) snprintf(e->param, sizeof e->param, "%s", param);
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
}

#define BAD(e, param, ...) \
    (api_error_set(e, 400, "invalid_request_error", "invalid_value", param, __VA_ARGS__), false)

static const field *find_field(api_kind kind, const char *name)
{
    for (size_t i = 0; i < N_ELEM(fields); i++)
        if (!strcmp(fields[i].name, name) &&
            (kind == API_CHAT ? fields[i].chat : fields[i].completions))
            return &fields[i];
    return NULL;
}

/* null, false, "", [], {}: a client that spells out a default. */
static bool is_absent(const json_t *v)
{
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_string(v) && !json_string_length(v)) ||
           (json_is_array(v) && !json_array_size(v)) || (json_is_object(v) && !json_object_size(v));
}

static bool sort_fields(api_request *r, api_error *e)
{
    const char *key;
    json_t *value;
    json_object_foreach(r->root, key, value)
    {
        const field *f = find_field(r->kind, key);
        if (!f) return BAD(e, key, "unknown field '%.60s': remove it", key);
        if (f->handling == REFUSED && !is_absent(value)) {
            api_error_set(e, 400, "invalid_request_error", "unsupported_parameter", key,
                          "'%s' is not supported by this server", key);
            return false;
        }
        if (f->handling == IGNORED && !json_is_null(value) && r->n_ignored < API_MAX_IGNORED)
            r->ignored[r->n_ignored++] = str_of(f->name);
    }
    return true;
}

/* JSON text may hold NUL: only the whole of it counts. */
static bool is_text(const json_t *v, const char *text)
{
    return json_is_string(v) &&
           str_eq((str){json_string_value(v), json_string_length(v)}, str_of(text));
}

static const json_t *value_of(const api_request *r, const char *key)
{
    const json_t *v = json_object_get(r->root, key);
    return json_is_null(v) ? NULL : v;
}

static bool get_number(const api_request *r, const char *key, double lo, double hi, float *ret,
                       api_error *e)
{
    const json_t *v = value_of(r, key);
    if (!v) return true;
    double d = json_number_value(v);
    if (!json_is_number(v) || !(d >= lo && d <= hi))
        return BAD(e, key, "'%s' must be a number between %g and %g", key, lo, hi);
    *ret = (float)d;
    return true;
}

static bool get_int(const api_request *r, const char *key, int64_t lo, int64_t hi, int64_t *ret,
                    api_error *e)
{
    const json_t *v = value_of(r, key);
    if (!v) return true;
    if (!json_is_integer(v) || json_integer_value(v) < lo || json_integer_value(v) > hi)
        return BAD(e, key, "'%s' must be a whole number between %lld and %lld", key, (long long)lo,
                   (long long)hi);
    *ret = json_integer_value(v);
    return true;
}

static bool get_bool(const api_request *r, const char *key, bool *ret, api_error *e)
{
    const json_t *v = value_of(r, key);
    if (!v) return true;
    if (!json_is_boolean(v)) return BAD(e, key, "'%s' must be true or false", key);
    *ret = json_is_true(v);
    return true;
}

static bool get_stream(api_request *r, api_error *e)
{
    const json_t *o = value_of(r, "stream_options"), *usage;
    if (!get_bool(r, "stream", &r->stream, e)) return false;
    if (!o) return true;
    if (!json_is_object(o)) return BAD(e, "stream_options", "'stream_options' must be an object");
    if (!r->stream) return BAD(e, "stream_options", "'stream_options' needs 'stream': true");
    usage = json_object_get(o, "include_usage");
    if (usage && !json_is_null(usage) && !json_is_boolean(usage))
        return BAD(e, "stream_options.include_usage", "'include_usage' must be true or false");
    r->include_usage = json_is_true(usage);
    return true;
}

static bool add_stop(api_request *r, const json_t *v, api_error *e)
{
    if (!json_is_string(v) || !json_string_length(v) || json_string_length(v) > API_MAX_STOP_BYTES)
        return BAD(e, "stop", "'stop' must hold strings of 1 to %d bytes", API_MAX_STOP_BYTES);
    if (r->n_stops == API_MAX_STOPS)
        return BAD(e, "stop", "'stop' may hold at most %d strings", API_MAX_STOPS);
    r->stops[r->n_stops++] = (str){json_string_value(v), json_string_length(v)};
    return true;
}

static bool get_stops(api_request *r, api_error *e)
{
    const json_t *v = value_of(r, "stop"), *entry;
    size_t i;
    if (!v) return true;
    if (json_is_string(v)) return json_string_length(v) ? add_stop(r, v, e) : true;
    if (!json_is_array(v)) return BAD(e, "stop", "'stop' must be a string or a list of strings");
    json_array_foreach(v, i, entry) if (!add_stop(r, entry, e)) return false;
    return true;
}

static bool get_bias(api_request *r, int64_t vocab, api_error *e)
{
    const json_t *v = value_of(r, "logit_bias");
    const char *key;
    json_t *value;
    if (!v) return true;
    if (!json_is_object(v) || json_object_size(v) > IG_LM_MAX_BIAS)
        return BAD(e, "logit_bias", "'logit_bias' must be an object of at most %d token ids",
                   IG_LM_MAX_BIAS);
    r->bias = mem_calloc(json_object_size(v) + 1, sizeof *r->bias);
    if (!r->bias) return BAD(e, "logit_bias", "out of memory");
    json_object_foreach((json_t *)v, key, value)
    {
        int64_t id;
        double bias = json_number_value(value);
        if (!str_int(str_of(key), 0, vocab - 1, &id))
            return BAD(e, "logit_bias", "'logit_bias': '%.40s' is not a token id below %lld", key,
                       (long long)vocab);
        if (!json_is_number(value) || !(bias >= -100 && bias <= 100))
            return BAD(e, "logit_bias", "'logit_bias': biases are numbers between -100 and 100");
        r->bias[r->sampling.n_bias++] = (ig_lm_bias){(int32_t)id, (float)bias};
    }
    r->sampling.bias = r->bias;
    return true;
}

/* chat: logprobs true with top_logprobs 0..20; completions: logprobs 0..5. */
static bool get_logprobs(api_request *r, api_error *e)
{
    int64_t n = 0;
    if (r->kind == API_CHAT) {
        if (!get_bool(r, "logprobs", &r->logprobs, e) ||
            !get_int(r, "top_logprobs", 0, IG_LM_MAX_LOGPROBS, &n, e))
            return false;
        if (n && !r->logprobs)
            return BAD(e, "top_logprobs", "'top_logprobs' needs 'logprobs': true");
    } else {
        r->logprobs = value_of(r, "logprobs") != NULL;
        if (!get_int(r, "logprobs", 0, 5, &n, e)) return false;
    }
    r->sampling.n_logprobs = r->logprobs ? (int32_t)(n ? n : 1) : 0;
    return true;
}

static bool get_sampling(api_request *r, int64_t vocab, api_error *e)
{
    int64_t top_k = 0, n = 1, seed = 0;
    ig_lm_sampling *s = &r->sampling;
    s->temperature = 1;
    bool ok = get_number(r, "temperature", 0, 2, &s->temperature, e) &&
              get_number(r, "top_p", 0, 1, &s->top_p, e) &&
              get_number(r, "min_p", 0, 1, &s->min_p, e) &&
              get_int(r, "top_k", 0, INT32_MAX, &top_k, e) &&
              get_number(r, "repetition_penalty", 0.01, 10, &s->repetition_penalty, e) &&
              get_number(r, "presence_penalty", -2, 2, &s->presence_penalty, e) &&
              get_number(r, "frequency_penalty", -2, 2, &s->frequency_penalty, e) &&
              get_int(r, "n", 1, API_MAX_CHOICES, &n, e) &&
              get_int(r, "seed", INT64_MIN, INT64_MAX, &seed, e) && get_bias(r, vocab, e) &&
              get_logprobs(r, e);
    if (ok && value_of(r, "top_p") && s->top_p == 0)
        s->top_p = FLT_MIN; /* the sampler's 0 is "off", a client's is "only the first" */
    s->top_k = (int32_t)top_k;
    r->n = (int32_t)n;
    r->has_seed = value_of(r, "seed") != NULL;
    s->seed = (uint64_t)seed;
    return ok;
}

static bool get_max_tokens(api_request *r, api_error *e)
{
    int64_t old = 0, new = 0;
    if (!get_int(r, "max_tokens", 1, (int64_t)1 << 30, &old, e)) return false;
    if (r->kind == API_CHAT && !get_int(r, "max_completion_tokens", 1, (int64_t)1 << 30, &new, e))
        return false;
    if (old && new &&old != new)
        return BAD(e, "max_tokens",
                   "'max_tokens' and 'max_completion_tokens' contradict each other");
    r->max_tokens = new ? new : old;
    return true;
}

static bool check_part(const json_t *part, size_t i, api_error *e)
{
    if (is_text(json_object_get(part, "type"), "text") &&
        json_is_string(json_object_get(part, "text")))
        return true;
    char param[48];
    snprintf(param, sizeof param, "messages[%zu].content", i);
    api_error_set(e, 400, "invalid_request_error", "unsupported_content", param,
                  "'%s': only text parts ({\"type\": \"text\", \"text\": ...}) are supported",
                  param);
    return false;
}

/* Content is text, or a list of text parts that are joined in place; null counts as empty. */
static bool check_message(json_t *message, size_t i, api_error *e)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    char param[48];
    snprintf(param, sizeof param, "messages[%zu]", i);
    if (!json_is_object(message)) return BAD(e, param, "'%s' must be an object", param);
    const json_t *role = json_object_get(message, "role");
    bool known = false;
    for (size_t k = 0; k < N_ELEM(roles); k++) known |= is_text(role, roles[k]);
    if (!known)
        return BAD(e, param, "'%s.role' must be system, developer, user, assistant or tool", param);
    if (!is_absent(json_object_get(message, "tool_calls")))
        return BAD(e, param, "'%s.tool_calls' is not supported by this server", param);
    json_t *content = json_object_get(message, "content"), *part;
    size_t k;
    if (json_is_string(content)) return true;
    if (!content || json_is_null(content))
        return json_object_set_new(message, "content", json_string("")) == 0 ||
               BAD(e, param, "out of memory");
    if (!json_is_array(content))
        return BAD(e, param, "'%s.content' must be text or a list of text parts", param);
    buf joined;
    buf_init(&joined, (size_t)1 << 30);
    bool ok = true;
    json_array_foreach(content, k, part)
    {
        ok = ok && check_part(part, i, e);
        const json_t *text = json_object_get(part, "text");
        if (ok) buf_add(&joined, json_string_value(text), json_string_length(text));
    }
    ok = ok && joined.status == IG_OK &&
         json_object_set_new(message, "content",
                             json_stringn(joined.data ? joined.data : "", joined.n)) == 0;
    buf_done(&joined);
    return ok;
}

static bool get_messages(api_request *r, api_error *e)
{
    json_t *list = json_object_get(r->root, "messages"), *message;
    size_t i;
    if (!json_is_array(list) || !json_array_size(list))
        return BAD(e, "messages", "'messages' must be a list of at least one message");
    if (json_array_size(list) > 4096)
        return BAD(e, "messages", "'messages' may hold at most 4096 messages");
    json_array_foreach(list, i, message) if (!check_message(message, i, e)) return false;
    r->messages = list;
    r->kwargs = value_of(r, "chat_template_kwargs");
    if (r->kwargs && !json_is_object(r->kwargs))
        return BAD(e, "chat_template_kwargs", "'chat_template_kwargs' must be an object");
    const json_t *format = value_of(r, "response_format");
    if (format && !is_text(json_object_get(format, "type"), "text")) {
        api_error_set(e, 400, "invalid_request_error", "unsupported_parameter", "response_format",
                      "'response_format': only {\"type\": \"text\"} is supported");
        return false;
    }
    return true;
}

static bool get_prompt(api_request *r, int64_t vocab, api_error *e)
{
    const json_t *v = value_of(r, "prompt"), *id;
    size_t i;
    if (json_is_array(v) && json_array_size(v) == 1 && json_is_string(json_array_get(v, 0)))
        v = json_array_get(v, 0);
    if (!json_is_string(v) && !json_is_array(v))
        return BAD(e, "prompt", "'prompt' must be a string or a list of token ids");
    if (json_is_array(v)) {
        if (!json_array_size(v)) return BAD(e, "prompt", "'prompt' is empty");
        json_array_foreach(v, i, id) if (
            !json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) >=
                vocab) return BAD(e, "prompt",
                                  "'prompt': entry %zu is not a token id below %lld (one prompt "
                                  "a request)",
                                  i, (long long)vocab);
    }
    r->prompt = v;
    return true;
}

bool api_parse(api_kind kind, str body, int64_t vocab, api_request *ret_request,
               api_error *ret_error)
{
    api_request r = {.kind = kind, .n = 1};
    if (json_parse("request body", body, body.n, API_MAX_DEPTH, &r.root) != IG_OK) {
        api_error_set(ret_error, 400, "invalid_request_error", "invalid_json", NULL, "%s",
                      ig_error_message());
        return false;
    }
    bool ok =
        json_is_object(r.root) || BAD(ret_error, NULL, "the request body must be a JSON object");
    const json_t *model = ok ? value_of(&r, "model") : NULL;
    ok = ok &&
         (!model || json_is_string(model) || BAD(ret_error, "model", "'model' must be a string"));
    if (ok && model) r.model = (str){json_string_value(model), json_string_length(model)};
    ok = ok && sort_fields(&r, ret_error) && get_stream(&r, ret_error) &&
         get_stops(&r, ret_error) && get_sampling(&r, vocab, ret_error) &&
         get_max_tokens(&r, ret_error) &&
         (kind == API_CHAT ? get_messages(&r, ret_error) : get_prompt(&r, vocab, ret_error));
    if (!ok) {
        api_request_done(&r);
        return false;
    }
    *ret_request = r;
    return true;
}

void api_request_done(api_request *r)
{
    json_decref(r->root);
    mem_free(r->bias);
    *r = (api_request){0};
}

void api_error_body(const api_error *e, buf *out)
{
    buf_str(out, "{\"error\":{\"message\":");
    buf_json_string(out, e->message, strlen(e->message));
    buf_printf(out, ",\"type\":\"%s\",\"param\":", e->type);
    if (*e->param)
        buf_json_string(out, e->param, strlen(e->param));
    else
        buf_str(out, "null");
    buf_printf(out, ",\"code\":\"%s\"}}", e->code);
}

const char *api_error_reason(const api_error *e)
{
    static const struct {
        int http;
        const char *reason;
    } map[] = {
        {401, "auth"},  {403, "auth"},     {404, "model"},
        {413, "limit"}, {429, "overload"}, {503, "draining"},
    };
    if (!strncmp(e->code, "unsupported", 11)) return "unsupported";
    if (!strcmp(e->code, "audit_log_unavailable")) return "log";
    for (size_t i = 0; i < N_ELEM(map); i++)
        if (map[i].http == e->http) return map[i].reason;
    return "invalid";
}
