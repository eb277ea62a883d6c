/* ew_code.h: a compiled elementwise program, between ew_compile.c and ew_run.c. */
#ifndef CPU_EW_CODE_H
#define CPU_EW_CODE_H
#include "array/cpu/ew.h"
#include "array/cpu/ref/typed.h"

#define EW_SLOTS 56 /* inputs, results and conversions alive at once: 8 + 32 + 3 and room */
#define EW_SLOT_BYTES (EW_CHUNK * 8)

/* Indices of the pointers that loops take: inputs read in place, the result, slots. */
enum { EW_P_IN = 0, EW_P_OUT = EW_MAX_IN, EW_P_NONE, EW_P_SLOT, EW_N_P = EW_P_SLOT + EW_SLOTS };
enum { EW_ROUND_F16 = 1, EW_ROUND_BF16 = 2 };
enum { EW_ONE, EW_TWO, EW_TYPED };

/* EW_DIRECT one contiguous run; EW_SPLAT one element for all; EW_ROWS long contiguous runs;
 * EW_ROW_SPLAT one element for each long run; EW_GATHER anything else. */
enum { EW_DIRECT, EW_SPLAT, EW_ROWS, EW_ROW_SPLAT, EW_GATHER };

typedef struct ew_in {
    const walk *w;
    uint8_t mode;
    uint8_t half; /* EW_ROUND_ of a 16-bit float: read through a conversion; else 0 */
    uint8_t slot; /* pointer index, EW_P_NONE when read in place */
} ew_in;

typedef struct ew_op {
    union {
        ew1_fn one;
        ew2_fn two;
        typed_fn typed;
    } fn;
    uint8_t kind, round, dst, src[3];
} ew_op;

struct ew {
    const kernels *k;
    ew_in in[EW_MAX_IN];
    uint8_t n_in, n_ops, n_slots;
    uint8_t half_out; /* EW_ROUND_ of a 16-bit result, stored by conversion */
    uint8_t result;   /* pointer index of the last result */
    bool whole;       /* one loop over memory: no chunks */
    ig_dtype type;
    ew_op op[];
};
#endif
