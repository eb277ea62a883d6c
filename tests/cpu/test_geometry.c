/* test_geometry.c: what must not show in a result: instruction set, number of threads, strides of
 * the inputs, which rows share a step. Each case is built and evaluated under every setting and
 * compared in every bit. */
#include <math.h>
#include "ingot/device.h"
#include "ingot/quant.h"
#include "support/arrays.h"
#include "support/test.h"

static ig_array spread(ig_dtype t, const int64_t *dims, int ndim, uint32_t seed)
{
    return arrays_spread(t, dims, ndim, -3, 3, seed);
}

#define F(seed, ...) spread(IG_F32, DIMS(__VA_ARGS__), seed)
#define NONE ((ig_array){0})

/* The same values with other strides: transposed in memory, and transposed back as a view. */
static ig_array lay_otherwise(ig_array a)
{
    return ig_transpose(ig_contiguous(ig_transpose(a, NO_AXES)), NO_AXES);
}

static ig_array as_is(ig_array a) { return a; }

typedef ig_array (*layout)(ig_array);

/* --- cases: inputs pass through `lay` */

static ig_array sum_rows(layout lay) { return ig_sum(lay(F(1, 9, 6000)), AXES(1), false); }
static ig_array sum_columns(layout lay) { return ig_sum(lay(F(2, 5000, 9)), AXES(0), false); }
static ig_array sum_middle(layout lay) { return ig_sum(lay(F(3, 6, 70, 40)), AXES(0, 2), true); }
static ig_array sum_f16(layout lay)
{
    return ig_sum(lay(spread(IG_F16, DIMS(7, 900), 4)), AXES(1), false);
}
static ig_array sum_f64(layout lay)
{
    return ig_sum(lay(spread(IG_F64, DIMS(900, 7), 4)), AXES(0), false);
}
static ig_array mean_all(layout lay) { return ig_mean(lay(F(5, 40, 41, 42)), NO_AXES, false); }
static ig_array max_columns(layout lay) { return ig_max(lay(F(6, 300, 77)), AXES(0), false); }
static ig_array min_rows(layout lay) { return ig_min(lay(F(6, 300, 77)), AXES(1), false); }
static ig_array prod_rows(layout lay) { return ig_prod(lay(F(7, 300, 20)), AXES(1), false); }
static ig_array logsumexp_axis(layout lay)
{
    return ig_logsumexp(lay(F(8, 30, 5000)), AXES(1), false);
}
static ig_array logsumexp_both(layout lay)
{
    return ig_logsumexp(lay(F(8, 30, 500, 3)), AXES(0, 1), false);
}
static ig_array softmax_last(layout lay) { return ig_softmax(lay(F(9, 20, 4500)), 1); }
static ig_array softmax_first(layout lay) { return ig_softmax(lay(F(9, 4500, 5)), 0); }
static ig_array softmax_bf16(layout lay)
{
    return ig_softmax(lay(spread(IG_BF16, DIMS(20, 300), 9)), 1);
}
static ig_array argmax_rows(layout lay) { return ig_argmax(lay(F(10, 40, 5000)), 1, false); }
static ig_array argmin_first(layout lay) { return ig_argmin(lay(F(10, 40, 50)), 0, false); }
static ig_array cumsum_rows(layout lay) { return ig_cumsum(lay(F(11, 10, 9000)), 1, false, true); }
static ig_array cumsum_back(layout lay) { return ig_cumsum(lay(F(11, 9000, 3)), 0, true, false); }
static ig_array sort_rows(layout lay) { return ig_sort(lay(F(12, 7, 30000)), 1); }
static ig_array argsort_first(layout lay)
{
    return ig_argsort(lay(spread(IG_I8, DIMS(700, 5), 12)), 0);
}
static ig_array topk_rows(layout lay) { return ig_topk(lay(F(12, 7, 30000)), 40, 1); }
static ig_array topk_many(layout lay) { return ig_topk(lay(F(12, 7, 3000)), 2000, 1); }
static ig_array matmul_plain(layout lay)
{
    return ig_matmul(lay(F(13, 70, 300)), lay(F(14, 300, 90)));
}
static ig_array matmul_deep(layout lay)
{
    return ig_matmul(lay(F(13, 5, 9000)), lay(F(14, 9000, 19)));
}
static ig_array matmul_f16(layout lay)
{
    return ig_matmul(lay(spread(IG_F16, DIMS(9, 4100), 13)),
                     lay(spread(IG_F16, DIMS(4100, 17), 14)));
}
static ig_array matmul_mixed(layout lay)
{
    return ig_matmul(lay(F(13, 300, 64)), lay(spread(IG_BF16, DIMS(64, 100), 14)));
}
static ig_array matmul_batch(layout lay)
{
    return ig_matmul(lay(F(13, 4, 1, 7, 33)), lay(F(14, 3, 33, 18)));
}
static ig_array matmul_f64(layout lay)
{
    return ig_matmul(lay(spread(IG_F64, DIMS(9, 70), 13)), lay(spread(IG_F64, DIMS(70, 5), 14)));
}
static ig_array matmul_vectors(layout lay) { return ig_matmul(F(13, 5000), lay(F(14, 5000, 3))); }
static ig_array rms(layout lay) { return ig_rms_norm(lay(F(15, 33, 700)), F(16, 700), 1e-6); }
static ig_array rms_f16(layout lay)
{
    return ig_rms_norm(lay(spread(IG_F16, DIMS(33, 700), 15)), NONE, 1e-6);
}
static ig_array layer(layout lay)
{
    return ig_layer_norm(lay(F(15, 33, 700)), F(16, 700), F(17, 700), 1e-6);
}
static ig_array rope(layout lay)
{
    return ig_rope(lay(F(18, 20, 6, 64)), ig_arange(3, 23, 1, IG_I32), F(19, 40, 2, 24), false);
}
static ig_array rope_interleaved(layout lay)
{
    return ig_rope(lay(spread(IG_F16, DIMS(20, 6, 64), 18)), ig_arange(3, 23, 1, IG_I32),
                   F(19, 40, 2, 32), true);
}
static ig_array sdpa_causal(layout lay)
{
    return ig_sdpa(lay(F(20, 2, 4, 50, 80)), lay(F(21, 2, 2, 300, 80)), lay(F(22, 2, 2, 300, 48)),
                   NONE, 0.1, true);
}
static ig_array sdpa_masked(layout lay)
{
    ig_array mask = ig_greater(lay(F(23, 5, 300)), ig_scalar_f32(-2));
    return ig_sdpa(F(20, 1, 4, 5, 64), lay(F(21, 1, 4, 300, 64)), F(22, 1, 4, 300, 64), mask, 0.1,
                   false);
}
static ig_array sdpa_half(layout lay)
{
    ig_array q = spread(IG_F16, DIMS(1, 4, 5, 64), 20), k = spread(IG_F16, DIMS(1, 2, 70, 64), 21);
    return ig_sdpa(lay(q), lay(k), lay(k), lay(spread(IG_F16, DIMS(5, 70), 24)), 0.1, false);
}
static ig_quantized table(ig_dtype t, int32_t group, int32_t bits)
{
    return ig_quantize(spread(t, DIMS(130, 1152), 25), group, bits);
}
static ig_array codes(layout lay)
{
    return ig_quantize(lay(spread(IG_BF16, DIMS(30, 640), 25)), 32, 3).codes;
}
static ig_array decoded(layout lay)
{
    return ig_dequantize(ig_quantize(lay(spread(IG_F16, DIMS(30, 640), 25)), 128, 5));
}
static ig_array table_rows(layout lay)
{
    return ig_take_quantized(table(IG_F16, 64, 6), lay(spread(IG_I32, DIMS(4, 9), 26)));
}
static ig_array exact(layout lay)
{
    return ig_quantized_matmul(lay(F(27, 21, 1152)), table(IG_F32, 64, 4), true);
}
static ig_array exact_half(layout lay)
{
    return ig_quantized_matmul(lay(spread(IG_BF16, DIMS(21, 1152), 27)), table(IG_BF16, 32, 8),
                               true);
}
static ig_array exact_plain(layout lay)
{
    return ig_quantized_matmul(lay(F(27, 21, 130)), table(IG_F16, 128, 2), false);
}
static ig_array int8_records(layout lay) { return ig_int8_rows(lay(F(28, 19, 1000)), 64).rec; }
static ig_array fused_records(layout lay)
{
    ig_array g = lay(F(28, 19, 1000));
    return ig_int8_rows(ig_multiply(ig_silu(g), F(29, 19, 1000)), 32).rec;
}
static ig_array normed_records(layout lay)
{
    return ig_int8_rows(ig_rms_norm(lay(F(28, 19, 1000)), F(29, 1000), 1e-5), 128).rec;
}
static ig_array product8(layout lay)
{
    return ig_quantized_matmul_rows8(ig_int8_rows(lay(F(28, 300, 1152)), 64), table(IG_F16, 64, 4));
}
static ig_array product8_add(layout lay)
{
    ig_array y =
        ig_quantized_matmul_rows8(ig_int8_rows(lay(F(28, 1, 1152)), 128), table(IG_BF16, 32, 8));
    return ig_add(F(30, 1, 130), y);
}
static ig_array taken(layout lay)
{
    return ig_take(lay(F(31, 7, 50, 9)), spread(IG_I32, DIMS(3, 4), 32), 1);
}
static ig_array taken_along(layout lay)
{
    return ig_take_along_axis(lay(F(31, 7, 50)), lay(spread(IG_I32, DIMS(7, 20), 32)), 1);
}
static ig_array put(layout lay)
{
    return ig_put_rows(lay(F(33, 40, 30)), spread(IG_I32, DIMS(12), 34), lay(F(35, 12, 30)));
}
static ig_array boxed(layout lay)
{
    return ig_slice_update(lay(F(36, 20, 30, 4)), lay(F(37, 7, 10, 4)), DIMS(19, 2, 0),
                           DIMS(-100, 32, 4), DIMS(-3, 3, 1));
}
static ig_array joined(layout lay)
{
    const ig_array a[] = {lay(F(38, 40, 3, 9)), lay(F(39, 40, 5, 9)), F(40, 40, 1, 9)};
    return ig_concatenate(a, 3, 1);
}
static ig_array copied(layout lay)
{
    return ig_contiguous(lay(spread(IG_I16, DIMS(31, 17, 23), 41)));
}
static ig_array key(void) { return U32(7, 11); }
static ig_array uniform(layout lay)
{
    (void)lay;
    return ig_random_uniform(key(), DIMS(37, 101));
}
static ig_array drawn(layout lay) { return ig_random_categorical(key(), lay(F(42, 30, 2000)), 1); }
static ig_array drawn_first(layout lay)
{
    return ig_random_categorical(key(), lay(F(42, 30, 20)), 0);
}
static ig_array drawn_batch(layout lay)
{
    return ig_random_categorical(ig_random_split(key(), 30), lay(F(42, 30, 2000)), 1);
}
static ig_array created(layout lay)
{
    (void)lay;
    return ig_add(ig_arange(-3, 9000, 0.25, IG_F32), ig_full(DIMS(1), 0.1, IG_F32));
}
static ig_array triangle(layout lay)
{
    (void)lay;
    return ig_tri(40, 50, -3, IG_BF16);
}
static ig_array chain(layout lay)
{
    ig_array x = lay(F(43, 65, 130)), half = ig_astype(x, IG_F16), w = F(44, 130);
    ig_array y = ig_add(ig_multiply(half, ig_astype(w, IG_F16)), ig_exp(half));
    return ig_where(ig_less(x, ig_scalar_f32(0)), ig_astype(y, IG_F32), ig_tanh(ig_divide(x, w)));
}

static const struct {
    const char *name;
    ig_array (*make)(layout);
} cases[] = {
#define C(f) .name = #f, .make = f
    {C(sum_rows)},
    {C(sum_columns)},
    {C(sum_middle)},
    {C(sum_f16)},
    {C(sum_f64)},
    {C(mean_all)},
    {C(max_columns)},
    {C(min_rows)},
    {C(prod_rows)},
    {C(logsumexp_axis)},
    {C(logsumexp_both)},
    {C(softmax_last)},
    {C(softmax_first)},
    {C(softmax_bf16)},
    {C(argmax_rows)},
    {C(argmin_first)},
    {C(cumsum_rows)},
    {C(cumsum_back)},
    {C(sort_rows)},
    {C(argsort_first)},
    {C(topk_rows)},
    {C(topk_many)},
    {C(matmul_plain)},
    {C(matmul_deep)},
    {C(matmul_f16)},
    {C(matmul_mixed)},
    {C(matmul_batch)},
    {C(matmul_f64)},
    {C(matmul_vectors)},
    {C(rms)},
    {C(rms_f16)},
    {C(layer)},
    {C(rope)},
    {C(rope_interleaved)},
    {C(sdpa_causal)},
    {C(sdpa_masked)},
    {C(sdpa_half)},
    {C(codes)},
    {C(decoded)},
    {C(table_rows)},
    {C(exact)},
    {C(exact_half)},
    {C(exact_plain)},
    {C(int8_records)},
    {C(fused_records)},
    {C(normed_records)},
    {C(product8)},
    {C(product8_add)},
    {C(taken)},
    {C(taken_along)},
    {C(put)},
    {C(boxed)},
    {C(joined)},
    {C(copied)},
    {C(uniform)},
    {C(drawn)},
    {C(drawn_first)},
    {C(drawn_batch)},
    {C(created)},
    {C(triangle)},
    {C(chain)},
#undef C
};

static ig_array evaluate(size_t i, layout lay)
{
    ig_array a = cases[i].make(lay);
    if (ig_is_empty(a) || ig_eval(&a, 1) != IG_OK)
        fail_msg("%s: %s", cases[i].name, ig_error_message());
    return a;
}

TEST(instruction_sets_and_threads_do_not_show_in_any_bit)
{
    static const int threads[] = {1, 2, 5};
    int before = ig_device_threads();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_ok(ig_device_set_isa("ref"));
        assert_ok(ig_device_set_threads(1));
        ig_array want = evaluate(i, as_is);
        for (const char *const *isa = ig_device_isas(); *isa; isa++)
            for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
                assert_ok(ig_device_set_isa(*isa));
                assert_ok(ig_device_set_threads(threads[t]));
                arrays_same_bits(evaluate(i, as_is), want, cases[i].name);
            }
    }
    assert_ok(ig_device_set_isa(ig_device_isas()[0]));
    assert_ok(ig_device_set_threads(before));
}

TEST(strides_do_not_show_in_any_bit)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        arrays_same_bits(evaluate(i, lay_otherwise), evaluate(i, as_is), cases[i].name);
}

/* --- attention: items of rows, of splits, and both kinds of pool */

enum { D = 64, HEADS = 6, KV = 2, PAGES = 20, LEN = 1100 };

static ig_array filled_pool(void)
{
    int64_t pool_dims[2] = {PAGES, 2 * KV * 64 * D * 2};
    ig_array slots = ig_arange(0, LEN, 1, IG_I32);
    return ig_paged_write(ig_full(pool_dims, 2, 0, IG_U8), F(50, LEN, KV, D), F(51, LEN, KV, D),
                          slots, KV, D, IG_F16);
}

/* Rows [first, first + n) of a fixed set of queries, all in sequence 0. */
static ig_array attend(ig_array pool, int64_t first, int64_t n)
{
    ig_array q =
        ig_slice(F(52, 40, HEADS, D), DIMS(first, 0, 0), DIMS(first + n, HEADS, D), DIMS(1, 1, 1));
    ig_array positions =
        ig_add(ig_arange((double)first, (double)(first + n), 1, IG_I32), ig_scalar_i32(LEN - 40));
    ig_array pages = ig_reshape(ig_arange(0, PAGES, 1, IG_I32), DIMS(1, PAGES));
    return ig_paged_attention(q, pool, pages, ig_full(&n, 1, 0, IG_I32), positions, KV, IG_F16,
                              0.125);
}

TEST(attention_of_a_row_does_not_depend_on_its_neighbours_or_on_how_splits_are_shared_out)
{
    static const int threads[] = {1, 3, 16};
    int before = ig_device_threads();
    ig_array pool = filled_pool();
    assert_ok(ig_device_set_threads(1));
    ig_array want = attend(pool, 0, 40);
    assert_ok(ig_eval(&want, 1));
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        assert_ok(ig_device_set_threads(threads[t]));
        for (int64_t n = 1; n <= 40; n += n < 4 ? 1 : 9)
            for (int64_t first = 0; first + n <= 40; first += 13)
                arrays_same_bits(
                    attend(pool, first, n),
                    ig_slice(want, DIMS(first, 0, 0), DIMS(first + n, HEADS, D), DIMS(1, 1, 1)),
                    "attention");
    }
    assert_ok(ig_device_set_threads(before));
}

/* --- indices outside */

static void all_nan(ig_array a)
{
    double *v = arrays_f64(a);
    for (int64_t i = 0; i < ig_size(a); i++) assert_true(v[i] != v[i]);
    free(v);
}

TEST(indices_outside_read_nan_or_zero_and_write_nothing)
{
    ig_array x = SHAPED(F32(1, 2, 3, 4, 5, 6), 3, 2), ints = I32(10, 20, 30),
             far = I32(3, -4, 2147483647, -2147483647 - 1);
    all_nan(ig_take(x, far, 0));
    assert_elements(ig_take(ints, far, 0), 0, 0, 0, 0);
    assert_elements(ig_take(ints, I32(-1, -3, 2), 0), 30, 10, 30);
    all_nan(ig_take_quantized(table(IG_F16, 64, 4), I32(130, -1, 1 << 30)));
    assert_elements(ig_put_rows(x, far, ig_full(DIMS(4, 2), 9, IG_F32)), 1, 2, 3, 4, 5, 6);
    assert_elements(ig_put_rows(ints, I32(0, 0, -1), I32(1, 2, 3)), 2, 20, 3);
    all_nan(ig_rope(F(60, 2, 1, 8), I32(-1, 5), F(61, 5, 2, 4), false));
}

TEST(a_row_of_attention_that_points_outside_is_nan_and_the_others_are_right)
{
    ig_array pool = filled_pool(), q = F(52, 6, HEADS, D);
    ig_array pages = I32(0, 1, 2, 3, PAGES, 1, 2, 3, -1, 1, 2, 3);
    ig_array seq = I32(0, 1, 2, 3, -1, 0), positions = I32(200, 200, 200, 200, 200, 256);
    double *v = arrays_f64(
        ig_paged_attention(q, pool, SHAPED(pages, 3, 4), seq, positions, KV, IG_F16, 0.125));
    double *good = arrays_f64(ig_paged_attention(q, pool, SHAPED(I32(0, 1, 2, 3), 1, 4),
                                                 ig_full(DIMS(6), 0, IG_I32),
                                                 ig_full(DIMS(6), 200, IG_I32), KV, IG_F16, 0.125));
    for (int i = 0; i < 6 * HEADS * D; i++)
        if (i < HEADS * D)
            assert_true(v[i] == good[i]);
        else
            assert_true(v[i] != v[i]);
    free(v);
    free(good);
}

TEST(a_slot_outside_the_pool_is_written_nowhere)
{
    int64_t dims[2] = {2, 2 * 64 * 8 * 4};
    ig_array pool = ig_full(dims, 2, 3, IG_U8), k = F(62, 3, 1, 8);
    arrays_same_bits(ig_paged_write(pool, k, k, I32(-1, 128, 2147483647), 1, 8, IG_F32), pool,
                     "pool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(instruction_sets_and_threads_do_not_show_in_any_bit),
        ARRAY_CASE(strides_do_not_show_in_any_bit),
        ARRAY_CASE(
            attention_of_a_row_does_not_depend_on_its_neighbours_or_on_how_splits_are_shared_out),
        ARRAY_CASE(indices_outside_read_nan_or_zero_and_write_nothing),
        ARRAY_CASE(a_row_of_attention_that_points_outside_is_nan_and_the_others_are_right),
        ARRAY_CASE(a_slot_outside_the_pool_is_written_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
