/* kernels.h: a table of CPU kernels and the structs that its slots take. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "array/core/paged.h"
#include "array/core/device.h"

/* A worker's scratch is halved: the lower half is a step's own (tiles, gathered rows), the upper
 * half is what a step hands to a kernel as `scratch`, contents undefined before and after. */
#define STEP_SCRATCH_BYTES (RUN_SCRATCH_BYTES / 2)
#define KERNEL_SCRATCH_BYTES (RUN_SCRATCH_BYTES / 2)

/* Sum order (kernels.def, docs/numerics.md): elements of a block, partial sums in it. */
#define SUM_BLOCK 4096
#define SUM_LANES 64

/* A group-quantised matrix where it lies (MLX layout, row-major, contiguous). */
typedef struct qmat {
    const uint8_t *codes;        /* N rows of K * bits / 8 bytes */
    const void *scales, *biases; /* N rows of K / group of sb_type */
    int64_t n, k;
    int32_t group, bits;
    ig_dtype sb_type; /* f32, f16, bf16 */
    int32_t ahead;    /* bytes to prefetch ahead in the stream of codes (tune.c); 0: none */
} qmat;

/* An int8 activation record (ingot/quant.h): codes int8[k] | pad to 4 | d f32[ceil(k / group)] |
 * sums i32[ceil(k / 32)] | pad to 64 bytes; padding is zero. Records start at multiples of 64
 * bytes. */
static inline size_t rows8_d_at(size_t k) { return (k + 3) / 4 * 4; }
static inline size_t rows8_sums_at(size_t k, size_t group)
{
    return rows8_d_at(k) + (k + group - 1) / group * 4;
}
static inline size_t rows8_bytes(size_t k, size_t group)
{
    return (rows8_sums_at(k, group) + (k + 31) / 32 * 4 + 63) / 64 * 64;
}

typedef struct attend_args {
    int n_rows;            /* query rows, <= 64, ascending positions not required */
    const float *const *q; /* [n_rows] head_dim floats each */
    float *const *o;       /* [n_rows] results */
    const int32_t *pos;    /* [n_rows] row i sees positions 0..pos[i] */
    const char *pool;      /* page 0 */
    const int32_t *pages;  /* of the sequence; valid for all positions seen */
    int64_t n_kv, head_dim;
    int64_t kv_head;
    ig_dtype kv_type; /* f32, f16, bf16, i8 */
    float scale;
    int64_t split0, split1; /* positions [split0 * KV_SPLIT, split1 * KV_SPLIT) */
    /* NULL: all splits are combined in order and divided, into o. Else split1 is split0 + 1, o is
     * not written, and part is [n_rows][head_dim + 2]: o, m, l of that split; a row that does not
     * see it gets zeros, -inf, 0 */
    float *part;
} attend_args;

typedef void (*ew1_fn)(float *y, const float *a, size_t n);
typedef void (*ew2_fn)(float *y, const float *a, const float *b, size_t n);

typedef struct kernels {
    const char *isa;
    /* float32 functions by op_code: negative .. rint and unary_float; add, subtract, multiply,
     * divide, maximum, minimum, power. NULL elsewhere: generic loops serve (ref/typed.h) */
    ew1_fn ew1[N_OPS];
    ew2_fn ew2[N_OPS];
#define SLOT(ret, name, args) ret(*name) args;
#include "array/cpu/kernels.def"
#undef SLOT
} kernels;

/* One table per row of isa.def (those of other machines do not exist). */
extern const kernels kernels_ref, kernels_avx2, kernels_avx512, kernels_avx512vnni, kernels_neon,
    kernels_neondotprod;
const kernels *kernels_current(void);         /* the table chosen by ig_device_set_isa */
const kernels *kernels_find(const char *isa); /* the best of that name that runs here, or NULL */
const kernels *const *kernels_all(void);      /* all that run here, best first, then NULL */
#endif
