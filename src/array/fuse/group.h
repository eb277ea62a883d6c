/* group.h: which nodes of a graph run together as one step.
 *
 * Fusion happens here and nowhere else; evaluation and plans ask the same question. What a group
 * computes is bit for bit what its nodes compute one by one, so the cut between groups is never
 * visible in a result. The rules:
 *   - elementwise operations of equal shape (dims and symbol) become one program (WORK_EW) as long
 *     as EW_MAX_IN inputs and EW_MAX_INSTR instructions suffice. A single elementwise operation is
 *     a program of one instruction: no device sees one as WORK_NODE.
 *   - int8_rows of such a program: WORK_EW_ROWS8; int8_rows of rms_norm, its rows not
 *     longer than WORK_NORM_MAX: WORK_NORM_ROWS8; quantized_matmul_rows8 plus a row-major float32
 *     residual of its shape: WORK_QMM8_ADD; paged_write of a rope as keys: WORK_ROPE_WRITE.
 *   - an inner node is absorbed only if nothing outside the group reads it, and only if it reads no
 *     state: a group runs where its last node stood, and a write may have come between.
 * Views stay groups of their own (WORK_NODE): whoever runs the list resolves them by strides
 * (core/view.h) and makes a step only where that fails. */
#ifndef FUSE_GROUP_H
#define FUSE_GROUP_H
#include "array/core/device.h"
#include "array/fuse/loops.h"

typedef struct group_set group_set;
/* nodes: the n operations to run, each after its inputs; node->mark of each is its index here.
 * Inputs that are not listed have their bytes or are leaves. keep[i]: something outside the list
 * reads node i, it must have bytes. fuse false: every node is its own group. Borrows nodes until
 * group_free. */
IG_MUST_USE ig_status group_nodes(ig_node *const *nodes, const bool *keep, size_t n, bool fuse,
                                  group_set **ret_set);
void group_free(group_set *g); /* NULL is fine */
AUTO_FN(group_ptr, group_set *, group_free)
size_t group_count(const group_set *g); /* in an order that may be run */
/* Group i. ret_work->prog points to ret_prog where the kind has a program. */
void group_get(const group_set *g, size_t i, work *ret_work, ew_program *ret_prog);
/* Is op elementwise: can an instruction of a program be it? */
bool group_is_elementwise(uint16_t op);
#endif
