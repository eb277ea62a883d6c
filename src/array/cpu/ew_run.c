/* ew_run.c: running a compiled elementwise program (ew.h). */
#include "array/cpu/ew_code.h"

/* After the slots: 16-bit elements on their way. */
#define HALF_AT (EW_SLOTS * EW_SLOT_BYTES)
_Static_assert(HALF_AT + EW_CHUNK * 2 <= EW_SCRATCH_BYTES,
               "slots and 16-bit elements fit in the scratch");

static void to_f32(const kernels *k, uint8_t half, void *y, const void *x, size_t n)
{
    (half == EW_ROUND_F16 ? k->f16_to_f32 : k->bf16_to_f32)(y, x, n);
}

static void from_f32(const kernels *k, uint8_t half, void *y, const void *x, size_t n)
{
    (half == EW_ROUND_F16 ? k->f32_to_f16 : k->f32_to_bf16)(y, x, n);
}

/* Elements that may be done at once from `at`: no more than a chunk, and no long run of an input is
 * left. */
static int64_t chunk_len(const ew *e, int64_t at, int64_t end)
{
    int64_t n = end - at < EW_CHUNK ? end - at : EW_CHUNK;
    for (int j = 0; j < e->n_in; j++) {
        if (e->in[j].mode != EW_ROWS && e->in[j].mode != EW_ROW_SPLAT) continue;
        int64_t run = walk_run(e->in[j].w), left = run - at % run;
        if (left < n) n = left;
    }
    return n;
}

/* n elements from `at` of an input: points p at them, or fills its slot. */
static void load(const ew *e, const ew_in *in, int64_t at, int64_t n, char **p, char *half)
{
    const walk *w = in->w;
    char *slot = in->slot == EW_P_NONE ? NULL : p[in->slot];
    size_t size = (size_t)w->size;
    if (in->mode == EW_DIRECT || in->mode == EW_ROWS) {
        char *x = in->mode == EW_DIRECT ? w->ptr + at * w->size : walk_at(w, at);
        if (slot)
            to_f32(e->k, in->half, slot, x, (size_t)n);
        else
            p[EW_P_IN + (in - e->in)] = x;
        return;
    }
    char *raw = in->half ? half : slot;
    if (in->mode == EW_GATHER)
        walk_read(w, at, n, raw);
    else
        walk_fill(raw, walk_at(w, at), size, n);
    if (in->half) to_f32(e->k, in->half, slot, raw, (size_t)n);
}

static void compute(const ew *e, const ew_op *op, char **p, size_t n, char *half)
{
    void *y = p[op->dst], *a = p[op->src[0]], *b = p[op->src[1]];
    if (op->kind == EW_ONE)
        op->fn.one(y, a, n);
    else if (op->kind == EW_TWO)
        op->fn.two(y, a, b, n);
    else
        op->fn.typed(y, a, b, p[op->src[2]], n);
    if (op->round) {
        from_f32(e->k, op->round, half, y, n);
        to_f32(e->k, op->round, y, half, n);
    }
}

void ew_run(const ew *e, int64_t first, int64_t end, char *y, char *scratch)
{
    char *p[EW_N_P], *half = scratch + HALF_AT;
    size_t size = ig_dtype_size(e->type);
    p[EW_P_NONE] = NULL;
    for (int s = 0; s < e->n_slots; s++) p[EW_P_SLOT + s] = scratch + s * EW_SLOT_BYTES;
    for (int j = 0; j < e->n_in; j++)
        if (e->in[j].mode == EW_SPLAT) load(e, &e->in[j], first, EW_CHUNK, p, half);
    for (int64_t at = first, n; at < end; at += n) {
        n = e->whole ? end - at : chunk_len(e, at, end);
        for (int j = 0; j < e->n_in; j++)
            if (e->in[j].mode != EW_SPLAT) load(e, &e->in[j], at, n, p, half);
        p[EW_P_OUT] = y + (size_t)(at - first) * size;
        for (int i = 0; i < e->n_ops; i++) compute(e, &e->op[i], p, (size_t)n, half);
        if (e->half_out) from_f32(e->k, e->half_out, p[EW_P_OUT], p[e->result], (size_t)n);
    }
}
