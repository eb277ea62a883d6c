/* cast.c: conversions between register types. Integers wrap; a float to an integer truncates,
 * saturates, and NaN gives 0; anything but zero is true; the rest is to nearest even. */
#include "array/cpu/ref/typed.h"
#include "base/half.h"

#define DEFINE(from, F, to, T, value)                                                              \
    static void from##_to_##to(void *y_, const void *a_, const void *b_, const void *c_, size_t n) \
    {                                                                                              \
        T *y = y_;                                                                                 \
        const F *x = a_;                                                                           \
        (void)b_, (void)c_;                                                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            F a = x[i];                                                                            \
            y[i] = (T)(value);                                                                     \
        }                                                                                          \
    }
/* low is T's minimum and high one more than its maximum, both exact in either float type */
#define SATURATE(T, low, high, min, max) \
    (a != a ? 0 : a <= (low) ? (min) : a >= (high) ? (max) : (T)a)

#define FROM_INT(D, from, F)          \
    D(from, F, BOOL, uint8_t, a != 0) \
    D(from, F, U8, uint8_t, a)        \
    D(from, F, U16, uint16_t, a)      \
    D(from, F, U32, uint32_t, a)      \
    D(from, F, U64, uint64_t, a)      \
    D(from, F, I8, int8_t, a)         \
    D(from, F, I16, int16_t, a)       \
    D(from, F, I32, int32_t, a)       \
    D(from, F, I64, int64_t, a)       \
    D(from, F, F32, float, a)         \
    D(from, F, F64, double, a)
#define FROM_FLOAT(D, from, F)                                                           \
    D(from, F, BOOL, uint8_t, a != 0)                                                    \
    D(from, F, U8, uint8_t, SATURATE(uint8_t, 0, 0x1p8f, 0, UINT8_MAX))                  \
    D(from, F, U16, uint16_t, SATURATE(uint16_t, 0, 0x1p16f, 0, UINT16_MAX))             \
    D(from, F, U32, uint32_t, SATURATE(uint32_t, 0, 0x1p32f, 0, UINT32_MAX))             \
    D(from, F, U64, uint64_t, SATURATE(uint64_t, 0, 0x1p64f, 0, UINT64_MAX))             \
    D(from, F, I8, int8_t, SATURATE(int8_t, -0x1p7f, 0x1p7f, INT8_MIN, INT8_MAX))        \
    D(from, F, I16, int16_t, SATURATE(int16_t, -0x1p15f, 0x1p15f, INT16_MIN, INT16_MAX)) \
    D(from, F, I32, int32_t, SATURATE(int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)) \
    D(from, F, I64, int64_t, SATURATE(int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)) \
    D(from, F, F32, float, a)                                                            \
    D(from, F, F64, double, a)
#define ALL(D)                 \
    FROM_INT(D, BOOL, uint8_t) \
    FROM_INT(D, U8, uint8_t)   \
    FROM_INT(D, U16, uint16_t) \
    FROM_INT(D, U32, uint32_t) \
    FROM_INT(D, U64, uint64_t) \
    FROM_INT(D, I8, int8_t)    \
    FROM_INT(D, I16, int16_t)  \
    FROM_INT(D, I32, int32_t)  \
    FROM_INT(D, I64, int64_t)  \
    FROM_FLOAT(D, F32, float)  \
    FROM_FLOAT(D, F64, double)

ALL(DEFINE)

/* To 16 bits: see base/half.h. */
#define ODD(D)                                       \
    D(U32, uint32_t, narrow, float, half_odd_u64(a)) \
    D(U64, uint64_t, narrow, float, half_odd_u64(a)) \
    D(I32, int32_t, narrow, float, half_odd_i64(a))  \
    D(I64, int64_t, narrow, float, half_odd_i64(a))  \
    D(F64, double, narrow, float, half_odd_f64(a))
ODD(DEFINE)

#define ROW(from, F, to, T, value) [IG_##from][IG_##to] = from##_to_##to,
static const typed_fn casts[IG_N_DTYPES][IG_N_DTYPES] = {ALL(ROW)};
#undef ROW
#define ROW(from, F, to, T, value) [IG_##from] = from##_to_narrow,
static const typed_fn narrow_casts[IG_N_DTYPES] = {ODD(ROW)};

typed_fn typed_cast(ig_dtype from, ig_dtype to, bool narrow)
{
    if (narrow && narrow_casts[from]) return narrow_casts[from];
    return casts[from][to];
}
