/* shape.h: sizes, broadcasting, axes, row symbols; what shape rules are written with.
 *
 * A row symbol may stand for dim 0 only. Two different symbols never broadcast together, nor does a symbol with a fixed size other
 * than 1. dim[0] of a spec with a symbol is its capacity. */
#ifndef ARRAY_SHAPE_H
#define ARRAY_SHAPE_H
#include "array/core/node.h"

int64_t shape_size(const spec *s);                    /* elements (capacity counts) */
IG_MUST_USE ig_status shape_check(const char *op, const spec *s);   /* dims >= 0, bytes fit in int64 */
bool shape_eq(const spec *a, const spec *b);          /* dims and symbol */

#define SHAPE_TEXT_N 320
typedef struct shape_text { char s[SHAPE_TEXT_N]; } shape_text;
/* "float32 [T, 64]" (symbols by name and capacity "T<=512"), for messages: SHAPE(s).s */
shape_text shape_format(const spec *s);
#define SHAPE(s) shape_format(s).s

/* Dims and symbol of the broadcast of n specs; dtype is left alone. `names`: the arguments in messages. */
IG_MUST_USE ig_status shape_broadcast(const char *op, const spec *const *in, const char *const *names, int n, spec *ret_out);
/* Makes *axis non-negative. */
IG_MUST_USE ig_status shape_axis(const char *op, const spec *s, int64_t *axis);
#endif
