/* vec_avx512.h: vec.h on AVX-512 F, BW, VL and DQ: 16 lanes. */
#ifndef CPU_VEC_AVX512_H
#define CPU_VEC_AVX512_H
#include <immintrin.h>

#define VF_N 16
#define VF_TILE 5
#define VF_WEIGH_ROWS 4
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

VEC_FN vf vf_set(float c) { return _mm512_set1_ps(c); }
VEC_FN vi vi_set(int32_t c) { return _mm512_set1_epi32(c); }
VEC_FN vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
VEC_FN void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
VEC_FN vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
VEC_FN void vi_store(int32_t *p, vi v) { _mm512_storeu_si512(p, v); }
VEC_FN vf vf_of_bits(vi k) { return _mm512_castsi512_ps(k); }
VEC_FN vi vf_bits(vf x) { return _mm512_castps_si512(x); }
VEC_FN vf vf_of_int(vi k) { return _mm512_cvtepi32_ps(k); }
VEC_FN vi vi_of_f(vf v) { return _mm512_cvtps_epi32(v); }

VEC_FN vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC_FN vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC_FN vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC_FN vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC_FN vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VEC_FN vf vf_sqrt(vf a) { return _mm512_sqrt_ps(a); }
VEC_FN vf vf_rint(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VEC_FN vf vf_floor(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
VEC_FN vf vf_ceil(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
VEC_FN vf vf_lesser(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC_FN vf vf_greater(vf a, vf b) { return _mm512_max_ps(a, b); }

VEC_FN vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
VEC_FN vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
VEC_FN vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
VEC_FN vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
VEC_FN vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
VEC_FN vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
#define vi_shl(k, n) _mm512_slli_epi32(k, n)
#define vi_shr(k, n) _mm512_srli_epi32(k, n)
#define vi_sar(k, n) _mm512_srai_epi32(k, n)

VEC_FN vm vf_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
VEC_FN vm vf_eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
VEC_FN vm vi_eq(vi a, vi b) { return _mm512_cmpeq_epi32_mask(a, b); }
VEC_FN vf vf_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
VEC_FN vi vi_select(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
VEC_FN bool vm_any(vm m) { return m != 0; }
VEC_FN vm vm_first(size_t n) { return (vm)((1u << n) - 1); }

VEC_FN vf vf_max(vf a, vf b)
{
    return vf_select(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a, _mm512_max_ps(a, b));
}
VEC_FN vf vf_min(vf a, vf b)
{
    return vf_select(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a, _mm512_min_ps(a, b));
}

VEC_FN vf vf_loadn(const float *p, size_t n) { return _mm512_maskz_loadu_ps(vm_first(n), p); }
VEC_FN void vf_storen(float *p, size_t n, vf v) { _mm512_mask_storeu_ps(p, vm_first(n), v); }

VEC_FN vf widen_bf16(__m256i h)
{
    vi k = vi_shl(_mm512_cvtepu16_epi32(h), 16);
    vm nan = _mm512_cmpgt_epi32_mask(vi_and(k, vi_set(0x7fffffff)), vi_set(0x7f800000));
    return vf_of_bits(_mm512_mask_or_epi32(k, nan, k, vi_set(0x400000)));
}
VEC_FN __m256i narrow_bf16(vf v)
{
    vi k = vf_bits(v), odd = vi_and(vi_shr(k, 16), vi_set(1));
    vi near = vi_shr(vi_add(k, vi_add(odd, vi_set(0x7fff))), 16);
    vm nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_or_epi32(near, nan, vi_shr(k, 16), vi_set(0x40)));
}
VEC_FN __m256i narrow_f16(vf v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }

VEC_FN vf vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}
VEC_FN vf vf_load_bf16(const uint16_t *p)
{
    return widen_bf16(_mm256_loadu_si256((const void *)p));
}
VEC_FN vf vf_loadn_f16(const uint16_t *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vm_first(n), p));
}
VEC_FN vf vf_loadn_bf16(const uint16_t *p, size_t n)
{
    return widen_bf16(_mm256_maskz_loadu_epi16(vm_first(n), p));
}
VEC_FN void vf_store_f16(uint16_t *p, vf v) { _mm256_storeu_si256((void *)p, narrow_f16(v)); }
VEC_FN void vf_store_bf16(uint16_t *p, vf v) { _mm256_storeu_si256((void *)p, narrow_bf16(v)); }
VEC_FN void vf_storen_f16(uint16_t *p, size_t n, vf v)
{
    _mm256_mask_storeu_epi16(p, vm_first(n), narrow_f16(v));
}
VEC_FN void vf_storen_bf16(uint16_t *p, size_t n, vf v)
{
    _mm256_mask_storeu_epi16(p, vm_first(n), narrow_bf16(v));
}

VEC_FN void vi_store_i8(int8_t *p, vi k) { _mm_storeu_si128((void *)p, _mm512_cvtepi32_epi8(k)); }
VEC_FN void vi_storen_i8(int8_t *p, size_t n, vi k)
{
    _mm512_mask_cvtepi32_storeu_epi8(p, vm_first(n), k);
}
VEC_FN vf vf_load_i8(const int8_t *p)
{
    return vf_of_int(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}
VEC_FN vf vf_load_u8(const uint8_t *p)
{
    return vf_of_int(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)));
}
VEC_FN vf vf_load_u4(const uint8_t *p)
{
    vi words = _mm512_castsi128_si512(_mm_loadl_epi64((const void *)p));
    vi both = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), words);
    vi shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    return vf_of_int(vi_and(_mm512_srlv_epi32(both, shift), vi_set(15)));
}
VEC_FN vf vf_loadn_i8(const int8_t *p, size_t n)
{
    return vf_of_int(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(vm_first(n), p)));
}

/* --- across lanes */
VEC_FN __m256 fold_half(vf a)
{
    return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}
VEC_FN float vf_fold(vf a)
{
    __m256 h = fold_half(a);
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
VEC_FN vf vf_fold_some(const vf *a) /* leaves row q in the four lanes of quarter q */
{
    vf b0 = vf_add(_mm512_shuffle_f32x4(a[0], a[1], 0x44), _mm512_shuffle_f32x4(a[0], a[1], 0xee));
    vf b1 = vf_add(_mm512_shuffle_f32x4(a[2], a[3], 0x44), _mm512_shuffle_f32x4(a[2], a[3], 0xee));
    return vf_add(_mm512_shuffle_f32x4(b0, b1, 0x88), _mm512_shuffle_f32x4(b0, b1, 0xdd));
}
VEC_FN vf vf_fold_rest(const vf *c) /* leaves row 4 i + q in lane i of quarter q */
{
    vf d0 = vf_add(_mm512_shuffle_ps(c[0], c[1], 0x44), _mm512_shuffle_ps(c[0], c[1], 0xee));
    vf d1 = vf_add(_mm512_shuffle_ps(c[2], c[3], 0x44), _mm512_shuffle_ps(c[2], c[3], 0xee));
    vf r = vf_add(_mm512_shuffle_ps(d0, d1, 0x88), _mm512_shuffle_ps(d0, d1, 0xdd));
    const vi order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_ps(order, r);
}
VEC_FN vf vf_fold_rows(const vf *a)
{
    vf c[4];
    EACH (i, 4) c[i] = vf_fold_some(a + 4 * i);
    return vf_fold_rest(c);
}
VEC_FN float vf_hmax(vf a)
{
    a = vf_max(a, _mm512_shuffle_f32x4(a, a, 0x4e));
    a = vf_max(a, _mm512_shuffle_f32x4(a, a, 0xb1));
    a = vf_max(a, _mm512_shuffle_ps(a, a, 0x4e));
    return _mm512_cvtss_f32(vf_max(a, _mm512_shuffle_ps(a, a, 0xb1)));
}
VEC_FN int32_t vi_hmax(vi a) { return _mm512_reduce_max_epi32(a); }
VEC_FN int32_t vi_hsum(vi a) { return _mm512_reduce_add_epi32(a); }
#endif
