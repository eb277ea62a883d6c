/* step_sdpa.c: scaled dot-product attention over plain arrays, in the order of paged attention
 * (kernels.def, slot attend): blocks of 64 keys, splits of 256. A key that the mask (false or -inf)
 * or causality hides is absent: skipped, never multiplied by 0; a query that sees nothing gives
 * NaN. An item is up to 32 queries of one head, so that keys and values are converted once for
 * them. */
#include <math.h>
#include <string.h>
#include "array/cpu/lower.h"
#include "array/cpu/ref/typed.h"
#include "base/half.h"

#define QUERIES 32
#define MAX_DIM 512

/* An operand [B, heads, positions, D]: strides in bytes. */
typedef struct tensor {
    const char *ptr;
    int64_t by[4];
} tensor;

typedef struct sdpa_args {
    tensor q, key, value, mask; /* mask.ptr NULL: none */
    char *out;                  /* [B, H, L, E] */
    count batch;
    int64_t heads, group, n_q, n_k, d, e; /* group: heads of q to one of keys */
    const kernels *k;
    float scale;
    uint8_t dtype, size, mask_dtype;
    bool causal;
} sdpa_args;

/* Scratch of an item, floats. */
typedef struct stage {
    float *q;           /* [QUERIES][d] */
    float *key, *value; /* a block: [64][d], [64][e] */
    float *part, *acc;  /* states [QUERIES][e + 2]: of the split, of all splits so far */
    char *raw;          /* a row on its way */
} stage;
#define STAGE_FLOATS \
    (QUERIES * MAX_DIM + 2 * KV_PAGE * MAX_DIM + 2 * QUERIES * (MAX_DIM + 2) + MAX_DIM)
_Static_assert(STAGE_FLOATS * 4 <= STEP_SCRATCH_BYTES, "an item fits");

static stage stage_in(char *scratch)
{
    stage s = {.q = (float *)scratch};
    s.key = s.q + QUERIES * MAX_DIM;
    s.value = s.key + KV_PAGE * MAX_DIM;
    s.part = s.value + KV_PAGE * MAX_DIM;
    s.acc = s.part + QUERIES * (MAX_DIM + 2);
    s.raw = (char *)(s.acc + QUERIES * (MAX_DIM + 2));
    return s;
}

/* n rows of d from position `from` of one head, as floats at y. */
static void load_rows(const sdpa_args *a, const tensor *t, int64_t b, int64_t head, int64_t from,
                      int64_t n, int64_t d, float *y, char *raw)
{
    for (int64_t i = 0; i < n; i++, y += d) {
        const char *p = t->ptr + b * t->by[0] + head * t->by[1] + (from + i) * t->by[2];
        char *to = a->size == 4 ? (char *)y : raw;
        walk_gather(to, p, a->size, t->by[3], d);
        if (a->size == 2) lower_row_f32(a->k, y, raw, (ig_dtype)a->dtype, (size_t)d);
    }
}

/* What the mask adds to one score; -inf hides it. */
static float mask_at(const sdpa_args *a, const char *row, int64_t key)
{
    const char *p = row + key * a->mask.by[3];
    switch (a->mask_dtype) {
    case IG_BOOL: return *p ? 0.0f : -INFINITY;
    case IG_F16: return f16_to_f32(*(const uint16_t *)p);
    case IG_BF16: return bf16_to_f32(*(const uint16_t *)p);
    default: return *(const float *)p;
    }
}

/* Scores of n keys of the block at `key0`; seen[j] says which count. Gives whether any does. */
static bool score(const sdpa_args *a, const float *q, const stage *s, const char *mask,
                  int64_t key0, int64_t n, int64_t last, float *scores, bool *seen)
{
    bool any = false;
    for (int64_t j = 0; j < n; j++) {
        float add = mask ? mask_at(a, mask, key0 + j) : 0;
        seen[j] = key0 + j <= last && add != -INFINITY;
        scores[j] = -INFINITY;
        if (!seen[j]) continue;
        any = true;
        scores[j] = a->k->dot(q, s->key + j * a->d, (size_t)a->d) * a->scale;
        if (mask && a->mask_dtype != IG_BOOL) scores[j] += add;
    }
    return any;
}

/* One block added to the state of one query. */
static void add_block(const sdpa_args *a, const float *q, const stage *s, const char *mask,
                      int64_t key0, int64_t n, int64_t last, float *state)
{
    float p[KV_PAGE], *m = state + a->e, *l = m + 1;
    bool seen[KV_PAGE], first = *l == 0;
    if (!score(a, q, s, mask, key0, n, last, p, seen)) return;
    float b = a->k->max(p, (size_t)n), top = *m > b ? *m : b, c = *m - top;
    a->k->ew1[OP_exp](&c, &c, 1);
    if (first) c = 0;
    for (int64_t j = 0; j < n; j++) p[j] = p[j] - top;
    a->k->ew1[OP_exp](p, p, (size_t)n);
    for (int64_t j = 0; j < n; j++) p[j] = seen[j] ? p[j] : 0;
    *l = fmaf(*l, c, a->k->sum(p, (size_t)n));
    for (int64_t i = 0; i < a->e; i++) state[i] = state[i] * c;
    for (int64_t j = 0; j < n; j++)
        if (seen[j]) a->k->axpy(state, p[j], s->value + j * a->e, (size_t)a->e);
    *m = top;
}

static void empty(float *state, int64_t e)
{
    memset(state, 0, (size_t)(e + 2) * sizeof *state);
    state[e] = -INFINITY;
}

/* One split, all queries of the item, merged into acc. */
static void add_split(const sdpa_args *a, const stage *s, int64_t b, int64_t head, int64_t q0,
                      int64_t n_q, int64_t split)
{
    int64_t state = a->e + 2,
            end = (split + 1) * KV_SPLIT < a->n_k ? (split + 1) * KV_SPLIT : a->n_k;
    for (int64_t i = 0; i < n_q; i++) empty(s->part + i * state, a->e);
    for (int64_t key0 = split * KV_SPLIT; key0 < end; key0 += KV_PAGE) {
        int64_t n = end - key0 < KV_PAGE ? end - key0 : KV_PAGE;
        load_rows(a, &a->key, b, head / a->group, key0, n, a->d, s->key, s->raw);
        load_rows(a, &a->value, b, head / a->group, key0, n, a->e, s->value, s->raw);
        for (int64_t i = 0; i < n_q; i++) {
            const char *mask = a->mask.ptr;
            if (mask) mask += b * a->mask.by[0] + head * a->mask.by[1] + (q0 + i) * a->mask.by[2];
            int64_t last = a->causal ? q0 + i + a->n_k - a->n_q : a->n_k - 1;
            add_block(a, s->q + i * a->d, s, mask, key0, n, last, s->part + i * state);
        }
    }
    for (int64_t i = 0; i < n_q; i++)
        a->k->merge(s->acc + i * state, s->part + i * state, (size_t)a->e);
}

static int64_t query_blocks(const sdpa_args *a) { return (a->n_q + QUERIES - 1) / QUERIES; }

static int64_t sdpa_blocks(const void *args, const run_ctx *r)
{
    const sdpa_args *a = args;
    return count_now(a->batch, r) * a->heads * query_blocks(a);
}

static void sdpa_run(const void *args, const run_ctx *r, int64_t block)
{
    const sdpa_args *a = args;
    int64_t q0 = block % query_blocks(a) * QUERIES,
            n_q = a->n_q - q0 < QUERIES ? a->n_q - q0 : QUERIES;
    int64_t pair = block / query_blocks(a), head = pair % a->heads, b = pair / a->heads,
            state = a->e + 2;
    stage s = stage_in(step_scratch(r));
    load_rows(a, &a->q, b, head, q0, n_q, a->d, s.q, s.raw);
    for (int64_t i = 0; i < n_q; i++) empty(s.acc + i * state, a->e);
    for (int64_t split = 0; split * KV_SPLIT < a->n_k; split++)
        add_split(a, &s, b, head, q0, n_q, split);
    for (int64_t i = 0; i < n_q; i++) {
        float *o = s.acc + i * state, l = o[a->e + 1];
        for (int64_t c = 0; c < a->e; c++) o[c] = o[c] / l;
        lower_store_f32(a->k, a->out + ((pair * a->n_q + q0 + i) * a->e) * a->size, o,
                        (ig_dtype)a->dtype, (size_t)a->e);
    }
}

static tensor tensor_of(const operand *o)
{
    tensor t = {.ptr = o->ptr};
    for (int i = 0; i < 4; i++) t.by[i] = o->stride[i] * (int64_t)ig_dtype_size(o->s.dtype);
    return t;
}

ig_status lower_sdpa(const lowering *l, step *ret_step)
{
    const operand *q = &l->in[0], *key = &l->in[1], *value = &l->in[2];
    bool mask = l->w->n_in > 3 && !ig_is_empty(l->w->in[3]);
    sdpa_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (!typed_is_f32(q->s.dtype)) return lower_bad_dtype(l, q->s.dtype);
    *a = (sdpa_args){.q = tensor_of(q),
                     .key = tensor_of(key),
                     .value = tensor_of(value),
                     .out = l->out[0].ptr,
                     .k = l->k};
    if (mask) a->mask = tensor_of(&l->in[3]);
    a->batch = lower_count(&q->s, 0, 1);
    a->heads = q->s.dim[1];
    a->group = q->s.dim[1] / key->s.dim[1];
    a->n_q = q->s.dim[2];
    a->n_k = key->s.dim[2];
    a->d = q->s.dim[3];
    a->e = value->s.dim[3];
    a->scale = (float)l->w->node->f[0];
    a->causal = l->w->node->i[0] != 0;
    a->dtype = (uint8_t)q->s.dtype;
    a->size = (uint8_t)ig_dtype_size(q->s.dtype);
    a->mask_dtype = (uint8_t)(mask ? l->in[3].s.dtype : IG_BOOL);
    if (a->d > MAX_DIM || a->e > MAX_DIM)
        return ig_fail(IG_ELIMIT, "%s: heads of %lld and %lld elements; %d are possible", l->name,
                       (long long)a->d, (long long)a->e, MAX_DIM);
    *ret_step = (step){.run = sdpa_run, .blocks = sdpa_blocks, .args = a, .label = "attention"};
    return IG_OK;
}
