/* reduce.c: reductions of one block. Integers wrap; NaN wins in max and min; float sums are in sum
 * order. */
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "array/cpu/ref/reduce.h"
#include "array/cpu/ref/ref.h"

#define DEFINE(op, t, T, take)                                 \
    static void op##_##t(void *acc_, const void *x_, size_t n) \
    {                                                          \
        T acc;                                                 \
        memcpy(&acc, acc_, sizeof acc);                        \
        const T *x = x_;                                       \
        for (size_t i = 0; i < n; i++) acc = (T)(take);        \
        memcpy(acc_, &acc, sizeof acc);                        \
    }
#define MAX(a, b) ((a) != (a) ? (a) : (a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) != (a) ? (a) : (a) < (b) ? (a) : (b))

#define INT(D, t, T)                             \
    D(sum, t, T, (uint64_t)acc + (uint64_t)x[i]) \
    D(prod, t, T, (uint64_t)acc *(uint64_t)x[i]) \
    D(max, t, T, acc > x[i] ? acc : x[i])        \
    D(min, t, T, acc < x[i] ? acc : x[i])
#define FLOAT(D, t, T)           \
    D(prod, t, T, acc *x[i])     \
    D(max, t, T, MAX(acc, x[i])) \
    D(min, t, T, MIN(acc, x[i]))
#define ALL(D)                        \
    D(all, BOOL, uint8_t, acc &x[i])  \
    D(any, BOOL, uint8_t, acc | x[i]) \
    D(max, BOOL, uint8_t, acc | x[i]) \
    D(min, BOOL, uint8_t, acc &x[i])  \
    INT(D, U8, uint8_t)               \
    INT(D, U16, uint16_t)             \
    INT(D, U32, uint32_t)             \
    INT(D, U64, uint64_t)             \
    INT(D, I8, int8_t)                \
    INT(D, I16, int16_t)              \
    INT(D, I32, int32_t)              \
    INT(D, I64, int64_t)              \
    FLOAT(D, F32, float)              \
    FLOAT(D, F64, double)

ALL(DEFINE)

static void sum_F32(void *acc, const void *x, size_t n)
{
    float *total = acc;
    *total += ref_sum(x, n);
}

double reduce_fold(double partial[SUM_LANES])
{
    for (int half = SUM_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) partial[i] += partial[i + half];
    return partial[0];
}

static void sum_F64(void *acc, const void *x_, size_t n)
{
    const double *x = x_;
    double partial[SUM_LANES] = {0}, *total = acc;
    for (size_t i = 0; i < n; i++) partial[i % SUM_LANES] += x[i];
    *total += reduce_fold(partial);
}

#define ROW(op, t, T, take) [OP_##op][IG_##t] = op##_##t,
static const reduce_fn reducers[N_OPS][IG_N_DTYPES] = {
    ALL(ROW)[OP_sum][IG_F32] = sum_F32,
    [OP_sum][IG_F64] = sum_F64,
};

reduce_fn reduce_op(op_code op, ig_dtype t) { return reducers[op][t]; }

/* The value of type t nearest to v, infinities included. */
static void put(ig_dtype t, double v, void *acc)
{
    typed_cast(IG_F64, t, false)(acc, &v, NULL, NULL, 1);
}

void reduce_start(op_code op, ig_dtype t, void *acc)
{
    bool one = op == OP_prod || op == OP_all;
    put(t, op == OP_max ? -INFINITY : op == OP_min ? INFINITY : one ? 1 : 0, acc);
    if (t == IG_BOOL && op == OP_max) put(t, 0, acc);
}
