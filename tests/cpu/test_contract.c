/* test_contract.c: docs/numerics.md once more, in the plainest scalar C and without the library's
 * kernels, against what operations give. Every comparison is of bits. */
#include <math.h>
#include "base/fmath.h"
#include "base/half.h"
#include "ingot/device.h"
#include "ingot/quant.h"
#include "support/arrays.h"
#include "support/test.h"

/* --- the definitions */

static float fold(float *p, int n)
{
    for (int half = n / 2; half; half /= 2)
        for (int i = 0; i < half; i++) p[i] += p[i + half];
    return p[0];
}

/* Sum order of x[i] * y[i], one fma each; y NULL: of x[i]. by: distance of elements. */
static float sum_order(const float *x, const float *y, int64_t n, int64_t by)
{
    float total = 0, p[64];
    for (int64_t i = 0; i < n; i++) {
        if (i % 4096 == 0) memset(p, 0, sizeof p);
        p[i % 64] = y ? fmaf(x[i * by], y[i * by], p[i % 64]) : p[i % 64] + x[i * by];
        if (i % 4096 == 4095 || i == n - 1) total += fold(p, 64);
    }
    return total;
}

static float spread(uint32_t i, uint32_t seed)
{
    uint32_t h = (i + seed * 977 + 1) * 2654435761u;
    h ^= h >> 15;
    return ((float)(h >> 8) * 0x1p-24f - 0.5f) * 4;
}

static float *values(int64_t n, uint32_t seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = spread((uint32_t)i, seed);
    return x;
}

static ig_array array_f32(const float *x, const int64_t *dims, int ndim)
{
    return ig_array_copy(x, IG_F32, dims, ndim);
}

static const float *bits_of(ig_array a)
{
    const void *p = NULL;
    assert_ok(ig_data(a, &p));
    return p;
}

static void same(float got, float want, const char *what, int64_t i)
{
    if (half_f32_bits(got) != half_f32_bits(want))
        fail_msg("%s, element %lld: %a, the definition gives %a", what, (long long)i, (double)got,
                 (double)want);
}

/* --- sums */

TEST(a_sum_is_64_partial_sums_in_blocks_of_4096)
{
    static const int64_t sizes[] = {0, 1, 2, 63, 64, 65, 1000, 4095, 4096, 4097, 12000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int64_t n = sizes[k];
        float *x = values(n, 1);
        ig_array a = array_f32(x, &n, 1);
        same(*bits_of(ig_sum(a, NO_AXES, false)), sum_order(x, NULL, n, 1), "sum", n);
        float mean = *bits_of(ig_mean(a, NO_AXES, false));
        if (n)
            same(mean, sum_order(x, NULL, n, 1) / (float)n, "mean", n);
        else
            assert_true(mean != mean);
        free(x);
    }
}

TEST(a_sum_down_the_columns_has_the_order_of_a_sum_along_a_row)
{
    int64_t dims[2] = {5000, 70};
    float *x = values(dims[0] * dims[1], 2);
    const float *got = bits_of(ig_sum(array_f32(x, dims, 2), AXES(0), false));
    for (int64_t c = 0; c < dims[1]; c++)
        same(got[c], sum_order(x + c, NULL, dims[0], dims[1]), "column", c);
    free(x);
}

TEST(several_reduced_axes_are_one_row_in_row_major_order)
{
    int64_t dims[4] = {7, 3, 50, 41};
    float *x = values(7 * 3 * 50 * 41, 3), row[7 * 50 * 41];
    const float *got = bits_of(ig_sum(array_f32(x, dims, 4), AXES(0, 2, 3), false));
    for (int64_t k = 0; k < 3; k++) {
        for (int64_t i = 0; i < 7; i++)
            memcpy(row + i * 2050, x + (i * 3 + k) * 2050, 2050 * sizeof *row);
        same(got[k], sum_order(row, NULL, 7 * 2050, 1), "axis 1", k);
    }
    free(x);
}

TEST(a_dot_product_is_a_sum_of_fused_products)
{
    int64_t k = 5000, x_dims[2] = {3, k}, w_dims[2] = {k, 4};
    float *x = values(3 * k, 4), *w = values(4 * k, 5), column[5000];
    const float *got = bits_of(ig_matmul(array_f32(x, x_dims, 2), array_f32(w, w_dims, 2)));
    for (int64_t m = 0; m < 3; m++)
        for (int64_t n = 0; n < 4; n++) {
            for (int64_t i = 0; i < k; i++) column[i] = w[i * 4 + n];
            same(got[m * 4 + n], sum_order(x + m * k, column, k, 1), "matmul", m * 4 + n);
        }
    free(x);
    free(w);
}

TEST(a_norm_divides_truly)
{
    int64_t n = 5000;
    float *x = values(n, 6), *w = values(n, 7);
    ig_array a = array_f32(x, &n, 1), weight = array_f32(w, &n, 1);
    const float *got = bits_of(ig_rms_norm(a, weight, 1e-5));
    float inv = 1.0f / sqrtf(sum_order(x, x, n, 1) / 5000.0f + 1e-5f);
    for (int64_t i = 0; i < n; i++) {
        float t = x[i] * inv;
        same(got[i], t * w[i], "rms_norm", i);
    }
    free(x);
    free(w);
}

TEST(softmax_divides_by_the_sum_in_order)
{
    int64_t n = 4500;
    float *x = values(n, 8), *e = values(n, 8), m = -INFINITY;
    const float *got = bits_of(ig_softmax(array_f32(x, &n, 1), 0));
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    for (int64_t i = 0; i < n; i++) e[i] = fmath_exp(x[i] - m);
    float total = sum_order(e, NULL, n, 1);
    for (int64_t i = 0; i < n; i++) same(got[i], e[i] / total, "softmax", i);
    free(x);
    free(e);
}

/* --- int8 activations and the 16 classes */

typedef struct row8 {
    int8_t q[4096];
    float d[128];
} row8;

static void define_row8(const float *x, int64_t k, int64_t group, row8 *ret)
{
    for (int64_t g = 0; g < k; g += group) {
        int64_t end = g + group < k ? g + group : k;
        float amax = 0;
        for (int64_t i = g; i < end; i++) amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
        bool nothing = amax < 0x1p-100f;
        float up = 127.0f / amax;
        ret->d[g / group] = nothing ? 0 : amax / 127.0f;
        for (int64_t i = g; i < end; i++) ret->q[i] = (int8_t)(nothing ? 0 : rintf(x[i] * up));
    }
}

/* codes, scales and biases as the library made them: bits 4 or 8, f16. */
static float define_product8(const row8 *x, int64_t act, const uint8_t *codes, const uint16_t *s,
                             const uint16_t *b, int64_t k, int64_t group, int bits)
{
    float acc[16] = {0};
    for (int64_t g = 0; g < k / group; g++) {
        int32_t dot = 0, sum = 0;
        for (int64_t i = g * group; i < (g + 1) * group; i++) {
            int32_t code = bits == 8 ? codes[i] : codes[i / 2] >> 4 * (i % 2) & 15;
            dot += code * x->q[i];
            sum += x->q[i];
        }
        float p = f16_to_f32(b[g]) * (float)sum, u = fmaf(f16_to_f32(s[g]), (float)dot, p);
        int64_t c = g * group / 64 % 16;
        acc[c] = fmaf(x->d[g * group / act], u, acc[c]);
    }
    return fold(acc, 16);
}

static void check_product8(int64_t k, int32_t group, int32_t act, int32_t bits)
{
    int64_t w_dims[2] = {37, k}, x_dims[2] = {5, k};
    float *wf = values(37 * k, 9), *xf = values(5 * k, 10);
    for (int64_t i = 0; i < act && i < k; i++) xf[i] = 0x1p-120f; /* a group of nothing */
    ig_quantized w = ig_quantize(ig_astype(array_f32(wf, w_dims, 2), IG_F16), group, bits);
    const float *got =
        bits_of(ig_quantized_matmul_rows8(ig_int8_rows(array_f32(xf, x_dims, 2), act), w));
    const uint8_t *codes = (const uint8_t *)bits_of(w.codes);
    const uint16_t *s = (const uint16_t *)bits_of(w.scales),
                   *b = (const uint16_t *)bits_of(w.biases);
    static row8 row;
    for (int64_t t = 0; t < 5; t++) {
        define_row8(xf + t * k, k, act, &row);
        for (int64_t n = 0; n < 37; n++)
            same(got[t * 37 + n],
                 define_product8(&row, act, codes + n * k * bits / 8, s + n * k / group,
                                 b + n * k / group, k, group, bits),
                 "product", t * 37 + n);
    }
    free(wf);
    free(xf);
}

TEST(a_product_with_int8_rows_is_summed_in_16_classes)
{
    static const int32_t groups[3] = {32, 64, 128};
    for (int g = 0; g < 3; g++)
        for (int a = g; a < 3; a++)
            for (int bits = 4; bits <= 8; bits += 4) {
                check_product8(1152, groups[g], groups[a], bits);
                check_product8(4096, groups[g], groups[a], bits);
                check_product8(groups[g], groups[g], groups[a], bits);
            }
    check_product8(576, 32, 128, 4); /* the last activation group is shorter */
}

TEST(an_exact_product_is_a_sum_of_the_values_of_the_codes)
{
    int64_t k = 4224, w_dims[2] = {9, k}, x_dims[2] = {3, k};
    float *wf = values(9 * k, 11), *xf = values(3 * k, 12);
    for (int32_t bits = 2; bits <= 8; bits += bits == 6 ? 2 : 1) {
        ig_quantized w = ig_quantize(array_f32(wf, w_dims, 2), 64, bits);
        const float *value = bits_of(ig_dequantize(w));
        const float *got = bits_of(ig_quantized_matmul(array_f32(xf, x_dims, 2), w, true));
        for (int64_t i = 0; i < 27; i++)
            same(got[i], sum_order(xf + i / 9 * k, value + i % 9 * k, k, 1), "quantized_matmul", i);
    }
    free(wf);
    free(xf);
}

/* --- attention */

enum { D = 64, HEADS = 4, KV = 2, PAGES = 12 };

/* What one query sees of keys and values [n][D] laid out plainly, as DESIGN 5 says. */
static void define_attention(const float *q, const float *k, const float *v, int64_t n, float scale,
                             float *o)
{
    float total[D + 2] = {0};
    for (int64_t split = 0; split < n; split += 256) {
        float acc[D] = {0}, m = -INFINITY, l = 0;
        for (int64_t block = split; block < n && block < split + 256; block += 64) {
            int64_t len = n - block < 64 ? n - block : 64;
            float s[64], top = m;
            for (int64_t j = 0; j < len; j++) {
                s[j] = sum_order(q, k + (block + j) * D, D, 1) * scale;
                top = s[j] > top ? s[j] : top;
            }
            float c = block == split ? 0 : fmath_exp(m - top);
            for (int64_t j = 0; j < len; j++) s[j] = fmath_exp(s[j] - top);
            l = fmaf(l, c, sum_order(s, NULL, len, 1));
            for (int i = 0; i < D; i++) acc[i] = acc[i] * c;
            for (int64_t j = 0; j < len; j++)
                for (int i = 0; i < D; i++) acc[i] = fmaf(s[j], v[(block + j) * D + i], acc[i]);
            m = top;
        }
        if (split == 0) {
            memcpy(total, acc, sizeof acc);
            total[D] = m;
            total[D + 1] = l;
            continue;
        }
        float top = total[D] > m ? total[D] : m, ca = fmath_exp(total[D] - top),
              cb = fmath_exp(m - top);
        for (int i = 0; i < D; i++) total[i] = fmaf(total[i], ca, acc[i] * cb);
        total[D + 1] = fmaf(total[D + 1], ca, l * cb);
        total[D] = top;
    }
    for (int i = 0; i < D; i++) o[i] = total[i] / total[D + 1];
}

/* What a vector becomes in a cache of this type. */
static void through_cache(float *x, int64_t n, ig_dtype t)
{
    row8 row;
    for (int64_t v = 0; v < n; v++, x += D) {
        if (t == IG_I8) define_row8(x, D, D, &row);
        for (int i = 0; i < D; i++)
            x[i] = t == IG_F16    ? f16_to_f32(f32_to_f16(x[i]))
                   : t == IG_BF16 ? bf16_to_f32(f32_to_bf16(x[i]))
                   : t == IG_I8   ? row.d[0] * (float)row.q[i]
                                  : x[i];
    }
}

/* Two sequences, 600 and 70 positions long, rows of both in one call; pages of each scattered over
 * the pool. */
static void check_attention(ig_dtype kv_type)
{
    enum { LONG = 600, SHORT = 70, N = LONG + SHORT, ROWS = 9 };
    static const int32_t page_of[2][10] = {{7, 2, 9, 0, 11, 4, 1, 8, 10, 3},
                                           {6, 5, 0, 0, 0, 0, 0, 0, 0, 0}};
    static const int32_t seq[ROWS] = {0, 0, 0, 0, 0, 0, 1, 1, 1};
    static const int32_t positions[ROWS] = {599, 598, 0, 255, 256, 511, 69, 63, 64};
    int64_t kv_dims[3] = {N, KV, D}, q_dims[3] = {ROWS, HEADS, D}, pool_dims[2] = {PAGES, 0},
            page_dims[2] = {2, 10}, n = N, rows = ROWS;
    pool_dims[1] =
        2 * KV * 64 *
        (D * (int64_t)(kv_type == IG_I8 ? 1 : ig_dtype_size(kv_type)) + (kv_type == IG_I8 ? 4 : 0));
    float *k = values(N * KV * D, 13), *v = values(N * KV * D, 14),
          *q = values(ROWS * HEADS * D, 15);
    int32_t slots[N];
    for (int i = 0; i < N; i++) {
        int s = i >= LONG, p = s ? i - LONG : i;
        slots[i] = page_of[s][p / 64] * 64 + p % 64;
    }
    ig_array pool = ig_full(pool_dims, 2, 0, IG_U8);
    pool = ig_paged_write(pool, array_f32(k, kv_dims, 3), array_f32(v, kv_dims, 3),
                          ig_array_copy(slots, IG_I32, &n, 1), KV, D, kv_type);
    const float *got = bits_of(ig_paged_attention(
        array_f32(q, q_dims, 3), pool, ig_array_copy(page_of, IG_I32, page_dims, 2),
        ig_array_copy(seq, IG_I32, &rows, 1), ig_array_copy(positions, IG_I32, &rows, 1), KV,
        kv_type, 0.125));
    through_cache(k, N * KV, kv_type);
    through_cache(v, N * KV, kv_type);
    static float keys[LONG * D], vals[LONG * D];
    for (int r = 0; r < ROWS; r++)
        for (int h = 0; h < HEADS; h++) {
            int first = seq[r] ? LONG : 0, head = h / (HEADS / KV);
            for (int p = 0; p <= positions[r]; p++) {
                memcpy(keys + p * D, k + ((first + p) * KV + head) * D, D * sizeof *k);
                memcpy(vals + p * D, v + ((first + p) * KV + head) * D, D * sizeof *v);
            }
            float want[D];
            define_attention(q + (r * HEADS + h) * D, keys, vals, positions[r] + 1, 0.125f, want);
            for (int i = 0; i < D; i++)
                same(got[(r * HEADS + h) * D + i], want[i], "attention", (r * HEADS + h) * D + i);
        }
    free(k);
    free(v);
    free(q);
}

TEST(attention_over_pages_is_what_the_design_says)
{
    check_attention(IG_F32);
    check_attention(IG_F16);
    check_attention(IG_BF16);
    check_attention(IG_I8);
}

TEST(plain_attention_has_the_bits_of_attention_over_pages)
{
    enum { L = 3, S = 530 };
    int64_t q_dims[4] = {1, HEADS, L, D}, kv_dims[4] = {1, KV, S, D};
    float *q = values(HEADS * L * D, 16), *k = values(KV * S * D, 17), *v = values(KV * S * D, 18),
          want[D];
    const float *got = bits_of(ig_sdpa(array_f32(q, q_dims, 4), array_f32(k, kv_dims, 4),
                                       array_f32(v, kv_dims, 4), (ig_array){0}, 0.125, true));
    for (int h = 0; h < HEADS; h++)
        for (int l = 0; l < L; l++) {
            int64_t at = h / (HEADS / KV) * S * D;
            define_attention(q + (h * L + l) * D, k + at, v + at, S - L + l + 1, 0.125f, want);
            for (int i = 0; i < D; i++)
                same(got[(h * L + l) * D + i], want[i], "sdpa", (h * L + l) * D + i);
        }
    free(q);
    free(k);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(a_sum_is_64_partial_sums_in_blocks_of_4096),
        ARRAY_CASE(a_sum_down_the_columns_has_the_order_of_a_sum_along_a_row),
        ARRAY_CASE(several_reduced_axes_are_one_row_in_row_major_order),
        ARRAY_CASE(a_dot_product_is_a_sum_of_fused_products),
        ARRAY_CASE(a_norm_divides_truly),
        ARRAY_CASE(softmax_divides_by_the_sum_in_order),
        ARRAY_CASE(a_product_with_int8_rows_is_summed_in_16_classes),
        ARRAY_CASE(an_exact_product_is_a_sum_of_the_values_of_the_codes),
        ARRAY_CASE(attention_over_pages_is_what_the_design_says),
        ARRAY_CASE(plain_attention_has_the_bits_of_attention_over_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
