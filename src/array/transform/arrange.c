/* arrange.c: phases, places and steps (contract in arrange.h).
 *
 * Groups are walked in the order of the trace. A group's phase is one more than the latest of
 * what it waits for: the steps that make its inputs; for a reader of a state the last write
 * before it; for a write of a state all reads and writes before it. Then a value that dies where
 * it is read may be written over by its reader, and what is left gets its place in the arena.
 *
 * While places are decided the arena has no address: pointers into a value count from ORIGIN. */
#include "array/transform/arrange.h"
#include "array/core/eval.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include "array/fuse/group.h"
#include "array/transform/arena.h"
#include "array/transform/describe.h"
#include "array/transform/touch.h"
#include "base/clock.h"

#define FIXED (-1)        /* not in the arena: an input, a constant, a state, or absent */
#define FOREVER INT32_MAX /* last phase of what the caller reads after a replay */
#define ORIGIN ((char *)(uintptr_t)((size_t)1 << 40))

/* Bytes that one step writes. */
typedef struct value {
    int64_t n_bytes;
    int32_t first, last; /* phases: written, last read; of a root: of all that share its bytes */
    int32_t n_last;      /* inputs that read it in phase `last` */
    uint32_t root;       /* the value whose bytes it uses: itself, or one it is written over */
    int64_t offset;      /* of a root, in the arena */
} value;

typedef struct place {
    int64_t value; /* index, or FIXED */
    operand o;     /* o.ptr: from ORIGIN if in the arena */
} place;

typedef struct item {
    uint32_t group;
    int32_t phase;
} item;

typedef struct state_use {
    int32_t read, write; /* latest phases so far; -1: none */
} state_use;

typedef struct arranger {
    const program *prog;
    ig_plan *plan;
    group_set *groups;
    uint32_t *first_place; /* [prog->n] index of output 0 of a node */
    place *places;
    value *values;
    size_t n_values;
    item *items; /* first in the order of the trace, then by phase */
    size_t n_items;
    state_use *states; /* as trace->state */
} arranger;

/* --- places */

static void place_fixed(place *ret, char *ptr, const spec *s)
{
    ret->value = FIXED;
    ret->o.ptr = ptr;
    ret->o.s = *s;
    view_contiguous(s, ret->o.stride);
}

static void find(const arranger *r, ig_array a, place *ret)
{
    const ig_node *n = a.node;
    if (!n) {
        *ret = (place){.value = FIXED};
    } else if (n->trace != r->prog->trace) {
        ret->value = FIXED;
        eval_operand(a, &ret->o);
    } else if (n->op == OP_input) {
        place_fixed(ret, r->plan->input[n->i[0]], node_spec(a));
    } else if (n->op == OP_state) {
        place_fixed(ret, ig_state_data(n->state), node_spec(a));
    } else {
        *ret = r->places[r->first_place[n->mark] + a.out];
    }
}

/* A view is where its input is, unless strides cannot say so; a contiguous copy of what is already
 * contiguous and stays as it is, is that. */
static bool place_view(arranger *r, const work *w)
{
    const ig_node *n = w->node;
    place *p = &r->places[r->first_place[n->mark]], in;
    if (w->kind != WORK_NODE || (!view_is(n->op) && n->op != OP_contiguous)) return false;
    find(r, w->in[0], &in);
    if (n->op == OP_contiguous) {
        if (in.value == FIXED || !view_is_contiguous(&in.o.s, in.o.stride)) return false;
        *p = in;
        return true;
    }
    p->value = in.value;
    if (!view_layout(n, &in.o, &p->o)) return false;
    p->o.s = n->out[0];
    return true;
}

static bool writes_state(const ig_node *n) { return n->state && !view_is(n->op); }

static void place_outputs(arranger *r, const work *w, int32_t phase)
{
    const ig_node *n = w->node;
    place *p = &r->places[r->first_place[n->mark]];
    if (writes_state(n)) {
        find(r, w->in[0], p);
        return;
    }
    for (int k = 0; k < n->n_out; k++, p++) {
        uint32_t v = (uint32_t)r->n_values++;
        int64_t n_bytes = shape_size(&n->out[k]) * (int64_t)ig_dtype_size(n->out[k].dtype);
        r->values[v] = (value){.n_bytes = n_bytes, .first = phase, .last = phase, .root = v};
        place_fixed(p, ORIGIN, &n->out[k]);
        p->value = v;
    }
}

/* --- phases */

static void after(int32_t *phase, int32_t other)
{
    if (other >= *phase) *phase = other + 1;
}

static void until(int32_t *phase, int32_t other)
{
    if (other > *phase) *phase = other;
}

static state_use *use_of(const arranger *r, const ig_state *state)
{
    const trace *t = r->prog->trace;
    size_t i = 0;
    while (i + 1 < t->n_states && t->state[i].state != state) i++;
    return &r->states[i];
}

static void read_value(value *v, int32_t phase)
{
    if (phase > v->last) {
        v->last = phase;
        v->n_last = 0;
    }
    v->n_last += phase == v->last;
}

static int32_t phase_of(const arranger *r, const work *w)
{
    int32_t phase = 0;
    place p;
    for (int j = 0; j < w->n_in; j++) {
        if (ig_is_empty(w->in[j])) continue;
        find(r, w->in[j], &p);
        if (p.value != FIXED) after(&phase, r->values[p.value].first);
        if (w->in[j].node->state) after(&phase, use_of(r, w->in[j].node->state)->write);
    }
    if (writes_state(w->node)) {
        after(&phase, use_of(r, w->node->state)->read);
        after(&phase, use_of(r, w->node->state)->write);
    }
    return phase;
}

static void note_reads(arranger *r, const work *w, int32_t phase)
{
    place p;
    for (int j = 0; j < w->n_in; j++) {
        if (ig_is_empty(w->in[j])) continue;
        find(r, w->in[j], &p);
        if (p.value != FIXED) read_value(&r->values[p.value], phase);
        if (w->in[j].node->state) until(&use_of(r, w->in[j].node->state)->read, phase);
    }
    if (writes_state(w->node)) until(&use_of(r, w->node->state)->write, phase);
}

static void walk_groups(arranger *r)
{
    work w;
    ew_program prog;
    for (size_t g = 0; g < group_count(r->groups); g++) {
        group_get(r->groups, g, &w, &prog);
        if (place_view(r, &w)) continue;
        int32_t phase = phase_of(r, &w);
        note_reads(r, &w, phase);
        place_outputs(r, &w, phase);
        r->items[r->n_items++] = (item){.group = (uint32_t)g, .phase = phase};
        until(&r->plan->n_phases, phase + 1);
    }
}

/* Stable, so that equal phases keep the order of the trace. */
static ig_status sort_by_phase(arranger *r)
{
    ig_plan *p = r->plan;
    p->n_steps = (int32_t)r->n_items;
    p->first = mem_calloc((size_t)p->n_phases + 2, sizeof *p->first);
    item *sorted = mem_calloc(r->n_items, sizeof *sorted);
    if (!p->first || !sorted) {
        mem_free(sorted);
        return IG_ENOMEM;
    }
    int32_t *next =
        p->first + 1; /* counts, then starts, then ends, which are the starts of the next */
    for (size_t i = 0; i < r->n_items; i++) next[r->items[i].phase + 1]++;
    for (int32_t i = 1; i <= p->n_phases; i++) next[i] += next[i - 1];
    for (size_t i = 0; i < r->n_items; i++) sorted[next[r->items[i].phase]++] = r->items[i];
    mem_free(r->items);
    r->items = sorted;
    return IG_OK;
}

/* --- memory */

static void keep_outputs(arranger *r)
{
    place p;
    for (int i = 0; i < r->plan->n_outputs; i++) {
        find(r, r->prog->output[i], &p);
        if (p.value != FIXED) r->values[p.value].last = FOREVER;
    }
}

/* Input j is a whole value of the result's bytes, and nobody else reads it then or later. */
static bool may_overwrite(const arranger *r, const work *w, int j, int32_t phase, const value *out)
{
    place p;
    if (ig_is_empty(w->in[j])) return false;
    find(r, w->in[j], &p);
    if (p.value == FIXED) return false;
    const value *v = &r->values[p.value];
    return v->last == phase && v->n_last == 1 && v->n_bytes == out->n_bytes && p.o.ptr == ORIGIN &&
           p.o.s.sym == w->node->out[0].sym && view_is_contiguous(&p.o.s, p.o.stride) &&
           device_in_place(w, j);
}

static void share_memory(arranger *r)
{
    work w;
    ew_program prog;
    place p;
    for (size_t i = 0; i < r->n_items; i++) {
        group_get(r->groups, r->items[i].group, &w, &prog);
        if (writes_state(w.node)) continue;
        value *out = &r->values[r->places[r->first_place[w.node->mark]].value];
        for (int j = 0; j < w.n_in; j++) {
            if (!may_overwrite(r, &w, j, r->items[i].phase, out)) continue;
            find(r, w.in[j], &p);
            out->root = r->values[p.value].root;
            until(&r->values[out->root].last, out->last);
            break;
        }
    }
}

static ig_status make_arena(arranger *r)
{
    AUTO(mem_ptr) memory = mem_calloc(r->n_values, sizeof(arena_item));
    if (!memory) return IG_ENOMEM;
    arena_item *items = memory;
    size_t n = 0;
    for (size_t v = 0; v < r->n_values; v++) {
        const value *x = &r->values[v];
        if (x->root == v) items[n++] = (arena_item){x->n_bytes, x->first, x->last, 0};
    }
    TRY(arena_place(items, n, &r->plan->stats.arena_bytes));
    n = 0;
    for (size_t v = 0; v < r->n_values; v++)
        if (r->values[v].root == v) r->values[v].offset = items[n++].offset;
    int64_t begin = clock_mono_us();
    TRY(touch_new((size_t)r->plan->stats.arena_bytes, &r->plan->arena));
    r->plan->stats.touch_us = clock_mono_us() - begin;
    return IG_OK;
}

/* The operand of a with its address. */
static operand address(const arranger *r, ig_array a)
{
    place p;
    find(r, a, &p);
    if (p.value != FIXED)
        p.o.ptr =
            r->plan->arena->ptr + r->values[r->values[p.value].root].offset + (p.o.ptr - ORIGIN);
    return p.o;
}

/* --- steps */

static ig_status lower_item(arranger *r, const item *it, step *ret_step)
{
    work w;
    ew_program prog;
    operand in[IG_MAX_INPUTS], out[NODE_MAX_OUT];
    group_get(r->groups, it->group, &w, &prog);
    for (int j = 0; j < w.n_in; j++) in[j] = address(r, w.in[j]);
    for (uint32_t k = 0; k < w.node->n_out; k++)
        out[k] = address(r, (ig_array){(ig_node *)w.node, k});
    TRY(r->plan->dev->lower(&w, in, out, r->plan->mem, ret_step));
    r->plan->stats.weight_bytes += ret_step->const_bytes;
    describe_step(r->plan, it->phase, &w, in, out, ret_step->label);
    return IG_OK;
}

static ig_status lower_items(arranger *r)
{
    ig_plan *p = r->plan;
    p->steps = mem_calloc(r->n_items, sizeof *p->steps);
    if (!p->steps) return IG_ENOMEM;
    for (size_t i = 0; i < r->n_items; i++) TRY(lower_item(r, &r->items[i], &p->steps[i]));
    for (int i = 0; i < p->n_outputs; i++) p->output[i] = address(r, r->prog->output[i]).ptr;
    p->stats.n_steps = p->n_steps;
    p->stats.n_phases = p->n_phases;
    return IG_OK;
}

static ig_status prepare(arranger *r)
{
    const program *prog = r->prog;
    size_t n_places = 0;
    TRY(group_nodes(prog->node, prog->keep, prog->n, prog->fuse, &r->groups));
    r->first_place = mem_calloc(prog->n, sizeof *r->first_place);
    if (!r->first_place) return IG_ENOMEM;
    for (size_t i = 0; i < prog->n; i++) {
        r->first_place[i] = (uint32_t)n_places;
        n_places += prog->node[i]->n_out;
    }
    r->places = mem_calloc(n_places, sizeof *r->places);
    r->values = mem_calloc(n_places, sizeof *r->values);
    r->items = mem_calloc(group_count(r->groups), sizeof *r->items);
    r->states = mem_calloc(prog->trace->n_states, sizeof *r->states);
    if (!r->places || !r->values || !r->items || !r->states) return IG_ENOMEM;
    for (size_t i = 0; i < prog->trace->n_states; i++) r->states[i] = (state_use){-1, -1};
    return IG_OK;
}

static ig_status arrange_with(arranger *r)
{
    TRY(prepare(r));
    walk_groups(r);
    TRY(sort_by_phase(r));
    keep_outputs(r);
    share_memory(r);
    TRY(make_arena(r));
    return lower_items(r);
}

ig_status arrange(const program *prog, ig_plan *plan)
{
    arranger r = {.prog = prog, .plan = plan};
    ig_status st = arrange_with(&r);
    group_free(r.groups);
    mem_free(r.first_place);
    mem_free(r.places);
    mem_free(r.values);
    mem_free(r.items);
    mem_free(r.states);
    return st;
}
