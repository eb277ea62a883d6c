/* Reductions, scans and softmax: the order of additions recomputed from docs/numerics.md, every
 * axis subset against loops, types. */
#include <math.h>
#include "ingot/device.h"
#include "support/arrays.h"
#include "support/test.h"
#include "golden/array/mlx.h"

/* The definition: blocks of 4096; in a block 64 partial sums by index mod 64, ascending, from
 * +0; folded 32-16-8-4-2-1; blocks added ascending. Products by fma. y NULL: ones, by addition. */
static float sum_in_order(const float *x, const float *y, size_t n)
{
    float total = 0;
    for (size_t block = 0; block < n; block += 4096) {
        float partial[64] = {0};
        for (size_t i = block; i < n && i < block + 4096; i++)
            partial[i % 64] = y ? fmaf(x[i], y[i], partial[i % 64]) : partial[i % 64] + x[i];
        for (int half = 32; half >= 1; half /= 2)
            for (int i = 0; i < half; i++) partial[i] += partial[i + half];
        total += partial[0];
    }
    return total;
}

static float *values(ig_array a)
{
    float *v = malloc((size_t)(ig_size(a) + 1) * sizeof *v);
    assert_ok(ig_copy_out(a, IG_F32, v, ig_size(a)));
    return v;
}

static float item(ig_array a)
{
    double v = 0;
    assert_ok(ig_item_f64(a, &v));
    return (float)v;
}

static void on_every_isa(void (*check)(void))
{
    const char *first = ig_device_isa();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        check();
    }
    assert_ok(ig_device_set_isa(first));
}

static void check_sums(void)
{
    static const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 127, 1000, 4095, 4096, 4097, 8200, 20000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        ig_array a = arrays_spread(IG_F32, &sizes[k], 1, -1000, 1001, 3);
        float *x = values(a), want = sum_in_order(x, NULL, (size_t)sizes[k]);
        float got = item(ig_sum(a, NO_AXES, false));
        if (memcmp(&got, &want, 4) != 0)
            fail_msg("%s: sum of %lld: %a, not %a", ig_device_isa(), (long long)sizes[k],
                     (double)got, (double)want);
        if (sizes[k])
            assert_float_equal(item(ig_mean(a, NO_AXES, false)), want / (float)sizes[k], 0);
        free(x);
    }
}

TEST(a_sum_is_added_in_the_order_of_the_contract) { on_every_isa(check_sums); }

/* The same rows reached by strides must give the same bits: the order depends on shape and axes
 * only. */
static void check_strided_sums(void)
{
    ig_array rows = arrays_spread(IG_F32, DIMS(3, 5000), -1000, 1001, 5);
    ig_array columns = ig_contiguous(ig_transpose(rows, NO_AXES));
    float *x = values(rows);
    for (int i = 0; i < 3; i++) {
        float want = sum_in_order(x + i * 5000, NULL, 5000);
        ig_array pick_row = ig_slice(ig_sum(rows, AXES(1), false), DIMS(i), DIMS(i + 1), DIMS(1));
        ig_array pick_column =
            ig_slice(ig_sum(columns, AXES(0), false), DIMS(i), DIMS(i + 1), DIMS(1));
        ig_array view = ig_slice(ig_sum(ig_transpose(columns, NO_AXES), AXES(1), false), DIMS(i),
                                 DIMS(i + 1), DIMS(1));
        float got[3] = {item(pick_row), item(pick_column), item(view)};
        for (int k = 0; k < 3; k++)
            if (memcmp(&got[k], &want, 4) != 0)
                fail_msg("%s: way %d, row %d", ig_device_isa(), k, i);
    }
    free(x);
}

TEST(strides_do_not_change_the_bits_of_a_sum) { on_every_isa(check_strided_sums); }

TEST(sums_do_not_depend_on_the_number_of_threads)
{
    int n = ig_device_threads();
    ig_array a = arrays_spread(IG_F32, DIMS(40, 3, 9000), -1000, 1001, 2), y[3];
    for (int t = 0; t < 3; t++) {
        assert_ok(ig_device_set_threads(1 + t));
        y[t] = ig_sum(a, AXES(0, 2), false);
        assert_ok(ig_eval(&y[t], 1));
        arrays_same_bits(y[0], y[t], "sum over axes 0 and 2");
    }
    assert_ok(ig_device_set_threads(n));
}

/* --- every reduction over every subset of axes, against loops in double precision */

typedef ig_array (*reduce_fn)(ig_array a, const int *axes, int n_axes, bool keepdims);
typedef struct reduction {
    const char *name;
    reduce_fn fn;
    double first;
    double (*add)(double so_far, double x);
    double (*finish)(double total, double n);
} reduction;

static double add_sum(double s, double x) { return s + x; }
static double add_prod(double s, double x) { return s * x; }
static double add_max(double s, double x) { return x > s ? x : s; }
static double add_min(double s, double x) { return x < s ? x : s; }
static double add_all(double s, double x) { return s != 0 && x != 0; }
static double add_any(double s, double x) { return s != 0 || x != 0; }
static double add_exp(double s, double x) { return s + exp(x); }
static double same(double t, double n) { return n < 0 ? n : t; }
static double over_n(double t, double n) { return t / n; }
static double logarithm(double t, double n) { return n < 0 ? n : log(t); }

static const reduction reductions[] = {
    {"sum", ig_sum, 0, add_sum, same},        {"prod", ig_prod, 1, add_prod, same},
    {"mean", ig_mean, 0, add_sum, over_n},    {"max", ig_max, -INFINITY, add_max, same},
    {"min", ig_min, INFINITY, add_min, same}, {"all", ig_all, 1, add_all, same},
    {"any", ig_any, 0, add_any, same},        {"logsumexp", ig_logsumexp, 0, add_exp, logarithm},
};

/* Reduces x [2, 3, 4, 5] over the axes whose bits are set; out has room for 120. Returns how
 * many. */
static int reduce_by_loops(const reduction *r, const double *x, unsigned axes, double *out)
{
    static const int dim[4] = {2, 3, 4, 5};
    int n_out = 1, n_in = 1;
    for (int i = 0; i < 4; i++) *(axes >> i & 1 ? &n_in : &n_out) *= dim[i];
    for (int i = 0; i < n_out; i++) out[i] = r->first;
    for (int i = 0; i < 120; i++) {
        int at[4] = {i / 60, i / 20 % 3, i / 5 % 4, i % 5}, o = 0;
        for (int k = 0; k < 4; k++)
            if (!(axes >> k & 1)) o = o * dim[k] + at[k];
        out[o] = r->add(out[o], x[i]);
    }
    for (int i = 0; i < n_out; i++) out[i] = r->finish(out[i], n_in);
    return n_out;
}

static void check_reduction(const reduction *r, ig_array a, unsigned axes, bool keep)
{
    int list[4], n_list = 0;
    double *x = arrays_f64(a), want[120], *got;
    for (int i = 3; i >= 0; i--)
        if (axes >> i & 1) list[n_list++] = i % 2 ? i : i - 4; /* any order, negative too */
    int n = reduce_by_loops(r, x, axes, want);
    ig_array y = r->fn(a, list, n_list, keep);
    assert_int_equal(ig_ndim(y), keep ? 4 : 4 - n_list);
    assert_int_equal(ig_size(y), n);
    got = arrays_f64(y);
    double tol = ig_type(y) == IG_F32   ? 1e-5
                 : ig_type(y) == IG_F64 ? 1e-12
                 : ig_type(y) == IG_F16 ? 2e-3
                                        : 1e-2;
    for (int i = 0; i < n; i++)
        if (fabs(got[i] - want[i]) > tol * (1 + fabs(want[i])))
            fail_msg("%s of %s over %x: element %d is %g, not %g", r->name,
                     ig_dtype_name(ig_type(a)), axes, i, got[i], want[i]);
    free(x);
    free(got);
}

TEST(every_reduction_over_every_set_of_axes_equals_a_loop)
{
    static const ig_dtype types[] = {IG_F32, IG_F64, IG_F16, IG_BF16,
                                     IG_I32, IG_U8,  IG_I64, IG_BOOL};
    for (size_t k = 0; k < sizeof reductions / sizeof reductions[0]; k++)
        for (unsigned axes = 1; axes < 16; axes++) {
            ig_scope *s = ig_scope_open();
            const reduction *r = &reductions[k];
            ig_dtype t = types[(axes + k) % 8];
            bool product = r->fn == ig_prod;
            ig_array a = arrays_spread(t, DIMS(2, 3, 4, 5),
                                       product      ? 0.9
                                       : t == IG_U8 ? 0
                                                    : -2,
                                       product ? 1.1 : 2.2, axes);
            ig_array permuted =
                ig_transpose(ig_contiguous(ig_transpose(a, AXES(2, 0, 3, 1))), AXES(1, 3, 0, 2));
            check_reduction(r, a, axes, axes & 1);
            check_reduction(r, permuted, axes, false);
            assert_ok(ig_scope_close(s));
        }
}

TEST(result_types_are_those_of_mlx)
{
    static const struct {
        const char *name;
        reduce_fn fn;
    } fns[] = {{"sum", ig_sum}, {"prod", ig_prod}, {"mean", ig_mean}, {"max", ig_max},
               {"min", ig_min}, {"all", ig_all},   {"any", ig_any},   {"logsumexp", ig_logsumexp}};
    for (size_t i = 0; i < sizeof mlx_axis_rules / sizeof mlx_axis_rules[0]; i++)
        for (int t = 0; t < IG_C64; t++) {
            const mlx_rule *m = &mlx_axis_rules[i];
            ig_array x = ig_full(DIMS(3), 1, (ig_dtype)t), y = {0};
            for (size_t k = 0; k < sizeof fns / sizeof fns[0]; k++)
                if (strcmp(fns[k].name, m->op) == 0) y = fns[k].fn(x, AXES(0), false);
            if (strcmp(m->op, "argmax") == 0) y = ig_argmax(x, 0, false);
            if (strcmp(m->op, "argmin") == 0) y = ig_argmin(x, 0, false);
            if (strcmp(m->op, "softmax") == 0) y = ig_softmax(x, 0);
            if (strcmp(m->op, "cumsum") == 0) y = ig_cumsum(x, 0, false, true);
            if (strcmp(m->op, "sort") == 0) y = ig_sort(x, 0);
            if (strcmp(m->op, "argsort") == 0) y = ig_argsort(x, 0);
            if (ig_is_empty(y)) fail_msg("%s: %s", m->op, ig_error_message());
            if ((int)ig_type(y) != m->result[t])
                fail_msg("%s of %s", m->op, ig_dtype_name((ig_dtype)t));
        }
}

TEST(nan_wins_a_maximum_and_never_an_argmax_unless_alone)
{
    ig_array a = SHAPED(F32(1, NAN, 3, NAN, NAN, NAN), 2, 3);
    assert_elements(ig_max(a, AXES(1), false), NAN, NAN);
    assert_elements(ig_min(a, AXES(1), false), NAN, NAN);
    assert_elements(ig_argmax(a, 1, false), 2, 0);
    assert_elements(ig_argmin(a, 1, false), 0, 0);
}

TEST(argmax_takes_the_lowest_index_of_equal_values)
{
    assert_elements(ig_argmax(F32(1, 5, 2, 5, 5), 0, false), 1);
    assert_elements(ig_argmin(I32(3, -1, 7, -1), -1, true), 1);
    assert_dims(ig_argmin(I32(3, -1, 7, -1), -1, true), 1);
    ig_array long_row = ig_full(DIMS(3, 5000), 2, IG_F32);
    assert_elements(ig_argmax(long_row, 1, false), 0, 0, 0);
    assert_elements(ig_argmax(ig_transpose(SHAPED(I32(1, 9, 9, 2, 3, 9), 3, 2), NO_AXES), 1, false),
                    1, 0);
}

TEST(reducing_nothing_gives_the_neutral_element_or_an_error)
{
    ig_array none = ig_full(DIMS(2, 0), 1, IG_F32);
    assert_elements(ig_sum(none, AXES(1), false), 0, 0);
    assert_elements(ig_prod(none, AXES(1), false), 1, 1);
    assert_elements(ig_all(none, AXES(1), false), 1, 1);
    assert_elements(ig_any(none, AXES(1), false), 0, 0);
    assert_elements(ig_mean(none, AXES(1), false), NAN, NAN);
    assert_elements(ig_logsumexp(none, AXES(1), false), -INFINITY, -INFINITY);
    assert_dims(ig_sum(none, AXES(0), false), 0);
    assert_refused(ig_max(none, AXES(1), false), IG_ESHAPE,
                   "max: argument a is float32 [2, 0]: there is no largest");
    assert_refused(ig_argmax(none, 1, false), IG_ESHAPE,
                   "argmax: argument a is float32 [2, 0]: the axis must have");
}

TEST(small_integers_are_summed_wide)
{
    assert_elements(ig_sum(ig_full(DIMS(1000), 200, IG_U8), NO_AXES, false), 200000);
    assert_elements(ig_sum(ig_full(DIMS(1000), 1, IG_BOOL), NO_AXES, false), 1000);
    assert_elements(ig_sum(ig_full(DIMS(3), 4e18, IG_U64), NO_AXES, false), 12e18);
}

/* --- softmax, logsumexp, cumsum */

TEST(softmax_rows_sum_to_one_along_any_axis)
{
    ig_array a = arrays_spread(IG_F32, DIMS(3, 257, 4), -8, 8, 1);
    for (int axis = -3; axis < 3; axis++) {
        ig_array sums = ig_sum(ig_softmax(a, axis), (const int[]){axis}, 1, false);
        double *v = arrays_f64(sums);
        for (int64_t i = 0; i < ig_size(sums); i++) assert_true(fabs(v[i] - 1) < 1e-5);
        free(v);
    }
}

TEST(softmax_equals_its_definition)
{
    ig_array a = arrays_spread(IG_F32, DIMS(4, 100), -8, 8, 1), y = ig_softmax(a, -1);
    double *x = arrays_f64(a), *got = arrays_f64(y);
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        for (int j = 0; j < 100; j++) sum += exp(x[i * 100 + j]);
        for (int j = 0; j < 100; j++)
            assert_true(fabs(got[i * 100 + j] / (exp(x[i * 100 + j]) / sum) - 1) < 2e-6);
    }
    free(x);
    free(got);
}

TEST(a_masked_row_is_zero_not_nan)
{
    assert_elements(ig_softmax(ig_full(DIMS(1, 3), -INFINITY, IG_F32), -1), 0, 0, 0);
    assert_elements(ig_softmax(F32(0, -INFINITY, 0), 0), 0.5, 0, 0.5);
    assert_elements(ig_logsumexp(ig_full(DIMS(3), -INFINITY, IG_F32), NO_AXES, false), -INFINITY);
    assert_elements(ig_logsumexp(F32(1000, 1000), NO_AXES, false),
                    (double)(1000 + 0.693147180559945f));
}

TEST(a_scalar_has_no_axis_to_work_along)
{
    assert_refused(ig_softmax(ig_scalar_f32(1), -1), IG_ESHAPE,
                   "softmax: argument a is float32 []: a scalar has no axis");
    assert_refused(ig_sort(ig_scalar_f32(1), 0), IG_ESHAPE, "sort: ");
    assert_refused(ig_cumsum(ig_scalar_f32(1), 0, false, true), IG_ESHAPE, "cumsum: ");
    assert_refused(ig_sum(F32(1), AXES(1), false), IG_EINVAL,
                   "sum: axis 1 is out of range for float32 [1]");
    assert_refused(ig_sum(SHAPED(F32(1), 1, 1), AXES(0, -2), false), IG_EINVAL,
                   "sum: axis 0 is listed twice");
    assert_elements(ig_sum(ig_scalar_f32(3), NO_AXES, false), 3);
}

TEST(cumsum_runs_either_way_with_or_without_itself)
{
    ig_array a = SHAPED(I32(1, 2, 3, 4, 5, 6), 2, 3);
    assert_elements(ig_cumsum(a, 1, false, true), 1, 3, 6, 4, 9, 15);
    assert_elements(ig_cumsum(a, 1, true, true), 6, 5, 3, 15, 11, 6);
    assert_elements(ig_cumsum(a, 1, false, false), 0, 1, 3, 0, 4, 9);
    assert_elements(ig_cumsum(a, 1, true, false), 5, 3, 0, 11, 6, 0);
    assert_elements(ig_cumsum(a, 0, false, true), 1, 2, 3, 5, 7, 9);
    assert_elements(ig_cumsum(ig_full(DIMS(3), 1, IG_BOOL), 0, false, true), 1, 2, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(a_sum_is_added_in_the_order_of_the_contract),
        ARRAY_CASE(strides_do_not_change_the_bits_of_a_sum),
        ARRAY_CASE(sums_do_not_depend_on_the_number_of_threads),
        ARRAY_CASE(every_reduction_over_every_set_of_axes_equals_a_loop),
        ARRAY_CASE(result_types_are_those_of_mlx),
        ARRAY_CASE(nan_wins_a_maximum_and_never_an_argmax_unless_alone),
        ARRAY_CASE(argmax_takes_the_lowest_index_of_equal_values),
        ARRAY_CASE(reducing_nothing_gives_the_neutral_element_or_an_error),
        ARRAY_CASE(small_integers_are_summed_wide),
        ARRAY_CASE(softmax_rows_sum_to_one_along_any_axis),
        ARRAY_CASE(softmax_equals_its_definition),
        ARRAY_CASE(a_masked_row_is_zero_not_nan),
        ARRAY_CASE(a_scalar_has_no_axis_to_work_along),
        ARRAY_CASE(cumsum_runs_either_way_with_or_without_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
