/* device.c: the CPU as a device: lowering (lower.c), running (pool.c), its threads, and what may
 * happen in place. */
#include <string.h>
#include "array/core/shape.h"
#include "array/cpu/lower.h"
#include "array/cpu/pool.h"
#include "array/cpu/tune.h"
#include "ingot/device.h"

static ig_status run(const step *steps, const int32_t *first, int n_phases, const int64_t *sym,
                     run_counters *c)
{
    pool *p = pool_shared();
    return p ? pool_run(p, steps, first, n_phases, sym, c) : IG_ENOMEM;
}

const device *device_default(void)
{
    static const device cpu = {.name = "cpu", .lower = lower_work, .run = run, .tune = tune_steps};
    return &cpu;
}

int ig_device_threads(void)
{
    pool *p = pool_shared();
    return p ? pool_threads(p) : 1;
}

ig_status ig_device_set_threads(int n)
{
    if (n < 1 || n > POOL_MAX_THREADS)
        return ig_fail(IG_EINVAL, "%d threads: 1 to %d are possible", n, POOL_MAX_THREADS);
    pool *p = pool_shared();
    return p ? pool_set_threads(p, n) : IG_ENOMEM;
}

const char *ig_kset(void) { return "i8c16-1"; }

static bool same_place(const spec *a, const spec *b)
{
    return ig_dtype_size(a->dtype) == ig_dtype_size(b->dtype) && shape_eq(a, b);
}

/* Is the array of input j another input too? */
static bool is_twice(const work *w, int j)
{
    for (int k = 0; k < w->n_in; k++)
        if (k != j && w->in[k].node == w->in[j].node) return true;
    return false;
}

/* In place is right where every block reads its elements of the input before it writes the same
 * ones of the result and no other block reads them. */
bool device_in_place(const work *w, int j)
{
    if (j >= w->n_in || ig_is_empty(w->in[j]) || w->node->n_out != 1) return false;
    const spec *in = node_spec(w->in[j]), *out = &w->node->out[0];
    switch (w->kind) {
    case WORK_EW: return same_place(in, out);
    case WORK_QMM8_ADD: return j == w->n_in - 1 && same_place(in, out);
    case WORK_ROPE_WRITE: return j == 0;
    case WORK_EW_ROWS8:
    case WORK_NORM_ROWS8: return false;
    case WORK_NODE: break;
    }
    switch (w->node->op) {
    case OP_rms_norm:
    case OP_layer_norm:
    case OP_rope: return j == 0 && in->dtype == out->dtype && same_place(in, out);
    case OP_put_rows:
    case OP_slice_update:
    case OP_paged_write: return j == 0 && !is_twice(w, j);
    default: return false;
    }
}
