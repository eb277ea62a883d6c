/* ew_compile.c: elementwise programs to lists of loops over slots (ew.h). */
#include "array/cpu/ew_code.h"

/* Slots are given out by liveness: a value's slot is free once its last reader has run. */
typedef struct compiler {
    const lowering *l;
    ew *e;
    uint8_t place[EW_MAX_IN + EW_MAX_INSTR]; /* pointer index of each value */
    uint8_t last[EW_MAX_IN + EW_MAX_INSTR];  /* instruction that reads it last */
    ig_dtype type[EW_MAX_IN + EW_MAX_INSTR];
    bool busy[EW_SLOTS];
} compiler;

static uint8_t slot_take(compiler *c)
{
    for (uint8_t s = 0; s < EW_SLOTS; s++) {
        if (c->busy[s]) continue;
        c->busy[s] = true;
        if (s >= c->e->n_slots) c->e->n_slots = (uint8_t)(s + 1);
        return (uint8_t)(EW_P_SLOT + s);
    }
    return EW_P_NONE; /* cannot be: EW_SLOTS covers every value and conversion alive at once */
}

static void slot_drop(compiler *c, uint8_t p)
{
    if (p >= EW_P_SLOT && p < EW_P_SLOT + EW_SLOTS) c->busy[p - EW_P_SLOT] = false;
}

static uint8_t rounding(ig_dtype t)
{
    return t == IG_F16 ? EW_ROUND_F16 : t == IG_BF16 ? EW_ROUND_BF16 : 0;
}

static ew_op *add_op(compiler *c, uint8_t dst)
{
    ew_op *op = &c->e->op[c->e->n_ops++];
    *op = (ew_op){.dst = dst, .src = {EW_P_NONE, EW_P_NONE, EW_P_NONE}};
    return op;
}

/* Emits a conversion of the value at p into dst. */
static ig_status convert(compiler *c, uint8_t p, ig_dtype from, ig_dtype to, uint8_t dst)
{
    uint8_t round = from == to ? 0 : rounding(to);
    typed_fn fn = typed_cast(typed_register(from), typed_register(to), round != 0);
    if (!fn) return lower_bad_dtype(c->l, from == IG_C64 ? from : to);
    ew_op *op = add_op(c, dst);
    op->kind = EW_TYPED;
    op->fn.typed = fn;
    op->round = round;
    op->src[0] = p;
    return IG_OK;
}

/* Operand v of instruction i as dtype t: where it is, or converted into *ret_temp. */
static ig_status operand_as(compiler *c, uint8_t v, ig_dtype t, uint8_t *ret_p, uint8_t *ret_temp)
{
    *ret_temp = EW_P_NONE;
    *ret_p = c->place[v];
    ig_dtype from = c->type[v];
    bool exact_f32 = t == IG_F32 && typed_register(from) == IG_F32;
    if (from == t || exact_f32) return IG_OK;
    *ret_temp = *ret_p = slot_take(c);
    return convert(c, c->place[v], from, t, *ret_p);
}

/* The loop of an operation whose inputs have register type t. */
static ig_status pick_loop(compiler *c, const ew_instr *in, ig_dtype t, ew_op *op)
{
    const kernels *k = c->l->k;
    if (t == IG_F32 && k->ew1[in->op]) {
        op->kind = EW_ONE;
        op->fn.one = k->ew1[in->op];
    } else if (t == IG_F32 && k->ew2[in->op]) {
        op->kind = EW_TWO;
        op->fn.two = k->ew2[in->op];
    } else {
        op->kind = EW_TYPED;
        op->fn.typed = typed_op((op_code)in->op, t);
        if (!op->fn.typed)
            return ig_fail(IG_EDTYPE, "%s: not defined for %s", op_table[in->op].name,
                           ig_dtype_name(t));
    }
    return IG_OK;
}

/* Instruction i into dst (EW_P_NONE: a slot of its own). */
static ig_status emit(compiler *c, const ew_program *prog, int i, uint8_t dst)
{
    const ew_instr *in = &prog->instr[i];
    uint8_t value = (uint8_t)(prog->n_in + i);
    c->type[value] = in->dtype;
    if (in->op == OP_astype) {
        c->place[value] = dst == EW_P_NONE ? slot_take(c) : dst;
        return convert(c, c->place[in->src[0]], c->type[in->src[0]], in->dtype, c->place[value]);
    }
    uint8_t src[3], temp[3];
    for (int a = 0; a < 3; a++) {
        src[a] = temp[a] = EW_P_NONE;
        if (in->src[a] == EW_ABSENT) continue;
        bool condition = in->op == OP_where && a == 0;
        ig_dtype t = condition                                 ? IG_BOOL
                     : in->op == OP_where || in->op == OP_clip ? in->dtype
                                                               : in->in_dtype;
        TRY(operand_as(c, in->src[a], t, &src[a], &temp[a]));
    }
    c->place[value] = dst == EW_P_NONE ? slot_take(c) : dst;
    ew_op *op = add_op(c, c->place[value]);
    for (int a = 0; a < 3; a++) op->src[a] = src[a];
    bool by_result = in->op == OP_where || in->op == OP_clip;
    TRY(pick_loop(c, in, typed_register(by_result ? in->dtype : in->in_dtype), op));
    op->round = rounding(in->dtype);
    for (int a = 0; a < 3; a++) slot_drop(c, temp[a]);
    return IG_OK;
}

/* How input j is read: in place, filled once, run by run, or gathered. */
static ig_status place_input(compiler *c, const operand *o, const spec *space, int j)
{
    ew_in *in = &c->e->in[j];
    int64_t stride[IG_MAX_NDIM];
    int lead = space->ndim - o->s.ndim;
    for (int a = 0; a < space->ndim; a++)
        stride[a] =
            a < lead || (o->s.dim[a - lead] == 1 && space->dim[a] != 1) ? 0 : o->stride[a - lead];
    walk *w =
        walk_new(c->l->mem, o->ptr, ig_dtype_size(o->s.dtype), space->ndim, space->dim, stride);
    if (!w) return lower_no_memory();
    in->w = w;
    in->half = rounding(o->s.dtype);
    int64_t by = walk_step(w);
    if (w->n == 1)
        in->mode = by == w->size ? EW_DIRECT : by == 0 ? EW_SPLAT : EW_GATHER;
    else if (walk_run(w) < EW_LONG_RUN)
        in->mode = EW_GATHER;
    else
        in->mode = by == w->size ? EW_ROWS : by == 0 ? EW_ROW_SPLAT : EW_GATHER;
    c->type[j] = o->s.dtype;
    bool in_place = !in->half && (in->mode == EW_DIRECT || in->mode == EW_ROWS);
    in->slot = in_place ? EW_P_NONE : slot_take(c);
    c->place[j] = in_place ? (uint8_t)(EW_P_IN + j) : in->slot;
    return IG_OK;
}

static void find_last_readers(compiler *c, const ew_program *prog)
{
    for (int i = 0; i < prog->n_instr; i++)
        for (int a = 0; a < 3; a++)
            if (prog->instr[i].src[a] != EW_ABSENT) c->last[prog->instr[i].src[a]] = (uint8_t)i;
}

/* A splat slot is filled once for many chunks, so it is never given to another value. */
static bool slot_is_reusable(const compiler *c, const ew_program *prog, int v)
{
    return v >= prog->n_in || c->e->in[v].mode != EW_SPLAT;
}

static ig_status compile(compiler *c, const ew_program *prog, const operand *in, const spec *space)
{
    ew *e = c->e;
    for (int j = 0; j < prog->n_in; j++) TRY(place_input(c, &in[j], space, j));
    find_last_readers(c, prog);
    e->half_out = rounding(e->type);
    for (int i = 0; i < prog->n_instr; i++) {
        bool last = i == prog->n_instr - 1;
        TRY(emit(c, prog, i, last && !e->half_out ? EW_P_OUT : EW_P_NONE));
        for (int v = 0; v < prog->n_in + i; v++)
            if (c->last[v] == i && slot_is_reusable(c, prog, v)) slot_drop(c, c->place[v]);
    }
    e->result = c->place[prog->n_in + prog->n_instr - 1];
    if (e->half_out) e->op[e->n_ops - 1].round = 0; /* the store rounds */
    return IG_OK;
}

ig_status ew_compile(const lowering *l, const ew_program *prog, const operand *in,
                     const spec *space, ew **ret_ew)
{
    /* every operand of every instruction may need a conversion of its own */
    size_t most = (size_t)prog->n_instr * 4;
    ew *e = step_mem_get(l->mem, sizeof *e + most * sizeof e->op[0]);
    if (!e) return lower_no_memory();
    compiler c = {.l = l, .e = e};
    e->k = l->k;
    e->n_in = (uint8_t)prog->n_in;
    e->type = prog->instr[prog->n_instr - 1].dtype;
    TRY(compile(&c, prog, in, space));
    e->whole = e->n_ops == 1 && !e->half_out && !e->op[0].round;
    for (int j = 0; j < prog->n_in; j++)
        e->whole = e->whole && e->in[j].mode == EW_DIRECT && !e->in[j].half;
    *ret_ew = e;
    return IG_OK;
}

ig_dtype ew_type(const ew *e) { return e->type; }

int64_t ew_cost(const ew *e) { return 1 + e->n_ops; }
