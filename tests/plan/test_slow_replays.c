/* Ten thousand replays of random functions with other symbol values each time, with one thread,
 * with three, and with a number that changes in between: equal bits all along. Meant for TSan
 * and ASan. */
#include "ingot/ingot.h"
#include "support/graphs.h"
#include "support/test.h"

#define N_GRAPHS 5
#define N_REPLAYS 2000

typedef struct rig {
    graph g;
    ig_state *state[GRAPH_N_STATES];
    ig_plan *plan;
    int64_t row_bytes[GRAPH_N_OUTPUTS];
} rig;

static ig_status trace(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    rig *r = user;
    (void)n_in;
    for (int i = 0; i < GRAPH_N_STATES; i++) r->g.state[i] = ig_state_array(r->state[i]);
    graph_build(&r->g, in, out);
    for (int i = 0; i < n_out; i++)
        r->row_bytes[i] = ig_dim(out[i], 0) ? ig_nbytes(out[i]) / ig_dim(out[i], 0) : 0;
    return IG_OK;
}

static void rig_open(rig *r, unsigned seed)
{
    static const int64_t dims[2] = {GRAPH_ROWS, GRAPH_COLS};
    ig_plan_spec spec = {.symbols = graph_symbols,
                         .n_symbols = 2,
                         .inputs = graph_inputs,
                         .n_inputs = GRAPH_N_INPUTS,
                         .n_outputs = GRAPH_N_OUTPUTS};
    *r = (rig){.g = {.seed = seed, .n_ops = 40}};
    for (int i = 0; i < GRAPH_N_STATES; i++) assert_ok(ig_state_new(IG_F32, dims, 2, &r->state[i]));
    assert_ok(ig_compile(trace, r, &spec, &r->plan));
}

static void rig_close(rig *r)
{
    ig_plan_free(r->plan);
    for (int i = 0; i < GRAPH_N_STATES; i++) ig_state_free(r->state[i]);
}

static uint64_t mix(uint64_t h, const void *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3;
    return h;
}

static uint64_t step(rig *r, unsigned *seed)
{
    int64_t sym[2] = {rand_r(seed) % (GRAPH_T + 1), rand_r(seed) % (GRAPH_O + 1)};
    for (int i = 0; i < GRAPH_N_INPUTS; i++)
        graph_fill(i, *seed, sym[graph_inputs[i].symbol], ig_plan_input(r->plan, i));
    assert_ok(ig_plan_replay(r->plan, sym, 2));
    uint64_t h = 0xcbf29ce484222325;
    for (int i = 0; i < GRAPH_N_OUTPUTS; i++)
        h = mix(h, ig_plan_output(r->plan, i),
                r->row_bytes[i] * graph_rows(&r->g, i, sym[0], sym[1]));
    for (int i = 0; i < GRAPH_N_STATES; i++)
        h = mix(h, ig_state_data(r->state[i]), ig_state_nbytes(r->state[i]));
    return h;
}

/* threads 0: another number every few replays. */
static void replay_all(unsigned seed, int threads, uint64_t *hashes)
{
    rig r;
    rig_open(&r, seed);
    if (threads) assert_ok(ig_device_set_threads(threads));
    for (int i = 0; i < N_REPLAYS; i++) {
        if (!threads && i % 64 == 0) assert_ok(ig_device_set_threads(1 + i / 64 % 4));
        hashes[i] = step(&r, &seed);
    }
    rig_close(&r);
}

TEST(ten_thousand_replays_with_changing_rows_and_threads_give_equal_bits)
{
    static uint64_t want[N_REPLAYS], got[N_REPLAYS];
    static const int threads[] = {3, 0};
    for (unsigned seed = 100; seed < 100 + N_GRAPHS; seed++) {
        replay_all(seed, 1, want);
        for (int k = 0; k < 2; k++) {
            replay_all(seed, threads[k], got);
            for (int i = 0; i < N_REPLAYS; i++)
                if (got[i] != want[i])
                    fail_msg("seed %u, replay %d, %d threads", seed, i, threads[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(ten_thousand_replays_with_changing_rows_and_threads_give_equal_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
