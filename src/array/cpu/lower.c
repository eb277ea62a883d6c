/* lower.c: from a group of graph nodes to a step: which family lowers which operation, and what the
 * families share. */
#include <string.h>
#include "array/core/view.h"
#include "array/cpu/lower.h"

static const lower_fn families[N_OPS] = {
#define LOWER(op, family) [OP_##op] = lower_##family,
#include "array/cpu/lower.def"
#undef LOWER
};

static lower_fn family_of(const work *w)
{
    switch (w->kind) {
    case WORK_EW: return lower_elementwise;
    case WORK_EW_ROWS8: return lower_elementwise_rows8;
    case WORK_NORM_ROWS8: return lower_norm_rows8;
    case WORK_QMM8_ADD: return lower_qmm8;
    case WORK_ROPE_WRITE: return lower_paged_write;
    case WORK_NODE: break;
    }
    return w->node->op < N_OPS ? families[w->node->op] : NULL;
}

ig_status lower_work(const work *w, const operand *in, const operand *out, step_mem *mem,
                     step *ret_step)
{
    lowering l = {.w = w,
                  .in = in,
                  .out = out,
                  .mem = mem,
                  .k = kernels_current(),
                  .name = op_table[w->node->op].name};
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

ig_status lower_no_memory(void)
{
    ig_status st = ig_error_code();
    return st != IG_OK ? st : IG_ENOMEM;
}

ig_status lower_bad_dtype(const lowering *l, ig_dtype t)
{
    return ig_fail(IG_EDTYPE, "%s: not available for %s on the CPU", l->name, ig_dtype_name(t));
}

ig_status lower_not_contiguous(const lowering *l, const char *what)
{
    return ig_fail(IG_EUNSUPPORTED,
                   "%s: %s must be row-major without gaps; apply ig_contiguous to it first",
                   l->name, what);
}

const float *lower_row_f32(const kernels *k, float *y, const char *p, ig_dtype t, size_t n)
{
    if (t == IG_F32) return (const float *)p;
    if (t == IG_F16)
        k->f16_to_f32(y, (const uint16_t *)p, n);
    else
        k->bf16_to_f32(y, (const uint16_t *)p, n);
    return y;
}

void lower_store_f32(const kernels *k, char *p, const float *x, ig_dtype t, size_t n)
{
    if (t == IG_F16)
        k->f32_to_f16((uint16_t *)p, x, n);
    else if (t == IG_BF16)
        k->f32_to_bf16((uint16_t *)p, x, n);
    else
        memcpy(p, x, n * sizeof *x);
}

ig_status lower_need(const lowering *l, int j, ig_dtype dtype)
{
    if (dtype != IG_C64 && l->in[j].s.dtype != dtype) return lower_bad_dtype(l, l->in[j].s.dtype);
    return lower_is_contiguous(&l->in[j])
               ? IG_OK
               : lower_not_contiguous(l, op_in_name((op_code)l->w->node->op, j));
}

ig_status lower_rows(const lowering *l, const operand *o, rows_in *ret)
{
    int last = o->s.ndim - 1;
    size_t size = ig_dtype_size(o->s.dtype);
    *ret = (rows_in){.dtype = (uint8_t)o->s.dtype, .size = (uint8_t)size};
    ret->by = o->s.dim[last] == 1 ? (int64_t)size : o->stride[last] * (int64_t)size;
    ret->at = walk_new(l->mem, o->ptr, size, last, o->s.dim, o->stride);
    return ret->at ? IG_OK : lower_no_memory();
}

const float *rows_f32(const rows_in *v, const kernels *k, int64_t row, int64_t n, char *tmp)
{
    const char *p = walk_at(v->at, row);
    char *raw = v->size == 4 ? tmp : tmp + 4 * n;
    if (v->by != v->size) {
        walk_gather(raw, p, v->size, v->by, n);
        p = raw;
    }
    return lower_row_f32(k, (float *)tmp, p, (ig_dtype)v->dtype, (size_t)n);
}

int64_t lower_index(const char *p, ig_dtype t)
{
    switch (t) {
    case IG_BOOL:
    case IG_U8: return *(const uint8_t *)p;
    case IG_I8: return *(const int8_t *)p;
    case IG_U16: return *(const uint16_t *)p;
    case IG_I16: return *(const int16_t *)p;
    case IG_U32: return *(const uint32_t *)p;
    case IG_I32: return *(const int32_t *)p;
    case IG_U64:
    case IG_I64: return *(const int64_t *)p;
    default: return -1;
    }
}

ig_status lower_qmat(const lowering *l, int j, int64_t group, int64_t bits, qmat *ret)
{
    const spec *codes = &l->in[j].s, *scales = &l->in[j + 1].s;
    TRY(lower_need(l, j, IG_U32));
    TRY(lower_need(l, j + 1, IG_C64));
    TRY(lower_need(l, j + 2, scales->dtype));
    *ret = (qmat){.codes = (const uint8_t *)l->in[j].ptr,
                  .scales = l->in[j + 1].ptr,
                  .biases = l->in[j + 2].ptr,
                  .n = codes->dim[codes->ndim - 2],
                  .k = scales->dim[scales->ndim - 1] * group,
                  .group = (int32_t)group,
                  .bits = (int32_t)bits,
                  .sb_type = scales->dtype};
    return IG_OK;
}

qmat qmat_part(const qmat *w, int64_t row, int64_t k0, int64_t n, int64_t k)
{
    qmat m = *w;
    int64_t at = row * w->k + k0, sb = at / w->group * (int64_t)ig_dtype_size(w->sb_type);
    m.codes += at * w->bits / 8;
    m.scales = (const char *)w->scales + sb;
    m.biases = (const char *)w->biases + sb;
    m.n = n;
    m.k = k;
    return m;
}

int64_t lower_const_bytes(const lowering *l, int from, int to)
{
    int64_t n = 0;
    for (int j = from; j < to; j++)
        if (!l->w->in[j].node->trace)
            n += lower_product(&l->in[j].s, 0, l->in[j].s.ndim) *
                 (int64_t)ig_dtype_size(l->in[j].s.dtype);
    return n;
}

ig_status lower_axes(const lowering *l, const operand *o, uint32_t along_mask, axes *ret)
{
    int64_t dim[2][IG_MAX_NDIM], stride[2][IG_MAX_NDIM];
    int n[2] = {0, 0};
    count c[2] = {{.per = 1}, {.per = 1}};
    for (int x = 0; x < o->s.ndim; x++) {
        int g = along_mask >> x & 1;
        dim[g][n[g]] = o->s.dim[x];
        stride[g][n[g]++] = o->stride[x];
        if (x == 0 && o->s.sym)
            c[g].sym = o->s.sym;
        else
            c[g].per *= o->s.dim[x];
    }
    size_t size = ig_dtype_size(o->s.dtype);
    *ret = (axes){.n_kept = c[0], .n_along = c[1], .n_kept_axes = n[0]};
    ret->kept = walk_new(l->mem, o->ptr, size, n[0], dim[0], stride[0]);
    ret->along = walk_new(l->mem, o->ptr, size, n[1], dim[1], stride[1]);
    return ret->kept && ret->along ? IG_OK : lower_no_memory();
}

uint32_t lower_axes_mask(const lowering *l)
{
    const ig_node *n = l->w->node;
    uint32_t mask = 0;
    for (int64_t j = 0; j < n->i[0]; j++) mask |= 1u << n->i[1 + j];
    return n->i[0] ? mask : (1u << l->in[0].s.ndim) - 1;
}
