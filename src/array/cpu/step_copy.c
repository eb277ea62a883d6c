/* step_copy.c: the same elements elsewhere: contiguous copies, concatenation. */
#include "array/cpu/lower.h"
#include "array/cpu/walk.h"

#define CHUNK 1024

typedef struct copy_args {
    const walk *in;
    char *out;
    count n;
} copy_args;

static int64_t copy_blocks(const void *args, const run_ctx *r)
{
    const copy_args *a = args;
    return rows_blocks((count_now(a->n, r) + CHUNK - 1) / CHUNK, CHUNK, r->n_workers);
}

static void copy_run(const void *args, const run_ctx *r, int64_t block)
{
    const copy_args *a = args;
    int64_t n = count_now(a->n, r);
    span s = rows_span((n + CHUNK - 1) / CHUNK, CHUNK, r->n_workers, block);
    int64_t first = s.first * CHUNK, end = s.end * CHUNK < n ? s.end * CHUNK : n;
    walk_read(a->in, first, end - first, a->out + first * a->in->size);
}

ig_status lower_copy(const lowering *l, step *ret_step)
{
    copy_args *a;
    if (!LOWER_NEW(l, a)) return lower_no_memory();
    a->in = walk_operand(l->mem, &l->in[0]);
    if (!a->in) return lower_no_memory();
    a->out = l->out[0].ptr;
    a->n = lower_count(&l->out[0].s, 0, l->out[0].s.ndim);
    *ret_step = (step){.run = copy_run, .blocks = copy_blocks, .args = a, .label = "copy"};
    return IG_OK;
}

/* One input of a concatenation: `len` elements of it go to each outer row of the result, `at`
 * elements in. */
typedef struct piece {
    const walk *in;
    int64_t len, at;
} piece;

typedef struct concatenate_args {
    char *out;
    count outer;
    int64_t row; /* elements of the result per outer row */
    int64_t n_pieces;
    piece pieces[];
} concatenate_args;

static int64_t concatenate_blocks(const void *args, const run_ctx *r)
{
    const concatenate_args *a = args;
    return rows_blocks(count_now(a->outer, r) * a->n_pieces, a->row / a->n_pieces, r->n_workers);
}

static void concatenate_run(const void *args, const run_ctx *r, int64_t block)
{
    const concatenate_args *a = args;
    span s =
        rows_span(count_now(a->outer, r) * a->n_pieces, a->row / a->n_pieces, r->n_workers, block);
    for (int64_t i = s.first; i < s.end; i++) {
        const piece *p = &a->pieces[i % a->n_pieces];
        int64_t outer = i / a->n_pieces;
        walk_read(p->in, outer * p->len, p->len, a->out + (outer * a->row + p->at) * p->in->size);
    }
}

ig_status lower_concatenate(const lowering *l, step *ret_step)
{
    const spec *out = &l->out[0].s;
    int axis = (int)l->w->node->i[0], n = l->w->n_in;
    if (out->sym && axis == 0)
        return ig_fail(IG_EUNSUPPORTED, "%s: along an axis that is a row symbol", l->name);
    concatenate_args *a = step_mem_get(l->mem, sizeof *a + (size_t)n * sizeof a->pieces[0]);
    if (!a) return lower_no_memory();
    a->out = l->out[0].ptr;
    a->outer = lower_count(out, 0, axis);
    a->n_pieces = n;
    for (int j = 0; j < n; j++) {
        const operand *o = &l->in[j];
        if (o->s.dtype != out->dtype) return lower_bad_dtype(l, o->s.dtype);
        piece *p = &a->pieces[j];
        *p = (piece){.in = walk_operand(l->mem, o),
                     .len = lower_product(&o->s, axis, o->s.ndim),
                     .at = a->row};
        if (!p->in) return lower_no_memory();
        a->row += p->len;
    }
    *ret_step = (step){
        .run = concatenate_run, .blocks = concatenate_blocks, .args = a, .label = "concatenate"};
    return IG_OK;
}
