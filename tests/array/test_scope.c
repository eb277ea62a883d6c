/* Scopes: who owns what, how values leave, and the error records. */
#include <pthread.h>
#include "support/arrays.h"
#include "support/test.h"
#include "support/walk.h"

TEST(a_scope_releases_what_was_made_in_it)
{
    int64_t live = arrays_counters().n_live_nodes;
    ig_scope *s = ig_scope_open();
    ig_add(F32(1), F32(2));
    assert_int_equal(arrays_counters().n_live_nodes, live + 3);
    assert_ok(ig_scope_close(s));
    assert_int_equal(arrays_counters().n_live_nodes, live);
}

TEST(a_returned_array_belongs_to_the_enclosing_scope)
{
    int64_t live = arrays_counters().n_live_nodes;
    ig_scope *outer = ig_scope_open(), *inner = ig_scope_open();
    ig_array r;
    assert_ok(ig_scope_return(inner, ig_add(F32(1), F32(2)), &r));
    assert_elements(r, 3);
    assert_ok(ig_scope_close(outer));
    assert_int_equal(arrays_counters().n_live_nodes, live);
}

TEST(evaluating_a_scope_leaves_only_the_results)
{
    int64_t live = arrays_counters().n_live_nodes;
    ig_scope *s = ig_scope_open();
    ig_array a[2] = {ig_add(F32(1), F32(2)), F32(7)}, r[2];
    assert_ok(ig_scope_eval(s, a, 2, r));
    assert_int_equal(arrays_counters().n_live_nodes, live + 2);
    assert_elements(r[0], 3);
    assert_elements(r[1], 7);
}

TEST(a_held_array_outlives_its_scope_until_dropped)
{
    int64_t live = arrays_counters().n_live_nodes;
    ig_array slot = {0};
    ig_scope *s = ig_scope_open();
    ig_hold(&slot, F32(1, 2));
    ig_hold(&slot, F32(3)); /* replaces */
    assert_ok(ig_scope_close(s));
    assert_elements(slot, 3);
    ig_drop(&slot);
    assert_true(ig_is_empty(slot));
    ig_drop(&slot);
    assert_int_equal(arrays_counters().n_live_nodes, live);
}

TEST(closing_a_scope_closes_the_ones_left_open_inside)
{
    int64_t live = arrays_counters().n_live_nodes;
    ig_scope *s = ig_scope_open();
    ig_scope_open();
    F32(1);
    ig_scope_open();
    F32(2);
    assert_ok(ig_scope_close(s));
    assert_int_equal(arrays_counters().n_live_nodes, live);
}

TEST(the_first_failure_of_a_scope_is_the_one_that_it_reports)
{
    ig_scope *s = ig_scope_open();
    ig_array bad = ig_add(F32(1, 2), F32(1, 2, 3));
    assert_true(ig_is_empty(ig_exp(bad)));
    ig_matmul(F32(1, 2), F32(1));
    ig_array r = {0};
    assert_int_equal(ig_scope_eval(s, &bad, 1, &r), IG_ESHAPE);
    assert_true(ig_is_empty(r));
    assert_non_null(strstr(ig_error_message(), "add: a float32 [2] and b float32 [3]"));
    ig_error_clear();
}

TEST(a_failure_that_a_caller_coped_with_does_not_fail_its_scope)
{
    ig_scope *outer = ig_scope_open(), *inner = ig_scope_open();
    ig_add(F32(1, 2), F32(1, 2, 3));
    assert_int_equal(ig_scope_close(inner), IG_ESHAPE);
    ig_array r = ig_add(F32(1), F32(2)); /* the fallback */
    assert_elements(r, 3);
    assert_ok(ig_scope_close(outer));
    ig_error_clear();
}

TEST(an_optional_input_that_failed_is_not_taken_for_an_absent_one)
{
    ig_scope *s = ig_scope_open();
    ig_array w = ig_add(F32(1, 2), F32(1, 2, 3));
    assert_true(ig_is_empty(ig_rms_norm(SHAPED(F32(1, 2), 1, 2), w, 1e-5)));
    assert_int_equal(ig_scope_close(s), IG_ESHAPE);
    ig_error_clear();
}

TEST(returning_nothing_is_a_failure)
{
    ig_array r = {0};
    int64_t live = arrays_counters().n_live_nodes;
    ig_scope *s = ig_scope_open();
    F32(1);
    assert_fails(ig_scope_eval(s, NULL, 2, &r), IG_EINVAL, "2 arrays, none given");
    assert_int_equal(arrays_counters().n_live_nodes, live); /* closed all the same */
    ig_error_clear();
    assert_fails(ig_scope_return(ig_scope_open(), (ig_array){0}, &r), IG_EINVAL, "is empty");
    ig_error_clear();
}

static void *close_foreign(void *scope)
{
    ig_status st = ig_scope_close(scope);
    return (void *)(intptr_t)st;
}

static void *on_a_thread(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    void *r;
    assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
    pthread_join(t, &r);
    return r;
}

TEST(without_a_scope_builders_refuse_and_results_are_held_for_the_caller)
{
    assert_refused(ig_scalar_f32(1), IG_EINVAL, "array_copy: no scope is open on this thread");
    ig_scope *s = ig_scope_open();
    ig_array a = ig_add(F32(1), F32(2)), r = {0};
    assert_ok(ig_scope_eval(s, &a, 1, &r));
    assert_refused(ig_exp(r), IG_EINVAL, "exp: no scope is open");
    assert_elements(r, 3);
    ig_drop(&r);
}

TEST(a_scope_belongs_to_its_thread)
{
    ig_scope *s = ig_scope_open();
    assert_int_equal((intptr_t)on_a_thread(close_foreign, s), IG_EINVAL);
    assert_ok(ig_scope_close(s));
}

static ig_status small_graph(void *unused)
{
    (void)unused;
    ig_scope *s = ig_scope_open();
    if (!s) return IG_ENOMEM;
    ig_array x = arrays_vector(IG_F32, (float[]){1, 2, 3, 4}, 16);
    ig_array m = ig_reshape(x, DIMS(2, 2));
    ig_array y = ig_sum(ig_matmul(ig_exp(m),
                                  ig_transpose(ig_add(m, ig_slice(x, DIMS(1), DIMS(3), DIMS(1))),
                                               NO_AXES)),
                        NO_AXES, false),
             r = {0};
    ig_status st = ig_scope_eval(s, &y, 1, &r);
    if (st == IG_OK) ig_drop(&r);
    ig_memory_clear_cache();
    return st;
}

TEST(every_failing_allocation_of_a_small_graph_is_reported_and_leaks_nothing)
{
    ig_memory_set_cache_limit(0);
    assert_ok(small_graph(NULL)); /* the pool and other things made once */
    assert_true(walk_memory(small_graph, NULL) > 15);
    ig_memory_set_cache_limit(256 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(a_scope_releases_what_was_made_in_it),
        ARRAY_CASE(a_returned_array_belongs_to_the_enclosing_scope),
        CASE(every_failing_allocation_of_a_small_graph_is_reported_and_leaks_nothing),
        ARRAY_CASE(evaluating_a_scope_leaves_only_the_results),
        ARRAY_CASE(a_held_array_outlives_its_scope_until_dropped),
        ARRAY_CASE(closing_a_scope_closes_the_ones_left_open_inside),
        ARRAY_CASE(the_first_failure_of_a_scope_is_the_one_that_it_reports),
        ARRAY_CASE(a_failure_that_a_caller_coped_with_does_not_fail_its_scope),
        ARRAY_CASE(an_optional_input_that_failed_is_not_taken_for_an_absent_one),
        ARRAY_CASE(returning_nothing_is_a_failure),
        CASE(without_a_scope_builders_refuse_and_results_are_held_for_the_caller),
        ARRAY_CASE(a_scope_belongs_to_its_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
