/* api.h: the OpenAI dialect: request bodies in, error objects out. Pure text; no connection, no
 * model. */
#ifndef SERVER_API_H
#define SERVER_API_H
#include <jansson.h>
#include "base/buf.h"
#include "base/str.h"
#include "ingot/lm.h"

#define API_MAX_CHOICES 8
#define API_MAX_STOPS 16
#define API_MAX_STOP_BYTES 512
#define API_MAX_IGNORED 32
#define API_MAX_DEPTH 32

typedef enum api_kind { API_CHAT, API_COMPLETIONS } api_kind;

/* A checked request. Strings point into `root`. */
typedef struct api_request {
    api_kind kind;
    json_t *root; /* owned */
    str model;    /* empty when not given */
    bool stream, include_usage;
    int32_t n;          /* choices */
    int64_t max_tokens; /* 0: not given */
    bool has_seed;
    ig_lm_sampling sampling; /* bias points to `bias` */
    ig_lm_bias *bias;        /* owned */
    bool logprobs;
    str stops[API_MAX_STOPS];
    int32_t n_stops;
    const json_t *messages; /* chat */
    const json_t *prompt;   /* completions: text, or a list of token ids */
    const json_t *kwargs;   /* chat_template_kwargs or NULL */
    str ignored[API_MAX_IGNORED];
    int32_t n_ignored;
} api_request;

/* What a client is told. `code` is stable text; `param` the field, or NULL. */
typedef struct api_error {
    int http;
    const char *type; /* "invalid_request_error", "server_error", ... */
    const char *code;
    char param[64];
    char message[1024];
} api_error;

/* False: *ret_error says why (always a 400). vocab bounds token ids. */
bool api_parse(api_kind kind, str body, int64_t vocab, api_request *ret_request,
               api_error *ret_error);
void api_request_done(api_request *r);
void api_error_set(api_error *e, int http, const char *type, const char *code, const char *param,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));
/* {"error":{...}} */
void api_error_body(const api_error *e, buf *out);
/* Reason field of a denied event. */
const char *api_error_reason(const api_error *e);
#endif
