/* test_tokenizer_regex.c: patterns written for Oniguruma match under PCRE2 what Oniguruma
 * matches: every class over all code points (U+0085, U+180E, U+200B and combining marks among
 * them), and odd syntax over texts. */
#include "lm/tokenizer_regex.h"
#include "tokenizer_strings.h"

static json_t *golden(const char *key)
{
    static json_t *root;
    if (!root) {
        AUTO(buf) text;
        read_golden("regexes.json", &text);
        assert_ok(json_parse("regexes.json", (str){text.data, text.n}, 1 << 20, 8, &root));
    }
    return json_object_get(root, key);
}

static void check_digest(const char *pattern, sha256_ctx *c, const json_t *want)
{
    uint8_t digest[SHA256_N];
    char hex[2 * SHA256_N + 1];
    sha256_final(c, digest);
    for (int i = 0; i < SHA256_N; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    if (strcmp(hex, json_string_value(want)))
        fail_msg("%s matches something else than in Oniguruma", pattern);
}

TEST(classes_hold_the_code_points_that_they_hold_in_oniguruma)
{
    const char *pattern;
    json_t *want;
    regex_run run;
    assert_ok(regex_run_init(&run));
    json_object_foreach(golden("classes"), pattern, want)
    {
        AUTO(regex_ptr) r = NULL;
        sha256_ctx c;
        assert_ok(regex_open("test", str_of(pattern), false, &r));
        assert_ok(sha256_init(&c));
        for (uint32_t cp = 0; cp < 0x110000; cp++) {
            char utf8[4];
            bool found;
            size_t at, end;
            if (cp == 0xd800) cp = 0xe000;
            regex_iter it = regex_over(r, &run, utf8, utf8_encode(cp, utf8));
            assert_ok(regex_next(&it, &found, &at, &end));
            if (found) sha256_add(&c, &cp, 4);
        }
        check_digest(pattern, &c, want);
    }
    regex_run_done(&run);
}

static void replace(const regex *r, regex_run *run, const buf *text, buf *out)
{
    if (text->n == 0) return;
    regex_iter it = regex_over(r, run, text->data, text->n);
    size_t done = 0, at, end;
    for (bool found = true; found;) {
        assert_ok(regex_next(&it, &found, &at, &end));
        if (!found) break;
        buf_add(out, text->data + done, at - done);
        buf_str(out, "\xee\x80\x80");
        done = end;
    }
    buf_add(out, text->data + done, text->n - done);
}

TEST(patterns_match_where_oniguruma_matches)
{
    const char *pattern;
    json_t *want;
    regex_run run;
    assert_ok(regex_run_init(&run));
    json_object_foreach(golden("matches"), pattern, want)
    {
        AUTO(regex_ptr) r = NULL;
        AUTO(buf) text;
        AUTO(buf) out;
        string_parts s;
        sha256_ctx c;
        assert_ok(regex_open("test", str_of(pattern), false, &r));
        assert_ok(sha256_init(&c));
        buf_init(&text, 1 << 20);
        buf_init(&out, 8 << 20);
        strings_open(&s);
        for (size_t i = 0; i < 500; i++) {
            make_string(&s, i, &text);
            buf_clear(&out);
            if (i) buf_char(&out, 0);
            replace(r, &run, &text, &out);
            sha256_add(&c, out.data, out.n);
        }
        strings_close(&s);
        check_digest(pattern, &c, want);
    }
    regex_run_done(&run);
}

TEST(what_cannot_be_translated_is_refused_by_name_and_place)
{
    static const char *const bad[][2] = {
        {"(a)\\1", "\\1"},
        {"\\k<x>", "\\k"},
        {"[a&&b]", "&&"},
        {"[a[b]]", "a class inside a class"},
        {"\\p{Klingon}", "Klingon"},
        {"\\X", "\\X"},
        {"\\R", "\\R"},
        {"(?x: a)", "this group"},
        {"a(?i)b", "this group"},
        {"(?<n>a)", "this group"},
        {"\\xff", "this code point"},
        {"\\x{110000}", "this code point"},
        {"[^]", "an empty class"},
        {"[a", "[ without ]"},
        {"(a", "( without )"},
        {"a)", "an unopened )"},
        {"*a", "a repetition of nothing"},
        {"[\\W]", "\\W"},
        {"[\\P{L}]", "a negated property"},
        {"a{2}?", "{n}?"},
        {"(*ACCEPT)", "(*"},
        {"\\Qa\\E", "\\Q"},
        {"\\", "a backslash at the end"},
    };
    for (size_t i = 0; i < N_ELEM(bad); i++) {
        regex *r = NULL;
        assert_fails(regex_open("tokenizer.json: pre_tokenizer", str_of(bad[i][0]), false, &r),
                     IG_EUNSUPPORTED, bad[i][1]);
        assert_non_null(strstr(ig_error_message(), "tokenizer.json: pre_tokenizer"));
        assert_null(r);
    }
}

TEST(a_pattern_that_would_backtrack_for_ever_is_stopped)
{
    AUTO(regex_ptr) r = NULL;
    regex_run run;
    char text[64];
    bool found;
    size_t at, end;
    memset(text, 'a', sizeof text);
    assert_ok(regex_run_init(&run));
    assert_ok(regex_open("test", str_of("(?:a+)+(?:b|c)"), false, &r));
    regex_iter it = regex_over(r, &run, text, sizeof text);
    assert_fails(regex_next(&it, &found, &at, &end), IG_ELIMIT, "too many steps");
    regex_run_done(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(classes_hold_the_code_points_that_they_hold_in_oniguruma),
        CASE(patterns_match_where_oniguruma_matches),
        CASE(what_cannot_be_translated_is_refused_by_name_and_place),
        CASE(a_pattern_that_would_backtrack_for_ever_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
