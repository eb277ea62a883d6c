/* The float functions of base/fmath.h: error in ulp against libm's doubles, exact special values,
 * and a digest of the bits that every machine must reproduce. `test_fmath full` visits every float
 * (minutes); without it every 4099th, and all neighbours of the seams. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/auto.h"
#include "base/fmath.h"

typedef struct fn {
    const char *name;
    float (*ours)(float);
    double (*exact)(double);
    double max_ulp;
} fn;

static double exact_sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double exact_silu(double x)
{
    return x / (1 + (double)(float)exp(-x));
} /* to float: overflows alike */
static float ours_exp(float x) { return fmath_exp(x); }
static float ours_expm1(float x) { return fmath_expm1(x); }
static float ours_log1p(float x) { return fmath_log1p(x); }
static float ours_silu(float x) { return fmath_silu(x); }
static float ours_log(float x) { return fmath_log(x); }
static float ours_tanh(float x) { return fmath_tanh(x); }
static float ours_sigmoid(float x) { return fmath_sigmoid(x); }
static float ours_erf(float x) { return fmath_erf(x); }
static float ours_sin(float x) { return fmath_sin(x); }
static float ours_cos(float x) { return fmath_cos(x); }

static const fn FNS[] = {
    {"expm1", ours_expm1, expm1, 1.51},
    {"log1p", ours_log1p, log1p, 1.61},
    {"silu", ours_silu, exact_silu, 3.41},
    {"exp", ours_exp, exp, 0.91},
    {"log", ours_log, log, 0.91},
    {"tanh", ours_tanh, tanh, 1.61},
    {"sigmoid", ours_sigmoid, exact_sigmoid, 2.51},
    {"erf", ours_erf, erf, 1.11},
    {"sin", ours_sin, sin, 1.61},
    {"cos", ours_cos, cos, 1.61},
};

static uint32_t stride = 4099;

/* Error of y as an approximation of the exact z, in units of the last place of a float near z.
 * Special values must be met exactly. */
static double ulps(float y, double z)
{
    if (isnan(z)) return isnan(y) ? 0 : INFINITY;
    if (isinf((float)z) || z == 0) return fmath_bits(y) == fmath_bits((float)z) ? 0 : INFINITY;
    if (isnan(y) || isinf(y)) return INFINITY;
    int e;
    frexp(z, &e);
    return fabs(y - z) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static void every_function_stays_within_its_error_bound(void **state)
{
    size_t wrong = 0;
    (void)state;
    for (size_t i = 0; i < N_ELEM(FNS); i++) {
        double worst = 0;
        float at = 0;
        for (uint64_t b = 0; b <= UINT32_MAX; b += stride) {
            float x = fmath_of_bits((int32_t)(uint32_t)b);
            double u = ulps(FNS[i].ours(x), FNS[i].exact(x));
            if (u > worst) worst = u, at = x;
        }
        print_message("%s: %.3f ulp, worst at %a\n", FNS[i].name, worst, (double)at);
        wrong += worst > FNS[i].max_ulp;
    }
    assert_int_equal(wrong, 0);
}

/* Around the seams: where a branch, a clamp, the denormals or the far reduction begin. */
static void neighbours_of_every_seam_stay_within_the_bound(void **state)
{
    (void)state;
    static const float SEAMS[] = {0.0f,     0.55f,       0.93f,      1.0f,       2.0f / 3,
                                  4.0f / 3, 4.0f,        88.72284f,  89.0f,      103.97208f,
                                  104.0f,   87.33655f,   0x1p-126f,  0x1p16f,    0x1p22f,
                                  0x1p127f, 0.78539819f, 1.5707964f, 3.1415927f, INFINITY};
    for (size_t i = 0; i < N_ELEM(FNS); i++)
        for (size_t j = 0; j < N_ELEM(SEAMS); j++)
            for (int32_t d = -3000; d <= 3000; d++) {
                float x = fmath_of_bits(fmath_iadd(fmath_bits(SEAMS[j]), d));
                for (int sign = 0; sign < 2; sign++, x = -x)
                    if (ulps(FNS[i].ours(x), FNS[i].exact(x)) > FNS[i].max_ulp)
                        fail_msg("%s(%a) is %a", FNS[i].name, (double)x, (double)FNS[i].ours(x));
            }
}

static void assert_bits(float got, float want)
{
    assert_int_equal(fmath_bits(got), fmath_bits(want));
}

static void special_values_are_exact(void **state)
{
    (void)state;
    assert_bits(fmath_exp(0.0f), 1.0f);
    assert_bits(fmath_exp(-0.0f), 1.0f);
    assert_bits(fmath_exp(-INFINITY), 0.0f);
    assert_bits(fmath_exp(INFINITY), INFINITY);
    assert_bits(fmath_log(1.0f), 0.0f);
    assert_bits(fmath_log(-0.0f), -INFINITY);
    assert_true(isnan(fmath_log(-0x1p-149f)));
    assert_bits(fmath_tanh(-0.0f), -0.0f);
    assert_bits(fmath_tanh(-INFINITY), -1.0f);
    assert_bits(fmath_tanh(0x1p-149f), 0x1p-149f);
    assert_bits(fmath_erf(-0.0f), -0.0f);
    assert_bits(fmath_erf(INFINITY), 1.0f);
    assert_bits(fmath_sigmoid(-INFINITY), 0.0f);
    assert_bits(fmath_sigmoid(INFINITY), 1.0f);
    assert_bits(fmath_sigmoid(0.0f), 0.5f);
    assert_bits(fmath_sin(-0.0f), -0.0f);
    assert_bits(fmath_cos(0.0f), 1.0f);
    for (size_t i = 0; i < N_ELEM(FNS); i++) assert_true(isnan(FNS[i].ours(NAN)));
    assert_true(isnan(fmath_sin(INFINITY)) && isnan(fmath_cos(-INFINITY)));
}

/* Pairs with |y log x| up to 104, x near 1 in a third of them, and a third of any floats at all. */
static void pow_stays_within_its_error_bound(void **state)
{
    (void)state;
    uint64_t s = 88172645463325252u;
    double worst = 0;
    for (int64_t i = 0; i < (stride == 1 ? 100000000 : 1000000); i++) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        float x = fmath_of_bits((int32_t)(uint32_t)s),
              y = fmath_of_bits((int32_t)(uint32_t)(s >> 32));
        double part = (double)(int32_t)(uint32_t)(s >> 32) / 2147483648.0 * 104;
        if (i % 3 == 0) x = fabsf(x), y = (float)(part / log(x));
        if (i % 3 == 1) x = 1 + (float)(int32_t)(uint32_t)s / 4e9f, y = (float)(part / log(x));
        double u = ulps(fmath_pow(x, y), pow(x, y));
        if (u > worst) worst = u;
        if (u > 1.21) fail_msg("pow(%a, %a) is %a", (double)x, (double)y, (double)fmath_pow(x, y));
    }
    print_message("pow: %.3f ulp\n", worst);
}

static void pow_of_special_operands_is_c_pow(void **state)
{
    (void)state;
    static const float S[] = {0,           -0.0f,       1,     -1,          INFINITY,
                              -INFINITY,   NAN,         2,     -2,          3,
                              -3,          0.5f,        -0.5f, 0x1p-149f,   0x1p24f,
                              0x1p24f - 1, 0x1p127f,    -3.5f, 0x1p23f + 1, 0x1p22f + 0.5f,
                              -0x1p-149f,  -0x1p23f - 1};
    for (size_t i = 0; i < N_ELEM(S); i++)
        for (size_t j = 0; j < N_ELEM(S); j++)
            if (ulps(fmath_pow(S[i], S[j]), pow(S[i], S[j])) > 1.21)
                fail_msg("pow(%a, %a) is %a", (double)S[i], (double)S[j],
                         (double)fmath_pow(S[i], S[j]));
}

static void monotone_where_sampling_and_softmax_rely_on_it(void **state)
{
    (void)state;
    float before = fmath_exp(-104.0f);
    for (float x = -104.0f; x < 88.7f; x += 0x1p-9f) {
        float y = fmath_exp(x);
        assert_true(y >= before);
        before = y;
    }
}

/* FNV-1a over result bits, NaN as one value: a different compiler, flag or machine that changes one
 * bit of one result changes it. */
static void results_have_the_committed_bits(void **state)
{
    (void)state;
    static const uint32_t WANT[] = {0xb37ffe02, 0x0759c334, 0x3e612aff, 0x6f00ab9e, 0x4bef7462,
                                    0x48984811, 0xf19e465e, 0x1249ea05, 0xaed7ec2c, 0x47e7d897};
    size_t wrong = 0;
    for (size_t i = 0; i < N_ELEM(FNS); i++) {
        uint32_t h = 2166136261u;
        for (uint64_t b = 0; b <= UINT32_MAX; b += 4099) {
            float y = FNS[i].ours(fmath_of_bits((int32_t)(uint32_t)b));
            uint32_t k = isnan(y) ? 0x7fc00000u : (uint32_t)fmath_bits(y);
            for (int s = 0; s < 32; s += 8) h = (h ^ (k >> s & 0xff)) * 16777619u;
        }
        if (h != WANT[i]) print_error("%s: digest is 0x%08x\n", FNS[i].name, h);
        wrong += h != WANT[i];
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "full")) stride = 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_stays_within_its_error_bound),
        cmocka_unit_test(neighbours_of_every_seam_stay_within_the_bound),
        cmocka_unit_test(special_values_are_exact),
        cmocka_unit_test(pow_stays_within_its_error_bound),
        cmocka_unit_test(pow_of_special_operands_is_c_pow),
        cmocka_unit_test(monotone_where_sampling_and_softmax_rely_on_it),
        cmocka_unit_test(results_have_the_committed_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
