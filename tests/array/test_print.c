/* Arrays as text; the expected texts are MLX's (repr). */
#include <math.h>
#include "support/arrays.h"
#include "support/test.h"

static void assert_text(ig_array a, const char *want)
{
    char got[2048];
    size_t n;
    assert_ok(ig_format(a, got, sizeof got, &n));
    assert_string_equal(got, want);
    assert_int_equal(n, strlen(want));
}

TEST(matrices_and_scalars_look_as_in_mlx)
{
    assert_text(SHAPED(I32(1, 2, 3, 4), 2, 2), "array([[1, 2],\n       [3, 4]], dtype=int32)");
    assert_text(ig_scalar_f32(3.5f), "array(3.5, dtype=float32)");
    assert_text(F32(1.5f, 2, 1e10f, 1e-5f, NAN, INFINITY),
                "array([1.5, 2, 1e+10, 1e-05, nan, inf], dtype=float32)");
    assert_text(ig_astype(F32(1, 0), IG_BOOL), "array([True, False], dtype=bool)");
    assert_text(ig_full(DIMS(2, 2, 2), 0, IG_F32),
                "array([[[0, 0],\n        [0, 0]],\n       [[0, 0],\n"
                "        [0, 0]]], dtype=float32)");
    assert_text(ig_astype(F32(0.1f, 0.25f), IG_F16), "array([0.0999756, 0.25], dtype=float16)");
}

TEST(the_largest_integers_keep_every_digit)
{
    const uint64_t u[1] = {UINT64_MAX};
    const int64_t i[1] = {INT64_MIN};
    assert_text(ig_array_copy(u, IG_U64, DIMS(1)), "array([18446744073709551615], dtype=uint64)");
    assert_text(ig_array_copy(i, IG_I64, DIMS(1)), "array([-9223372036854775808], dtype=int64)");
}

TEST(empty_arrays_keep_their_brackets)
{
    assert_text(ig_full(DIMS(0), 0, IG_F32), "array([], dtype=float32)");
    assert_text(ig_full(DIMS(2, 0), 0, IG_F32), "array([[],\n       []], dtype=float32)");
}

TEST(large_arrays_show_their_edges)
{
    assert_text(ig_arange(0, 2000, 1, IG_I32),
                "array([0, 1, 2, ..., 1997, 1998, 1999], dtype=int32)");
    assert_text(
        ig_full(DIMS(1500, 3), 0, IG_F32),
        "array([[0, 0, 0],\n       [0, 0, 0],\n       [0, 0, 0],\n       ...,\n       [0, 0, 0],\n"
        "       [0, 0, 0],\n       [0, 0, 0]], dtype=float32)");
}

TEST(complex_numbers_show_both_parts)
{
    const float z[4] = {1, 2, 3, -1};
    assert_text(ig_array_copy(z, IG_C64, DIMS(2)), "array([1+2j, 3-1j], dtype=complex64)");
}

TEST(a_strided_view_is_shown_in_its_own_order)
{
    assert_text(ig_transpose(SHAPED(I32(1, 2, 3, 4), 2, 2), NO_AXES),
                "array([[1, 3],\n       [2, 4]], dtype=int32)");
}

TEST(a_short_buffer_truncates_and_tells_the_length)
{
    char got[8];
    size_t n;
    assert_ok(ig_format(I32(1, 2), got, sizeof got, &n));
    assert_string_equal(got, "array([");
    assert_int_equal(n, strlen("array([1, 2], dtype=int32)"));
    assert_ok(ig_format(I32(1, 2), NULL, 0, &n));
    assert_int_equal(n, strlen("array([1, 2], dtype=int32)"));
}

TEST(a_broadcast_giant_is_cut_in_bounded_time)
{
    size_t n;
    ig_array a =
        ig_broadcast_to(ig_scalar_f32(0), DIMS(9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9));
    assert_ok(ig_format(a, NULL, 0, &n));
    assert_true(n < 2u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(matrices_and_scalars_look_as_in_mlx),
        ARRAY_CASE(the_largest_integers_keep_every_digit),
        ARRAY_CASE(empty_arrays_keep_their_brackets),
        ARRAY_CASE(large_arrays_show_their_edges),
        ARRAY_CASE(complex_numbers_show_both_parts),
        ARRAY_CASE(a_strided_view_is_shown_in_its_own_order),
        ARRAY_CASE(a_short_buffer_truncates_and_tells_the_length),
        ARRAY_CASE(a_broadcast_giant_is_cut_in_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
