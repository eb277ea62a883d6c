/* JSON: limits, strictness, errors that name the place. */
#include "support/test.h"
#include "support/walk.h"
#include "base/json.h"

#define MAX_BYTES 10000
#define MAX_DEPTH 8

static ig_status parse(const char *text, json_t **ret)
{
    return json_parse("t.json", str_of(text), MAX_BYTES, MAX_DEPTH, ret);
}

TEST(a_document_is_read_in_the_order_of_its_keys)
{
    AUTO(json_ptr) j = NULL;
    assert_ok(parse("{\"z\": 1, \"a\": [true, null], \"m\": \"\\u0000x\"}", &j));
    const char *key, *want[] = {"z", "a", "m"};
    json_t *v;
    size_t i = 0;
    json_object_foreach(j, key, v) assert_string_equal(key, want[i++]);
    assert_int_equal(i, 3);
    str s;
    assert_ok(json_get_str("t.json", j, "m", &s));
    assert_int_equal(s.n, 2);
}

TEST(malformed_text_is_refused_with_its_place)
{
    json_t *j = NULL;
    assert_fails(parse("{\"a\": 1,\n \"b\": }", &j), IG_EFORMAT,
                 "t.json: not valid JSON at line 2 column");
    static const char *const bad[] = {"",
                                      "{",
                                      "[1,]",
                                      "{\"a\":1}x",
                                      "[01]",
                                      "[+1]",
                                      "[.5]",
                                      "[NaN]",
                                      "['a']",
                                      "[\"\t\"]",
                                      "[\"\\uD800\"]",
                                      "[\"\xC0\x80\"]",
                                      "[\"\xED\xA0\x80\"]",
                                      "{a:1}",
                                      "[1e999]",
                                      "[99999999999999999999]",
                                      "// c\n[]",
                                      "\xEF\xBB\xBF[]",
                                      "nul"};
    for (size_t i = 0; i < N_ELEM(bad); i++)
        if (parse(bad[i], &j) != IG_EFORMAT) fail_msg("\"%s\"", bad[i]);
    assert_null(j);
}

TEST(a_key_that_occurs_twice_is_refused)
{
    json_t *j = NULL;
    assert_fails(parse("{\"a\": {\"k\": 1, \"k\": 2}}", &j), IG_EFORMAT, "duplicate");
}

TEST(size_and_depth_have_limits)
{
    json_t *j = NULL;
    assert_fails(json_parse("t.json", str_of("[1, 2]"), 5, 8, &j), IG_ELIMIT,
                 "6 bytes of JSON, at most 5");
    assert_fails(parse("[[[[[[[[[1]]]]]]]]]", &j), IG_ELIMIT, "nested 9 deep, at most 8");
    assert_ok(parse("[[[[[[[[1]]]]]]]]", &j));
    json_decref(j);
    assert_ok(parse("[\"[[[[[[[[[[\\\"[[[[\"]", &j)); /* brackets in a string do not count */
    json_decref(j);
}

TEST(typed_access_names_object_and_key)
{
    AUTO(json_ptr) j = NULL;
    int64_t i = 7;
    str s;
    json_t *sub;
    assert_ok(parse(
        "{\"n\": 12, \"f\": 1.5, \"s\": \"x\", \"null\": null, \"o\": {}, \"l\": [], \"b\": true}",
        &j));
    assert_fails(json_get_int("config.json", j, "s", 0, 9, &i), IG_EFORMAT,
                 "config.json: s: expected an integer");
    assert_fails(json_get_int("config.json", j, "f", 0, 9, &i), IG_EFORMAT,
                 "f: expected an integer");
    assert_fails(json_get_int("config.json", j, "n", 0, 9, &i), IG_EFORMAT,
                 "n is 12, must be from 0 to 9");
    assert_fails(json_get_int("config.json", j, "x", 0, 9, &i), IG_EFORMAT, "x is missing");
    assert_fails(json_get_int("config.json", j, "null", 0, 9, &i), IG_EFORMAT, "null is missing");
    assert_fails(json_get_str("config.json", j, "n", &s), IG_EFORMAT, "n: expected a string");
    assert_fails(json_get_obj("config.json", j, "l", &sub), IG_EFORMAT, "l: expected an object");
    assert_fails(json_get_arr("config.json", j, "o", &sub), IG_EFORMAT, "o: expected an array");
    assert_int_equal(i, 7);
    assert_ok(json_get_int("config.json", j, "n", 12, 12, &i));
    assert_int_equal(i, 12);
    assert_ok(json_get_obj("config.json", j, "o", &sub));
    assert_ok(json_get_arr("config.json", j, "l", &sub));
}

TEST(an_absent_or_null_option_takes_its_default)
{
    AUTO(json_ptr) j = NULL;
    int64_t i;
    double x;
    bool b;
    str s;
    assert_ok(parse("{\"null\": null, \"n\": 2, \"b\": false}", &j));
    assert_ok(json_opt_int("c", j, "null", 0, 9, 5, &i));
    assert_int_equal(i, 5);
    assert_ok(json_opt_num("c", j, "x", 0, 9, 0.5, &x));
    assert_true(x == 0.5);
    assert_ok(json_opt_num("c", j, "n", 0, 9, 0.5, &x));
    assert_true(x == 2);
    assert_ok(json_opt_bool("c", j, "b", true, &b));
    assert_false(b);
    assert_ok(json_opt_bool("c", j, "x", true, &b));
    assert_true(b);
    assert_ok(json_opt_str("c", j, "x", &s));
    assert_null(s.p);
    assert_fails(json_opt_num("c", j, "n", 3, 9, 0.5, &x), IG_EFORMAT,
                 "n is 2, must be from 3 to 9");
    assert_fails(json_opt_bool("c", j, "n", true, &b), IG_EFORMAT, "n: expected true or false");
    assert_true(x == 2 && b);
}

static ig_status parse_and_free(void *user)
{
    AUTO(json_ptr) j = NULL;
    return json_parse("t.json", str_of(user), MAX_BYTES, MAX_DEPTH, &j);
}

TEST(any_allocation_may_fail)
{
    json_set_alloc_funcs(mem_alloc, mem_free);
    assert_true(walk_memory(parse_and_free,
                            "{\"a\": [1, 2.5, \"text\", {\"b\": null}], \"c\": \"\\u20AC\"}") > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_document_is_read_in_the_order_of_its_keys),
        CASE(malformed_text_is_refused_with_its_place),
        CASE(a_key_that_occurs_twice_is_refused),
        CASE(size_and_depth_have_limits),
        CASE(typed_access_names_object_and_key),
        CASE(an_absent_or_null_option_takes_its_default),
        CASE(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
