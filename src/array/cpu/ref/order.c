/* order.c: rows in order (order.h). */
#include <string.h>
#include "array/cpu/ref/order.h"

/* a before b in ascending order; NaN behind everything, equal to itself. */
#define BEFORE(a, b) ((a) < (b) || ((b) != (b) && (a) == (a)))

#define DEFINE_EXTREME(name, t, T, better)                                                        \
    static void name##_##t(extreme *e, const void *x_, int64_t n, int64_t at)                     \
    {                                                                                             \
        const T *x = x_;                                                                          \
        T best;                                                                                   \
        memcpy(&best, e->value, sizeof best);                                                     \
        for (int64_t i = 0; i < n; i++) {                                                         \
            if (e->index >= 0 && !(x[i] better best || (best != best && x[i] == x[i]))) continue; \
            best = x[i];                                                                          \
            e->index = at + i;                                                                    \
        }                                                                                         \
        memcpy(e->value, &best, sizeof best);                                                     \
    }
/* Bottom-up merges; a run that is already in order is not moved. */
#define DEFINE_SORT(t, T)                                                                          \
    static void merge_##t(uint32_t *y, const uint32_t *x, const T *keys, uint64_t mid, uint64_t n) \
    {                                                                                              \
        uint64_t a = 0, b = mid, i = 0;                                                            \
        while (a < mid && b < n) y[i++] = BEFORE(keys[x[b]], keys[x[a]]) ? x[b++] : x[a++];        \
        while (a < mid) y[i++] = x[a++];                                                           \
        while (b < n) y[i++] = x[b++];                                                             \
    }                                                                                              \
    static void sort_##t(uint32_t *index, uint32_t *tmp, const void *keys_, uint32_t n)            \
    {                                                                                              \
        const T *keys = keys_;                                                                     \
        uint32_t *from = index, *to = tmp;                                                         \
        for (uint32_t i = 0; i < n; i++) index[i] = i;                                             \
        for (uint64_t run = 1; run < n; run *= 2) {                                                \
            for (uint64_t i = 0; i < n; i += 2 * run) {                                            \
                uint64_t len = n - i < 2 * run ? n - i : 2 * run;                                  \
                merge_##t(to + i, from + i, keys, run < len ? run : len, len);                     \
            }                                                                                      \
            uint32_t *swap = from;                                                                 \
            from = to;                                                                             \
            to = swap;                                                                             \
        }                                                                                          \
        if (from != index) memcpy(index, from, n * sizeof *index);                                 \
    }
#define DEFINE_TOPK(t, T)                                                                    \
    static void topk_##t(void *best_, int64_t *n_best, int64_t k, const void *x_, int64_t n) \
    {                                                                                        \
        T *best = best_;                                                                     \
        const T *x = x_;                                                                     \
        int64_t have = *n_best;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                    \
            if (have == k && (k == 0 || !BEFORE(best[k - 1], x[i]))) continue;               \
            int64_t at = have < k ? have++ : k - 1;                                          \
            for (; at > 0 && BEFORE(best[at - 1], x[i]); at--) best[at] = best[at - 1];      \
            best[at] = x[i];                                                                 \
        }                                                                                    \
        *n_best = have;                                                                      \
    }
#define DEFINE_SCAN(t, T, sum)                                                          \
    static void scan_##t(void *x_, void *acc_, int64_t n, bool reverse, bool inclusive) \
    {                                                                                   \
        T *x = x_, acc;                                                                 \
        memcpy(&acc, acc_, sizeof acc);                                                 \
        for (int64_t i = 0; i < n; i++) {                                               \
            T *p = x + (reverse ? n - 1 - i : i), before = acc;                         \
            acc = (T)(sum);                                                             \
            *p = inclusive ? acc : before;                                              \
        }                                                                               \
        memcpy(acc_, &acc, sizeof acc);                                                 \
    }
#define DEFINE(t, T, sum)             \
    DEFINE_EXTREME(largest, t, T, >)  \
    DEFINE_EXTREME(smallest, t, T, <) \
    DEFINE_SORT(t, T)                 \
    DEFINE_TOPK(t, T)                 \
    DEFINE_SCAN(t, T, sum)
#define ALL_TYPES(F)                              \
    F(BOOL, uint8_t, acc | *p)                    \
    F(U8, uint8_t, acc + *p)                      \
    F(U16, uint16_t, acc + *p)                    \
    F(U32, uint32_t, acc + *p)                    \
    F(U64, uint64_t, acc + *p)                    \
    F(I8, int8_t, (uint8_t)acc + (uint8_t)*p)     \
    F(I16, int16_t, (uint16_t)acc + (uint16_t)*p) \
    F(I32, int32_t, (uint32_t)acc + (uint32_t)*p) \
    F(I64, int64_t, (uint64_t)acc + (uint64_t)*p) \
    F(F32, float, acc + *p)                       \
    F(F64, double, acc + *p)

ALL_TYPES(DEFINE)

#define ROW(t, T, sum) [IG_##t] = {largest_##t, smallest_##t, sort_##t, topk_##t, scan_##t},
static const order_fns fns[IG_N_DTYPES] = {ALL_TYPES(ROW)};

const order_fns *order_of(ig_dtype t) { return fns[t].sort ? &fns[t] : NULL; }
