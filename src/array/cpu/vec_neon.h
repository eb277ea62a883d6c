/* vec_neon.h: vec.h on Armv8-A NEON (no extensions): 4 lanes. */
#ifndef CPU_VEC_NEON_H
#define CPU_VEC_NEON_H
#include <arm_neon.h>

#define VF_N 4
#define VF_TILE 5
#define VF_WEIGH_ROWS 4
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm; /* all ones or all zeros in a lane */

VEC_FN vf vf_set(float c) { return vdupq_n_f32(c); }
VEC_FN vi vi_set(int32_t c) { return vdupq_n_s32(c); }
VEC_FN vf vf_load(const float *p) { return vld1q_f32(p); }
VEC_FN void vf_store(float *p, vf v) { vst1q_f32(p, v); }
VEC_FN vi vi_load(const int32_t *p) { return vld1q_s32(p); }
VEC_FN void vi_store(int32_t *p, vi v) { vst1q_s32(p, v); }
VEC_FN vf vf_of_bits(vi k) { return vreinterpretq_f32_s32(k); }
VEC_FN vi vf_bits(vf x) { return vreinterpretq_s32_f32(x); }
VEC_FN vf vf_of_int(vi k) { return vcvtq_f32_s32(k); }
VEC_FN vi vi_of_f(vf v) { return vcvtnq_s32_f32(v); }

VEC_FN vm vf_lt(vf a, vf b) { return vcltq_f32(a, b); }
VEC_FN vm vf_eq(vf a, vf b) { return vceqq_f32(a, b); }
VEC_FN vm vi_eq(vi a, vi b) { return vceqq_s32(a, b); }
VEC_FN vf vf_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }
VEC_FN vi vi_select(vm m, vi a, vi b) { return vbslq_s32(m, a, b); }
VEC_FN bool vm_any(vm m) { return vmaxvq_u32(m) != 0; }
VEC_FN vm vm_first(size_t n)
{
    static const uint32_t lane[4] = {0, 1, 2, 3};
    return vcltq_u32(vld1q_u32(lane), vdupq_n_u32((uint32_t)n));
}

VEC_FN vf vf_add(vf a, vf b) { return vaddq_f32(a, b); }
VEC_FN vf vf_sub(vf a, vf b) { return vsubq_f32(a, b); }
VEC_FN vf vf_mul(vf a, vf b) { return vmulq_f32(a, b); }
VEC_FN vf vf_div(vf a, vf b) { return vdivq_f32(a, b); }
VEC_FN vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
VEC_FN vf vf_sqrt(vf a) { return vsqrtq_f32(a); }
VEC_FN vf vf_rint(vf a) { return vrndnq_f32(a); }
VEC_FN vf vf_floor(vf a) { return vrndmq_f32(a); }
VEC_FN vf vf_ceil(vf a) { return vrndpq_f32(a); }
VEC_FN vf vf_lesser(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
VEC_FN vf vf_greater(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
VEC_FN vf vf_max(vf a, vf b) { return vbslq_f32(vf_eq(a, a), vf_greater(a, b), a); }
VEC_FN vf vf_min(vf a, vf b) { return vbslq_f32(vf_eq(a, a), vf_lesser(a, b), a); }

VEC_FN vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
VEC_FN vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
VEC_FN vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
VEC_FN vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
VEC_FN vi vi_xor(vi a, vi b) { return veorq_s32(a, b); }
VEC_FN vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
#define vi_shl(k, n) vshlq_n_s32(k, n)
#define vi_shr(k, n) vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(k), n))
#define vi_sar(k, n) vshrq_n_s32(k, n)

VEC_FN vf vf_loadn(const float *p, size_t n)
{
    float part[4] = {0};
    memcpy(part, p, n * sizeof *p);
    return vld1q_f32(part);
}
VEC_FN void vf_storen(float *p, size_t n, vf v)
{
    float part[4];
    vst1q_f32(part, v);
    memcpy(p, part, n * sizeof *p);
}

VEC_FN uint16x4_t load_part(const uint16_t *p, size_t n)
{
    uint16_t part[4] = {0};
    memcpy(part, p, n * sizeof *p);
    return vld1_u16(part);
}
VEC_FN void store_part(uint16_t *p, size_t n, uint16x4_t v)
{
    uint16_t part[4];
    vst1_u16(part, v);
    memcpy(p, part, n * sizeof *p);
}
VEC_FN vf widen_f16(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
VEC_FN vf widen_bf16(uint16x4_t h)
{
    vi k = vreinterpretq_s32_u32(vshll_n_u16(h, 16));
    vm nan = vcgtq_s32(vi_and(k, vi_set(0x7fffffff)), vi_set(0x7f800000));
    return vf_of_bits(vi_or(k, vi_and(vi_set(0x400000), vreinterpretq_s32_u32(nan))));
}
VEC_FN uint16x4_t narrow_f16(vf v) { return vreinterpret_u16_f16(vcvt_f16_f32(v)); }
VEC_FN uint16x4_t narrow_bf16(vf v)
{
    vi k = vf_bits(v), odd = vi_and(vi_shr(k, 16), vi_set(1));
    vi near = vi_shr(vi_add(k, vi_add(odd, vi_set(0x7fff))), 16);
    vi quiet = vi_or(vi_shr(k, 16), vi_set(0x40));
    return vmovn_u32(vreinterpretq_u32_s32(vi_select(vf_eq(v, v), near, quiet)));
}
VEC_FN vf vf_load_f16(const uint16_t *p) { return widen_f16(vld1_u16(p)); }
VEC_FN vf vf_load_bf16(const uint16_t *p) { return widen_bf16(vld1_u16(p)); }
VEC_FN vf vf_loadn_f16(const uint16_t *p, size_t n) { return widen_f16(load_part(p, n)); }
VEC_FN vf vf_loadn_bf16(const uint16_t *p, size_t n) { return widen_bf16(load_part(p, n)); }
VEC_FN void vf_store_f16(uint16_t *p, vf v) { vst1_u16(p, narrow_f16(v)); }
VEC_FN void vf_store_bf16(uint16_t *p, vf v) { vst1_u16(p, narrow_bf16(v)); }
VEC_FN void vf_storen_f16(uint16_t *p, size_t n, vf v) { store_part(p, n, narrow_f16(v)); }
VEC_FN void vf_storen_bf16(uint16_t *p, size_t n, vf v) { store_part(p, n, narrow_bf16(v)); }

VEC_FN void vi_storen_i8(int8_t *p, size_t n, vi k)
{
    int16x4_t h = vqmovn_s32(k);
    int8_t part[8];
    vst1_s8(part, vqmovn_s16(vcombine_s16(h, h)));
    memcpy(p, part, n);
}
VEC_FN void vi_store_i8(int8_t *p, vi k) { vi_storen_i8(p, 4, k); }
VEC_FN vf vf_loadn_i8(const int8_t *p, size_t n)
{
    int8_t part[8] = {0};
    memcpy(part, p, n);
    return vf_of_int(vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(part)))));
}
VEC_FN vf vf_load_i8(const int8_t *p) { return vf_loadn_i8(p, 4); }
VEC_FN vf vf_load_u8(const uint8_t *p)
{
    uint8_t part[8] = {0};
    memcpy(part, p, 4);
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vld1_u8(part)))));
}

VEC_FN vf vf_load_u4(const uint8_t *p)
{
    static const int32_t down[4] = {0, -4, -8, -12};
    uint32x4_t both = vdupq_n_u32((uint32_t)(p[0] | p[1] << 8));
    return vcvtq_f32_u32(vandq_u32(vshlq_u32(both, vld1q_s32(down)), vdupq_n_u32(15)));
}

/* --- across lanes */
VEC_FN float vf_fold(vf a)
{
    float32x2_t x = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(x, 0) + vget_lane_f32(x, 1);
}
VEC_FN vf vf_fold_some(const vf *a) { return a[0]; }
VEC_FN vf vf_fold_rest(const vf *a)
{
    vf c = vf_add(vcombine_f32(vget_low_f32(a[0]), vget_low_f32(a[1])),
                  vcombine_f32(vget_high_f32(a[0]), vget_high_f32(a[1])));
    vf d = vf_add(vcombine_f32(vget_low_f32(a[2]), vget_low_f32(a[3])),
                  vcombine_f32(vget_high_f32(a[2]), vget_high_f32(a[3])));
    return vf_add(vuzp1q_f32(c, d), vuzp2q_f32(c, d));
}
VEC_FN vf vf_fold_rows(const vf *a) { return vf_fold_rest(a); }
VEC_FN float vf_hmax(vf a) { return vmaxvq_f32(a); }
VEC_FN int32_t vi_hmax(vi a) { return vmaxvq_s32(a); }
VEC_FN int32_t vi_hsum(vi a) { return vaddvq_s32(a); }
#endif
