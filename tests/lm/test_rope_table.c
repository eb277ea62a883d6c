/* test_rope_table.c: the rotary table against the C library in double, for each scaling. */
#include "lm/rope_table.h"
#include <fenv.h>
#include <math.h>
#include "support/test.h"

#define HALF_MAX 64

/* f of transformers: plain, linear (f / factor), llama3 (by wavelength). */
static double frequency(const lm_config *c, int64_t i)
{
    double f = pow(c->rope_theta, -2.0 * (double)i / (double)c->head_dim), wave = 2 * M_PI / f;
    double n = (double)c->original_context;
    if (c->scaling == ROPE_LINEAR) return f / c->scale_factor;
    if (c->scaling == ROPE_PLAIN || wave < n / c->high_freq_factor) return f;
    if (wave > n / c->low_freq_factor) return f / c->scale_factor;
    double smooth = (n / wave - c->low_freq_factor) / (c->high_freq_factor - c->low_freq_factor);
    return (1 - smooth) * f / c->scale_factor + smooth * f;
}

/* Half an ulp of a float near 1, and what is left of the reduction at large positions. */
static void compare(const lm_config *c, int64_t n)
{
    int64_t half = c->head_dim / 2;
    float *table = malloc((size_t)(n * 2 * half) * sizeof *table);
    assert_non_null(table);
    rope_table_fill(c, n, table);
    for (int64_t p = 0; p < n; p += p < 100 ? 1 : 37)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p * frequency(c, i), most = 3.1e-8 + 1e-15 * (double)p;
            const float *row = table + p * 2 * half;
            assert_true(fabs((double)row[i] - cos(angle)) <= most);
            assert_true(fabs((double)row[half + i] - sin(angle)) <= most);
        }
    free(table);
}

TEST(plain_frequencies_are_powers_of_theta)
{
    compare(&(lm_config){.head_dim = 64, .rope_theta = 10000}, 5000);
    compare(&(lm_config){.head_dim = 128, .rope_theta = 1e6}, 3000);
    compare(&(lm_config){.head_dim = 2, .rope_theta = 1}, 100);
    compare(&(lm_config){.head_dim = 6, .rope_theta = 1.1}, 1000);
}

TEST(far_positions_keep_their_bits)
{
    compare(&(lm_config){.head_dim = 4, .rope_theta = 500000}, ROPE_TABLE_MAX);
}

TEST(linear_scaling_divides_the_frequencies)
{
    compare(
        &(lm_config){
            .head_dim = 64, .rope_theta = 10000, .scaling = ROPE_LINEAR, .scale_factor = 2.5},
        2000);
}

TEST(llama3_scaling_stretches_long_waves_only)
{
    compare(&(lm_config){.head_dim = 128,
                         .rope_theta = 500000,
                         .scaling = ROPE_LLAMA3,
                         .scale_factor = 8,
                         .low_freq_factor = 1,
                         .high_freq_factor = 4,
                         .original_context = 8192},
            9000);
}

TEST(the_callers_rounding_does_not_show)
{
    enum { N = 500, D = 64 };
    static float near[N * D], up[N * D];
    const lm_config c = {.head_dim = D, .rope_theta = 10000};
    rope_table_fill(&c, N, near);
    fesetround(FE_UPWARD);
    rope_table_fill(&c, N, up);
    int after = fegetround();
    fesetround(FE_TONEAREST);
    assert_memory_equal(near, up, sizeof up);
    assert_int_equal(after, FE_UPWARD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(plain_frequencies_are_powers_of_theta),
        CASE(far_positions_keep_their_bits),
        CASE(linear_scaling_divides_the_frequencies),
        CASE(llama3_scaling_stretches_long_waves_only),
        CASE(the_callers_rounding_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
