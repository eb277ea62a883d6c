/* Creation, concatenation, indexing and updating against loops; what is out of range. */
#include <math.h>
#include "base/auto.h"
#include "support/arrays.h"
#include "support/test.h"

TEST(arange_counts_in_any_type_and_direction)
{
    assert_elements(ig_arange(0, 5, 2, IG_I32), 0, 2, 4);
    assert_elements(ig_arange(5, 0, -2, IG_I64), 5, 3, 1);
    assert_elements(ig_arange(0, 1, 0.25, IG_F32), 0, 0.25, 0.5, 0.75);
    assert_elements(ig_arange(0, 3, 1, IG_BF16), 0, 1, 2);
    assert_dims(ig_arange(3, 3, 1, IG_U8), 0);
    assert_dims(ig_arange(5, 3, 1, IG_U8), 0);
    assert_refused(ig_arange(0, 1, 0, IG_I32), IG_EINVAL, "arange: from 0 to 1 by 0");
    assert_refused(ig_arange(0, INFINITY, 1, IG_I32), IG_EINVAL, "must be finite");
    assert_refused(ig_arange(0, 1e30, 1, IG_F32), IG_ELIMIT, "too many elements");
    assert_refused(ig_arange(0, 3, 1, IG_BOOL), IG_EDTYPE, "arange: dtype bool");
}

TEST(full_and_tri_fill)
{
    assert_elements(ig_full(DIMS(2, 2), -1.5, IG_F16), -1.5, -1.5, -1.5, -1.5);
    assert_elements(ig_full(DIMS(2), 7, IG_U8), 7, 7);
    assert_elements(ig_full(NULL, 0, 3, IG_F64), 3);
    assert_elements(ig_full(DIMS(2), 2, IG_BOOL), 1, 1);
    assert_elements(ig_tri(3, 3, 0, IG_I32), 1, 0, 0, 1, 1, 0, 1, 1, 1);
    assert_elements(ig_tri(2, 4, 1, IG_F32), 1, 1, 0, 0, 1, 1, 1, 0);
    assert_elements(ig_tri(2, 2, -1, IG_BOOL), 0, 0, 1, 0);
    assert_elements(ig_tri(2, 2, INT64_MAX, IG_BOOL), 1, 1, 1, 1);
    assert_elements(ig_tri(2, 2, INT64_MIN, IG_BOOL), 0, 0, 0, 0);
    assert_refused(ig_full(DIMS(2, -1), 0, IG_F32), IG_ESHAPE, "full: dimension 1 is negative");
    assert_refused(ig_full(DIMS(2), 0, (ig_dtype)77), IG_EDTYPE, "full: 77 is not a dtype");
    assert_refused(ig_tri(-2, 2, 0, IG_F32), IG_ESHAPE, "tri: dimension 0 is negative");
}

TEST(contiguous_keeps_values_of_every_size)
{
    static const ig_dtype types[] = {IG_U8, IG_F16, IG_F32, IG_F64, IG_BOOL};
    for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
        ig_array a = arrays_spread(types[k], DIMS(4, 3, 5), 0, 100, 1),
                 t = ig_transpose(a, AXES(2, 0, 1));
        arrays_same_bits(ig_transpose(ig_contiguous(t), AXES(1, 2, 0)), a, ig_dtype_name(types[k]));
    }
    const float z[4] = {1, 2, 3, 4};
    ig_array c = ig_array_copy(z, IG_C64, DIMS(2)),
             r = ig_contiguous(ig_slice(c, DIMS(1), DIMS(-3), DIMS(-1)));
    const float *p;
    assert_ok(ig_data(r, (const void **)&p));
    assert_float_equal(p[0], 3, 0);
    assert_float_equal(p[3], 2, 0);
}

TEST(concatenate_joins_along_any_axis_and_promotes)
{
    assert_refused(ig_concatenate(NULL, 2, 0), IG_EINVAL, "concatenate: an empty list of arrays");
    ig_array a = SHAPED(I32(1, 2, 3, 4), 2, 2), b = SHAPED(F32(5.5f, 6.5f), 2, 1);
    ig_array y = ig_concatenate((ig_array[]){a, b}, 2, 1);
    assert_int_equal(ig_type(y), IG_F32);
    assert_elements(y, 1, 2, 5.5, 3, 4, 6.5);
    assert_elements(ig_concatenate((ig_array[]){a, ig_transpose(a, NO_AXES)}, 2, 0), 1, 2, 3, 4, 1,
                    3, 2, 4);
    ig_array empty = ig_full(DIMS(0, 2), 0, IG_I32);
    assert_elements(ig_concatenate((ig_array[]){empty, a, empty}, 3, -2), 1, 2, 3, 4);
    assert_refused(ig_concatenate((ig_array[]){a, b}, 2, 0), IG_ESHAPE,
                   "concatenate: arguments arrays int32 [2, 2] and arrays float32 [2, 1]: "
                   "they may differ along");
    assert_refused(ig_concatenate((ig_array[]){a, a}, 2, 2), IG_EINVAL, "axis 2 is out of range");
    ig_array huge = ig_broadcast_to(ig_full(DIMS(1), 0, IG_U8), DIMS(INT64_MAX));
    assert_refused(ig_concatenate((ig_array[]){huge, huge}, 2, 0), IG_ELIMIT, "too large");
    assert_refused(ig_concatenate(NULL, 0, 0), IG_EINVAL, "concatenate: an empty list");
    assert_true(ig_is_empty(ig_concatenate((ig_array[]){a, {0}}, 2, 0)));
    ig_array many[65];
    for (int i = 0; i < 65; i++) many[i] = a;
    assert_refused(ig_concatenate(many, 65, 0), IG_EINVAL,
                   "more inputs than an operation can take (64)");
    assert_dims(ig_concatenate(many, 64, 0), 128, 2);
}

TEST(take_reads_slices_along_an_axis)
{
    ig_array a = SHAPED(F32(0, 1, 2, 3, 4, 5), 2, 3);
    assert_elements(ig_take(a, I32(1, 0, -1), 0), 3, 4, 5, 0, 1, 2, 3, 4, 5);
    ig_array y = ig_take(a, SHAPED(I32(2, 0, 1, 1), 2, 2), -1);
    assert_dims(y, 2, 2, 2);
    assert_elements(y, 2, 0, 1, 1, 5, 3, 4, 4);
    assert_dims(ig_take(a, ig_reshape(I32(1), NULL, 0), 0), 3);
    assert_elements(ig_take(ig_transpose(a, NO_AXES), ig_astype(I32(2), IG_U8), 0), 2, 5);
    ig_array deep = ig_full(DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 0, IG_I32);
    assert_refused(ig_take(a, deep, 0), IG_ELIMIT, "take: the result would have more than 16");
    assert_dims(ig_take(a, ig_full(DIMS(0), 0, IG_I32), 1), 2, 0);
}

TEST(an_index_out_of_range_gives_nan_or_zero_and_reads_nothing)
{
    ig_array a = SHAPED(F32(0, 1, 2, 3, 4, 5), 2, 3);
    assert_elements(ig_take(a, I32(2, -3, 1), 0), NAN, NAN, NAN, NAN, NAN, NAN, 3, 4, 5);
    assert_elements(ig_take(a, I32(3, INT32_MIN), 1), NAN, NAN, NAN, NAN);
    assert_elements(ig_take(ig_astype(a, IG_BF16), I32(7), 0), NAN, NAN, NAN);
    assert_elements(ig_take(ig_astype(a, IG_I16), I32(9, 1), 0), 0, 0, 0, 3, 4, 5);
    assert_elements(ig_take(a, ig_astype(U32(UINT32_MAX), IG_U64), 0), NAN, NAN, NAN);
    assert_elements(ig_take_along_axis(a, SHAPED(I32(5, 0, -4, -1), 2, 2), 1), NAN, 0, NAN, 5);
    assert_elements(ig_take(ig_full(DIMS(0, 2), 0, IG_F32), I32(0), 0), NAN, NAN);
}

TEST(take_along_an_axis_reads_single_elements)
{
    ig_array a = SHAPED(F32(3, 1, 2, 6, 5, 4), 2, 3);
    assert_elements(ig_take_along_axis(a, ig_argsort(a, 1), 1), 1, 2, 3, 4, 5, 6);
    assert_elements(ig_take_along_axis(a, SHAPED(I32(1, 0, 1), 1, 3), 0), 6, 1, 4);
    assert_refused(ig_take_along_axis(a, I32(1), 1), IG_ESHAPE,
                   "take_along_axis: arguments a float32 [2, 3] and indices int32 [1]");
}

TEST(indices_must_be_integers)
{
    ig_array a = F32(1, 2);
    assert_refused(ig_take(a, F32(0), 0), IG_EDTYPE, "take: argument indices is float32 [1]");
    assert_refused(ig_take_along_axis(a, ig_full(DIMS(2), 1, IG_BOOL), 0), IG_EDTYPE,
                   "indices is bool [2]");
    assert_refused(ig_put_rows(a, F32(0), F32(0)), IG_EDTYPE, "put_rows: argument indices");
    assert_refused(ig_take(ig_scalar_f32(1), I32(0), 0), IG_ESHAPE, "a scalar has no axis");
}

TEST(put_rows_replaces_rows_and_the_last_of_equal_indices_wins)
{
    ig_array a = SHAPED(F32(0, 1, 2, 3, 4, 5), 3, 2);
    assert_elements(ig_put_rows(a, I32(2, 0), SHAPED(F32(8, 9, 6, 7), 2, 2)), 6, 7, 2, 3, 8, 9);
    assert_elements(ig_put_rows(a, I32(1, 1), SHAPED(F32(8, 9, 6, 7), 2, 2)), 0, 1, 6, 7, 4, 5);
    assert_elements(ig_put_rows(a, I32(-1, 3, -4), SHAPED(F32(9), 1, 1)), 0, 1, 2, 3, 9, 9);
    assert_elements(ig_put_rows(a, I32(0), SHAPED(I32(5, 6), 1, 2)), 5, 6, 2, 3, 4, 5);
    assert_elements(a, 0, 1, 2, 3, 4, 5); /* the argument is a value */
    assert_refused(ig_put_rows(a, I32(0, 1), SHAPED(F32(1, 2, 3), 1, 3)), IG_ESHAPE,
                   "does not broadcast to float32 [2, 2]");
    assert_refused(ig_put_rows(ig_scalar_f32(1), I32(0), F32(1)), IG_ESHAPE,
                   "put_rows: argument a is float32 []");
}

TEST(a_step_beyond_the_axis_takes_one_element)
{
    const int64_t huge[] = {INT64_MAX, -INT64_MAX, 5};
    ig_array a = SHAPED(ig_arange(0, 6, 1, IG_F64), 2, 3);
    for (int i = 0; i < 3; i++) {
        int64_t stop[] = {huge[i] < 0 ? -9 : 9, 9};
        ig_array y = ig_slice(a, DIMS(1, 0), stop, 2, DIMS(huge[i], INT64_MAX));
        assert_elements(y, 3);
        y = ig_slice_update(a, ig_scalar_f32(9), DIMS(0, 1), DIMS(2, 3),
                            DIMS(1, huge[i] < 0 ? 7 : huge[i]));
        assert_elements(y, 0, 9, 2, 3, 9, 5);
    }
}

TEST(slice_update_replaces_a_strided_box)
{
    ig_array a = ig_full(DIMS(3, 4), 0, IG_F32);
    assert_elements(
        ig_slice_update(a, SHAPED(F32(1, 2, 3, 4), 2, 2), DIMS(0, 1), DIMS(3, 4), DIMS(2, 2)), 0, 1,
        0, 2, 0, 0, 0, 0, 0, 3, 0, 4);
    assert_elements(ig_slice_update(a, F32(7, 8), DIMS(1, 3), DIMS(2, 1), DIMS(1, -1)), 0, 0, 0, 0,
                    0, 0, 8, 7, 0, 0, 0, 0);
    assert_elements(ig_slice_update(a, ig_scalar_i32(1), DIMS(0, 0), DIMS(1, 4), DIMS(1, 1)), 1, 1,
                    1, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_elements(a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    assert_refused(ig_slice_update(a, F32(1, 2, 3), DIMS(0, 0), DIMS(1, 2), DIMS(1, 1)), IG_ESHAPE,
                   "does not broadcast");
    assert_refused(ig_slice_update(a, F32(1), DIMS(0), DIMS(1), DIMS(1)), IG_ESHAPE,
                   "slice_update: argument a is");
}

TEST(updates_of_a_dying_array_write_in_place)
{
    ig_scope *s = ig_scope_open();
    ig_array a = ig_full(DIMS(1000, 64), 0, IG_F32), r;
    const char *p, *q;
    assert_ok(ig_data(a, (const void **)&p));
    ig_array b = ig_put_rows(a, I32(5), ig_full(DIMS(1, 64), 1, IG_F32));
    assert_ok(ig_scope_eval(s, &b, 1, &r));
    assert_ok(ig_data(r, (const void **)&q));
    assert_ptr_equal(p, q);
    assert_elements(ig_sum(r, NO_AXES, false), 64);
}

/* [0, 1], [2, 3], [4, 5] in a buffer that the next operation may take over. */
static ig_array six(void)
{
    return ig_add(SHAPED(ig_arange(0, 6, 1, IG_F32), 3, 2), ig_scalar_f32(0));
}

TEST(a_dying_array_that_is_its_own_update_is_not_written_before_it_is_read)
{
    ig_scope *s = ig_scope_open();
    ig_array a = six(), b = six(), r[2];
    ig_array both[2] = {ig_put_rows(a, I32(2, 0, 1), a),
                        ig_slice_update(b, b, DIMS(-1, 0), DIMS(-4, 2), DIMS(-1, 1))};
    assert_ok(ig_scope_eval(s, both, 2, r));
    assert_elements(r[0], 2, 3, 4, 5, 0, 1);
    assert_elements(r[1], 4, 5, 2, 3, 0, 1);
}

TEST(parts_along_an_axis_are_slices)
{
    ig_array a = SHAPED(ig_arange(0, 24, 1, IG_I32), 2, 4, 3), p[4];
    assert_elements(ig_slice_axis(a, 1, 1, 2), 3, 4, 5, 15, 16, 17);
    arrays_same_bits(ig_slice_axis(a, -2, -3, -2), ig_slice_axis(a, 1, 1, 2), "from the end");
    assert_dims(ig_slice_axis(a, 2, 2, 99), 2, 4, 1);
    assert_dims(ig_slice_axis(a, 0, 1, 1), 0, 4, 3);
    assert_int_equal(ig_split(a, 1, 2, NULL, p), IG_OK);
    assert_elements(p[0], 0, 1, 2, 3, 4, 5, 12, 13, 14, 15, 16, 17);
    assert_elements(p[1], 6, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23);
    assert_int_equal(ig_split(a, -1, 3, (int64_t[]){2, 0, 1}, p), IG_OK);
    assert_dims(p[0], 2, 4, 2);
    assert_dims(p[1], 2, 4, 0);
    assert_elements(p[2], 2, 5, 8, 11, 14, 17, 20, 23);
    assert_elements(ig_zeros(DIMS(2), IG_F32), 0, 0);
}

TEST(an_axis_that_does_not_divide_is_refused_and_leaves_no_part)
{
    ig_array a = SHAPED(ig_arange(0, 24, 1, IG_I32), 2, 4, 3), p[3];
    const struct {
        int axis, n;
        const int64_t *sizes;
        ig_status status;
        const char *part;
    } wrong[] = {
        {1, 3, NULL, IG_ESHAPE,
         "split: argument a is int32 [2, 4, 3]: axis 1 does not divide into"},
        {1, 2, (int64_t[]){1, 2}, IG_ESHAPE, "2 parts of these sizes"},
        {0, 2, (int64_t[]){2, -1}, IG_ESHAPE, "2 parts of these sizes"},
        {0, 2, (int64_t[]){INT64_MIN, INT64_MIN}, IG_ESHAPE, "2 parts of these sizes"},
        {3, 1, NULL, IG_EINVAL, "split"},
        {0, 0, NULL, IG_EINVAL, "split: 0 parts"},
    };
    for (size_t i = 0; i < N_ELEM(wrong); i++) {
        p[0] = p[1] = p[2] = a;
        assert_fails(ig_split(a, wrong[i].axis, wrong[i].n, wrong[i].sizes, p), wrong[i].status,
                     wrong[i].part);
        for (int k = 0; k < wrong[i].n; k++) assert_true(ig_is_empty(p[k]));
    }
    ig_error_clear();
    assert_refused(ig_slice_axis(a, 3, 0, 1), IG_EINVAL, "slice_axis");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(arange_counts_in_any_type_and_direction),
        ARRAY_CASE(full_and_tri_fill),
        ARRAY_CASE(parts_along_an_axis_are_slices),
        ARRAY_CASE(an_axis_that_does_not_divide_is_refused_and_leaves_no_part),
        ARRAY_CASE(contiguous_keeps_values_of_every_size),
        ARRAY_CASE(concatenate_joins_along_any_axis_and_promotes),
        ARRAY_CASE(take_reads_slices_along_an_axis),
        ARRAY_CASE(an_index_out_of_range_gives_nan_or_zero_and_reads_nothing),
        ARRAY_CASE(take_along_an_axis_reads_single_elements),
        ARRAY_CASE(indices_must_be_integers),
        ARRAY_CASE(put_rows_replaces_rows_and_the_last_of_equal_indices_wins),
        ARRAY_CASE(a_step_beyond_the_axis_takes_one_element),
        ARRAY_CASE(slice_update_replaces_a_strided_box),
        ARRAY_CASE(updates_of_a_dying_array_write_in_place),
        ARRAY_CASE(a_dying_array_that_is_its_own_update_is_not_written_before_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
