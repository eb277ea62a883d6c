/* ew.h: elementwise programs, compiled for one iteration space.
 *
 * A program runs over blocks of EW_CHUNK elements: each input is read where it lies or brought into
 * a slot (strided, broadcast and 16-bit ones), each instruction is one precompiled loop from slots
 * to a slot, the last one writes where the result goes. Every result is rounded to its dtype before
 * it is read, so a program's bits are those of its operations one by one. */
#ifndef CPU_EW_H
#define CPU_EW_H
#include "array/cpu/kernels.h"
#include "array/cpu/lower.h"
#include "array/cpu/walk.h"
#include "array/fuse/loops.h"

#define EW_CHUNK 512
#define EW_LONG_RUN \
    64 /* runs at least this long bound the chunks, so that an input is read in place */

typedef struct ew ew;
/* Compiles prog for inputs in[0..n_in) broadcast to the dims of space. */
IG_MUST_USE ig_status ew_compile(const lowering *l, const ew_program *prog, const operand *in,
                                 const spec *space, ew **ret_ew);
ig_dtype ew_type(const ew *e); /* of the result */
int64_t ew_cost(const ew *e);  /* of an element, in simple loops */
/* Elements [first, end) of the space to y, which is where element `first` goes. scratch:
 * EW_SCRATCH_BYTES. */
#define EW_SCRATCH_BYTES ((size_t)256 << 10)
void ew_run(const ew *e, int64_t first, int64_t end, char *y, char *scratch);
#endif
