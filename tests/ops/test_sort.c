/* Sorting: stable, NaN last, every dtype and axis, against an insertion sort. */
#include <math.h>
#include "support/arrays.h"
#include "support/test.h"

static bool after(double a, double b) { return a != a ? b == b : a > b; } /* NaN after all */

/* Indices that sort x[0..n) with the given distance between elements, stable. */
static void sort_indices(const double *x, int n, int step, int *out)
{
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && after(x[out[k - 1] * step], x[i * step]); k--) out[k] = out[k - 1];
        out[k] = i;
    }
}

static void check_sort(ig_array a, int axis)
{
    int d[3] = {(int)ig_dim(a, 0), (int)ig_dim(a, 1), (int)ig_dim(a, 2)}, order[600];
    int step = axis == 0 ? d[1] * d[2] : axis == 1 ? d[2] : 1, n = d[axis];
    double *x = arrays_f64(a), *sorted = arrays_f64(ig_sort(a, axis)),
           *index = arrays_f64(ig_argsort(a, axis - 3));
    for (int i = 0; i < d[0] * d[1] * d[2]; i++) {
        if (i / step % n != 0) continue; /* the first of its line */
        sort_indices(x + i, n, step, order);
        for (int k = 0; k < n; k++) {
            double want = x[i + order[k] * step], got = sorted[i + k * step];
            if (got != want && !(got != got && want != want))
                fail_msg("%s axis %d: element %d is %g, not %g", ig_dtype_name(ig_type(a)), axis, k,
                         got, want);
            if (index[i + k * step] != order[k])
                fail_msg("%s axis %d: index %d is %g, not %d", ig_dtype_name(ig_type(a)), axis, k,
                         index[i + k * step], order[k]);
        }
    }
    free(x);
    free(sorted);
    free(index);
}

TEST(every_dtype_sorts_stably_along_every_axis)
{
    for (int t = 0; t < IG_C64; t++)
        for (int axis = 0; axis < 3; axis++) {
            ig_dtype type = (ig_dtype)t;
            bool negative = (type >= IG_I8 && type <= IG_I64) || type >= IG_F16;
            ig_array a = arrays_spread(type, DIMS(5, 6, 7), negative ? -9 : 0, 9,
                                       (uint32_t)t); /* many equal integers */
            check_sort(a, axis);
            check_sort(ig_transpose(a, AXES(2, 0, 1)), axis);
        }
}

TEST(nan_goes_last_and_keeps_its_order)
{
    ig_array a = F32(NAN, 2, -INFINITY, NAN, -1, INFINITY, 2);
    assert_elements(ig_sort(a, 0), -INFINITY, -1, 2, 2, INFINITY, NAN, NAN);
    assert_elements(ig_argsort(a, 0), 2, 4, 1, 6, 5, 0, 3);
    assert_int_equal(ig_type(ig_argsort(a, 0)), IG_U32);
}

TEST(long_rows_sort)
{
    check_sort(arrays_spread(IG_F32, DIMS(2, 1, 600), -1, 1, 3), 2);
    check_sort(ig_full(DIMS(1, 1, 500), 3, IG_I32), 2);
}

TEST(topk_gives_the_largest_first)
{
    ig_array a = SHAPED(F32(3, 9, 1, 7, 9, 2, 8, 4), 2, 4);
    assert_elements(ig_topk(a, 2, 1), 9, 7, 9, 8);
    assert_elements(ig_topk(a, 1, 0), 9, 9, 8, 7);
    assert_elements(ig_topk(a, 4, -1), 9, 7, 3, 1, 9, 8, 4, 2);
    assert_dims(ig_topk(a, 0, 1), 2, 0);
    assert_refused(ig_topk(a, 5, 1), IG_EINVAL,
                   "topk: k is 5, axis 1 of argument a float32 [2, 4] has 4 elements");
    assert_refused(ig_topk(a, -1, 1), IG_EINVAL, "topk: k is -1");
}

TEST(topk_equals_the_end_of_the_full_sort)
{
    ig_array a = ig_rint(arrays_spread(IG_F32, DIMS(4, 3000), -200, 200, 3));
    ig_array end = ig_slice(ig_sort(a, 1), DIMS(0, 2999), DIMS(4, 2939), DIMS(1, -1));
    arrays_same_bits(ig_topk(a, 60, 1), ig_contiguous(end), "topk");
}

TEST(empty_axes_sort_to_nothing)
{
    assert_dims(ig_sort(ig_full(DIMS(3, 0), 1, IG_F32), 1), 3, 0);
    ig_array y = ig_argsort(ig_full(DIMS(0, 3), 1, IG_F32), 1);
    assert_ok(ig_eval(&y, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(every_dtype_sorts_stably_along_every_axis),
        ARRAY_CASE(nan_goes_last_and_keeps_its_order),
        ARRAY_CASE(long_rows_sort),
        ARRAY_CASE(topk_gives_the_largest_first),
        ARRAY_CASE(topk_equals_the_end_of_the_full_sort),
        ARRAY_CASE(empty_axes_sort_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
