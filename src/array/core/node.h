/* node.h: the graph node, its specification, and the one way to make one.
 *
 * A node never points at handles, only at (node, output) pairs of its inputs, so several outputs
 * form no cycle. Release and evaluation use explicit work lists, never recursion. */
#ifndef ARRAY_NODE_H
#define ARRAY_NODE_H
#include <stdatomic.h>
#include "base/auto.h"
#include "ingot/array.h"
#include "ingot/transform.h"

typedef enum op_code {
#define OP(name, ...) OP_##name,
#include "array/ops.def"
#undef OP
    N_OPS
} op_code;

#define CALL_MAX_INTS (3 * (IG_MAX_NDIM + 1) + 4)
#define NODE_MAX_OUT 3

/* What an array is before it has bytes. dim[0] of a row-symbol array is the capacity. */
typedef struct spec {
    ig_dtype dtype;
    int8_t ndim;
    int8_t sym; /* 0, or 1 + index of the row symbol that dim[0] stands for */
    int64_t dim[IG_MAX_NDIM];
} spec;

/* Where an evaluated array's bytes are. Strides in elements, may be 0 or negative. */
typedef struct layout {
    struct buffer *buf; /* held; NULL before evaluation (and inside traces) */
    int64_t offset;     /* bytes from buf->ptr to element 0 */
    int64_t stride[IG_MAX_NDIM];
    struct buffer *flat; /* held; row-major copy that ig_data made of a strided array, or NULL */
} layout;

/* Arguments of one operation while it is being built: what a shape rule sees. */
typedef struct op_call {
    op_code op;
    int n_in;
    ig_array in[IG_MAX_INPUTS]; /* optional inputs may be empty */
    int n_i;
    int64_t i[CALL_MAX_INTS];
    int n_f;
    double f[4];
    const char *error; /* set by call_* when a list is too long; node_apply reports it */
} op_call;

/* Filling a call in the order of its row's arguments (what generated builders use). */
void call_in(op_call *c, ig_array a);
void call_arrays(op_call *c, const ig_array *xs, int n_xs);
void call_int(op_call *c, int64_t v);
void call_num(op_call *c, double v);
void call_dims(op_call *c, const int64_t *d, int n_d); /* count, then values */
void call_axes(op_call *c, const int *a, int n_a);

struct ig_node {
    atomic_int refs;
    uint16_t op;
    uint8_t n_out;
    uint8_t done; /* outputs have bytes */
    int32_t n_in, n_i, n_f;
    struct trace *trace; /* trace this node belongs to, or NULL (borrowed) */
    /* OP_state: which one; in-place writes: the state written; views of these too. Borrowed. */
    ig_state *state;
    uint32_t version; /* of the state that this node is; consumed when another node wrote it */
    uint32_t mark;    /* scratch of walks: an index, to be checked before it is believed */
    ig_node *link;    /* chains nodes that die together */
    ig_array *in;     /* held inputs; all four point into this allocation */
    int64_t *i;
    double *f;
    spec *out;   /* [n_out] */
    layout *lay; /* [n_out] */
};

/* Shape and type rule of a family: checks the call, fills ret_out[0..n_out). It may also rewrite
 * call->i (normalise axes). Messages name the operation, the argument and the shapes. */
typedef ig_status (*shape_rule)(op_call *call, spec *ret_out, int *ret_n_out);
typedef struct op_info {
    const char *name;
    const char *rule_name;
    shape_rule shape;
    const char *in_kinds; /* a letter per input: r required, o optional, l the rest is a list */
    const char *doc;
} op_info;
extern const op_info op_table[N_OPS];
bool op_writes(op_code op); /* may write its first input in place, when that is a state */
const char *op_in_name(op_code op, int i); /* "a", "weight", "arrays[3]" is "arrays" */

/* The one way to make an operation node: empty inputs pass through as empty, the rule runs, the
 * node joins the innermost scope. Multi-output operations: take {r.node, 0..n_out-1}. */
ig_array node_apply(op_call *call);
static inline const spec *node_spec(ig_array a) { return &a.node->out[a.out]; }
static inline const layout *node_layout(ig_array a) { return &a.node->lay[a.out]; }
ig_node *node_hold(ig_node *n);
void node_drop(ig_node *n); /* NULL is fine */
/* The node has its value: what it was made from may go. */
void node_drop_inputs(ig_node *n);
/* A node with room for its arguments, one reference, no outputs' bytes; leaves are made with it.
 * Inputs are held. */
IG_MUST_USE ig_status node_new(const op_call *call, const spec *out, int n_out, ig_node **ret_node);
#endif
