/* request.h: one request on its way through the stages, and the bytes on their way to its client.
 *
 * The pipeline owns everything but the part under `lock`, which it shares with the HTTP thread and
 * the watcher. Two references: the
 * connection's and the pipeline's. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H
#include "server/api.h"
#include "server/server.h"

#define REQUEST_MAX_OUT \
    ((size_t)4 << 20) /* unread bytes of a stream: a slower reader is cancelled */
#define REQUEST_MAX_BODY ((size_t)512 << 20) /* bytes of an answer that is not streamed */

typedef enum outcome {
    OUTCOME_OK,
    OUTCOME_CANCELLED,
    OUTCOME_ERROR,
    OUTCOME_TIMEOUT,
    OUTCOME_REFUSED
} outcome;

/* One answer of a request. */
typedef struct choice {
    ig_lm_session *session;
    ig_lm_stream *stream;
    buf text;         /* all text released so far: what `out` commits to */
    buf held;         /* text that may be the start of a stop string */
    buf logprobs;     /* JSON entries of plain answers */
    sha256_ctx trace; /* digest of all logits, where asked for */
    uint8_t trace_digest[SHA256_N];
    int32_t *ids; /* owned: generated tokens, kept when the session is freed */
    int64_t n_ids;
    bool cut;            /* at a stop string: nothing more of it is text */
    ig_lm_finish finish; /* IG_LM_RUNNING until over */
} choice;

typedef struct request {
    struct request *next; /* in a queue */
    server *sv;
    _Atomic int refs;
    char id[64]; /* "chatcmpl-...": also the audit id */
    api_request api;
    buf body;        /* raw request body */
    api_key *key;    /* NULL without keys */
    int64_t created; /* Unix seconds */
    /* audit */
    audit_token *token; /* NULL before admission */
    commit_secret secret;
    audit_ref done;
    bool recorded; /* done is durable and under a checkpoint */
    /* the prompt */
    ig_lm_prompt *prompt;
    char date[16]; /* given to the template; "" when it did not ask */
    int64_t max_tokens;
    uint64_t seed;
    /* answers */
    choice choice[API_MAX_CHOICES];
    int64_t n_cached;
    outcome outcome;
    api_error error; /* http 0: none */
    /* clock, µs */
    int64_t t_admit, t_start, t_first, t_end, deadline;
    _Atomic bool gone; /* the client hung up */
    _Atomic bool late; /* over its deadline */
    /* --- under lock */
    lock lock;
    void *conn; /* MHD_Connection; NULL once the connection is through */
    int fd;     /* its socket */
    bool suspended;
    bool started; /* status and kind of body are settled: http, stream */
    bool ended;   /* no more bytes will come */
    bool stream;
    int http;
    buf out;             /* bytes not yet taken */
    size_t taken;        /* of out */
    int64_t sent;        /* bytes handed to the socket */
    int64_t quiet_since; /* µs of the last byte written: pings */
} request;

/* A request with the connection's reference; body is moved in. */
IG_MUST_USE ig_status request_new(server *sv, api_kind kind, buf *body, request **ret_request);
void request_hold(request *r);
void request_drop(request *r);

/* Pipeline side. Settles status and kind of body. */
void request_start(request *r, int http, bool stream);
/* Appends bytes of a stream and wakes its client. A stream whose reader is too slow is marked gone
 * and takes nothing more: what the client gets has no hole. */
void request_write(request *r, const void *p, size_t n);
/* The last bytes, of a stream or a whole body. */
void request_finish(request *r, const void *p, size_t n);

/* Connection side (http.c). Copies at most cap bytes; 0: nothing yet (suspended, if `suspend` was
 * given), -1: the end. */
int64_t request_read(request *r, char *out, size_t cap, void (*suspend)(void *conn));
/* queue */
IG_MUST_USE ig_status queue_init(queue *q);
void queue_done(queue *q);
void queue_push(queue *q, request *r);
/* Waits until something is there, the queue is closed (NULL), or until_us passes (NULL; 0: no
 * waiting, negative: forever). */
request *queue_pop(queue *q, int64_t until_us);
void queue_close(queue *q);
#endif
