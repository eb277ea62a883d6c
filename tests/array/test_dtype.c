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

TEST(copies_out_convert_strided_elements_and_check_their_count)
{
    ig_array a = ig_transpose(SHAPED(I32(1, -2, 3, 4), 2, 2), NO_AXES);
    double d[4];
    float f[4];
    assert_ok(ig_copy_out(a, IG_F64, d, 4));
    assert_true(d[0] == 1 && d[1] == 3 && d[2] == -2 && d[3] == 4);
    assert_ok(ig_copy_out(ig_astype(a, IG_F64), IG_F32, f, 4));
    assert_true(f[1] == 3 && f[2] == -2);
    assert_ok(ig_copy_out(ig_astype(U32(16777217), IG_U64), IG_F32, f, 1)); /* one rounding */
    assert_float_equal(f[0], 16777216, 0);
    assert_fails(ig_copy_out(a, IG_F32, f, 3), IG_ESHAPE, "int32 [2, 2] into room for 3");
    assert_fails(ig_copy_out(a, (ig_dtype)99, f, 4), IG_EDTYPE, "99 is not a dtype");
    ig_error_clear();
}

TEST(wide_numbers_become_16_bits_in_one_rounding_as_astype_does)
{
    const double tie[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-8 + 0x1p-40, -1 - 0x1p-11 - 0x1p-40};
    const uint64_t big = ((uint64_t)1 << 40) + ((uint64_t)1 << 32) + 1;
    uint16_t out[3], as[3];
    ig_array d = arrays_vector(IG_F64, tie, sizeof tie), u = arrays_vector(IG_U64, &big, 8);
    for (ig_dtype t = IG_F16; t <= IG_BF16; t++) {
        assert_ok(ig_copy_out(d, t, out, 3));
        assert_ok(ig_copy_out(ig_astype(d, t), t, as, 3));
        assert_memory_equal(out, as, sizeof as);
    }
    assert_int_equal(out[1], 0x3f81);
    assert_ok(ig_copy_out(d, IG_F16, out, 3));
    assert_int_equal(out[0], 0x3c01);
    assert_int_equal(out[2], 0xbc01);
    assert_int_equal(converted(u, IG_BF16), 0x5381);
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
        ARRAY_CASE(copies_out_convert_strided_elements_and_check_their_count),
        ARRAY_CASE(wide_numbers_become_16_bits_in_one_rounding_as_astype_does),
        ARRAY_CASE(items_come_out_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
