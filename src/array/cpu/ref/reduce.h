/* reduce.h: one block of a reduction, for every register type (typed.h). float32 sums and maxima
 * have kernel slots instead. */
#ifndef CPU_REDUCE_H
#define CPU_REDUCE_H
#include "array/cpu/kernels.h"
#include "array/cpu/ref/typed.h"

/* Takes n elements of x into *acc, index ascending. For a float sum, n is at most SUM_BLOCK. */
typedef void (*reduce_fn)(void *acc, const void *x, size_t n);

/* op: OP_sum, OP_prod, OP_max, OP_min; OP_all and OP_any for bool. NULL where undefined. */
reduce_fn reduce_op(op_code op, ig_dtype t);
/* Folds the partial sums of a block of sum order 32-16-8-4-2-1; destroys them. */
double reduce_fold(double partial[SUM_LANES]);
/* Writes what *acc starts as. */
void reduce_start(op_code op, ig_dtype t, void *acc);
#endif
