/* SHA-256 and HMAC against published vectors, and random bytes. */
#include "support/test.h"
#include "base/digest.h"
#include "base/str.h"

static void assert_digest(const uint8_t got[SHA256_N], const char *hex)
{
    uint8_t want[SHA256_N];
    assert_true(hex_decode(str_of(hex), want, SHA256_N));
    assert_memory_equal(got, want, SHA256_N);
}

TEST(sha256_matches_fips_180)
{
    uint8_t d[SHA256_N];
    sha256("", 0, d);
    assert_digest(d, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sha256("abc", 3, d);
    assert_digest(d, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, d);
    assert_digest(d, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(a_digest_does_not_depend_on_how_the_bytes_come)
{
    uint8_t text[1000], want[SHA256_N], got[SHA256_N];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (uint8_t)(i * 7);
    sha256(text, sizeof text, want);
    for (size_t step = 1; step < 200; step += 13) {
        sha256_ctx c;
        assert_ok(sha256_init(&c));
        for (size_t i = 0; i < sizeof text; i += step)
            sha256_add(&c, text + i, step < sizeof text - i ? step : sizeof text - i);
        sha256_final(&c, got);
        assert_memory_equal(got, want, SHA256_N);
        sha256_done(&c);
    }
}

TEST(a_context_may_be_copied_to_fork_a_hash)
{
    uint8_t want[SHA256_N], got[SHA256_N];
    sha256_ctx a, b;
    assert_ok(sha256_init(&a));
    sha256_add(&a, "ab", 2);
    b = a;
    sha256_add(&a, "x", 1);
    sha256_add(&b, "c", 1);
    sha256_final(&b, got);
    sha256("abc", 3, want);
    assert_memory_equal(got, want, SHA256_N);
    sha256_final(&a, got);
    sha256("abx", 3, want);
    assert_memory_equal(got, want, SHA256_N);
}

TEST(hmac_matches_rfc_4231)
{
    uint8_t d[SHA256_N], key[131];
    hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, d);
    assert_digest(d, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0x0b, 20);
    hmac_sha256(key, 20, "Hi There", 8, d);
    assert_digest(d, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    memset(key, 0xaa, sizeof key);
    hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, d);
    assert_digest(d, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(random_bytes_fill_the_whole_range_and_differ)
{
    uint8_t a[1000] = {0}, b[1000] = {0};
    assert_ok(random_bytes(a, sizeof a));
    assert_ok(random_bytes(b, sizeof b));
    assert_memory_not_equal(a, b, sizeof a);
    int last_zeros = 0;
    for (size_t i = sizeof a - 16; i < sizeof a; i++) last_zeros += a[i] == 0;
    assert_true(last_zeros < 16);
    assert_ok(random_bytes(NULL, 0));
}

TEST(equality_sees_the_last_bit)
{
    assert_true(digest_eq("abcd", "abcd", 4));
    assert_false(digest_eq("abcd", "abce", 4));
    assert_true(digest_eq("a", "b", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sha256_matches_fips_180),
        CASE(a_digest_does_not_depend_on_how_the_bytes_come),
        CASE(a_context_may_be_copied_to_fork_a_hash),
        CASE(hmac_matches_rfc_4231),
        CASE(random_bytes_fill_the_whole_range_and_differ),
        CASE(equality_sees_the_last_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
