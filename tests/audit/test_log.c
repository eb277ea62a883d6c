/* The running log: order, durability, tokens, reservation, restart, receipts. */
#define _GNU_SOURCE /* memmem */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/tmp.h"
#include <pthread.h>
#include <unistd.h>
#include "base/file.h"
#include "ingot/audit.h"

static char dir[TMP_PATH_N];
static log_key *key;

static int setup(void **state)
{
    (void)state;
    tmp_open(dir);
    return log_key_generate("ingot.test/log", &key) != IG_OK;
}

static int teardown(void **state)
{
    (void)state;
    log_key_free(key);
    tmp_close(dir);
    return 0;
}

static audit_log *must_open(void)
{
    audit_log *l;
    assert_ok(auditlog_open(dir, key, &l));
    return l;
}

static void assert_type(audit_log *l, uint64_t index, event_type type)
{
    AUTO(buf) leaf = {0};
    AUTO(event_parsed) p = {.store = NULL};
    assert_ok(audit_leaf(l, index, &leaf));
    assert_ok(event_parse("leaf", (str){leaf.data, leaf.n}, &p));
    assert_int_equal(p.e.type, type);
}

TEST(a_request_is_boot_load_admit_done_and_stop)
{
    audit_log *l = must_open();
    audit_ref load, done;
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r1", &load, &done));
    assert_int_equal(load.index, 1);
    assert_int_equal(done.index, 3);
    static const event_type want[] = {EVENT_BOOT, EVENT_LOAD, EVENT_ADMIT, EVENT_DONE};
    for (uint64_t i = 0; i < 4; i++) assert_type(l, i, want[i]);
    assert_ok(audit_log_close(l, "exit"));
    l = must_open();
    assert_false(audit_log_recovery(l)->gap);
    assert_int_equal(audit_log_recovery(l)->size, 5);
    assert_int_equal(audit_log_recovery(l)->signed_size, 5);
    assert_type(l, 4, EVENT_STOP);
    audit_log_abandon(l);
}

TEST(nothing_comes_before_boot)
{
    audit_log *l = must_open();
    event e;
    audit_ref ref;
    auditlog_denied(&e);
    assert_fails(audit_append(l, &e, &ref), IG_EINVAL, "before boot");
    audit_log_abandon(l);
}

TEST(a_second_server_on_the_same_log_is_refused)
{
    audit_log *l = must_open(), *other;
    assert_fails(auditlog_open(dir, key, &other), IG_EIO, "in use by another process");
    audit_log_abandon(l);
    assert_ok(auditlog_open(dir, key, &other));
    audit_log_abandon(other);
}

TEST(a_log_opened_with_another_key_is_refused)
{
    audit_log *l = must_open();
    audit_ref load;
    assert_ok(auditlog_start(l, &load));
    assert_ok(audit_log_close(l, "exit"));
    AUTO(log_key_ptr) other = NULL;
    assert_ok(log_key_generate("ingot.test/log", &other));
    assert_fails(auditlog_open(dir, other, &l), IG_EVERIFY,
                 "this log belongs to key ingot.test/log/");
}

TEST(a_copy_on_another_machine_needs_take_over)
{
    audit_log *l = must_open();
    audit_ref load;
    assert_ok(auditlog_start(l, &load));
    assert_ok(audit_log_close(l, "exit"));
    audit_log_options o = {
        .dir = dir, .key = key, .machine_id = "other", .segment_bytes = SEGMENT_MIN_BYTES};
    assert_fails(audit_log_open(&o, &l), IG_EVERIFY, "another machine");
    o.take_over = true;
    assert_ok(audit_log_open(&o, &l));
    audit_log_abandon(l);
}

TEST(a_crash_closes_its_orphans_as_recovered)
{
    audit_log *l = must_open();
    audit_ref load, done;
    event e;
    audit_token *a, *b;
    assert_ok(auditlog_start(l, &load));
    auditlog_admit(&e, "orphan-a", &load);
    assert_ok(audit_admit(l, &e, &a));
    assert_ok(auditlog_request(l, "fine", &load, &done));
    auditlog_admit(&e, "orphan-b", &load);
    assert_ok(audit_admit(l, &e, &b));
    audit_token_free(a);
    audit_token_free(b);
    audit_log_abandon(l);
    l = must_open();
    assert_true(audit_log_recovery(l)->gap);
    assert_int_equal(audit_log_recovery(l)->orphans, 2);
    assert_int_equal(audit_log_recovery(l)->cut, 0);
    assert_type(l, 6, EVENT_GAP);
    assert_type(l, 7, EVENT_DONE);
    AUTO(buf) leaf = {0};
    assert_ok(audit_leaf(l, 8, &leaf));
    assert_non_null(strstr(leaf.data, "\"req\":\"orphan-b\""));
    assert_non_null(strstr(leaf.data, "\"status\":\"recovered\""));
    assert_ok(auditlog_start(l, &load));
    assert_ok(audit_log_close(l, "exit"));
    l = must_open();
    assert_false(audit_log_recovery(l)->gap);
    audit_log_abandon(l);
}

/* Flips a byte of the first segment where this text stands. */
static void damage(const char *text)
{
    AUTO(buf) seg = {0};
    static const char name[] = "segments/00000000000000000000.seg";
    assert_ok(file_read(tmp_path(dir, name), 1 << 20, &seg));
    char *at = memmem(seg.data, seg.n, text, strlen(text));
    assert_non_null(at);
    *at ^= 1;
    tmp_write(dir, name, seg.data, seg.n);
}

TEST(damage_behind_the_signed_size_is_cut_and_leaves_nothing_to_rise_again)
{
    audit_log *l = must_open();
    audit_ref load, ref;
    event e;
    assert_ok(auditlog_start(l, &load));
    for (int i = 0; i < 2; i++) {
        auditlog_denied(&e);
        assert_ok(audit_append(l, &e, &ref));
    }
    audit_log_abandon(l);
    damage("overload"); /* the first denied; the second stays whole behind it */
    l = must_open();
    assert_int_equal(audit_log_recovery(l)->size, 2);
    assert_int_equal(audit_log_recovery(l)->signed_size, 2);
    assert_in_range(audit_log_recovery(l)->cut, 300, 700);
    assert_type(l, 2, EVENT_GAP);
    audit_log_abandon(l);
    l = must_open();
    assert_int_equal(audit_log_recovery(l)->size, 3);
    assert_int_equal(audit_log_recovery(l)->cut, 0);
    audit_log_abandon(l);
}

TEST(damage_below_the_signed_size_is_refused_and_named)
{
    audit_log *l = must_open();
    audit_ref load, done;
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r", &load, &done));
    assert_ok(auditlog_fill(l, 1)); /* whose sync stores the checkpoint */
    audit_log_abandon(l);
    damage("\"type\":\"admit\"");
    assert_fails(auditlog_open(dir, key, &l), IG_EVERIFY, "event 2; a checkpoint over");
}

TEST(a_token_takes_one_done)
{
    audit_log *l = must_open();
    audit_ref load, ref;
    event e;
    audit_token *t;
    assert_ok(auditlog_start(l, &load));
    auditlog_admit(&e, "r", &load);
    assert_ok(audit_admit(l, &e, &t));
    assert_string_equal(audit_token_req(t), "r");
    assert_int_equal(audit_token_what(t), AUDIT_TOKEN_REQUEST);
    auditlog_done(&e);
    assert_ok(audit_done(t, &e, &ref));
    assert_fails(audit_done(t, &e, &ref), IG_EINVAL, "once");
    audit_token_free(t);
    assert_ok(audit_log_close(l, "exit"));
}

TEST(closing_with_a_request_open_writes_no_stop)
{
    audit_log *l = must_open();
    audit_ref load;
    event e;
    audit_token *t;
    assert_ok(auditlog_start(l, &load));
    auditlog_admit(&e, "r", &load);
    assert_ok(audit_admit(l, &e, &t));
    audit_token_free(t);
    assert_fails(audit_log_close(l, "exit"), IG_EINVAL, "1 requests open");
    l = must_open();
    assert_int_equal(audit_log_recovery(l)->orphans, 1);
    audit_log_abandon(l);
}

TEST(admission_reserves_room_for_every_done)
{
    audit_log *l = must_open();
    audit_ref load, ref;
    event e;
    audit_token *t[256];
    size_t n = 0;
    ig_status st = IG_OK;
    assert_ok(auditlog_start(l, &load));
    for (; n < N_ELEM(t) && st == IG_OK; n += st == IG_OK) {
        auditlog_admit(&e, "r", &load);
        st = audit_admit(l, &e, &t[n]);
    }
    assert_int_equal(st, IG_ELIMIT);
    assert_in_range(n, 8, 100);
    for (size_t i = 0; i < n; i++) { /* all of them still find room */
        auditlog_done_full(&e);
        assert_ok(audit_done(t[i], &e, &ref));
        audit_token_free(t[i]);
    }
    auditlog_admit(&e, "r", &load);
    for (int tries = 0; tries < 50 && audit_admit(l, &e, &t[0]) != IG_OK; tries++) usleep(20000);
    auditlog_done(&e);
    assert_ok(audit_done(t[0], &e, &ref));
    audit_token_free(t[0]);
    audit_stats s;
    audit_log_stats(l, &s);
    assert_int_equal(s.reserved_bytes, 0);
    assert_int_equal(s.queued_bytes, 0);
    assert_ok(audit_log_close(l, "exit"));
}

TEST(a_log_grows_over_many_segments_and_reopens)
{
    audit_log *l = must_open();
    audit_ref load, done;
    assert_ok(auditlog_start(l, &load));
    for (int i = 0; i < 300; i++) {
        char req[16];
        snprintf(req, sizeof req, "r%d", i);
        assert_ok(auditlog_request(l, req, &load, &done));
    }
    assert_int_equal(done.index, 601);
    AUTO(buf) text = {0};
    commit_secret secret;
    auditlog_secret(&secret);
    assert_ok(audit_receipt(l, 301, &secret, NULL, 0, &text));
    assert_ok(audit_log_close(l, "exit"));
    assert_true(file_exists(tmp_path(dir, "tile/0/001")));
    assert_true(file_exists(tmp_path(dir, "tile/entries/001")));
    assert_true(file_exists(tmp_path(dir, "tile/1/000.p/2")));
    assert_false(file_exists(tmp_path(dir, "segments/next.seg")));
    l = must_open();
    assert_int_equal(audit_log_recovery(l)->size, 603);
    AUTO(receipt_ptr) r = NULL;
    assert_ok(receipt_open("receipt", (str){text.data, text.n}, audit_log_vkey(l), &r));
    assert_ok(receipt_check(r, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER)));
    audit_log_abandon(l);
}

TEST(a_receipt_opens_the_answer_and_the_request)
{
    audit_log *l = must_open();
    audit_ref load, done;
    static const uint8_t ids[] = {42, 0, 0, 0, 43, 0, 0, 0};
    receipt_opening open[] = {{"tout.0", ids, sizeof ids}};
    commit_secret secret;
    AUTO(buf) text = {0};
    auditlog_secret(&secret);
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r1", &load, &done));
    assert_ok(audit_receipt(l, done.index, &secret, open, 1, &text));
    AUTO(receipt_ptr) r = NULL;
    str t = {text.data, text.n}, opened;
    assert_ok(receipt_open("receipt", t, audit_log_vkey(l), &r));
    assert_ok(receipt_check(r, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER)));
    assert_ok(receipt_check(r, "in.body", AUDITLOG_BODY, strlen(AUDITLOG_BODY)));
    assert_fails(receipt_check(r, "out.0", "Rome.", 5), IG_EVERIFY, "\"out.0\"");
    assert_fails(receipt_check(r, "out.1", "Rome.", 5), IG_ENOTFOUND, "\"out.1\"");
    assert_true(receipt_opened(r, "tout.0", &opened));
    assert_int_equal(opened.n, sizeof ids);
    assert_memory_equal(opened.p, ids, sizeof ids);
    assert_ok(receipt_split(r, tmp_path(dir, "split")));
    assert_true(file_exists(tmp_path(dir, "split/done.tlog-proof")));
    audit_log_abandon(l);
}

typedef struct client {
    audit_log *l;
    audit_ref load;
    pthread_t thread;
    ig_status status;
} client;

/* Requests one after the other, each receipt opened while others append. */
static void *ask(void *arg)
{
    client *c = arg;
    commit_secret secret;
    auditlog_secret(&secret);
    for (int i = 0; i < 40 && c->status == IG_OK; i++) {
        AUTO(buf) text = {0};
        AUTO(receipt_ptr) r = NULL;
        audit_ref done;
        audit_stats s;
        c->status = auditlog_request(c->l, "r", &c->load, &done);
        if (c->status == IG_OK)
            c->status = audit_receipt(c->l, done.index, &secret, NULL, 0, &text);
        if (c->status == IG_OK)
            c->status = receipt_open("receipt", (str){text.data, text.n}, audit_log_vkey(c->l), &r);
        if (c->status == IG_OK)
            c->status = receipt_check(r, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER));
        audit_log_stats(c->l, &s);
    }
    return NULL;
}

TEST(many_clients_at_once_get_receipts_that_hold)
{
    audit_log *l = must_open();
    client c[8];
    audit_ref load;
    assert_ok(auditlog_start(l, &load));
    for (size_t i = 0; i < N_ELEM(c); i++) {
        c[i] = (client){.l = l, .load = load, .status = IG_OK};
        assert_int_equal(pthread_create(&c[i].thread, NULL, ask, &c[i]), 0);
    }
    for (size_t i = 0; i < N_ELEM(c); i++) {
        assert_int_equal(pthread_join(c[i].thread, NULL), 0);
        assert_int_equal(c[i].status, IG_OK);
    }
    audit_stats s;
    audit_log_stats(l, &s);
    assert_int_equal(s.size, 2 + 8 * 40 * 2);
    assert_int_equal(s.signed_size, s.size);
    assert_int_equal(s.reserved_bytes, 0);
    assert_ok(audit_log_close(l, "exit"));
    ig_audit_log_report r;
    assert_ok(ig_audit_log_verify(dir, log_key_public(key)->text, NULL, &r));
    assert_int_equal(r.n_dones, 320);
}

TEST(an_opening_that_does_not_fit_is_refused)
{
    audit_log *l = must_open();
    audit_ref load, done;
    receipt_opening open[] = {{"tout.0", "abcdefgh", 8}};
    commit_secret secret;
    AUTO(buf) text = {0};
    auditlog_secret(&secret);
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r1", &load, &done));
    assert_ok(audit_receipt(l, done.index, &secret, open, 1, &text));
    AUTO(receipt_ptr) r = NULL;
    assert_fails(receipt_open("receipt", (str){text.data, text.n}, audit_log_vkey(l), &r),
                 IG_EVERIFY, "tout.0");
    audit_log_abandon(l);
}

TEST(every_flipped_byte_of_a_receipt_is_refused)
{
    audit_log *l = must_open();
    audit_ref load, done;
    commit_secret secret;
    AUTO(buf) text = {0};
    auditlog_secret(&secret);
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r1", &load, &done));
    assert_ok(audit_receipt(l, done.index, &secret, NULL, 0, &text));
    for (size_t i = 0; i < text.n; i++) {
        AUTO(receipt_ptr) r = NULL;
        text.data[i] ^= 1;
        ig_status st = receipt_open("receipt", (str){text.data, text.n}, audit_log_vkey(l), &r);
        if (st == IG_OK) /* the secret is not signed: its flips show when something is opened */
            st = receipt_check(r, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER));
        if (st == IG_OK) fail_msg("a flip of byte %zu went unseen", i);
        text.data[i] ^= 1;
    }
    audit_log_abandon(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define ISOLATED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        ISOLATED(a_request_is_boot_load_admit_done_and_stop),
        ISOLATED(nothing_comes_before_boot),
        ISOLATED(a_second_server_on_the_same_log_is_refused),
        ISOLATED(a_log_opened_with_another_key_is_refused),
        ISOLATED(a_copy_on_another_machine_needs_take_over),
        ISOLATED(a_crash_closes_its_orphans_as_recovered),
        ISOLATED(damage_behind_the_signed_size_is_cut_and_leaves_nothing_to_rise_again),
        ISOLATED(damage_below_the_signed_size_is_refused_and_named),
        ISOLATED(a_token_takes_one_done),
        ISOLATED(closing_with_a_request_open_writes_no_stop),
        ISOLATED(admission_reserves_room_for_every_done),
        ISOLATED(a_log_grows_over_many_segments_and_reopens),
        ISOLATED(a_receipt_opens_the_answer_and_the_request),
        ISOLATED(many_clients_at_once_get_receipts_that_hold),
        ISOLATED(an_opening_that_does_not_fit_is_refused),
        ISOLATED(every_flipped_byte_of_a_receipt_is_refused),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
