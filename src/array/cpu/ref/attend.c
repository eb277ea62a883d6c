/* attend.c: attention over a paged KV cache, in the order that kernels.def states. */
#include <math.h>
#include <string.h>
#include "array/cpu/ref/ref.h"
#include "base/fmath.h"

/* `have` vectors of K (which 0) or V (which 1) of one page and head, as f32. */
static void load_block(float *y, const attend_args *a, int32_t page, int which, size_t have)
{
    size_t d = (size_t)a->head_dim, head = (size_t)(which * a->n_kv + a->kv_head) * KV_PAGE;
    const char *base = a->pool + page * ig_page_bytes(a->n_kv, a->head_dim, a->kv_type);
    if (a->kv_type == IG_I8) {
        const int8_t *codes = (const int8_t *)base + head * d;
        const float *scale = (const float *)(base + 2 * (size_t)a->n_kv * KV_PAGE * d) + head;
        for (size_t j = 0; j < have; j++)
            for (size_t i = 0; i < d; i++) y[j * d + i] = scale[j] * (float)codes[j * d + i];
    } else if (a->kv_type == IG_F32) {
        memcpy(y, (const float *)base + head * d, have * d * sizeof *y);
    } else if (a->kv_type == IG_F16) {
        ref_f16_to_f32(y, (const uint16_t *)base + head * d, have * d);
    } else {
        ref_bf16_to_f32(y, (const uint16_t *)base + head * d, have * d);
    }
}

/* One block of n visible positions added to the state of one row: o [d], m, l. */
static void add_block(float *state, const float *q, const float *k, const float *v, size_t n,
                      size_t d, float scale, bool first)
{
    float s[KV_PAGE], *o = state, *m = state + d, *l = state + d + 1;
    for (size_t j = 0; j < n; j++) s[j] = ref_dot(q, k + j * d, d) * scale;
    float b = ref_max(s, n), top = *m > b ? *m : b;
    float c = first ? 0.0f : fmath_exp(*m - top);
    for (size_t j = 0; j < n; j++) s[j] = fmath_exp(s[j] - top);
    *l = fmaf(*l, c, ref_sum(s, n));
    for (size_t i = 0; i < d; i++) o[i] = o[i] * c;
    for (size_t j = 0; j < n; j++) ref_axpy(o, s[j], v + j * d, d);
    *m = top;
}

static void empty_state(float *state, size_t d)
{
    memset(state, 0, (d + 2) * sizeof *state);
    state[d] = -INFINITY;
}

void ref_merge(float *acc, const float *part, size_t d)
{
    float ma = acc[d], mb = part[d];
    if (part[d + 1] == 0) return;
    if (acc[d + 1] == 0) {
        memcpy(acc, part, (d + 2) * sizeof *acc);
        return;
    }
    float m = ma > mb ? ma : mb, ca = fmath_exp(ma - m), cb = fmath_exp(mb - m);
    for (size_t i = 0; i < d; i++) acc[i] = fmaf(acc[i], ca, part[i] * cb);
    acc[d] = m;
    acc[d + 1] = fmaf(acc[d + 1], ca, part[d + 1] * cb);
}

/* All rows through one split; part [n_rows][d + 2]. kv holds a block of K and one of V. */
static void walk_split(const attend_args *a, int64_t split, float *part, float *kv)
{
    size_t d = (size_t)a->head_dim;
    int64_t last = -1;
    for (int r = 0; r < a->n_rows; r++) {
        empty_state(part + (size_t)r * (d + 2), d);
        last = a->pos[r] > last ? a->pos[r] : last;
    }
    for (int64_t p = split * KV_SPLIT; p < (split + 1) * KV_SPLIT && p <= last; p += KV_PAGE) {
        size_t have = (size_t)(last - p + 1 < KV_PAGE ? last - p + 1 : KV_PAGE);
        load_block(kv, a, a->pages[p / KV_PAGE], 0, have);
        load_block(kv + KV_PAGE * d, a, a->pages[p / KV_PAGE], 1, have);
        for (int r = 0; r < a->n_rows; r++) {
            if (a->pos[r] < p) continue;
            size_t n = (size_t)(a->pos[r] - p + 1 < KV_PAGE ? a->pos[r] - p + 1 : KV_PAGE);
            add_block(part + (size_t)r * (d + 2), a->q[r], kv, kv + KV_PAGE * d, n, d, a->scale,
                      p == split * KV_SPLIT);
        }
    }
}

void ref_attend(const attend_args *a, char *scratch)
{
    size_t d = (size_t)a->head_dim, n_rows = (size_t)a->n_rows;
    float *kv = (float *)scratch, *part = kv + 2 * KV_PAGE * d, *acc = part + n_rows * (d + 2);
    if (a->part) {
        walk_split(a, a->split0, a->part, kv);
        return;
    }
    for (size_t r = 0; r < n_rows; r++) empty_state(acc + r * (d + 2), d);
    for (int64_t split = a->split0; split < a->split1; split++) {
        walk_split(a, split, part, kv);
        for (size_t r = 0; r < n_rows; r++) ref_merge(acc + r * (d + 2), part + r * (d + 2), d);
    }
    for (size_t r = 0; r < n_rows; r++)
        for (size_t i = 0; i < d; i++) a->o[r][i] = acc[r * (d + 2) + i] / acc[r * (d + 2) + d + 1];
}
