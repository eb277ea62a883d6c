/* The heap: counters, checked products, the N-th allocation failing. */
#include "support/test.h"
#include <pthread.h>
#include "base/mem.h"

TEST(allocations_are_counted_until_freed)
{
    int64_t made = mem_n_allocs(), live = mem_n_live();
    void *a = mem_alloc(10), *b = mem_calloc(3, 5), *c = mem_aligned(4096, 1);
    assert_int_equal(mem_n_allocs(), made + 3);
    assert_int_equal(mem_n_live(), live + 3);
    assert_int_equal((uintptr_t)c % 4096, 0);
    for (int i = 0; i < 15; i++) assert_int_equal(((char *)b)[i], 0);
    a = mem_realloc(a, 100000);
    assert_int_equal(mem_n_live(), live + 3);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
    assert_int_equal(mem_n_live(), live);
}

TEST(zero_bytes_give_a_pointer_of_their_own)
{
    void *a = mem_alloc(0), *b = mem_calloc(0, 8), *c = mem_dup(NULL, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_ptr_not_equal(a, b);
    mem_free(a);
    mem_free(b);
    mem_free(c);
}

TEST(a_product_that_does_not_fit_is_refused)
{
    assert_null(mem_calloc(SIZE_MAX / 2, 3));
    assert_int_equal(ig_error_code(), IG_ENOMEM);
    size_t r = 7;
    assert_false(mem_mul(SIZE_MAX / 2, 3, &r));
    assert_false(mem_add(SIZE_MAX, 1, &r));
    assert_int_equal(r, 7);
    assert_true(mem_mul(6, 7, &r) && r == 42);
}

TEST(the_nth_allocation_fails_and_only_that_one)
{
    mem_fault_arm(2, false);
    void *a = mem_alloc(1), *b = mem_alloc(1), *c = mem_alloc(1);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    assert_int_equal(mem_fault_hits(), 1);
    assert_int_equal(ig_error_code(), IG_ENOMEM);
    mem_free(a);
    mem_free(c);
}

TEST(a_sticky_fault_fails_all_that_follow)
{
    mem_fault_arm(1, true);
    assert_null(mem_alloc(1));
    assert_null(mem_strdup("x"));
    assert_null(mem_aligned(64, 64));
    assert_int_equal(mem_fault_hits(), 3);
    mem_fault_arm(0, false);
    void *p = mem_alloc(1);
    assert_non_null(p);
    mem_free(p);
}

TEST(a_failed_realloc_leaves_the_old_block)
{
    char *p = mem_strdup("kept");
    mem_fault_arm(1, false);
    assert_null(mem_realloc(p, 1000));
    assert_string_equal(p, "kept");
    mem_free(p);
}

static void *allocate_many(void *p)
{
    for (int i = 0; i < 1000; i++) mem_free(mem_alloc(8));
    return p;
}

TEST(a_fault_strikes_once_among_threads)
{
    pthread_t t[4];
    int64_t live = mem_n_live();
    mem_fault_arm(777, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, allocate_many, NULL), 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    assert_int_equal(mem_fault_hits(), 1);
    assert_int_equal(mem_n_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(allocations_are_counted_until_freed),
        CASE(zero_bytes_give_a_pointer_of_their_own),
        CASE(a_product_that_does_not_fit_is_refused),
        CASE(the_nth_allocation_fails_and_only_that_one),
        CASE(a_sticky_fault_fails_all_that_follow),
        CASE(a_failed_realloc_leaves_the_old_block),
        CASE(a_fault_strikes_once_among_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
