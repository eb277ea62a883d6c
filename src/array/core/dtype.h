/* dtype.h: what the library knows about element types, and conversion of single elements (the
 * kernels have the bulk ones). */
#ifndef ARRAY_DTYPE_H
#define ARRAY_DTYPE_H
#include "ingot/array.h"

static inline bool dtype_is_valid(ig_dtype t) { return (unsigned)t < IG_N_DTYPES; }
static inline bool dtype_is_float(ig_dtype t) { return t >= IG_F16 && t <= IG_F64; }
static inline bool dtype_is_signed_int(ig_dtype t) { return t >= IG_I8 && t <= IG_I64; }
static inline bool dtype_is_unsigned_int(ig_dtype t) { return t >= IG_U8 && t <= IG_U64; }
static inline bool dtype_is_int(ig_dtype t) { return t >= IG_U8 && t <= IG_I64; }
/* Floats stay, everything else becomes f32. */
static inline ig_dtype dtype_at_least_float(ig_dtype t)
{
    return dtype_is_float(t) || t == IG_C64 ? t : IG_F32;
}

/* One element at p: as a double (u64 and i64 lose low bits; the real part of c64), as an int64
 * (floats truncate and saturate, NaN is 0; u64 above INT64_MAX saturates). */
double dtype_get_f64(ig_dtype t, const void *p);
int64_t dtype_get_i64(ig_dtype t, const void *p);
/* Converts one element as astype does: integers wrap between each other, floats saturate, what
 * becomes a float is rounded once. */
void dtype_convert(ig_dtype from, const void *src, ig_dtype to, void *dst);
#endif
