/* Makes what outsiders check: a signed bundle, a log of several hundred events, receipts, an old
 * checkpoint. Alone it checks them itself; run_outsiders.sh calls it with INGOT_ARTIFACTS=DIR and
 * lets other people's tools look at DIR. With INGOT_THEIRS=DIR it verifies a model that another
 * tool signed. */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/tmp.h"
#include "audit/scripts.h"
#include "audit/sign.h"
#include "base/file.h"
#include "ingot/audit.h"

static char dir[TMP_PATH_N];
static bool keep;

static int setup(void **state)
{
    const char *where = getenv("INGOT_ARTIFACTS");
    (void)state;
    keep = where != NULL;
    if (keep)
        snprintf(dir, sizeof dir, "%s", where);
    else
        tmp_open(dir);
    return file_mkdirs(dir, 0755) != IG_OK;
}

static int teardown(void **state)
{
    (void)state;
    if (!keep) tmp_close(dir);
    return 0;
}

TEST(a_bundle_is_signed)
{
    AUTO(publisher_key_ptr) k = NULL;
    char model[TMP_PATH_N + 16];
    uint8_t weights[5000];
    memset(weights, 0x5A, sizeof weights);
    snprintf(model, sizeof model, "%s/bundle/model", dir);
    assert_ok(file_mkdirs(tmp_path(model, "extra dir"), 0755));
    tmp_write(model, "config.json", "{}\n", 3);
    tmp_write(model, "model.safetensors", weights, sizeof weights);
    tmp_write(model, "gr\xC3\xBC\xC3\x9F.txt", "hi", 2);
    tmp_write(model, "extra dir/it's \"quoted\".txt", "x", 1);
    tmp_write(model, "empty", "", 0);
    assert_ok(publisher_key_generate(&k));
    assert_ok(publisher_key_write_private(k, tmp_path(dir, "publisher.key")));
    assert_ok(publisher_key_write_public(k, tmp_path(dir, "publisher.pub")));
    assert_ok(chunks_write(model, NULL));
    assert_ok(oms_sign_dir(model, k, tmp_path(dir, "bundle/model.sig"), NULL, NULL));
    assert_ok(scripts_write_bundle(tmp_path(dir, "bundle")));
    ig_audit_model m;
    assert_ok(ig_audit_model_verify(model, tmp_path(dir, "bundle/model.sig"),
                                    tmp_path(dir, "publisher.pub"), NULL, NULL, &m));
    tmp_write(dir, "root", m.root, 64);
}

static void write_receipt(audit_log *l, uint64_t done, const char *name)
{
    AUTO(buf) text = {0};
    AUTO(receipt_ptr) r = NULL;
    commit_secret secret;
    char split[TMP_PATH_N + 32];
    static const uint8_t ids[] = {42, 0, 0, 0, 43, 0, 0, 0};
    receipt_opening open[] = {{"tout.0", ids, sizeof ids}};
    auditlog_secret(&secret);
    assert_ok(audit_receipt(l, done, &secret, open, 1, &text));
    tmp_write(dir, name, text.data, text.n);
    assert_ok(receipt_open(name, (str){text.data, text.n}, audit_log_vkey(l), &r));
    snprintf(split, sizeof split, "%s/split-%s", dir, strchr(name, '/') ? "small" : name);
    assert_ok(receipt_split(r, split));
}

TEST(a_log_is_written_and_receipts_taken)
{
    AUTO(log_key_ptr) key = NULL;
    AUTO(buf) note = {0};
    audit_log *l;
    audit_ref load, first, last;
    checkpoint c;
    assert_ok(log_key_generate("ingot.test/log", &key));
    assert_ok(log_key_write(key, tmp_path(dir, "log.key")));
    assert_ok(log_vkey_write(log_key_public(key), tmp_path(dir, "log.vkey")));
    assert_ok(auditlog_open(tmp_path(dir, "log"), key, &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "first", &load, &first));
    assert_ok(audit_checkpoint(l, &c, &note));
    tmp_write(dir, "old.checkpoint", note.data, note.n);
    write_receipt(l, first.index, "receipt-early");
    assert_ok(auditlog_fill(l, 597));
    assert_ok(auditlog_request(l, "last", &load, &last));
    write_receipt(l, first.index, "receipt-first");
    write_receipt(l, last.index, "receipt-last");
    assert_ok(audit_log_close(l, "exit"));
    tmp_write(dir, "answer.txt", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER));
    tmp_write(dir, "request.json", AUDITLOG_BODY, strlen(AUDITLOG_BODY));
    assert_ok(scripts_write_check(tmp_path(dir, "check.sh")));
    ig_audit_log_options o = {.known = note.data};
    ig_audit_log_report r;
    assert_ok(ig_audit_log_verify(tmp_path(dir, "log"), log_key_public(key)->text, &o, &r));
    assert_int_equal(r.n_open, 0);
}

/* The seeds of the fuzz targets come from here: INGOT_ARTIFACTS=DIR, then DIR/small. */
TEST(a_small_log_is_written)
{
    AUTO(log_key_ptr) key = NULL;
    char small[TMP_PATH_N + 16];
    audit_log *l;
    audit_ref load, done;
    snprintf(small, sizeof small, "%s/small", dir);
    assert_ok(log_key_generate("t", &key));
    assert_ok(auditlog_open(small, key, &l));
    assert_ok(auditlog_start(l, &load));
    assert_ok(auditlog_request(l, "r", &load, &done));
    write_receipt(l, done.index, "small/receipt");
    assert_ok(audit_log_close(l, "exit"));
}

TEST(a_model_signed_by_another_tool_verifies)
{
    const char *theirs = getenv("INGOT_THEIRS");
    ig_audit_model m;
    if (!theirs) skip();
    assert_ok(ig_audit_model_verify(tmp_path(theirs, "model"), tmp_path(theirs, "model.sig"),
                                    tmp_path(theirs, "publisher.pub"), NULL, NULL, &m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_bundle_is_signed),
        CASE(a_log_is_written_and_receipts_taken),
        CASE(a_small_log_is_written),
        CASE(a_model_signed_by_another_tool_verifies),
    };
    return cmocka_run_group_tests_name("artifacts", tests, setup, teardown);
}
