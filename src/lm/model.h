/* model.h: what model families share: bound matrices, the inputs of a step, activations that are
 * quantised once and read several times. A family is one file in models/: it binds names to slots
 * with their shapes and builds the graph of a step. */
#ifndef LM_MODEL_H
#define LM_MODEL_H
#include "base/map.h"
#include "ingot/array.h"
#include "ingot/io.h"
#include "ingot/lm.h"
#include "ingot/ops.h"
#include "ingot/quant.h"
#include "ingot/transform.h"
#include "lm/config.h"

/* A matrix [n, k] as the file has it. All arrays are held slots over mapped bytes. */
typedef struct linear {
    int64_t n, k;
    ig_quantized q; /* q.bits 0: not quantised, then w */
    ig_array w;     /* [n, k] f32, f16 or bf16 */
    ig_array bias;  /* [n] f32, or empty */
} linear;

typedef struct binder {
    const ig_weights *weights;
    const lm_config *config;
    map *bound; /* owned: names used so far */
    int64_t n_parameters;
    int64_t n_bytes; /* of everything bound */
} binder;
IG_MUST_USE ig_status bind_open(const ig_weights *w, const lm_config *c, binder *ret_binder);
void bind_done(binder *b);
static inline void binder_auto(binder *b) { bind_done(b); }
/* path + ".weight" (with .scales and .biases where the config says quantised), of shape [n, k];
 * path + ".bias" when has_bias. */
IG_MUST_USE ig_status bind_linear(binder *b, const char *path, int64_t n, int64_t k, bool has_bias,
                                  linear *ret_linear);
/* A vector [n], converted to f32, into a slot. */
IG_MUST_USE ig_status bind_vector(binder *b, const char *name, int64_t n, ig_array *ret_slot);
/* Everything in the files was bound; else names the first tensor that was not. */
IG_MUST_USE ig_status bind_finish(binder *b);
void linear_drop(linear *w);
int64_t linear_bytes(const linear *w);

/* The arrays of one step. T rows (tokens), S sequences, O rows that need logits: row symbols 0, 1,
 * 2. */
enum { SYM_TOKENS, SYM_SEQS, SYM_OUT, N_SYMS };
typedef struct step_in {
    ig_array tokens;    /* [T] i32 */
    ig_array positions; /* [T] i32, absolute */
    ig_array seq;       /* [T] i32, row of pages */
    ig_array slots;     /* [T] i32, page * 64 + offset */
    ig_array out_rows;  /* [O] i32, rows of T */
    ig_array pages;     /* [S, max_pages] i32 */
} step_in;

/* How matrices are multiplied, and where K and V go. */
typedef struct arithmetic {
    bool int8; /* integer activations for 4- and 8-bit matrices */
    ig_dtype kv_type;
} arithmetic;

/* An activation [T, k] f32 with its int8 rows, made on first use. */
typedef struct activation {
    ig_array x;
    ig_rows8 rows;
    int32_t group;
} activation;
/* group: the largest weight group among the matrices that will read it (matrix_group). */
activation activation_of(ig_array x, int32_t group);
int32_t matrix_group(const linear *const *w, int n);
/* [T, k] times wT, plus bias: [T, n] f32. */
ig_array linear_apply(const arithmetic *a, activation *x, const linear *w);
/* Rows of an embedding matrix at ids: [T, k] f32. */
ig_array linear_rows(const linear *w, ig_array ids);
/* [T, n_heads * d] <-> [T, n_heads, d] */
ig_array split_heads(ig_array x, int64_t n_heads);
ig_array merge_heads(ig_array x);

/* A family. `model` is its own struct. */
typedef struct family {
    const char *name;
    ig_status (*bind)(binder *b, void **ret_model);
    void (*free)(void *model);
    /* Logits [O, vocab] f32; kv[layer] are pools of pages, advanced to their next version. rope:
     * [n, 2, head_dim / 2]. */
    ig_array (*forward)(const void *model, const lm_config *c, const arithmetic *a,
                        const step_in *in, ig_array rope, ig_state *const *kv);
    int64_t (*step_bytes)(const void *model); /* weight bytes that a step of one token reads */
} family;
const family *family_find(const char *name);
#endif
