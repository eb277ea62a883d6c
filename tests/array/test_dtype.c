/* Element types: promotion as MLX, conversion of single elements. */
#include <math.h>
#include "support/arrays.h"
#include "support/test.h"
#include "golden/array/mlx.h"

TEST(promotion_is_that_of_mlx)
{
    for (int a = 0; a < IG_N_DTYPES; a++)
        for (int b = 0; b < IG_N_DTYPES; b++)
            if ((int)ig_promote((ig_dtype)a, (ig_dtype)b) != mlx_promotion[a * IG_N_DTYPES + b])
                fail_msg("%s with %s gives %s", ig_dtype_name((ig_dtype)a),
                         ig_dtype_name((ig_dtype)b),
                         ig_dtype_name(ig_promote((ig_dtype)a, (ig_dtype)b)));
}

TEST(names_and_sizes_are_numpys_and_nonsense_has_none)
{
    assert_string_equal(ig_dtype_name(IG_BF16), "bfloat16");
    assert_string_equal(ig_dtype_name(IG_C64), "complex64");
    assert_string_equal(ig_dtype_name((ig_dtype)99), "invalid");
    assert_int_equal(ig_dtype_size(IG_C64), 8);
    assert_int_equal(ig_dtype_size(IG_BOOL), 1);
    assert_int_equal(ig_dtype_size((ig_dtype)-1), 0);
}

static int64_t converted(ig_array from, ig_dtype to)
{
    int64_t v = 0;
    assert_ok(ig_copy_out(from, to, &v, 1)); /* little-endian; narrow results leave the rest 0 */
    return v;
}

TEST(floats_saturate_into_integers_and_nan_becomes_zero)
{
    assert_int_equal(converted(ig_scalar_f32(300.7f), IG_U8), 255);
    assert_int_equal(converted(ig_scalar_f32(-3), IG_U8), 0);
    assert_int_equal((int8_t)converted(ig_scalar_f32(-300), IG_I8), -128);
    assert_int_equal((int8_t)converted(ig_scalar_f32(-2.9f), IG_I8), -2);
    assert_int_equal(converted(ig_scalar_f32(NAN), IG_I32), 0);
    assert_int_equal(converted(ig_scalar_f32(INFINITY), IG_I64), INT64_MAX);
    assert_int_equal(converted(ig_scalar_f32(-INFINITY), IG_I64), INT64_MIN);
    assert_true((uint64_t)converted(ig_scalar_f32(INFINITY), IG_U64) == UINT64_MAX);
    assert_int_equal(converted(ig_scalar_f32(0.25f), IG_BOOL), 1);
}

TEST(integers_wrap_into_narrower_ones)
{
    assert_int_equal(converted(ig_scalar_i32(257), IG_U8), 1);
    assert_int_equal((int16_t)converted(ig_scalar_i32(-1), IG_I16), -1);
    assert_int_equal(converted(ig_scalar_i32(-1), IG_U16), 65535);
}

TEST(sixteen_bit_floats_round_to_nearest_even)
{
    assert_int_equal(converted(ig_scalar_f32(1 + 0x1p-8f), IG_BF16), 0x3f80);
    assert_int_equal(converted(ig_scalar_f32(1 + 0x3p-8f), IG_BF16), 0x3f82);
    assert_int_equal(converted(ig_scalar_f32(65520), IG_F16), 0x7c00);
    assert_int_equal(converted(ig_scalar_f32(65519), IG_F16), 0x7bff);
    assert_int_equal(converted(ig_scalar_f32(0x1p-25f), IG_F16), 0);
    assert_int_equal(converted(ig_scalar_f32(0x1.8p-25f), IG_F16), 1);
}

TEST(items_come_out_converted)
{
    double d;
    int64_t i;
    assert_ok(ig_item_f64(ig_scalar_bool(true), &d));
    assert_float_equal(d, 1, 0);
    assert_ok(ig_item_i64(ig_scalar_f32(-2.9f), &i));
    assert_int_equal(i, -2);
    assert_fails(ig_item_f64(F32(1, 2), &d), IG_ESHAPE, "item: float32 [2]");
    ig_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(promotion_is_that_of_mlx),
        ARRAY_CASE(names_and_sizes_are_numpys_and_nonsense_has_none),
        ARRAY_CASE(floats_saturate_into_integers_and_nan_becomes_zero),
        ARRAY_CASE(integers_wrap_into_narrower_ones),
        ARRAY_CASE(sixteen_bit_floats_round_to_nearest_even),
        ARRAY_CASE(items_come_out_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
