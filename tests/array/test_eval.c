/* Evaluation: order, depth, memory, donation, threads. */
#include "support/test.h"
#include "ingot/memory.h"
#include "ingot/ops.h"

static ig_array vec(const float *v, int64_t n) { return ig_array_copy(v, IG_F32, &n, 1); }

static ig_counters counters(void)
{
    ig_counters c;
    ig_memory_counters(&c);
    return c;
}

TEST(a_sum_of_two_arrays_is_computed)
{
    ig_scope *s = ig_scope_open();
    ig_array c = ig_add(vec((float[]){1, 2, 3}, 3), ig_multiply(vec((float[]){10, 20, 30}, 3), ig_scalar_f32(2)));
    float out[3];
    assert_ok(ig_copy_out(c, IG_F32, out, 3));
    assert_float_equal(out[0], 21, 0);
    assert_float_equal(out[2], 63, 0);
    assert_ok(ig_scope_close(s));
}

TEST(a_matrix_product_is_computed)
{
    ig_scope *s = ig_scope_open();
    float a[6] = {1, 2, 3, 4, 5, 6};
    ig_array m = ig_array_copy(a, IG_F32, (int64_t[]){2, 3}, 2);
    ig_array p = ig_matmul(m, ig_transpose(m, NULL, 0));
    float out[4];
    assert_ok(ig_copy_out(p, IG_F32, out, 4));
    assert_float_equal(out[0], 14, 0);
    assert_float_equal(out[1], 32, 0);
    assert_float_equal(out[3], 77, 0);
    assert_ok(ig_scope_close(s));
}

TEST(a_chain_of_300000_operations_is_evaluated_and_released_without_recursion)
{
    int64_t live = counters().n_live_nodes;
    ig_scope *s = ig_scope_open();
    ig_array a = ig_scalar_f32(0), one = ig_scalar_f32(1), r;
    for (int i = 0; i < 300000; i++) a = ig_add(a, one);
    assert_ok(ig_scope_eval(s, &a, 1, &r));
    double v;
    assert_ok(ig_item_f64(r, &v));
    assert_float_equal(v, 300000, 0);
    ig_drop(&r);
    assert_int_equal(counters().n_live_nodes, live);

    s = ig_scope_open(); /* and never evaluated */
    a = ig_scalar_f32(0);
    for (int i = 0; i < 300000; i++) a = ig_negative(a);
    assert_ok(ig_scope_close(s));
    assert_int_equal(counters().n_live_nodes, live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_sum_of_two_arrays_is_computed),
        CASE(a_matrix_product_is_computed),
        CASE(a_chain_of_300000_operations_is_evaluated_and_released_without_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
