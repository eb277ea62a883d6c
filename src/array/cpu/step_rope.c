/* step_rope.c: rotary embedding: each vector of a row turned by the angles of the row's
 * position. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"

typedef struct rope_args {
    rows_in x; /* vectors of D, for each row and head */
    count rows;
    int64_t heads, d, half, n_positions;
    char *out;
    const int32_t *positions;
    const float *table; /* [n_positions][cos, sin][half] */
    const kernels *k;
    uint8_t dtype, size;
    bool interleaved;
} rope_args;

static int64_t rope_blocks(const void *args, const run_ctx *r)
{
    const rope_args *a = args;
    return rows_blocks(count_now(a->rows, r), 2 * a->heads * a->d, r->n_workers);
}

/* One vector; what lies behind the turned part stays. A position outside the table turns it to
 * NaN. */
static void turn(const rope_args *a, int64_t vector, int64_t position, char *tmp)
{
    const float *x = rows_f32(&a->x, a->k, vector, a->d, tmp);
    char *out = a->out + vector * a->d * a->size;
    float *y = (float *)(a->dtype == IG_F32 ? out : tmp);
    const float *angles = a->table + position * 2 * a->half;
    int64_t turned = 2 * a->half;
    if (position >= 0 && position < a->n_positions)
        a->k->rope(y, x, angles, angles + a->half, (size_t)a->half, a->interleaved);
    else
        for (int64_t i = 0; i < turned; i++) y[i] = NAN;
    if (y != x) memcpy(y + turned, x + turned, (size_t)(a->d - turned) * sizeof *y);
    if (a->dtype != IG_F32) lower_store_f32(a->k, out, y, (ig_dtype)a->dtype, (size_t)a->d);
}

static void rope_run(const void *args, const run_ctx *r, int64_t block)
{
    const rope_args *a = args;
    span s = rows_span(count_now(a->rows, r), 2 * a->heads * a->d, r->n_workers, block);
    for (int64_t t = s.first; t < s.end; t++)
        for (int64_t h = 0; h < a->heads; h++)
            turn(a, t * a->heads + h, a->positions[t], step_scratch(r));
}

ig_status lower_rope(const lowering *l, step *ret_step)
{
    const operand *x = &l->in[0], *table = &l->in[2];
    rope_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(lower_need(l, 1, IG_I32));
    TRY(lower_need(l, 2, IG_F32));
    *a = (rope_args){.out = l->out[0].ptr, .positions = (const int32_t *)l->in[1].ptr, .k = l->k};
    a->table = (const float *)table->ptr;
    a->rows = lower_count(&x->s, 0, 1);
    a->heads = x->s.dim[1];
    a->d = x->s.dim[2];
    a->half = table->s.dim[2];
    a->n_positions = table->s.dim[0];
    a->dtype = (uint8_t)x->s.dtype;
    a->size = (uint8_t)ig_dtype_size(x->s.dtype);
    a->interleaved = l->w->node->i[0] != 0;
    if (a->d > ROW_MAX)
        return ig_fail(IG_ELIMIT, "%s: vectors of %lld elements; %d are possible", l->name,
                       (long long)a->d, ROW_MAX);
    *ret_step = (step){.run = rope_run, .blocks = rope_blocks, .args = a, .label = "rope"};
    return lower_rows(l, x, &a->x);
}
