/* step_rope.c: rotary embedding: each vector of a row turned by the angles of the row's
 * position. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"

typedef struct rope_args {
    turned x;
    count rows;
    char *out;
    const kernels *k;
    uint8_t dtype, size;
} rope_args;

void turn(const turned *a, const kernels *k, int64_t vector, float *y, char *tmp)
{
    const float *x = rows_f32(&a->v, k, vector, a->d, tmp);
    int64_t position = a->positions[vector / a->heads], n = 2 * a->half;
    const float *angles = a->table + position * n;
    if (position >= 0 && position < a->n_positions)
        k->rope(y, x, angles, angles + a->half, (size_t)a->half, a->interleaved);
    else
        for (int64_t i = 0; i < n; i++) y[i] = NAN;
    if (y != x) memcpy(y + n, x + n, (size_t)(a->d - n) * sizeof *y);
}

static int64_t rope_blocks(const void *args, const run_ctx *r)
{
    const rope_args *a = args;
    return rows_blocks(count_now(a->rows, r), 2 * a->x.heads * a->x.d, r->n_workers);
}

static void rope_run(const void *args, const run_ctx *r, int64_t block)
{
    const rope_args *a = args;
    char *tmp = step_scratch(r);
    span s = rows_span(count_now(a->rows, r), 2 * a->x.heads * a->x.d, r->n_workers, block);
    for (int64_t i = s.first * a->x.heads; i < s.end * a->x.heads; i++) {
        char *out = a->out + i * a->x.d * a->size;
        float *y = (float *)(a->dtype == IG_F32 ? out : tmp);
        turn(&a->x, a->k, i, y, tmp);
        if (a->dtype != IG_F32) lower_store_f32(a->k, out, y, (ig_dtype)a->dtype, (size_t)a->x.d);
    }
}

ig_status lower_turned(const lowering *l, const ig_node *rope, int jx, int jp, turned *ret)
{
    const operand *x = &l->in[jx], *table = &l->in[jp + 1];
    TRY(lower_need(l, jp, IG_I32));
    TRY(lower_need(l, jp + 1, IG_F32));
    *ret = (turned){.positions = (const int32_t *)l->in[jp].ptr,
                    .table = (const float *)table->ptr,
                    .heads = x->s.dim[1],
                    .d = x->s.dim[2],
                    .half = table->s.dim[2],
                    .n_positions = table->s.dim[0],
                    .interleaved = rope->i[0] != 0};
    if (ret->d > ROW_MAX)
        return ig_fail(IG_ELIMIT, "%s: vectors of %lld elements; %d are possible", l->name,
                       (long long)ret->d, ROW_MAX);
    return lower_rows(l, x, &ret->v);
}

ig_status lower_rope(const lowering *l, step *ret_step)
{
    const spec *x = &l->in[0].s;
    rope_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    *a = (rope_args){.out = l->out[0].ptr, .k = l->k, .rows = lower_count(x, 0, 1)};
    a->dtype = (uint8_t)x->dtype;
    a->size = (uint8_t)ig_dtype_size(x->dtype);
    *ret_step = (step){.run = rope_run, .blocks = rope_blocks, .args = a, .label = "rope"};
    return lower_turned(l, l->w->node, 0, 1, &a->x);
}
