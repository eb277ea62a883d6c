/* serving.c: see serving.h. */
#define _GNU_SOURCE /* memmem */
#include "support/serving.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "server/model_stage.h"
#include "support/test.h"
#include "support/tinylm.h"

#define PATIENCE_US 20000000
#define NOT_STRUCK 0x40 /* in the exit code */
#define TEMPLATE                                                                         \
    "{\"chat_template\": \"{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}; " \
    "{% endfor %}\"}"

extern const command_info command_serve;
extern char **environ;

/* ---- the bundle ---- */

void serving_bundle(const char *dir)
{
    char from[SERVING_PATH_N], bundle[SERVING_PATH_N];
    publisher_key *key;
    convert_result r;
    stage_report report;
    snprintf(from, sizeof from, "%s/source", dir);
    snprintf(bundle, sizeof bundle, "%s/bundle", dir);
    assert_ok(file_mkdirs(from, 0755));
    tinylm_write(from, NULL);
    tmp_write(from, "tokenizer_config.json", TEMPLATE, strlen(TEMPLATE));
    assert_ok(package_run(
        &(package_options){.source = from, .bundle = bundle, .name = SERVING_MODEL, .version = 1},
        &r, &report));
    assert_ok(publisher_key_generate(&key));
    assert_ok(publisher_key_write_private(key, tmp_path(dir, "publisher")));
    assert_ok(publisher_key_write_public(key, tmp_path(dir, "publisher.pub")));
    assert_ok(
        oms_sign_dir(tmp_path(bundle, "model"), key, tmp_path(bundle, "model.sig"), NULL, NULL));
    publisher_key_free(key);
}

/* ---- the process ---- */

/* --serve DIR N ERRNO FLAGS BELOW; the flags are letters. */
bool serving_is_child(int argc, char **argv) { return argc == 7 && !strcmp(argv[1], "--serve"); }

int serving_child(char **argv)
{
    const char *dir = argv[2];
    char bundle[SERVING_PATH_N], key[SERVING_PATH_N], log[SERVING_PATH_N],
        below[2 * SERVING_PATH_N], listen[SERVING_PATH_N + 8], segment[24];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(bundle, sizeof bundle, "%s/bundle", dir);
    snprintf(key, sizeof key, "%s/publisher.pub", dir);
    snprintf(log, sizeof log, "%s/log", dir);
    snprintf(below, sizeof below, "%s%s", log, argv[6]);
    snprintf(listen, sizeof listen, "unix:%s/socket", dir);
    snprintf(segment, sizeof segment, "%zu", SERVING_SEGMENT);
    char *args[] = {"serve",       "--bundle",
                    bundle,        "--trust",
                    key,           "--log",
                    log,           "--listen",
                    listen,        "--log-segment",
                    segment,       "--allow-writable",
                    "--drain",     "5",
                    "--threads",   "1",
                    "--context",   "256",
                    "--kv-tokens", "1024",
                    NULL};
    io_fault_arm((io_fault){.n = atoll(argv[3]),
                            .err = atoi(argv[4]),
                            .kill = strchr(argv[5], 'k') != NULL,
                            .short_write = strchr(argv[5], 'h') != NULL,
                            .late = strchr(argv[5], 'l') != NULL,
                            .lose = strchr(argv[5], 'o') != NULL,
                            .sticky = strchr(argv[5], 's') != NULL,
                            .below = below});
    int code = command_serve.run((int)N_ELEM(args) - 1, args);
    return code | (io_fault_hits() ? 0 : NOT_STRUCK);
}

static void spawn(serving *s, const char *dir, const io_fault *f)
{
    char n[24], err[16], flags[8], errors[SERVING_PATH_N];
    const char *below = f->below ? f->below : "";
    snprintf(n, sizeof n, "%lld", (long long)f->n);
    snprintf(err, sizeof err, "%d", f->err);
    snprintf(flags, sizeof flags, "-%s%s%s%s%s", f->kill ? "k" : "", f->short_write ? "h" : "",
             f->late ? "l" : "", f->lose ? "o" : "", f->sticky ? "s" : "");
    snprintf(errors, sizeof errors, "%s/errors", dir);
    char *const argv[] = {"ingot-serve", "--serve", (char *)dir,   n,
                          err,           flags,     (char *)below, NULL};
    posix_spawn_file_actions_t files;
    assert_int_equal(posix_spawn_file_actions_init(&files), 0);
    assert_int_equal(posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0), 0);
    assert_int_equal(
        posix_spawn_file_actions_addopen(&files, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0644),
        0);
    assert_int_equal(posix_spawn(&s->pid, "/proc/self/exe", &files, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&files);
}

static bool has_ended(serving *s)
{
    if (!s->ended) s->ended = waitpid(s->pid, &s->status, WNOHANG) == s->pid;
    return s->ended;
}

static int connect_to(const serving *s)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct timeval patience = {PATIENCE_US / 1000000, 0};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && strlen(s->socket) < sizeof a.sun_path);
    strcpy(a.sun_path, s->socket);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    if (!connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    close(fd);
    return -1;
}

bool serving_start(serving *s, const char *dir, const io_fault *fault)
{
    static const io_fault none;
    *s = (serving){.pid = -1};
    snprintf(s->log, sizeof s->log, "%s/log", dir);
    snprintf(s->socket, sizeof s->socket, "%s/socket", dir);
    (void)unlink(s->socket);
    spawn(s, dir, fault ? fault : &none);
    for (int64_t end = clock_mono_us() + PATIENCE_US; clock_mono_us() < end; usleep(2000)) {
        int fd = connect_to(s);
        if (fd >= 0) {
            close(fd);
            return true;
        }
        if (has_ended(s)) return false;
    }
    kill(s->pid, SIGKILL);
    fail_msg("the server was not ready in time");
    return false;
}

void serving_stop(serving *s)
{
    if (!has_ended(s)) kill(s->pid, SIGTERM);
    for (int64_t end = clock_mono_us() + PATIENCE_US; !has_ended(s); usleep(2000)) {
        if (clock_mono_us() < end) continue;
        kill(s->pid, SIGKILL);
        fail_msg("the server did not stop");
    }
}

bool serving_was_killed(const serving *s)
{
    return s->ended && WIFSIGNALED(s->status) && WTERMSIG(s->status) == SIGKILL;
}

int serving_exit_code(const serving *s)
{
    return s->ended && WIFEXITED(s->status) ? WEXITSTATUS(s->status) & ~NOT_STRUCK : -1;
}

bool serving_was_struck(const serving *s)
{
    return serving_was_killed(s) ||
           (WIFEXITED(s->status) && !(WEXITSTATUS(s->status) & NOT_STRUCK));
}

/* ---- clients ---- */

void reply_done(reply *r)
{
    buf_done(&r->text);
    buf_done(&r->receipt);
}

int serving_send(const serving *s, const char *path, const char *body)
{
    char head[256];
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.0\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     path, strlen(body));
    int fd = connect_to(s);
    if (fd < 0) return -1;
    /* a server that dies now is a reply that does not come */
    (void)!send(fd, head, (size_t)n, MSG_NOSIGNAL);
    (void)!send(fd, body, strlen(body), MSG_NOSIGNAL);
    return fd;
}

static void add_text(const json_t *value, buf *out)
{
    if (json_is_string(value)) buf_add(out, json_string_value(value), json_string_length(value));
}

static void copy_text(const json_t *value, char *out, size_t cap)
{
    if (json_is_string(value)) snprintf(out, cap, "%s", json_string_value(value));
}

/* One chunk of a stream, or a whole body; false when it is cut short. */
static bool take_json(const char *p, size_t n, reply *r)
{
    json_t *o = json_loadb(p, n, 0, NULL);
    if (!o) return false;
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
    add_text(json_object_get(choice, "text"), &r->text);
    add_text(json_object_get(json_object_get(choice, "delta"), "content"), &r->text);
    add_text(json_object_get(json_object_get(choice, "message"), "content"), &r->text);
    copy_text(json_object_get(choice, "finish_reason"), r->finish, sizeof r->finish);
    copy_text(json_object_get(json_object_get(o, "error"), "code"), r->error, sizeof r->error);
    copy_text(json_object_get(json_object_get(o, "error"), "message"), r->message,
              sizeof r->message);
    add_text(json_object_get(json_object_get(o, "audit"), "receipt"), &r->receipt);
    json_decref(o);
    return true;
}

static void take_stream(const char *p, size_t n, reply *r)
{
    for (const char *end; (end = memmem(p, n, "\n\n", 2));
         n -= (size_t)(end + 2 - p), p = end + 2) {
        if ((size_t)(end - p) == 12 && !memcmp(p, "data: [DONE]", 12))
            r->is_done = true;
        else if ((size_t)(end - p) > 6 && !memcmp(p, "data: ", 6))
            assert_true(take_json(p + 6, (size_t)(end - p) - 6, r));
    }
}

static void take_head(const char *head, size_t n, reply *r)
{
    static const char key[] = "X-Request-Id: ";
    const char *id = memmem(head, n, key, sizeof key - 1);
    if (sscanf(head, "HTTP/%*3s %d", &r->http) != 1) r->http = 0;
    if (id) sscanf(id + sizeof key - 1, "%63[^\r\n]", r->id);
}

void serving_receive(int fd, reply *ret_reply)
{
    AUTO(buf) all = {0};
    char piece[4096];
    *ret_reply = (reply){.http = 0};
    buf_init(&ret_reply->text, 1 << 20);
    buf_init(&ret_reply->receipt, 1 << 20);
    buf_init(&all, 1 << 24);
    if (fd < 0) return;
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, 0)) > 0) buf_add(&all, piece, (size_t)n);
    bool slow = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    close(fd);
    if (slow) fail_msg("an answer did not end in time: %s", all.data ? all.data : "");
    assert_ok(buf_status(&all));
    const char *body = all.n ? memmem(all.data, all.n, "\r\n\r\n", 4) : NULL;
    if (!body) return;
    body += 4;
    take_head(all.data, (size_t)(body - all.data), ret_reply);
    size_t n_body = all.n - (size_t)(body - all.data);
    if (memmem(all.data, (size_t)(body - all.data), "text/event-stream", 17))
        take_stream(body, n_body, ret_reply);
    else
        ret_reply->is_done = take_json(body, n_body, ret_reply);
}
