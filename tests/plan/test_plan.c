/* What a plan promises: its rows, its outputs, its order of reads and writes, what it costs, and
 * what it refuses. That its values are right for any function is test_random_plans. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include "base/auto.h"
#include "base/clock.h"
#include "ingot/ingot.h"
#include "support/test.h"
#include "support/walk.h"

#define CAP_T 8
#define COLS 64
#define SEVERAL 40

static const ig_symbol symbols[] = {{"tokens", CAP_T}, {"outs", 3}};
static const ig_input inputs[] = {
    {"x", IG_F32, 2, {0, COLS}, 0},
    {"ids", IG_I32, 1, {0}, 0},
    {"fixed", IG_F32, 2, {2, COLS}, -1},
};

static ig_plan_spec spec_of(int n_outputs)
{
    return (ig_plan_spec){.symbols = symbols,
                          .n_symbols = 2,
                          .inputs = inputs,
                          .n_inputs = N_ELEM(inputs),
                          .n_outputs = n_outputs};
}

static ig_plan *compile(ig_trace_fn fn, void *user, int n_outputs)
{
    ig_plan_spec s = spec_of(n_outputs);
    ig_plan *p = NULL;
    assert_ok(ig_compile(fn, user, &s, &p));
    return p;
}

static ig_status replay(ig_plan *p, int64_t t) { return ig_plan_replay(p, (int64_t[]){t, 1}, 2); }

static void fill(ig_plan *p, float start)
{
    float *x = ig_plan_input(p, 0), *fixed = ig_plan_input(p, 2);
    int32_t *ids = ig_plan_input(p, 1);
    for (int i = 0; i < CAP_T * COLS; i++) x[i] = start + (float)i;
    for (int i = 0; i < CAP_T; i++) ids[i] = i % 4;
    for (int i = 0; i < 2 * COLS; i++) fixed[i] = (float)-i;
}

static const float *out_f32(ig_plan *p, int i) { return ig_plan_output(p, i); }

static ig_plan_stats stats_of(const ig_plan *p)
{
    ig_plan_stats s;
    ig_plan_get_stats(p, &s);
    return s;
}

static ig_array scalar(float v) { return ig_scalar_f32(v); }

/* --- rows */

static ig_status plus_one(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = ig_add(in[0], scalar(1));
    return IG_OK;
}

TEST(a_replay_does_the_rows_asked_for_and_leaves_the_others)
{
    ig_plan *p = compile(plus_one, NULL, 1);
    fill(p, 0);
    assert_ok(replay(p, CAP_T));
    fill(p, 1000);
    assert_ok(replay(p, 3));
    for (int i = 0; i < CAP_T * COLS; i++)
        assert_true(out_f32(p, 0)[i] == (i < 3 * COLS ? 1001 : 1) + (float)i);
    assert_ok(replay(p, 0));
    assert_true(out_f32(p, 0)[0] == 1001);
    ig_plan_free(p);
}

static ig_status column_sum(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    const int first[] = {0};
    out[0] = ig_sum(in[0], first, 1, false);
    out[1] = ig_add(out[0], in[2]);
    return IG_OK;
}

TEST(a_reduction_over_a_symbol_sees_the_actual_rows)
{
    ig_plan *p = compile(column_sum, NULL, 2);
    fill(p, 0);
    for (int t = 0; t <= CAP_T; t++) {
        assert_ok(replay(p, t));
        float want = (float)(COLS * t * (t - 1) / 2 + 5 * t);
        assert_true(out_f32(p, 0)[5] == want);
        assert_true(out_f32(p, 1)[COLS + 5] == want - COLS - 5);
    }
    ig_plan_free(p);
}

TEST(symbol_values_are_checked)
{
    ig_plan *p = compile(plus_one, NULL, 1);
    assert_fails(replay(p, CAP_T + 1), IG_ELIMIT, "tokens is 9, but its capacity is 8");
    assert_fails(replay(p, -1), IG_ELIMIT, "tokens is -1");
    assert_fails(ig_plan_replay(p, (int64_t[]){1}, 1), IG_EINVAL, "1 symbol values");
    assert_int_equal(stats_of(p).n_replays, 0);
    assert_ok(replay(p, 1));
    ig_plan_free(p);
}

/* --- outputs */

typedef struct fixture {
    ig_state *state;
    ig_array constant; /* a slot */
    int mode;
} fixture;

static ig_status many_outputs(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    fixture *f = user;
    const int64_t start[] = {0, 8}, stop[] = {INT64_MAX, 16}, every[] = {1, 2};
    ig_array y = ig_multiply(in[0], scalar(2));
    out[0] = in[0];
    out[1] = f->constant;
    out[2] = ig_transpose(f->constant, NULL, 0);
    out[3] = y;
    out[4] = y;
    out[5] = ig_slice(y, start, 2, stop, 2, every, 2);
    out[6] = ig_reshape(y, (int64_t[]){-1, 2, COLS / 2}, 3);
    out[7] = ig_state_array(f->state);
    return IG_OK;
}

TEST(outputs_may_be_inputs_constants_views_states_and_twice_the_same)
{
    fixture f = {0};
    ig_scope *s = ig_scope_open();
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    ig_hold(&f.constant, ig_array_copy(numbers, IG_F32, (int64_t[]){2, 3}, 2));
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4}, 1, &f.state));
    ig_plan *p = compile(many_outputs, &f, 8);
    ig_drop(&f.constant);
    assert_ok(ig_scope_close(s));
    fill(p, 3);
    assert_ok(replay(p, 2));
    fill(p, 99); /* outputs stay as they are when inputs are written again */
    ((float *)ig_state_data(f.state))[1] = 7;
    for (int i = 0; i < 2 * COLS; i++) {
        assert_true(out_f32(p, 0)[i] == 3 + (float)i);
        assert_true(out_f32(p, 3)[i] == 6 + 2 * (float)i);
        assert_true(out_f32(p, 4)[i] == 6 + 2 * (float)i);
        assert_true(out_f32(p, 6)[i] == 6 + 2 * (float)i);
    }
    assert_memory_equal(out_f32(p, 1), numbers, sizeof numbers);
    assert_memory_equal(out_f32(p, 2), ((float[]){1, 4, 2, 5, 3, 6}), sizeof numbers);
    for (int i = 0; i < 8; i++)
        assert_true(out_f32(p, 5)[i] == 6 + 2 * (float)(i / 4 * COLS + 8 + i % 4 * 2));
    assert_ptr_equal(out_f32(p, 7), ig_state_data(f.state));
    assert_null(ig_plan_output(p, 8));
    assert_null(ig_plan_output(p, -1));
    assert_null(ig_plan_input(p, 3));
    ig_plan_free(p);
    ig_state_free(f.state);
}

/* --- steps */

static ig_status dead_code(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    fixture *f = user;
    ig_exp(in[0]);
    ig_add(ig_tanh(in[2]), scalar(1));
    ig_put_rows(ig_state_array(f->state), in[1], in[0]);
    out[0] = ig_negative(in[0]);
    return IG_OK;
}

TEST(dead_code_is_dropped_but_writes_of_states_are_kept)
{
    fixture f = {0};
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state));
    ig_plan *p = compile(dead_code, &f, 1);
    assert_int_equal(stats_of(p).n_steps, 2);
    assert_int_equal(stats_of(p).n_phases, 1);
    fill(p, 5);
    assert_ok(replay(p, 2));
    assert_true(((float *)ig_state_data(f.state))[COLS] == 5 + COLS);
    assert_true(((float *)ig_state_data(f.state))[2 * COLS] == 0);
    ig_plan_free(p);
    ig_state_free(f.state);
}

static ig_status chain(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    ig_array x = in[0];
    for (int i = 0; i < 20; i++) x = ig_add(x, scalar((float)i));
    out[0] = x;
    return IG_OK;
}

TEST(a_chain_of_elementwise_operations_is_one_step)
{
    ig_plan *p = compile(chain, NULL, 1);
    assert_in_range(stats_of(p).n_steps, 1, 4); /* 20 scalars, 8 inputs a program */
    fill(p, 0);
    assert_ok(replay(p, 1));
    assert_true(out_f32(p, 0)[3] == 3 + 190);
    ig_plan_free(p);
}

TEST(values_that_die_where_they_are_read_are_written_over)
{
    ig_plan_spec s = spec_of(1);
    s.no_fusion = 1;
    ig_plan *p = NULL;
    assert_ok(ig_compile(chain, NULL, &s, &p));
    assert_int_equal(stats_of(p).n_steps, 20);
    assert_int_equal(stats_of(p).arena_bytes, CAP_T * COLS * (int)sizeof(float));
    fill(p, 0);
    assert_ok(replay(p, CAP_T));
    assert_true(out_f32(p, 0)[3] == 3 + 190);
    ig_plan_free(p);
}

static ig_status siblings(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    ig_array x = ig_cumsum(in[0], 1, false, true);
    for (int i = 0; i < 3; i++)
        out[i] = ig_cumsum(ig_multiply(x, scalar((float)i - 1)), 1, true, true);
    return IG_OK;
}

TEST(independent_steps_share_a_phase)
{
    ig_plan *p = compile(siblings, NULL, 3);
    assert_int_equal(stats_of(p).n_steps, 7);
    assert_int_equal(stats_of(p).n_phases, 3);
    fill(p, 1);
    assert_ok(replay(p, 2));
    float x = 0, sum = 0;
    for (int i = 0; i < COLS; i++) sum += x += (float)(1 + i);
    assert_true(out_f32(p, 2)[0] == sum);
    assert_true(out_f32(p, 1)[0] == 0);
    assert_true(out_f32(p, 0)[0] == -sum);
    ig_plan_free(p);
}

static ig_array matrix(int rows, int cols, float scale)
{
    ig_array n = ig_arange(0, rows * cols, 1, IG_F32);
    return ig_reshape(ig_sin(ig_multiply(n, scalar(scale))), (int64_t[]){rows, cols}, 2);
}

static ig_status gated(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    ig_array w = ig_full((int64_t[]){COLS}, 1, 1, IG_F32);
    ig_quantized gate = ig_quantize(matrix(128, COLS, 0.1f), 64, 4);
    ig_quantized up = ig_quantize(matrix(128, COLS, 0.2f), 64, 4);
    ig_quantized down = ig_quantize(matrix(COLS, 128, 0.3f), 64, 4);
    ig_rows8 x = ig_int8_rows(ig_rms_norm(in[0], w, 1e-5), 64);
    ig_array g = ig_quantized_matmul_rows8(x, gate), u = ig_quantized_matmul_rows8(x, up);
    ig_rows8 y = ig_int8_rows(ig_multiply(ig_silu(g), u), 64);
    out[0] = ig_add(in[0], ig_quantized_matmul_rows8(y, down));
    return IG_OK;
}

/* norm+rows8; gate, up; silu*up+rows8; down+residual */
TEST(a_gated_block_of_a_language_model_is_five_steps_in_four_phases)
{
    ig_scope *s = ig_scope_open();
    ig_plan *p = compile(gated, NULL, 1);
    assert_int_equal(stats_of(p).n_steps, 5);
    assert_int_equal(stats_of(p).n_phases, 4);
    char text[4096];
    size_t n = ig_plan_format(p, text, sizeof text);
    assert_int_equal(n, strlen(text));
    int lines = 0;
    for (size_t i = 0; i < n; i++) lines += text[i] == '\n';
    assert_int_equal(lines, 5);
    assert_non_null(strstr(text, "rms_norm+int8_rows"));
    assert_non_null(strstr(text, "silu+multiply+int8_rows"));
    assert_non_null(strstr(text, "quantized_matmul_rows8+add  float32 [tokens, 64]"));
    assert_int_equal(ig_plan_format(p, text, 8), n);
    assert_int_equal(strlen(text), 7);
    assert_int_equal(ig_plan_format(p, NULL, 0), n);
    assert_true(stats_of(p).weight_bytes >= 3 * 128 * COLS / 2);
    ig_plan_free(p);
    assert_ok(ig_scope_close(s));
}

TEST(tuning_changes_no_bit_and_takes_the_arguments_of_a_replay)
{
    ig_scope *s = ig_scope_open();
    ig_plan *p = compile(gated, NULL, 1);
    float before[CAP_T * COLS];
    fill(p, 0.5f);
    assert_ok(replay(p, 3));
    memcpy(before, out_f32(p, 0), 3 * COLS * sizeof(float));
    assert_fails(ig_plan_tune(p, (int64_t[]){1}, 1), IG_EINVAL, "ig_plan_tune: 1 symbol values");
    assert_fails(ig_plan_tune(p, (int64_t[]){CAP_T + 1, 1}, 2), IG_ELIMIT, "tokens is 9");
    ig_error_clear();
    assert_ok(ig_plan_tune(p, (int64_t[]){1, 1}, 2));
    assert_int_equal(stats_of(p).n_replays, 1);
    assert_ok(replay(p, 3));
    assert_memory_equal(before, out_f32(p, 0), 3 * COLS * sizeof(float));
    ig_plan_free(p);
    assert_ok(ig_scope_close(s));
}

static ig_status with_constants(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    out[0] = ig_multiply(in[0], ig_exp(ig_full((int64_t[]){COLS}, 1, 0, IG_F32)));
    return IG_OK;
}

TEST(what_depends_on_no_input_is_computed_once)
{
    ig_plan *p = compile(with_constants, NULL, 1);
    assert_int_equal(stats_of(p).n_steps, 1);
    fill(p, 2);
    assert_ok(replay(p, 1));
    assert_true(out_f32(p, 0)[1] == 3);
    ig_plan_free(p);
}

/* --- states */

static ig_status read_write_read(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    fixture *f = user;
    ig_array s = ig_state_array(f->state);
    out[0] = ig_add(s, scalar(1)); /* before the write, though nothing else depends on it */
    s = ig_put_rows(s, in[1], in[0]);
    out[1] = ig_multiply(s, scalar(2));
    s = ig_put_rows(s, in[1], ig_negative(in[0]));
    out[2] = ig_add(out[0], ig_state_array(f->state));
    return IG_OK;
}

TEST(reads_and_writes_of_a_state_happen_in_the_order_of_the_trace)
{
    fixture f = {0};
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state));
    float *memory = ig_state_data(f.state);
    assert_int_equal(ig_state_nbytes(f.state), 4 * COLS * 4);
    for (int i = 0; i < 4 * COLS; i++) assert_true(memory[i] == 0);
    ig_plan *p = compile(read_write_read, &f, 3);
    for (int k = 0; k < 20; k++) {
        fill(p, (float)k);
        memory[COLS] = 100;
        assert_ok(replay(p, 2));
        float x = (float)(k + COLS);
        assert_true(out_f32(p, 0)[COLS] == 101);
        assert_true(out_f32(p, 1)[COLS] == 2 * x);
        assert_true(out_f32(p, 2)[COLS] == 101 - x);
        assert_true(memory[COLS] == -x);
    }
    ig_plan_free(p);
    ig_state_free(f.state);
}

static ig_status read_and_write(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    ig_array s = ig_state_array(((fixture *)user)->state);
    out[0] = ig_add(s, scalar(1));
    ig_put_rows(s, in[1], in[0]);
    return IG_OK;
}

TEST(a_write_waits_for_the_readers_of_what_it_writes_over)
{
    fixture f = {0};
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state));
    ig_plan *p = compile(read_and_write, &f, 1);
    assert_int_equal(stats_of(p).n_steps, 2);
    assert_int_equal(stats_of(p).n_phases, 2);
    ig_plan_free(p);
    ig_state_free(f.state);
}

static ig_status misuse(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    fixture *f = user;
    ig_array s = ig_state_array(f->state), view = ig_reshape(s, (int64_t[]){-1}, 1);
    ig_array written = ig_put_rows(s, in[1], in[0]);
    switch (f->mode) {
    case 0: out[0] = ig_add(s, scalar(1)); break;
    case 1: out[0] = s; break;
    case 2: out[0] = view; break;
    case 3: out[0] = ig_put_rows(s, in[1], in[0]); break;
    default: out[0] = written;
    }
    return IG_OK;
}

TEST(a_version_of_a_state_that_was_written_over_cannot_be_read)
{
    fixture f = {0};
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state));
    ig_plan_spec s = spec_of(1);
    ig_plan *p = NULL;
    for (f.mode = 0; f.mode < 4; f.mode++)
        assert_fails(ig_compile(misuse, &f, &s, &p), IG_EINVAL, "version of a state");
    assert_null(p);
    p = compile(misuse, &f, 1);
    assert_ptr_equal(ig_plan_output(p, 0), ig_state_data(f.state));
    ig_plan_free(p);
    ig_state_free(f.state);
}

/* --- what a replay costs */

static _Thread_local int64_t n_locks;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Every lock of the process comes by here: the program's own symbol is found first. */
int pthread_mutex_lock(pthread_mutex_t *m)
{
    static int (*real)(pthread_mutex_t *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    n_locks++;
    return real(m);
}
#endif

TEST(a_replay_makes_no_node_allocates_nothing_and_takes_no_lock)
{
    fixture f = {0};
    ig_scope *s = ig_scope_open();
    assert_ok(ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state));
    ig_plan *plans[] = {compile(gated, NULL, 1), compile(read_write_read, &f, 3)};
    for (int threads = 1; threads <= 2; threads++) {
        assert_ok(ig_device_set_threads(threads));
        ig_counters before, after;
        for (int k = 0; k < 2; k++) assert_ok(replay(plans[k], CAP_T));
        ig_memory_counters(&before);
        int64_t locks = n_locks, start = clock_mono_us();
        for (int i = 0; i < 1000; i++) assert_ok(replay(plans[i % 2], i % (CAP_T + 1)));
        locks = n_locks - locks;
        int64_t ms = (clock_mono_us() - start) / 1000;
        ig_memory_counters(&after);
        assert_int_equal(after.n_nodes, before.n_nodes);
        assert_int_equal(after.n_allocs, before.n_allocs);
        assert_int_equal(after.n_plans, before.n_plans);
        assert_int_equal(after.active_bytes, before.active_bytes);
        /* a second thread is woken when it slept, and that needs a millisecond without work */
        assert_in_range(locks, 0, threads == 1 ? 0 : 2 * ms + 2);
    }
    for (int k = 0; k < 2; k++) ig_plan_free(plans[k]);
    ig_state_free(f.state);
    assert_ok(ig_scope_close(s));
}

TEST(timing_is_counted_when_it_is_asked_for)
{
    ig_scope *s = ig_scope_open();
    ig_plan *p = compile(gated, NULL, 1);
    assert_ok(replay(p, CAP_T));
    assert_int_equal(stats_of(p).kernel_ns, 0);
    ig_plan_set_timing(p, true);
    for (int i = 0; i < SEVERAL; i++) assert_ok(replay(p, CAP_T));
    ig_plan_stats x = stats_of(p);
    assert_int_equal(x.n_replays, SEVERAL + 1);
    assert_true(x.kernel_ns > 0 && x.wall_ns > 0);
    ig_plan_free(p);
    assert_ok(ig_scope_close(s));
}

/* --- several plans and threads */

typedef struct replayer {
    ig_plan *p;
    float start;
    int n_refused, n_wrong;
} replayer;

static void *replay_often(void *arg)
{
    replayer *r = arg;
    for (int i = 0; i < 300; i++) {
        int t = i % (CAP_T + 1);
        if (replay(r->p, t) != IG_OK)
            r->n_refused++;
        else if (t && out_f32(r->p, 0)[0] != r->start + 190)
            r->n_wrong++;
        ig_error_clear();
    }
    return NULL;
}

TEST(several_threads_may_replay_plans_while_another_changes_the_thread_count)
{
    ig_scope *s = ig_scope_open();
    replayer r[3] = {{0}};
    pthread_t t[3];
    for (int i = 0; i < 3; i++) {
        r[i] = (replayer){.p = compile(chain, NULL, 1), .start = (float)i};
        fill(r[i].p, (float)i);
        assert_int_equal(pthread_create(&t[i], NULL, replay_often, &r[i]), 0);
    }
    for (int i = 0; i < SEVERAL; i++) assert_ok(ig_device_set_threads(1 + i % 4));
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(r[i].n_wrong, 0);
        assert_int_equal(r[i].n_refused, 0);
        ig_plan_free(r[i].p);
    }
    assert_ok(ig_scope_close(s));
}

TEST(one_plan_is_replayed_by_one_thread_at_a_time_and_the_other_is_told)
{
    replayer r[2] = {{0}};
    pthread_t t[2];
    ig_plan *p = compile(chain, NULL, 1);
    fill(p, 0);
    for (int i = 0; i < 2; i++) {
        r[i] = (replayer){.p = p};
        assert_int_equal(pthread_create(&t[i], NULL, replay_often, &r[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    assert_int_equal(stats_of(p).n_replays + r[0].n_refused + r[1].n_refused, 600);
    ig_plan_free(p);
}

TEST(plans_are_freed_right_after_a_replay_while_workers_are_late)
{
    assert_ok(ig_device_set_threads(4));
    for (int i = 0; i < SEVERAL; i++) {
        ig_plan *p = compile(i % 2 ? chain : column_sum, NULL, i % 2 ? 1 : 2);
        fill(p, 0);
        assert_ok(replay(p, CAP_T));
        ig_plan_free(p);
    }
    assert_ok(ig_device_set_threads(2));
}

/* --- what does not outlive a trace, and what does not fail one */

static ig_status keep_a_value(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    ig_hold(&((fixture *)user)->constant, ig_negative(in[0]));
    out[0] = in[0];
    return IG_OK;
}

static ig_status use_the_kept(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)in, (void)n_in, (void)n_out;
    out[0] = ig_negative(((fixture *)user)->constant);
    return IG_OK;
}

TEST(a_value_kept_from_a_trace_that_is_over_is_refused_by_the_next)
{
    fixture f = {0};
    ig_plan_spec s = spec_of(1);
    ig_plan *kept = compile(keep_a_value, &f, 1), *p = NULL;
    for (int i = 0; i < SEVERAL; i++)
        assert_fails(ig_compile(use_the_kept, &f, &s, &p), IG_EINVAL, "belongs to a trace");
    assert_null(p);
    assert_fails(ig_eval(&f.constant, 1), IG_EINVAL, "compiled");
    ig_drop(&f.constant);
    ig_plan_free(kept);
}

static ig_status cope(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)user, (void)n_in, (void)n_out;
    ig_scope *s = ig_scope_open();
    ig_array a = ig_reshape(in[2], (int64_t[]){7, 7}, 2);
    bool fits = ig_scope_close(s) == IG_OK;
    out[0] = fits ? a : ig_negative(in[2]);
    return IG_OK;
}

TEST(a_failure_that_the_traced_function_coped_with_does_not_fail_the_plan)
{
    ig_plan *p = compile(cope, NULL, 1);
    fill(p, 0);
    assert_ok(replay(p, 1));
    assert_true(out_f32(p, 0)[3] == 3);
    ig_plan_free(p);
}

/* --- what is refused */

static ig_status broken(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    ig_plan_spec s = spec_of(1);
    ig_plan *p = NULL;
    switch (*(int *)user) {
    case 0: return IG_EIO;
    case 1: return IG_OK; /* the output stays empty */
    case 2: out[0] = ig_add(in[0], in[2]); return IG_OK;
    case 3: out[0] = in[0]; return ig_eval(in, 1);
    case 4: out[0] = in[0]; return ig_compile(plus_one, NULL, &s, &p);
    case 5: out[0] = ig_transpose(in[0], NULL, 0); return IG_OK;
    default:
        out[0] = ig_negative(in[0]);
        ig_reshape(in[0], (int64_t[]){7, 7}, 2);
        return IG_OK;
    }
}

TEST(a_function_that_cannot_be_compiled_is_refused_with_the_reason)
{
    static const struct {
        ig_status code;
        const char *part;
    } want[] = {{IG_EIO, "traced function failed"},
                {IG_EINVAL, "output 0 is empty"},
                {IG_ESHAPE, "tokens"},
                {IG_EINVAL, "being compiled"},
                {IG_EINVAL, "already being traced"},
                {IG_ESHAPE, "transpose"},
                {IG_ESHAPE, "reshape"}};
    ig_plan_spec s = spec_of(1);
    ig_plan *p = NULL;
    for (int mode = 0; mode < (int)N_ELEM(want); mode++)
        assert_fails(ig_compile(broken, &mode, &s, &p), want[mode].code, want[mode].part);
    assert_null(p);
    assert_ok(ig_compile(plus_one, NULL, &s, &p)); /* the thread can trace again */
    ig_plan_free(p);
}

TEST(a_wrong_specification_is_refused)
{
    ig_plan *p = NULL;
    ig_plan_spec s = spec_of(1);
    ig_input in = inputs[0];
    ig_symbol sym = {"n", 0};
    s.n_symbols = IG_MAX_SYMBOLS + 1;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_ELIMIT, "9 symbols");
    s = spec_of(1);
    s.n_outputs = 1000000;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_ELIMIT, "outputs");
    s = (ig_plan_spec){
        .symbols = &sym, .n_symbols = 1, .inputs = &in, .n_inputs = 1, .n_outputs = 1};
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_EINVAL, "capacity of at least 1");
    sym.capacity = 4;
    in.symbol = 1;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_EINVAL, "input 0 (x)");
    in.symbol = 0;
    in.dims[1] = -5;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_ESHAPE, "input 0 (x)");
    in.dims[1] = INT64_MAX / 2;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_ELIMIT, "input 0 (x)");
    in.dims[1] = 4;
    in.dtype = (ig_dtype)99;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_EDTYPE, "dtype 99");
    assert_fails(ig_compile(NULL, NULL, &s, &p), IG_EINVAL, "needed");
    s.inputs = NULL;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_EINVAL, "list is missing");
    s.symbols = NULL;
    assert_fails(ig_compile(plus_one, NULL, &s, &p), IG_EINVAL, "list is missing");
    assert_null(p);
    ig_plan_free(NULL);
}

static ig_status compile_and_replay(void *user)
{
    (void)user;
    fixture f = {0};
    ig_plan_spec s = spec_of(3);
    ig_plan *p = NULL;
    ig_status st = ig_state_new(IG_F32, (int64_t[]){4, COLS}, 2, &f.state);
    if (st == IG_OK) st = ig_compile(read_write_read, &f, &s, &p);
    if (st == IG_OK) st = replay(p, 3);
    ig_plan_free(p);
    ig_state_free(f.state);
    ig_memory_clear_cache();
    return st;
}

/* One thread: a new one frees its start argument whenever it gets to it. */
TEST(compiling_survives_every_failing_allocation)
{
    assert_ok(ig_device_set_threads(1));
    assert_ok(compile_and_replay(NULL));
    assert_true(walk_memory(compile_and_replay, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_replay_does_the_rows_asked_for_and_leaves_the_others),
        CASE(a_reduction_over_a_symbol_sees_the_actual_rows),
        CASE(symbol_values_are_checked),
        CASE(outputs_may_be_inputs_constants_views_states_and_twice_the_same),
        CASE(dead_code_is_dropped_but_writes_of_states_are_kept),
        CASE(a_chain_of_elementwise_operations_is_one_step),
        CASE(values_that_die_where_they_are_read_are_written_over),
        CASE(independent_steps_share_a_phase),
        CASE(a_gated_block_of_a_language_model_is_five_steps_in_four_phases),
        CASE(tuning_changes_no_bit_and_takes_the_arguments_of_a_replay),
        CASE(what_depends_on_no_input_is_computed_once),
        CASE(reads_and_writes_of_a_state_happen_in_the_order_of_the_trace),
        CASE(a_write_waits_for_the_readers_of_what_it_writes_over),
        CASE(a_version_of_a_state_that_was_written_over_cannot_be_read),
        CASE(a_replay_makes_no_node_allocates_nothing_and_takes_no_lock),
        CASE(timing_is_counted_when_it_is_asked_for),
        CASE(several_threads_may_replay_plans_while_another_changes_the_thread_count),
        CASE(one_plan_is_replayed_by_one_thread_at_a_time_and_the_other_is_told),
        CASE(plans_are_freed_right_after_a_replay_while_workers_are_late),
        CASE(a_value_kept_from_a_trace_that_is_over_is_refused_by_the_next),
        CASE(a_failure_that_the_traced_function_coped_with_does_not_fail_the_plan),
        CASE(a_function_that_cannot_be_compiled_is_refused_with_the_reason),
        CASE(a_wrong_specification_is_refused),
        CASE(compiling_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
