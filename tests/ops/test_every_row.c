/* Every row of ops.def, from a table of sample calls: each instruction set gives the bits of
 * ref; strided inputs give the bits of dense ones; a plan over a row symbol gives the bits of
 * the eager call for none, some and all rows, fused or not; a missing input gives an empty
 * output; every failing allocation is reported and leaks nothing. A row without a sample fails. */
#include "array/core/node.h"
#include "array/core/paged.h"
#include "array/fuse/group.h"
#include "ingot/device.h"
#include "ingot/quant.h"
#include "ingot/transform.h"
#include "support/arrays.h"
#include "support/test.h"
#include "support/walk.h"

#define CAP 9 /* rows: the capacity of the symbol */
#define MAX_IN 5
static const int64_t row_counts[] = {CAP, 0, 1, 4};

typedef struct sample_in {
    bool rows; /* dim[0] is CAP and may be a row symbol */
    ig_dtype dtype;
    double lo, hi; /* values */
    int ndim;
    int64_t dim[4];
} sample_in;

typedef struct sample {
    op_code op;
    ig_array (*build)(const ig_array *in);

    int n_in;
    sample_in in[MAX_IN];
} sample;

#define N_ARGS(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define ROWS(t, lo, hi, ...)                                            \
    {                                                                   \
        true, t, lo, hi, N_ARGS(CAP, __VA_ARGS__), { CAP, __VA_ARGS__ } \
    }
#define ROW_VECTOR(t, lo, hi)       \
    {                               \
        true, t, lo, hi, 1, { CAP } \
    }
#define FIXED(t, lo, hi, ...)                                  \
    {                                                          \
        false, t, lo, hi, N_ARGS(__VA_ARGS__), { __VA_ARGS__ } \
    }
#define X ROWS(IG_F32, -2, 2, 4, 70)
#define MATRIX ROWS(IG_F32, -2, 2, 256)

#define a in[0]
#define b in[1]
#define c in[2]
#define d in[3]
#define NO ((ig_array){0})

static ig_quantized quantised(ig_array w) { return ig_quantize(w, 64, 4); }
static int64_t rows_of(ig_array x) { return ig_dim(x, 0); }

/* SAMPLE(name, expression over a, b, c, d; inputs...) */
#define SAMPLES(SAMPLE)                                                                           \
    SAMPLE(arange, ig_add(ig_arange(0, 4, 1, IG_F32), a), ROWS(IG_F32, -2, 2, 4))                 \
    SAMPLE(full, ig_add(ig_full(DIMS(4), 3, IG_F32), a), ROWS(IG_F32, -2, 2, 4))                  \
    SAMPLE(tri, ig_matmul(a, ig_tri(4, 5, 1, IG_F32)), ROWS(IG_F32, -2, 2, 4))                    \
    SAMPLE(reshape, ig_exp(ig_reshape(a, DIMS(rows_of(a), 70, -1))), X)                           \
    SAMPLE(transpose, ig_exp(ig_transpose(a, AXES(0, 2, 1))), X)                                  \
    SAMPLE(slice, ig_slice(a, DIMS(0, 3, 60), DIMS(rows_of(a), 0, 2), DIMS(1, -1, -3)), X)        \
    SAMPLE(broadcast_to, ig_broadcast_to(a, DIMS(rows_of(a), 4, 70)), ROWS(IG_F32, -2, 2, 1, 70)) \
    SAMPLE(expand_dims, ig_exp(ig_expand_dims(a, AXES(1, -1))), X)                                \
    SAMPLE(squeeze, ig_exp(ig_squeeze(a, AXES(1))), ROWS(IG_F32, -2, 2, 1, 70))                   \
    SAMPLE(contiguous, ig_contiguous(ig_transpose(a, AXES(0, 2, 1))), X)                          \
    SAMPLE(concatenate, ig_concatenate((ig_array[]){a, b, a}, 3, 1), X,                           \
           ROWS(IG_I16, -9, 9, 2, 70))                                                            \
    SAMPLE(sum, ig_sum(a, AXES(0, 2), true), X)                                                   \
    SAMPLE(prod, ig_prod(a, AXES(1), false), ROWS(IG_F32, 0.9, 1.1, 4, 7))                        \
    SAMPLE(mean, ig_mean(a, AXES(-1), false), X)                                                  \
    SAMPLE(max, ig_max(a, AXES(1), false), X)                                                     \
    SAMPLE(min, ig_min(a, AXES(1, 2), false), ROWS(IG_BF16, -2, 2, 4, 70))                        \
    SAMPLE(all, ig_all(a, AXES(-1), false), ROWS(IG_U8, 0, 3, 3))                                 \
    SAMPLE(any, ig_any(a, AXES(-1), false), ROWS(IG_I32, 0, 3, 3))                                \
    SAMPLE(logsumexp, ig_logsumexp(a, AXES(-1), true), X)                                         \
    SAMPLE(argmax, ig_argmax(a, -1, false), X)                                                    \
    SAMPLE(argmin, ig_argmin(a, 1, true), X)                                                      \
    SAMPLE(softmax, ig_softmax(a, -1), X)                                                         \
    SAMPLE(cumsum, ig_cumsum(a, -1, true, false), X)                                              \
    SAMPLE(sort, ig_sort(a, -1), X)                                                               \
    SAMPLE(argsort, ig_argsort(a, 1), X)                                                          \
    SAMPLE(topk, ig_topk(a, 5, -1), X)                                                            \
    SAMPLE(take, ig_take(a, b, 0), FIXED(IG_F16, -2, 2, 11, 5), ROWS(IG_I32, -12, 12, 2))         \
    SAMPLE(take_along_axis, ig_take_along_axis(a, b, 2), X, ROWS(IG_I64, -70, 70, 4, 6))          \
    SAMPLE(put_rows, ig_put_rows(a, b, c), FIXED(IG_F32, -2, 2, 6, 5), ROW_VECTOR(IG_I32, -7, 7), \
           ROWS(IG_F32, -2, 2, 5))                                                                \
    SAMPLE(slice_update,                                                                          \
           ig_slice_update(a, b, DIMS(0, 1, 9), DIMS(rows_of(a), 3, 69), DIMS(1, 1, 2)), X,       \
           ROWS(IG_F32, -2, 2, 2, 30))                                                            \
    SAMPLE(matmul, ig_matmul(a, b), MATRIX, FIXED(IG_F32, -2, 2, 256, 33))                        \
    SAMPLE(quantize, quantised(a).codes, MATRIX)                                                  \
    SAMPLE(dequantize, ig_dequantize(quantised(a)), MATRIX)                                       \
    SAMPLE(quantized_matmul, ig_quantized_matmul(a, quantised(b), true), MATRIX,                  \
           FIXED(IG_F16, -2, 2, 33, 256))                                                         \
    SAMPLE(int8_rows, ig_int8_rows(a, 64).rec, MATRIX)                                            \
    SAMPLE(quantized_matmul_rows8,                                                                \
           ig_add(ig_quantized_matmul_rows8(ig_int8_rows(a, 128), quantised(b)), c), MATRIX,      \
           FIXED(IG_BF16, -2, 2, 33, 256), ROWS(IG_F32, -2, 2, 33))                               \
    SAMPLE(take_quantized, ig_take_quantized(quantised(a), b), FIXED(IG_F32, -2, 2, 12, 128),     \
           ROW_VECTOR(IG_I32, -3, 14))                                                            \
    SAMPLE(random_bits, ig_random_bits(a, DIMS(3, 5)), ROWS(IG_U32, 0, 4e9, 2))                   \
    SAMPLE(random_split, ig_random_split(a, 3), ROWS(IG_U32, 0, 4e9, 2))                          \
    SAMPLE(random_uniform, ig_random_uniform(a, DIMS(7)), ROWS(IG_U32, 0, 4e9, 2))                \
    SAMPLE(random_categorical, ig_random_categorical(a, b, -1), ROWS(IG_U32, 0, 4e9, 2),          \
           ROWS(IG_F32, -2, 2, 50))                                                               \
    SAMPLE(rms_norm, ig_rms_norm(a, b, 1e-5), X, FIXED(IG_F16, 0.5, 2, 70))                       \
    SAMPLE(layer_norm, ig_layer_norm(a, b, c, 1e-5), X, FIXED(IG_F32, 0.5, 2, 70),                \
           FIXED(IG_F32, -1, 1, 70))                                                              \
    SAMPLE(rope, ig_rope(a, b, c, false), ROWS(IG_F32, -2, 2, 3, 16), ROW_VECTOR(IG_I32, 0, 20),  \
           FIXED(IG_F32, -1, 1, 20, 2, 8))                                                        \
    SAMPLE(sdpa, ig_sdpa(a, b, b, NO, 0.3, true), ROWS(IG_F32, -2, 2, 4, 3, 16),                  \
           ROWS(IG_F32, -2, 2, 2, 5, 16))                                                         \
    SAMPLE(paged_write, ig_paged_write(a, b, b, c, 2, 8, IG_I8), FIXED(IG_U8, 0, 9, 2, 3072),     \
           ROWS(IG_F32, -2, 2, 2, 8), ROW_VECTOR(IG_I32, -3, 128))                                \
    SAMPLE(paged_attention,                                                                       \
           ig_paged_attention(a, ig_full(DIMS(3, 4096), 0, IG_U8), b,                             \
                              ig_astype(ig_greater(c, ig_scalar_i32(999)), IG_I32), c, 2, IG_F16, \
                              0.3),                                                               \
           ROWS(IG_F32, -2, 2, 4, 8), FIXED(IG_I32, 0, 3, 1, 3), ROW_VECTOR(IG_I32, 0, 192))

#define BUILD(name, expr, ...) \
    static ig_array build_##name(const ig_array *in) { return expr; }
SAMPLES(BUILD)
#undef a
#undef b
#undef c
#undef d
#define ENTRY(name, expr, ...)                               \
    {OP_##name,                                              \
     build_##name,                                           \
     sizeof((sample_in[]){__VA_ARGS__}) / sizeof(sample_in), \
     {__VA_ARGS__}},
static const sample table[] = {SAMPLES(ENTRY)};

/* Elementwise rows get a sample from their arity alone. */
static op_code current; /* of build_elementwise */
static ig_array build_elementwise(const ig_array *in)
{
    op_call call = {.op = current};
    for (size_t k = 0; k < strlen(op_table[current].in_kinds); k++) call_in(&call, in[k]);
    if (current == OP_astype) call_int(&call, IG_F16);
    return node_apply(&call);
}

static sample elementwise_sample(op_code op)
{
    bool bits = strcmp(op_table[op].rule_name, "bitwise") == 0;
    ig_dtype t = bits ? IG_I32 : IG_F32;
    sample s = {op,
                build_elementwise,
                (int)strlen(op_table[op].in_kinds),
                {ROWS(t, 0.25, 5, 4, 70), FIXED(t, 0.25, 5, 70), ROWS(t, 0.25, 5, 1, 70)}};
    return s;
}

static void for_every_row(void (*check)(const sample *s))
{
    for (int op = 0; op < N_OPS; op++) {
        const sample *found = NULL;
        sample made;
        if (strcmp(op_table[op].rule_name, "leaf") == 0) continue;
        for (size_t i = 0; i < N_ELEM(table); i++)
            if ((int)table[i].op == op) found = &table[i];
        if (!found && group_is_elementwise((uint16_t)op)) {
            current = (op_code)op;
            made = elementwise_sample(current);
            found = &made;
        }
        if (!found) fail_msg("%s has no sample", op_table[op].name);
        ig_scope *scope = ig_scope_open();
        check(found);
        assert_ok(ig_scope_close(scope));
    }
}

static ig_array make_input(const sample_in *in, int64_t n_rows, uint32_t seed)
{
    ig_array all = arrays_spread(in->dtype, in->dim, in->ndim, in->lo, in->hi, seed);
    if (!in->rows || n_rows == CAP) return all;
    int64_t start[4] = {0}, stop[4], one[4] = {1, 1, 1, 1};
    memcpy(stop, in->dim, sizeof stop);
    stop[0] = n_rows;
    return ig_contiguous(ig_slice(all, start, in->ndim, stop, in->ndim, one, in->ndim));
}

static ig_array call(const sample *s, int64_t n_rows)
{
    ig_array in[MAX_IN];
    for (int k = 0; k < s->n_in; k++) in[k] = make_input(&s->in[k], n_rows, (uint32_t)k + 1);
    ig_array y = s->build(in);
    if (ig_is_empty(y)) fail_msg("%s: %s", op_table[s->op].name, ig_error_message());
    return y;
}

/* --- instruction sets */

static void check_isas(const sample *s)
{
    const char *first = ig_device_isa();
    ig_array want = {0};
    assert_ok(ig_device_set_isa("ref"));
    want = call(s, CAP);
    assert_ok(ig_eval(&want, 1));
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        arrays_same_bits(call(s, CAP), want, op_table[s->op].name);
    }
    assert_ok(ig_device_set_isa(first));
}

TEST(every_instruction_set_gives_the_bits_of_ref) { for_every_row(check_isas); }

/* --- strides */

/* The same values behind reversed and gapped strides. */
static ig_array strided(ig_array x)
{
    int64_t first[5], stop[5], back[5], wide[5] = {0};
    int n = ig_ndim(x), axes[5];
    for (int i = 0; i < n; i++) {
        wide[i] = ig_dim(x, i);
        axes[i] = n - 1 - i;
        first[i] = wide[i] - 1;
        stop[i] = -wide[i] - 1;
        back[i] = -1;
    }
    ig_array reversed = ig_contiguous(ig_slice(x, first, n, stop, n, back, n));
    ig_array turned = ig_contiguous(ig_transpose(reversed, axes, n)); /* columns first, backwards */
    return ig_slice(ig_transpose(turned, axes, n), first, n, stop, n, back, n);
}

static void check_strides(const sample *s)
{
    ig_array in[MAX_IN];
    for (int k = 0; k < s->n_in; k++) in[k] = strided(make_input(&s->in[k], CAP, (uint32_t)k + 1));
    arrays_same_bits(s->build(in), call(s, CAP), op_table[s->op].name);
}

TEST(strided_inputs_give_the_bits_of_dense_ones) { for_every_row(check_strides); }

/* --- plans */

static ig_status trace_sample(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in;
    (void)n_out;
    *out = ((const sample *)user)->build(in);
    return ig_is_empty(*out) ? ig_error_code() : IG_OK;
}

static ig_plan *compile(const sample *s, bool fuse)
{
    static const ig_symbol symbol = {"T", CAP};
    ig_input inputs[MAX_IN];
    ig_plan_spec function = {&symbol, 1, inputs, s->n_in, 1, !fuse};
    ig_plan *p = NULL;
    for (int k = 0; k < s->n_in; k++) {
        inputs[k] = (ig_input){"x", s->in[k].dtype, s->in[k].ndim, {0}, s->in[k].rows ? 0 : -1};
        memcpy(inputs[k].dims, s->in[k].dim, sizeof s->in[k].dim);
    }
    if (ig_compile(trace_sample, (void *)(uintptr_t)s, &function, &p) != IG_OK)
        fail_msg("%s: %s", op_table[s->op].name, ig_error_message());
    return p;
}

static void check_replay(const sample *s, ig_plan *p, int64_t n_rows)
{
    ig_array want = call(s, n_rows);
    for (int k = 0; k < s->n_in; k++) {
        const void *data;
        ig_array x = make_input(&s->in[k], n_rows, (uint32_t)k + 1);
        assert_ok(ig_data(x, &data));
        if (ig_nbytes(x)) memcpy(ig_plan_input(p, k), data, (size_t)ig_nbytes(x));
    }
    assert_ok(ig_plan_replay(p, &n_rows, 1));
    int64_t dims[IG_MAX_NDIM];
    for (int i = 0; i < ig_ndim(want); i++) dims[i] = ig_dim(want, i);
    char what[96];
    snprintf(what, sizeof what, "%s in a plan, %lld rows", op_table[s->op].name, (long long)n_rows);
    arrays_same_bits(ig_array_copy(ig_plan_output(p, 0), ig_type(want), dims, ig_ndim(want)), want,
                     what);
}

static void check_plans(const sample *s)
{
    for (int fuse = 0; fuse < 2; fuse++) {
        ig_plan *p = compile(s, fuse);
        for (size_t k = 0; k < N_ELEM(row_counts); k++) {
            bool nothing =
                s->op == OP_max || s->op == OP_min; /* of no rows: an error when called */
            if (row_counts[k] || !nothing) check_replay(s, p, row_counts[k]);
        }
        ig_plan_free(p);
    }
}

TEST(plans_over_a_row_symbol_give_the_bits_of_calls) { for_every_row(check_plans); }

/* --- missing inputs, memory */

static void check_missing(const sample *s)
{
    for (int k = 0; k < s->n_in; k++) {
        ig_array in[MAX_IN];
        for (int j = 0; j < s->n_in; j++) in[j] = make_input(&s->in[j], CAP, (uint32_t)j + 1);
        in[k] = (ig_array){0};
        const char *kinds = op_table[s->op].in_kinds;
        bool optional = k < (int)strlen(kinds) && kinds[k] == 'o';
        ig_array y = s->build(in);
        if (ig_is_empty(y) == optional)
            fail_msg("%s, input %d: %s", op_table[s->op].name, k, ig_error_message());
        assert_int_equal(ig_error_code(), IG_OK);
    }
}

TEST(a_missing_input_gives_an_empty_output_unless_it_is_optional) { for_every_row(check_missing); }

static ig_status evaluate(void *user)
{
    const sample *s = user;
    ig_array in[MAX_IN], y, r = {0};
    ig_scope *scope = ig_scope_open();
    if (!scope) return IG_ENOMEM;
    for (int k = 0; k < s->n_in; k++)
        in[k] = ig_full(s->in[k].dim, s->in[k].ndim, s->in[k].hi / 2, s->in[k].dtype);
    y = s->build(in);
    ig_status st = ig_scope_eval(scope, &y, 1, &r);
    ig_drop(&r);
    return st;
}

static void check_memory(const sample *s)
{
    assert_ok(evaluate((void *)(uintptr_t)s));
    walk_memory(evaluate, (void *)(uintptr_t)s);
}

/* Without an enclosing scope: results are held and dropped. */
TEST(every_failing_allocation_is_reported_and_leaks_nothing)
{
    ig_memory_set_cache_limit(0);
    for (size_t i = 0; i < N_ELEM(table); i++) check_memory(&table[i]);
    current = OP_add;
    sample add = elementwise_sample(OP_add);
    check_memory(&add);
    ig_memory_set_cache_limit(256 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(every_instruction_set_gives_the_bits_of_ref),
        ARRAY_CASE(strided_inputs_give_the_bits_of_dense_ones),
        ARRAY_CASE(plans_over_a_row_symbol_give_the_bits_of_calls),
        ARRAY_CASE(a_missing_input_gives_an_empty_output_unless_it_is_optional),
        CASE(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
