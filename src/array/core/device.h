/* device.h (internal): what evaluation and plans ask of a device. The graph side knows steps and
 * phases; the device side knows kernels. */
#ifndef ARRAY_DEVICE_INT_H
#define ARRAY_DEVICE_INT_H
#include "array/core/node.h"

/* An array that has an address: what a lowering sees. */
typedef struct operand {
    char *ptr; /* address of element 0; NULL: absent optional input */
    spec s;
    int64_t stride[IG_MAX_NDIM]; /* elements */
} operand;

/* What a running kernel knows beside its arguments. */
typedef struct run_ctx {
    const int64_t *sym; /* actual values: sym[1 + k] of symbol k; sym[0] is 1 */
    char *scratch;      /* this worker's, 64-byte aligned */
    int worker, n_workers;
} run_ctx;
#define RUN_SCRATCH_BYTES (1 << 20)

typedef struct step {
    void (*run)(const void *args, const run_ctx *r, int64_t block);
    /* How many blocks for the actual symbols; 0 is fine. */
    int64_t (*blocks)(const void *args, const run_ctx *r);
    void *args;        /* owned by the step_mem that lowering was given */
    const char *label; /* static text for ig_plan_format */
    uint16_t op;
    int64_t const_bytes; /* weight bytes that one pass reads */
    /* Where weights stream: how many bytes ahead the step prefetches, which changes no bit, and the
     * bytes of a row. NULL elsewhere */
    int32_t *ahead;
    int64_t row_bytes;
} step;

/* Bump memory for step arguments (owned by a plan, or by one evaluation). */
typedef struct step_mem step_mem;
IG_MUST_USE ig_status step_mem_new(step_mem **ret_mem);
void step_mem_free(step_mem *m); /* NULL is fine */
AUTO_FN(step_mem_ptr, step_mem *, step_mem_free)
void step_mem_reset(step_mem *m); /* forgets all that was given, keeps the memory */
/* Zeroed, 64-byte aligned; NULL (recorded) without memory. */
void *step_mem_get(step_mem *m, size_t n);

/* A group of graph nodes that runs as one step. Made by fuse/group.c, lowered by the device. */
typedef enum work_kind {
    WORK_NODE,       /* one operation */
    WORK_EW,         /* a program of elementwise operations (fuse/loops.h), one output */
    WORK_EW_ROWS8,   /* elementwise program, then int8_rows of its rows */
    WORK_NORM_ROWS8, /* rms_norm, then int8_rows */
    WORK_QMM8_ADD,   /* quantized_matmul_rows8, then + residual (in[n_in - 1]) */
    WORK_ROPE_WRITE /* rope, then paged_write of its result as K; in = pool, x, v, slots, positions,
                      * table */
} work_kind;
#define WORK_NORM_MAX 32768 /* columns of a WORK_NORM_ROWS8: a device holds such a row apart */
typedef struct work {
    work_kind kind;
    const ig_node *node;  /* operation whose parameters and outputs count: the root of the group */
    const ig_node *inner; /* second operation of a pair: the rms_norm, qmm8, rope; else NULL */
    const struct ew_program *prog; /* WORK_EW*, else NULL */
    int n_in;
    ig_array in[IG_MAX_INPUTS]; /* what the group reads, in the order that its lowering expects */
} work;

typedef struct run_counters {
    bool timing;
    int64_t kernel_ns, wait_ns;
} run_counters;
typedef struct device {
    const char *name;
    /* Picks kernels and writes their arguments. in[w->n_in], out[node->n_out] have addresses. */
    ig_status (*lower)(const work *w, const operand *in, const operand *out, step_mem *mem,
                       step *ret_step);
    /* Runs phases in order: phase p is steps [first[p], first[p + 1]); members of a phase are
     * independent. */
    ig_status (*run)(const step *steps, const int32_t *first, int n_phases, const int64_t *sym,
                     run_counters *c);
    /* Chooses what no bit depends on by running steps for these symbol values; what they write is
     * undefined afterwards. */
    ig_status (*tune)(const step *steps, int n, const int64_t *sym);
} device;
const device *device_default(void);
/* May output 0 of this group be written over input j (same bytes at the same time)? */
bool device_in_place(const work *w, int j);
#endif
