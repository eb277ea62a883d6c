/* source.h: published model files as one list of matrices and vectors under Hugging Face names: a
 * directory of safetensors, or a GGUF.
 * What stage 1 reads. Nothing is converted before it is asked for, so memory stays flat however
 * large the model is. */
#ifndef SERVER_SOURCE_H
#define SERVER_SOURCE_H
#include "base/buf.h"
#include "ingot/array.h"

typedef struct source source;

typedef struct source_tensor {
    char *name;   /* owned: "model.layers.0.mlp.up_proj.weight" */
    int ndim;     /* 1 or 2 */
    int64_t n, k; /* [n] (k 1) or [n, k] */
    /* of the model: n * k; packed codes count what they stand for, their scales and biases none */
    int64_t n_parameters;
    ig_dtype
        /* dtype to keep it in when it is not quantised: f32, f16, bf16; u32 for packed codes */
        dtype;
    /* 4 or 8 where rows are affine groups of 32 as they stand (source_affine); else 0 */
    int affine_bits;
    const char *type_name;  /* static: "Q4_1", "BF16" */
    bool is_matrix;         /* a weight that may be quantised */
    bool is_packed;         /* part of an already quantised MLX matrix: copied as it is */
    int64_t file_index;     /* where the format keeps it */
    int64_t permuted_heads; /* GGUF: rows are interleaved per head and must be put back; 0: not */
} source_tensor;

/* path: a directory, or a .gguf file. */
IG_MUST_USE ig_status source_open(const char *path, source **ret_source);
void source_free(source *s);
AUTO_FN(source_ptr, source *, source_free)
int64_t source_n(const source *s);
const source_tensor *source_at(const source *s, int64_t i);

/* Rows [row, row + n) of a tensor: as f32 (f32, f16, bf16 and every GGUF type), or byte for byte
 * in `dtype`. */
IG_MUST_USE ig_status source_rows(const source *s, int64_t i, int64_t row, int64_t n, float *out);
IG_MUST_USE ig_status source_raw_rows(const source *s, int64_t i, int64_t row, int64_t n,
                                      void *out);
/* The same rows as MLX codes with f16 scales and biases, groups of 32, exactly. IG_EUNSUPPORTED
 * where a bias does not fit f16. */
IG_MUST_USE ig_status source_affine(const source *s, int64_t i, int64_t row, int64_t n,
                                    uint8_t *codes, uint16_t *scales, uint16_t *biases);

/* config.json without its quantization part (an MLX source's is kept by the caller:
 * source_quantization); buffers are appended to. */
IG_MUST_USE ig_status source_config(const source *s, buf *ret_json);
/* The "quantization" object of an MLX source as JSON text; empty when there is none. */
IG_MUST_USE ig_status source_quantization(const source *s, buf *ret_json);

typedef struct source_file {
    const char *name;
    buf content;
} source_file; /* name static */
#define SOURCE_MAX_FILES 12
/* Files to lay beside the weights: tokenizer.json, tokenizer_config.json, chat_template.jinja,
 * generation_config.json,
 * special_tokens_map.json, LICENSE, README.md, as far as the source has them. */
IG_MUST_USE ig_status source_files(const source *s, source_file *ret_files, int *ret_n);
#endif
