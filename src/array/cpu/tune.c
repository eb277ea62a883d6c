/* tune.c: chooses how far ahead steps that stream weights prefetch, by running them.
 *
 * What is best depends on the machine, on the number of threads and on the shape, and no feature
 * bit tells it: on the machines measured one and the same distance gives up to 90 % and costs up
 * to 25 %. Steps of one shape (the layers of a model) take turns with the distances, in the order
 * of the plan: weights then come from where they come from in a replay, and a disturbance meets
 * all distances alike. */
#include "array/cpu/tune.h"
#include <stdlib.h>
#include "array/cpu/pool.h"
#include "base/clock.h"

#define TUNE_SHAPES 32   /* more than a model has; further ones stay as they are */
#define TUNE_SAMPLES 8   /* of a distance and shape, at most */
#define TUNE_NS 15000000 /* after which a shape takes part only for a distance not tried yet */

/* Bytes ahead in the stream of codes. The first is what a step has untuned; another one must be
 * faster by 2 %. */
static const int32_t distance[] = {0, 512, 1024, 2048, 4096};
#define N_DISTANCES (sizeof distance / sizeof *distance)

typedef struct shape {
    int64_t row_bytes, n_bytes;
    int64_t ns[N_DISTANCES][TUNE_SAMPLES];
    size_t n[N_DISTANCES];
    size_t next; /* whose turn it is */
    int64_t spent_ns;
} shape;

typedef struct tuning {
    pool *pool;
    const int64_t *sym;
    int n;
    shape shape[TUNE_SHAPES];
} tuning;

/* NULL: there are too many. */
static shape *shape_of(tuning *t, const step *s)
{
    for (int i = 0; i < t->n; i++)
        if (t->shape[i].row_bytes == s->row_bytes && t->shape[i].n_bytes == s->const_bytes)
            return &t->shape[i];
    if (t->n == TUNE_SHAPES) return NULL;
    t->shape[t->n] = (shape){.row_bytes = s->row_bytes, .n_bytes = s->const_bytes};
    return &t->shape[t->n++];
}

static bool wants_more(const shape *f)
{
    return f->n[f->next] < (f->spent_ns < TUNE_NS ? TUNE_SAMPLES : 1);
}

static ig_status sample(tuning *t, const step *s, shape *f)
{
    const int32_t phase[2] = {0, 1};
    *s->ahead = distance[f->next];
    int64_t ns = clock_mono_ns();
    TRY(pool_run(t->pool, s, phase, 1, t->sym, NULL));
    ns = clock_mono_ns() - ns;
    f->ns[f->next][f->n[f->next]++] = ns;
    f->spent_ns += ns;
    f->next = (f->next + 1) % N_DISTANCES;
    return IG_OK;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int32_t best_of(shape *f)
{
    size_t best = 0;
    double least = 0;
    for (size_t i = 0; i < N_DISTANCES && f->n[i]; i++) {
        qsort(f->ns[i], f->n[i], sizeof f->ns[i][0], by_value);
        double median = (double)f->ns[i][f->n[i] / 2];
        if (i && median >= least) continue;
        best = i;
        least = i ? median : 0.98 * median;
    }
    return distance[best];
}

ig_status tune_steps(const step *steps, int n, const int64_t *sym)
{
    tuning *t = mem_calloc(1, sizeof *t);
    if (!t) return IG_ENOMEM;
    t->pool = pool_shared();
    t->sym = sym;
    ig_status st = t->pool ? IG_OK : IG_ENOMEM;
    bool more = true;
    while (st == IG_OK && more) {
        more = false;
        for (int i = 0; st == IG_OK && i < n; i++) {
            shape *f = steps[i].ahead ? shape_of(t, &steps[i]) : NULL;
            if (!f || !wants_more(f)) continue;
            st = sample(t, &steps[i], f);
            more = true;
        }
    }
    for (int i = 0; i < n; i++) {
        shape *f = steps[i].ahead ? shape_of(t, &steps[i]) : NULL;
        if (f) *steps[i].ahead = st == IG_OK ? best_of(f) : distance[0];
    }
    mem_free(t);
    return st;
}
