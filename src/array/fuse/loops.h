/* loops.h: the loop IR of a fused elementwise group: a straight-line program over slots.
 * Each instruction's result is rounded to its dtype before the next reads it, so fused equals unfused. */
#ifndef FUSE_LOOPS_H
#define FUSE_LOOPS_H
#include "array/core/node.h"

#define EW_MAX_IN 8
#define EW_MAX_INSTR 32
typedef struct ew_instr {
    uint16_t op;              /* op_code of an elementwise operation (astype included) */
    uint8_t dtype;            /* ig_dtype of the result */
    uint8_t in_dtype;         /* dtype the inputs are converted to before the operation (comparisons: promoted type) */
    uint8_t src[3];           /* value numbers: 0..n_in-1 inputs, n_in + k the result of instruction k; 0xff absent */
    double f;                 /* constant parameter, where an op has one */
} ew_instr;
typedef struct ew_program {
    int n_in, n_instr;
    uint8_t in_dtype[EW_MAX_IN];
    ew_instr instr[EW_MAX_INSTR];   /* the last one gives the output */
} ew_program;
#endif
