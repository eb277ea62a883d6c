/* step_paged.c: writing to and attending over a paged KV pool.
 *
 * Attention works by items: a few rows and one KV head. Rows of a sequence that are adjacent share
 * an item, so that its keys and values are converted once for all of them. Where rows x heads are
 * too few for the workers, the splits of 256 positions become items of their own: each leaves its
 * state, and whoever finishes the last split of a row and head merges them in order, which is what
 * one worker does alone; so the bits are the same. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "array/cpu/lower.h"

/* --- paged_write */

typedef struct write_args {
    char *pool;
    const char *from; /* pool to copy first; NULL: in place */
    turned k;         /* vectors, for each row and head; no positions: taken as they are */
    rows_in v;        /* likewise */
    const int32_t *slots;
    count rows;
    int64_t n_pages, page_bytes, n_kv, d;
    const kernels *kernels;
    ig_dtype kv_type;
} write_args;

/* Stores one vector as number `at` (counted through K heads, then V heads, 64 positions each) of a
 * page. */
static void store(const write_args *a, char *page, int64_t at, const float *x)
{
    char *y = page + at * a->d * (int64_t)ig_dtype_size(a->kv_type);
    if (a->kv_type != IG_I8) {
        lower_store_f32(a->kernels, y, x, a->kv_type, (size_t)a->d);
        return;
    }
    float *scales = (float *)(page + 2 * a->n_kv * KV_PAGE * a->d);
    a->kernels->kv8((int8_t *)y, scales + at, x, (size_t)a->d);
}

static const float *key(const write_args *a, int64_t vector, char *tmp)
{
    if (!a->k.positions) return rows_f32(&a->k.v, a->kernels, vector, a->d, tmp);
    turn(&a->k, a->kernels, vector, (float *)tmp, tmp);
    return (float *)tmp;
}

static void write_row(const write_args *a, int64_t row, char *tmp)
{
    char *page = a->pool + a->slots[row] / KV_PAGE * a->page_bytes;
    int64_t offset = a->slots[row] % KV_PAGE;
    for (int64_t h = 0; h < a->n_kv; h++) {
        store(a, page, h * KV_PAGE + offset, key(a, row * a->n_kv + h, tmp));
        store(a, page, (a->n_kv + h) * KV_PAGE + offset,
              rows_f32(&a->v, a->kernels, row * a->n_kv + h, a->d, tmp));
    }
}

/* A block is rows when in place (no two share a slot), else pages: copied, then written to by all
 * rows that fall into them. */
static int64_t write_units(const write_args *a, const run_ctx *r, int64_t *ret_cost)
{
    *ret_cost = a->from ? a->page_bytes / 4 : 2 * a->n_kv * a->d;
    return a->from ? a->n_pages : count_now(a->rows, r);
}

static int64_t write_blocks(const void *args, const run_ctx *r)
{
    int64_t cost, n = write_units(args, r, &cost);
    return rows_blocks(n, cost, r->n_workers);
}

static void write_run(const void *args, const run_ctx *r, int64_t block)
{
    const write_args *a = args;
    int64_t cost, n = write_units(a, r, &cost), n_rows = count_now(a->rows, r);
    span s = rows_span(n, cost, r->n_workers, block), rows = a->from ? (span){0, n_rows} : s;
    span pages = a->from ? s : (span){0, a->n_pages};
    if (a->from)
        memcpy(a->pool + s.first * a->page_bytes, a->from + s.first * a->page_bytes,
               (size_t)((s.end - s.first) * a->page_bytes));
    for (int64_t i = rows.first; i < rows.end; i++) {
        int64_t page = a->slots[i] < 0 ? -1 : a->slots[i] / KV_PAGE;
        if (page >= pages.first && page < pages.end) write_row(a, i, step_scratch(r));
    }
}

ig_status lower_paged_write(const lowering *l, step *ret_step)
{
    const ig_node *n = l->w->node; /* i = n_kv, head_dim, kv_type */
    write_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(lower_need(l, 0, IG_U8));
    TRY(lower_need(l, 3, IG_I32));
    *a = (write_args){
        .pool = l->out[0].ptr, .slots = (const int32_t *)l->in[3].ptr, .kernels = l->k};
    a->from = l->in[0].ptr == a->pool ? NULL : l->in[0].ptr;
    a->rows = lower_count(&l->in[1].s, 0, 1);
    a->n_pages = l->in[0].s.dim[0];
    a->page_bytes = l->in[0].s.dim[1];
    a->n_kv = n->i[0];
    a->d = n->i[1];
    a->kv_type = (ig_dtype)n->i[2];
    *ret_step = (step){.run = write_run, .blocks = write_blocks, .args = a, .label = "paged write"};
    TRY(lower_rows(l, &l->in[2], &a->v));
    if (l->w->kind != WORK_ROPE_WRITE) return lower_rows(l, &l->in[1], &a->k.v);
    ret_step->label = "paged write, rope";
    return lower_turned(l, l->w->inner, 1, 4, &a->k);
}

/* --- paged_attention */

#define ATTEND_ROWS 64 /* query rows of one call of the kernel */
#define SPLIT_ITEMS 64 /* splits are items only below this many (row, head) pairs */
#define SPLIT_BYTES (256 << 10)

typedef struct attention_args {
    rows_in q; /* vectors, for each row and head */
    float *out;
    const char *pool;
    const int32_t *pages, *seq, *positions;
    count rows, seqs;
    const kernels *k;
    float *parts;           /* states of splits, [pair][split][group][d + 2] */
    atomic_int *done;       /* [SPLIT_ITEMS] splits finished of a pair; zero between runs */
    int32_t n_parts;        /* states that parts has room for */
    int32_t n_kv, group, d; /* group: query heads to a KV head */
    int32_t max_pages, n_pages;
    ig_dtype kv_type;
    float scale;
} attention_args;

/* How this run is cut: tokens to an item; splits > 0: each token, head and split is an item. */
typedef struct cut {
    int64_t n_tokens, per, splits;
} cut;

static int64_t longest(const attention_args *a, int64_t n_tokens)
{
    int32_t last = 0;
    for (int64_t t = 0; t < n_tokens; t++) last = a->positions[t] > last ? a->positions[t] : last;
    return last < (int64_t)a->max_pages * KV_PAGE ? last : 0;
}

static cut cut_of(const attention_args *a, const run_ctx *r)
{
    cut c = {.n_tokens = count_now(a->rows, r)};
    int64_t pairs = c.n_tokens * a->n_kv,
            most = a->group < ATTEND_ROWS ? ATTEND_ROWS / a->group : 1;
    c.per = pairs / (4 * r->n_workers);
    c.per = c.per < 1 ? 1 : c.per > most ? most : c.per;
    if (pairs < 2 * r->n_workers && pairs <= SPLIT_ITEMS && a->group <= ATTEND_ROWS) {
        int64_t splits = longest(a, c.n_tokens) / KV_SPLIT + 1;
        if (splits > 1 && pairs * splits * a->group <= a->n_parts) c.splits = splits;
    }
    return c;
}

static int64_t attention_blocks(const void *args, const run_ctx *r)
{
    const attention_args *a = args;
    cut c = cut_of(a, r);
    return a->n_kv * (c.splits ? c.n_tokens * c.splits : (c.n_tokens + c.per - 1) / c.per);
}

/* May the row be attended: a sequence of the batch, a position of its table, pages of the pool? */
static bool row_is_valid(const attention_args *a, const run_ctx *r, int64_t t)
{
    int64_t s = a->seq[t], last = a->positions[t];
    if (s < 0 || s >= count_now(a->seqs, r) || last < 0 || last >= (int64_t)a->max_pages * KV_PAGE)
        return false;
    const int32_t *pages = a->pages + s * a->max_pages;
    for (int64_t p = 0; p <= last / KV_PAGE; p++)
        if (pages[p] < 0 || pages[p] >= a->n_pages) return false;
    return true;
}

static void refuse_row(const attention_args *a, int64_t t, int64_t head, int64_t n_heads)
{
    float *o = a->out + (t * a->n_kv * a->group + head) * a->d;
    for (int64_t i = 0; i < n_heads * a->d; i++) o[i] = NAN;
}

/* Query rows of one sequence and KV head, collected until a call is full. */
typedef struct batch {
    attend_args call;
    const float *q[ATTEND_ROWS];
    float *o[ATTEND_ROWS];
    int32_t pos[ATTEND_ROWS];
} batch;

static void batch_start(const attention_args *a, batch *b, int64_t seq, int64_t kv_head)
{
    b->call = (attend_args){.q = b->q,
                            .o = b->o,
                            .pos = b->pos,
                            .pool = a->pool,
                            .n_kv = a->n_kv,
                            .head_dim = a->d,
                            .kv_head = kv_head,
                            .kv_type = a->kv_type,
                            .scale = a->scale};
    b->call.pages = a->pages + seq * a->max_pages;
}

static void batch_add(const attention_args *a, batch *b, int64_t t, int64_t head)
{
    int64_t vector = t * a->n_kv * a->group + head;
    int i = b->call.n_rows++;
    b->q[i] = (const float *)walk_at(a->q.at, vector);
    b->o[i] = a->out + vector * a->d;
    b->pos[i] = a->positions[t];
    int64_t splits = a->positions[t] / KV_SPLIT + 1;
    if (splits > b->call.split1) b->call.split1 = splits;
}

static void batch_flush(const attention_args *a, batch *b, char *scratch)
{
    if (b->call.n_rows) a->k->attend(&b->call, scratch);
    b->call.n_rows = 0;
    b->call.split1 = 0;
}

/* Tokens [t0, t1) and one KV head. */
static void attend_item(const attention_args *a, const run_ctx *r, int64_t t0, int64_t t1,
                        int64_t kv_head)
{
    batch b = {.call = {.n_rows = 0}};
    int64_t seq = -1, head = kv_head * a->group;
    for (int64_t t = t0; t < t1; t++) {
        if (!row_is_valid(a, r, t)) {
            refuse_row(a, t, head, a->group);
            continue;
        }
        if (a->seq[t] != seq) {
            batch_flush(a, &b, kernel_scratch(r));
            batch_start(a, &b, seq = a->seq[t], kv_head);
        }
        for (int64_t h = head; h < head + a->group; h++) {
            if (b.call.n_rows == ATTEND_ROWS) batch_flush(a, &b, kernel_scratch(r));
            batch_add(a, &b, t, h);
        }
    }
    batch_flush(a, &b, kernel_scratch(r));
}

/* Merges the splits of a token's heads, ascending, and divides. */
static void merge_pair(const attention_args *a, int64_t t, int64_t kv_head, const float *parts,
                       int64_t splits)
{
    int64_t state = a->d + 2;
    float acc[256 + 2];
    for (int64_t g = 0; g < a->group; g++) {
        float *o = a->out + ((t * a->n_kv + kv_head) * a->group + g) * a->d;
        memcpy(acc, parts + g * state, (size_t)state * sizeof *acc);
        for (int64_t s = 1; s < splits; s++)
            a->k->merge(acc, parts + (s * a->group + g) * state, (size_t)a->d);
        for (int64_t i = 0; i < a->d; i++) o[i] = acc[i] / acc[a->d + 1];
    }
}

static void split_item(const attention_args *a, const run_ctx *r, const cut *c, int64_t item)
{
    int64_t pair = item / c->splits, split = item % c->splits, t = pair / a->n_kv,
            kv_head = pair % a->n_kv;
    float *parts = a->parts + pair * c->splits * a->group * (a->d + 2);
    bool valid = row_is_valid(a, r, t);
    if (valid && split <= a->positions[t] / KV_SPLIT) {
        batch b = {.call = {.n_rows = 0}};
        batch_start(a, &b, a->seq[t], kv_head);
        for (int64_t g = 0; g < a->group; g++) batch_add(a, &b, t, kv_head * a->group + g);
        b.call.split0 = split;
        b.call.split1 = split + 1;
        b.call.part = parts + split * a->group * (a->d + 2);
        a->k->attend(&b.call, kernel_scratch(r));
    }
    if (atomic_fetch_add_explicit(&a->done[pair], 1, memory_order_acq_rel) + 1 < c->splits) return;
    atomic_store_explicit(&a->done[pair], 0, memory_order_relaxed);
    if (valid)
        merge_pair(a, t, kv_head, parts, a->positions[t] / KV_SPLIT + 1);
    else
        refuse_row(a, t, kv_head * a->group, a->group);
}

static void attention_run(const void *args, const run_ctx *r, int64_t block)
{
    const attention_args *a = args;
    cut c = cut_of(a, r);
    if (c.splits) {
        split_item(a, r, &c, block);
        return;
    }
    int64_t t0 = block / a->n_kv * c.per, t1 = c.n_tokens - t0 < c.per ? c.n_tokens : t0 + c.per;
    attend_item(a, r, t0, t1, block % a->n_kv);
}

/* Room for the splits of a few rows at full length, within bounds: it is held by every attention
 * step of a plan. */
static ig_status make_room(const lowering *l, attention_args *a, int64_t n_rows)
{
    int64_t state = (a->d + 2) * 4,
            splits = ((int64_t)a->max_pages * KV_PAGE + KV_SPLIT - 1) / KV_SPLIT;
    int64_t want = (n_rows < 4 ? n_rows : 4) * a->n_kv * a->group * splits,
            most = SPLIT_BYTES / state;
    a->n_parts = (int32_t)(want < most ? want : most);
    a->parts = step_mem_get(l->mem, (size_t)(a->n_parts * state));
    a->done = step_mem_get(l->mem, SPLIT_ITEMS * sizeof *a->done);
    return a->parts && a->done ? IG_OK : lower_no_memory();
}

ig_status lower_paged_attention(const lowering *l, step *ret_step)
{
    const ig_node *n =
        l->w->node; /* in = q, pool, pages, seq, positions; i = n_kv, kv_type; f = scale */
    const spec *q = &l->in[0].s, *pages = &l->in[2].s;
    attention_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    TRY(lower_need(l, 1, IG_U8));
    for (int j = 2; j < 5; j++) TRY(lower_need(l, j, IG_I32));
    if (q->dim[2] > 256)
        return ig_fail(IG_ELIMIT, "%s: heads of %lld elements; 256 are possible", l->name,
                       (long long)q->dim[2]);
    if (pages->dim[1] > INT32_MAX / KV_PAGE || l->in[1].s.dim[0] > INT32_MAX)
        return ig_fail(IG_ELIMIT, "%s: more pages than positions can name", l->name);
    *a = (attention_args){
        .out = (float *)l->out[0].ptr, .pool = l->in[1].ptr, .k = l->k, .scale = (float)n->f[0]};
    a->pages = (const int32_t *)l->in[2].ptr;
    a->seq = (const int32_t *)l->in[3].ptr;
    a->positions = (const int32_t *)l->in[4].ptr;
    a->rows = lower_count(q, 0, 1);
    a->seqs = lower_count(pages, 0, 1);
    a->n_kv = (int32_t)n->i[0];
    a->group = (int32_t)(q->dim[1] / n->i[0]);
    a->d = (int32_t)q->dim[2];
    a->max_pages = (int32_t)pages->dim[1];
    a->n_pages = (int32_t)l->in[1].s.dim[0];
    a->kv_type = (ig_dtype)n->i[1];
    TRY(lower_rows(l, &l->in[0], &a->q));
    if (!rows_are_direct(&a->q)) return lower_not_contiguous(l, "each vector of q");
    *ret_step = (step){
        .run = attention_run, .blocks = attention_blocks, .args = a, .label = "paged attention"};
    return make_room(l, a, q->dim[0]);
}
