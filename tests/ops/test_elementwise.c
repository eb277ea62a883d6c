/* Every elementwise row of ops.def: the result's shape and type, its values against the row's
 * own expression in double precision, for every dtype (pair), dense, strided, broadcast, scalar
 * and empty inputs; every instruction set against ref, bit for bit; fused programs against one
 * operation at a time, bit for bit. */
#include <math.h>
#include "array/core/dtype.h"
#include "array/core/node.h"
#include "ingot/device.h"
#include "support/arrays.h"
#include "support/test.h"
#include "golden/array/mlx.h"

/* --- the rows */

static double max(double a, double b) { return a != a || b != b ? (double)NAN : a > b ? a : b; }
static double min(double a, double b) { return a != a || b != b ? (double)NAN : a < b ? a : b; }

/* What a row's expression is evaluated in. */
typedef long long IN_bitwise;
typedef double IN_leaf, IN_create, IN_unary, IN_unary_float, IN_unary_bool, IN_cast, IN_binary,
    IN_binary_float, IN_compare, IN_where, IN_clip, IN_view, IN_copy, IN_concatenate, IN_reduce,
    IN_reduce_float, IN_reduce_bool, IN_arg_reduce, IN_softmax, IN_scan, IN_sort, IN_topk, IN_take,
    IN_take_along, IN_put, IN_matmul, IN_quantize, IN_dequantize, IN_qmm, IN_rows8, IN_qmm8,
    IN_take_q, IN_random, IN_random_split, IN_categorical, IN_norm, IN_rope, IN_sdpa,
    IN_paged_write, IN_paged_attention;
#define EW1(...) __VA_ARGS__
#define EW2(...) __VA_ARGS__
#define EW3(...) __VA_ARGS__
#define NONE NAN
#define UNUSED __attribute__((unused))
#define OP(name, rule, build, args, expr, ...)                                    \
    static double ref_##name(double a_, double b_, double c_)                     \
    {                                                                             \
        UNUSED IN_##rule a = (IN_##rule)a_, b = (IN_##rule)b_, c = (IN_##rule)c_; \
        return (double)(expr);                                                    \
    }
#include "array/ops.def"
#undef OP
#undef NONE

static double clip_or_cast(double a, double b, double c) { return min(max(a, b), c); }

typedef struct row {
    const char *name, *rule;
    op_code op;
    int n_in;
    double lo, hi; /* domain of the inputs */
    double (*ref)(double a, double b, double c);
} row;

#define REAL(lo, hi) lo, hi
#define INTS(lo, hi) lo, hi + 1
#define BOOLS 0, 2
#define NONE_SAMPLE 0, 0
#define OP(name, rule, build, args, expr, sample, ...) \
    {#name, #rule, OP_##name, 0, sample, ref_##name},
static row rows[] = {
#include "array/ops.def"
};
#undef OP
static int n_rows;

/* Keeps the elementwise rows. */
static int find_rows(void **state)
{
    (void)state;
    const char *const rules[] = {"unary",        "unary_float", "unary_bool", "cast",  "binary",
                                 "binary_float", "compare",     "bitwise",    "where", "clip"};
    for (size_t i = 0; i < N_ELEM(rows); i++)
        for (size_t k = 0; k < N_ELEM(rules); k++)
            if (strcmp(rows[i].rule, rules[k]) == 0) {
                row r = rows[i];
                r.n_in = (int)strlen(op_table[r.op].in_kinds);
                if (r.op == OP_astype || r.op == OP_clip) r.ref = clip_or_cast;
                rows[n_rows++] = r;
            }
    assert_true(n_rows > 40);
    return 0;
}

static bool in_family(const row *r, const char *rule) { return strcmp(r->rule, rule) == 0; }

static ig_array apply(const row *r, const ig_array *in, ig_dtype to)
{
    op_call c = {.op = r->op};
    for (int k = 0; k < r->n_in; k++) call_in(&c, in[k]);
    if (r->op == OP_astype) call_int(&c, to);
    return node_apply(&c);
}

/* --- expectations, independent of the rules under test */

static bool is_float(ig_dtype t) { return t >= IG_F16 && t <= IG_F64; }

static ig_dtype common_type(const row *r, const ig_dtype *in)
{
    int first = r->op == OP_where;
    ig_dtype t = in[first];
    for (int k = first + 1; k < r->n_in; k++) t = (ig_dtype)mlx_promotion[t * IG_N_DTYPES + in[k]];
    return t;
}

/* The result's dtype, or -1 where the operation must refuse. */
static int result_type(const row *r, const ig_dtype *in, ig_dtype to)
{
    ig_dtype t = common_type(r, in);
    for (int k = 0; k < r->n_in; k++)
        if (in[k] == IG_C64) return -1;
    if (r->op == OP_astype) return to == IG_C64 ? -1 : (int)to;
    if (in_family(r, "unary_bool") || in_family(r, "compare")) return IG_BOOL;
    if (in_family(r, "unary_float") || in_family(r, "binary_float"))
        return is_float(t) ? (int)t : IG_F32;
    if (r->op == OP_negative && t == IG_BOOL) return -1;
    if (!in_family(r, "bitwise")) return t;
    if (is_float(t)) return -1;
    bool shift = r->op == OP_left_shift || r->op == OP_right_shift;
    return shift && t == IG_BOOL ? IG_U8 : (int)t;
}

/* x rounded to p bits of significand with the smallest exponent emin (of the last subnormal
 * bit), to nearest even. */
static double round_to(double x, int p, int emin, double largest)
{
    int e;
    if (x == 0 || x != x || isinf(x)) return x;
    frexp(x, &e);
    double unit = ldexp(1, e - p > emin ? e - p : emin), y = rint(x / unit) * unit;
    return fabs(y) > largest ? copysign(INFINITY, x) : y;
}

static double round_to_type(double x, ig_dtype t)
{
    if (t == IG_F32) return (double)(float)x;
    if (t == IG_F16) return round_to((double)(float)x, 11, -24, 65504);
    if (t == IG_BF16) return round_to((double)(float)x, 8, -133, 0x1.fep127);
    return x;
}

/* What an integer result keeps of an exact value. */
static double wrap(double x, ig_dtype t)
{
    int bits = (int)ig_dtype_size(t) * 8;
    if (t == IG_BOOL) return x != 0;
    double n = ldexp(1, bits), low = dtype_is_signed_int(t) ? -n / 2 : 0;
    return x - n * floor((x - low) / n);
}

/* Operations whose float result is the correctly rounded exact one. */
static bool is_exact(op_code op)
{
    switch (op) {
    case OP_negative:
    case OP_abs:
    case OP_sign:
    case OP_square:
    case OP_sqrt:
    case OP_reciprocal:
    case OP_floor:
    case OP_ceil:
    case OP_rint:
    case OP_astype:
    case OP_add:
    case OP_subtract:
    case OP_multiply:
    case OP_divide:
    case OP_maximum:
    case OP_minimum:
    case OP_where:
    case OP_clip: return true;
    default: return false;
    }
}

static double want_of(const row *r, ig_dtype out, ig_dtype common, const double *x)
{
    bool by_zero =
        (r->op == OP_floor_divide || r->op == OP_remainder) && !is_float(common) && x[1] == 0;
    double y = by_zero ? 0 : r->ref(x[0], x[1], x[2]);
    if (r->op == OP_astype && !is_float(out)) { /* truncates, saturates */
        int bits = (int)ig_dtype_size(out) * 8 - dtype_is_signed_int(out);
        if (out == IG_BOOL) return x[0] != 0;
        double top = ldexp(1, bits) - 1, low = dtype_is_signed_int(out) ? -top - 1 : 0;
        return is_float(common) ? max(low, min(top, trunc(y))) : wrap(y, out);
    }
    return is_float(out) ? round_to_type(y, out) : wrap(y, out);
}

static bool close_enough(const row *r, ig_dtype out, double got, double want)
{
    if (got == want || (got != got && want != want)) return true;
    if (!is_float(out) || is_exact(r->op)) return false;
    double rel = out == IG_F64   ? 0x1p-48
                 : out == IG_F32 ? 0x1p-20
                 : out == IG_F16 ? 0x1p-10
                                 : 0x1p-7;
    double tiny = out == IG_F16   ? 0x1p-24
                  : out == IG_F64 ? 0x1p-48
                                  : 0x1p-22; /* beside a zero of sin, cos, log */
    return fabs(got - want) <= rel * fabs(want) + tiny;
}

/* --- inputs */

#define N_LAYOUTS 8
static const int64_t result_dims[2] = {5, 7};

/* An array that broadcasts to [5, 7], laid out in one of several ways. */
static ig_array make_input(ig_dtype t, int how, double lo, double hi, uint32_t seed)
{
    switch (how) {
    case 0: return arrays_spread(t, DIMS(5, 7), lo, hi, seed);
    case 1: return ig_transpose(arrays_spread(t, DIMS(7, 5), lo, hi, seed), NO_AXES);
    case 2:
        return ig_slice(arrays_spread(t, DIMS(11, 15), lo, hi, seed), DIMS(9, 13), DIMS(-12, -16),
                        DIMS(-2, -2));
    case 3: return arrays_spread(t, DIMS(7), lo, hi, seed);
    case 4: return arrays_spread(t, DIMS(5, 1), lo, hi, seed);
    case 5: return arrays_spread(t, NULL, 0, lo, hi, seed);
    case 6: return ig_broadcast_to(arrays_spread(t, DIMS(5, 1), lo, hi, seed), DIMS(5, 7));
    default:
        return ig_slice(arrays_spread(t, DIMS(1, 9), lo, hi, seed), DIMS(0, 1), DIMS(1, 8),
                        DIMS(1, 1));
    }
}

static double low_of(const row *r, ig_dtype t)
{
    bool negative = dtype_is_signed_int(t) || is_float(t);
    return r->lo < 0 && !negative ? 0 : r->lo;
}

static void compare(const row *r, ig_array y, const ig_array *in, ig_dtype out, ig_dtype common)
{
    double *x[3] = {NULL, NULL, NULL}, *got = arrays_f64(y);
    for (int k = 0; k < r->n_in; k++) x[k] = arrays_f64(ig_broadcast_to(in[k], result_dims, 2));
    for (int i = 0; i < 35; i++) {
        double v[3] = {x[0][i], x[1] ? x[1][i] : -INFINITY, x[2] ? x[2][i] : INFINITY};
        double want = want_of(r, out, common, v);
        if (!close_enough(r, out, got[i], want))
            fail_msg("%s(%.9g, %.9g, %.9g) of %s to %s is %.17g, not %.17g", r->name, v[0], v[1],
                     v[2], ig_dtype_name(common), ig_dtype_name(out), got[i], want);
    }
    for (int k = 0; k < 3; k++) free(x[k]);
    free(got);
}

static void check_row(const row *r, const ig_dtype *types, ig_dtype to, int how)
{
    ig_scope *s = ig_scope_open();
    ig_array in[3] = {{0}};
    int want = result_type(r, types, to);
    for (int k = 0; k < r->n_in; k++) {
        ig_dtype t = types[k] == IG_C64 ? IG_F32 : types[k];
        in[k] = make_input(t, k == 0 ? how % 3 : (how / (k * 3)) % N_LAYOUTS, low_of(r, t), r->hi,
                           (uint32_t)(how + k));
        if (types[k] == IG_C64) in[k] = ig_full(DIMS(5, 7), 1, IG_C64);
    }
    ig_array y = apply(r, in, to);
    if (want < 0) {
        assert_refused(y, IG_EDTYPE, r->name);
    } else {
        if (ig_is_empty(y)) fail_msg("%s: %s", r->name, ig_error_message());
        if ((int)ig_type(y) != want)
            fail_msg("%s of %s and %s gives %s", r->name, ig_dtype_name(types[0]),
                     ig_dtype_name(types[1]), ig_dtype_name(ig_type(y)));
        arrays_dims(y, result_dims, 2);
        compare(r, y, in, (ig_dtype)want, common_type(r, types));
    }
    assert_ok(ig_scope_close(s));
}

TEST(values_types_and_shapes_follow_the_row_for_every_dtype_and_layout)
{
    int how = 0;
    for (int i = 0; i < n_rows; i++)
        for (int a = 0; a < IG_N_DTYPES; a++)
            for (int b = 0; b < IG_N_DTYPES; b++) {
                const row *r = &rows[i];
                ig_dtype types[3] = {(ig_dtype)a, (ig_dtype)b,
                                     (ig_dtype)((b + 5) % (IG_N_DTYPES - 1))};
                if (r->op == OP_where)
                    types[0] = IG_BOOL, types[1] = (ig_dtype)a, types[2] = (ig_dtype)b;
                if (r->n_in == 1 && r->op != OP_astype && b != a) continue;
                check_row(r, types, (ig_dtype)b, how++);
            }
}

TEST(result_types_are_those_of_mlx)
{
    const struct {
        const mlx_rule *rules;
        size_t n;
        int n_in;
    } sets[] = {{mlx_unary_rules, N_ELEM(mlx_unary_rules), 1},
                {mlx_binary_rules, N_ELEM(mlx_binary_rules), 2}};
    for (size_t s = 0; s < N_ELEM(sets); s++)
        for (size_t i = 0; i < sets[s].n; i++)
            for (int t = 0; t < IG_C64; t++) {
                const mlx_rule *m = &sets[s].rules[i];
                int k = 0;
                while (k < n_rows && strcmp(rows[k].name, m->op) != 0) k++;
                assert_true(k < n_rows);
                ig_array x = ig_full(DIMS(2), 1, (ig_dtype)t),
                         y = apply(&rows[k], (ig_array[]){x, x}, IG_BOOL);
                int got = ig_is_empty(y) ? -1 : (int)ig_type(y);
                ig_error_clear();
                if (got != m->result[t])
                    fail_msg("%s of %s: %d here, %d in MLX", m->op, ig_dtype_name((ig_dtype)t), got,
                             m->result[t]);
            }
}

TEST(empty_arrays_give_empty_results)
{
    for (int i = 0; i < n_rows; i++) {
        ig_array x = ig_full(DIMS(0, 7), 1, in_family(&rows[i], "bitwise") ? IG_I32 : IG_F32);
        ig_array y = apply(&rows[i], (ig_array[]){x, x, x}, IG_I32);
        assert_dims(y, 0, 7);
        assert_ok(ig_eval(&y, 1));
    }
}

TEST(shapes_that_do_not_broadcast_are_refused_by_name)
{
    char want[128];
    for (int i = 0; i < n_rows; i++) {
        const row *r = &rows[i];
        ig_dtype t = in_family(r, "bitwise") ? IG_I32 : IG_F32;
        ig_array in[3] = {ig_full(DIMS(2, 3), 1, t), ig_full(DIMS(4), 1, t),
                          ig_full(DIMS(1), 1, t)};
        if (r->n_in == 1) continue;
        snprintf(want, sizeof want, "%s: %s %s [2, 3] and %s %s [4]", r->name, op_in_name(r->op, 0),
                 ig_dtype_name(t), op_in_name(r->op, 1), ig_dtype_name(t));
        assert_refused(apply(r, in, t), IG_ESHAPE, want);
    }
}

TEST(an_empty_input_gives_an_empty_output_and_no_failure)
{
    for (int i = 0; i < n_rows; i++) {
        ig_array in[3] = {{0}, ig_scalar_f32(1), ig_scalar_f32(2)};
        assert_true(ig_is_empty(apply(&rows[i], in, IG_F32)));
        assert_int_equal(ig_error_code(), IG_OK);
    }
}

/* --- bits: instruction sets, fusion */

static ig_array mixed(ig_dtype t, double lo, double hi, uint32_t seed)
{
    return arrays_spread(t, DIMS(3, 1037), lo, hi, seed); /* whole vectors and a tail */
}

TEST(every_instruction_set_gives_the_bits_of_ref)
{
    static const ig_dtype types[] = {IG_F32, IG_BF16, IG_F16, IG_I32, IG_U8, IG_F64};
    const char *first = ig_device_isa();
    for (int i = 0; i < n_rows; i++)
        for (size_t k = 0; k < N_ELEM(types); k++) {
            const row *r = &rows[i];
            ig_array in[3], y[8];
            int n = 0;
            if (in_family(r, "bitwise") && is_float(types[k])) continue;
            for (int j = 0; j < 3; j++)
                in[j] = mixed(types[k], low_of(r, types[k]), r->hi, (uint32_t)j);
            for (const char *const *isa = ig_device_isas(); *isa && n < 8; isa++) {
                assert_ok(ig_device_set_isa(*isa));
                y[n] = apply(r, in, IG_BF16);
                assert_ok(ig_eval(&y[n++], 1));
            }
            for (int j = 1; j < n; j++) arrays_same_bits(y[0], y[j], r->name);
        }
    assert_ok(ig_device_set_isa(first));
}

static uint32_t random_state;
static int pick(int n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 16) % (uint32_t)n);
}

/* A random graph of elementwise operations over some inputs; each node evaluated by itself when
 * `each`. */
static ig_array random_graph(uint32_t seed, const ig_array *in, int n_in, bool each)
{
    ig_array v[40];
    int n = n_in;
    random_state = seed;
    memcpy(v, in, (size_t)n_in * sizeof v[0]);
    while (n < 24) {
        const row *r = &rows[pick(n_rows)];
        ig_array args[3] = {v[pick(n)], v[pick(n)], v[n - 1]};
        ig_array y = apply(r, args, (ig_dtype)pick(IG_C64));
        if (ig_is_empty(y)) { /* a dtype that this operation refuses */
            ig_error_clear();
            continue;
        }
        if (each) assert_ok(ig_eval(&y, 1));
        v[n++] = y;
    }
    return v[n - 1];
}

TEST(fused_programs_give_the_bits_of_one_operation_at_a_time)
{
    static const ig_dtype types[] = {IG_F32, IG_BF16, IG_I32, IG_F16, IG_BOOL, IG_F64};
    const char *first = ig_device_isa();
    for (uint32_t seed = 0; seed < 150; seed++) {
        ig_scope *s = ig_scope_open();
        ig_array in[4];
        random_state = seed * 77 + 5;
        for (int k = 0; k < 4; k++)
            in[k] = arrays_spread(types[pick(6)], DIMS(4, 301), -3, 3, seed + (uint32_t)k);
        in[3] = ig_slice(ig_transpose(arrays_spread(IG_F32, DIMS(301, 8), -3, 3, 9), NO_AXES),
                         DIMS(0, 0), DIMS(8, 301), DIMS(2, 1));
        assert_ok(ig_device_set_isa("ref"));
        ig_array want = random_graph(seed, in, 4, true);
        for (const char *const *isa = ig_device_isas(); *isa; isa++) {
            char what[64];
            assert_ok(ig_device_set_isa(*isa));
            snprintf(what, sizeof what, "%s, graph %u", *isa, seed);
            arrays_same_bits(random_graph(seed, in, 4, false), want, what);
        }
        assert_ok(ig_scope_close(s));
    }
    assert_ok(ig_device_set_isa(first));
}

/* --- what the expressions do not say */

TEST(nan_infinity_and_signed_zero_follow_numpy)
{
    ig_array x = F32(NAN, INFINITY, -INFINITY, -0.0f);
    assert_elements(ig_sign(x), NAN, 1, -1, 0);
    assert_elements(ig_maximum(x, ig_scalar_f32(0)), NAN, INFINITY, 0, 0);
    assert_elements(ig_minimum(ig_scalar_f32(0), x), NAN, 0, -INFINITY, 0);
    assert_elements(ig_isfinite(x), 0, 0, 0, 1);
    assert_elements(ig_isnan(x), 1, 0, 0, 0);
    assert_elements(ig_exp(x), NAN, INFINITY, 0, 1);
    assert_elements(ig_sqrt(x), NAN, INFINITY, NAN, -0.0);
    assert_elements(ig_log(F32(0, -1, INFINITY)), -INFINITY, NAN, INFINITY);
    assert_elements(ig_tanh(x), NAN, 1, -1, -0.0);
    assert_elements(ig_sigmoid(x), NAN, 1, 0, 0.5);
    assert_elements(ig_equal(x, x), 0, 1, 1, 1);
    assert_elements(ig_logical_not(x), 0, 0, 0, 1);
    assert_elements(ig_divide(F32(1, -1, 0), F32(0, 0, 0)), INFINITY, -INFINITY, NAN);
    assert_elements(ig_rint(F32(0.5f, 1.5f, 2.5f, -0.5f)), 0, 2, 2, 0);
    assert_elements(ig_astype(x, IG_I32), 0, INT32_MAX, INT32_MIN, 0);
    assert_elements(ig_astype(x, IG_BOOL), 1, 1, 1, 0);
}

TEST(integer_division_rounds_down_and_by_zero_gives_zero)
{
    ig_array a = I32(7, -7, 7, -7, 5, INT32_MIN), b = I32(2, 2, -2, -2, 0, -1);
    assert_elements(ig_floor_divide(a, b), 3, -4, -4, 3, 0, INT32_MIN);
    assert_elements(ig_remainder(a, b), 1, 1, -1, -1, 0, 0);
    assert_elements(ig_remainder(F32(7, -7, 7, -7), F32(2, 2, -2, -2)), 1, 1, -1, -1);
}

TEST(shift_counts_out_of_range_give_zero)
{
    assert_elements(ig_left_shift(I32(1, 1, 1, -1), I32(31, 32, -1, 1)), INT32_MIN, 0, 0, -2);
    assert_elements(ig_right_shift(U32(8, 8, 8), U32(3, 32, 99)), 1, 0, 0);
}

TEST(clip_takes_either_bound_or_both)
{
    ig_array x = F32(-2, 0, 2), none = {0};
    assert_elements(ig_clip(x, ig_scalar_f32(-1), none), -1, 0, 2);
    assert_elements(ig_clip(x, none, ig_scalar_f32(1)), -2, 0, 1);
    assert_elements(ig_clip(x, none, none), -2, 0, 2);
    assert_elements(ig_clip(F32(NAN), ig_scalar_f32(0), ig_scalar_f32(1)), NAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(values_types_and_shapes_follow_the_row_for_every_dtype_and_layout),
        ARRAY_CASE(result_types_are_those_of_mlx),
        ARRAY_CASE(empty_arrays_give_empty_results),
        ARRAY_CASE(shapes_that_do_not_broadcast_are_refused_by_name),
        ARRAY_CASE(an_empty_input_gives_an_empty_output_and_no_failure),
        ARRAY_CASE(every_instruction_set_gives_the_bits_of_ref),
        ARRAY_CASE(fused_programs_give_the_bits_of_one_operation_at_a_time),
        ARRAY_CASE(nan_infinity_and_signed_zero_follow_numpy),
        ARRAY_CASE(integer_division_rounds_down_and_by_zero_gives_zero),
        ARRAY_CASE(shift_counts_out_of_range_give_zero),
        ARRAY_CASE(clip_takes_either_bound_or_both),
    };
    return cmocka_run_group_tests(tests, find_rows, NULL);
}
