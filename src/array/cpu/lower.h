/* lower.h: what the families of steps share: the lowering call, row counts, block geometry.
 *
 * A family is a file step_<family>.c: a lowering writes the arguments of a step once, run() does
 * one block of it any number of times. Arguments are read for every block of every replay: keep
 * them small. A lowering refuses what its family cannot do with a message that names the operation;
 * run() cannot fail. Block geometry may depend on anything: no bit depends on it. */
#ifndef CPU_LOWER_H
#define CPU_LOWER_H
#include "array/cpu/kernels.h"
#include "array/cpu/walk.h"

typedef struct lowering {
    const work *w;
    const operand *in, *out;
    step_mem *mem;
    const kernels *k; /* the table that the step will keep */
    const char *name; /* of the operation, for messages */
} lowering;
typedef ig_status (*lower_fn)(const lowering *l, step *ret_step);

/* Lowers any group: picks the family. */
ig_status lower_work(const work *w, const operand *in, const operand *out, step_mem *mem,
                     step *ret_step);

#define LOWER(op, family) ig_status lower_##family(const lowering *l, step *ret_step);
#include "array/cpu/lower.def"
#undef LOWER
ig_status lower_elementwise(const lowering *l, step *ret_step);
ig_status lower_elementwise_rows8(const lowering *l, step *ret_step);
ig_status lower_norm_rows8(const lowering *l, step *ret_step);

/* A count that a row symbol may scale. sym 0 stands for 1, so a fixed count needs no other path. */
typedef struct count {
    int64_t per; /* for each unit of the symbol */
    int32_t sym;
} count;
static inline int64_t count_now(count c, const run_ctx *r) { return r->sym[c.sym] * c.per; }

/* Elements of s in axes [from, to), the symbol of axis 0 left to the count. */
count lower_count(const spec *s, int from, int to);
static inline int64_t lower_dim(const spec *s, int axis)
{
    return s->sym && axis == 0 ? 1 : s->dim[axis];
}
int64_t lower_product(const spec *s, int from, int to); /* of capacities */

/* Rows in a block: about four blocks per worker, but none that costs less than claiming it is
 * worth. row_cost is in elements of a simple loop. */
#define BLOCK_COST 4096
static inline int64_t rows_per_block(int64_t n, int64_t row_cost, int n_workers)
{
    int64_t share = (n + 4 * n_workers - 1) / (4 * n_workers),
            least = BLOCK_COST / (row_cost + 1) + 1;
    return share > least ? share : least;
}
static inline int64_t rows_blocks(int64_t n, int64_t row_cost, int n_workers)
{
    int64_t per = rows_per_block(n, row_cost, n_workers);
    return (n + per - 1) / per;
}
typedef struct span {
    int64_t first, end;
} span;
static inline span rows_span(int64_t n, int64_t row_cost, int n_workers, int64_t block)
{
    int64_t per = rows_per_block(n, row_cost, n_workers), first = block * per;
    return (span){first, n - first < per ? n : first + per};
}

/* A matrix product cut into blocks of `rows` weight rows times MM_TOKENS rows of the other side. */
#define MM_TOKENS 256
#define MM_ROWS_SHIFT 8
#define MM_ROWS (1 << MM_ROWS_SHIFT)
typedef struct tiling {
    int64_t rows, n_row_blocks, n_token_blocks;
} tiling;
static inline int64_t shifted_up(int64_t n, int shift)
{
    return (n + ((int64_t)1 << shift) - 1) >> shift;
}
static inline tiling mm_tiling(int64_t n, int64_t n_tokens, int n_workers)
{
    int shift = MM_ROWS_SHIFT; /* not a division: asked for every block */
    tiling t = {.n_token_blocks = (n_tokens + MM_TOKENS - 1) / MM_TOKENS};
    while (shift > 4 && shifted_up(n, shift) * t.n_token_blocks < 4 * n_workers) shift--;
    t.rows = (int64_t)1 << shift;
    t.n_row_blocks = shifted_up(n, shift);
    return t;
}

static inline char *step_scratch(const run_ctx *r) { return r->scratch; }
static inline char *kernel_scratch(const run_ctx *r) { return r->scratch + STEP_SCRATCH_BYTES; }

/* Zeroed arguments of the type of *p, owned by the lowering's memory. */
#define LOWER_NEW(l, p) ((p) = step_mem_get((l)->mem, sizeof *(p)))
/* What a lowering returns when step_mem_get gave NULL (recorded there). */
ig_status lower_no_memory(void);
/* Refusals. */
ig_status lower_bad_dtype(const lowering *l, ig_dtype t);
ig_status lower_not_contiguous(const lowering *l, const char *what);
bool lower_is_contiguous(const operand *o);

/* Bytes of inputs [from, to) that are constants of a plan. */
int64_t lower_const_bytes(const lowering *l, int from, int to);
/* IG_OK if input j is row-major without gaps and, unless dtype is IG_C64, of that dtype. */
ig_status lower_need(const lowering *l, int j, ig_dtype dtype);

/* The elements of a float operand as f32: a row of n at p (dtype t) converted into y, or p itself
 * where it is f32 already. */
const float *lower_row_f32(const kernels *k, float *y, const char *p, ig_dtype t, size_t n);
/* n f32 stored as f32, f16 or bf16. */
void lower_store_f32(const kernels *k, char *p, const float *x, ig_dtype t, size_t n);

/* An operand as rows: its last axis, for each index of the others. */
typedef struct rows_in {
    const walk *at; /* address of each row; its dims are the other axes */
    int64_t by;     /* bytes from column to column */
    uint8_t dtype, size;
} rows_in;
/* Rows longer than this are not brought into scratch. */
#define ROW_MAX 32768
#define ROW_TMP_BYTES (ROW_MAX * 6)
ig_status lower_rows(const lowering *l, const operand *o, rows_in *ret);
static inline bool rows_are_direct(const rows_in *v) { return v->dtype == IG_F32 && v->by == 4; }
/* Row `row` of n columns (f32, f16, bf16) as f32: where it is, or in tmp, 6 bytes a column. */
const float *rows_f32(const rows_in *v, const kernels *k, int64_t row, int64_t n, char *tmp);
/* Vectors that a rotary embedding turns: v for each row and head. */
typedef struct turned {
    rows_in v;
    const int32_t *positions; /* of rows */
    const float *table;       /* [n_positions][cos, sin][half] */
    int64_t heads, d, half, n_positions;
    bool interleaved;
} turned;
/* Inputs x, positions, table of the operation `rope` are inputs jx, jp, jp + 1 of the group. */
ig_status lower_turned(const lowering *l, const ig_node *rope, int jx, int jp, turned *ret);
/* Vector `vector` as f32, turned, into y; what lies behind the turned part stays as it is. A
 * position outside the table turns it to NaN. tmp: 6 bytes an element, beside y or y itself. */
void turn(const turned *a, const kernels *k, int64_t vector, float *y, char *tmp);
/* The axes of an operand in two groups: those kept, and those that an operation works along. */
typedef struct axes {
    const walk *kept, *along; /* along is relative: read it at walk_at(kept, row) */
    count n_kept, n_along;
    int n_kept_axes;
} axes;
ig_status lower_axes(const lowering *l, const operand *o, uint32_t along_mask, axes *ret);
uint32_t lower_axes_mask(
    const lowering *l); /* of node->i = n, axes, ... of a reduction; n = 0: all */

/* The quantised matrix [..., N, K] in inputs j, j + 1, j + 2: contiguous. */
ig_status lower_qmat(const lowering *l, int j, int64_t group, int64_t bits, qmat *ret);
/* The n rows of w that begin at element (row, k0), k columns each; rows keep their stride only if k
 * is w's own (or n is 1). k0 is a multiple of the group. Row w->n is the first row of the next
 * matrix of a batch. */
qmat qmat_part(const qmat *w, int64_t row, int64_t k0, int64_t n, int64_t k);

/* The integer at p. Values of u64 above INT64_MAX come out negative: as an index, out of range
 * either way. */
int64_t lower_index(const char *p, ig_dtype t);
#endif
