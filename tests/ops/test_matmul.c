/* Matrix products: the order of the contract recomputed, batches, vectors, dtypes, layouts. */
#include <math.h>
#include "ingot/device.h"
#include "support/arrays.h"
#include "support/test.h"

static float dot_in_order(const float *x, const float *y, int64_t step, int64_t n)
{
    float total = 0;
    for (int64_t block = 0; block < n; block += 4096) {
        float p[64] = {0};
        for (int64_t i = block; i < n && i < block + 4096; i++)
            p[i % 64] = fmaf(x[i], y[i * step], p[i % 64]);
        for (int half = 32; half; half /= 2)
            for (int i = 0; i < half; i++) p[i] += p[i + half];
        total += p[0];
    }
    return total;
}

/* b is given as [K, N]; each layout of both must give the same bits. */
static void check_order(int64_t m, int64_t k, int64_t n)
{
    ig_array a = arrays_spread(IG_F32, DIMS(m, k), -2, 2, 1),
             b = arrays_spread(IG_F32, DIMS(k, n), -2, 2, 2);
    const float *x, *y;
    assert_ok(ig_data(a, (const void **)&x));
    assert_ok(ig_data(b, (const void **)&y));
    float *want = malloc((size_t)(m * n) * sizeof *want);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) want[i * n + j] = dot_in_order(x + i * k, y + j, n, k);
    ig_array w = ig_array_copy(want, IG_F32, DIMS(m, n));
    ig_array columns = ig_transpose(ig_contiguous(ig_transpose(b, NO_AXES)), NO_AXES);
    ig_array wide =
        ig_slice(ig_concatenate((ig_array[]){a, a}, 2, 1), DIMS(0, 0), DIMS(m, k), DIMS(1, 1));
    arrays_same_bits(ig_matmul(a, b), w, "dense");
    arrays_same_bits(ig_matmul(a, columns), w, "weights by rows");
    arrays_same_bits(ig_matmul(wide, b), w, "rows with gaps");
    arrays_same_bits(
        ig_matmul(ig_transpose(ig_contiguous(ig_transpose(a, NO_AXES)), NO_AXES), columns), w,
        "a by columns");
    free(want);
}

TEST(a_product_is_added_in_the_order_of_the_contract)
{
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 64, 5},  {3, 65, 17}, {1, 5000, 9},
                                       {33, 200, 70}, {5, 130, 1}, {2, 9000, 3}};
    const char *first = ig_device_isa();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_order(sizes[i][0], sizes[i][1], sizes[i][2]);
    }
    assert_ok(ig_device_set_isa(first));
}

TEST(a_row_of_a_product_does_not_depend_on_the_other_rows)
{
    ig_array a = arrays_spread(IG_F32, DIMS(65, 300), -2, 2, 1),
             b = arrays_spread(IG_F32, DIMS(300, 40), -2, 2, 2);
    ig_array all = ig_matmul(a, b);
    for (int i = 0; i < 65; i += 16) {
        ig_array row = ig_slice(a, DIMS(i, 0), DIMS(i + 1, 300), DIMS(1, 1));
        arrays_same_bits(ig_matmul(row, b), ig_slice(all, DIMS(i, 0), DIMS(i + 1, 40), DIMS(1, 1)),
                         "row");
    }
}

TEST(vectors_and_batches_follow_numpy)
{
    ig_array v = F32(1, 2, 3), m = SHAPED(F32(1, 2, 3, 4, 5, 6), 3, 2);
    assert_elements(ig_matmul(v, v), 14);
    assert_dims(ig_matmul(v, m), 2);
    assert_elements(ig_matmul(v, m), 22, 28);
    assert_elements(ig_matmul(ig_transpose(m, NO_AXES), v), 22, 28);
    ig_array batch = arrays_spread(IG_F32, DIMS(2, 1, 4, 3), -1, 1, 1),
             other = arrays_spread(IG_F32, DIMS(5, 3, 2), -1, 1, 2);
    ig_array y = ig_matmul(batch, other);
    assert_dims(y, 2, 5, 4, 2);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 5; j++) {
            ig_array x = ig_reshape(ig_take(batch, I32(i), 0), DIMS(4, 3)),
                     w = ig_reshape(ig_take(other, I32(j), 0), DIMS(3, 2));
            ig_array part =
                ig_slice(y, DIMS(i, j, 0, 0), DIMS(i + 1, j + 1, 4, 2), DIMS(1, 1, 1, 1));
            arrays_same_bits(ig_reshape(part, DIMS(4, 2)), ig_matmul(x, w), "batch");
        }
    assert_dims(ig_matmul(batch, F32(1, 2, 3)), 2, 1, 4);
}

TEST(sixteen_bit_and_double_products_are_rounded_once)
{
    ig_array a = arrays_spread(IG_BF16, DIMS(3, 100), -2, 2, 1),
             b = arrays_spread(IG_BF16, DIMS(100, 4), -2, 2, 2);
    ig_array f = ig_matmul(ig_astype(a, IG_F32), ig_astype(b, IG_F32));
    assert_int_equal(ig_type(ig_matmul(a, b)), IG_BF16);
    arrays_same_bits(ig_matmul(a, b), ig_astype(f, IG_BF16), "bf16");
    assert_int_equal(ig_type(ig_matmul(a, ig_astype(b, IG_F16))), IG_F32);
    arrays_same_bits(ig_matmul(ig_astype(a, IG_F32), b), f, "f32 with bf16 weights");
    ig_array d = ig_matmul(ig_astype(a, IG_F64), ig_astype(b, IG_F64));
    double *x = arrays_f64(d), *y = arrays_f64(f);
    for (int i = 0; i < 12; i++) assert_true(fabs(x[i] - y[i]) < 1e-4);
    free(x);
    free(y);
}

TEST(empty_products_are_zeros_or_empty)
{
    assert_elements(ig_matmul(ig_full(DIMS(2, 0), 1, IG_F32), ig_full(DIMS(0, 2), 1, IG_F32)), 0, 0,
                    0, 0);
    assert_dims(ig_matmul(ig_full(DIMS(0, 3), 1, IG_F32), ig_full(DIMS(3, 2), 1, IG_F32)), 0, 2);
    assert_elements(ig_matmul(ig_full(DIMS(0), 1, IG_F32), ig_full(DIMS(0), 1, IG_F32)), 0);
}

TEST(products_that_do_not_fit_are_refused_with_both_shapes)
{
    ig_array a = ig_full(DIMS(2, 3), 1, IG_F32);
    assert_refused(
        ig_matmul(a, a), IG_ESHAPE,
        "matmul: arguments a float32 [2, 3] and b float32 [2, 3]: the inner dimensions differ");
    assert_refused(ig_matmul(a, ig_scalar_f32(1)), IG_ESHAPE, "scalars are not matrices");
    assert_refused(ig_matmul(ig_full(DIMS(2, 2), 1, IG_I32), a), IG_EDTYPE,
                   "matmul: argument a is int32 [2, 2]");
    assert_refused(
        ig_matmul(ig_full(DIMS(2, 4, 3), 1, IG_F32), ig_full(DIMS(5, 3, 4), 1, IG_F32)), IG_ESHAPE,
        "matmul: leading dimensions of a float32 [2] and of b float32 [5] do not broadcast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(a_product_is_added_in_the_order_of_the_contract),
        ARRAY_CASE(a_row_of_a_product_does_not_depend_on_the_other_rows),
        ARRAY_CASE(vectors_and_batches_follow_numpy),
        ARRAY_CASE(sixteen_bit_and_double_products_are_rounded_once),
        ARRAY_CASE(empty_products_are_zeros_or_empty),
        ARRAY_CASE(products_that_do_not_fit_are_refused_with_both_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
