/* The hash map: order, growth, limits, keys made to collide. */
#include "support/test.h"
#include "support/walk.h"
#include "base/clock.h"
#include "base/map.h"

TEST(a_value_is_found_under_its_key_only)
{
    AUTO(map_ptr) m = NULL;
    int64_t v = -1;
    bool existed = true;
    assert_ok(map_new(10, &m));
    assert_false(map_get(m, str_of("a"), &v));
    assert_ok(map_put(m, str_of("a"), 1, &existed));
    assert_false(existed);
    assert_ok(map_put(m, (str){"a\0b", 3}, 2, NULL));
    assert_ok(map_put(m, (str){"", 0}, 3, NULL));
    assert_true(map_get(m, str_of("a"), &v) && v == 1);
    assert_true(map_get(m, (str){"a\0b", 3}, &v) && v == 2);
    assert_true(map_get(m, (str){NULL, 0}, &v) && v == 3);
    assert_false(map_get(m, str_of("b"), &v));
    assert_int_equal(v, 3);
}

TEST(overwriting_keeps_the_place_and_says_so)
{
    AUTO(map_ptr) m = NULL;
    bool existed = false;
    str key;
    int64_t v;
    assert_ok(map_new(2, &m));
    assert_ok(map_put(m, str_of("x"), 1, NULL));
    assert_ok(map_put(m, str_of("y"), 2, NULL));
    assert_ok(map_put(m, str_of("x"), 9, &existed));
    assert_true(existed);
    assert_int_equal(map_n(m), 2);
    map_at(m, 0, &key, &v);
    assert_true(str_eq(key, str_of("x")) && v == 9);
}

TEST(one_entry_more_than_the_limit_is_refused)
{
    AUTO(map_ptr) m = NULL;
    assert_ok(map_new(1, &m));
    assert_ok(map_put(m, str_of("x"), 1, NULL));
    assert_fails(map_put(m, str_of("y"), 1, NULL), IG_ELIMIT, "more than 1 entries");
    assert_ok(map_put(m, str_of("x"), 2, NULL));
    map *none = NULL;
    assert_int_equal(map_new(SIZE_MAX, &none), IG_EINVAL);
    assert_null(none);
}

TEST(keys_are_copied_and_do_not_move_while_the_map_grows)
{
    AUTO(map_ptr) m = NULL;
    char key[32] = "first";
    str first, k;
    int64_t v;
    assert_ok(map_new(100000, &m));
    assert_ok(map_put(m, str_of(key), -1, NULL));
    map_at(m, 0, &first, &v);
    for (int i = 0; i < 50000; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_ok(map_put(m, str_of(key), i, NULL));
    }
    assert_true(str_eq(first, str_of("first")));
    for (int i = 0; i < 50000; i++) {
        snprintf(key, sizeof key, "key %d", i);
        if (!map_get(m, str_of(key), &v) || v != i) fail_msg("%s", key);
        map_at(m, (size_t)i + 1, &k, &v);
        if (!str_eq(k, str_of(key)) || v != i) fail_msg("place of %s", key);
    }
}

/* "Aa" and "BB" collide under the hash of Java's strings, hence all 65,536 rows of them do; a
 * seeded hash spreads them. Were they to collide here, this would take minutes. */
TEST(hostile_keys_cost_no_more_than_others)
{
    AUTO(map_ptr) m = NULL;
    char key[64];
    int64_t v, start = clock_mono_us();
    assert_ok(map_new(1u << 20, &m));
    for (uint32_t i = 0; i < 1u << 16; i++) {
        for (int bit = 0; bit < 16; bit++) memcpy(key + 2 * bit, i >> bit & 1 ? "Aa" : "BB", 2);
        assert_ok(map_put(m, (str){key, 32}, i, NULL));
    }
    for (uint32_t i = 0; i < 1u << 16; i++) {
        for (int bit = 0; bit < 16; bit++) memcpy(key + 2 * bit, i >> bit & 1 ? "Aa" : "BB", 2);
        if (!map_get(m, (str){key, 32}, &v) || v != i) fail_msg("%u", i);
    }
    assert_int_equal(map_n(m), 1u << 16);
    assert_true(clock_mono_us() - start < 20 * 1000000);
}

static ig_status fill(void *user)
{
    (void)user;
    AUTO(map_ptr) m = NULL;
    char key[3000];
    memset(key, 'k', sizeof key);
    TRY(map_new(1000, &m));
    for (int64_t i = 0; i < 100; i++) {
        memcpy(key, &i, sizeof i);
        ig_status s = map_put(m, (str){key, sizeof key}, i, NULL);
        int64_t v;
        if (s != IG_OK) {
            assert_int_equal(map_n(m), i); /* unchanged by the failure, and still usable */
            assert_ok(map_put(m, (str){key, sizeof key}, i, NULL));
            assert_true(map_get(m, (str){key, sizeof key}, &v) && v == i);
            return s;
        }
    }
    return IG_OK;
}

TEST(any_allocation_may_fail_and_the_map_stays_whole) { assert_true(walk_memory(fill, NULL) >= 8); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_value_is_found_under_its_key_only),
        CASE(overwriting_keeps_the_place_and_says_so),
        CASE(one_entry_more_than_the_limit_is_refused),
        CASE(keys_are_copied_and_do_not_move_while_the_map_grows),
        CASE(hostile_keys_cost_no_more_than_others),
        CASE(any_allocation_may_fail_and_the_map_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
