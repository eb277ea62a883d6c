/* The log under faults: at every call to the system the process is killed, or the call fails, or
 * writes half. Whatever was reported as durable must be there after the restart, whatever was
 * signed must be extended, the log must verify, every admit must have exactly one done. */
#define _GNU_SOURCE /* memmem */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/tmp.h"
#include "support/walk.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"
#include "base/json.h"
#include "ingot/audit.h"

static char dir[TMP_PATH_N], base[TMP_PATH_N + 8], work[TMP_PATH_N + 8];
static log_key *key;

/* A closed log whose segment is nearly full: the next session has to rotate. */
static void make_base(void)
{
    audit_log *l;
    audit_ref load;
    assert_ok(auditlog_open(base, key, &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_fill(l, 230));
    assert_ok(audit_log_close(l, "exit"));
}

static int setup(void **state)
{
    (void)state;
    tmp_open(dir);
    snprintf(base, sizeof base, "%s/base", dir);
    snprintf(work, sizeof work, "%s/work", dir);
    assert_ok(log_key_generate("ingot.test/log", &key));
    make_base();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_key_free(key);
    tmp_close(dir);
    return 0;
}

static void copy_base(void)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", work, base, work);
    assert_int_equal(system(command), 0);
}

/* ---- the child ---- */

/* What the child was told, in order. A receipt follows its ack where n_receipt > 0. */
typedef struct ack {
    uint64_t index;
    tree_hash leaf;
    uint32_t n_receipt;
} ack;

static void tell(int fd, const audit_ref *ref, const buf *receipt_text)
{
    ack a = {ref->index, ref->leaf, receipt_text ? (uint32_t)receipt_text->n : 0};
    if (write(fd, &a, sizeof a) != (ssize_t)sizeof a) _exit(3);
    if (receipt_text && write(fd, receipt_text->data, receipt_text->n) != (ssize_t)receipt_text->n)
        _exit(3);
}

static ig_status one_request(audit_log *l, int fd, const audit_ref *load)
{
    event e;
    audit_token *t;
    audit_ref done;
    commit_secret secret;
    AUTO(buf) text = {0};
    buf_init(&text, 0);
    auditlog_secret(&secret);
    auditlog_admit(&e, "r", load);
    TRY(audit_admit(l, &e, &t));
    tell(fd, audit_token_ref(t), NULL);
    auditlog_done_full(&e);
    ig_status st = audit_done(t, &e, &done);
    audit_token_free(t);
    TRY(st);
    st = audit_receipt(l, done.index, &secret, NULL, 0, &text);
    tell(fd, &done, st == IG_OK ? &text : NULL);
    return st;
}

static ig_status session(audit_log *l, int fd)
{
    audit_ref load, ref;
    event e;
    TRY(auditlog_start(l, &load));
    tell(fd, &load, NULL);
    for (int i = 0; i < 2; i++) {
        TRY(one_request(l, fd, &load));
        for (int j = 0; j < 2; j++) {
            auditlog_denied(&e);
            TRY(audit_append(l, &e, &ref));
            tell(fd, &ref, NULL);
        }
    }
    TRY(auditlog_fill(l, 100));
    return one_request(l, fd, &load);
}

/* Runs one session. Exit 0: all went well; 1: something failed and was reported; 2: the fault was
 * not reached. */
static void run_child(int fd, io_fault fault)
{
    audit_log *l;
    int64_t before = io_n_calls();
    io_fault_arm(fault);
    ig_status st = auditlog_open(work, key, &l);
    if (st != IG_OK) _exit(1);
    st = session(l, fd);
    if (st == IG_OK)
        st = audit_log_close(l, "exit");
    else
        audit_log_abandon(l);
    bool reached = io_n_calls() - before >= fault.n;
    _exit(st != IG_OK ? 1 : reached ? 0 : 2);
}

/* ---- the parent ---- */

static bool read_all(int fd, void *p, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = read(fd, (char *)p + got, n - got);
        if (r <= 0) return false;
        got += (size_t)r;
    }
    return true;
}

/* Everything told must hold against the log after the restart. */
static void check_acks(ig_audit_log *l, const char *vkey, const buf *told)
{
    for (size_t at = 0; at + sizeof(ack) <= told->n;) {
        ack a;
        char *json;
        tree_hash h;
        memcpy(&a, told->data + at, sizeof a);
        at += sizeof a;
        assert_ok(ig_audit_log_event(l, a.index, &json));
        tree_hash_leaf(json, strlen(json), &h);
        ig_audit_text_free(json);
        if (!tree_hash_eq(&h, &a.leaf))
            fail_msg("event %llu was told and lost", (unsigned long long)a.index);
        if (a.n_receipt == 0 || at + a.n_receipt > told->n) continue;
        ig_audit_receipt *r;
        assert_ok(ig_audit_receipt_open(told->data + at, a.n_receipt, vkey, &r));
        assert_ok(ig_audit_receipt_check(r, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER)));
        ig_audit_receipt_close(r);
        /* the checkpoint that left with the receipt */
        AUTO(buf) note = {0};
        buf_init(&note, CHECKPOINT_MAX);
        const char *blank = memmem(told->data + at, a.n_receipt, "\n\n", 2);
        buf_add(&note, blank + 2, (size_t)(told->data + at + a.n_receipt - blank - 2));
        ig_audit_log_options o = {.known = note.data};
        ig_audit_log_report report;
        assert_ok(ig_audit_log_verify(work, vkey, &o, &report));
        at += a.n_receipt;
    }
}

static void restart_and_check(const buf *told)
{
    const char *vkey = log_key_public(key)->text;
    audit_log *l;
    audit_ref load, done;
    ig_audit_log *reader;
    ig_audit_log_report report;
    ig_audit_log_options o = {.known = NULL};
    assert_ok(auditlog_open(work, key, &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "after", &load, &done));
    assert_ok(audit_log_close(l, "exit"));
    assert_ok(ig_audit_log_verify(work, vkey, &o, &report));
    assert_int_equal(report.n_open, 0);
    assert_int_equal(report.n_admits, report.n_dones);
    assert_ok(ig_audit_log_open(work, vkey, &reader));
    check_acks(reader, vkey, told);
    ig_audit_log_close(reader);
}

/* True when the fault was not reached: the walk is over. */
static bool run_once(io_fault fault)
{
    int fds[2], status;
    AUTO(buf) told = {0};
    char c;
    buf_init(&told, 1 << 22);
    copy_base();
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        run_child(fds[1], fault);
    }
    close(fds[1]);
    while (read_all(fds[0], &c, 1)) buf_char(&told, c);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_ok(buf_status(&told));
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    bool failed = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool over = WIFEXITED(status) && WEXITSTATUS(status) == 2;
    if (!(killed && fault.kill) && !failed && !fine && !over)
        fail_msg("the child ended with status %d", status);
    restart_and_check(&told);
    return over;
}

static void walk(io_fault fault)
{
    fault.n = 1;
    while (!run_once(fault)) fault.n++;
    print_message("%lld points\n", (long long)fault.n - 1);
    assert_true(auditlog_n_segments(work) > 1); /* it did rotate */
    assert_in_range(fault.n, 100, 2000);
}

TEST(killed_at_every_call) { walk((io_fault){.kill = true}); }

TEST(killed_in_the_middle_of_every_write) { walk((io_fault){.kill = true, .short_write = true}); }

TEST(an_io_error_at_every_call) { walk((io_fault){.err = EIO}); }

TEST(a_disk_that_is_full_from_any_call_on) { walk((io_fault){.err = ENOSPC, .sticky = true}); }

TEST(a_short_write_at_every_call)
{
    walk((io_fault){.err = EIO, .short_write = true, .sticky = true});
}

/* ---- after a failed sync ---- */

static void remember(void *user, const char *message) { snprintf(user, 256, "%s", message); }

TEST(a_failed_sync_ends_everything_and_is_never_retried)
{
    char message[256] = "";
    audit_log *l;
    audit_ref load, ref;
    event e;
    audit_token *t;
    copy_base();
    audit_log_options o = {.dir = work,
                           .key = key,
                           .segment_bytes = SEGMENT_MIN_BYTES,
                           .on_dead = remember,
                           .user = message};
    assert_ok(audit_log_open(&o, &l));
    assert_ok(auditlog_start(l, &load));
    auditlog_admit(&e, "open", &load);
    assert_ok(audit_admit(l, &e, &t));
    io_fault_arm((io_fault){.n = 2, .err = EIO}); /* the write succeeds, its sync does not */
    auditlog_denied(&e);
    assert_fails(audit_append(l, &e, &ref), IG_EIO, "cannot sync");
    int64_t calls = io_n_calls();
    auditlog_done_full(&e);
    assert_fails(audit_done(t, &e, &ref), IG_EIO, "stopped after a failure");
    audit_token *other;
    auditlog_admit(&e, "later", &load);
    assert_fails(audit_admit(l, &e, &other), IG_EIO, "stopped after a failure");
    assert_fails(audit_log_alive(l), IG_EIO, "cannot sync");
    assert_non_null(strstr(message, "cannot sync"));
    assert_int_equal(io_n_calls(), calls);
    audit_token_free(t);
    assert_fails(audit_log_close(l, "exit"), IG_EIO, "cannot sync"); /* not: a request is open */
    AUTO(buf) nothing = {0};
    buf_init(&nothing, 1);
    restart_and_check(&nothing);
}

TEST(nothing_is_signed_that_was_not_synced)
{
    audit_log *l;
    audit_ref load, done;
    event e;
    audit_token *t;
    checkpoint before, after;
    AUTO(buf) note = {0}, later = {0};
    copy_base();
    assert_ok(auditlog_open(work, key, &l));
    assert_ok(auditlog_start(l, &load));
    auditlog_admit(&e, "r", &load);
    assert_ok(audit_admit(l, &e, &t));
    assert_ok(audit_checkpoint(l, &before, &note));
    io_fault_arm((io_fault){.n = 2, .err = EIO});
    auditlog_done_full(&e);
    assert_fails(audit_done(t, &e, &done), IG_EIO, "cannot sync");
    assert_ok(audit_checkpoint(l, &after, &later));
    assert_int_equal(after.size, before.size);
    audit_token_free(t);
    audit_log_abandon(l);
}

static ig_status whole_session(void *user)
{
    audit_log *l;
    (void)user;
    copy_base();
    ig_status st = auditlog_open(work, key, &l);
    if (st == IG_OK) {
        audit_ref load, done;
        st = auditlog_start(l, &load);
        if (st == IG_OK) st = auditlog_request(l, "r", &load, &done);
        if (st == IG_OK)
            st = audit_log_close(l, "exit");
        else
            audit_log_abandon(l);
    }
    /* one that failed in the writer ends the log, like any other failure of the writer */
    return (st == IG_EIO || st == IG_EVERIFY) && mem_fault_hits() ? IG_ENOMEM : st;
}

TEST(every_failing_allocation_is_reported)
{
    json_set_alloc_funcs(mem_alloc, mem_free);
    assert_in_range(walk_memory(whole_session, NULL), 30, 2000);
}

int main(void)
{
    /* What a killed process leaves does not depend on the disk: memory spares thousands of real
     * syncs. */
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 0);
    const struct CMUnitTest tests[] = {
        CASE(a_failed_sync_ends_everything_and_is_never_retried),
        CASE(nothing_is_signed_that_was_not_synced),
        CASE(every_failing_allocation_is_reported),
        CASE(killed_at_every_call),
        CASE(killed_in_the_middle_of_every_write),
        CASE(an_io_error_at_every_call),
        CASE(a_disk_that_is_full_from_any_call_on),
        CASE(a_short_write_at_every_call),
    };
    return cmocka_run_group_tests_name("faults", tests, setup, teardown);
}
