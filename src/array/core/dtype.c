/* dtype.c: sizes, names and promotion of element types, and conversion of one element (see
 * dtype.h).
 *
 * Promotion is MLX's (0.32): integers as NumPy but u64 with a signed type gives f32, integers
 * never widen a float, and f16 with bf16 gives f32. tests/array/test_dtype.c compares the table
 * with one that MLX printed. */
#include "array/core/dtype.h"
#include <math.h>
#include <string.h>
#include "base/half.h"

static const struct {
    const char *name;
    size_t size;
} facts[IG_N_DTYPES] = {
    [IG_BOOL] = {"bool", 1},   [IG_U8] = {"uint8", 1},      [IG_U16] = {"uint16", 2},
    [IG_U32] = {"uint32", 4},  [IG_U64] = {"uint64", 8},    [IG_I8] = {"int8", 1},
    [IG_I16] = {"int16", 2},   [IG_I32] = {"int32", 4},     [IG_I64] = {"int64", 8},
    [IG_F16] = {"float16", 2}, [IG_BF16] = {"bfloat16", 2}, [IG_F32] = {"float32", 4},
    [IG_F64] = {"float64", 8}, [IG_C64] = {"complex64", 8},
};

size_t ig_dtype_size(ig_dtype t) { return dtype_is_valid(t) ? facts[t].size : 0; }

const char *ig_dtype_name(ig_dtype t) { return dtype_is_valid(t) ? facts[t].name : "invalid"; }

/* Bits of an integer's value: how far an unsigned type reaches. */
static int int_bits(ig_dtype t) { return (int)(8 * facts[t].size); }

static ig_dtype signed_of_bits(int bits)
{
    return bits <= 8 ? IG_I8 : bits <= 16 ? IG_I16 : bits <= 32 ? IG_I32 : IG_I64;
}

static ig_dtype promote_ints(ig_dtype a, ig_dtype b)
{
    bool sa = dtype_is_signed_int(a), sb = dtype_is_signed_int(b);
    if (sa == sb) return facts[a].size >= facts[b].size ? a : b;
    ig_dtype s = sa ? a : b, u = sa ? b : a;
    if (u == IG_U64) return IG_F32;
    int need = 2 * int_bits(u);
    return signed_of_bits(need > int_bits(s) ? need : int_bits(s));
}

ig_dtype ig_promote(ig_dtype a, ig_dtype b)
{
    if (!dtype_is_valid(a) || !dtype_is_valid(b)) return IG_BOOL;
    if (a == b) return a;
    ig_dtype hi = a > b ? a : b, lo = a > b ? b : a;
    if (lo == IG_BOOL) return hi;
    if (hi == IG_BF16 && lo == IG_F16) return IG_F32;
    if (hi >= IG_F16) return hi;
    return promote_ints(a, b);
}

/* An element, widened without loss: what kind it is says which member counts. */
typedef struct wide {
    enum { W_U64, W_I64, W_F32, W_F64 } kind;
    union {
        uint64_t u;
        int64_t i;
        float f;
        double d;
    };
    float imag;
} wide;

static uint64_t load_uint(size_t size, const void *p)
{
    uint64_t v = 0; /* little-endian, as every supported machine is */
    memcpy(&v, p, size);
    return v;
}

static wide load(ig_dtype t, const void *p)
{
    wide w = {.kind = W_F32};
    size_t size = facts[t].size;
    if (t == IG_BOOL || dtype_is_unsigned_int(t)) {
        w.kind = W_U64;
        w.u = load_uint(size, p);
        if (t == IG_BOOL) w.u = w.u != 0;
    } else if (dtype_is_signed_int(t)) {
        w.kind = W_I64;
        int shift = 64 - 8 * (int)size;
        w.i = (int64_t)(load_uint(size, p) << shift) >> shift;
    } else if (t == IG_F64) {
        w.kind = W_F64;
        memcpy(&w.d, p, sizeof w.d);
    } else if (t == IG_F16) {
        w.f = f16_to_f32((uint16_t)load_uint(2, p));
    } else if (t == IG_BF16) {
        w.f = bf16_to_f32((uint16_t)load_uint(2, p));
    } else {
        memcpy(&w.f, p, sizeof w.f);
        if (t == IG_C64) memcpy(&w.imag, (const char *)p + sizeof w.f, sizeof w.imag);
    }
    return w;
}

static double wide_f64(wide w)
{
    switch (w.kind) {
    case W_U64: return (double)w.u;
    case W_I64: return (double)w.i;
    case W_F32: return (double)w.f;
    default: return w.d;
    }
}

/* For a 16-bit float, which then rounds once (base/half.h). */
static float wide_odd(wide w)
{
    switch (w.kind) {
    case W_U64: return half_odd_u64(w.u);
    case W_I64: return half_odd_i64(w.i);
    case W_F32: return w.f;
    default: return half_odd_f64(w.d);
    }
}

/* One rounding: a 64-bit integer must not go through double on its way to float. */
static float wide_f32(wide w)
{
    switch (w.kind) {
    case W_U64: return (float)w.u;
    case W_I64: return (float)w.i;
    case W_F32: return w.f;
    default: return (float)w.d;
    }
}

/* Saturating; bits is the width of the signed target. */
static int64_t float_to_int(double d, int bits)
{
    double top = ldexp(1, bits - 1);
    int64_t max = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    if (d != d) return 0;
    return d >= top ? max : d < -top ? -max - 1 : (int64_t)d;
}

static uint64_t float_to_uint(double d, int bits)
{
    double top = ldexp(1, bits);
    uint64_t max = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    if (d != d || d <= 0) return 0;
    return d >= top ? max : (uint64_t)d;
}

double dtype_get_f64(ig_dtype t, const void *p) { return wide_f64(load(t, p)); }

int64_t dtype_get_i64(ig_dtype t, const void *p)
{
    wide w = load(t, p);
    if (w.kind == W_I64) return w.i;
    if (w.kind == W_U64) return w.u > INT64_MAX ? INT64_MAX : (int64_t)w.u;
    return float_to_int(wide_f64(w), 64);
}

/* Integers wrap modulo 2^bits between each other, as C and NumPy convert. */
static void store_int(wide w, ig_dtype to, void *dst)
{
    int bits = int_bits(to);
    uint64_t v;
    if (w.kind == W_U64 || w.kind == W_I64)
        v = w.u;
    else if (dtype_is_signed_int(to))
        v = (uint64_t)float_to_int(wide_f64(w), bits);
    else
        v = float_to_uint(wide_f64(w), bits);
    memcpy(dst, &v, facts[to].size);
}

void dtype_convert(ig_dtype from, const void *src, ig_dtype to, void *dst)
{
    if (from == to) {
        memmove(dst, src, facts[to].size);
        return;
    }
    wide w = load(from, src);
    if (to == IG_BOOL) {
        uint8_t b = wide_f64(w) != 0 || w.imag != 0;
        memcpy(dst, &b, 1);
    } else if (dtype_is_int(to)) {
        store_int(w, to, dst);
    } else if (to == IG_F64) {
        double d = wide_f64(w);
        memcpy(dst, &d, sizeof d);
    } else if (to == IG_F16 || to == IG_BF16) {
        uint16_t h = to == IG_F16 ? f32_to_f16(wide_odd(w)) : f32_to_bf16(wide_odd(w));
        memcpy(dst, &h, sizeof h);
    } else {
        float f[2] = {wide_f32(w), w.imag};
        memcpy(dst, f, facts[to].size);
    }
}

bool ig_dtype_of_name(const char *name, ig_dtype *ret_t)
{
    for (int t = 0; t < IG_N_DTYPES; t++)
        if (!strcmp(ig_dtype_name((ig_dtype)t), name)) {
            *ret_t = (ig_dtype)t;
            return true;
        }
    return false;
}
