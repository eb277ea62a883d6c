/* Growable bytes: limits, remembered failures, JSON strings, base64, hex. */
#include "support/test.h"
#include "support/walk.h"
#include "base/buf.h"
#include "base/str.h"

static const char *text_of(buf *b) { return b->data ? b->data : ""; }

TEST(what_is_appended_is_followed_by_an_uncounted_nul)
{
    AUTO(buf) b;
    buf_init(&b, 100);
    buf_str(&b, "ab");
    buf_char(&b, 'c');
    buf_printf(&b, "-%d", 42);
    buf_add(&b, "\0z", 2);
    assert_ok(buf_status(&b));
    assert_int_equal(b.n, 8);
    assert_memory_equal(b.data, "abc-42\0z\0", 9);
}

TEST(the_limit_holds_to_the_byte)
{
    AUTO(buf) b;
    buf_init(&b, 5);
    buf_str(&b, "12345");
    assert_ok(buf_status(&b));
    buf_char(&b, '6');
    assert_fails(buf_status(&b), IG_ELIMIT, "5 bytes");
    assert_string_equal(text_of(&b), "12345");
}

TEST(after_a_failure_nothing_more_is_taken)
{
    AUTO(buf) b;
    buf_init(&b, 4);
    buf_str(&b, "12345");
    buf_str(&b, "1");
    assert_int_equal(b.n, 0);
    assert_int_equal(buf_status(&b), IG_ELIMIT);
    buf_clear(&b);
    buf_str(&b, "1");
    assert_ok(buf_status(&b));
    assert_string_equal(text_of(&b), "1");
}

TEST(no_limit_means_size_max_and_does_not_wrap)
{
    AUTO(buf) b;
    buf_init(&b, SIZE_MAX);
    buf_str(&b, "x");
    assert_ok(buf_status(&b));
    buf_add(&b, "y", SIZE_MAX);
    assert_int_equal(buf_status(&b), IG_ELIMIT);
}

TEST(taking_hands_over_and_leaves_an_empty_buffer)
{
    AUTO(buf) b;
    buf_init(&b, 10);
    buf_str(&b, "abc");
    char *taken = buf_take(&b), *nothing = buf_take(&b);
    assert_string_equal(taken, "abc");
    assert_string_equal(nothing, "");
    assert_int_equal(b.n, 0);
    mem_free(taken);
    mem_free(nothing);
}

TEST(json_strings_escape_what_json_cannot_hold)
{
    AUTO(buf) b;
    buf_init(&b, 100);
    buf_json_string(&b, "a\"\\\n\t\x01\x1F\x7F\0\xC3\xA9", 11);
    assert_ok(buf_status(&b));
    assert_string_equal(text_of(&b), "\"a\\\"\\\\\\n\\t\\u0001\\u001f\x7F\\u0000\xC3\xA9\"");
}

/* A message that was cut to its buffer, a URL: whatever goes in, strict readers take what comes
 * out. */
TEST(json_strings_replace_what_is_not_utf8)
{
    AUTO(buf) b;
    buf_init(&b, 100);
    buf_json_string(&b, "\xFFx\xC3(\xED\xA0\x80\xF0\x9F\x98", 10);
    assert_ok(buf_status(&b));
    assert_true(utf8_valid(b.data, b.n));
    assert_string_equal(text_of(&b),
                        "\"\xEF\xBF\xBDx\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
                        "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(base64_matches_the_rfc)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < N_ELEM(pairs); i++) {
        AUTO(buf) b;
        buf_init(&b, 100);
        buf_base64(&b, pairs[i][0], strlen(pairs[i][0]));
        assert_ok(buf_status(&b));
        assert_string_equal(text_of(&b), pairs[i][1]);
    }
}

TEST(hex_is_lower_case)
{
    AUTO(buf) b;
    buf_init(&b, 6);
    buf_hex(&b, "\x00\xAB\xFF", 3);
    assert_ok(buf_status(&b));
    assert_string_equal(text_of(&b), "00abff");
}

static ig_status build(void *user)
{
    AUTO(buf) b;
    buf_init(&b, 100000);
    for (int i = 0; i < 5000; i++) buf_printf(&b, "%d ", i);
    TRY(buf_status(&b));
    *(size_t *)user = b.n;
    mem_free(buf_take(&b));
    return IG_OK;
}

TEST(any_allocation_may_fail)
{
    size_t n = 0;
    assert_true(walk_memory(build, &n) >= 5);
    assert_int_equal(n, 10 * 2 + 90 * 3 + 900 * 4 + 4000 * 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_appended_is_followed_by_an_uncounted_nul),
        CASE(the_limit_holds_to_the_byte),
        CASE(after_a_failure_nothing_more_is_taken),
        CASE(no_limit_means_size_max_and_does_not_wrap),
        CASE(taking_hands_over_and_leaves_an_empty_buffer),
        CASE(json_strings_escape_what_json_cannot_hold),
        CASE(json_strings_replace_what_is_not_utf8),
        CASE(base64_matches_the_rfc),
        CASE(hex_is_lower_case),
        CASE(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
