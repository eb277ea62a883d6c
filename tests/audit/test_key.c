/* Keys, signed notes, commitments. */
#include "support/test.h"
#include "support/tmp.h"
#include <sys/stat.h>
#include "audit/checkpoint.h"
#include "audit/commit.h"
#include "base/file.h"

static char dir[TMP_PATH_N];

static int setup(void **state)
{
    (void)state;
    tmp_open(dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tmp_close(dir);
    return 0;
}

TEST(a_publisher_key_survives_its_files_and_keeps_its_fingerprint)
{
    AUTO(publisher_key_ptr) k = NULL, priv = NULL, pub = NULL;
    uint8_t der[80];
    size_t n;
    struct stat st;
    assert_ok(publisher_key_generate(&k));
    assert_ok(publisher_key_write_private(k, tmp_path(dir, "k.pem")));
    assert_ok(publisher_key_write_public(k, tmp_path(dir, "k.pub")));
    assert_int_equal(stat(tmp_path(dir, "k.pem"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_ok(publisher_key_read_private(tmp_path(dir, "k.pem"), &priv));
    assert_ok(publisher_key_read_public(tmp_path(dir, "k.pub"), &pub));
    assert_string_equal(publisher_key_fingerprint(k), publisher_key_fingerprint(pub));
    assert_string_equal(publisher_key_fingerprint(k), publisher_key_fingerprint(priv));
    assert_ok(publisher_key_sign(priv, "abc", 3, der, &n));
    assert_true(publisher_key_check(pub, "abc", 3, der, n));
    assert_false(publisher_key_check(pub, "abd", 3, der, n));
    assert_fails(publisher_key_sign(pub, "abc", 3, der, &n), IG_EINVAL, "private key");
}

TEST(a_fingerprint_is_the_digest_of_the_public_file)
{
    AUTO(publisher_key_ptr) k = NULL;
    AUTO(buf) pem = {0}, hex = {0};
    uint8_t d[SHA256_N];
    assert_ok(publisher_key_generate(&k));
    assert_ok(publisher_key_write_public(k, tmp_path(dir, "k.pub")));
    assert_ok(file_read(tmp_path(dir, "k.pub"), 4096, &pem));
    sha256(pem.data, pem.n, d);
    buf_init(&hex, 65);
    buf_hex(&hex, d, sizeof d);
    assert_string_equal(hex.data, publisher_key_fingerprint(k));
}

TEST(a_key_is_never_overwritten)
{
    AUTO(publisher_key_ptr) k = NULL;
    assert_ok(publisher_key_generate(&k));
    assert_ok(publisher_key_write_private(k, tmp_path(dir, "k.pem")));
    assert_fails(publisher_key_write_private(k, tmp_path(dir, "k.pem")), IG_EINVAL,
                 "never overwritten");
}

TEST(a_private_key_that_others_may_read_is_refused)
{
    AUTO(publisher_key_ptr) k = NULL, again = NULL;
    assert_ok(publisher_key_generate(&k));
    assert_ok(publisher_key_write_private(k, tmp_path(dir, "k.pem")));
    assert_int_equal(chmod(tmp_path(dir, "k.pem"), 0640), 0);
    assert_fails(publisher_key_read_private(tmp_path(dir, "k.pem"), &again), IG_EINVAL,
                 "chmod 600");
}

/* A P-384 key; made with `openssl ecparam -name secp384r1 -genkey | openssl pkey -pubout`. */
static const char p384[] = "-----BEGIN PUBLIC KEY-----\n"
                           "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAElJTHSZPQI7apimZHtNETgN+lnqpg9LmM\n"
                           "BY3KTPkIE6SPY0MGwnDoxgw1B91nhgRFnEE/FeGC1i3fShApKyCf0uz7SCoP66od\n"
                           "KwiMFkGkzNaVwdmjp7gncw2LQefdTgH+\n"
                           "-----END PUBLIC KEY-----\n";

TEST(what_is_no_p256_key_is_refused)
{
    publisher_key *k;
    assert_fails(publisher_key_parse_public("key", str_of(p384), &k), IG_EUNSUPPORTED, "P-256");
    assert_fails(publisher_key_parse_public("key", str_of("hello"), &k), IG_EFORMAT,
                 "PEM public key");
    assert_fails(publisher_key_read_public(tmp_path(dir, "none"), &k), IG_ENOTFOUND, "none");
}

TEST(trust_reads_a_file_or_a_folder)
{
    AUTO(publisher_key_ptr) a = NULL, b = NULL;
    const char *path = NULL;
    assert_ok(publisher_key_generate(&a));
    assert_ok(publisher_key_generate(&b));
    assert_ok(publisher_key_write_public(a, tmp_path(dir, "a.pub")));
    assert_ok(publisher_key_write_public(b, tmp_path(dir, "b.pem")));
    tmp_write(dir, "README", "x", 1);
    AUTO(trust) one = {.n = 0}, all = {.n = 0};
    assert_ok(trust_read(tmp_path(dir, "a.pub"), &one));
    assert_ok(trust_read(dir, &all));
    assert_int_equal(one.n, 1);
    assert_int_equal(all.n, 2);
    assert_non_null(trust_find(&all, str_of(publisher_key_fingerprint(b)), &path));
    assert_non_null(strstr(path, "b.pem"));
    assert_null(trust_find(&one, str_of(publisher_key_fingerprint(b)), NULL));
    AUTO(trust) none = {.n = 0};
    assert_fails(trust_read(tmp_path(dir, "nowhere"), &none), IG_ENOTFOUND, "--trust");
    tmp_write(dir, "c.pub", "x", 1);
    assert_fails(trust_read(dir, &none), IG_EFORMAT, "c.pub");
}

TEST(a_log_key_survives_its_files_and_has_a_random_name)
{
    AUTO(log_key_ptr) k = NULL, again = NULL, other = NULL;
    log_vkey v;
    uint8_t sig[64];
    assert_ok(log_key_generate("ingot.test/log", &k));
    assert_ok(log_key_generate("ingot.test/log", &other));
    assert_string_not_equal(log_key_public(k)->name, log_key_public(other)->name);
    assert_ok(log_key_write(k, tmp_path(dir, "log.key")));
    assert_ok(log_vkey_write(log_key_public(k), tmp_path(dir, "log.vkey")));
    assert_ok(log_key_read(tmp_path(dir, "log.key"), &again));
    assert_ok(log_vkey_read(tmp_path(dir, "log.vkey"), &v));
    assert_string_equal(v.text, log_key_public(again)->text);
    assert_ok(log_key_sign(again, "abc", 3, sig));
    assert_true(log_vkey_check(&v, "abc", 3, sig));
    sig[9] ^= 1;
    assert_false(log_vkey_check(&v, "abc", 3, sig));
}

/* The example of golang.org/x/mod/sumdb/note. */
static const char peter[] = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
static const char peter_note[] = "If you think cryptography is the answer to your problem,\n"
                                 "then you don't know what your problem is.\n";
static const char peter_sig[] =
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";

TEST(a_verifier_key_of_gos_note_package_verifies_its_signature)
{
    log_vkey v;
    uint8_t blob[68];
    size_t n;
    assert_ok(log_vkey_parse("key", str_of(peter), &v));
    assert_true(base64_decode(str_of(peter_sig), blob, sizeof blob, &n));
    assert_int_equal(n, 68);
    assert_true(log_vkey_check(&v, peter_note, strlen(peter_note), blob + 4));
}

TEST(every_flipped_byte_of_a_verifier_key_is_refused)
{
    char text[] = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    for (size_t i = 0; i < strlen(text); i++) {
        log_vkey v;
        text[i] ^= 1;
        if (log_vkey_parse("key", str_of(text), &v) == IG_OK) fail_msg("byte %zu: %s", i, text);
        text[i] ^= 1;
    }
}

static void make_note(const log_key *k, buf *out)
{
    checkpoint c = {.size = 1234567, .root = {{9, 8, 7}}};
    buf_init(out, CHECKPOINT_MAX);
    assert_ok(checkpoint_sign(k, &c, out));
}

TEST(a_checkpoint_opens_under_its_key_only)
{
    AUTO(log_key_ptr) k = NULL, other = NULL;
    AUTO(buf) note = {0};
    checkpoint c;
    assert_ok(log_key_generate("ingot.test/log", &k));
    assert_ok(log_key_generate("ingot.test/log", &other));
    make_note(k, &note);
    assert_ok(checkpoint_open("note", (str){note.data, note.n}, log_key_public(k), &c));
    assert_int_equal(c.size, 1234567);
    assert_int_equal(c.root.b[1], 8);
    assert_fails(checkpoint_open("note", (str){note.data, note.n}, log_key_public(other), &c),
                 IG_EFORMAT, "not a checkpoint of log");
}

TEST(signatures_of_strangers_are_passed_over)
{
    AUTO(log_key_ptr) k = NULL;
    AUTO(buf) note = {0};
    checkpoint c;
    assert_ok(log_key_generate("ingot.test/log", &k));
    make_note(k, &note);
    buf_str(&note, "\xE2\x80\x94 witness.example ");
    buf_str(&note, peter_sig);
    buf_str(&note, "\n");
    assert_ok(checkpoint_open("note", (str){note.data, note.n}, log_key_public(k), &c));
}

TEST(every_flipped_byte_of_a_checkpoint_is_refused)
{
    AUTO(log_key_ptr) k = NULL;
    AUTO(buf) note = {0};
    assert_ok(log_key_generate("ingot.test/log", &k));
    make_note(k, &note);
    for (size_t i = 0; i < note.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            checkpoint c;
            note.data[i] ^= (char)(1 << bit);
            if (checkpoint_open("note", (str){note.data, note.n}, log_key_public(k), &c) == IG_OK)
                fail_msg("byte %zu bit %d", i, bit);
            note.data[i] ^= (char)(1 << bit);
        }
}

TEST(a_commitment_is_that_of_the_formula)
{
    /* printf '50%s' "$(printf out.0 | openssl dgst -sha256 -mac HMAC -macopt hexkey:0707..07 -r |
     * cut -c1-64)" | xxd -r -p | cat - <(printf abc) | sha256sum */
    commit_secret secret;
    uint8_t salt[SHA256_N], d[SHA256_N], in[1 + SHA256_N + 3];
    memset(secret.b, 7, sizeof secret.b);
    hmac_sha256(secret.b, 32, "out.0", 5, salt);
    in[0] = 0x50;
    memcpy(in + 1, salt, SHA256_N);
    memcpy(in + 33, "abc", 3);
    sha256(in, sizeof in, d);
    uint8_t got[SHA256_N];
    assert_ok(commit_make(&secret, "out.0", "abc", 3, got));
    assert_memory_equal(got, d, SHA256_N);
    uint32_t id = 0x00636261;
    uint8_t ids[SHA256_N], le[SHA256_N];
    assert_ok(commit_make_ids(&secret, "tout.0", &id, 1, ids));
    assert_ok(commit_make(&secret, "tout.0", "abc", 4, le));
    assert_memory_equal(ids, le, SHA256_N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_DIR(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        IN_DIR(a_publisher_key_survives_its_files_and_keeps_its_fingerprint),
        IN_DIR(a_fingerprint_is_the_digest_of_the_public_file),
        IN_DIR(a_key_is_never_overwritten),
        IN_DIR(a_private_key_that_others_may_read_is_refused),
        IN_DIR(what_is_no_p256_key_is_refused),
        IN_DIR(trust_reads_a_file_or_a_folder),
        IN_DIR(a_log_key_survives_its_files_and_has_a_random_name),
        CASE(a_verifier_key_of_gos_note_package_verifies_its_signature),
        CASE(every_flipped_byte_of_a_verifier_key_is_refused),
        CASE(a_checkpoint_opens_under_its_key_only),
        CASE(signatures_of_strangers_are_passed_over),
        CASE(every_flipped_byte_of_a_checkpoint_is_refused),
        CASE(a_commitment_is_that_of_the_formula),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
