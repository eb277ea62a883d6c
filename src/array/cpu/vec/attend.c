/* attend.c: attention over a paged KV cache, in the order that kernels.def states.
 *
 * A block (the visible part of a page) of K and V is converted to f32 in scratch once for all
 * query rows of the call. Vectors are padded with zeros to a multiple of 64 there: to the sum
 * order that changes nothing, and the padding of o is never given out. Rows go through a block
 * in batches: first all their scores, while K is in L1, then all their sums, while V is. Cost of
 * a row and a position of head_dim d: 2 d products, d adds. */
#include "array/cpu/vec/vec_kernels.h"

#define MAX_DIM 256
#define MAX_ROWS 64
#define BATCH 16
/* Rows and vectors of columns that `weigh` holds in registers. */
#define WEIGH_ROWS VF_WEIGH_ROWS
#define WEIGH_VECS 4

/* Running result of one row. */
typedef struct row_state {
    float o[MAX_DIM];
    float m, l;
} row_state;

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
    const char *base = a->pool + page * ig_page_bytes(a->n_kv, a->head_dim, a->kv_type);
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

/* One query row in a block. */
typedef struct query {
    const float *q;
    row_state *st;
    size_t n;         /* positions that it sees */
    float c;          /* what its sums so far are multiplied with */
    float s[KV_PAGE]; /* scores, then weights */
} query;

/* s[j] = dot(q, k_j) * scale of whole vectors of positions; dp is 64 at one of the calls. k
 * holds anything beyond the n visible ones. */
VEC_FN void score(float *s, const float *q, const float *k, size_t n, size_t dp, vf scale)
{
    for (size_t j = 0; j < n; j += VF_N) {
        vf c[4];
        EACH (i, 4) {
            vf row[VF_N / 4];
            EACH (x, VF_N / 4) {
                const float *kj = k + (j + (size_t)(i * VF_N / 4 + x)) * dp;
                sum64 sum = sum64_zero();
                for (size_t at = 0; at < dp; at += SUM_LANES)
                    EACH (v, SUM_VECS)
                        sum.v[v] = vf_fma(vf_load(q + at + v * VF_N), vf_load(kj + at + v * VF_N),
                                          sum.v[v]);
                row[x] = sum64_narrow(sum);
            }
            c[i] = vf_fold_some(row);
        }
        vf_store(s + j,
                 vf_mul(vf_add(vf_fold_rest(c), vf_set(0)), scale)); /* a total starts at +0 */
    }
}

/* Scores to weights; the running maximum and sum of the row move on. */
VEC_FN void weights(query *x, bool first)
{
    row_state *st = x->st;
    vf low = vf_set(-INFINITY), top = low;
    size_t n = x->n;
    for (size_t j = 0; j < n; j += VF_N) {
        vf v = vf_load(x->s + j);
        if (n - j < VF_N) v = vf_select(vm_first(n - j), v, low);
        top = vf_max(v, top);
    }
    float b = vf_hmax(top) + 0.0f, m = st->m > b ? st->m : b;
    sum64 sum = sum64_zero();
    vf mv = vf_set(m);
    EACH (i, SUM_VECS) {
        size_t j = (size_t)i * VF_N;
        if (j >= n) break;
        vf p = vf_exp(vf_sub(vf_load(x->s + j), mv));
        vf_store(x->s + j, p);
        if (n - j < VF_N) p = vf_select(vm_first(n - j), p, vf_set(0));
        sum.v[i] = vf_add(sum.v[i], p);
    }
    x->c = first ? 0.0f : fmath_exp(st->m - m);
    st->l = __builtin_fmaf(st->l, x->c, 0.0f + sum64_fold(sum));
    st->m = m;
}

/* o = fma(p_j, v_j, o) for positions [j0, j1) of n_rows rows; columns of 4 vectors at a time
 * stay in registers. scaled: first o = o * c. */
VEC_FN void weigh(query *x, int n_rows, const float *v, size_t j0, size_t j1, size_t dp,
                  bool scaled)
{
    for (size_t col = 0; col < dp; col += WEIGH_VECS * VF_N) {
        vf acc[WEIGH_ROWS][WEIGH_VECS];
        EACH (r, n_rows)
            EACH (i, WEIGH_VECS) {
                acc[r][i] = vf_load(x[r].st->o + col + i * VF_N);
                if (scaled) acc[r][i] = vf_mul(acc[r][i], vf_set(x[r].c));
            }
        for (size_t j = j0; j < j1; j++) {
            vf p[WEIGH_ROWS];
            EACH (r, n_rows) p[r] = vf_set(x[r].s[j]);
            EACH (i, WEIGH_VECS) {
                vf vi_ = vf_load(v + j * dp + col + i * VF_N);
                EACH (r, n_rows) acc[r][i] = vf_fma(p[r], vi_, acc[r][i]);
            }
        }
        EACH (r, n_rows)
            EACH (i, WEIGH_VECS) vf_store(x[r].st->o + col + i * VF_N, acc[r][i]);
    }
}

/* Rows of a batch: together as far as all of a few see, then alone. */
static void weigh_all(query *x, int n_rows, const float *v, size_t dp)
{
    int r = 0;
    for (; r + WEIGH_ROWS <= n_rows; r += WEIGH_ROWS) {
        size_t common = x[r].n;
        for (int i = 1; i < WEIGH_ROWS; i++) common = x[r + i].n < common ? x[r + i].n : common;
        weigh(x + r, WEIGH_ROWS, v, 0, common, dp, true);
        for (int i = 0; i < WEIGH_ROWS; i++)
            if (x[r + i].n > common) weigh(x + r + i, 1, v, common, x[r + i].n, dp, false);
    }
    for (; r < n_rows; r++) weigh(x + r, 1, v, 0, x[r].n, dp, true);
}

/* A batch of rows through one block. */
static void add_block(query *x, int n_rows, const float *k, const float *v, size_t dp, float scale,
                      bool first)
{
    vf sv = vf_set(scale);
    for (int r = 0; r < n_rows; r++) {
        if (dp == SUM_LANES)
            score(x[r].s, x[r].q, k, x[r].n, SUM_LANES, sv);
        else
            score(x[r].s, x[r].q, k, x[r].n, dp, sv);
        weights(&x[r], first);
    }
    weigh_all(x, n_rows, v, dp);
}

typedef struct attend_scratch {
    float k[KV_PAGE * MAX_DIM],
        v[KV_PAGE * MAX_DIM]; /* position-major, stride = head_dim padded to 64 */
    row_state split[MAX_ROWS], total[MAX_ROWS];
    float q[MAX_ROWS * MAX_DIM]; /* padded like K */
    query batch[BATCH];
} attend_scratch;
_Static_assert(sizeof(attend_scratch) <= KERNEL_SCRATCH_BYTES,
               "attend_scratch fits a kernel's scratch");

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
        int n = 0;
        for (int r = 0; r < a->n_rows; r++) {
            if (a->pos[r] >= p) {
                size_t sees = (size_t)(a->pos[r] - p + 1);
                s->batch[n++] = (query){.q = s->q + (size_t)r * dp,
                                        .st = &s->split[r],
                                        .n = sees < KV_PAGE ? sees : KV_PAGE};
            }
            if (n == BATCH || (n && r + 1 == a->n_rows)) {
                add_block(s->batch, n, s->k, s->v, dp, a->scale, p == first);
                n = 0;
            }
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
    for (int r = 0; r < a->n_rows; r++) {
        float *q = memcpy(s->q + (size_t)r * dp, a->q[r], d * sizeof *q);
        memset(q + d, 0, (dp - d) * sizeof *q);
    }
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
