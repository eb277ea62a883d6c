/* Random numbers: MLX's bits, batches of keys, categorical draws. */
#include <math.h>
#include "support/arrays.h"
#include "support/test.h"
#include "golden/array/mlx.h"

static void expect_words(ig_array a, const uint32_t *want, size_t n_bytes, const char *what)
{
    const void *got;
    if (ig_is_empty(a)) fail_msg("%s: %s", what, ig_error_message());
    assert_int_equal(ig_nbytes(a), n_bytes);
    assert_ok(ig_data(a, &got));
    if (memcmp(got, want, n_bytes) != 0) fail_msg("%s differs from MLX's", what);
}

#define KEY(tag) arrays_vector(IG_U32, mlx_key_##tag, sizeof mlx_key_##tag)
#define CHECK_KEY(tag)                                                                         \
    do {                                                                                       \
        ig_array key = KEY(tag);                                                               \
        expect_words(ig_random_split(key, 3), mlx_split_##tag, sizeof mlx_split_##tag,         \
                     "split " #tag);                                                           \
        expect_words(ig_random_bits(key, DIMS(3, 2)), mlx_split_##tag, sizeof mlx_split_##tag, \
                     "bits " #tag);                                                            \
        CHECK_UNIFORM(tag, 1);                                                                 \
        CHECK_UNIFORM(tag, 2);                                                                 \
        CHECK_UNIFORM(tag, 7);                                                                 \
        CHECK_UNIFORM(tag, 16);                                                                \
    } while (0)
#define CHECK_UNIFORM(tag, n)                                                     \
    expect_words(ig_random_uniform(key, DIMS(n)), mlx_uniform_##tag##_##n, 4 * n, \
                 "uniform " #tag " " #n)

TEST(splits_bits_and_uniforms_are_those_of_mlx)
{
    CHECK_KEY(a);
    CHECK_KEY(b);
    CHECK_KEY(c);
}

TEST(categorical_draws_are_those_of_mlx)
{
    ig_array logits = ig_array_copy(mlx_logits, IG_F32, DIMS(8, 33));
    for (uint32_t seed = 0; seed < 4; seed++) {
        expect_words(ig_random_categorical(U32(0, seed), logits, 0), mlx_categorical_0 + 33 * seed,
                     33 * 4, "categorical 0");
        expect_words(ig_random_categorical(U32(0, seed), logits, 1), mlx_categorical_1 + 8 * seed,
                     8 * 4, "categorical 1");
    }
}

/* A row's draw must not depend on how many rows there are. */
TEST(a_batch_of_keys_draws_for_each_key_by_itself)
{
    ig_array keys = ig_random_split(U32(1, 2), 3),
             logits = arrays_spread(IG_F32, DIMS(3, 50), -2, 2, 1);
    ig_array bits = ig_random_bits(keys, DIMS(2, 5)), uniform = ig_random_uniform(keys, DIMS(7));
    ig_array splits = ig_random_split(keys, 2), draws = ig_random_categorical(keys, logits, -1);
    assert_dims(bits, 3, 2, 5);
    assert_dims(splits, 3, 2, 2);
    assert_dims(draws, 3);
    for (int i = 0; i < 3; i++) {
        ig_array key = ig_reshape(ig_take(keys, I32(i), 0), DIMS(2)), row = I32(i);
        arrays_same_bits(ig_reshape(ig_take(bits, row, 0), DIMS(2, 5)),
                         ig_random_bits(key, DIMS(2, 5)), "bits");
        arrays_same_bits(ig_reshape(ig_take(uniform, row, 0), DIMS(7)),
                         ig_random_uniform(key, DIMS(7)), "uniform");
        arrays_same_bits(ig_reshape(ig_take(splits, row, 0), DIMS(2, 2)), ig_random_split(key, 2),
                         "split");
        arrays_same_bits(ig_take(draws, row, 0),
                         ig_random_categorical(key, ig_take(logits, row, 0), 1), "categorical");
    }
}

TEST(uniform_fills_the_half_open_interval)
{
    ig_array u = ig_random_uniform(U32(7, 7), DIMS(20000));
    double *v = arrays_f64(u), sum = 0, largest = 0;
    for (int i = 0; i < 20000; i++) {
        assert_true(v[i] >= 0 && v[i] < 1);
        sum += v[i];
        if (v[i] > largest) largest = v[i];
    }
    assert_true(fabs(sum / 20000 - 0.5) < 0.01 && largest > 0.999);
    free(v);
}

TEST(categorical_follows_the_probabilities)
{
    ig_array logits = ig_broadcast_to(ig_log(F32(0.1f, 0.6f, 0.3f)), DIMS(9000, 3));
    double *draw = arrays_f64(ig_random_categorical(U32(3, 4), logits, -1)), n[3] = {0};
    for (int i = 0; i < 9000; i++) n[(int)draw[i]]++;
    assert_true(fabs(n[0] / 9000 - 0.1) < 0.02 && fabs(n[1] / 9000 - 0.6) < 0.02);
    ig_array masked = SHAPED(F32(-INFINITY, 0, -INFINITY), 1, 3);
    assert_elements(ig_random_categorical(U32(3, 4), masked, 1), 1);
    free(draw);
}

TEST(keys_of_another_shape_or_type_are_refused)
{
    ig_array logits = SHAPED(F32(1, 2, 3, 4), 2, 2);
    assert_refused(ig_random_bits(I32(1, 2), DIMS(2)), IG_EDTYPE,
                   "random_bits: argument key is int32 [2]");
    assert_refused(ig_random_bits(U32(1, 2, 3), DIMS(2)), IG_ESHAPE,
                   "argument key is uint32 [3]: keys are [2] or [..., 2]");
    assert_refused(ig_random_uniform(U32(1, 2), DIMS(-2)), IG_ESHAPE,
                   "random_uniform: dimension 0 is negative");
    assert_refused(ig_random_split(U32(1, 2), -1), IG_ESHAPE,
                   "random_split: dimension 0 is negative");
    assert_refused(ig_random_categorical(SHAPED(U32(1, 2, 3, 4), 2, 2), logits, 0), IG_ESHAPE,
                   "one key for each row");
    assert_refused(ig_random_categorical(U32(1, 2), ig_scalar_f32(1), 0), IG_ESHAPE,
                   "a scalar has no axis");
    assert_dims(ig_random_bits(U32(1, 2), DIMS(0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(splits_bits_and_uniforms_are_those_of_mlx),
        ARRAY_CASE(categorical_draws_are_those_of_mlx),
        ARRAY_CASE(a_batch_of_keys_draws_for_each_key_by_itself),
        ARRAY_CASE(uniform_fills_the_half_open_interval),
        ARRAY_CASE(categorical_follows_the_probabilities),
        ARRAY_CASE(keys_of_another_shape_or_type_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
