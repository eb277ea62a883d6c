/* array.h: lazy arrays, scopes and evaluation.
 *
 * Calls build a graph; nothing runs until a value is needed (ig_eval, ig_data, ig_item_*,
 * ig_scope_eval) and evaluation fuses by default. A graph builder takes and returns ig_array; an
 * empty input gives an empty output, so expressions nest and one check at the end is enough.
 *
 * Lifetime: every array belongs to the innermost open scope of the thread that made it and dies
 * with it. A value leaves by ig_scope_return / ig_scope_eval or by being held in a slot
 * (ig_hold, ig_drop). C users never count references. Without an open scope builders refuse.
 *
 * Threads: scopes belong to their thread; an array may be used by any thread while somebody holds
 * it. Evaluations take turns; one that is needed twice at once is done once. */
#ifndef INGOT_ARRAY_H
#define INGOT_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ingot/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers are pinned (ABI, files). */
typedef enum ig_dtype {
    IG_BOOL = 0,
    IG_U8 = 1,
    IG_U16 = 2,
    IG_U32 = 3,
    IG_U64 = 4,
    IG_I8 = 5,
    IG_I16 = 6,
    IG_I32 = 7,
    IG_I64 = 8,
    IG_F16 = 9,
    IG_BF16 = 10,
    IG_F32 = 11,
    IG_F64 = 12,
    IG_C64 = 13
} ig_dtype;
#define IG_N_DTYPES 14
#define IG_MAX_NDIM 16
#define IG_MAX_INPUTS 64 /* arrays that one operation may take (concatenate) */

typedef struct ig_node ig_node;
/* A value: a graph node and which of its outputs. {NULL, 0} is the empty array. */
typedef struct ig_array {
    ig_node *node;
    uint32_t out;
} ig_array;
typedef struct ig_scope ig_scope;

static inline bool ig_is_empty(ig_array a) { return a.node == 0; }

/* --- facts about an array (the empty array has no dims, size 0, dtype IG_BOOL) */
IG_API int ig_ndim(ig_array a);
/* Negative axes count from the end; 0 when out of range. */
IG_API int64_t ig_dim(ig_array a, int axis);
IG_API int64_t ig_size(ig_array a); /* elements; for a row symbol its capacity counts */
IG_API int64_t ig_nbytes(ig_array a);
IG_API ig_dtype ig_type(ig_array a);
IG_API size_t ig_dtype_size(ig_dtype t);      /* bytes per element */
IG_API const char *ig_dtype_name(ig_dtype t); /* "float32" */
/* The dtype of a name ("float16"); false, *ret_t untouched, when there is none. */
IG_API bool ig_dtype_of_name(const char *name, ig_dtype *ret_t);
IG_API ig_dtype ig_promote(ig_dtype a, ig_dtype b); /* MLX / Array-API promotion */

/* --- scopes (thread-bound, nested) */
IG_API ig_scope *ig_scope_open(void); /* NULL without memory */
/* Closes the scope, releasing its arrays; NULL is fine. Gives the first failure recorded in it,
 * which is handed up to the enclosing record as information: what a caller copes with does not fail
 * the scope around it. Inner scopes left open are closed too. */
IG_API IG_MUST_USE ig_status ig_scope_close(ig_scope *s);
/* Closes s and moves `a` (unevaluated) to the enclosing scope. An empty `a` is a failure. */
IG_API IG_MUST_USE ig_status ig_scope_return(ig_scope *s, ig_array a, ig_array *ret_a);
/* Closes s, then evaluates the n arrays, so that each intermediate buffer dies when its last
 * consumer has run. Results belong to the enclosing scope (or, without one, must be held: ret is
 * held for the caller until ig_drop). */
IG_API IG_MUST_USE ig_status ig_scope_eval(ig_scope *s, const ig_array *a, int n, ig_array *ret_a);

/* --- slots: a slot owns what it holds until dropped; holding replaces. Zero-initialise slots. */
IG_API void ig_hold(ig_array *slot, ig_array a);
IG_API void ig_drop(ig_array *slot);

/* --- making arrays from memory. Shapes are row-major dims. */
/* Copies n elements (product of dims) from data. */
IG_API ig_array ig_array_copy(const void *data, ig_dtype dtype, const int64_t *dims, int ndim);
/* Adopts memory without copying: it must stay unchanged until free_fn(user) is called (NULL: the
 * caller guarantees that it outlives every use). n_bytes bounds it; data aligned to the element
 * size; bools 0 or 1. On failure free_fn is not called. It may be called by any thread, in the
 * middle of an evaluation, so it must not use arrays. */
IG_API ig_array ig_array_adopt(const void *data, size_t n_bytes, ig_dtype dtype,
                               const int64_t *dims, int ndim, void (*free_fn)(void *user),
                               void *user);
IG_API ig_array ig_zeros(const int64_t *dims, int ndim, ig_dtype dtype);
IG_API ig_array ig_scalar_f32(float v);
IG_API ig_array ig_scalar_i32(int32_t v);
IG_API ig_array ig_scalar_bool(bool v);

/* --- parts of an array along one axis (negative: from the end). Views: nothing is copied. */
/* Indices [start, stop), negative ones from the end, clipped as Python does. */
IG_API ig_array ig_slice_axis(ig_array a, int axis, int64_t start, int64_t stop);
/* n parts in order, of sizes[i] indices each, which add up to the dimension; sizes NULL: equal
 * parts. Failure makes all n parts empty. */
IG_API IG_MUST_USE ig_status ig_split(ig_array a, int axis, int n, const int64_t *sizes,
                                      ig_array *ret_parts);

/* --- evaluation */
IG_API IG_MUST_USE ig_status ig_eval(const ig_array *a, int n);
/* Evaluates and gives the address of the row-major contiguous elements (copied inside if a is a
 * strided view). Valid while `a` lives. */
IG_API IG_MUST_USE ig_status ig_data(ig_array a, const void **ret_data);
/* Value of a one-element array, converted. */
IG_API IG_MUST_USE ig_status ig_item_f64(ig_array a, double *ret_v);
IG_API IG_MUST_USE ig_status ig_item_i64(ig_array a, int64_t *ret_v);
/* Copies the evaluated elements, converted to dtype, to out (n elements expected). */
IG_API IG_MUST_USE ig_status ig_copy_out(ig_array a, ig_dtype dtype, void *out, int64_t n);
/* NumPy-like text ("array([[1, 2],\n       [3, 4]], dtype=int32)") into out, always
 * NUL-terminated, truncated to cap; *ret_n (may be NULL) is the length it wanted. Evaluates. */
IG_API IG_MUST_USE ig_status ig_format(ig_array a, char *out, size_t cap, size_t *ret_n);

#ifdef __cplusplus
}
#endif
#endif
