/* kalman.c: a bank of Kalman filters as one plan. It has nothing to do with language models: it
 * shows what row symbols and states are for.
 *
 * 4096 objects move on a line; each keeps its velocity up to small random pushes. Sensors report
 * noisy positions: at each step of any number of objects (0 to 256), some twice as often as
 * others. The bank is a state [objects, 5]: position, velocity, and the covariance of both (pp,
 * pv, vv). A step
 *   1. gathers the rows of the objects that were seen,
 *   2. predicts them to the time of the report,
 *   3. corrects them by the report,
 *   4. writes them back, in place.
 * Traced once, replayed for every step: no graph, no allocation, no copy of the bank. At the end
 * the bank is compared with the same filters written as scalar C.
 *
 * Build: make examples; run: build/examples/kalman [steps] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ingot/ingot.h"

#define N_OBJECTS 4096
#define MAX_SEEN 256
#define N_FIELDS 5
#define PUSH 1e-3f  /* variance of the acceleration, per second */
#define NOISE 0.25f /* variance of a reported position */

/* --- the plan */

static ig_array column(ig_array rows, int i)
{
    const int64_t start[] = {0, i}, stop[] = {INT64_MAX, i + 1}, step[] = {1, 1};
    return ig_slice(rows, start, 2, stop, 2, step, 2);
}

/* Inputs: ids [seen] i32, dt [seen, 1] seconds since the object's last report, z [seen, 1] reports.
 * Output: corrected positions [seen, 1]. */
static ig_status filter(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)n_in, (void)n_out;
    ig_array bank = ig_state_array(user), ids = in[0], dt = in[1], z = in[2];
    ig_array rows = ig_take(bank, ids, 0);
    ig_array x = column(rows, 0), v = column(rows, 1);
    ig_array pp = column(rows, 2), pv = column(rows, 3), vv = column(rows, 4);

    /* x += v dt; P = F P F' + Q dt */
    x = ig_add(x, ig_multiply(v, dt));
    pp = ig_add(pp, ig_multiply(dt, ig_add(ig_add(pv, pv), ig_multiply(dt, vv))));
    pv = ig_add(pv, ig_multiply(dt, vv));
    vv = ig_add(vv, ig_multiply(dt, ig_scalar_f32(PUSH)));

    /* K = P H' / (H P H' + R); x += K (z - x); P -= K H P */
    ig_array s = ig_add(pp, ig_scalar_f32(NOISE));
    ig_array kx = ig_divide(pp, s), kv = ig_divide(pv, s), error = ig_subtract(z, x);
    out[0] = ig_add(x, ig_multiply(kx, error));
    ig_array fields[N_FIELDS] = {
        out[0],
        ig_add(v, ig_multiply(kv, error)),
        ig_subtract(pp, ig_multiply(kx, pp)),
        ig_subtract(pv, ig_multiply(kx, pv)),
        ig_subtract(vv, ig_multiply(kv, pv)),
    };
    ig_put_rows(bank, ids, ig_concatenate(fields, N_FIELDS, 1));
    return IG_OK;
}

static ig_status make_plan(ig_state *bank, ig_plan **ret_plan)
{
    const ig_symbol seen = {"seen", MAX_SEEN};
    const ig_input inputs[] = {
        {"ids", IG_I32, 1, {0}, 0}, {"dt", IG_F32, 2, {0, 1}, 0}, {"z", IG_F32, 2, {0, 1}, 0}};
    const ig_plan_spec spec = {
        .symbols = &seen, .n_symbols = 1, .inputs = inputs, .n_inputs = 3, .n_outputs = 1};
    return ig_compile(filter, bank, &spec, ret_plan);
}

/* --- the world, and the same filters in scalar C */

typedef struct object {
    float at, velocity, last_seen; /* the truth */
    float row[N_FIELDS];           /* a filter of its own */
} object;

static float uniform(void) { return (float)rand() / (float)RAND_MAX - 0.5f; }

/* Sum of 12 uniforms: near enough to normal, variance 1. */
static float normal(void)
{
    float sum = 0;
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}

static void correct(object *o, float dt, float z)
{
    float *r = o->row, pp = r[2] + dt * (r[3] + r[3] + dt * r[4]), pv = r[3] + dt * r[4];
    float vv = r[4] + dt * PUSH, x = r[0] + r[1] * dt, kx = pp / (pp + NOISE),
          kv = pv / (pp + NOISE);
    float row[N_FIELDS] = {x + kx * (z - x), r[1] + kv * (z - x), pp - kx * pp, pv - kx * pv,
                           vv - kv * pv};
    memcpy(r, row, sizeof row);
}

static void see(object *o, int32_t id, float now, int32_t *ids, float *dt, float *z)
{
    *ids = id;
    *dt = now - o->last_seen;
    o->velocity += sqrtf(PUSH * *dt) * normal();
    o->at += o->velocity * *dt;
    o->last_seen = now;
    *z = o->at + sqrtf(NOISE) * normal();
    correct(o, *dt, *z);
}

/* A step sees each object at most once: equal ids in one step would read the same old row. */
static ig_status run(ig_plan *p, object *objects, int first_step, int n_steps,
                     double *ret_report_error, double *ret_filter_error)
{
    int32_t *ids = ig_plan_input(p, 0);
    float *dt = ig_plan_input(p, 1), *z = ig_plan_input(p, 2);
    double report = 0, filtered = 0;
    int64_t n = 0;
    for (int k = first_step; k < n_steps; k++) {
        int64_t seen = rand() % (MAX_SEEN + 1);
        int from = rand() % N_OBJECTS;
        for (int i = 0; i < seen; i++) {
            int32_t id = (from + i) % N_OBJECTS;
            see(&objects[id], id, (float)(k + 1) * 0.1f, &ids[i], &dt[i], &z[i]);
        }
        ig_status st = ig_plan_replay(p, &seen, 1);
        if (st != IG_OK) return st;
        const float *x = ig_plan_output(p, 0);
        for (int i = 0; i < seen && k > n_steps / 2; i++, n++) {
            double at = objects[ids[i]].at;
            report += (z[i] - at) * (z[i] - at);
            filtered += (x[i] - at) * (x[i] - at);
        }
    }
    *ret_report_error = n ? sqrt(report / (double)n) : 0;
    *ret_filter_error = n ? sqrt(filtered / (double)n) : 0;
    return IG_OK;
}

static void start(object *objects, float *bank)
{
    for (int i = 0; i < N_OBJECTS; i++) {
        objects[i] =
            (object){.at = 10 * uniform(), .velocity = uniform(), .row = {0, 0, 100, 0, 1}};
        memcpy(bank + i * N_FIELDS, objects[i].row, sizeof objects[i].row);
    }
}

static int64_t n_different(const object *objects, const float *bank)
{
    int64_t n = 0;
    for (int i = 0; i < N_OBJECTS; i++)
        n += memcmp(objects[i].row, bank + i * N_FIELDS, sizeof objects[i].row) != 0;
    return n;
}

/* Tracks the objects and prints what it cost; *ret_different: filters unlike scalar C. */
static ig_status track(ig_state *bank, ig_plan *plan, object *objects, int n_steps,
                       int64_t *ret_different)
{
    double report = 0, filtered = 0;
    ig_counters before, after;
    ig_plan_stats s;
    start(objects, ig_state_data(bank));
    ig_status st = run(plan, objects, 0, 1, &report, &filtered); /* starts the threads */
    ig_memory_counters(&before);
    if (st == IG_OK) st = run(plan, objects, 1, n_steps, &report, &filtered);
    ig_memory_counters(&after);
    if (st != IG_OK) return st;
    ig_plan_get_stats(plan, &s);
    *ret_different = n_different(objects, ig_state_data(bank));
    printf("plan: %lld steps in %lld phases, arena %lld bytes, compiled in %lld us\n",
           (long long)s.n_steps, (long long)s.n_phases, (long long)s.arena_bytes,
           (long long)s.compile_us);
    printf(
        "%lld replays, %.1f us each; %lld nodes and %lld allocations made by them\n",
        (long long)s.n_replays, (double)s.wall_ns / 1e3 / (double)(s.n_replays ? s.n_replays : 1),
        (long long)(after.n_nodes - before.n_nodes), (long long)(after.n_allocs - before.n_allocs));
    printf("position error: reports %.3f, filters %.3f; filters that differ from scalar C: %lld\n",
           report, filtered, (long long)*ret_different);
    return IG_OK;
}

int main(int argc, char **argv)
{
    int n_steps = argc > 1 ? atoi(argv[1]) : 5000;
    const int64_t dims[] = {N_OBJECTS, N_FIELDS};
    int64_t different = 0;
    ig_state *bank = NULL;
    ig_plan *plan = NULL;
    object *objects = malloc(N_OBJECTS * sizeof *objects);
    ig_status st = objects ? ig_state_new(IG_F32, dims, 2, &bank) : IG_ENOMEM;
    if (st == IG_OK) st = make_plan(bank, &plan);
    if (st == IG_OK) st = track(bank, plan, objects, n_steps, &different);
    if (st != IG_OK) fprintf(stderr, "kalman: %s\n", ig_error_message());
    ig_plan_free(plan);
    ig_state_free(bank);
    free(objects);
    return st != IG_OK || different ? 1 : 0;
}
