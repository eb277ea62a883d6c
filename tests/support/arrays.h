/* arrays.h: arrays for tests: making them from few words, reading them back, comparing. A failed
 * read fails the test. */
#ifndef SUPPORT_ARRAYS_H
#define SUPPORT_ARRAYS_H
#include "ingot/memory.h"
#include "ingot/ops.h"

#define DIMS(...) \
    (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define AXES(...) (const int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define NO_AXES NULL, 0
/* A vector: F32(1, 2, 3), I32(1, 2). */
#define F32(...) arrays_vector(IG_F32, (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}))
#define I32(...) \
    arrays_vector(IG_I32, (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}))
#define U32(...) \
    arrays_vector(IG_U32, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}))

ig_array arrays_vector(ig_dtype dtype, const void *p, size_t n_bytes);
/* The same values in another shape: SHAPED(F32(1, 2, 3, 4), 2, 2). */
#define SHAPED(a, ...) ig_reshape(a, DIMS(__VA_ARGS__))
/* Values spread over [lo, hi), repeatable, rounded to dtype; integers truncate. */
ig_array arrays_spread(ig_dtype dtype, const int64_t *dims, int ndim, double lo, double hi,
                       uint32_t seed);

/* All elements as doubles, to be freed with free(). */
double *arrays_f64(ig_array a);
/* Elements, row-major, and shape of a. */
void arrays_equal_f64(ig_array a, const double *want, int64_t n);
#define assert_elements(a, ...)                        \
    arrays_equal_f64(a, (const double[]){__VA_ARGS__}, \
                     sizeof((double[]){__VA_ARGS__}) / sizeof(double))
void arrays_dims(ig_array a, const int64_t *dims, int ndim);
#define assert_dims(a, ...) arrays_dims(a, DIMS(__VA_ARGS__))
/* Same dtype, dims and bytes; NaNs of any payload are equal. */
void arrays_same_bits(ig_array a, ig_array b, const char *what);

ig_counters arrays_counters(void);
/* The builder gave nothing, and the record of the innermost scope says why. Clears it. */
#define assert_refused(array, code, part)                        \
    do {                                                         \
        assert_true(ig_is_empty(array));                         \
        assert_int_equal(ig_error_code(), code);                 \
        if (!strstr(ig_error_message(), part)) {                 \
            print_error("message is: %s\n", ig_error_message()); \
            fail_msg("no \"%s\" in it", part);                   \
        }                                                        \
        ig_error_clear();                                        \
    } while (0)
/* For cmocka: a scope around each test; what it owned must be gone after it. */
int arrays_setup(void **state);
int arrays_teardown(void **state);
#define ARRAY_CASE(name) cmocka_unit_test_setup_teardown(name, arrays_setup, arrays_teardown)
#endif
