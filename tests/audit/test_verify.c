/* Whole logs: every flipped byte of every file is found and named, broken rules between events
 * too. */
#define _GNU_SOURCE /* memmem */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/tmp.h"
#include "support/walk.h"
#include <sys/stat.h>
#include <unistd.h>
#include "audit/ledger.h"
#include "audit/segment.h"
#include "audit/verify.h"
#include "base/file.h"
#include "base/json.h"

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

static void make_log(int n_requests, size_t n_fill)
{
    audit_log *l;
    audit_ref load, done;
    assert_ok(auditlog_open(dir, key, &l));
    assert_ok(auditlog_start(l, &load));
    for (int i = 0; i < n_requests; i++) assert_ok(auditlog_request(l, "r", &load, &done));
    if (n_fill) assert_ok(auditlog_fill(l, n_fill));
    assert_ok(audit_log_close(l, "exit"));
}

typedef struct findings {
    size_t n;
    char text[4096];
} findings;

static void on_finding(void *user, const char *text)
{
    findings *f = user;
    f->n++;
    strncat(f->text, text, sizeof f->text - strlen(f->text) - 2);
    strcat(f->text, "\n");
}

static ig_status verify(findings *f, ig_audit_log_report *ret_report)
{
    ig_audit_log_options o = {.finding = on_finding, .user = f};
    *f = (findings){.n = 0};
    return ig_audit_log_verify(dir, log_key_public(key)->text, &o, ret_report);
}

TEST(a_good_log_verifies_and_is_counted)
{
    findings f;
    ig_audit_log_report r;
    make_log(1, 600);
    make_log(2, 0);
    assert_ok(verify(&f, &r));
    assert_int_equal(r.size, 612);
    assert_int_equal(r.signed_size, 612);
    assert_int_equal(r.n_sessions, 2);
    assert_int_equal(r.n_admits, 3);
    assert_int_equal(r.n_dones, 3);
    assert_int_equal(r.n_open, 0);
    assert_int_equal(r.n_torn, 0);
    assert_int_equal(r.n_missing, 0);
    assert_int_equal(f.n, 0);
    assert_in_range(r.n_checkpoints, 8, 700);
}

TEST(a_log_verifies_while_its_server_runs)
{
    audit_log *l;
    audit_ref load, done;
    findings f;
    ig_audit_log_report r;
    assert_ok(auditlog_open(dir, key, &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r", &load, &done));
    assert_ok(verify(&f, &r));
    assert_int_equal(r.size, 4);
    assert_int_equal(r.n_torn, 0);
    audit_log_abandon(l);
}

typedef struct names {
    char name[64][128];
    size_t n;
} names;

static ig_status on_file(void *user, const char *name, const struct stat *st)
{
    names *l = user;
    (void)st;
    snprintf(l->name[l->n++], sizeof l->name[0], "%s", name);
    return l->n < 64 ? IG_OK : ig_fail(IG_ELIMIT, "too many files");
}

/* Flips one bit of every `step`-th byte of every file; a flip must be found, and its file named. */
static void flip_all(size_t step)
{
    names l = {.n = 0};
    assert_ok(file_walk(dir, on_file, &l));
    assert_in_range(l.n, 4, 63);
    for (size_t i = 0; i < l.n; i++) {
        AUTO(buf) b = {0};
        assert_ok(file_read(tmp_path(dir, l.name[i]), 1 << 20, &b));
        for (size_t at = 0; at < b.n; at += step) {
            findings f;
            ig_audit_log_report r;
            b.data[at] ^= 1;
            tmp_write(dir, l.name[i], b.data, b.n);
            if (verify(&f, &r) == IG_OK)
                fail_msg("%s: a flip of byte %zu went unseen", l.name[i], at);
            const char *base = strrchr(l.name[i], '/');
            if (!strstr(ig_error_message(), base ? base + 1 : l.name[i]))
                fail_msg("%s byte %zu: not named in: %s", l.name[i], at, ig_error_message());
            b.data[at] ^= 1;
        }
        tmp_write(dir, l.name[i], b.data, b.n);
    }
}

TEST(every_flipped_byte_of_a_small_log_is_found_and_named)
{
    make_log(1, 0);
    flip_all(1);
}

TEST(flips_in_full_tiles_and_many_segments_are_found_and_named)
{
    make_log(1, 600);
    flip_all(997);
}

TEST(a_log_cut_short_is_found)
{
    findings f;
    ig_audit_log_report r;
    make_log(3, 0);
    const char *seg = tmp_path(dir, "segments/00000000000000000000.seg");
    struct stat st;
    assert_int_equal(stat(seg, &st), 0);
    assert_int_equal(truncate(seg, st.st_size - 1500), 0);
    assert_fails(verify(&f, &r), IG_EVERIFY, "was signed");
    audit_log *l;
    assert_fails(auditlog_open(dir, key, &l), IG_EVERIFY, "was signed");
}

TEST(a_missing_segment_is_found)
{
    findings f;
    ig_audit_log_report r;
    make_log(1, 400);
    names l = {.n = 0};
    char segments[TMP_PATH_N + 16];
    snprintf(segments, sizeof segments, "%s/segments", dir);
    assert_ok(file_walk(segments, on_file, &l));
    assert_in_range(l.n, 2, 10);
    assert_int_equal(unlink(tmp_path(segments, l.name[0])), 0);
    assert_fails(verify(&f, &r), IG_EVERIFY, l.name[1]);
    audit_log *log;
    assert_fails(auditlog_open(dir, key, &log), IG_EVERIFY, "gone");
}

TEST(missing_tiles_are_counted_and_rewritten_at_the_next_start)
{
    findings f;
    ig_audit_log_report r;
    make_log(1, 600);
    assert_int_equal(unlink(tmp_path(dir, "tile/0/000")), 0);
    assert_int_equal(unlink(tmp_path(dir, "tile/entries/001")), 0);
    assert_ok(verify(&f, &r));
    assert_int_equal(r.n_missing, 2);
    make_log(0, 0);
    assert_ok(verify(&f, &r));
    assert_int_equal(r.n_missing, 0);
}

TEST(a_checkpoint_of_an_earlier_visit_must_be_extended)
{
    findings f;
    ig_audit_log_report r;
    AUTO(buf) old = {0}, other = {0};
    make_log(2, 0);
    assert_ok(file_read(tmp_path(dir, "checkpoint"), 10000, &old));
    make_log(2, 0);
    ig_audit_log_options o = {.finding = on_finding, .user = &f, .known = old.data};
    f = (findings){.n = 0};
    assert_ok(ig_audit_log_verify(dir, log_key_public(key)->text, &o, &r));
    checkpoint c = {.size = 3};
    buf_init(&other, CHECKPOINT_MAX);
    assert_ok(checkpoint_sign(key, &c, &other));
    o.known = other.data;
    assert_fails(ig_audit_log_verify(dir, log_key_public(key)->text, &o, &r), IG_EVERIFY,
                 "history was rewritten");
    c.size = 1000;
    buf_clear(&other);
    assert_ok(checkpoint_sign(key, &c, &other));
    o.known = other.data;
    assert_fails(ig_audit_log_verify(dir, log_key_public(key)->text, &o, &r), IG_EVERIFY,
                 "shorter than the known");
}

TEST(a_published_checkpoint_that_was_rolled_back_is_found_at_start)
{
    AUTO(buf) seg = {0};
    make_log(1, 0);
    assert_ok(file_read(tmp_path(dir, "segments/00000000000000000000.seg"), 1 << 20, &seg));
    make_log(1, 0);
    tmp_write(dir, "segments/00000000000000000000.seg", seg.data, seg.n);
    audit_log *l;
    assert_fails(auditlog_open(dir, key, &l), IG_EVERIFY, "a checkpoint over 10 was signed");
}

TEST(the_reading_api_shows_finds_and_proves)
{
    ig_audit_log *l;
    char *json, *receipt_text;
    uint64_t at;
    const char *vkey = log_key_public(key)->text, *leaf;
    size_t n;
    make_log(2, 0);
    assert_ok(ig_audit_log_open(dir, vkey, &l));
    assert_int_equal(ig_audit_log_size(l), 7);
    assert_ok(ig_audit_log_event(l, 1, &json));
    assert_non_null(strstr(json, "\"type\":\"load\""));
    ig_audit_text_free(json);
    assert_fails(ig_audit_log_event(l, 7, &json), IG_ENOTFOUND, "no event 7");
    assert_ok(ig_audit_log_find(l, "r", &at));
    assert_int_equal(at, 3);
    assert_fails(ig_audit_log_find(l, "s", &at), IG_ENOTFOUND, "no finished request s");
    assert_ok(ig_audit_log_prove(l, 3, &receipt_text));
    assert_fails(ig_audit_log_prove(l, 2, &json), IG_EINVAL, "its type is admit, not done");
    ig_audit_receipt *r;
    assert_ok(ig_audit_receipt_open(receipt_text, strlen(receipt_text), vkey, &r));
    assert_ok(ig_audit_receipt_event(r, "admit", &leaf, &n));
    assert_non_null(memmem(leaf, n, "\"type\":\"admit\"", 14));
    assert_fails(ig_audit_receipt_check(r, "out.0", "x", 1), IG_ENOTFOUND, "no secret");
    ig_audit_receipt_close(r);
    ig_audit_text_free(receipt_text);
    ig_audit_log_close(l);
}

/* Gives the last stored checkpoint another signature, in a record that is whole. */
static void forge_last_note(void)
{
    AUTO(buf) bytes = {0}, forged = {0};
    const char *path = tmp_path(dir, "segments/00000000000000000000.seg");
    size_t at = SEGMENT_HEADER_N, last = 0;
    segment_record r, note = {.size = 0};
    assert_ok(file_read(path, SEGMENT_MAX_BYTES, &bytes));
    const uint8_t *p = (const uint8_t *)bytes.data;
    for (; segment_read(p + at, bytes.n - at, &r) == SEGMENT_RECORD; at += r.size)
        if (r.kind == RECORD_CHECKPOINT) {
            note = r;
            last = at;
        }
    assert_true(last > 0);
    char *mark = bytes.data + last + SEGMENT_RECORD_N + note.bytes.n - 20;
    *mark = *mark == 'A' ? 'B' : 'A';
    buf_init(&forged, SEGMENT_MAX_RECORD);
    segment_record_write(RECORD_CHECKPOINT, note.index, note.bytes, &forged);
    memcpy(bytes.data + last, forged.data, forged.n);
    tmp_write(dir, "segments/00000000000000000000.seg", bytes.data, bytes.n);
    assert_int_equal(unlink(tmp_path(dir, "checkpoint")), 0);
}

TEST(a_checkpoint_that_receipts_would_carry_must_be_signed)
{
    ig_audit_log *l;
    audit_log *running;
    findings f;
    ig_audit_log_report r;
    make_log(1, 0);
    forge_last_note();
    assert_fails(ig_audit_log_open(dir, log_key_public(key)->text, &l), IG_EVERIFY,
                 "does not verify");
    assert_fails(auditlog_open(dir, key, &running), IG_EVERIFY, "does not verify");
    assert_int_equal(verify(&f, &r), IG_EVERIFY);
    assert_non_null(strstr(f.text, "does not verify"));
}

static ig_status verify_once(void *user)
{
    findings f;
    ig_status st = verify(&f, user);
    /* jansson reports failed allocations as bad tokens, hence as findings */
    return st == IG_EVERIFY && mem_fault_hits() ? IG_ENOMEM : st;
}

TEST(every_failing_allocation_of_a_verification_is_reported)
{
    ig_audit_log_report r;
    make_log(2, 0);
    json_set_alloc_funcs(mem_alloc, mem_free);
    assert_in_range(walk_memory(verify_once, &r), 20, 5000);
}

/* ---- rules between events ---- */

typedef struct chain {
    ledger l;
    uint64_t index;
    tree_hash hash; /* of the last event */
    ig_status status;
} chain;

static void add(chain *c, event *e, int64_t mono)
{
    AUTO(buf) leaf = {0};
    buf_init(&leaf, EVENT_MAX_LEAF);
    auditlog_common(e);
    event_int(e, EV_ANY_MONO, mono);
    assert_ok(event_encode(e, &leaf));
    tree_hash_leaf(leaf.data, leaf.n, &c->hash);
    c->status = ledger_add(&c->l, c->index++, &c->hash, (str){leaf.data, leaf.n}, true);
}

static void add_boot(chain *c)
{
    event e;
    static const uint8_t zero[SHA256_N];
    event_init(&e, EVENT_BOOT);
    event_str(&e, EV_BOOT_VER, "1");
    event_hex(&e, EV_BOOT_ENG_BUILD, zero);
    event_str(&e, EV_BOOT_ENG_ISA, "ref");
    event_int(&e, EV_BOOT_ENG_THREADS, 1);
    event_str(&e, EV_BOOT_CPU, "");
    event_hex(&e, EV_BOOT_MACH, zero);
    event_hex(&e, EV_BOOT_CFG, zero);
    event_str(&e, EV_BOOT_CLOCK_SOURCE, "ntp");
    add(c, &e, 10);
}

static audit_ref add_load(chain *c)
{
    event e;
    auditlog_load(&e);
    add(c, &e, 20);
    return (audit_ref){c->index - 1, c->hash};
}

static void add_done_of(chain *c, const audit_ref *admit, const char *req)
{
    event e;
    auditlog_done(&e);
    event_str(&e, EV_DONE_REQ, req);
    event_int(&e, EV_DONE_ADMIT_I, (int64_t)admit->index);
    event_hex(&e, EV_DONE_ADMIT_H, admit->leaf.b);
    add(c, &e, 40);
}

static audit_ref add_admit(chain *c, const audit_ref *load)
{
    event e;
    auditlog_admit(&e, "r", load);
    add(c, &e, 30);
    return (audit_ref){c->index - 1, c->hash};
}

static void add_done(chain *c, const audit_ref *admit, const char *status)
{
    event e;
    auditlog_done(&e);
    event_str(&e, EV_DONE_REQ, "r");
    event_str(&e, EV_DONE_STATUS, status);
    event_int(&e, EV_DONE_ADMIT_I, (int64_t)admit->index);
    event_hex(&e, EV_DONE_ADMIT_H, admit->leaf.b);
    add(c, &e, 40);
}

static void add_stop(chain *c, int64_t admits, int64_t dones)
{
    event e;
    event_init(&e, EVENT_STOP);
    event_str(&e, EV_STOP_REASON, "term");
    event_int(&e, EV_STOP_ADMITS, admits);
    event_int(&e, EV_STOP_DONES, dones);
    add(c, &e, 50);
}

static void add_gap(chain *c)
{
    event e;
    event_init(&e, EVENT_GAP);
    event_str(&e, EV_GAP_REASON, "crash");
    event_int(&e, EV_GAP_SIZE, (int64_t)c->index);
    event_int(&e, EV_GAP_SIGNED, 0);
    event_int(&e, EV_GAP_CUT, 0);
    event_int(&e, EV_GAP_ORPHANS, 0);
    add(c, &e, 1);
}

static void begin(chain *c, audit_ref *ret_load)
{
    *c = (chain){.index = 0};
    ledger_init(&c->l);
    add_boot(c);
    assert_ok(c->status);
    *ret_load = add_load(c);
    assert_ok(c->status);
}

static void assert_broken(chain *c, const char *rule)
{
    assert_int_equal(c->status, IG_EVERIFY);
    if (!strstr(ig_error_message(), rule))
        fail_msg("\"%s\" lacks \"%s\"", ig_error_message(), rule);
    ledger_done(&c->l);
}

/* Admits a request whose seed is that of (root, "r"), with this root and size. */
static void admit_seeded(audit_log *l, const audit_ref *load, const checkpoint *from, bool flip)
{
    event e;
    audit_token *t;
    audit_ref done;
    uint64_t seed;
    char text[24];
    tree_hash root = from->root;
    root.b[5] ^= flip;
    assert_ok(commit_seed(root.b, "r", &seed));
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    auditlog_admit(&e, "r", load);
    event_str(&e, EV_ADMIT_SEED_FROM, "log");
    event_str(&e, EV_ADMIT_SEED_VALUE, text);
    event_int(&e, EV_ADMIT_SEED_SIZE, (int64_t)from->size);
    event_hex(&e, EV_ADMIT_SEED_ROOT, root.b);
    assert_ok(audit_admit(l, &e, &t));
    auditlog_done_full(&e);
    assert_ok(audit_done(t, &e, &done));
    audit_token_free(t);
}

TEST(a_seed_comes_from_a_root_that_the_log_has_signed)
{
    audit_log *l;
    audit_ref load;
    checkpoint c;
    findings f;
    ig_audit_log_report r;
    assert_ok(auditlog_open(dir, key, &l));
    assert_ok(auditlog_start(l, &load));
    for (int i = 0; i < 3; i++) {
        AUTO(buf) note = {0};
        assert_ok(audit_checkpoint(l, &c, &note));
        admit_seeded(l, &load, &c, false);
    }
    assert_ok(audit_log_close(l, "exit"));
    assert_ok(verify(&f, &r));

    assert_ok(auditlog_open(dir, key, &l));
    assert_ok(auditlog_start(l, &load));
    admit_seeded(l, &load, &c, true);
    assert_ok(audit_log_close(l, "exit"));
    assert_int_equal(verify(&f, &r), IG_EVERIFY);
    assert_int_equal(f.n, 1);
    assert_non_null(strstr(f.text, "seed.root is that of no checkpoint"));
}

TEST(each_rule_between_events_is_enforced)
{
    chain c;
    audit_ref load, admit;
    begin(&c, &load);
    admit = add_admit(&c, &load);
    add_done(&c, &admit, "error");
    assert_ok(c.status);
    add_done(&c, &admit, "error");
    assert_broken(&c, "which is no open admit");

    begin(&c, &load);
    admit = add_admit(&c, &load);
    admit.leaf.b[0] ^= 1;
    add_done(&c, &admit, "error");
    assert_broken(&c, "admit.h is not the leaf hash");

    begin(&c, &load);
    admit = add_admit(&c, &load);
    add_done_of(&c, &admit, "another");
    assert_broken(&c, "req is not that of admit.i");

    begin(&c, &load);
    load.leaf.b[0] ^= 1;
    (void)add_admit(&c, &load);
    assert_broken(&c, "load.h is not the leaf hash");

    begin(&c, &load);
    load.index = 0;
    (void)add_admit(&c, &load);
    assert_broken(&c, "load.i is no load");

    begin(&c, &load);
    (void)add_admit(&c, &load);
    add_stop(&c, 1, 0);
    assert_broken(&c, "stop while requests are open");

    begin(&c, &load);
    add_stop(&c, 1, 0);
    assert_broken(&c, "n.admit or n.done");

    begin(&c, &load);
    add_boot(&c);
    assert_broken(&c, "neither stop nor gap");

    begin(&c, &load);
    admit = add_admit(&c, &load);
    add_gap(&c);
    assert_ok(c.status);
    add_boot(&c);
    assert_broken(&c, "boot while orphans");

    begin(&c, &load);
    admit = add_admit(&c, &load);
    add_gap(&c);
    add_done(&c, &admit, "error");
    assert_broken(&c, "not status recovered");

    begin(&c, &load);
    add_stop(&c, 0, 0);
    assert_ok(c.status);
    (void)add_load(&c);
    assert_broken(&c, "outside a session");
}

/* Every kind of event as version 0.1.0 wrote it. The file is never made anew: a field that a later
 * version requires, or writes in another place, would take old logs from their owners. */
TEST(leaves_of_an_old_log_still_parse_and_keep_the_rules)
{
    AUTO(buf) text = {0};
    ledger l;
    uint64_t index = 0;
    ledger_init(&l);
    assert_ok(file_read("tests/golden/audit/events.txt", (size_t)1 << 20, &text));
    for (const char *at = text.data, *end; (end = strchr(at, '\n')); at = end + 1) {
        tree_hash hash;
        str leaf = {at, (size_t)(end - at)};
        tree_hash_leaf(leaf.p, leaf.n, &hash);
        assert_ok(ledger_add(&l, index++, &hash, leaf, true));
    }
    assert_int_equal(index, 13);
    assert_int_equal(l.n_sessions, 3);
    assert_int_equal(l.n_admits, 2);
    assert_int_equal(l.n_dones, 2);
    assert_int_equal(l.n_open, 0);
    ledger_done(&l);
}

int main(void)
{
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 0); /* many small logs */
    const struct CMUnitTest tests[] = {
#define ISOLATED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        ISOLATED(a_good_log_verifies_and_is_counted),
        ISOLATED(a_log_verifies_while_its_server_runs),
        ISOLATED(every_flipped_byte_of_a_small_log_is_found_and_named),
        ISOLATED(flips_in_full_tiles_and_many_segments_are_found_and_named),
        ISOLATED(a_log_cut_short_is_found),
        ISOLATED(a_missing_segment_is_found),
        ISOLATED(missing_tiles_are_counted_and_rewritten_at_the_next_start),
        ISOLATED(a_checkpoint_of_an_earlier_visit_must_be_extended),
        ISOLATED(a_published_checkpoint_that_was_rolled_back_is_found_at_start),
        ISOLATED(the_reading_api_shows_finds_and_proves),
        ISOLATED(every_failing_allocation_of_a_verification_is_reported),
        ISOLATED(a_checkpoint_that_receipts_would_carry_must_be_signed),
        ISOLATED(a_seed_comes_from_a_root_that_the_log_has_signed),
        CASE(each_rule_between_events_is_enforced),
        CASE(leaves_of_an_old_log_still_parse_and_keep_the_rules),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
