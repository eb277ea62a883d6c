/* plan.c: replaying a plan, and what it tells about itself. A replay writes the symbols' values and
 * hands the steps to the device: it makes no node, allocates nothing and takes no lock. */
#include "array/transform/plan.h"
#include <string.h>
#include "base/clock.h"

void ig_plan_free(ig_plan *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_constants; i++) ig_drop(&p->constants[i]);
    for (int i = 0; i < p->n_symbols; i++) mem_free(p->symbol_name[i]);
    mem_free(p->constants);
    mem_free(p->steps);
    mem_free(p->first);
    mem_free(p->input);
    mem_free(p->output);
    step_mem_free(p->mem);
    buffer_drop(p->arena);
    buffer_drop(p->in_mem);
    buf_done(&p->text);
    mem_free(p);
}

void *ig_plan_input(ig_plan *p, int i) { return i >= 0 && i < p->n_inputs ? p->input[i] : NULL; }

const void *ig_plan_output(ig_plan *p, int i)
{
    return i >= 0 && i < p->n_outputs ? p->output[i] : NULL;
}

static ig_status take_values(ig_plan *p, const char *name, const int64_t *values, int n_values)
{
    if (n_values != p->n_symbols)
        return ig_fail(IG_EINVAL, "%s: %d symbol values for a plan of %d symbols", name, n_values,
                       p->n_symbols);
    for (int i = 0; i < n_values; i++)
        if (values[i] < 0 || values[i] > p->capacity[i])
            return ig_fail(IG_ELIMIT, "%s: %s is %lld, but its capacity is %lld", name,
                           p->symbol_name[i], (long long)values[i], (long long)p->capacity[i]);
    for (int i = 0; i < n_values; i++) p->sym[1 + i] = values[i];
    return IG_OK;
}

static ig_status tune(ig_plan *p) { return p->dev->tune(p->steps, p->n_steps, p->sym); }

static ig_status replay(ig_plan *p)
{
    run_counters c = {.timing = p->timing};
    int64_t t = clock_mono_ns();
    TRY(p->dev->run(p->steps, p->first, p->n_phases, p->sym, &c));
    p->stats.wall_ns += clock_mono_ns() - t;
    p->stats.kernel_ns += c.kernel_ns;
    p->stats.wait_ns += c.wait_ns;
    p->stats.n_replays++;
    return IG_OK;
}

/* One thread at a time. */
static ig_status alone(ig_plan *p, const char *name, const int64_t *values, int n_values,
                       ig_status (*what)(ig_plan *))
{
    if (atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        return ig_fail(IG_EINVAL, "%s: another thread is using this plan", name);
    ig_status st = take_values(p, name, values, n_values);
    if (st == IG_OK) st = what(p);
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return st;
}

ig_status ig_plan_replay(ig_plan *p, const int64_t *values, int n_values)
{
    return alone(p, "ig_plan_replay", values, n_values, replay);
}

ig_status ig_plan_tune(ig_plan *p, const int64_t *values, int n_values)
{
    return alone(p, "ig_plan_tune", values, n_values, tune);
}

void ig_plan_get_stats(const ig_plan *p, ig_plan_stats *ret_stats) { *ret_stats = p->stats; }

void ig_plan_set_timing(ig_plan *p, bool on) { p->timing = on; }

size_t ig_plan_format(const ig_plan *p, char *out, size_t cap)
{
    size_t n = p->text.n;
    if (cap) {
        size_t k = n < cap ? n : cap - 1;
        if (k) memcpy(out, p->text.data, k);
        out[k] = 0;
    }
    return n;
}
