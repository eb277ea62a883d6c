/* group.c: growing groups from their last node backwards.
 *
 * Nodes are taken from the end of the list; one that no group has yet is the root of a new group
 * and absorbs what the rules of group.h allow. Members keep the order of the list, which is the
 * order of the program's instructions. */
#include "array/fuse/group.h"
#include <stdlib.h>
#include <string.h>
#include "array/core/eval.h"
#include "array/core/shape.h"
#include "array/core/view.h"
#include "base/mem.h"

#define NO_GROUP UINT32_MAX

/* The column expr of ops.def. */
static const bool has_expression[N_OPS] = {
#define EW1(...) true
#define EW2(...) true
#define EW3(...) true
#define NONE false
#define OP(name, rule, build, args, expr, ...) [OP_##name] = expr,
#include "array/ops.def"
#undef OP
#undef NONE
#undef EW3
#undef EW2
#undef EW1
};

typedef struct group {
    work_kind kind;
    uint32_t root, inner;      /* indices of nodes; inner: rms_norm, qmm8, or the program's last */
    uint32_t first, n_members; /* range of group_set.member */
} group;

struct group_set {
    ig_node *const *nodes; /* borrowed */
    size_t n;
    group *groups; /* made backwards: the last made runs first */
    size_t n_groups;
    uint32_t *member; /* node indices, ascending within a group */
    size_t n_members;
    uint32_t *uses;  /* [n] inputs that read a node, and 1 if it is kept */
    uint32_t *owner; /* [n] group of a node */
    bool fuse;
};

/* A program under construction: what it has absorbed, and what it reads. */
typedef struct growth {
    group_set *set;
    const spec *shape; /* of every member */
    uint32_t member[EW_MAX_INSTR];
    int n_members;
    ig_array in[EW_MAX_IN];
    int n_in;
} growth;

/* astype and clip are elementwise too, though no one expression says what they do. */
bool group_is_elementwise(uint16_t op)
{
    return op == OP_astype || op == OP_clip || (op < N_OPS && has_expression[op]);
}

static bool is_leaf(const ig_node *n)
{
    return n->op == OP_constant || n->op == OP_input || n->op == OP_state;
}

/* Index of the listed node that makes a; false for what has its bytes already. */
static bool listed(const group_set *s, ig_array a, uint32_t *ret_index)
{
    if (ig_is_empty(a) || is_leaf(a.node) || node_is_done(a.node)) return false;
    if (a.node->mark >= s->n || s->nodes[a.node->mark] != a.node) return false;
    *ret_index = a.node->mark;
    return true;
}

static bool reads_state(const ig_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node && n->in[i].node->state) return true;
    return false;
}

/* May node i move to where a later node stands, if that one (and its group) is all that reads
 * it? */
static bool movable(const group_set *s, uint32_t i)
{
    const ig_node *n = s->nodes[i];
    return s->fuse && s->owner[i] == NO_GROUP && n->n_out == 1 && !n->state && !reads_state(n);
}

/* Input a of a root, if the root is its only reader and it may move: the inner of a pair. */
static bool inner_of(const group_set *s, ig_array a, uint32_t *ret_index)
{
    return listed(s, a, ret_index) && s->uses[*ret_index] == 1 && movable(s, *ret_index);
}

/* For the step that adds the residual where it lies. */
static bool is_row_major(ig_array a)
{
    int64_t stride[IG_MAX_NDIM];
    view_strides(a, stride);
    return view_is_contiguous(node_spec(a), stride);
}

/* add(residual, qmm8) in either order: index of the product, and the other input. */
static bool is_residual_add(const group_set *s, const ig_node *n, uint32_t *ret_inner,
                            ig_array *ret_residual)
{
    if (n->op != OP_add || !s->fuse) return false;
    for (int k = 1; k >= 0; k--) {
        ig_array product = n->in[k], residual = n->in[1 - k];
        if (!inner_of(s, product, ret_inner) || product.node->op != OP_quantized_matmul_rows8)
            continue;
        const spec *r = node_spec(residual), *p = node_spec(product);
        if (r->dtype != IG_F32 || p->dtype != IG_F32 || !shape_eq(r, p) ||
            !shape_eq(p, &n->out[0]) || !is_row_major(residual))
            continue;
        *ret_residual = residual;
        return true;
    }
    return false;
}

static bool is_norm_to_fuse(const ig_node *n)
{
    return n->op == OP_rms_norm && n->out[0].dim[n->out[0].ndim - 1] <= WORK_NORM_MAX;
}

/* --- growing a program */

static int reads_of(const growth *g, const ig_node *n)
{
    int k = 0;
    for (int m = 0; m < g->n_members; m++) {
        const ig_node *x = g->set->nodes[g->member[m]];
        for (int i = 0; i < x->n_in; i++) k += x->in[i].node == n;
    }
    return k;
}

static int find_in(const ig_array *in, int n, ig_array a)
{
    for (int i = 0; i < n; i++)
        if (in[i].node == a.node && in[i].out == a.out) return i;
    return -1;
}

/* Makes node i a member: it leaves the inputs, its own inputs join. False, nothing changed, when
 * the program would become too large. */
static bool absorb(growth *g, uint32_t i)
{
    const ig_node *n = g->set->nodes[i];
    ig_array in[EW_MAX_IN];
    int n_in = 0;
    for (int k = 0; k < g->n_in; k++)
        if (g->in[k].node != n) in[n_in++] = g->in[k];
    if (g->n_members == EW_MAX_INSTR) return false;
    for (int k = 0; k < n->n_in; k++) {
        if (ig_is_empty(n->in[k]) || find_in(in, n_in, n->in[k]) >= 0) continue;
        if (n_in == EW_MAX_IN) return false;
        in[n_in++] = n->in[k];
    }
    memcpy(g->in, in, sizeof in[0] * (size_t)n_in);
    g->n_in = n_in;
    g->member[g->n_members++] = i;
    return true;
}

static bool fits(const growth *g, ig_array a, uint32_t *ret_index)
{
    uint32_t inner;
    ig_array residual;
    if (!listed(g->set, a, ret_index) || !movable(g->set, *ret_index)) return false;
    const ig_node *n = g->set->nodes[*ret_index];
    return group_is_elementwise(n->op) && shape_eq(&n->out[0], g->shape) &&
           (uint32_t)reads_of(g, n) == g->set->uses[*ret_index] &&
           !is_residual_add(g->set, n, &inner, &residual);
}

static void grow(growth *g, group_set *s, uint32_t last)
{
    *g = (growth){.set = s, .shape = &s->nodes[last]->out[0]};
    absorb(g, last);
    for (int k = 0; k < g->n_in;) {
        uint32_t i;
        k = fits(g, g->in[k], &i) && absorb(g, i) ? 0 : k + 1;
    }
}

/* --- the set */

static void own(group_set *s, uint32_t i)
{
    s->owner[i] = (uint32_t)s->n_groups;
    s->member[s->n_members++] = i;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void add_group(group_set *s, work_kind kind, uint32_t root, uint32_t inner,
                      const growth *prog)
{
    group *g = &s->groups[s->n_groups];
    *g = (group){.kind = kind, .root = root, .inner = inner, .first = (uint32_t)s->n_members};
    if (prog)
        for (int m = 0; m < prog->n_members; m++) own(s, prog->member[m]);
    else if (inner != root)
        own(s, inner);
    g->n_members = (uint32_t)s->n_members - g->first;
    qsort(&s->member[g->first], g->n_members, sizeof s->member[0], ascending);
    s->owner[root] = (uint32_t)s->n_groups++;
}

static void group_from(group_set *s, uint32_t root)
{
    const ig_node *n = s->nodes[root];
    uint32_t inner;
    ig_array residual;
    growth g;
    if (n->op == OP_int8_rows && inner_of(s, n->in[0], &inner)) {
        if (is_norm_to_fuse(s->nodes[inner])) {
            add_group(s, WORK_NORM_ROWS8, root, inner, NULL);
            return;
        }
        if (group_is_elementwise(s->nodes[inner]->op) &&
            !is_residual_add(s, s->nodes[inner], &(uint32_t){0}, &residual)) {
            grow(&g, s, inner);
            add_group(s, WORK_EW_ROWS8, root, inner, &g);
            return;
        }
    }
    if (is_residual_add(s, n, &inner, &residual)) {
        add_group(s, WORK_QMM8_ADD, root, inner, NULL);
    } else if (n->op == OP_paged_write && inner_of(s, n->in[1], &inner) &&
               s->nodes[inner]->op == OP_rope) {
        add_group(s, WORK_ROPE_WRITE, root, inner, NULL);
    } else if (group_is_elementwise(n->op)) {
        grow(&g, s, root);
        add_group(s, WORK_EW, root, root, &g);
    } else {
        add_group(s, WORK_NODE, root, root, NULL);
    }
}

static void count_uses(group_set *s, const bool *keep)
{
    uint32_t k;
    for (size_t i = 0; i < s->n; i++) {
        s->uses[i] += keep[i];
        for (int j = 0; j < s->nodes[i]->n_in; j++)
            if (listed(s, s->nodes[i]->in[j], &k)) s->uses[k]++;
    }
}

ig_status group_nodes(ig_node *const *nodes, const bool *keep, size_t n, bool fuse,
                      group_set **ret_set)
{
    if (n >= NO_GROUP) return ig_fail(IG_ELIMIT, "a graph of %zu operations is too large", n);
    AUTO(group_ptr) s = mem_calloc(1, sizeof *s);
    if (!s) return IG_ENOMEM;
    s->nodes = nodes;
    s->n = n;
    s->fuse = fuse;
    s->groups = mem_calloc(n, sizeof *s->groups);
    s->member = mem_calloc(n, sizeof *s->member);
    s->uses = mem_calloc(n, sizeof *s->uses);
    s->owner = mem_calloc(n, sizeof *s->owner);
    if (!s->groups || !s->member || !s->uses || !s->owner) return IG_ENOMEM;
    for (size_t i = 0; i < n; i++) s->owner[i] = NO_GROUP;
    count_uses(s, keep);
    for (size_t i = n; i-- > 0;)
        if (s->owner[i] == NO_GROUP) group_from(s, (uint32_t)i);
    *ret_set = STEAL(s);
    return IG_OK;
}

void group_free(group_set *g)
{
    if (!g) return;
    mem_free(g->groups);
    mem_free(g->member);
    mem_free(g->uses);
    mem_free(g->owner);
    mem_free(g);
}

size_t group_count(const group_set *g) { return g->n_groups; }

/* --- handing out works */

/* Inputs are converted to this before the operation; the condition of where and the operand of
 * astype are read in their own type. Where the result is bool, the operands meet in their common
 * type. */
static ig_dtype meeting_type(const ig_node *n)
{
    if (n->op == OP_astype) return node_spec(n->in[0])->dtype;
    if (n->out[0].dtype != IG_BOOL) return n->out[0].dtype;
    int first = n->op == OP_where;
    ig_dtype t = node_spec(n->in[first])->dtype;
    for (int i = first + 1; i < n->n_in; i++)
        if (!ig_is_empty(n->in[i])) t = ig_promote(t, node_spec(n->in[i])->dtype);
    return t;
}

static void list_inputs(const group_set *s, const group *g, work *w)
{
    for (uint32_t m = 0; m < g->n_members; m++) {
        const ig_node *n = s->nodes[s->member[g->first + m]];
        for (int i = 0; i < n->n_in; i++) {
            uint32_t k, owner = s->owner[s->member[g->first]];
            if (ig_is_empty(n->in[i]) || (listed(s, n->in[i], &k) && s->owner[k] == owner))
                continue;
            if (find_in(w->in, w->n_in, n->in[i]) < 0) w->in[w->n_in++] = n->in[i];
        }
    }
}

static uint8_t value_of(const group_set *s, const group *g, const work *w, ig_array a)
{
    if (ig_is_empty(a)) return EW_ABSENT;
    int k = find_in(w->in, w->n_in, a);
    for (uint32_t m = 0; k < 0 && m < g->n_members; m++)
        if (s->nodes[s->member[g->first + m]] == a.node) k = w->n_in + (int)m;
    return (uint8_t)k;
}

static void write_program(const group_set *s, const group *g, work *w, ew_program *p)
{
    list_inputs(s, g, w);
    *p = (ew_program){.n_in = w->n_in, .n_instr = (int)g->n_members};
    for (int i = 0; i < w->n_in; i++) p->in_dtype[i] = (uint8_t)node_spec(w->in[i])->dtype;
    for (uint32_t m = 0; m < g->n_members; m++) {
        const ig_node *n = s->nodes[s->member[g->first + m]];
        ew_instr *x = &p->instr[m];
        *x = (ew_instr){.op = n->op,
                        .dtype = (uint8_t)n->out[0].dtype,
                        .in_dtype = (uint8_t)meeting_type(n),
                        .src = {EW_ABSENT, EW_ABSENT, EW_ABSENT}};
        for (int i = 0; i < n->n_in; i++) x->src[i] = value_of(s, g, w, n->in[i]);
    }
    w->prog = p;
}

static void copy_inputs(work *w, const ig_node *n)
{
    memcpy(w->in, n->in, (size_t)n->n_in * sizeof w->in[0]);
    w->n_in = n->n_in;
}

void group_get(const group_set *s, size_t i, work *ret_work, ew_program *ret_prog)
{
    const group *g = &s->groups[s->n_groups - 1 - i];
    const ig_node *root = s->nodes[g->root], *inner = s->nodes[g->inner];
    work *w = ret_work;
    w->kind = g->kind;
    w->node = root;
    w->inner = NULL;
    w->prog = NULL;
    w->n_in = 0;
    switch (g->kind) {
    case WORK_NODE: copy_inputs(w, root); break;
    case WORK_EW:
    case WORK_EW_ROWS8: write_program(s, g, w, ret_prog); break;
    case WORK_NORM_ROWS8:
        w->inner = inner;
        copy_inputs(w, inner);
        break;
    case WORK_QMM8_ADD:
        w->inner = inner;
        copy_inputs(w, inner);
        w->in[w->n_in++] = root->in[root->in[0].node == inner];
        break;
    case WORK_ROPE_WRITE:
        w->inner = inner;
        copy_inputs(w, root);
        w->in[1] = inner->in[0];
        memcpy(&w->in[w->n_in], &inner->in[1], 2 * sizeof w->in[0]);
        w->n_in += 2;
        break;
    }
}
