/* vec.h: the one header that knows the instruction set. A body in vec/ is written on it once and
 * compiled per ISA (-DISA=avx2, avx512, neon); every operation below is exact or correctly
 * rounded, so every instance gives equal bits.
 *
 * vec_<isa>.h defines
 *   VF_N                               f32 lanes: 4, 8 or 16; always divides 64
 *   vf vi vm                           f32 lanes, i32 lanes (wrapping), masks
 *   what base/fmath_body.h lists       vf_lesser, vf_greater: the second one on NaN or equality
 *   vf_load vf_store                   VF_N elements, any alignment; _f16, _bf16: converted, to
 *                                      nearest even, NaN kept quiet
 *   vf_loadn vf_storen (p, n)          the first n lanes, 0 < n < VF_N; absent ones load as +0
 *                                      and are not touched in memory
 *   vf_sqrt vf_rint vf_floor vf_ceil   rint: ties to even
 *   vf_max vf_min                      a where a is NaN, else a > b ? a : b and a < b ? a : b: a
 *                                      NaN on either side wins
 *   vm_first(n)                        mask of the lanes below n, 0 <= n <= VF_N
 *   vf_fold(v)                         lanes folded by halves: i += i + half, down to one
 *   vf_fold_rows(v)                    lane i = vf_fold(v[i]) of VF_N vectors; in two steps:
 *   vf_fold_some(v) vf_fold_rest(c)    c[i] from the VF_N / 4 vectors from i * VF_N / 4 on; then
 *                                      the result from c[0..3]
 *   vf_hmax(v)                         vf_max over the lanes
 *   vi_of_f(v)                         nearest integer, ties to even, for |v| < 2^31
 *   vi_max vi_hmax vi_hsum             signed; the sum wraps
 *   vi_store_i8 vi_storen_i8(p, n)     lanes in [-128, 127] as bytes
 *   vf_load_i8 vf_loadn_i8 vf_load_u8  bytes as f32
 *   vf_load_u4                         VF_N / 2 bytes of two codes each, the low one first
 *   VF_TILE                            tokens of a matmul tile of 4 rows: 4 * VF_TILE sums and
 *                                      what they need at a time fit the registers
 *   VF_WEIGH_ROWS                      query rows whose sums over 4 vectors of columns do
 * and this file builds on that. */
#ifndef CPU_VEC_H
#define CPU_VEC_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/fmath.h"

#define VEC_JOIN_(a, b) a##_##b
#define VEC_JOIN(a, b) VEC_JOIN_(a, b)
#define VEC_TEXT_(x) #x
#define VEC_TEXT(x) VEC_TEXT_(x)
#define VEC_FILE_(isa) vec_##isa.h /* beside this file */
#define VEC_FILE(isa) VEC_FILE_(isa)
/* K(name): the name of a kernel in this ISA's build. */
#define K(name) VEC_JOIN(name, ISA)
/* A loop over an array of vectors: unrolled, since only then they stay in registers. */
#define EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); i++)
#define VEC_FN static inline __attribute__((always_inline, unused))

#include VEC_TEXT(VEC_FILE(ISA))

/* In the lanes of m, the reduction of arguments of sine and cosine beyond 2^16: rare, so lane by
 * lane. */
VEC_FN void vf_pio2_large(vm m, vf x, vf *r, vi *q)
{
    float xs[VF_N], rs[VF_N], on[VF_N];
    int32_t qs[VF_N];
    vf_store(xs, x);
    vf_store(rs, *r);
    vf_store(on, vf_select(m, vf_set(1), vf_set(0)));
    vi_store(qs, *q);
    for (int i = 0; i < VF_N; i++)
        if (on[i] != 0) qs[i] = fmath_pio2_large(xs[i], &rs[i]);
    *r = vf_load(rs);
    *q = vi_load(qs);
}

#define FMATH(name) vf_##name
#define FMATH_FN VEC_FN
#include "base/fmath_body.h"
#undef FMATH
#undef FMATH_FN

#endif
