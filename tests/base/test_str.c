/* Text: strict UTF-8, strict numbers, strict base64 and hex. */
#include "support/test.h"
#include <math.h>
#include "base/buf.h"
#include "base/str.h"

TEST(slices_compare_by_bytes)
{
    assert_true(str_eq(str_of("ab"), (str){"abc", 2}));
    assert_false(str_eq(str_of("ab"), str_of("abc")));
    assert_true(str_eq((str){NULL, 0}, str_of("")));
    assert_true(str_starts(str_of("model.safetensors"), str_of("model")));
    assert_false(str_starts(str_of("mod"), str_of("model")));
    assert_true(str_ends(str_of("a.json"), str_of(".json")));
    assert_false(str_ends(str_of("json"), str_of(".json")));
}

TEST(every_code_point_survives_a_round_trip)
{
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        if (cp == 0x110000) break;
        char text[4];
        uint32_t back = 0;
        size_t n = utf8_encode(cp, text);
        size_t want = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
        if (n != want || utf8_decode(text, n, &back) != n || back != cp) fail_msg("U+%04X", cp);
        if (n > 1 && utf8_decode(text, n - 1, &back) != 0) fail_msg("U+%04X cut", cp);
    }
}

/* All three-byte strings against the grammar of RFC 3629, written here a second time. */
static size_t expected_length(const uint8_t *u)
{
    if (u[0] <= 0x7F) return 1;
    bool tail1 = u[1] >= 0x80 && u[1] <= 0xBF, tail2 = u[2] >= 0x80 && u[2] <= 0xBF;
    if (u[0] >= 0xC2 && u[0] <= 0xDF) return tail1 ? 2 : 0;
    bool three =
        (u[0] == 0xE0 && u[1] >= 0xA0 && u[1] <= 0xBF) || (u[0] >= 0xE1 && u[0] <= 0xEC && tail1) ||
        (u[0] == 0xED && u[1] >= 0x80 && u[1] <= 0x9F) || (u[0] >= 0xEE && u[0] <= 0xEF && tail1);
    return three && tail2 ? 3 : 0;
}

TEST(decoding_accepts_just_what_the_rfc_does)
{
    for (uint32_t v = 0; v < 1u << 24; v++) {
        uint8_t u[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
        if (u[0] < 0xC0 && (v & 0xFFFF)) continue; /* what follows does not matter */
        uint32_t cp;
        if (utf8_decode((const char *)u, 3, &cp) != expected_length(u)) fail_msg("%06x", v);
    }
}

TEST(overlong_surrogate_and_too_large_forms_are_refused)
{
    static const char *const bad[] = {"\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x80\x80",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xED\xBF\xBF",
                                      "\xF0\x80\x80\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "\x80",
                                      "a\xBF"};
    for (size_t i = 0; i < N_ELEM(bad); i++)
        if (utf8_valid(bad[i], strlen(bad[i]))) fail_msg("case %zu", i);
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("\xF4\x8F\xBF\xBF\xED\x9F\xBF", 7));
}

TEST(an_unfinished_character_is_held_back)
{
    assert_int_equal(utf8_complete("ab\xE2\x82", 4), 2);
    assert_int_equal(utf8_complete("ab\xE2\x82\xAC", 5), 5);
    assert_int_equal(utf8_complete("\xF0\x9F\x98", 3), 0);
    assert_int_equal(utf8_complete("a\xC3", 2), 1);
    assert_int_equal(utf8_complete("", 0), 0);
}

TEST(bytes_that_can_never_become_a_character_are_not_held_back)
{
    assert_int_equal(utf8_complete("a\xFF", 2), 2);
    assert_int_equal(utf8_complete("a\x80\x80\x80\x80", 5), 5);
    assert_int_equal(utf8_complete("\xE0\x80", 2), 2);
    assert_int_equal(utf8_complete("\xED\xA0", 2), 2);
}

TEST(integers_have_one_spelling)
{
    int64_t v = 5;
    assert_true(str_int(str_of("0"), 0, 9, &v) && v == 0);
    assert_true(str_int(str_of("-17"), -20, 9, &v) && v == -17);
    assert_true(str_int(str_of("9223372036854775807"), INT64_MIN, INT64_MAX, &v) && v == INT64_MAX);
    assert_true(str_int(str_of("-9223372036854775808"), INT64_MIN, INT64_MAX, &v) &&
                v == INT64_MIN);
    static const char *const bad[] = {"",
                                      "-",
                                      "+1",
                                      "01",
                                      "-0",
                                      " 1",
                                      "1 ",
                                      "1a",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999"};
    for (size_t i = 0; i < N_ELEM(bad); i++)
        if (str_int(str_of(bad[i]), INT64_MIN, INT64_MAX, &v)) fail_msg("\"%s\"", bad[i]);
    assert_false(str_int(str_of("10"), 0, 9, &v));
    assert_int_equal(v, INT64_MIN);
}

TEST(numbers_are_decimal_and_finite)
{
    double v = 0;
    assert_true(str_double(str_of("1.5e3"), &v) && v == 1500);
    assert_true(str_double(str_of("-0"), &v) && v == 0 && signbit(v));
    assert_true(str_double(str_of("0.1"), &v) && v == 0.1);
    static const char *const bad[] = {"",      "-",   "1.",  ".5",  "+1", "1e", "1e+",
                                      "0x1p3", "inf", "nan", "1,5", " 1", "1 ", "1e999"};
    for (size_t i = 0; i < N_ELEM(bad); i++)
        if (str_double(str_of(bad[i]), &v)) fail_msg("\"%s\"", bad[i]);
}

TEST(base64_undoes_itself_for_every_length)
{
    uint8_t in[300], out[300];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * 89 + 7);
    for (size_t n = 0; n <= sizeof in; n++) {
        AUTO(buf) b;
        buf_init(&b, 1000);
        buf_base64(&b, in, n);
        size_t n_out = 999;
        assert_true(base64_decode((str){b.data, b.n}, out, n, &n_out));
        assert_int_equal(n_out, n);
        assert_memory_equal(in, out, n);
        if (n > 0) assert_false(base64_decode((str){b.data, b.n}, out, n - 1, &n_out));
    }
}

TEST(base64_that_is_not_canonical_is_refused)
{
    static const char *const bad[] = {"Z",        "Zg",    "Zg=",    "Zh==", "Zm9=", "====", "Z===",
                                      "Zg==Zg==", "Zm 9v", "Zm9v\n", "Zm-_", "=Zg=", "Zg=a"};
    uint8_t out[16];
    size_t n;
    for (size_t i = 0; i < N_ELEM(bad); i++)
        if (base64_decode(str_of(bad[i]), out, sizeof out, &n)) fail_msg("\"%s\"", bad[i]);
}

TEST(hex_is_lower_case_and_of_the_stated_length)
{
    uint8_t out[3];
    assert_true(hex_decode(str_of("00abff"), out, 3));
    assert_memory_equal(out, "\x00\xAB\xFF", 3);
    assert_false(hex_decode(str_of("00ABFF"), out, 3));
    assert_false(hex_decode(str_of("00abf"), out, 3));
    assert_false(hex_decode(str_of("00abff0"), out, 3));
    assert_false(hex_decode(str_of("00abfg"), out, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(slices_compare_by_bytes),
        CASE(every_code_point_survives_a_round_trip),
        CASE(decoding_accepts_just_what_the_rfc_does),
        CASE(overlong_surrogate_and_too_large_forms_are_refused),
        CASE(an_unfinished_character_is_held_back),
        CASE(bytes_that_can_never_become_a_character_are_not_held_back),
        CASE(integers_have_one_spelling),
        CASE(numbers_are_decimal_and_finite),
        CASE(base64_undoes_itself_for_every_length),
        CASE(base64_that_is_not_canonical_is_refused),
        CASE(hex_is_lower_case_and_of_the_stated_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
