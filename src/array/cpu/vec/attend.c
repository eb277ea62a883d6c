/* attend.c: attention over a paged KV cache, in the order that kernels.def states.
 *
 * A block (the visible part of a page) of K and V is converted to f32 in scratch once for all query rows of the call. Vectors are padded
 * with zeros to a multiple of 64 there: to the sum order that changes nothing, and the padding of o is never given out.
 * Cost of a row and a position of head_dim d: 2 d fma and d adds. */
#include "array/cpu/vec/vec_kernels.h"

#define MAX_DIM 256
#define MAX_ROWS 64

/* Running result of one row. */
typedef struct row_state {
    float o[MAX_DIM];
    float m, l;
} row_state;

typedef struct attend_scratch {
    float k[KV_PAGE * MAX_DIM],
        v[KV_PAGE * MAX_DIM]; /* position-major, stride = head_dim padded to 64 */
    row_state split[MAX_ROWS], total[MAX_ROWS];
    float q[MAX_DIM];
} attend_scratch;
_Static_assert(sizeof(attend_scratch) <= KERNEL_SCRATCH_BYTES,
               "attend_scratch fits a kernel's scratch");

static size_t padded(size_t d) { return (d + SUM_LANES - 1) / SUM_LANES * SUM_LANES; }

/* One int8 vector as f32: a value is d * code. */
static void widen_i8(float *y, const int8_t *codes, float d, size_t n)
{
    vf dv = vf_set(d);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_mul(dv, vf_load_i8(codes + i)));
    if (i < n) vf_storen(y + i, n - i, vf_mul(dv, vf_loadn_i8(codes + i, n - i)));
}

/* `have` vectors of K (which 0) or V (which 1) of one page. */
static void load_block(float *y, const attend_args *a, int32_t page, int which, size_t have)
{
    size_t d = (size_t)a->head_dim, dp = padded(d),
           head = (size_t)(which * a->n_kv + a->kv_head) * KV_PAGE;
    const char *base = a->pool + page * kv_page_bytes(a->n_kv, a->head_dim, a->kv_type);
    const float *scale =
        (const float *)(base + 2 * (size_t)a->n_kv * KV_PAGE * d) + head; /* of int8 */
    size_t n = d == dp ? d * have : d, runs = d == dp ? 1 : have; /* unpadded vectors are one run */
    if (a->kv_type == IG_I8) n = d, runs = have;
    for (size_t j = 0; j < runs; j++, y += dp) {
        size_t at = head * d + j * d;
        switch (a->kv_type) {
        case IG_I8: widen_i8(y, (const int8_t *)base + at, scale[j], n); break;
        case IG_F16: K(f16_to_f32)(y, (const uint16_t *)base + at, n); break;
        case IG_BF16: K(bf16_to_f32)(y, (const uint16_t *)base + at, n); break;
        default: memcpy(y, (const float *)base + at, n * sizeof *y);
        }
        if (d < dp) memset(y + d, 0, (dp - d) * sizeof *y);
    }
}

/* s[j] = dot(q, k_j) * scale for VF_N positions, from +0. */
VEC_FN vf score(const float *q, const float *k, size_t dp, vf scale)
{
    vf row[VF_N];
    EACH (j, VF_N) {
        sum64 s = sum64_zero();
        for (size_t i = 0; i < dp; i += SUM_LANES)
            EACH (v, SUM_VECS) {
                size_t at = i + (size_t)v * VF_N;
                s.v[v] = vf_fma(vf_load(q + at), vf_load(k + (size_t)j * dp + at), s.v[v]);
            }
        row[j] = sum64_narrow(s);
    }
    return vf_mul(vf_add(vf_fold_rows(row), vf_set(0)), scale);
}

/* o = o * c, then o = fma(p_j, v_j, o), positions ascending; 64 columns at a time stay in registers. */
VEC_FN void weigh(float *o, float c, const float *p, const float *v, size_t n, size_t dp)
{
    for (size_t i = 0; i < dp; i += SUM_LANES) {
        vf acc[SUM_VECS];
        EACH (x, SUM_VECS) acc[x] = vf_mul(vf_load(o + i + x * VF_N), vf_set(c));
        for (size_t j = 0; j < n; j++) {
            vf pj = vf_set(p[j]);
            EACH (x, SUM_VECS) acc[x] = vf_fma(pj, vf_load(v + j * dp + i + x * VF_N), acc[x]);
        }
        EACH (x, SUM_VECS) vf_store(o + i + x * VF_N, acc[x]);
    }
}

/* One block of n visible positions added to a row's state. k and v hold whole vectors of VF_N positions beyond n too (anything). */
VEC_FN void add_block(row_state *st, const float *q, const float *k, const float *v, size_t n,
                      size_t dp, float scale, bool first)
{
    float s[KV_PAGE];
    vf low = vf_set(-INFINITY), top = low, sv = vf_set(scale);
    for (size_t j = 0; j < n; j += VF_N) {
        vf x = score(q, k + j * dp, dp, sv);
        if (n - j < VF_N) x = vf_select(vm_first(n - j), x, low);
        vf_store(s + j, x);
        top = vf_max(x, top);
    }
    float b = vf_hmax(top) + 0.0f, m = st->m > b ? st->m : b;
    float c = first ? 0.0f : fmath_exp(st->m - m);
    sum64 sum = sum64_zero();
    vf mv = vf_set(m);
    EACH (i, SUM_VECS) {
        size_t j = (size_t)i * VF_N;
        if (j >= n) break;
        vf p = vf_exp(vf_sub(vf_load(s + j), mv));
        vf_store(s + j, p);
        if (n - j < VF_N) p = vf_select(vm_first(n - j), p, vf_set(0));
        sum.v[i] = vf_add(sum.v[i], p);
    }
    st->l = __builtin_fmaf(st->l, c, 0.0f + sum64_fold(sum));
    weigh(st->o, c, s, v, n, dp);
    st->m = m;
}

static void clear_state(row_state *st, size_t dp)
{
    memset(st->o, 0, dp * sizeof *st->o);
    st->m = -INFINITY;
    st->l = 0;
}

/* All rows through one split. */
static void walk_split(const attend_args *a, int64_t split, attend_scratch *s)
{
    size_t d = (size_t)a->head_dim, dp = padded(d);
    int64_t last = -1, first = split * KV_SPLIT;
    for (int r = 0; r < a->n_rows; r++) {
        clear_state(&s->split[r], dp);
        last = a->pos[r] > last ? a->pos[r] : last;
    }
    for (int64_t p = first; p < first + KV_SPLIT && p <= last; p += KV_PAGE) {
        size_t have = (size_t)(last - p + 1 < KV_PAGE ? last - p + 1 : KV_PAGE);
        load_block(s->k, a, a->pages[p / KV_PAGE], 0, have);
        load_block(s->v, a, a->pages[p / KV_PAGE], 1, have);
        for (int r = 0; r < a->n_rows; r++) {
            if (a->pos[r] < p) continue;
            size_t n = (size_t)(a->pos[r] - p + 1 < KV_PAGE ? a->pos[r] - p + 1 : KV_PAGE);
            const float *q = a->q[r];
            if (d < dp) q = memcpy(s->q, q, d * sizeof *q);
            add_block(&s->split[r], q, s->k, s->v, n, dp, a->scale, p == first);
        }
    }
}

/* acc = acc merged with part: o, then the pair m, l. */
VEC_FN void merge_states(float *acc, float *acc_m, float *acc_l, const float *part, float part_m,
                         float part_l, size_t d)
{
    if (part_l == 0) return;
    if (*acc_l == 0) {
        memcpy(acc, part, d * sizeof *acc);
        *acc_m = part_m;
        *acc_l = part_l;
        return;
    }
    float m = *acc_m > part_m ? *acc_m : part_m;
    float ca = fmath_exp(*acc_m - m), cb = fmath_exp(part_m - m);
    vf av = vf_set(ca), bv = vf_set(cb);
    size_t i = 0;
    for (; i + VF_N <= d; i += VF_N)
        vf_store(acc + i, vf_fma(vf_load(acc + i), av, vf_mul(vf_load(part + i), bv)));
    for (; i < d; i++) acc[i] = __builtin_fmaf(acc[i], ca, part[i] * cb);
    *acc_m = m;
    *acc_l = __builtin_fmaf(*acc_l, ca, part_l * cb);
}

void K(merge)(float *acc, const float *part, size_t d)
{
    merge_states(acc, acc + d, acc + d + 1, part, part[d], part[d + 1], d);
}

static void give_result(float *o, const row_state *st, size_t d)
{
    vf l = vf_set(st->l);
    size_t i = 0;
    for (; i + VF_N <= d; i += VF_N) vf_store(o + i, vf_div(vf_load(st->o + i), l));
    for (; i < d; i++) o[i] = st->o[i] / st->l;
}

static void give_part(float *part, const row_state *st, size_t d)
{
    memcpy(part, st->o, d * sizeof *part);
    part[d] = st->m;
    part[d + 1] = st->l;
}

void K(attend)(const attend_args *a, char *scratch)
{
    attend_scratch *s = (attend_scratch *)scratch;
    size_t d = (size_t)a->head_dim, dp = padded(d);
    memset(s->q, 0, sizeof s->q);
    if (a->part) {
        walk_split(a, a->split0, s);
        for (int r = 0; r < a->n_rows; r++)
            give_part(a->part + (size_t)r * (d + 2), &s->split[r], d);
        return;
    }
    for (int r = 0; r < a->n_rows; r++) clear_state(&s->total[r], dp);
    for (int64_t split = a->split0; split < a->split1; split++) {
        walk_split(a, split, s);
        for (int r = 0; r < a->n_rows; r++) {
            row_state *t = &s->total[r], *p = &s->split[r];
            merge_states(t->o, &t->m, &t->l, p->o, p->m, p->l, d);
        }
    }
    for (int r = 0; r < a->n_rows; r++) give_result(a->o[r], &s->total[r], d);
}
