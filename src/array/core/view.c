/* view.c: where the result of a renaming operation lies inside its input (see view.h). */
#include "array/core/view.h"
#include <string.h>
#include "array/core/eval.h"

void view_contiguous(const spec *s, int64_t *ret_stride)
{
    int64_t n = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        ret_stride[i] = n;
        n *= s->dim[i] ? s->dim[i] : 1;
    }
}

bool view_is_contiguous(const spec *s, const int64_t *stride)
{
    int64_t n = 1;
    bool ok = true;
    for (int i = s->ndim - 1; i >= 0; i--) {
        if (s->dim[i] == 0) return true;
        if (s->dim[i] != 1 && stride[i] != n) ok = false;
        n *= s->dim[i];
    }
    return ok;
}

/* One run of input axes whose product equals one run of output axes: strides can say it when the
 * input axes, those of size 1 aside, nest without gaps. */
static bool split_run(const spec *in, const int64_t *stride, int i0, int i1, const spec *out,
                      int64_t *ret_stride, int o0, int o1)
{
    int last = -1;
    int64_t inner = 1; /* stride of the innermost axis */
    for (int i = i1 - 1; i >= i0; i--) {
        if (in->dim[i] == 1) continue;
        if (last < 0)
            inner = stride[i];
        else if (stride[i] != stride[last] * in->dim[last])
            return false;
        last = i;
    }
    for (int o = o1 - 1; o >= o0; o--) {
        ret_stride[o] = inner;
        inner *= out->dim[o];
    }
    return true;
}

/* Cuts both shapes into the shortest runs of equal product. */
static bool reshape_strides(const spec *in, const int64_t *stride, const spec *out,
                            int64_t *ret_stride)
{
    int i0 = 0, o0 = 0;
    while (i0 < in->ndim || o0 < out->ndim) {
        int i1 = i0, o1 = o0;
        int64_t ni = i1 < in->ndim ? in->dim[i1++] : 1, no = o1 < out->ndim ? out->dim[o1++] : 1;
        while (ni != no) {
            if (ni < no)
                ni *= in->dim[i1++];
            else
                no *= out->dim[o1++];
        }
        if (!split_run(in, stride, i0, i1, out, ret_stride, o0, o1)) return false;
        i0 = i1;
        o0 = o1;
    }
    return true;
}

static bool reshape_view(const ig_node *v, const operand *in, operand *out)
{
    const spec *si = node_spec(v->in[0]), *so = &v->out[0];
    for (int i = 0; i < so->ndim; i++)
        if (so->dim[i] == 0) {
            view_contiguous(so, out->stride);
            return true;
        }
    return reshape_strides(si, in->stride, so, out->stride);
}

static bool transpose_view(const ig_node *v, const operand *in, operand *out)
{
    for (int i = 0; i < v->out[0].ndim; i++) out->stride[i] = in->stride[v->i[1 + i]];
    return true;
}

/* i: ndim and starts, ndim and stops, ndim and steps, normalised by the shape rule. */
static bool slice_view(const ig_node *v, const operand *in, operand *out)
{
    const spec *so = &v->out[0];
    int n = so->ndim;
    const int64_t *start = v->i + 1, *every = v->i + 3 + 2 * n;
    int64_t first = 0, size = 1;
    for (int i = 0; i < n; i++) {
        out->stride[i] = in->stride[i] * every[i];
        first += in->stride[i] * start[i];
        size *= so->dim[i];
    }
    if (size > 0) out->ptr = in->ptr + first * (int64_t)ig_dtype_size(so->dtype);
    return true;
}

static bool broadcast_view(const ig_node *v, const operand *in, operand *out)
{
    const spec *si = node_spec(v->in[0]), *so = &v->out[0];
    int shift = so->ndim - si->ndim;
    for (int i = 0; i < so->ndim; i++) {
        bool repeated = i < shift || (si->dim[i - shift] == 1 && so->dim[i] != 1);
        out->stride[i] = repeated ? 0 : in->stride[i - shift];
    }
    return true;
}

/* expand_dims and squeeze: the other axes keep their order. */
static bool ones_view(const ig_node *v, const operand *in, operand *out)
{
    const spec *si = node_spec(v->in[0]), *so = &v->out[0];
    const spec *few = si->ndim < so->ndim ? si : so, *many = few == si ? so : si;
    bool is_listed[IG_MAX_NDIM] = {false};
    for (int k = 0; k < v->i[0]; k++) is_listed[v->i[1 + k]] = true;
    for (int i = 0, j = 0; i < many->ndim; i++) {
        if (many == so)
            out->stride[i] = is_listed[i] ? 1 : in->stride[j++];
        else if (!is_listed[i])
            out->stride[j++] = in->stride[i];
    }
    return true;
}

typedef bool (*view_fn)(const ig_node *v, const operand *in, operand *out);
static const view_fn views[N_OPS] = {
    [OP_reshape] = reshape_view,        [OP_transpose] = transpose_view, [OP_slice] = slice_view,
    [OP_broadcast_to] = broadcast_view, [OP_expand_dims] = ones_view,    [OP_squeeze] = ones_view,
};

bool view_is(uint16_t op) { return op < N_OPS && views[op]; }

bool view_layout(const ig_node *v, const operand *in, operand *out)
{
    operand o = {.ptr = in->ptr, .s = v->out[0]};
    if (!views[v->op](v, in, &o)) return false;
    *out = o;
    return true;
}

/* Views below a down to what is not a view or has its value; ret_base is that. False when there
 * are more than `max`. */
static bool list_views(ig_array a, const ig_node **views_found, int max, int *ret_n,
                       ig_array *ret_base)
{
    int n = 0;
    for (; !node_is_done(a.node) && view_is(a.node->op); a = a.node->in[0]) {
        if (n == max) return false;
        views_found[n++] = a.node;
    }
    *ret_n = n;
    *ret_base = a;
    return true;
}

void view_strides(ig_array a, int64_t *ret_stride)
{
    const ig_node *chain[64];
    int n = 0;
    operand o = {.s = *node_spec(a)};
    ig_array base;
    if (list_views(a, chain, N_ELEM(chain), &n, &base)) {
        o.s = *node_spec(base);
        if (node_is_done(base.node))
            memcpy(o.stride, node_layout(base)->stride, sizeof o.stride);
        else
            view_contiguous(&o.s, o.stride);
        while (n-- > 0)
            if (!view_layout(chain[n], &o, &o)) {
                o.s = chain[n]->out[0];
                view_contiguous(&o.s, o.stride); /* made by a copy */
            }
    } /* else: strides 0, as if broadcast */
    memcpy(ret_stride, o.stride, sizeof o.stride);
}
