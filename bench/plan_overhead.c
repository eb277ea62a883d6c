/* plan_overhead: what a plan costs beside its kernels. Runs the phases of a 30-layer Llama step
 * at one token (240) with blocks that only compute for a microsecond or so, and reports, per
 * run:
 *   outside   wall time of a thread in neither kernels nor waits: claims, publishing, dispatch
 *   wait      wall time of a thread at phase ends, imbalance included
 * Usage: plan_overhead [threads [runs]]; prints one JSON line. The fastest of ten series is what
 * the budget of DESIGN 4a (50 us at 2 threads) speaks of. */
#include <stdio.h>
#include <stdlib.h>
#include "array/cpu/pool.h"
#include "base/clock.h"

#define N_LAYERS 30
#define N_SERIES 10
#define MAX_STEPS 1024

/* Blocks of the members of one layer's phases: norm, q k v, rope and cache, attention, o, norm,
 * gate up, down; -1 ends a phase. */
static const int layer[] = {1, -1, 9, 3, 3, -1, 1, 1, -1, 3, -1, 18, -1, 1, -1, 24, 24, -1, 18, -1};

typedef struct shape {
    int blocks;
    int spin;
} shape;

static int64_t blocks_of(const void *args, const run_ctx *r)
{
    (void)r;
    return ((const shape *)args)->blocks;
}

static void spin(const void *args, const run_ctx *r, int64_t block)
{
    (void)block;
    volatile int64_t *x = (volatile int64_t *)r->scratch;
    for (int i = 0; i < ((const shape *)args)->spin; i++) *x += i;
}

typedef struct series {
    double wall_us, outside_us, wait_us;
} series;

static series measure(pool *p, const step *steps, const int32_t *first, int n_phases, int runs)
{
    const int64_t sym[1] = {1};
    run_counters c = {.timing = true};
    int64_t t = clock_mono_ns();
    for (int i = 0; i < runs; i++)
        if (pool_run(p, steps, first, n_phases, sym, &c) != IG_OK) exit(1);
    double wall = (double)(clock_mono_ns() - t) / runs / 1e3, n = pool_threads(p);
    double kernel = (double)c.kernel_ns / runs / 1e3 / n, wait = (double)c.wait_ns / runs / 1e3 / n;
    return (series){wall, wall - kernel - wait, wait};
}

int main(int argc, char **argv)
{
    static shape shapes[MAX_STEPS];
    static step steps[MAX_STEPS];
    static int32_t first[MAX_STEPS];
    int threads = argc > 1 ? atoi(argv[1]) : 2, runs = argc > 2 ? atoi(argv[2]) : 100;
    int n = 0, n_phases = 0;
    for (int l = 0; l < N_LAYERS; l++)
        for (size_t i = 0; i < N_ELEM(layer); i++) {
            if (layer[i] < 0) {
                first[++n_phases] = n;
                continue;
            }
            shapes[n] = (shape){layer[i], 500};
            steps[n] = (step){.run = spin, .blocks = blocks_of, .args = &shapes[n]};
            n++;
        }
    pool *p = NULL;
    if (runs < 1 || pool_new(threads, &p) != IG_OK) {
        fprintf(stderr, "plan_overhead: %s\n", ig_error_message());
        return 2;
    }
    measure(p, steps, first, n_phases, 10);
    series best = {1e9, 1e9, 1e9};
    for (int s = 0; s < N_SERIES; s++) {
        series x = measure(p, steps, first, n_phases, runs);
        if (x.wall_us < best.wall_us) best = x;
    }
    printf("{\"threads\": %d, \"phases\": %d, \"wall_us\": %.1f, \"outside_us\": %.1f, "
           "\"wait_us\": %.1f}\n",
           threads, n_phases, best.wall_us, best.outside_us, best.wait_us);
    pool_free(p);
    return 0;
}
