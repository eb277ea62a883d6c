/* lmsteps.c: see lmsteps.h. */
#include "support/lmsteps.h"
#include "base/threefry.h"
#include "ingot/device.h"
#include "ingot/memory.h"
#include "support/test.h"
#include "support/tinylm.h"

#define MAX_STREAMS 8
#define MAX_CHUNK 64
#define N_THREADS 2
#define SERIES 50

typedef struct streams {
    ig_lm *lm;
    ig_lm_session *s[MAX_STREAMS];
    int n;
    int64_t vocab;
    uint32_t turn;
    int64_t n_joined, n_left, n_tokens;
    int32_t widest; /* most tokens of a step */
} streams;

static uint32_t draw(streams *t, uint32_t n)
{
    uint32_t out[2];
    threefry2x32((const uint32_t[2]){5, 3}, (const uint32_t[2]){t->turn++, 0}, out);
    return out[0] % n;
}

static void leave(streams *t, int i)
{
    ig_lm_session_free(t->s[i]);
    t->s[i] = t->s[--t->n];
    t->n_left++;
}

/* Short prompts are likelier than long ones: 1 to 96 tokens. */
static void join(streams *t)
{
    int32_t ids[96];
    ig_lm_session_spec spec = {.prompt = ids,
                               .n_prompt = 1 + draw(t, 3u << draw(t, 6)),
                               .max_new = 1 + draw(t, 40),
                               .sampling = {.temperature = (float)draw(t, 2), .seed = t->turn}};
    tinylm_prompt(t->turn, t->vocab, ids, spec.n_prompt);
    assert_ok(ig_lm_session_new(t->lm, &spec, &t->s[t->n]));
    t->n++;
    t->n_joined++;
}

static void change(streams *t)
{
    int64_t before = t->n_left;
    for (int i = t->n; i-- > 0;)
        if (!ig_lm_session_pending(t->s[i])) leave(t, i);
    if (t->n == 0 || (t->n < MAX_STREAMS && draw(t, 2)))
        join(t);
    else if (t->n_left == before && t->n > 1)
        leave(t, (int)draw(t, (uint32_t)t->n));
    else if (t->n_left == before)
        join(t);
}

static void step(streams *t)
{
    ig_lm_feed feeds[MAX_STREAMS];
    ig_lm_result results[MAX_STREAMS];
    ig_counters before, after;
    int32_t n_tokens = 0;
    for (int i = 0; i < t->n; i++) {
        int64_t pending = ig_lm_session_pending(t->s[i]), chunk = 1 + draw(t, MAX_CHUNK);
        feeds[i] = (ig_lm_feed){t->s[i], (int32_t)(pending < chunk ? pending : chunk)};
        n_tokens += feeds[i].n_tokens;
    }
    ig_memory_counters(&before);
    ig_status s = ig_lm_step(t->lm, feeds, t->n, results);
    ig_memory_counters(&after);
    assert_ok(s);
    assert_int_equal(after.n_nodes, before.n_nodes);
    assert_int_equal(after.n_allocs, before.n_allocs);
    assert_int_equal(after.n_plans, before.n_plans);
    t->n_tokens += n_tokens;
    if (n_tokens > t->widest) t->widest = n_tokens;
}

/* Of a series of steps, in us a step. */
typedef struct cost {
    double step, outside, sampling; /* outside kernels and barriers, within the plan; outside it */
} cost;

static cost cost_of(const ig_lm_step_stats *a, const ig_lm_step_stats *b)
{
    double n = (double)(b->n_steps - a->n_steps) * 1e3, plan = (double)(b->plan_ns - a->plan_ns),
           inside = (double)(b->kernel_ns - a->kernel_ns + b->wait_ns - a->wait_ns) / N_THREADS,
           wall = (double)(b->wall_ns - a->wall_ns);
    return (cost){wall / n, (plan - inside) / n, (wall - plan) / n};
}

void lmsteps_run(ig_lm *lm, int n_steps)
{
    ig_lm_facts f;
    ig_lm_step_stats start, before, now;
    assert_ok(ig_device_set_threads(N_THREADS));
    assert_ok(ig_lm_warm(lm));
    ig_lm_set_timing(lm, true);
    ig_lm_get_facts(lm, &f);
    ig_lm_get_step_stats(lm, &start);
    before = start;
    streams t = {.lm = lm, .vocab = f.vocab};
    cost best = {.outside = 1e12};
    for (int i = 1; i <= n_steps; i++) {
        change(&t);
        step(&t);
        if (i % SERIES) continue;
        ig_lm_get_step_stats(lm, &now);
        cost c = cost_of(&before, &now);
        if (c.outside < best.outside) best = c;
        before = now;
    }
    ig_lm_get_step_stats(lm, &now);
    ig_lm_get_facts(lm, &f);
    while (t.n) leave(&t, 0);
    assert_int_equal(now.n_steps - start.n_steps, n_steps);
    assert_int_equal(now.n_tokens - start.n_tokens, t.n_tokens);
    assert_in_range(f.n_plans, 1, 3);
    print_message("%d steps, %lld tokens (at most %d), %lld joined, %lld left, %lld plan; in the "
                  "best series %.1f us a step: %.1f us of it outside kernels and barriers, %.1f us "
                  "sampling\n",
                  n_steps, (long long)t.n_tokens, t.widest, (long long)t.n_joined,
                  (long long)t.n_left, (long long)f.n_plans, best.step, best.outside,
                  best.sampling);
}
