/* typed.c: elementwise loops for integers, bool and float64, and for the float32 operations that
 * have no kernel slot. Integers wrap; division by zero gives 0. float64 functions are the C
 * library's, without a promise of equal bits across machines. */
#include <math.h>
#include "array/cpu/ref/typed.h"

/* One loop: inputs of type T, result of type R. */
#define DEFINE1(op, t, T, R, value)                                                          \
    static void op##_##t(void *y_, const void *a_, const void *b_, const void *c_, size_t n) \
    {                                                                                        \
        R *y = y_;                                                                           \
        const T *xa = a_;                                                                    \
        (void)b_, (void)c_;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                     \
            T a = xa[i];                                                                     \
            (void)a;                                                                         \
            y[i] = (R)(value);                                                               \
        }                                                                                    \
    }
#define DEFINE2(op, t, T, R, value)                                                          \
    static void op##_##t(void *y_, const void *a_, const void *b_, const void *c_, size_t n) \
    {                                                                                        \
        R *y = y_;                                                                           \
        const T *xa = a_, *xb = b_;                                                          \
        (void)c_;                                                                            \
        for (size_t i = 0; i < n; i++) {                                                     \
            T a = xa[i], b = xb[i];                                                          \
            y[i] = (R)(value);                                                               \
        }                                                                                    \
    }
#define DEFINE_WHERE(t, T)                                                                    \
    static void where_##t(void *y_, const void *a_, const void *b_, const void *c_, size_t n) \
    {                                                                                         \
        T *y = y_;                                                                            \
        const uint8_t *condition = a_;                                                        \
        const T *xb = b_, *xc = c_;                                                           \
        for (size_t i = 0; i < n; i++) y[i] = condition[i] ? xb[i] : xc[i];                   \
    }
#define DEFINE_CLIP(t, T)                                                                    \
    static void clip_##t(void *y_, const void *a_, const void *b_, const void *c_, size_t n) \
    {                                                                                        \
        T *y = y_;                                                                           \
        const T *xa = a_, *low = b_, *high = c_;                                             \
        for (size_t i = 0; i < n; i++) {                                                     \
            T v = xa[i];                                                                     \
            if (low) v = MAX(v, low[i]);                                                     \
            if (high) v = MIN(v, high[i]);                                                   \
            y[i] = v;                                                                        \
        }                                                                                    \
    }
/* NaN wins; the rule of the slots maximum and minimum. */
#define MAX(a, b) ((a) != (a) ? (a) : (a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) != (a) ? (a) : (a) < (b) ? (a) : (b))
#define WIDE(a) ((uint64_t)(a))
#define BITS(T) (8 * sizeof(T))

/* --- helpers whose text is too long for a table */
static uint64_t power_u(uint64_t base, uint64_t e)
{
    uint64_t r = 1;
    for (; e; e >>= 1, base *= base)
        if (e & 1) r *= base;
    return r;
}

/* A negative exponent leaves 1 / base, truncated. */
static int64_t power_i(int64_t base, int64_t e)
{
    if (e >= 0) return (int64_t)power_u((uint64_t)base, (uint64_t)e);
    return base == 1 ? 1 : base == -1 ? (e & 1 ? -1 : 1) : 0;
}

static int64_t floor_divide_i(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t remainder_i(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r + (r != 0 && (r < 0) != (b < 0) ? b : 0);
}

static double remainder_f64(double a, double b)
{
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static float remainder_f32(float a, float b)
{
    float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* --- what there is for which type. F1 and F2 are DEFINE1 and DEFINE2, or a row of the table. */
#define COMPARISONS(F2, t, T)                        \
    F2(equal, t, T, uint8_t, a == b)                 \
    F2(not_equal, t, T, uint8_t, a != b)             \
    F2(less, t, T, uint8_t, a < b)                   \
    F2(less_equal, t, T, uint8_t, a <= b)            \
    F2(greater, t, T, uint8_t, a > b)                \
    F2(greater_equal, t, T, uint8_t, a >= b)         \
    F2(logical_and, t, T, uint8_t, a != 0 && b != 0) \
    F2(logical_or, t, T, uint8_t, a != 0 || b != 0)
#define ANY_INT(F1, F2, t, T)                \
    F1(negative, t, T, T, 0 - WIDE(a))       \
    F1(square, t, T, T, WIDE(a) * WIDE(a))   \
    F1(floor, t, T, T, a)                    \
    F1(ceil, t, T, T, a)                     \
    F1(rint, t, T, T, a)                     \
    F1(logical_not, t, T, uint8_t, a == 0)   \
    F1(isnan, t, T, uint8_t, 0)              \
    F1(isfinite, t, T, uint8_t, 1)           \
    F2(add, t, T, T, WIDE(a) + WIDE(b))      \
    F2(subtract, t, T, T, WIDE(a) - WIDE(b)) \
    F2(multiply, t, T, T, WIDE(a) * WIDE(b)) \
    F2(maximum, t, T, T, a > b ? a : b)      \
    F2(minimum, t, T, T, a < b ? a : b)      \
    F2(bitwise_and, t, T, T, a &b)           \
    F2(bitwise_or, t, T, T, a | b)           \
    F2(bitwise_xor, t, T, T, a ^ b)          \
    COMPARISONS(F2, t, T)
#define UNSIGNED_INT(F1, F2, t, T)                          \
    ANY_INT(F1, F2, t, T)                                   \
    F1(abs, t, T, T, a)                                     \
    F1(sign, t, T, T, a != 0)                               \
    F2(floor_divide, t, T, T, b ? a / b : 0)                \
    F2(remainder, t, T, T, b ? a % b : 0)                   \
    F2(power, t, T, T, power_u(a, b))                       \
    F2(left_shift, t, T, T, b < BITS(T) ? WIDE(a) << b : 0) \
    F2(right_shift, t, T, T, b < BITS(T) ? a >> b : 0)
#define SIGNED_INT(F1, F2, t, T)                                            \
    ANY_INT(F1, F2, t, T)                                                   \
    F1(abs, t, T, T, a < 0 ? 0 - WIDE(a) : WIDE(a))                         \
    F1(sign, t, T, T, (a > 0) - (a < 0))                                    \
    F2(floor_divide, t, T, T, floor_divide_i(a, b))                         \
    F2(remainder, t, T, T, remainder_i(a, b))                               \
    F2(power, t, T, T, power_i(a, b))                                       \
    F2(left_shift, t, T, T, b >= 0 && WIDE(b) < BITS(T) ? WIDE(a) << b : 0) \
    F2(right_shift, t, T, T, b >= 0 && WIDE(b) < BITS(T) ? a >> b : a < 0 ? -1 : 0)
#define BOOL_OPS(F1, F2, t, T)          \
    F1(abs, t, T, T, a)                 \
    F1(sign, t, T, T, a)                \
    F1(square, t, T, T, a)              \
    F1(floor, t, T, T, a)               \
    F1(ceil, t, T, T, a)                \
    F1(rint, t, T, T, a)                \
    F1(negative, t, T, T, a)            \
    F1(logical_not, t, T, uint8_t, !a)  \
    F1(isnan, t, T, uint8_t, 0)         \
    F1(isfinite, t, T, uint8_t, 1)      \
    F2(add, t, T, T, a | b)             \
    F2(subtract, t, T, T, a ^ b)        \
    F2(multiply, t, T, T, a &b)         \
    F2(maximum, t, T, T, a | b)         \
    F2(minimum, t, T, T, a &b)          \
    F2(floor_divide, t, T, T, a &b)     \
    F2(remainder, t, T, T, 0 * (a + b)) \
    F2(power, t, T, T, a | !b)          \
    F2(bitwise_and, t, T, T, a &b)      \
    F2(bitwise_or, t, T, T, a | b)      \
    F2(bitwise_xor, t, T, T, a ^ b)     \
    COMPARISONS(F2, t, T)
#define F32_OPS(F1, F2, t, T)                        \
    F1(logical_not, t, T, uint8_t, a == 0)           \
    F1(isnan, t, T, uint8_t, a != a)                 \
    F1(isfinite, t, T, uint8_t, fabsf(a) < INFINITY) \
    F2(floor_divide, t, T, T, floorf(a / b))         \
    F2(remainder, t, T, T, remainder_f32(a, b))      \
    COMPARISONS(F2, t, T)
#define F64_OPS(F1, F2, t, T)                         \
    F1(negative, t, T, T, -a)                         \
    F1(abs, t, T, T, fabs(a))                         \
    F1(sign, t, T, T, a != a ? a : (a > 0) - (a < 0)) \
    F1(square, t, T, T, a *a)                         \
    F1(sqrt, t, T, T, sqrt(a))                        \
    F1(rsqrt, t, T, T, 1 / sqrt(a))                   \
    F1(reciprocal, t, T, T, 1 / a)                    \
    F1(exp, t, T, T, exp(a))                          \
    F1(expm1, t, T, T, expm1(a))                      \
    F1(log, t, T, T, log(a))                          \
    F1(log1p, t, T, T, log1p(a))                      \
    F1(tanh, t, T, T, tanh(a))                        \
    F1(sigmoid, t, T, T, 1 / (1 + exp(-a)))           \
    F1(silu, t, T, T, a / (1 + exp(-a)))              \
    F1(erf, t, T, T, erf(a))                          \
    F1(sin, t, T, T, sin(a))                          \
    F1(cos, t, T, T, cos(a))                          \
    F1(floor, t, T, T, floor(a))                      \
    F1(ceil, t, T, T, ceil(a))                        \
    F1(rint, t, T, T, rint(a))                        \
    F1(logical_not, t, T, uint8_t, a == 0)            \
    F1(isnan, t, T, uint8_t, a != a)                  \
    F1(isfinite, t, T, uint8_t, fabs(a) < INFINITY)   \
    F2(add, t, T, T, a + b)                           \
    F2(subtract, t, T, T, a - b)                      \
    F2(multiply, t, T, T, a *b)                       \
    F2(divide, t, T, T, a / b)                        \
    F2(floor_divide, t, T, T, floor(a / b))           \
    F2(remainder, t, T, T, remainder_f64(a, b))       \
    F2(power, t, T, T, pow(a, b))                     \
    F2(maximum, t, T, T, MAX(a, b))                   \
    F2(minimum, t, T, T, MIN(a, b))                   \
    COMPARISONS(F2, t, T)
#define ALL_TYPES(F1, F2)               \
    BOOL_OPS(F1, F2, BOOL, uint8_t)     \
    UNSIGNED_INT(F1, F2, U8, uint8_t)   \
    UNSIGNED_INT(F1, F2, U16, uint16_t) \
    UNSIGNED_INT(F1, F2, U32, uint32_t) \
    UNSIGNED_INT(F1, F2, U64, uint64_t) \
    SIGNED_INT(F1, F2, I8, int8_t)      \
    SIGNED_INT(F1, F2, I16, int16_t)    \
    SIGNED_INT(F1, F2, I32, int32_t)    \
    SIGNED_INT(F1, F2, I64, int64_t)    \
    F32_OPS(F1, F2, F32, float)         \
    F64_OPS(F1, F2, F64, double)

ALL_TYPES(DEFINE1, DEFINE2)
#define TYPE(t, T) DEFINE_WHERE(t, T) DEFINE_CLIP(t, T)
#include "array/cpu/ref/types.def"
#undef TYPE

#define ROW(op, t, T, R, value) [OP_##op][IG_##t] = op##_##t,
static const typed_fn loops[N_OPS][IG_N_DTYPES] = {ALL_TYPES(ROW, ROW)
#define TYPE(t, T) [OP_where][IG_##t] = where_##t, [OP_clip][IG_##t] = clip_##t,
#include "array/cpu/ref/types.def"
#undef TYPE
};

typed_fn typed_op(op_code op, ig_dtype t) { return loops[op][t]; }
