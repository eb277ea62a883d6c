/* gguf.h: a GGUF file, mapped and checked: key-values and tensors; rows of its quantised types as
 * f32, or exactly as affine groups.
 * Format: "GGUF" | u32 version (2, 3) | u64 n_tensors | u64 n_kv | key-values | tensor infos |
 * padding | tensor bytes. Little endian. */
#ifndef IO_GGUF_H
#define IO_GGUF_H
#include "base/file.h"
#include "base/map.h"
#include "ingot/array.h"

typedef enum gguf_kind {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_N_KINDS
} gguf_kind;

typedef struct gguf_value {
    gguf_kind kind;
    gguf_kind element; /* of an array */
    uint64_t n;        /* elements of an array, bytes of a string */
    const uint8_t *p;  /* first byte of the value (of element 0) in the mapping */
} gguf_value;

/* Tensor types by ggml's numbers. */
typedef enum gguf_type {
    GGML_F32 = 0,
    GGML_F16 = 1,
    GGML_Q4_0 = 2,
    GGML_Q4_1 = 3,
    GGML_Q5_0 = 6,
    GGML_Q5_1 = 7,
    GGML_Q8_0 = 8,
    GGML_Q2_K = 10,
    GGML_Q3_K = 11,
    GGML_Q4_K = 12,
    GGML_Q5_K = 13,
    GGML_Q6_K = 14,
    GGML_BF16 = 30
} gguf_type;

typedef struct gguf_tensor {
    char *name; /* owned */
    gguf_type type;
    int ndim;
    int64_t dim[4]; /* row-major: dim[ndim - 1] is contiguous (the file has them reversed) */
    const uint8_t *p;
    size_t n_bytes;
    size_t row_bytes; /* of one row of dim[ndim - 1] elements */
} gguf_tensor;

typedef struct gguf {
    file_map map;
    char *path;        /* owned */
    map *keys;         /* owned: key -> index into value */
    gguf_value *value; /* owned */
    size_t n_values;
    gguf_tensor *tensor; /* owned, in file order */
    size_t n_tensors;
    map *names; /* owned: tensor name -> index */
} gguf;

IG_MUST_USE ig_status gguf_open(const char *path, gguf **ret_gguf);
void gguf_free(gguf *g);
AUTO_FN(gguf_ptr, gguf *, gguf_free)

const gguf_value *gguf_find(const gguf *g, const char *key); /* NULL when absent */
/* Typed access; a missing or mistyped key is an error that names it. */
IG_MUST_USE ig_status gguf_get_u64(const gguf *g, const char *key, uint64_t max, uint64_t *ret);
IG_MUST_USE ig_status gguf_get_f64(const gguf *g, const char *key, double *ret);
IG_MUST_USE ig_status gguf_get_str(const gguf *g, const char *key, str *ret);
IG_MUST_USE ig_status gguf_get_array(const gguf *g, const char *key, gguf_kind element,
                                     const gguf_value **ret);
/* Next string of a string array: start with *at = v->p; call v->n times (checked when the file was
 * opened). */
str gguf_next_string(const uint8_t **at);
int64_t gguf_int(const gguf_value *v,
                 uint64_t i); /* element i of a numeric array, or the scalar (i 0) */
double gguf_num(const gguf_value *v, uint64_t i);

const gguf_tensor *gguf_tensor_find(const gguf *g, const char *name);
/* What there is to know about a tensor type. */
typedef struct gguf_type_info {
    gguf_type type;
    const char *name;
    int block, bytes;                             /* elements of a block; bytes that hold it */
    void (*decode)(const uint8_t *p, float *out); /* one block */
} gguf_type_info;
const gguf_type_info *gguf_type_find(uint32_t type); /* by ggml's number; NULL when unknown */
const char *gguf_type_name(gguf_type t);
/* n elements (a whole number of blocks) as f32. */
void gguf_decode(gguf_type t, const uint8_t *p, int64_t n, float *out);
/* Is the type an affine group of 32 as it stands (Q4_0, Q4_1, Q8_0)? bits 4 or 8. */
bool gguf_affine_bits(gguf_type t, int *ret_bits);
/* One row of n elements exactly as MLX codes (n * bits / 8 bytes) and f16 scales and biases (n /
 * 32 each). false if the bias of a
 * group does not fit f16 (a scale above 511 in Q8_0): then decode and quantise anew. */
bool gguf_affine_row(gguf_type t, const uint8_t *p, int64_t n, uint8_t *codes, uint16_t *scales,
                     uint16_t *biases);
#endif
