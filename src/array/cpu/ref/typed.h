/* typed.h: elementwise loops for every dtype, and conversions between dtypes.
 *
 * They work on register types: f16 and bf16 travel as f32 (whoever stores them rounds), every other
 * dtype as itself. */
#ifndef CPU_TYPED_H
#define CPU_TYPED_H
#include "array/core/node.h"

/* n elements; y may equal an input of the same size. Unused inputs are NULL; so is an absent bound
 * of clip. The first input of where is bool. */
typedef void (*typed_fn)(void *y, const void *a, const void *b, const void *c, size_t n);

static inline ig_dtype typed_register(ig_dtype t)
{
    return t == IG_F16 || t == IG_BF16 ? IG_F32 : t;
}

/* Does it travel as f32? */
static inline bool typed_is_f32(ig_dtype t) { return typed_register(t) == IG_F32; }

/* The loop of op for inputs of register type t; NULL where there is none (kernels.ew1 and ew2 have
 * the other float32 ones). */
typed_fn typed_op(op_code op, ig_dtype t);
/* Conversion between register types; NULL for complex. `narrow`: the f32 will be rounded to 16
 * bits, so it must hold enough of the value for that second rounding to be right (round to odd). */
typed_fn typed_cast(ig_dtype from, ig_dtype to, bool narrow);
#endif
