/* loops.h: the loop IR of a fused elementwise group: a straight-line program over slots. Every
 * value has the dims of the group's root; inputs broadcast to them by their strides. Each
 * instruction's result is rounded to its dtype before the next reads it, so fused equals
 * unfused. */
#ifndef FUSE_LOOPS_H
#define FUSE_LOOPS_H
#include "array/core/node.h"

#define EW_MAX_IN 8
#define EW_MAX_INSTR 32
#define EW_ABSENT 0xff
typedef struct ew_instr {
    uint16_t op;   /* op_code of an elementwise operation (astype and clip included) */
    uint8_t dtype; /* ig_dtype of the result */
    uint8_t
        in_dtype;   /* inputs are converted to it first; not so where's condition: it is read as it
                       * is. With a bool result the operands' common type, else mostly dtype */
    uint8_t src[3]; /* value numbers: 0..n_in-1 inputs, n_in + k the result of instruction k;
                       * EW_ABSENT: no such input, or an optional one left out (clip) */
} ew_instr;
typedef struct ew_program {
    int n_in, n_instr;
    uint8_t in_dtype[EW_MAX_IN];  /* ig_dtype of each input */
    ew_instr instr[EW_MAX_INSTR]; /* the last one gives the result */
} ew_program;
#endif
