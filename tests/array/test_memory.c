/* Buffers: alignment, reuse, limits, adopted memory. */
#include "array/core/buffer.h"
#include "base/mem.h"
#include "support/arrays.h"
#include "support/test.h"

TEST(buffers_are_aligned_to_64_bytes_and_big_ones_to_huge_pages)
{
    for (size_t n = 0; n < 5000; n += 37) {
        buffer *b;
        assert_ok(buffer_new(n, &b));
        assert_int_equal((uintptr_t)b->ptr % 64, 0);
        assert_true(b->n_bytes >= n && b->n_bytes <= n + n / 8 + 64);
        memset(b->ptr, 1, b->n_bytes);
        buffer_drop(b);
    }
    buffer *big;
    assert_ok(buffer_new((size_t)5 << 20, &big));
    assert_int_equal((uintptr_t)big->ptr % (2 << 20), 0);
    buffer_drop(big);
}

TEST(a_released_buffer_is_used_again_for_slightly_larger_sizes)
{
    buffer *b;
    assert_ok(buffer_new(100000, &b));
    char *p = b->ptr;
    buffer_drop(b);
    int64_t made = arrays_counters().n_allocs;
    assert_ok(buffer_new(100900, &b));
    assert_ptr_equal(b->ptr, p);
    assert_int_equal(arrays_counters().n_allocs, made);
    buffer_drop(b);
}

TEST(the_cache_keeps_to_its_limit_and_drops_the_oldest)
{
    buffer *b[3];
    ig_memory_clear_cache();
    ig_memory_set_cache_limit(300 << 10);
    for (int i = 0; i < 3; i++) assert_ok(buffer_new(128 << 10, &b[i]));
    char *newest = b[2]->ptr;
    for (int i = 0; i < 3; i++) buffer_drop(b[i]);
    assert_int_equal(arrays_counters().cache_bytes, 2 * (128 << 10));
    buffer *again;
    assert_ok(buffer_new(128 << 10, &again));
    assert_ptr_equal(again->ptr, newest);
    buffer_drop(again);
    ig_memory_clear_cache();
    assert_int_equal(arrays_counters().cache_bytes, 0);
    ig_memory_set_cache_limit(256 << 20);
}

TEST(a_memory_limit_is_an_error_and_not_the_end)
{
    ig_memory_clear_cache();
    ig_memory_set_limit(arrays_counters().active_bytes + (1 << 20));
    ig_array a = ig_full(DIMS(1 << 20), 1, IG_F32);
    assert_fails(ig_eval(&a, 1), IG_ENOMEM, "over the memory limit of");
    assert_non_null(strstr(ig_error_message(), "full: "));
    ig_error_clear();
    ig_memory_set_limit(0);
    assert_ok(ig_eval(&a, 1)); /* the same graph, with memory */
}

TEST(memory_that_the_system_refuses_twice_is_an_error_and_is_not_counted)
{
    buffer *b = NULL;
    ig_memory_clear_cache();
    int64_t active = arrays_counters().active_bytes;
    mem_fault_arm(1, true);
    ig_status st = buffer_new(1 << 20, &b);
    mem_fault_arm(0, false);
    assert_int_equal(st, IG_ENOMEM);
    assert_non_null(strstr(ig_error_message(), "out of memory"));
    assert_null(b);
    assert_int_equal(arrays_counters().active_bytes, active);
    ig_error_clear();
    mem_fault_arm(2, false); /* once: the cache is given up and the second try succeeds */
    assert_ok(buffer_new(1 << 20, &b));
    mem_fault_arm(0, false);
    assert_int_equal(ig_error_code(), IG_OK);
    buffer_drop(b);
}

TEST(under_a_limit_the_cache_makes_room)
{
    buffer *b;
    assert_ok(buffer_new(1 << 20, &b));
    buffer_drop(b); /* cached */
    ig_memory_set_limit(arrays_counters().active_bytes + (1 << 20));
    assert_ok(buffer_new(700 << 10, &b));
    assert_true(arrays_counters().cache_bytes <= 300 << 10);
    ig_memory_set_limit(0);
    buffer_drop(b);
}

static void count_free(void *user) { ++*(int *)user; }

TEST(adopted_memory_is_used_where_it_lies_and_given_back_once)
{
    static const float v[4] = {1, 2, 3, 4};
    int n_freed = 0;
    int64_t active = arrays_counters().active_bytes;
    ig_scope *s = ig_scope_open();
    ig_array a = ig_array_adopt(v, sizeof v, IG_F32, DIMS(2, 2), count_free, &n_freed);
    const void *p;
    assert_ok(ig_data(a, &p));
    assert_ptr_equal(p, v);
    assert_int_equal(arrays_counters().active_bytes, active);
    assert_int_equal(n_freed, 0);
    assert_ok(ig_scope_close(s));
    assert_int_equal(n_freed, 1);
}

TEST(adopted_memory_is_never_written_by_an_operation_that_could_work_in_place)
{
    static float v[3] = {1, 2, 3};
    ig_scope *s = ig_scope_open();
    ig_array r = ig_negative(ig_array_adopt(v, sizeof v, IG_F32, DIMS(3), NULL, NULL));
    assert_ok(ig_scope_eval(s, &r, 1, &r));
    assert_elements(r, -1, -2, -3);
    assert_float_equal(v[0], 1, 0);
}

TEST(memory_that_does_not_fit_its_shape_is_not_adopted)
{
    static float v[4];
    int n_freed = 0;
    assert_refused(ig_array_adopt(v, sizeof v, IG_F32, DIMS(5), count_free, &n_freed), IG_ESHAPE,
                   "float32 [5] needs 20 bytes, the memory has 16");
    assert_refused(ig_array_adopt((char *)v + 1, 12, IG_F32, DIMS(3), count_free, &n_freed),
                   IG_EINVAL, "not a multiple of 4");
    assert_refused(ig_array_adopt(NULL, 16, IG_F32, DIMS(4), count_free, &n_freed), IG_EINVAL,
                   "no data");
    assert_refused(ig_array_adopt(v, sizeof v, (ig_dtype)44, DIMS(4), count_free, &n_freed),
                   IG_EDTYPE, "44");
    assert_refused(ig_array_copy(NULL, IG_F32, DIMS(2)), IG_EINVAL, "array_copy: no data");
    assert_refused(ig_array_copy(v, IG_F32, NULL, 2), IG_EINVAL, "2 dimensions without values");
    assert_refused(ig_array_copy(v, IG_F32, DIMS(-1)), IG_ESHAPE, "negative");
    assert_refused(ig_array_copy(v, IG_F32, DIMS(1ll << 62)), IG_ELIMIT, "more bytes than 63 bits");
    assert_refused(ig_array_copy(v, IG_F32, NULL, 17), IG_ELIMIT, "17 dimensions");
    assert_int_equal(n_freed, 0);
}

TEST(bytes_of_a_bool_are_0_or_1_after_copying)
{
    const uint8_t v[3] = {0, 7, 255}, *p;
    assert_ok(ig_data(ig_array_copy(v, IG_BOOL, DIMS(3)), (const void **)&p));
    assert_int_equal(p[0] + p[1] * 10 + p[2] * 100, 110);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(buffers_are_aligned_to_64_bytes_and_big_ones_to_huge_pages),
        ARRAY_CASE(a_released_buffer_is_used_again_for_slightly_larger_sizes),
        ARRAY_CASE(the_cache_keeps_to_its_limit_and_drops_the_oldest),
        ARRAY_CASE(a_memory_limit_is_an_error_and_not_the_end),
        ARRAY_CASE(memory_that_the_system_refuses_twice_is_an_error_and_is_not_counted),
        ARRAY_CASE(under_a_limit_the_cache_makes_room),
        ARRAY_CASE(adopted_memory_is_used_where_it_lies_and_given_back_once),
        ARRAY_CASE(adopted_memory_is_never_written_by_an_operation_that_could_work_in_place),
        ARRAY_CASE(memory_that_does_not_fit_its_shape_is_not_adopted),
        ARRAY_CASE(bytes_of_a_bool_are_0_or_1_after_copying),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
