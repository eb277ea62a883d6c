/* Model signatures: what is signed verifies, whatever else is refused and named. */
#include "support/test.h"
#include "support/tmp.h"
#include "support/walk.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "audit/scripts.h"
#include "audit/sign.h"
#include "base/file.h"
#include "base/json.h"
#include "ingot/audit.h"

static char dir[TMP_PATH_N], model[TMP_PATH_N + 8], sig[TMP_PATH_N + 12], pub[TMP_PATH_N + 8];
static publisher_key *key;

static void write_model(void)
{
    assert_ok(file_mkdirs(tmp_path(model, "verity"), 0755));
    tmp_write(model, "config.json", "{}", 2);
    tmp_write(model, "model-00001-of-00001.safetensors", "weights", 7);
    tmp_write(model, "tokenizer.json", "{\"a\":1}", 7);
    tmp_write(model, "verity/w.sha256c", "0123456789abcdef0123456789abcdef", 32);
    tmp_write(model, ".hidden", "", 0);
}

static int setup(void **state)
{
    (void)state;
    tmp_open(dir);
    snprintf(model, sizeof model, "%s/model", dir);
    snprintf(sig, sizeof sig, "%s/model.sig", dir);
    snprintf(pub, sizeof pub, "%s/k.pub", dir);
    write_model();
    assert_ok(publisher_key_generate(&key));
    assert_ok(publisher_key_write_public(key, pub));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    publisher_key_free(key);
    tmp_close(dir);
    return 0;
}

static ig_status verify(void)
{
    AUTO(oms) s = {.n_ignored = 0};
    return oms_verify(model, sig, pub, NULL, &s);
}

TEST(a_signed_model_verifies_and_says_what_it_is)
{
    uint8_t root[SHA256_N];
    AUTO(oms) s = {.n_ignored = 0};
    struct stat st;
    assert_ok(oms_sign_dir(model, key, sig, NULL, root));
    assert_ok(oms_verify(model, sig, pub, NULL, &s));
    assert_memory_equal(s.root, root, SHA256_N);
    assert_string_equal(s.name, "model");
    assert_string_equal(s.fingerprint, publisher_key_fingerprint(key));
    assert_int_equal(s.files.n, 5);
    assert_int_equal(s.files.n_bytes, 2 + 7 + 7 + 32);
    const manifest_file *f = oms_find(&s, str_of("config.json"));
    assert_non_null(f);
    assert_int_equal(stat(tmp_path(model, "config.json"), &st), 0);
    assert_int_equal(f->st.st_ino, st.st_ino);
    assert_null(oms_find(&s, str_of("other")));
    ig_audit_model m;
    assert_ok(ig_audit_model_verify(model, sig, pub, NULL, NULL, &m));
    assert_int_equal(m.n_files, 5);
    assert_int_equal(strlen(m.root), 64);
}

TEST(a_key_that_is_not_trusted_does_not_count)
{
    AUTO(publisher_key_ptr) other = NULL;
    assert_ok(publisher_key_generate(&other));
    assert_ok(oms_sign_dir(model, other, sig, NULL, NULL));
    assert_fails(verify(), IG_EVERIFY, "not trusted");
}

TEST(a_changed_missing_or_extra_file_is_named)
{
    assert_ok(oms_sign_dir(model, key, sig, NULL, NULL));
    tmp_write(model, "tokenizer.json", "{\"a\":2}", 7);
    assert_fails(verify(), IG_EVERIFY, "tokenizer.json: not the bytes that were signed");
    write_model();
    tmp_write(model, "verity/extra", "", 0);
    assert_fails(verify(), IG_EVERIFY, "verity/extra: not covered");
    unlink(tmp_path(model, "verity/extra"));
    unlink(tmp_path(model, ".hidden"));
    assert_fails(verify(), IG_EVERIFY, ".hidden: signed, but missing");
}

TEST(every_flipped_byte_of_every_file_is_found_and_named)
{
    static const char *const names[] = {"config.json", "model-00001-of-00001.safetensors",
                                        "tokenizer.json", "verity/w.sha256c"};
    assert_ok(oms_sign_dir(model, key, sig, NULL, NULL));
    for (size_t i = 0; i < N_ELEM(names); i++) {
        AUTO(buf) b = {0};
        assert_ok(file_read(tmp_path(model, names[i]), 1000, &b));
        for (size_t at = 0; at < b.n; at++) {
            b.data[at] ^= 0x20;
            tmp_write(model, names[i], b.data, b.n);
            assert_fails(verify(), IG_EVERIFY, names[i]);
            b.data[at] ^= 0x20;
        }
        tmp_write(model, names[i], b.data, b.n);
    }
    assert_ok(verify());
}

TEST(every_flipped_byte_of_the_signature_file_is_refused)
{
    AUTO(buf) b = {0};
    assert_ok(oms_sign_dir(model, key, sig, NULL, NULL));
    assert_ok(file_read(sig, SIGN_MAX_BYTES, &b));
    AUTO(trust) t = {.n = 0};
    assert_ok(trust_read(pub, &t));
    for (size_t at = 0; at < b.n; at++) {
        AUTO(oms) s = {.n_ignored = 0};
        b.data[at] ^= 1;
        ig_error_clear();
        if (oms_parse("model.sig", (str){b.data, b.n}, &t, &s) == IG_OK)
            fail_msg("a flip of byte %zu went unseen", at);
        assert_non_null(strstr(ig_error_message(), "model.sig"));
        b.data[at] ^= 1;
    }
}

TEST(a_symlink_is_refused_when_signing_and_when_verifying)
{
    assert_ok(oms_sign_dir(model, key, sig, NULL, NULL));
    unlink(tmp_path(model, "config.json"));
    assert_int_equal(symlink("tokenizer.json", tmp_path(model, "config.json")), 0);
    assert_int_not_equal(verify(), IG_OK);
    assert_non_null(strstr(ig_error_message(), "config.json"));
    assert_int_not_equal(oms_sign_dir(model, key, sig, NULL, NULL), IG_OK);
}

TEST(names_that_tools_read_differently_are_not_signed)
{
    tmp_write(model, "a\nb", "x", 1);
    assert_fails(oms_sign_dir(model, key, sig, NULL, NULL), IG_EINVAL, "control character");
    unlink(tmp_path(model, "a\nb"));
    tmp_write(model, ".gitignore", "x", 1);
    assert_fails(oms_sign_dir(model, key, sig, NULL, NULL), IG_EINVAL, ".gitignore");
}

/* ---- hand-made bundles: well signed, but saying what they should not ---- */

typedef struct parts {
    const char *statement; /* NULL: a good one */
    const char *media, *extra_material, *payload_type, *signatures_after, *keyid;
} parts;

#define HEX_A "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" /* sha256("a") */
#define ROOT_A \
    "bf5d3affb73efd2ec6c36ad3112dd933efed63c4e1cbffcfa88e2759c144f2d8" /* of its raw bytes */
#define STATEMENT(subjects, type, ser, resources)                                                  \
    "{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[" subjects "],\"predicateType\":" \
    "\"https://model_signing/signature/" type "\",\"predicate\":{\"serialization\":{" ser          \
    "},\"resources\":[" resources "]}}"
#define SUBJECT "{\"name\":\"m\",\"digest\":{\"sha256\":\"" ROOT_A "\"}}"
#define SER \
    "\"method\":\"files\",\"hash_type\":\"sha256\",\"allow_symlinks\":false,\"ignore_paths\":[]"
#define FILE_A(name) "{\"name\":\"" name "\",\"algorithm\":\"sha256\",\"digest\":\"" HEX_A "\"}"

static void make_bundle(const parts *p, buf *out)
{
    static const char good[] = STATEMENT(SUBJECT, "v1.0", SER, FILE_A("a"));
    const char *st = p->statement ? p->statement : good;
    AUTO(buf) pae = {0};
    uint8_t der[80];
    size_t n;
    buf_init(&pae, 100000);
    buf_printf(&pae, "DSSEv1 28 application/vnd.in-toto+json %zu %s", strlen(st), st);
    assert_ok(publisher_key_sign(key, pae.data, pae.n, der, &n));
    buf_init(out, 100000);
    buf_printf(
        out, "{\"mediaType\":\"%s\",\"verificationMaterial\":{\"publicKey\":{\"hint\":\"%s\"}%s},",
        p->media ? p->media : "application/vnd.dev.sigstore.bundle.v0.3+json",
        publisher_key_fingerprint(key), p->extra_material ? p->extra_material : "");
    buf_str(out, "\"dsseEnvelope\":{\"payload\":\"");
    buf_base64(out, st, strlen(st));
    buf_printf(out, "\",\"payloadType\":\"%s\",\"signatures\":[{\"sig\":\"",
               p->payload_type ? p->payload_type : "application/vnd.in-toto+json");
    buf_base64(out, der, n);
    buf_printf(out, "\",\"keyid\":\"%s\"}%s]}}", p->keyid ? p->keyid : "",
               p->signatures_after ? p->signatures_after : "");
    assert_ok(buf_status(out));
}

static ig_status parse_parts(const parts *p)
{
    AUTO(buf) text = {0};
    AUTO(trust) t = {.n = 0};
    AUTO(oms) s = {.n_ignored = 0};
    make_bundle(p, &text);
    assert_ok(trust_read(pub, &t));
    return oms_parse("model.sig", (str){text.data, text.n}, &t, &s);
}

TEST(a_plain_hand_made_bundle_is_accepted) { assert_ok(parse_parts(&(parts){.statement = NULL})); }

TEST(what_other_verifiers_let_pass_is_refused)
{
#define S(subjects, type, ser, resources) STATEMENT(subjects, type, ser, resources)
    static const struct {
        parts p;
        const char *message;
    } cases[] = {
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("a") "," FILE_A("a"))}, "lists a twice"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("../a"))}, ". or .. part"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("/a"))}, "absolute"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("."))}, ". or .. part"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("a//b"))}, ". or .. part"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("a\\u0000b"))}, "control character"},
        {{.statement = S(SUBJECT, "v1.0", SER, FILE_A("a\\\\b"))}, "backslash"},
        {{.statement = S(SUBJECT, "v1.0", SER, "")}, "lists 0 files"},
        {{.statement = S(SUBJECT "," SUBJECT, "v1.0", SER, FILE_A("a"))}, "exactly one subject"},
        {{.statement = S(SUBJECT, "v1.1", SER, FILE_A("a"))}, "v1.0"},
        {{.statement = S("{\"name\":\"m\",\"digest\":{\"sha256\":\"" HEX_A "\"}}", "v1.0", SER,
                         FILE_A("a"))},
         "root digest is not"},
        {{.statement =
              S(SUBJECT, "v1.0", "\"method\":\"shards\",\"hash_type\":\"sha256\"", FILE_A("a"))},
         "only method \"files\""},
        {{.statement =
              S(SUBJECT, "v1.0", "\"method\":\"files\",\"hash_type\":\"blake3\"", FILE_A("a"))},
         "only method \"files\""},
        {{.statement = S(SUBJECT, "v1.0",
                         "\"method\":\"files\",\"hash_type\":\"sha256\",\"allow_symlinks\":true",
                         FILE_A("a"))},
         "allow_symlinks"},
        {{.statement = S(SUBJECT, "v1.0",
                         "\"method\":\"files\",\"hash_type\":\"sha256\",\"ignore_paths\":"
                         "[\"weights.safetensors\"]",
                         FILE_A("a"))},
         "leaves out \"weights.safetensors\""},
        {{.statement =
              S(SUBJECT, "v1.0",
                "\"method\":\"files\",\"hash_type\":\"sha256\",\"ignore_paths\":[\"d/x.sig\"]",
                FILE_A("a"))},
         "leaves out \"d/x.sig\""},
        {{.statement =
              S(SUBJECT, "v1.0", SER,
                "{\"name\":\"a\",\"algorithm\":\"sha256\",\"digest\":\"CA978112CA1BBDCAFAC231B39A"
                "23DC4DA786EFF8147C4E72B9807785AFEE48BB\"}")},
         "lower-case hex"},
        {{.statement = "{\"_type\":\"x\"}"}, "not a statement"},
        {{.statement = "[1"}, "model.sig"},
        {{.media = "application/vnd.dev.sigstore.bundle+json;version=0.3"},
         "not a Sigstore bundle"},
        {{.extra_material = ",\"x509CertificateChain\":{}"}, "unknown fields"},
        {{.extra_material = ",\"tlogEntries\":[{}]"}, "tlogEntries"},
        {{.payload_type = "text/plain"}, "not a DSSE envelope"},
        {{.signatures_after = ",{\"sig\":\"\",\"keyid\":\"\"}"}, "exactly one signature"},
        {{.keyid = "someone"}, "different keys"},
    };
    for (size_t i = 0; i < N_ELEM(cases); i++) {
        ig_error_clear();
        if (parse_parts(&cases[i].p) == IG_OK) fail_msg("case %zu was accepted", i);
        if (!strstr(ig_error_message(), cases[i].message))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, ig_error_message(), cases[i].message);
    }
}

TEST(gits_files_and_signatures_may_be_left_out)
{
    static const char st[] = STATEMENT(
        SUBJECT, "v1.0",
        "\"method\":\"files\",\"hash_type\":\"sha256\",\"ignore_paths\":[\".git\",\"model.sig\"]",
        FILE_A("a"));
    AUTO(buf) text = {0};
    make_bundle(&(parts){.statement = st}, &text);
    char small[TMP_PATH_N + 8];
    snprintf(small, sizeof small, "%s/small", dir);
    assert_ok(file_mkdirs(tmp_path(dir, "small/.git/x"), 0755));
    tmp_write(dir, "small/a", "a", 1);
    tmp_write(dir, "small/.git/x/y", "1", 1);
    tmp_write(dir, "small/model.sig", text.data, text.n);
    AUTO(oms) s = {.n_ignored = 0};
    assert_ok(oms_verify(small, tmp_path(dir, "small/model.sig"), pub, NULL, &s));
    tmp_write(dir, "small/.gitx", "1", 1);
    AUTO(oms) again = {.n_ignored = 0};
    assert_fails(oms_verify(small, tmp_path(dir, "small/model.sig"), pub, NULL, &again), IG_EVERIFY,
                 ".gitx: not covered");
}

/* ---- hashing ---- */

static void on_progress(void *user, int64_t done, int64_t total)
{
    int64_t *last = user;
    assert_true(done >= *last && done <= total);
    *last = done;
}

TEST(progress_ends_at_the_total)
{
    AUTO(manifest) m = {.n = 0};
    int64_t last = 0;
    manifest_options o = {.n_threads = 2, .progress = on_progress, .user = &last};
    assert_ok(manifest_hash_dir(model, &o, &m));
    assert_int_equal(last, m.n_bytes);
}

TEST(chunk_lists_hold_the_digest_of_each_four_mebibytes)
{
    size_t n = 2 * CHUNK_BYTES + 100;
    uint8_t *w = calloc(1, n);
    for (size_t i = 0; i < n; i += 997) w[i] = (uint8_t)i;
    tmp_write(model, "w.safetensors", w, n);
    assert_ok(chunks_write(model, NULL));
    AUTO(buf) list = {0}, small = {0};
    assert_ok(file_read(tmp_path(model, "verity/w.safetensors.sha256c"), 10000, &list));
    assert_ok(file_read(tmp_path(model, "verity/model-00001-of-00001.safetensors.sha256c"), 10000,
                        &small));
    const uint8_t *l = (const uint8_t *)list.data;
    assert_int_equal(list.n, 3 * 32);
    assert_int_equal(small.n, 32);
    assert_true(chunks_check(l, list.n, 1, w + CHUNK_BYTES, CHUNK_BYTES));
    assert_true(chunks_check(l, list.n, 2, w + 2 * CHUNK_BYTES, 100));
    assert_false(chunks_check(l, list.n, 0, w + 1, CHUNK_BYTES));
    assert_false(chunks_check(l, list.n, 3, w, 100));
    free(w);
    assert_ok(oms_sign_dir(model, key, sig, NULL, NULL));
    assert_ok(verify());
}

static ig_status sign_and_verify(void *user)
{
    (void)user;
    unlink(sig);
    TRY(oms_sign_dir(model, key, sig, &(manifest_options){.n_threads = 1}, NULL));
    return verify();
}

TEST(every_failing_allocation_is_reported)
{
    json_set_alloc_funcs(mem_alloc, mem_free);
    assert_in_range(walk_memory(sign_and_verify, NULL), 20, 2000);
}

TEST(every_failing_call_of_the_system_is_reported)
{
    assert_in_range(walk_io(sign_and_verify, NULL, EIO, NULL), 10, 1000);
}

TEST(the_scripts_are_written_into_a_bundle)
{
    AUTO(buf) text = {0};
    assert_ok(scripts_write_bundle(dir));
    assert_ok(scripts_write_check(tmp_path(dir, "check.sh")));
    assert_ok(file_read(tmp_path(dir, "verify.sh"), 100000, &text));
    assert_non_null(strstr(text.data, "#!/bin/sh"));
    assert_int_equal(strlen(text.data), text.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_MODEL(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        IN_MODEL(a_signed_model_verifies_and_says_what_it_is),
        IN_MODEL(a_key_that_is_not_trusted_does_not_count),
        IN_MODEL(a_changed_missing_or_extra_file_is_named),
        IN_MODEL(every_flipped_byte_of_every_file_is_found_and_named),
        IN_MODEL(every_flipped_byte_of_the_signature_file_is_refused),
        IN_MODEL(a_symlink_is_refused_when_signing_and_when_verifying),
        IN_MODEL(names_that_tools_read_differently_are_not_signed),
        IN_MODEL(a_plain_hand_made_bundle_is_accepted),
        IN_MODEL(what_other_verifiers_let_pass_is_refused),
        IN_MODEL(gits_files_and_signatures_may_be_left_out),
        IN_MODEL(progress_ends_at_the_total),
        IN_MODEL(chunk_lists_hold_the_digest_of_each_four_mebibytes),
        IN_MODEL(every_failing_allocation_is_reported),
        IN_MODEL(every_failing_call_of_the_system_is_reported),
        IN_MODEL(the_scripts_are_written_into_a_bundle),
    };
    return cmocka_run_group_tests_name("sign", tests, NULL, NULL);
}
