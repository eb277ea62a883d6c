/* safetensors.h: the header of a safetensors file, read and written.
 * File: u64 LE header length | JSON header (padded with spaces) | tensor bytes, contiguous in
 * offset order.
 * Reading promises: every tensor lies inside the file, in order, without gap or overlap, aligned
 * to its element size, its
 * bytes equal to dims x element size. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H
#include "base/buf.h"
#include "base/map.h"
#include "ingot/array.h"

#define SAFETENSORS_MAX_HEADER (100u << 20)
#define SAFETENSORS_MAX_TENSORS (1u << 20)

typedef struct st_tensor {
    char *name; /* owned */
    ig_dtype dtype;
    int ndim;
    int64_t dim[IG_MAX_NDIM];
    size_t begin; /* offset in the file, bytes */
    size_t n_bytes;
} st_tensor;

typedef struct st_pair {
    char *key, *value;
} st_pair; /* owned text of __metadata__ */

typedef struct st_index {
    st_tensor *t; /* owned, in offset order */
    size_t n;
    st_pair *meta; /* owned */
    size_t n_meta;
} st_index;

/* bytes: the whole mapped file; `what` names it in errors. */
IG_MUST_USE ig_status safetensors_read(const char *what, const uint8_t *bytes, size_t n_bytes,
                                       st_index *ret_index);
void safetensors_done(st_index *x);
static inline void st_index_auto(st_index *x) { safetensors_done(x); }

/* The header for tensors in the given order: fills begin of each (n_bytes must be set), and gives
 * length word and JSON padded so
 * that tensor bytes start at a multiple of 64. Tensors whose size is a multiple of 64 belong
 * first: then all of them are aligned. */
IG_MUST_USE ig_status safetensors_header(st_tensor *t, size_t n, const st_pair *meta, size_t n_meta,
                                         buf *ret_header);

const char *safetensors_dtype_name(ig_dtype t); /* "F32"; NULL where the format has none */
bool safetensors_dtype(str name, ig_dtype *ret_dtype);
#endif
