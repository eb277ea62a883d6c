/* shape.h: sizes, broadcasting, axes, row symbols: what shape rules are written with.
 *
 * A row symbol may stand for dim 0 only. Two different symbols never broadcast together, nor
 * does a symbol with a fixed size other than 1. dim[0] of a spec with a symbol is its capacity. */
#ifndef ARRAY_SHAPE_H
#define ARRAY_SHAPE_H
#include "array/core/node.h"

int64_t shape_size(const spec *s); /* elements (the capacity counts) */
int64_t shape_nbytes(const spec *s);
/* Dims >= 0 and bytes that fit in int64: what every new shape must pass. */
IG_MUST_USE ig_status shape_check(const char *op, const spec *s);
/* A spec from outside: rank, dims and dtype checked. `op` names the caller in messages. */
IG_MUST_USE ig_status shape_make(const char *op, ig_dtype dtype, const int64_t *dims, int64_t ndim,
                                 spec *ret_spec);
bool shape_eq(const spec *a, const spec *b); /* dims and symbol; not the dtype */
/* May a dim of a fixed or symbolic size be taken for the other? For axis i of a and axis j of b. */
bool shape_dim_eq(const spec *a, int i, const spec *b, int j);

#define SHAPE_TEXT_N 320
typedef struct shape_text {
    char s[SHAPE_TEXT_N];
} shape_text;
/* "float32 [T<=512, 64]" (a symbol by name and capacity), for messages: SHAPE(s). */
shape_text shape_format(const spec *s);
#define SHAPE(sp) (shape_format(sp).s)

/* Dims and symbol of the broadcast of n specs; ret_out->dtype is left alone. names: the
 * arguments, for messages. */
IG_MUST_USE ig_status shape_broadcast(const char *op, const spec *const *in,
                                      const char *const *names, int n, spec *ret_out);
/* Makes *axis non-negative. */
IG_MUST_USE ig_status shape_axis(const char *op, const spec *s, int64_t *axis);
/* The same for a list without repetitions; n 0 means all axes. ret_is_listed[ndim]. */
IG_MUST_USE ig_status shape_axes(const char *op, const spec *s, const int64_t *axes, int64_t n,
                                 bool *ret_is_listed);
/* Fails when `axis` of s is a row symbol: for operations that would mix or move its rows. */
IG_MUST_USE ig_status shape_no_symbol(const char *op, const spec *s, int64_t axis);
#endif
