/* Quantisation: codes, scales and biases are MLX's bit for bit; products follow the orders of
 * docs/numerics.md, recomputed here. */
#include <math.h>
#include "base/half.h"
#include "ingot/device.h"
#include "ingot/quant.h"
#include "support/arrays.h"
#include "support/test.h"
#include "golden/array/mlx.h"

#define K 128

/* The rows that tests/golden/scripts/mlx_arrays.py makes. */
static ig_array weights(ig_dtype dtype)
{
    float w[6 * K];
    for (uint64_t i = 0; i < 6 * K; i++)
        w[i] = (float)(((i * 2654435761u) % 4294967296u >> 8) % 65536) / 65536 - 0.5f;
    for (int j = 0; j < K; j++) {
        w[K + j] = 0;
        w[2 * K + j] = 0.3f;
        w[3 * K + j] = j % 2 ? -1 : 1;
        w[4 * K + j] = -fabsf(w[4 * K + j]) - 1;
        w[5 * K + j] = fabsf(w[5 * K + j]) + 1;
    }
    return ig_astype(ig_array_copy(w, IG_F32, DIMS(6, K)), dtype);
}

static void check_bytes(ig_array a, const void *want, size_t n_bytes, const char *what)
{
    const void *got;
    assert_int_equal(ig_nbytes(a), n_bytes);
    assert_ok(ig_data(a, &got));
    if (memcmp(got, want, n_bytes) != 0) fail_msg("%s differ from MLX's", what);
}

#define CHECK(type, tag, group, bits)                              \
    do {                                                           \
        ig_quantized q = ig_quantize(weights(type), group, bits);  \
        check_bytes(q.codes, mlx_codes_##tag##_##group##_##bits,   \
                    sizeof mlx_codes_##tag##_##group##_##bits,     \
                    "codes " #tag " " #group " " #bits);           \
        check_bytes(q.scales, mlx_scales_##tag##_##group##_##bits, \
                    sizeof mlx_scales_##tag##_##group##_##bits,    \
                    "scales " #tag " " #group " " #bits);          \
        check_bytes(q.biases, mlx_biases_##tag##_##group##_##bits, \
                    sizeof mlx_biases_##tag##_##group##_##bits,    \
                    "biases " #tag " " #group " " #bits);          \
    } while (0)
#define CHECK_GROUP(group)            \
    do {                              \
        CHECK(IG_F32, f32, group, 2); \
        CHECK(IG_F32, f32, group, 3); \
        CHECK(IG_F32, f32, group, 4); \
        CHECK(IG_F32, f32, group, 5); \
        CHECK(IG_F32, f32, group, 6); \
        CHECK(IG_F32, f32, group, 8); \
    } while (0)

TEST(codes_scales_and_biases_are_those_of_mlx)
{
    CHECK_GROUP(32);
    CHECK_GROUP(64);
    CHECK_GROUP(128);
    CHECK(IG_F16, f16, 32, 3);
    CHECK(IG_F16, f16, 64, 4);
    CHECK(IG_F16, f16, 128, 8);
    CHECK(IG_BF16, bf16, 32, 3);
    CHECK(IG_BF16, bf16, 64, 4);
    CHECK(IG_BF16, bf16, 128, 8);
}

/* --- the meaning of a quantised matrix, from its bytes */

typedef struct matrix {
    int64_t n, k;
    int group, bits;
    float *value; /* fma(s, q, b) */
    int *code;
    float *s, *b; /* [n, k / group] */
} matrix;

static matrix read_matrix(ig_quantized q)
{
    const uint8_t *p;
    matrix m = {.n = ig_dim(q.scales, 0),
                .k = ig_dim(q.scales, 1) * q.group,
                .group = q.group,
                .bits = q.bits};
    size_t n = (size_t)(m.n * m.k), groups = n / (size_t)m.group;
    m.value = malloc(n * sizeof(float));
    m.code = malloc(n * sizeof(int));
    m.s = malloc(groups * sizeof(float));
    m.b = malloc(groups * sizeof(float));
    assert_ok(ig_copy_out(q.scales, IG_F32, m.s, (int64_t)groups));
    assert_ok(ig_copy_out(q.biases, IG_F32, m.b, (int64_t)groups));
    assert_ok(ig_data(q.codes, (const void **)&p));
    for (size_t i = 0; i < n; i++) { /* one little-endian stream of bits; rows are whole words */
        size_t at = i * (size_t)m.bits;
        m.code[i] = 0;
        for (size_t k = 0; k < (size_t)m.bits; k++)
            m.code[i] |= (p[(at + k) / 8] >> ((at + k) % 8) & 1) << k;
        m.value[i] = fmaf(m.s[i / (size_t)m.group], (float)m.code[i], m.b[i / (size_t)m.group]);
    }
    return m;
}

static void matrix_done(matrix *m)
{
    free(m->value);
    free(m->code);
    free(m->s);
    free(m->b);
}

static const int all_bits[] = {2, 3, 4, 5, 6, 8}, all_groups[] = {32, 64, 128};

static ig_quantized sample(int64_t n, int64_t k, int group, int bits, ig_dtype dtype)
{
    return ig_quantize(ig_astype(arrays_spread(IG_F32, DIMS(n, k), -1, 1, 4), dtype), group, bits);
}

static void expect_f32(ig_array a, const float *want, const char *what, int bits, int group)
{
    const float *got;
    assert_ok(ig_data(a, (const void **)&got));
    for (int64_t i = 0; i < ig_size(a); i++)
        if (memcmp(&got[i], &want[i], 4) != 0 && !(got[i] != got[i] && want[i] != want[i]))
            fail_msg("%s, %s, %d bits, group %d: element %lld is %a, not %a", ig_device_isa(), what,
                     bits, group, (long long)i, (double)got[i], (double)want[i]);
}

static void for_every_format(void (*check)(int group, int bits))
{
    const char *first = ig_device_isa();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        for (int g = 0; g < 3; g++)
            for (int b = 0; b < 6; b++) {
                ig_scope *s = ig_scope_open();
                check(all_groups[g], all_bits[b]);
                assert_ok(ig_scope_close(s));
            }
    }
    assert_ok(ig_device_set_isa(first));
}

static void check_dequantize(int group, int bits)
{
    ig_quantized q = sample(5, 384, group, bits, IG_F32);
    matrix m = read_matrix(q);
    expect_f32(ig_dequantize(q), m.value, "dequantize", bits, group);
    ig_quantized h = sample(5, 384, group, bits, IG_BF16);
    assert_int_equal(ig_type(ig_dequantize(h)), IG_BF16);
    ig_array ids = I32(4, 0, 7, -1, 2), rows = ig_take_quantized(q, ids);
    float *want = malloc(5 * 384 * sizeof *want);
    const int at[5] = {4, 0, -1, -1, 2}; /* 7 and -1 are outside */
    for (int i = 0; i < 5 * 384; i++)
        want[i] = at[i / 384] < 0 ? (float)NAN : m.value[at[i / 384] * 384 + i % 384];
    assert_dims(rows, 5, 384);
    expect_f32(rows, want, "take_quantized", bits, group);
    free(want);
    matrix_done(&m);
}

TEST(a_code_means_fma_of_scale_code_and_bias) { for_every_format(check_dequantize); }

/* Blocks of 4096, 64 partial sums by index, fma, folds. */
static float dot_in_order(const float *x, const float *y, int64_t n)
{
    float total = 0;
    for (int64_t block = 0; block < n; block += 4096) {
        float p[64] = {0};
        for (int64_t i = block; i < n && i < block + 4096; i++)
            p[i % 64] = fmaf(x[i], y[i], p[i % 64]);
        for (int half = 32; half; half /= 2)
            for (int i = 0; i < half; i++) p[i] += p[i + half];
        total += p[0];
    }
    return total;
}

static void check_exact_product(int group, int bits)
{
    enum { N = 11, COLS = 4480, T = 3 };
    ig_quantized q = sample(N, COLS, group, bits, IG_F32);
    ig_array x = arrays_spread(IG_F32, DIMS(T, COLS), -2, 2, 9);
    matrix m = read_matrix(q);
    const float *xs;
    float want[T * N];
    assert_ok(ig_data(x, (const void **)&xs));
    for (int t = 0; t < T; t++)
        for (int n = 0; n < N; n++)
            want[t * N + n] = dot_in_order(xs + t * COLS, m.value + n * COLS, COLS);
    expect_f32(ig_quantized_matmul(x, q, true), want, "quantized_matmul", bits, group);
    matrix_done(&m);
}

TEST(the_exact_product_is_the_float_sum_of_the_contract) { for_every_format(check_exact_product); }

TEST(the_product_without_transposition_equals_the_dequantised_one)
{
    for (int b = 0; b < 6; b++) {
        ig_quantized q = sample(70, 128, 64, all_bits[b], IG_F16);
        ig_array x = arrays_spread(IG_F32, DIMS(2, 3, 70), -2, 2, 9);
        ig_array y = ig_quantized_matmul(x, q, false);
        assert_dims(y, 2, 3, 128);
        double *got = arrays_f64(y), *xs = arrays_f64(x);
        matrix m = read_matrix(q);
        for (int i = 0; i < 6 * 128; i++) {
            double want = 0;
            for (int n = 0; n < 70; n++)
                want += xs[i / 128 * 70 + n] * (double)m.value[n * 128 + i % 128];
            assert_true(fabs(got[i] - want) < 1e-4);
        }
        free(got);
        free(xs);
        matrix_done(&m);
    }
}

/* --- int8 rows */

typedef struct record {
    const int8_t *code;
    const float *d;
    const int32_t *sum;
} record;

static record record_of(const uint8_t *p, int64_t k, int group)
{
    int64_t codes = (k + 3) / 4 * 4, n_d = (k + group - 1) / group;
    return (record){(const int8_t *)p, (const float *)(p + codes),
                    (const int32_t *)(p + codes + 4 * n_d)};
}

static void check_rows8(int group, int bits)
{
    static const int64_t widths[] = {128, 96, 33, 1, 4100};
    if (bits != 4) return; /* the same for all */
    for (int w = 0; w < 5; w++) {
        int64_t k = widths[w];
        ig_array x = arrays_spread(IG_F32, DIMS(3, k), -3, 3, 2);
        ig_rows8 rows = ig_int8_rows(x, group);
        const uint8_t *p;
        const float *xs;
        assert_dims(rows.rec, 3, ig_rows8_bytes(k, group));
        assert_ok(ig_data(rows.rec, (const void **)&p));
        assert_ok(ig_data(x, (const void **)&xs));
        for (int t = 0; t < 3; t++, xs += k, p += ig_rows8_bytes(k, group)) {
            record r = record_of(p, k, group);
            for (int64_t g = 0; g < k; g += group) {
                float amax = 0;
                for (int64_t i = g; i < k && i < g + group; i++) amax = fmaxf(amax, fabsf(xs[i]));
                assert_float_equal(r.d[g / group], amax / 127, 0);
                for (int64_t i = g; i < k && i < g + group; i++)
                    assert_int_equal(r.code[i], (int)rintf(xs[i] * (127 / amax)));
            }
            for (int64_t g = 0; g < k; g += 32) {
                int sum = 0;
                for (int64_t i = g; i < k && i < g + 32; i++) sum += r.code[i];
                assert_int_equal(r.sum[g / 32], sum);
            }
        }
    }
}

TEST(int8_rows_hold_codes_divisors_and_sums_in_natural_order) { for_every_format(check_rows8); }

TEST(int8_rows_of_tiny_and_broken_values_are_defined)
{
    float v[64] = {0};
    v[0] = 0x1p-101f;
    v[32] = NAN;
    v[33] = 1;
    const uint8_t *p;
    assert_ok(
        ig_data(ig_int8_rows(ig_array_copy(v, IG_F32, DIMS(1, 64)), 32).rec, (const void **)&p));
    record r = record_of(p, 64, 32);
    assert_float_equal(r.d[0], 0, 0);
    assert_true(r.d[1] != r.d[1]);
    for (int i = 0; i < 64; i++) assert_int_equal(r.code[i], 0);
}

/* The order of the contract: per weight group p = b*S, u = fma(s, I, p), acc[c] = fma(d, u,
 * acc[c]), c = (first index / 64) mod 16, groups ascending; the 16 classes folded 8-4-2-1. */
static float product_in_classes(const matrix *m, int64_t n, record x, int act_group)
{
    float acc[16] = {0};
    for (int64_t g = 0; g < m->k; g += m->group) {
        int32_t dot = 0, sum = 0;
        for (int64_t i = g; i < g + m->group; i++) {
            dot += m->code[n * m->k + i] * x.code[i];
            sum += x.code[i];
        }
        int64_t at = (n * m->k + g) / m->group;
        float p = m->b[at] * (float)sum, u = fmaf(m->s[at], (float)dot, p);
        int c = (int)(g / 64 % 16);
        acc[c] = fmaf(x.d[g / act_group], u, acc[c]);
    }
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) acc[i] += acc[i + half];
    return acc[0];
}

static void check_integer_product(int group, int bits)
{
    enum { N = 37, COLS = 1408 };
    if (bits != 4 && bits != 8) return;
    static const int rows[] = {1, 2, 7, 33}; /* mat-vec, small batches, tiles */
    for (int g = 0; g < 3; g++)
        for (int r = 0; r < 4; r++) {
            int act = all_groups[g], t_max = rows[r];
            if (act < group) continue;
            ig_quantized q = sample(N, COLS, group, bits, r % 2 ? IG_F16 : IG_F32);
            ig_rows8 x = ig_int8_rows(arrays_spread(IG_F32, DIMS(t_max, COLS), -2, 2, 9), act);
            matrix m = read_matrix(q);
            const uint8_t *p;
            float *want = malloc((size_t)(t_max * N) * sizeof *want);
            assert_ok(ig_data(x.rec, (const void **)&p));
            for (int t = 0; t < t_max; t++)
                for (int n = 0; n < N; n++)
                    want[t * N + n] = product_in_classes(
                        &m, n, record_of(p + t * ig_rows8_bytes(COLS, act), COLS, act), act);
            expect_f32(ig_quantized_matmul_rows8(x, q), want, "rows8 product", bits, group);
            free(want);
            matrix_done(&m);
        }
}

TEST(the_integer_product_is_added_in_sixteen_classes) { for_every_format(check_integer_product); }

TEST(fused_pairs_give_the_bits_of_their_parts)
{
    ig_quantized q = sample(40, 256, 64, 4, IG_F16);
    ig_array x = arrays_spread(IG_F32, DIMS(5, 256), -2, 2, 9),
             w = arrays_spread(IG_F32, DIMS(256), 0.5, 2, 1);
    ig_array residual = arrays_spread(IG_F32, DIMS(5, 40), -2, 2, 3);
    ig_array fused =
        ig_add(ig_quantized_matmul_rows8(ig_int8_rows(ig_rms_norm(x, w, 1e-5), 64), q), residual);
    ig_array silu = ig_int8_rows(ig_multiply(ig_silu(x), x), 64).rec;
    assert_ok(ig_eval((ig_array[]){fused, silu}, 2));

    ig_array norm = ig_rms_norm(x, w, 1e-5), gate = ig_silu(x);
    assert_ok(ig_eval((ig_array[]){norm, gate}, 2));
    ig_rows8 rows = ig_int8_rows(norm, 64);
    ig_array gated = ig_multiply(gate, x);
    assert_ok(ig_eval((ig_array[]){rows.rec, gated}, 2));
    ig_array product = ig_quantized_matmul_rows8(rows, q), silu_rows = ig_int8_rows(gated, 64).rec;
    assert_ok(ig_eval((ig_array[]){product, silu_rows}, 2));
    arrays_same_bits(fused, ig_add(product, residual), "norm, rows, product, residual");
    arrays_same_bits(silu, silu_rows, "silu rows");
}

TEST(rows_too_long_for_a_fused_norm_become_int8_in_two_steps)
{
    ig_array x = arrays_spread(IG_F32, DIMS(2, 40000), -2, 2, 9), none = {0};
    ig_rows8 fused = ig_int8_rows(ig_rms_norm(x, none, 1e-5), 64);
    assert_ok(ig_eval(&fused.rec, 1));
    ig_array norm = ig_rms_norm(x, none, 1e-5);
    assert_ok(ig_eval(&norm, 1));
    arrays_same_bits(fused.rec, ig_int8_rows(norm, 64).rec, "40000 columns");
}

TEST(mismatched_quantised_arguments_are_refused_by_name)
{
    ig_array w = arrays_spread(IG_F32, DIMS(4, 128), -1, 1, 1),
             x = arrays_spread(IG_F32, DIMS(2, 128), -1, 1, 1);
    ig_quantized q = ig_quantize(w, 64, 4), bad = q;
    assert_refused(ig_quantize(w, 48, 4).codes, IG_EINVAL,
                   "quantize: group is 48, possible are 32, 64 and 128");
    assert_refused(ig_quantize(w, 64, 7).codes, IG_EINVAL, "quantize: bits is 7");
    assert_refused(ig_quantize(arrays_spread(IG_F32, DIMS(4, 96), -1, 1, 1), 64, 4).codes,
                   IG_ESHAPE,
                   "argument w is float32 [4, 96]: its rows are not a multiple of the group 64");
    assert_refused(ig_quantize(F32(1), 32, 4).codes, IG_ESHAPE, "a matrix [..., N, K] is needed");
    assert_refused(ig_quantize(ig_astype(w, IG_I32), 32, 4).codes, IG_EDTYPE,
                   "quantize: argument w is int32");
    bad.bits = 8;
    assert_refused(
        ig_dequantize(bad), IG_ESHAPE,
        "dequantize: arguments w.codes uint32 [4, 16] and w.scales float32 [4, 2]: the columns");
    /* 32 times the columns is 128, as it should be, but modulo 2^64 */
    ig_array one = ig_full(DIMS(1, 1), 1, IG_F32),
             wide =
                 ig_broadcast_to(ig_full(DIMS(1, 1), 0, IG_U32), DIMS(1, ((int64_t)1 << 59) + 4));
    assert_refused(ig_dequantize((ig_quantized){wide, one, one, 32, 4}), IG_ESHAPE,
                   "the columns contradict group and bits");
    bad = q;
    bad.biases = ig_astype(q.biases, IG_F16);
    assert_refused(ig_dequantize(bad), IG_ESHAPE, "scales and biases must be alike");
    assert_refused(ig_quantized_matmul(arrays_spread(IG_F32, DIMS(2, 64), -1, 1, 1), q, true),
                   IG_ESHAPE,
                   "quantized_matmul: arguments x float32 [2, 64] and w.codes uint32 [4, 16]: the "
                   "inner dimensions differ");
    assert_refused(ig_quantized_matmul_rows8(ig_int8_rows(x, 32), q), IG_EINVAL,
                   "rows' group 32 is below the matrix's group 64");
    assert_refused(ig_quantized_matmul_rows8(ig_int8_rows(x, 64), ig_quantize(w, 64, 5)), IG_EINVAL,
                   "w has 5 bits");
    ig_rows8 narrow = ig_int8_rows(arrays_spread(IG_F32, DIMS(2, 64), -1, 1, 1), 64);
    assert_refused(ig_quantized_matmul_rows8(narrow, q), IG_ESHAPE, "rows of 64 columns");
    assert_refused(ig_take_quantized(q, F32(0)), IG_EDTYPE,
                   "take_quantized: argument ids is float32 [1]");
    assert_refused(ig_int8_rows(F32(1), 64).rec, IG_ESHAPE,
                   "int8_rows: argument x is float32 [1]: it must have 2 dimensions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(codes_scales_and_biases_are_those_of_mlx),
        ARRAY_CASE(a_code_means_fma_of_scale_code_and_bias),
        ARRAY_CASE(the_exact_product_is_the_float_sum_of_the_contract),
        ARRAY_CASE(the_product_without_transposition_equals_the_dequantised_one),
        ARRAY_CASE(int8_rows_hold_codes_divisors_and_sums_in_natural_order),
        ARRAY_CASE(int8_rows_of_tiny_and_broken_values_are_defined),
        ARRAY_CASE(the_integer_product_is_added_in_sixteen_classes),
        ARRAY_CASE(fused_pairs_give_the_bits_of_their_parts),
        ARRAY_CASE(rows_too_long_for_a_fused_norm_become_int8_in_two_steps),
        ARRAY_CASE(mismatched_quantised_arguments_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
