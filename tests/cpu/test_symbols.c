/* test_symbols.c: steps in a plan, whose first dimension is a row symbol: for every actual count
 * (0 and the capacity too) the bytes are those of the same operations on arrays of that size.
 * And: lowering under failing allocations. */
#include <string.h>
#include "ingot/device.h"
#include "ingot/quant.h"
#include "ingot/transform.h"
#include "support/arrays.h"
#include "support/test.h"
#include "support/walk.h"

enum { CAP = 300, OUT_CAP = 9, K = 384, N = 70 };

#define F(seed, ...) arrays_spread(IG_F32, DIMS(__VA_ARGS__), -3, 3, seed)
#define NONE ((ig_array){0})

static ig_quantized matrix(int64_t n, int32_t group, int32_t bits)
{
    return ig_quantize(arrays_spread(IG_F16, DIMS(n, K), -1, 1, 77), group, bits);
}

/* --- functions of x [T, K] f32, ids i32 [T], rows i32 [O] */

typedef ig_array (*function)(ig_array x, ig_array ids, ig_array rows);
#define FN(name, value)                                           \
    static ig_array name(ig_array x, ig_array ids, ig_array rows) \
    {                                                             \
        (void)x, (void)ids, (void)rows;                           \
        return value;                                             \
    }
#define HEADS ig_reshape(x, DIMS(-1, 6, 64))
#define RECORDS(group) ig_int8_rows(ig_rms_norm(x, F(1, K), 1e-5), group)

FN(elementwise, ig_where(ig_less(x, ig_scalar_f32(0)), ig_exp(x), ig_multiply(x, F(2, K))))
FN(half_chain, ig_astype(ig_add(ig_astype(x, IG_BF16), ig_astype(F(2, K), IG_BF16)), IG_F32))
FN(by_row, ig_multiply(x, ig_expand_dims(ig_astype(ids, IG_F32), AXES(1))))
FN(sum_rows, ig_sum(x, AXES(1), false))
FN(sum_of_all_rows, ig_sum(x, AXES(0), false))
FN(sum_of_all, ig_sum(x, NO_AXES, false))
FN(any_row, ig_any(ig_greater(x, ig_scalar_f32(2)), AXES(0), true))
FN(largest_of_all_rows, ig_max(x, AXES(0), false))
FN(logsumexp_rows, ig_logsumexp(x, AXES(1), true))
FN(softmax_rows, ig_softmax(x, 1))
FN(softmax_heads, ig_softmax(HEADS, 1))
FN(argmax_rows, ig_argmax(x, 1, false))
FN(cumsum_rows, ig_cumsum(x, 1, true, true))
FN(sorted, ig_sort(x, 1))
FN(top, ig_topk(x, 5, 1))
FN(normed, ig_layer_norm(x, F(1, K), NONE, 1e-5))
FN(rope, ig_rope(HEADS, ids, F(3, 40, 2, 32), false))
FN(product, ig_matmul(x, F(4, K, N)))
FN(product_of_views, ig_matmul(ig_transpose(HEADS, AXES(0, 2, 1)), HEADS))
FN(exact, ig_quantized_matmul(x, matrix(N, 64, 4), true))
FN(int8_product, ig_quantized_matmul_rows8(RECORDS(64), matrix(N, 64, 4)))
FN(int8_product_and_residual, ig_add(x, ig_quantized_matmul_rows8(RECORDS(128), matrix(K, 32, 8))))
FN(gated_records, ig_int8_rows(ig_multiply(ig_silu(x), F(2, K)), 32).rec)
FN(looked_up, ig_take_quantized(matrix(30, 32, 6), ids))
FN(chosen, ig_take(x, rows, 0))
FN(chosen_from_table, ig_take(F(5, 30, 7), ids, 0))
FN(along, ig_take_along_axis(x, ig_expand_dims(ids, AXES(1)), 1))
FN(joined, ig_concatenate((const ig_array[]){x, ig_negative(x)}, 2, 1))
FN(put, ig_put_rows(F(6, 30, K), ids, x))
FN(attention, ig_sdpa(ig_reshape(x, DIMS(-1, 2, 3, 64)), ig_reshape(x, DIMS(-1, 1, 6, 64)),
                      ig_reshape(x, DIMS(-1, 1, 6, 64)), NONE, 0.1, true))

static const struct {
    const char *name;
    function f;
} functions[] = {
#define C(fn) .name = #fn, .f = fn
    {C(elementwise)},
    {C(half_chain)},
    {C(by_row)},
    {C(sum_rows)},
    {C(sum_of_all_rows)},
    {C(sum_of_all)},
    {C(any_row)},
    {C(largest_of_all_rows)},
    {C(logsumexp_rows)},
    {C(softmax_rows)},
    {C(softmax_heads)},
    {C(argmax_rows)},
    {C(cumsum_rows)},
    {C(sorted)},
    {C(top)},
    {C(normed)},
    {C(rope)},
    {C(product)},
    {C(product_of_views)},
    {C(exact)},
    {C(int8_product)},
    {C(int8_product_and_residual)},
    {C(gated_records)},
    {C(looked_up)},
    {C(chosen)},
    {C(chosen_from_table)},
    {C(along)},
    {C(joined)},
    {C(put)},
    {C(attention)},
#undef C
};

static ig_status trace(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    *out = (*(const function *)user)(in[0], in[1], in[2]);
    return ig_is_empty(*out) ? ig_error_code() : IG_OK;
}

static ig_status compile(const function *f, ig_plan **ret_plan)
{
    static const ig_symbol symbols[] = {{"T", CAP}, {"O", OUT_CAP}};
    static const ig_input inputs[] = {
        {"x", IG_F32, 2, {0, K}, 0}, {"ids", IG_I32, 1, {0}, 0}, {"rows", IG_I32, 1, {0}, 1}};
    const ig_plan_spec spec = {
        .symbols = symbols, .n_symbols = 2, .inputs = inputs, .n_inputs = 3, .n_outputs = 1};
    return ig_compile(trace, (void *)(uintptr_t)f, &spec, ret_plan);
}

/* Inputs of T and O rows, as arrays and in the plan. A row index that is outside T is part of
 * the test. */
static void set_inputs(ig_plan *p, int64_t t, int64_t o, ig_array *in)
{
    in[0] = arrays_spread(IG_F32, (const int64_t[]){t, K}, 2, -4, 4, 5);
    in[1] = ig_remainder(ig_arange(0, (double)t, 1, IG_I32), ig_scalar_i32(30));
    in[2] = ig_arange(-1, (double)o - 1, 1, IG_I32);
    for (int i = 0; i < 3; i++) {
        const void *data;
        assert_ok(ig_data(in[i], &data));
        memcpy(ig_plan_input(p, i), data, (size_t)ig_nbytes(in[i]));
    }
}

static void check(size_t i)
{
    static const int64_t counts[][2] = {{CAP, 4}, {1, 1}, {0, 0}, {7, OUT_CAP}, {64, 2}};
    ig_plan *p;
    if (compile(&functions[i].f, &p) != IG_OK)
        fail_msg("%s: %s", functions[i].name, ig_error_message());
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        ig_array in[3];
        const void *want;
        bool undefined =
            counts[c][0] == 0 && functions[i].f == largest_of_all_rows; /* eagerly an error */
        set_inputs(p, counts[c][0], counts[c][1], in);
        assert_ok(ig_plan_replay(p, counts[c], 2));
        if (undefined) continue;
        ig_array eager = functions[i].f(in[0], in[1], in[2]);
        if (ig_is_empty(eager) || ig_data(eager, &want) != IG_OK)
            fail_msg("%s: %s", functions[i].name, ig_error_message());
        if (memcmp(ig_plan_output(p, 0), want, (size_t)ig_nbytes(eager)))
            fail_msg("%s: with %d rows the plan gives other bytes", functions[i].name,
                     (int)counts[c][0]);
    }
    ig_plan_free(p);
}

TEST(a_plan_gives_the_bytes_of_arrays_of_the_actual_size)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) check(i);
}

TEST(threads_and_instruction_sets_do_not_show_in_plans)
{
    int before = ig_device_threads();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        assert_ok(ig_device_set_threads(isa == ig_device_isas() ? 3 : 1));
        check(21);
        check(26);
        check(4);
    }
    assert_ok(ig_device_set_isa(ig_device_isas()[0]));
    assert_ok(ig_device_set_threads(before));
}

static ig_status compile_and_replay(void *user)
{
    const int64_t counts[2] = {3, 2};
    ig_plan *p = NULL;
    ig_status st = compile(user, &p);
    if (st == IG_OK) st = ig_plan_replay(p, counts, 2);
    ig_plan_free(p);
    ig_memory_clear_cache();
    return st;
}

/* One thread: a new one frees its start argument whenever it gets to it. */
TEST(a_lowering_without_memory_fails_and_leaves_nothing)
{
    /* those that need no constant, which would be made inside */
    static const function plain[] = {
        sum_of_all_rows,  logsumexp_rows, softmax_heads, argmax_rows, cumsum_rows, sorted, top,
        product_of_views, chosen,         along,         joined,      attention,   by_row};
    int before = ig_device_threads();
    assert_ok(ig_device_set_threads(1));
    assert_ok(compile_and_replay((void *)(uintptr_t)&plain[0]));
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        assert_true(walk_memory(compile_and_replay, (void *)(uintptr_t)&plain[i]) > 3);
    assert_ok(ig_device_set_threads(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(a_plan_gives_the_bytes_of_arrays_of_the_actual_size),
        ARRAY_CASE(threads_and_instruction_sets_do_not_show_in_plans),
        CASE(a_lowering_without_memory_fails_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
