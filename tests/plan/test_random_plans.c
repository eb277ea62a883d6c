/* Plans of random functions give the bits of eager evaluation: fused or not, on every
 * instruction set, with 1, 2 and 4 threads, for every number of rows from none to the capacity. */
#include "ingot/ingot.h"
#include "support/graphs.h"
#include "support/test.h"

#define N_SEEDS 60
#define N_STEPS 6
#define OUT_MAX (GRAPH_ROWS * GRAPH_COLS)

static const int64_t sizes[N_STEPS][2] = {{13, 5}, {0, 0}, {1, 0}, {0, 3}, {7, 2}, {13, 5}};

/* What eager evaluation gave, and what the plan is compared with. */
typedef struct result {
    ig_dtype dtype[GRAPH_N_OUTPUTS];
    int64_t n[GRAPH_N_OUTPUTS];
    uint64_t out[GRAPH_N_OUTPUTS][OUT_MAX];
    float state[GRAPH_N_STATES][OUT_MAX];
} result;

typedef struct rig {
    graph g;
    ig_state *state[GRAPH_N_STATES];
    ig_plan *plan;
} rig;

static const int64_t state_dims[2] = {GRAPH_ROWS, GRAPH_COLS};

static ig_array input(int i, unsigned seed, int64_t t, int64_t o)
{
    uint64_t bytes[GRAPH_T * GRAPH_COLS];
    int64_t dims[2] = {graph_inputs[i].symbol ? o : t, GRAPH_COLS};
    graph_fill(i, seed, dims[0], bytes);
    return ig_array_copy(bytes, graph_inputs[i].dtype, dims, graph_inputs[i].ndim);
}

/* Runs the function as plain calls; states are arrays that the next step starts from. */
static void call(graph *g, int step, ig_array *states, result *ret)
{
    int64_t t = sizes[step][0], o = sizes[step][1];
    ig_scope *s = ig_scope_open();
    ig_array in[GRAPH_N_INPUTS], out[GRAPH_N_OUTPUTS + GRAPH_N_STATES];
    ig_array done[GRAPH_N_OUTPUTS + GRAPH_N_STATES] = {{0}};
    for (int i = 0; i < GRAPH_N_INPUTS; i++) in[i] = input(i, g->seed + (unsigned)step, t, o);
    for (int i = 0; i < GRAPH_N_STATES; i++) g->state[i] = states[i];
    graph_build(g, in, out);
    for (int i = 0; i < GRAPH_N_STATES; i++) out[GRAPH_N_OUTPUTS + i] = g->state[i];
    assert_ok(ig_scope_eval(s, out, GRAPH_N_OUTPUTS + GRAPH_N_STATES, done));
    for (int i = 0; i < GRAPH_N_OUTPUTS + GRAPH_N_STATES; i++) {
        const void *data;
        assert_ok(ig_data(done[i], &data));
        if (i >= GRAPH_N_OUTPUTS) {
            memcpy(ret->state[i - GRAPH_N_OUTPUTS], data, sizeof ret->state[0]);
            ig_hold(&states[i - GRAPH_N_OUTPUTS], done[i]);
            continue;
        }
        ret->dtype[i] = ig_type(done[i]);
        ret->n[i] = ig_size(done[i]);
        assert_int_equal(ret->n[i] % (graph_rows(g, i, t, o) ? graph_rows(g, i, t, o) : 1), 0);
        memcpy(ret->out[i], data, (size_t)ig_nbytes(done[i]));
    }
}

static void call_all(graph *g, result *ret)
{
    ig_scope *s = ig_scope_open();
    ig_array states[GRAPH_N_STATES] = {{0}};
    for (int i = 0; i < GRAPH_N_STATES; i++) ig_hold(&states[i], ig_full(state_dims, 2, 0, IG_F32));
    for (int k = 0; k < N_STEPS; k++) call(g, k, states, &ret[k]);
    for (int i = 0; i < GRAPH_N_STATES; i++) ig_drop(&states[i]);
    assert_ok(ig_scope_close(s));
}

static ig_status trace(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    rig *r = user;
    assert_int_equal(n_in, GRAPH_N_INPUTS);
    assert_int_equal(n_out, GRAPH_N_OUTPUTS);
    for (int i = 0; i < GRAPH_N_STATES; i++) r->g.state[i] = ig_state_array(r->state[i]);
    graph_build(&r->g, in, out);
    return IG_OK;
}

static void rig_open(rig *r, const graph *g, bool fuse)
{
    ig_plan_spec spec = {.symbols = graph_symbols,
                         .n_symbols = 2,
                         .inputs = graph_inputs,
                         .n_inputs = GRAPH_N_INPUTS,
                         .n_outputs = GRAPH_N_OUTPUTS,
                         .no_fusion = !fuse};
    *r = (rig){.g = *g};
    for (int i = 0; i < GRAPH_N_STATES; i++)
        assert_ok(ig_state_new(IG_F32, state_dims, 2, &r->state[i]));
    ig_status st = ig_compile(trace, r, &spec, &r->plan);
    if (st != IG_OK) fail_msg("seed %u: %s", g->seed, ig_error_message());
}

static void rig_close(rig *r)
{
    ig_plan_free(r->plan);
    for (int i = 0; i < GRAPH_N_STATES; i++) ig_state_free(r->state[i]);
}

static void compare(const rig *r, int step, const result *want, const char *how)
{
    const char *what = NULL;
    int which = 0;
    for (int i = 0; i < GRAPH_N_OUTPUTS; i++)
        if (!graph_same(ig_plan_output(r->plan, i), want->out[i], want->n[i], want->dtype[i])) {
            what = "output";
            which = i;
        }
    for (int i = 0; i < GRAPH_N_STATES; i++)
        if (!graph_same(ig_state_data(r->state[i]), want->state[i], OUT_MAX, IG_F32)) {
            what = "state";
            which = i;
        }
    if (!what) return;
    static char text[1 << 16];
    ig_plan_format(r->plan, text, sizeof text);
    fail_msg("seed %u, step %d, %s: %s %d differs from eager evaluation\n%s", r->g.seed, step, how,
             what, which, text);
}

static void replay_all(rig *r, const result *want, const char *how)
{
    for (int k = 0; k < N_STEPS; k++) {
        for (int i = 0; i < GRAPH_N_INPUTS; i++)
            graph_fill(i, r->g.seed + (unsigned)k, sizes[k][graph_inputs[i].symbol],
                       ig_plan_input(r->plan, i));
        assert_ok(ig_plan_replay(r->plan, sizes[k], 2));
        compare(r, k, &want[k], how);
    }
}

static void check(const graph *g, const result *want, const char *isa, int threads, bool fuse)
{
    char how[64];
    rig r;
    snprintf(how, sizeof how, "%s, %d threads, %s", isa, threads, fuse ? "fused" : "unfused");
    assert_ok(ig_device_set_threads(threads));
    rig_open(&r, g, fuse);
    replay_all(&r, want, how);
    rig_close(&r);
}

TEST(a_plan_gives_the_bits_of_eager_evaluation_on_every_isa_and_thread_count)
{
    result *want = calloc(N_STEPS, sizeof *want);
    assert_non_null(want);
    for (unsigned seed = 1; seed <= N_SEEDS; seed++) {
        graph g = {.seed = seed, .n_ops = 10 + (int)(seed % 50)};
        assert_ok(ig_device_set_isa("ref"));
        assert_ok(ig_device_set_threads(1));
        call_all(&g, want);
        for (const char *const *isa = ig_device_isas(); *isa; isa++) {
            assert_ok(ig_device_set_isa(*isa));
            for (int threads = 1; threads <= 4; threads *= 2) check(&g, want, *isa, threads, true);
            check(&g, want, *isa, 2, false);
        }
    }
    free(want);
    assert_ok(ig_device_set_isa(ig_device_isas()[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_plan_gives_the_bits_of_eager_evaluation_on_every_isa_and_thread_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
