/* lower.c: from a group of graph nodes to a step: which family lowers which operation, and what the families share. */
#include <string.h>
#include "array/core/view.h"
#include "array/cpu/lower.h"

/* Elementwise operations are not here: they come as programs (WORK_EW). Views come when strides cannot say them. */
static const lower_fn families[N_OPS] = {
    [OP_arange] = lower_create,
    [OP_full] = lower_create,
    [OP_tri] = lower_create,
    [OP_reshape] = lower_copy,
    [OP_contiguous] = lower_copy,
    [OP_concatenate] = lower_concatenate,
    [OP_sum] = lower_reduce,
    [OP_prod] = lower_reduce,
    [OP_mean] = lower_reduce,
    [OP_max] = lower_reduce,
    [OP_min] = lower_reduce,
    [OP_all] = lower_reduce,
    [OP_any] = lower_reduce,
    [OP_matmul] = lower_matmul,
};

static lower_fn family_of(const work *w)
{
    switch (w->kind) {
    case WORK_EW: return lower_elementwise;
    case WORK_EW_ROWS8: return lower_elementwise_rows8;
    case WORK_NORM_ROWS8:
    case WORK_QMM8_ADD: return NULL;
    case WORK_NODE: break;
    }
    return w->node->op < N_OPS ? families[w->node->op] : NULL;
}

ig_status lower_work(const work *w, const operand *in, const operand *out, step_mem *mem, step *ret_step)
{
    lowering l = {.w = w, .in = in, .out = out, .mem = mem, .k = kernels_current(), .name = op_table[w->node->op].name};
    lower_fn lower = family_of(w);
    if (!lower) return ig_fail(IG_EUNSUPPORTED, "%s: the CPU has no step for it", l.name);
    for (int j = 0; j < w->node->n_out; j++)
        if (!lower_is_contiguous(&out[j])) return lower_not_contiguous(&l, "result");
    step s = {0};
    TRY(lower(&l, &s));
    s.op = w->node->op;
    *ret_step = s;
    return IG_OK;
}

int64_t lower_product(const spec *s, int from, int to)
{
    int64_t n = 1;
    for (int a = from; a < to; a++) n *= s->dim[a];
    return n;
}

count lower_count(const spec *s, int from, int to)
{
    count c = {.per = 1, .sym = from == 0 && to > 0 ? s->sym : 0};
    for (int a = from; a < to; a++)
        if (a > 0 || !s->sym) c.per *= s->dim[a];
    return c;
}

bool lower_is_contiguous(const operand *o) { return view_is_contiguous(&o->s, o->stride); }

ig_status lower_no_memory(void) { return IG_ENOMEM; }

ig_status lower_bad_dtype(const lowering *l, ig_dtype t)
{
    return ig_fail(IG_EDTYPE, "%s: not available for %s on the CPU", l->name, ig_dtype_name(t));
}

ig_status lower_not_contiguous(const lowering *l, const char *what)
{
    return ig_fail(IG_EUNSUPPORTED, "%s: %s must be row-major without gaps; apply ig_contiguous to it first", l->name,
                   what);
}

const float *lower_row_f32(const kernels *k, float *y, const char *p, ig_dtype t, size_t n)
{
    if (t == IG_F32) return (const float *)p;
    if (t == IG_F16) k->f16_to_f32(y, (const uint16_t *)p, n);
    else k->bf16_to_f32(y, (const uint16_t *)p, n);
    return y;
}

void lower_store_f32(const kernels *k, char *p, const float *x, ig_dtype t, size_t n)
{
    if (t == IG_F16) k->f32_to_f16((uint16_t *)p, x, n);
    else if (t == IG_BF16) k->f32_to_bf16((uint16_t *)p, x, n);
    else memcpy(p, x, n * sizeof *x);
}
