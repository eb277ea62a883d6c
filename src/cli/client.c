/* client.c: see client.h. Bounded header, chunked and plain bodies. */
#include "cli/client.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_HEAD 65536

typedef struct reader {
    int fd;
    char data[16384];
    size_t n, at;
} reader;

static void close_fd(int *fd)
{
    if (*fd >= 0) close(*fd);
}

static ig_status connect_unix(const char *path, int *ret_fd)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return ig_fail(IG_EINVAL, "%s is too long for a Unix socket", path);
    memcpy(a.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a)) {
        ig_status s = ig_fail(IG_EIO, "unix:%s: %s; is the server running?", path, strerror(errno));
        close_fd(&fd);
        return s;
    }
    *ret_fd = fd;
    return IG_OK;
}

static ig_status connect_tcp(const char *url, int *ret_fd)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    char host[128];
    int64_t port;
    const char *begin = url + 7, *colon = strrchr(begin, ':');
    size_t n = colon ? (size_t)(colon - begin) : 0;
    if (!colon || n >= sizeof host ||
        !str_int((str){colon + 1, strcspn(colon + 1, "/")}, 1, 65535, &port))
        return ig_fail(IG_EINVAL, "%s: expected http://ADDRESS:PORT", url);
    memcpy(host, begin, n);
    host[n] = 0;
    if (!strcmp(host, "localhost")) memcpy(host, "127.0.0.1", 10);
    bool is_v6 = host[0] == '[';
    if (is_v6) host[n - 1] = 0;
    if ((is_v6 ? inet_pton(AF_INET6, host + 1, &v6.sin6_addr)
               : inet_pton(AF_INET, host, &v4.sin_addr)) != 1)
        return ig_fail(IG_EINVAL, "%s: '%s' is not a numeric address", url, host);
    v4.sin_port = v6.sin6_port = htons((uint16_t)port);
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, is_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4,
                          is_v6 ? sizeof v6 : sizeof v4)) {
        ig_status s = ig_fail(IG_EIO, "%s: %s; is the server running?", url, strerror(errno));
        close_fd(&fd);
        return s;
    }
    *ret_fd = fd;
    return IG_OK;
}

static ig_status send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0)
            return ig_fail(IG_EIO, "the connection broke while sending: %s", strerror(errno));
        p += k;
        n -= (size_t)k;
    }
    return IG_OK;
}

/* One byte; *ret_end at the end of the connection. */
static ig_status get_byte(reader *r, char *ret, bool *ret_end)
{
    while (r->at == r->n) {
        ssize_t k = recv(r->fd, r->data, sizeof r->data, 0);
        if (k < 0 && errno == EINTR) continue;
        if (k < 0) return ig_fail(IG_EIO, "the connection broke: %s", strerror(errno));
        r->at = 0;
        r->n = (size_t)k;
        if (!k) {
            *ret_end = true;
            return IG_OK;
        }
    }
    *ret = r->data[r->at++];
    return IG_OK;
}

static ig_status get_line(reader *r, buf *line)
{
    buf_clear(line);
    for (;;) {
        char c = 0;
        bool end = false;
        TRY(get_byte(r, &c, &end));
        if (end) return ig_fail(IG_EIO, "the server closed the connection in mid-answer");
        if (c == '\n') break;
        if (c != '\r') buf_char(line, c);
        TRY(buf_status(line));
    }
    return IG_OK;
}

/* Status line and headers: chunked or a length (-1: until the end). */
static ig_status get_head(reader *r, int *ret_http, bool *ret_chunked, int64_t *ret_length)
{
    AUTO(buf) line = {0};
    buf_init(&line, MAX_HEAD);
    TRY(get_line(r, &line));
    if (!line.data || sscanf(line.data, "HTTP/1.%*c %d", ret_http) != 1)
        return ig_fail(IG_EFORMAT, "this is no HTTP server");
    for (;;) {
        TRY(get_line(r, &line));
        if (!line.n) return IG_OK;
        if (!strncasecmp(line.data, "Transfer-Encoding: chunked", 26)) *ret_chunked = true;
        if (!strncasecmp(line.data, "Content-Length:", 15))
            sscanf(line.data + 15, "%ld", ret_length);
    }
}

/* n bytes (or up to the end, n negative) to the callback; false in *ret_go when it stopped. */
static ig_status pass(reader *r, int64_t n, client_on_data on_data, void *user, bool *ret_go)
{
    while (n && *ret_go) {
        char c;
        bool end = false;
        TRY(get_byte(r, &c, &end));
        if (end)
            return n < 0 ? IG_OK
                         : ig_fail(IG_EIO, "the server closed the connection in mid-answer");
        r->at--;
        size_t there = r->n - r->at, k = n > 0 && (size_t)n < there ? (size_t)n : there;
        *ret_go = on_data(user, r->data + r->at, k);
        r->at += k;
        if (n > 0) n -= (int64_t)k;
    }
    return IG_OK;
}

static ig_status get_chunks(reader *r, client_on_data on_data, void *user)
{
    AUTO(buf) line = {0};
    bool go = true;
    buf_init(&line, MAX_HEAD);
    while (go) {
        unsigned long n = 0;
        TRY(get_line(r, &line));
        if (!line.data || sscanf(line.data, "%lx", &n) != 1)
            return ig_fail(IG_EFORMAT, "a chunk without a length");
        if (!n) break;
        TRY(pass(r, (int64_t)n, on_data, user, &go));
        if (go) TRY(get_line(r, &line));
    }
    return IG_OK;
}

ig_status client_request(const char *url, const char *method, const char *path, const char *api_key,
                         str body, client_on_data on_data, void *user, int *ret_http)
{
    __attribute__((cleanup(close_fd))) int fd = -1;
    AUTO(buf) head = {0};
    bool chunked = false, go = true;
    int64_t length = -1;
    buf_init(&head, MAX_HEAD);
    if (!strncmp(url, "unix:", 5))
        TRY(connect_unix(url + 5, &fd));
    else if (!strncmp(url, "http://", 7))
        TRY(connect_tcp(url, &fd));
    else
        return ig_fail(IG_EINVAL, "%s: expected http://ADDRESS:PORT or unix:PATH", url);
    buf_printf(&head,
               "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: "
               "close\r\nContent-Length: %zu\r\n",
               method, path, body.n);
    if (api_key) buf_printf(&head, "Authorization: Bearer %s\r\n", api_key);
    buf_str(&head, "\r\n");
    TRY(buf_status(&head));
    TRY(send_all(fd, head.data, head.n));
    TRY(send_all(fd, body.p, body.n));
    reader r = {.fd = fd};
    TRY(get_head(&r, ret_http, &chunked, &length));
    return chunked ? get_chunks(&r, on_data, user) : pass(&r, length, on_data, user, &go);
}
