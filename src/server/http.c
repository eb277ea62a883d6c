/* http.c: connections to requests and back.
 *
 * One exchange per HTTP request: its body is collected (bounded), then a route handles it at once
 * or hands a request to the pipeline and
 * suspends the connection until there is something to send. */
#include "server/http.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/io.h"
#include "server/limits.h"
#include "server/pipeline.h"

#define MAX_CONNECTIONS 1024
#define IDLE_SECONDS 120
#define READ_BLOCK 16384
#define FLUSH_US 5000000 /* how long a stop waits for clients to take their last bytes */

struct http {
    server *sv;
    struct MHD_Daemon *daemon;
    int fd; /* listening socket */
    int port;
    char unix_path[108]; /* "" until it is bound */
    atomic_int n_busy;   /* exchanges with a request that are not through */
};

typedef struct exchange exchange;
typedef enum MHD_Result mhd_result;
typedef mhd_result (*route_fn)(server *sv, struct MHD_Connection *c, exchange *x, const char *rest);
typedef struct route {
    const char *method, *path;
    bool prefix, open;
    route_fn fn;
} route; /* open: needs no key */

struct exchange {
    http *h;
    const route *route; /* NULL: there is none */
    api_key *key;       /* NULL without keys */
    api_error refusal;  /* what head or length decide before the route; http 0: nothing */
    buf body;
    bool handled;
    request *r; /* the connection's reference; NULL for routes that answer at once */
};

/* --- answers at once */
static mhd_result send_text(struct MHD_Connection *c, int status, const char *type,
                            const char *text, size_t n)
{
    struct MHD_Response *p =
        MHD_create_response_from_buffer(n, (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!p) return MHD_NO;
    MHD_add_response_header(p, "Content-Type", type);
    if (status == 401) MHD_add_response_header(p, "WWW-Authenticate", "Bearer");
    if (status == 429 || status == 503) MHD_add_response_header(p, "Retry-After", "5");
    mhd_result result = MHD_queue_response(c, (unsigned)status, p);
    MHD_destroy_response(p);
    return result;
}

static mhd_result send_json(struct MHD_Connection *c, int status, const buf *b)
{
    if (b->status != IG_OK) return MHD_NO;
    return send_text(c, status, "application/json", b->data ? b->data : "", b->n);
}

static mhd_result send_error(struct MHD_Connection *c, const api_error *e)
{
    AUTO(buf) b = {0};
    buf_init(&b, 1 << 16);
    api_error_body(e, &b);
    return send_json(c, e->http, &b);
}

static mhd_result refuse(server *sv, struct MHD_Connection *c, const char *api, const api_key *key,
                         const api_error *e)
{
    pipeline_denied(sv, api, key, e);
    return send_error(c, e);
}

/* --- routes that answer at once */
static mhd_result get_live(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    (void)sv, (void)x, (void)rest;
    return send_text(c, 200, "text/plain", "ok\n", 3);
}

static mhd_result get_ready(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    char why[300];
    (void)x, (void)rest;
    if (pipeline_ready(sv, why, sizeof why)) return send_text(c, 200, "text/plain", "ready\n", 6);
    return send_text(c, 503, "text/plain", why, strlen(why));
}

static void model_object(const server *sv, buf *b)
{
    buf_str(b, "{\"id\":");
    buf_json_string(b, sv->model.name, strlen(sv->model.name));
    buf_printf(b, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"local\",\"root\":\"");
    buf_hex(b, sv->model.root, SHA256_N);
    buf_printf(b, "\",\"context_length\":%lld}", (long long)sv->model.facts.context);
}

static mhd_result get_models(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    AUTO(buf) b = {0};
    (void)x, (void)rest;
    buf_init(&b, 1 << 16);
    buf_str(&b, "{\"object\":\"list\",\"data\":[");
    model_object(sv, &b);
    buf_str(&b, "]}");
    return send_json(c, 200, &b);
}

static mhd_result get_model(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    AUTO(buf) b = {0};
    api_error e;
    (void)x;
    buf_init(&b, 1 << 16);
    if (!strcmp(rest, sv->model.name)) {
        model_object(sv, &b);
        return send_json(c, 200, &b);
    }
    api_error_set(&e, 404, "invalid_request_error", "model_not_found", "model",
                  "there is no model '%.100s' here; this server has '%s'", rest, sv->model.name);
    return send_error(c, &e);
}

static mhd_result get_limits(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    AUTO(buf) b = {0};
    (void)x, (void)rest;
    buf_init(&b, 1 << 16);
    limits_json(sv, &b);
    return send_json(c, 200, &b);
}

/* The receipt of a finished request; without the opening secret, which only the client was
 * given. */
static mhd_result get_audit(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    AUTO(buf) b = {0};
    api_error e;
    uint64_t done;
    (void)x;
    if (!pipeline_find_done(sv, rest, &done)) {
        api_error_set(
            &e, 404, "invalid_request_error", "not_found", "id",
            "no finished request '%.64s' is remembered here; `ingot audit show` searches the "
            "whole log",
            rest);
        return send_error(c, &e);
    }
    if (audit_receipt(sv->log, done, NULL, NULL, 0, &b) == IG_OK)
        return send_text(c, 200, "text/plain", b.data, b.n);
    api_error_set(&e, 500, "server_error", "receipt_unavailable", NULL, "%s", ig_error_message());
    return send_error(c, &e);
}

/* --- routes that compute */
static void suspend(void *conn) { MHD_suspend_connection(conn); }

static void resume(void *conn) { MHD_resume_connection(conn); }

static ssize_t read_stream(void *user, uint64_t pos, char *out, size_t cap)
{
    (void)pos;
    int64_t n = request_read(user, out, cap, suspend);
    return n < 0 ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static mhd_result start_stream(struct MHD_Connection *c, request *r)
{
    struct MHD_Response *p =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, READ_BLOCK, read_stream, r, NULL);
    if (!p) return MHD_NO;
    MHD_add_response_header(p, "Content-Type", "text/event-stream; charset=utf-8");
    MHD_add_response_header(p, "Cache-Control", "no-cache");
    MHD_add_response_header(p, "X-Request-Id", r->id);
    mhd_result result = MHD_queue_response(c, 200, p);
    MHD_destroy_response(p);
    return result;
}

/* A body is sent when it is whole: its length is known then. */
static mhd_result send_body(struct MHD_Connection *c, request *r)
{
    static const api_error no_memory = {.http = 500,
                                        .type = "server_error",
                                        .code = "internal_error",
                                        .message = "no memory for the answer"};
    lock_take(&r->lock);
    if (r->out.status != IG_OK) {
        lock_drop(&r->lock);
        return send_error(c, &no_memory);
    }
    struct MHD_Response *p = MHD_create_response_from_buffer(
        r->out.n, r->out.data ? r->out.data : (char *)"", MHD_RESPMEM_MUST_COPY);
    int status = r->http;
    r->sent = (int64_t)r->out.n;
    lock_drop(&r->lock);
    if (!p) return MHD_NO;
    MHD_add_response_header(p, "Content-Type", "application/json");
    MHD_add_response_header(p, "X-Request-Id", r->id);
    if (status == 429 || status == 503) MHD_add_response_header(p, "Retry-After", "5");
    mhd_result result = MHD_queue_response(c, (unsigned)status, p);
    MHD_destroy_response(p);
    return result;
}

/* Called when the connection is new to the pipeline, and again each time it was resumed. A request
 * that ended without an answer (its client hung up) closes the connection: suspended once more it
 * would never be woken. */
static mhd_result go_on(struct MHD_Connection *c, request *r)
{
    lock_take(&r->lock);
    bool stream = r->started && r->stream, over = r->ended, started = r->started;
    if (!stream && !over) {
        r->suspended = true;
        MHD_suspend_connection(c);
    }
    lock_drop(&r->lock);
    if (stream) return start_stream(c, r);
    if (!over) return MHD_YES;
    return started ? send_body(c, r) : MHD_NO;
}

static mhd_result post(server *sv, struct MHD_Connection *c, exchange *x, api_kind kind)
{
    const char *api = kind == API_CHAT ? "chat" : "completions";
    api_error e;
    api_request parsed;
    if (!api_parse(kind, (str){x->body.data ? x->body.data : "", x->body.n}, sv->model.facts.vocab,
                   &parsed, &e))
        return refuse(sv, c, api, x->key, &e);
    if (request_new(sv, kind, &x->body, &x->r) != IG_OK) {
        api_request_done(&parsed);
        api_error_set(&e, 500, "server_error", "internal_error", NULL, "%s", ig_error_message());
        return refuse(sv, c, api, x->key, &e);
    }
    atomic_fetch_add(&x->h->n_busy, 1);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    x->r->api = parsed;
    x->r->key = x->key;
    x->r->conn = c;
    x->r->fd = info ? info->connect_fd : -1;
    if (!pipeline_submit(sv, x->r, &e)) return send_error(c, &e);
    return go_on(c, x->r);
}

static mhd_result post_chat(server *sv, struct MHD_Connection *c, exchange *x, const char *rest)
{
    (void)rest;
    return post(sv, c, x, API_CHAT);
}

static mhd_result post_completions(server *sv, struct MHD_Connection *c, exchange *x,
                                   const char *rest)
{
    (void)rest;
    return post(sv, c, x, API_COMPLETIONS);
}

static const route routes[] = {
    {"GET", "/livez", false, true, get_live},
    {"GET", "/readyz", false, true, get_ready},
    {"GET", "/limits", false, false, get_limits},
    {"GET", "/v1/models", false, false, get_models},
    {"GET", "/v1/models/", true, false, get_model},
    {"GET", "/v1/audit/", true, false, get_audit},
    {"POST", "/v1/chat/completions", false, false, post_chat},
    {"POST", "/v1/completions", false, false, post_completions},
};

/* The route of a method and URL; NULL: none, and *ret_known says whether another method has one. */
static const route *find_route(const char *method, const char *url, bool *ret_known)
{
    const char *wanted = strcmp(method, "HEAD") ? method : "GET";
    *ret_known = false;
    for (size_t i = 0; i < N_ELEM(routes); i++) {
        const route *t = &routes[i];
        size_t n = strlen(t->path);
        if (t->prefix ? strncmp(url, t->path, n) || !url[n] : strcmp(url, t->path)) continue;
        *ret_known = true;
        if (!strcmp(wanted, t->method)) return t;
    }
    return NULL;
}

/* What the head alone decides, so that no byte of a body is kept for a client without a key. */
static void read_head(exchange *x, struct MHD_Connection *c, const char *method, const char *url)
{
    server *sv = x->h->sv;
    bool known;
    x->route = find_route(method, url, &known);
    if (!x->route) {
        api_error_set(&x->refusal, known ? 405 : 404, "invalid_request_error",
                      known ? "method_not_allowed" : "not_found", NULL,
                      known ? "%s is not possible on %.100s" : "%s %.100s: there is nothing here",
                      method, url);
        return;
    }
    if (x->route->open || !sv->keys.n) return;
    x->key = keys_find(&sv->keys, MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization"));
    if (!x->key)
        api_error_set(&x->refusal, 401, "invalid_request_error", "invalid_api_key", NULL,
                      "a valid API key is needed: Authorization: Bearer KEY");
}

static void take_body(exchange *x, const char *data, size_t n)
{
    if (x->refusal.http || strcmp(x->route->method, "POST")) return; /* the others take none */
    buf_add(&x->body, data, n);
    if (x->body.status == IG_OK) return;
    api_error_set(&x->refusal, 413, "invalid_request_error", "request_too_large", NULL,
                  "the body is larger than %lld bytes",
                  (long long)x->h->sv->config.number[SET_max_body]);
    buf_done(&x->body);
}

static mhd_result dispatch(exchange *x, struct MHD_Connection *c, const char *url)
{
    server *sv = x->h->sv;
    if (!x->refusal.http) return x->route->fn(sv, c, x, url + strlen(x->route->path));
    if (!x->route) return send_error(c, &x->refusal);
    return refuse(sv, c, "other", x->key, &x->refusal);
}

/* --- libmicrohttpd's callbacks */
static mhd_result on_access(void *user, struct MHD_Connection *c, const char *url,
                            const char *method, const char *version, const char *data,
                            size_t *n_data, void **state)
{
    http *h = user;
    exchange *x = *state;
    (void)version;
    ig_error_clear();
    if (!x) {
        *state = x = mem_calloc(1, sizeof *x);
        if (!x) return MHD_NO;
        x->h = h;
        buf_init(&x->body, (size_t)h->sv->config.number[SET_max_body]);
        read_head(x, c, method, url);
        return MHD_YES;
    }
    if (*n_data) {
        take_body(x, data, *n_data);
        *n_data = 0;
        return MHD_YES;
    }
    if (x->handled) return x->r ? go_on(c, x->r) : MHD_NO;
    x->handled = true;
    return dispatch(x, c, url);
}

static void on_completed(void *user, struct MHD_Connection *c, void **state,
                         enum MHD_RequestTerminationCode why)
{
    http *h = user;
    exchange *x = *state;
    (void)c, (void)why;
    if (!x) return;
    if (x->r) {
        pipeline_disconnected(x->r);
        atomic_fetch_sub(&h->n_busy, 1);
    }
    buf_done(&x->body);
    mem_free(x);
    *state = NULL;
}

/* --- listening */
/* A socket that nobody listens on is what a killed server leaves. Anything else stays: another
 * server's socket, and whatever file a mistyped path names. */
static ig_status drop_stale_socket(const struct sockaddr_un *a)
{
    struct stat st;
    if (lstat(a->sun_path, &st)) return IG_OK;
    if (!S_ISSOCK(st.st_mode))
        return ig_fail(IG_EINVAL, "listen: unix:%s: exists and is no socket", a->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale =
        fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) && errno == ECONNREFUSED;
    io_close(fd);
    if (!stale)
        return ig_fail(IG_EINVAL, "listen: unix:%s: another server listens there", a->sun_path);
    return io_unlink(a->sun_path);
}

static ig_status listen_unix(http *h, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return ig_fail(IG_EINVAL, "listen: %s is too long for a Unix socket", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    TRY(drop_stale_socket(&a));
    h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->fd < 0 || bind(h->fd, (struct sockaddr *)&a, sizeof a))
        return ig_fail(IG_EIO, "listen: unix:%s: %s", path, strerror(errno));
    memcpy(h->unix_path, path, strlen(path) + 1);
    if (listen(h->fd, 128)) return ig_fail(IG_EIO, "listen: unix:%s: %s", path, strerror(errno));
    return IG_OK;
}

static ig_status parse_address(const char *text, struct sockaddr_in *v4, struct sockaddr_in6 *v6,
                               bool *ret_v6)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    int64_t port = 0;
    size_t n = colon ? (size_t)(colon - text) : 0;
    if (!colon || n >= sizeof host || !str_int(str_of(colon + 1), 0, 65535, &port))
        return ig_fail(IG_EINVAL, "listen: '%s' is not ADDRESS:PORT or unix:PATH", text);
    memcpy(host, text, n);
    host[n] = 0;
    *ret_v6 = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (*ret_v6) host[n - 1] = 0;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if ((*ret_v6 ? inet_pton(AF_INET6, host + 1, &v6->sin6_addr)
                 : inet_pton(AF_INET, host, &v4->sin_addr)) != 1)
        return ig_fail(IG_EINVAL, "listen: '%s' is not a numeric address", host);
    return IG_OK;
}

static ig_status listen_tcp(http *h, const char *text)
{
    struct sockaddr_in v4 = {0};
    struct sockaddr_in6 v6 = {0};
    bool is_v6 = false;
    int yes = 1;
    TRY(parse_address(text, &v4, &v6, &is_v6));
    bool loopback =
        is_v6 ? IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) : (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
    if (!loopback && !h->sv->keys.n)
        return ig_fail(
            IG_EINVAL,
            "listen: %s is not a loopback address: give --api-keys FILE, or listen on 127.0.0.1 "
            "or a Unix socket",
            text);
    socklen_t n = is_v6 ? sizeof v6 : sizeof v4;
    struct sockaddr *a = is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
    h->fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->fd >= 0) setsockopt(h->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (h->fd < 0 || bind(h->fd, a, n) || listen(h->fd, 128) || getsockname(h->fd, a, &n))
        return ig_fail(IG_EIO, "listen: %s: %s", text, strerror(errno));
    h->port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
    return IG_OK;
}

ig_status http_start(server *sv, http **ret_http)
{
    http *h = mem_calloc(1, sizeof *h);
    const char *where = sv->config.text[SET_listen];
    if (!h) return IG_ENOMEM;
    h->sv = sv;
    h->fd = -1;
    sv->resume = resume;
    ig_status s = strncmp(where, "unix:", 5) ? listen_tcp(h, where) : listen_unix(h, where + 5);
    if (s == IG_OK) {
        h->daemon = MHD_start_daemon(
            MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
            NULL, on_access, h, MHD_OPTION_LISTEN_SOCKET, h->fd, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, h, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
            MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_END);
        if (!h->daemon) s = ig_fail(IG_EIO, "the HTTP server did not start");
    }
    if (s != IG_OK) {
        http_stop(h);
        return s;
    }
    *ret_http = h;
    return IG_OK;
}

int http_port(const http *h) { return h->port; }

void http_stop_listening(http *h)
{
    if (h->daemon) MHD_quiesce_daemon(h->daemon);
}

void http_stop(http *h)
{
    struct timespec pause = {0, 2000000};
    int64_t end = clock_mono_us() + FLUSH_US;
    if (!h) return;
    while (atomic_load(&h->n_busy) && clock_mono_us() < end) nanosleep(&pause, NULL);
    if (h->daemon) MHD_stop_daemon(h->daemon);
    if (h->fd >= 0) close(h->fd);
    if (*h->unix_path) unlink(h->unix_path);
    mem_free(h);
}
