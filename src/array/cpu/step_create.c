/* step_create.c: arrays made from numbers: arange, full, tri. Values are computed in float64 and
 * converted. */
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/typed.h"
#include "array/cpu/walk.h"

#define CHUNK 512

typedef struct create_args {
    char *out;
    count n;
    uint16_t op;
    uint8_t dtype, size;
    double start, step; /* arange; full: the value is start */
    int64_t cols, k;    /* tri */
    typed_fn cast;
    const kernels *kernels;
} create_args;

/* Elements [first, first + n) as float64. */
static void values(const create_args *a, int64_t first, int64_t n, double *v)
{
    for (int64_t j = 0; j < n; j++) {
        int64_t i = first + j;
        if (a->op == OP_arange)
            v[j] = a->start + (double)i * a->step;
        else if (a->op == OP_tri)
            v[j] = i % a->cols <= i / a->cols + a->k;
        else
            v[j] = a->start;
    }
}

static int64_t create_blocks(const void *args, const run_ctx *r)
{
    const create_args *a = args;
    return rows_blocks((count_now(a->n, r) + CHUNK - 1) / CHUNK, 2 * CHUNK, r->n_workers);
}

static void create_run(const void *args, const run_ctx *r, int64_t block)
{
    const create_args *a = args;
    int64_t n = count_now(a->n, r);
    span s = rows_span((n + CHUNK - 1) / CHUNK, 2 * CHUNK, r->n_workers, block);
    double *v = (double *)step_scratch(r);
    char *converted = (char *)(v + CHUNK);
    for (int64_t first = s.first * CHUNK; first < s.end * CHUNK && first < n; first += CHUNK) {
        int64_t len = n - first < CHUNK ? n - first : CHUNK;
        char *y = a->out + first * a->size;
        values(a, first, len, v);
        a->cast(converted, v, NULL, NULL, (size_t)len);
        if (a->dtype == IG_F16 || a->dtype == IG_BF16)
            lower_store_f32(a->kernels, y, (float *)converted, (ig_dtype)a->dtype, (size_t)len);
        else
            memcpy(y, converted, (size_t)(len * a->size));
    }
}

ig_status lower_create(const lowering *l, step *ret_step)
{
    const ig_node *n = l->w->node;
    ig_dtype t = l->out[0].s.dtype;
    create_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    *a = (create_args){.out = l->out[0].ptr, .op = n->op, .dtype = (uint8_t)t, .kernels = l->k};
    a->n = lower_count(&l->out[0].s, 0, l->out[0].s.ndim);
    a->size = (uint8_t)ig_dtype_size(t);
    a->cast = typed_cast(IG_F64, typed_register(t), t == IG_F16 || t == IG_BF16);
    if (!a->cast) return lower_bad_dtype(l, t);
    if (n->op != OP_tri) a->start = n->f[0];
    if (n->op == OP_arange) a->step = n->f[2];
    if (n->op == OP_tri) {
        a->cols = n->i[1];
        a->k = n->i[2];
    }
    *ret_step = (step){.run = create_run, .blocks = create_blocks, .args = a, .label = "create"};
    return IG_OK;
}
