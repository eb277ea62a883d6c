/* test_slow_faults.c: a whole server whose log fails, or dies, at its N-th call to the system, N
 * going up until boot, four requests and the end pass untouched. After each:
 *
 *   the restart is ready, answers, stops, and the log verifies;
 *   every client that was told "200" is in the log, as an admit;
 *   every admit has exactly one done, and no request is there twice;
 *   every answer that ended has a receipt that holds, under a checkpoint that the log extends,
 *   and its done says ok; a text that was cut is a beginning of the right one.
 *
 * Without arguments each call is struck in one of the ways below, in turn. "every" as argument
 * (`make faults`) strikes each call in every way. */
#define _GNU_SOURCE /* memmem */
#include "support/test.h"
#include <errno.h>
#include <unistd.h>
#include "base/file.h"
#include "base/json.h"
#include "ingot/audit.h"
#include "server/build.h"
#include "support/auditlog.h"
#include "support/serving.h"

static const struct {
    const char *what;
    io_fault fault;
} ways[] = {
    {"it fails, and what was not synced is lost", {.err = EIO, .lose = true}},
    {"it is made, but reported as failed", {.err = EIO, .late = true}},
    {"the disk is full from here on", {.err = ENOSPC, .short_write = true, .sticky = true}},
    {"the process is killed in it", {.kill = true, .short_write = true}},
    {"the process is killed after it", {.kill = true, .late = true}},
    {"the power goes before it", {.kill = true, .lose = true}},
};
#define N_WAYS ((int64_t)(sizeof ways / sizeof ways[0]))
#define LAST_QUIET 3 /* so many runs on end that no fault struck end a walk */
#define BASE_EVENTS 300

static char dir[TMP_PATH_N], vkey[KEY_MAX_VKEY];
static bool every;

/* ---- requests ---- */

#define CHAT "/v1/chat/completions"
static const struct {
    const char *path, *body;
    bool greedy; /* its text is always the same */
} requests[] = {
    {CHAT,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}],\"max_tokens\":6,\"stream\":true,"
     "\"temperature\":0,\"logit_bias\":{\"2\":-100}}",
     true},
    {"/v1/completions", "{\"prompt\":\"two\",\"max_tokens\":5,\"temperature\":1}", false},
    {CHAT,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"three\"}],\"max_tokens\":9,\"stream\":true,"
     "\"temperature\":0,\"logit_bias\":{\"2\":-100}}",
     true},
    {CHAT, "{\"messages\":1}", false},
};
#define N_REQUESTS (sizeof requests / sizeof requests[0])

static buf expected[N_REQUESTS]; /* texts, from a run without a fault */

static int ask(const serving *s, size_t i)
{
    return serving_send(s, requests[i].path, requests[i].body);
}

/* One alone, then three at once: a plain one, a stream, one that is refused. */
static void ask_all(const serving *s, reply got[N_REQUESTS])
{
    int fd[N_REQUESTS];
    serving_receive(ask(s, 0), &got[0]);
    for (size_t i = 1; i < N_REQUESTS; i++) fd[i] = ask(s, i);
    for (size_t i = 1; i < N_REQUESTS; i++) serving_receive(fd[i], &got[i]);
}

/* ---- the log after the restart ---- */

typedef struct recorded {
    char req[65], status[16];
    uint64_t admit, done;
    int n_dones;
} recorded;

#define MAX_RECORDED 64
static recorded records[MAX_RECORDED];
static size_t n_records;

static recorded *find(const char *req)
{
    for (size_t i = 0; i < n_records; i++)
        if (!strcmp(records[i].req, req)) return &records[i];
    return NULL;
}

static void take_event(uint64_t index, const char *text)
{
    json_t *e = json_loads(text, 0, NULL);
    const char *type = json_string_value(json_object_get(e, "type")),
               *req = json_string_value(json_object_get(e, "req")),
               *status = json_string_value(json_object_get(e, "status"));
    assert_non_null(type);
    if (!strcmp(type, "admit")) {
        assert_null(find(req));
        assert_true(n_records < MAX_RECORDED);
        records[n_records] = (recorded){.admit = index};
        snprintf(records[n_records++].req, sizeof records[0].req, "%s", req);
    } else if (!strcmp(type, "done")) {
        recorded *r = find(req);
        assert_non_null(r);
        r->n_dones++;
        r->done = index;
        snprintf(r->status, sizeof r->status, "%s", status);
    }
    json_decref(e);
}

static void read_log(const char *log)
{
    ig_audit_log *l;
    ig_audit_log_report report;
    n_records = 0;
    assert_ok(ig_audit_log_verify(log, vkey, NULL, &report));
    assert_int_equal(report.n_open, 0);
    assert_int_equal(report.n_admits, report.n_dones);
    assert_ok(ig_audit_log_open(log, vkey, &l));
    for (uint64_t i = 0; i < ig_audit_log_size(l); i++) {
        char *text;
        assert_ok(ig_audit_log_event(l, i, &text));
        take_event(i, text);
        ig_audit_text_free(text);
    }
    ig_audit_log_close(l);
    for (size_t i = 0; i < n_records; i++) assert_int_equal(records[i].n_dones, 1);
}

/* ---- what clients were told ---- */

static void check_receipt(const char *log, const reply *r)
{
    ig_audit_receipt *proof;
    ig_audit_log_report report;
    assert_ok(ig_audit_receipt_open(r->receipt.data, r->receipt.n, vkey, &proof));
    assert_ok(ig_audit_receipt_check(proof, "out.0", r->text.data ? r->text.data : "", r->text.n));
    ig_audit_receipt_close(proof);
    const char *blank = memmem(r->receipt.data, r->receipt.n, "\n\n", 2);
    assert_non_null(blank);
    ig_audit_log_options o = {.known = blank + 2};
    assert_ok(ig_audit_log_verify(log, vkey, &o, &report));
}

static void check_reply(const char *log, size_t i, const reply *r)
{
    const recorded *known = find(r->id);
    bool ended = *r->finish || r->receipt.n;
    if (r->http != 200) {
        if (!known && !strcmp(r->error, "audit_log_unavailable")) assert_int_equal(r->http, 503);
        assert_int_equal(r->text.n + r->receipt.n, 0);
        assert_false(ended);
        return;
    }
    if (!known) fail_msg("request %zu was answered without an admit", i);
    if (ended) {
        if (strcmp(known->status, "ok")) fail_msg("request %zu ended, but is %s", i, known->status);
        assert_true(r->receipt.n > 0);
        check_receipt(log, r);
    }
    if (r->is_done) assert_true(ended);
    if (!requests[i].greedy || !expected[i].n) return;
    assert_true(r->text.n <= expected[i].n);
    assert_memory_equal(r->text.data ? r->text.data : "", expected[i].data, r->text.n);
    if (ended) assert_int_equal(r->text.n, expected[i].n);
}

/* A log that has died may not look like a success. */
static void check_exit(const serving *s, const reply *got)
{
    bool refused = false;
    for (size_t i = 0; i < N_REQUESTS; i++)
        refused = refused || !strcmp(got[i].error, "audit_log_unavailable");
    if (serving_was_killed(s)) return;
    if (refused) assert_int_equal(serving_exit_code(s), 4);
    assert_true(serving_exit_code(s) == 0 || serving_exit_code(s) == 4);
}

/* ---- one run ---- */

static void copy_base(const char *base)
{
    char command[6 * TMP_PATH_N];
    snprintf(command, sizeof command, "cd '%s' && rm -rf log log.key* && cp -r %s/. .", dir, base);
    assert_int_equal(system(command), 0);
}

static void restart(serving *s)
{
    reply r;
    if (!serving_start(s, dir, NULL)) fail_msg("the server does not start again");
    serving_receive(ask(s, 0), &r);
    assert_int_equal(r.http, 200);
    assert_string_equal(r.finish, "length");
    serving_stop(s);
    assert_int_equal(serving_exit_code(s), 0);
    log_vkey v;
    assert_ok(log_vkey_read(tmp_path(dir, "log.key.vkey"), &v));
    snprintf(vkey, sizeof vkey, "%s", v.text);
    read_log(s->log);
    check_reply(s->log, 0, &r);
    reply_done(&r);
}

/* True: the fault struck. */
static bool run_once(const char *base, const io_fault *fault)
{
    serving s, again;
    reply got[N_REQUESTS] = {{.http = 0}};
    copy_base(base);
    if (serving_start(&s, dir, fault)) ask_all(&s, got);
    serving_stop(&s);
    check_exit(&s, got);
    restart(&again);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        check_reply(again.log, i, &got[i]);
        reply_done(&got[i]);
    }
    if (serving_was_killed(&s)) assert_true(fault->kill);
    return serving_was_struck(&s);
}

static void walk(const char *base)
{
    int64_t n = 0, n_struck = 0, per = every ? N_WAYS : 1;
    for (int64_t quiet = 0; quiet < LAST_QUIET * per;) {
        n++;
        for (int64_t i = 0; i < per; i++) {
            int64_t way = every ? i : (n + n / N_WAYS) % N_WAYS;
            io_fault f = ways[way].fault;
            f.n = n;
            print_message("%s: call %lld: %s\n", base, (long long)n, ways[way].what);
            bool struck = run_once(base, &f);
            n_struck += struck;
            quiet = struck ? 0 : quiet + 1;
        }
    }
    print_message("%s: %lld calls, %lld faults\n", base, (long long)n - LAST_QUIET,
                  (long long)n_struck);
    assert_in_range(n, 40, 1000);
}

/* ---- cases ---- */

static void run_clean(const char *base, reply got[N_REQUESTS])
{
    serving s;
    copy_base(base);
    assert_true(serving_start(&s, dir, NULL));
    ask_all(&s, got);
    serving_stop(&s);
    assert_int_equal(serving_exit_code(&s), 0);
}

TEST(without_a_fault_every_request_gets_its_answer)
{
    reply got[N_REQUESTS];
    run_clean("nothing", got);
    for (size_t i = 0; i + 1 < N_REQUESTS; i++) {
        assert_int_equal(got[i].http, 200);
        assert_string_equal(got[i].finish, "length");
        assert_true(got[i].is_done && got[i].receipt.n > 0 && got[i].text.n > 0);
    }
    assert_int_equal(got[N_REQUESTS - 1].http, 400);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        expected[i] = got[i].text;
        got[i].text = (buf){0};
        reply_done(&got[i]);
    }
}

TEST(a_new_log_holds_at_every_call) { walk("nothing"); }

TEST(a_log_that_crashed_before_holds_at_every_call)
{
    walk("crashed");
    assert_true(auditlog_n_segments(tmp_path(dir, "log")) > 1); /* over the end of the first */
}

/* The next segment cannot be reserved, and refusals fill the one that is there. */
TEST(without_room_requests_are_refused_and_the_log_lives)
{
    serving s;
    reply r = {.http = 0};
    copy_base("crashed");
    /* two calls reserve it at the start, two head it when it is taken */
    const io_fault full = {.n = 5, .err = ENOSPC, .sticky = true, .below = "/segments/next.seg"};
    assert_true(serving_start(&s, dir, &full));
    for (int i = 0; i < 400; i++) {
        reply_done(&r);
        serving_receive(ask(&s, N_REQUESTS - 1), &r);
        assert_int_equal(r.http, 400);
    }
    for (size_t i = 0; i < 2; i++) {
        reply_done(&r);
        serving_receive(ask(&s, i), &r);
        assert_int_equal(r.http, 503);
        assert_non_null(strstr(r.message, "could not be recorded: audit log: no room"));
    }
    reply_done(&r);
    serving_stop(&s);
    assert_true(serving_was_struck(&s));
    restart(&s);
}

/* Half a record behind the last whole one. */
static void tear(const char *log)
{
    static const char torn[] = "\x40\1\0\1 half a rec";
    AUTO(buf) bytes = {0};
    const char *path = tmp_path(log, "segments/00000000000000000000.seg");
    assert_ok(file_read(path, SERVING_SEGMENT, &bytes));
    size_t n = bytes.n;
    while (n && !bytes.data[n - 1]) n--;
    n = (n + 7) & ~(size_t)7;
    assert_in_range(n, SERVING_SEGMENT - 8192, SERVING_SEGMENT - sizeof torn);
    memcpy(bytes.data + n, torn, sizeof torn);
    tmp_write(log, "segments/00000000000000000000.seg", bytes.data, bytes.n);
}

/* A log that a crash has left with an open request and half a record, its segment nearly full. */
static void make_crashed(const char *base)
{
    char machine[128], log[SERVING_PATH_N], path[SERVING_PATH_N + 8];
    log_key *key;
    audit_log *l;
    audit_ref load;
    audit_token *open;
    event e;
    snprintf(log, sizeof log, "%s/log", base);
    snprintf(path, sizeof path, "%s.key", log);
    build_machine_id(machine, sizeof machine);
    assert_ok(log_key_generate("ingot.test/log", &key));
    assert_ok(log_key_write(key, path));
    strcat(path, ".vkey");
    assert_ok(log_vkey_write(log_key_public(key), path));
    assert_ok(audit_log_open(&(audit_log_options){.dir = log,
                                                  .key = key,
                                                  .machine_id = machine,
                                                  .create = true,
                                                  .segment_bytes = SERVING_SEGMENT},
                             &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_fill(l, BASE_EVENTS));
    auditlog_admit(&e, "orphan", &load);
    assert_ok(audit_admit(l, &e, &open));
    audit_token_free(open);
    audit_log_abandon(l);
    log_key_free(key);
    tear(log);
}

static int setup(void **state)
{
    (void)state;
    tmp_open(dir);
    serving_bundle(dir);
    assert_ok(file_mkdirs(tmp_path(dir, "nothing"), 0755));
    assert_ok(file_mkdirs(tmp_path(dir, "crashed"), 0755));
    make_crashed(tmp_path(dir, "crashed"));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_REQUESTS; i++) buf_done(&expected[i]);
    tmp_close(dir);
    return 0;
}

int main(int argc, char **argv)
{
    if (serving_is_child(argc, argv)) return serving_child(argv);
    every = argc > 1 && !strcmp(argv[1], "every");
    /* memory spares thousands of real syncs; lost pages are simulated */
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        CASE(without_a_fault_every_request_gets_its_answer),
        CASE(without_room_requests_are_refused_and_the_log_lives),
        CASE(a_new_log_holds_at_every_call),
        CASE(a_log_that_crashed_before_holds_at_every_call),
    };
    return cmocka_run_group_tests_name("faults", tests, setup, teardown);
}
