/* Row symbols and versions of states: what shape rules and traces allow. */
#include "array/core/trace.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include "ingot/quant.h"
#include "support/arrays.h"
#include "support/test.h"

static const ig_symbol symbols[2] = {{"T", 8}, {"S", 8}};
static trace *t;

static int open_trace(void **state)
{
    return arrays_setup(state) || trace_begin(symbols, 2, &t) != IG_OK ? -1 : 0;
}

static int close_trace(void **state)
{
    trace_free(t);
    t = NULL;
    return arrays_teardown(state);
}
#define TRACE_CASE(name) cmocka_unit_test_setup_teardown(name, open_trace, close_trace)

/* An input of shape [symbol, rest...]; sym 0: fixed. */
static ig_array input(ig_dtype dtype, int sym, const int64_t *dims, int ndim)
{
    spec s;
    assert_ok(shape_make("test", dtype, dims, ndim, &s));
    s.sym = (int8_t)sym;
    return trace_input(t, &s, 0);
}
#define T_BY(...) input(IG_F32, 1, DIMS(8, __VA_ARGS__))
#define S_BY(...) input(IG_F32, 2, DIMS(8, __VA_ARGS__))

static int symbol_of(ig_array a)
{
    if (ig_is_empty(a)) fail_msg("empty: %s", ig_error_message());
    return node_spec(a)->sym;
}

TEST(a_symbol_survives_what_keeps_its_rows)
{
    ig_array x = T_BY(4, 6), w = ig_full(DIMS(6, 3), 1, IG_F32);
    ig_array kept[] = {
        ig_exp(x),
        ig_add(x, ig_scalar_f32(1)),
        ig_multiply(ig_full(DIMS(6), 1, IG_F32), x),
        ig_add(x, x),
        ig_matmul(x, w),
        ig_sum(x, AXES(-1), false),
        ig_reshape(x, DIMS(-1, 24)),
        ig_reshape(x, DIMS(8, 2, -1)),
        ig_transpose(x, AXES(0, 2, 1)),
        ig_slice(x, DIMS(0, 1, 0), DIMS(8, 3, 6), DIMS(1, 1, 2)),
        ig_expand_dims(x, AXES(1)),
        ig_softmax(x, -1),
        ig_rms_norm(x, (ig_array){0}, 1e-5),
        ig_concatenate((ig_array[]){x, x}, 2, 1),
        ig_astype(x, IG_F16),
        ig_take(x, I32(1, 2), 1),
        ig_broadcast_to(ig_reshape(x, DIMS(8, 4, 6, 1)), DIMS(8, 4, 6, 5)),
        ig_contiguous(x),
        ig_sort(x, 2),
        ig_where(ig_greater(x, ig_scalar_f32(0)), x, ig_scalar_f32(0)),
        ig_take(ig_full(DIMS(99, 5), 1, IG_F32), ig_astype(ig_reshape(T_BY(1), DIMS(8)), IG_I32),
                0),
        ig_matmul(ig_reshape(x, DIMS(8, 24)), ig_full(DIMS(24, 2), 1, IG_F32)),
        ig_int8_rows(ig_reshape(x, DIMS(8, 24)), 32).rec,
    };
    for (size_t i = 0; i < N_ELEM(kept); i++) {
        if (symbol_of(kept[i]) != 1) fail_msg("case %zu lost the symbol", i);
        assert_int_equal(ig_dim(kept[i], 0), 8);
    }
    assert_int_equal(symbol_of(ig_sum(x, AXES(0), false)), 0);
    assert_int_equal(symbol_of(ig_sum(x, NO_AXES, true)), 0);
}

TEST(a_symbol_never_meets_another_or_a_fixed_size)
{
    assert_refused(ig_add(T_BY(4), S_BY(4)), IG_ESHAPE,
                   "float32 [T<=8, 4] and b float32 [S<=8, 4]");
    assert_refused(ig_add(T_BY(4), ig_full(DIMS(8, 4), 1, IG_F32)), IG_ESHAPE,
                   "meets only itself or 1");
    assert_int_equal(symbol_of(ig_add(T_BY(4), ig_full(DIMS(1, 4), 1, IG_F32))), 1);
    assert_refused(ig_add(ig_reshape(T_BY(1), DIMS(8)), T_BY(8)), IG_ESHAPE, "do not broadcast");
    assert_refused(ig_matmul(ig_full(DIMS(3, 8), 1, IG_F32), T_BY(4)), IG_ESHAPE, "row symbol");
}

TEST(a_symbol_stays_the_first_dimension_whole_and_in_order)
{
    ig_array x = T_BY(4, 6), v = ig_reshape(T_BY(1), DIMS(8));
    assert_refused(ig_reshape(x, DIMS(4, 48)), IG_ESHAPE,
                   "reshape: argument a is float32 [T<=8, 4, 6]");
    assert_refused(ig_reshape(x, DIMS(32, 6)), IG_ESHAPE, "must stay the first");
    assert_refused(ig_reshape(x, DIMS(-1)), IG_ESHAPE, "do not fill");
    assert_refused(ig_transpose(x, NO_AXES), IG_ESHAPE, "must stay the first");
    assert_refused(ig_slice(x, DIMS(1, 0, 0), DIMS(8, 4, 6), DIMS(1, 1, 1)), IG_ESHAPE,
                   "must stay");
    assert_refused(ig_slice(x, DIMS(7, 0, 0), DIMS(-9, 4, 6), DIMS(-1, 1, 1)), IG_ESHAPE,
                   "must stay");
    assert_refused(ig_expand_dims(x, AXES(0)), IG_ESHAPE, "must stay");
    assert_refused(ig_broadcast_to(x, DIMS(2, 8, 4, 6)), IG_ESHAPE, "must stay");
    assert_refused(ig_concatenate((ig_array[]){x, x}, 2, 0), IG_ESHAPE, "row symbol");
    assert_refused(ig_sort(v, 0), IG_ESHAPE, "row symbol");
    assert_refused(ig_softmax(v, -1), IG_ESHAPE, "row symbol");
    assert_refused(ig_cumsum(v, 0, false, true), IG_ESHAPE, "row symbol");
    assert_refused(ig_argmax(v, 0, false), IG_ESHAPE, "row symbol");
    assert_refused(ig_take(ig_full(DIMS(5, 9), 1, IG_F32), ig_astype(v, IG_I32), 1), IG_ESHAPE,
                   "row symbol");
    assert_refused(ig_random_categorical(U32(1, 2), T_BY(4), -1), IG_ESHAPE, "a key each");
}

TEST(what_replaces_rows_must_have_their_symbol)
{
    ig_array x = T_BY(4);
    ig_array row = ig_full(DIMS(1, 4), 1, IG_F32);
    assert_refused(ig_slice_update(x, row, DIMS(0, 0), DIMS(8, 4), DIMS(1, 1)), IG_ESHAPE,
                   "slice_update: argument update is float32 [1, 4]: it must have the row symbol");
    assert_int_equal(symbol_of(ig_slice_update(x, T_BY(2), DIMS(0, 1), DIMS(8, 3), DIMS(1, 1))), 1);
    ig_quantized q = ig_quantize(T_BY(64), 64, 4);
    assert_refused(ig_quantized_matmul(ig_full(DIMS(2, 64), 1, IG_F32), q, true), IG_ESHAPE,
                   "cannot be a row symbol");
    assert_refused(ig_matmul(T_BY(4), ig_full(DIMS(3, 4, 2), 1, IG_F32)), IG_ESHAPE,
                   "row symbol would not be the first");
}

TEST(a_dimension_of_size_one_that_is_a_symbol_is_not_squeezed)
{
    static const ig_symbol one[1] = {{"O", 1}};
    trace_free(t);
    assert_ok(trace_begin(one, 1, &t));
    ig_array x = input(IG_F32, 1, DIMS(1, 1, 3));
    assert_dims(ig_squeeze(x, NO_AXES), 1, 3);
    assert_refused(ig_squeeze(x, AXES(0)), IG_ESHAPE, "fixed dimensions");
    assert_int_equal(symbol_of(ig_add(x, ig_full(DIMS(1, 1, 3), 1, IG_F32))), 1);
}

TEST(what_a_trace_made_has_no_value)
{
    ig_array x = T_BY(4), y = ig_exp(x);
    assert_fails(ig_eval(&y, 1), IG_EINVAL, "the result of exp has no value");
    ig_error_clear();
    ig_array c = ig_add(F32(1), F32(2)); /* untraced operations stay ordinary */
    assert_elements(c, 3);
    trace_end(t);
    assert_refused(ig_exp(y), IG_EINVAL, "a trace that is not open");
}

static ig_array state_now(void)
{
    static int which; /* its address stands for a state: the trace only compares it */
    spec s;
    assert_ok(shape_make("test", IG_F32, DIMS(5, 2), &s));
    return trace_state_array(t, (ig_state *)&which, &s);
}

TEST(a_write_consumes_a_version_and_returns_the_next)
{
    ig_array s0 = state_now();
    assert_ptr_equal(state_now().node, s0.node);
    ig_array read = ig_exp(s0), view = ig_slice(s0, DIMS(0, 0), DIMS(2, 2), DIMS(1, 1));
    ig_array s1 = ig_put_rows(s0, I32(1), SHAPED(F32(1, 2), 1, 2));
    assert_false(ig_is_empty(read));
    assert_ptr_equal(state_now().node, s1.node);
    assert_refused(ig_exp(s0), IG_EINVAL,
                   "exp: argument a is a version of a state that put_rows has overwritten");
    assert_refused(ig_exp(view), IG_EINVAL, "overwritten");
    assert_refused(ig_put_rows(s0, I32(1), SHAPED(F32(1, 2), 1, 2)), IG_EINVAL, "overwritten");
    ig_array s2 = ig_slice_update(s1, SHAPED(F32(1, 2), 1, 2), DIMS(0, 0), DIMS(1, 2), DIMS(1, 1));
    assert_false(ig_is_empty(ig_exp(s2)));
    assert_int_equal(t->n_states, 1);
    assert_ptr_equal(t->state[0].now, s2.node);
    assert_int_equal(s2.node->version, 2);
}

TEST(a_view_of_a_state_cannot_be_written_to)
{
    ig_array view = ig_reshape(state_now(), DIMS(10));
    assert_refused(ig_put_rows(view, I32(1), F32(1)), IG_EINVAL, "a view of a state");
}

TEST(nodes_of_a_trace_are_listed_in_the_order_of_making)
{
    ig_array x = T_BY(4), y = ig_exp(x), z = ig_add(y, x);
    assert_int_equal(t->n_nodes, 3);
    assert_ptr_equal(t->node[0], x.node);
    assert_ptr_equal(t->node[1], y.node);
    assert_ptr_equal(t->node[2], z.node);
}

TEST(a_thread_traces_one_function_at_a_time)
{
    trace *second = NULL;
    assert_fails(trace_begin(symbols, 2, &second), IG_EINVAL, "already being traced");
    assert_null(second);
    ig_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_CASE(a_symbol_survives_what_keeps_its_rows),
        TRACE_CASE(a_symbol_never_meets_another_or_a_fixed_size),
        TRACE_CASE(a_symbol_stays_the_first_dimension_whole_and_in_order),
        TRACE_CASE(what_replaces_rows_must_have_their_symbol),
        TRACE_CASE(a_dimension_of_size_one_that_is_a_symbol_is_not_squeezed),
        TRACE_CASE(what_a_trace_made_has_no_value),
        TRACE_CASE(a_write_consumes_a_version_and_returns_the_next),
        TRACE_CASE(a_view_of_a_state_cannot_be_written_to),
        TRACE_CASE(nodes_of_a_trace_are_listed_in_the_order_of_making),
        TRACE_CASE(a_thread_traces_one_function_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
