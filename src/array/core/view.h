/* view.h: operations that only rename elements: where their result lies inside their input. */
#ifndef ARRAY_VIEW_H
#define ARRAY_VIEW_H
#include "array/core/device.h"

/* Is it of the rule family "view" (reshape, transpose, slice, broadcast_to, expand_dims,
 * squeeze)? */
bool view_is(uint16_t op);
/* The operand of view->out[0] inside in (the operand of view->in[0]; only ptr and stride are
 * read). False, out untouched, when strides cannot say it (a reshape of a strided array): then
 * the view is lowered as a copy. */
bool view_layout(const ig_node *view, const operand *in, operand *out);
/* Strides that a has, or will have when it is evaluated, as far as the graph tells. For a view
 * without a value, other than in a trace, under the evaluation lock: evaluating it drops what is
 * walked here. */
void view_strides(ig_array a, int64_t *ret_stride);
/* Row-major strides of s. */
void view_contiguous(const spec *s, int64_t *ret_stride);
/* Are the elements of o row-major without gaps? Axes of size 1 and empty arrays do not matter. */
bool view_is_contiguous(const spec *s, const int64_t *stride);
#endif
