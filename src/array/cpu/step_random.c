/* step_random.c: random bits, uniform numbers, keys and categorical draws by Threefry-2x32, in
 * MLX's layout.
 *
 * Of n words for a key, word i of the first half and word i of the second half are the two outputs
 * of one hash of (i, n - n/2 + i); an odd word in the middle is the first output of the hash of
 * (n/2, 0). */
#include <string.h>
#include "array/cpu/lower.h"
#include "base/threefry.h"

typedef struct pair {
    uint32_t a, b;
} pair;

static pair threefry(pair key, pair x)
{
    uint32_t out[2];
    threefry2x32((uint32_t[]){key.a, key.b}, (uint32_t[]){x.a, x.b}, out);
    return (pair){out[0], out[1]};
}

/* Word w of n. */
static uint32_t word(pair key, int64_t w, int64_t n)
{
    int64_t half = n / 2, second = n - half;
    if (w < half) return threefry(key, (pair){(uint32_t)w, (uint32_t)(second + w)}).a;
    if (w < second) return threefry(key, (pair){(uint32_t)w, 0}).a;
    return threefry(key, (pair){(uint32_t)(w - second), (uint32_t)w}).b;
}

/* bits / 2^32 as float32, below 1. */
static float uniform(uint32_t bits)
{
    float u = (float)bits * 0x1p-32f;
    return u < 0x1.fffffep-1f ? u : 0x1.fffffep-1f;
}

/* The keys [..., 2] of an operand, one after another. */
typedef struct key_list {
    const walk *at; /* first word of each */
    int64_t by;     /* bytes to the second */
} key_list;

static pair key_at(const key_list *k, int64_t i)
{
    const char *p = walk_at(k->at, i);
    pair key;
    memcpy(&key.a, p, 4);
    memcpy(&key.b, p + k->by, 4);
    return key;
}

static ig_status keys_of(const lowering *l, key_list *ret)
{
    const operand *o = &l->in[0];
    int last = o->s.ndim - 1;
    *ret = (key_list){.by = o->stride[last] * 4};
    ret->at = walk_new(l->mem, o->ptr, 4, last, o->s.dim, o->stride);
    return ret->at ? IG_OK : lower_no_memory();
}

/* --- random_bits, random_uniform, random_split */

typedef struct random_args {
    key_list keys;
    count n_keys;
    int64_t n; /* words for each key */
    uint32_t *out;
    bool uniform;
} random_args;

#define COST 16    /* of a word, in simple loops */
#define HASHES 256 /* hashes in a unit of work */

static int64_t units(const random_args *a) { return ((a->n + 1) / 2 + HASHES - 1) / HASHES; }

static int64_t random_blocks(const void *args, const run_ctx *r)
{
    const random_args *a = args;
    return rows_blocks(count_now(a->n_keys, r) * units(a), 2 * HASHES * COST, r->n_workers);
}

static void put(const random_args *a, uint32_t *y, uint32_t bits)
{
    float u = uniform(bits);
    if (a->uniform)
        memcpy(y, &u, sizeof u);
    else
        *y = bits;
}

/* Hashes [first, end) of one key's words: each gives a word of the first half and one of the
 * second. */
static void draw(const random_args *a, pair key, uint32_t *out, int64_t first, int64_t end)
{
    int64_t half = a->n / 2, second = a->n - half;
    for (int64_t i = first; i < end; i++) {
        if (i == half) {
            put(a, out + i, word(key, i, a->n));
            continue;
        }
        pair x = threefry(key, (pair){(uint32_t)i, (uint32_t)(second + i)});
        put(a, out + i, x.a);
        put(a, out + second + i, x.b);
    }
}

static void random_run(const void *args, const run_ctx *r, int64_t block)
{
    const random_args *a = args;
    int64_t per_key = units(a), n_hashes = (a->n + 1) / 2;
    span s = rows_span(count_now(a->n_keys, r) * per_key, 2 * HASHES * COST, r->n_workers, block);
    for (int64_t u = s.first; u < s.end; u++) {
        int64_t k = u / per_key, first = u % per_key * HASHES;
        draw(a, key_at(&a->keys, k), a->out + k * a->n, first,
             n_hashes - first < HASHES ? n_hashes : first + HASHES);
    }
}

ig_status lower_random(const lowering *l, step *ret_step)
{
    const spec *key = &l->in[0].s, *out = &l->out[0].s;
    random_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(keys_of(l, &a->keys));
    a->n_keys = lower_count(key, 0, key->ndim - 1);
    a->n = lower_product(out, key->ndim - 1, out->ndim);
    a->out = (uint32_t *)l->out[0].ptr;
    a->uniform = l->w->node->op == OP_random_uniform;
    if (a->n > UINT32_MAX)
        return ig_fail(IG_ELIMIT, "%s: more than 2^32 - 1 words for one key", l->name);
    *ret_step = (step){.run = random_run, .blocks = random_blocks, .args = a, .label = "random"};
    return IG_OK;
}

/* --- random_categorical: argmax of logits plus Gumbel noise, -log(-log(uniform)) */

typedef struct categorical_args {
    key_list keys;
    bool batch; /* a key for each row, its words from 0; else one, words through all logits */
    axes logits;
    int64_t n, inner; /* elements of a row; elements behind the axis */
    uint32_t *out;
    const kernels *k;
} categorical_args;

#define CHUNK 1024

static int64_t categorical_blocks(const void *args, const run_ctx *r)
{
    const categorical_args *a = args;
    return rows_blocks(count_now(a->logits.n_kept, r), a->n * 2 * COST, r->n_workers);
}

/* Noisy logits [i, i + n) of a row into y. */
static void add_noise(const categorical_args *a, pair key, int64_t first_word, int64_t by,
                      int64_t n_words, int64_t i, int64_t n, const char *base, float *y, float *x)
{
    const kernels *k = a->k;
    size_t len = (size_t)n;
    for (int64_t j = 0; j < n; j++) y[j] = uniform(word(key, first_word + (i + j) * by, n_words));
    k->ew1[OP_log](y, y, len);
    k->ew1[OP_negative](y, y, len);
    k->ew1[OP_log](y, y, len);
    k->ew1[OP_negative](y, y, len);
    walk_read_at(a->logits.along, base, i, n, (char *)x);
    k->ew2[OP_add](y, y, x, len);
}

static void categorical_run(const void *args, const run_ctx *r, int64_t block)
{
    const categorical_args *a = args;
    int64_t rows = count_now(a->logits.n_kept, r);
    span s = rows_span(rows, a->n * 2 * COST, r->n_workers, block);
    float *y = (float *)step_scratch(r), *x = y + CHUNK;
    for (int64_t row = s.first; row < s.end; row++) {
        pair key = key_at(&a->keys, a->batch ? row : 0);
        int64_t first = a->batch ? 0 : row / a->inner * a->n * a->inner + row % a->inner, best = 0;
        float top = 0;
        for (int64_t i = 0; i < a->n; i += CHUNK) {
            int64_t n = a->n - i < CHUNK ? a->n - i : CHUNK;
            add_noise(a, key, first, a->batch ? 1 : a->inner, a->batch ? a->n : rows * a->n, i, n,
                      walk_at(a->logits.kept, row), y, x);
            int64_t at = a->k->argmax(y, (size_t)n);
            if (i && !(y[at] > top || (top != top && y[at] == y[at]))) continue;
            top = y[at];
            best = i + at;
        }
        a->out[row] = (uint32_t)best;
    }
}

ig_status lower_categorical(const lowering *l, step *ret_step)
{
    const operand *logits = &l->in[1];
    int axis = (int)l->w->node->i[0];
    categorical_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    if (logits->s.dtype != IG_F32) return lower_bad_dtype(l, logits->s.dtype);
    TRY(keys_of(l, &a->keys));
    TRY(lower_axes(l, logits, 1u << axis, &a->logits));
    a->batch = l->in[0].s.ndim > 1;
    a->n = logits->s.dim[axis];
    a->inner = lower_product(&logits->s, axis + 1, logits->s.ndim);
    a->out = (uint32_t *)l->out[0].ptr;
    a->k = l->k;
    *ret_step = (step){
        .run = categorical_run, .blocks = categorical_blocks, .args = a, .label = "categorical"};
    if (lower_product(&logits->s, 0, logits->s.ndim) > UINT32_MAX)
        return ig_fail(IG_ELIMIT, "%s: more than 2^32 - 1 logits", l->name);
    return IG_OK;
}
