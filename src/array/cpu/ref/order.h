/* order.h: what compares or accumulates along a row, for every register type (typed.h): extremes,
 * sorts, largest values, running sums. In a sort NaN comes last, in topk therefore first; it is
 * never an extreme unless there is nothing else. */
#ifndef CPU_ORDER_H
#define CPU_ORDER_H
#include "array/cpu/ref/typed.h"

/* The best element so far: its index, -1 before the first; its value. */
typedef struct extreme {
    int64_t index;
    _Alignas(8) char value[8];
} extreme;

typedef struct order_fns {
    /* Takes elements x[0..n), which are number `at` and following of the row; of equals the first
     * stays. */
    void (*largest)(extreme *e, const void *x, int64_t n, int64_t at);
    void (*smallest)(extreme *e, const void *x, int64_t n, int64_t at);
    /* index[0..n) becomes the stable order of keys; tmp has room for n. */
    void (*sort)(uint32_t *index, uint32_t *tmp, const void *keys, uint32_t n);
    /* best[0..*n_best) are the largest so far, descending; takes x[0..n) in, keeping at most k. */
    void (*topk)(void *best, int64_t *n_best, int64_t k, const void *x, int64_t n);
    /* x becomes its running sum, starting from *acc, which ends as the total. */
    void (*scan)(void *x, void *acc, int64_t n, bool reverse, bool inclusive);
} order_fns;

const order_fns *order_of(ig_dtype t); /* t a register type; NULL for complex */
#endif
