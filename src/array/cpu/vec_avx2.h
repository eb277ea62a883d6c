/* vec_avx2.h: vec.h on AVX2, FMA and F16C: 8 lanes. */
#ifndef CPU_VEC_AVX2_H
#define CPU_VEC_AVX2_H
#include <immintrin.h>

#define VF_N 8
#define VF_TILE 3
#define VF_WEIGH_ROWS 2
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm; /* all ones or all zeros in a lane */

VEC_FN vf vf_set(float c) { return _mm256_set1_ps(c); }
VEC_FN vi vi_set(int32_t c) { return _mm256_set1_epi32(c); }
VEC_FN vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
VEC_FN void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
VEC_FN vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const void *)p); }
VEC_FN void vi_store(int32_t *p, vi v) { _mm256_storeu_si256((void *)p, v); }
VEC_FN vf vf_of_bits(vi k) { return _mm256_castsi256_ps(k); }
VEC_FN vi vf_bits(vf x) { return _mm256_castps_si256(x); }
VEC_FN vf vf_of_int(vi k) { return _mm256_cvtepi32_ps(k); }
VEC_FN vi vi_of_f(vf v) { return _mm256_cvtps_epi32(v); }

VEC_FN vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VEC_FN vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VEC_FN vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VEC_FN vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VEC_FN vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
VEC_FN vf vf_sqrt(vf a) { return _mm256_sqrt_ps(a); }
VEC_FN vf vf_rint(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
VEC_FN vf vf_floor(vf a) { return _mm256_floor_ps(a); }
VEC_FN vf vf_ceil(vf a) { return _mm256_ceil_ps(a); }
VEC_FN vf vf_lesser(vf a, vf b) { return _mm256_min_ps(a, b); }
VEC_FN vf vf_greater(vf a, vf b) { return _mm256_max_ps(a, b); }

VEC_FN vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
VEC_FN vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
VEC_FN vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
VEC_FN vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
VEC_FN vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
VEC_FN vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
#define vi_shl(k, n) _mm256_slli_epi32(k, n)
#define vi_shr(k, n) _mm256_srli_epi32(k, n)
#define vi_sar(k, n) _mm256_srai_epi32(k, n)

VEC_FN vm vf_lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
VEC_FN vm vf_eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
VEC_FN vm vi_eq(vi a, vi b) { return vf_of_bits(_mm256_cmpeq_epi32(a, b)); }
VEC_FN vf vf_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
VEC_FN vi vi_select(vm m, vi a, vi b)
{
    return vf_bits(vf_select(m, vf_of_bits(a), vf_of_bits(b)));
}
VEC_FN bool vm_any(vm m) { return _mm256_movemask_ps(m) != 0; }
VEC_FN vm vm_first(size_t n)
{
    vi lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return vf_of_bits(_mm256_cmpgt_epi32(vi_set((int32_t)n), lane));
}

VEC_FN vf vf_max(vf a, vf b)
{
    return vf_select(_mm256_cmp_ps(a, a, _CMP_UNORD_Q), a, _mm256_max_ps(a, b));
}
VEC_FN vf vf_min(vf a, vf b)
{
    return vf_select(_mm256_cmp_ps(a, a, _CMP_UNORD_Q), a, _mm256_min_ps(a, b));
}

VEC_FN vf vf_loadn(const float *p, size_t n) { return _mm256_maskload_ps(p, vf_bits(vm_first(n))); }
VEC_FN void vf_storen(float *p, size_t n, vf v) { _mm256_maskstore_ps(p, vf_bits(vm_first(n)), v); }

/* 16-bit and 8-bit elements have no masked moves here: partial ones pass through the stack. */
VEC_FN __m128i load_part(const void *p, size_t n_bytes)
{
    __m128i v = _mm_setzero_si128();
    memcpy(&v, p, n_bytes);
    return v;
}
VEC_FN vf widen_bf16(__m128i h)
{
    vi k = vi_shl(_mm256_cvtepu16_epi32(h), 16);
    vi quiet = vi_and(vi_set(0x400000),
                      _mm256_cmpgt_epi32(vi_and(k, vi_set(0x7fffffff)), vi_set(0x7f800000)));
    return vf_of_bits(vi_or(k, quiet));
}
VEC_FN __m128i narrow_bf16(vf v)
{
    vi k = vf_bits(v), odd = vi_and(vi_shr(k, 16), vi_set(1));
    vi near = vi_shr(vi_add(k, vi_add(odd, vi_set(0x7fff))), 16);
    vi quiet = vi_or(vi_shr(k, 16), vi_set(0x40));
    vi h = vi_select(_mm256_cmp_ps(v, v, _CMP_UNORD_Q), quiet, near);
    h = _mm256_permute4x64_epi64(_mm256_packus_epi32(h, h), 0x08);
    return _mm256_castsi256_si128(h);
}
VEC_FN __m128i narrow_f16(vf v) { return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }

VEC_FN vf vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}
VEC_FN vf vf_load_bf16(const uint16_t *p) { return widen_bf16(_mm_loadu_si128((const void *)p)); }
VEC_FN vf vf_loadn_f16(const uint16_t *p, size_t n) { return _mm256_cvtph_ps(load_part(p, 2 * n)); }
VEC_FN vf vf_loadn_bf16(const uint16_t *p, size_t n) { return widen_bf16(load_part(p, 2 * n)); }
VEC_FN void vf_store_f16(uint16_t *p, vf v) { _mm_storeu_si128((void *)p, narrow_f16(v)); }
VEC_FN void vf_store_bf16(uint16_t *p, vf v) { _mm_storeu_si128((void *)p, narrow_bf16(v)); }
VEC_FN void vf_storen_f16(uint16_t *p, size_t n, vf v)
{
    __m128i h = narrow_f16(v);
    memcpy(p, &h, 2 * n);
}
VEC_FN void vf_storen_bf16(uint16_t *p, size_t n, vf v)
{
    __m128i h = narrow_bf16(v);
    memcpy(p, &h, 2 * n);
}

VEC_FN __m128i narrow_i8(vi k)
{
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(k), _mm256_extracti128_si256(k, 1));
    return _mm_packs_epi16(h, h);
}
VEC_FN void vi_store_i8(int8_t *p, vi k) { _mm_storel_epi64((void *)p, narrow_i8(k)); }
VEC_FN void vi_storen_i8(int8_t *p, size_t n, vi k)
{
    __m128i b = narrow_i8(k);
    memcpy(p, &b, n);
}
VEC_FN vf vf_load_i8(const int8_t *p)
{
    return vf_of_int(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}
VEC_FN vf vf_load_u8(const uint8_t *p)
{
    return vf_of_int(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}
VEC_FN vf vf_load_u4(const uint8_t *p)
{
    int32_t word;
    memcpy(&word, p, 4);
    vi shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    return vf_of_int(vi_and(_mm256_srlv_epi32(vi_set(word), shift), vi_set(15)));
}
VEC_FN vf vf_loadn_i8(const int8_t *p, size_t n)
{
    return vf_of_int(_mm256_cvtepi8_epi32(load_part(p, n)));
}

/* --- across lanes */
VEC_FN float vf_fold(vf a)
{
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
VEC_FN vf vf_fold_some(const vf *a) /* halves are rows */
{
    return vf_add(_mm256_permute2f128_ps(a[0], a[1], 0x20),
                  _mm256_permute2f128_ps(a[0], a[1], 0x31));
}
VEC_FN vf vf_fold_rest(const vf *c) /* leaves row 2 i + h in lane i of half h */
{
    vf d0 = vf_add(_mm256_shuffle_ps(c[0], c[1], 0x44), _mm256_shuffle_ps(c[0], c[1], 0xee));
    vf d1 = vf_add(_mm256_shuffle_ps(c[2], c[3], 0x44), _mm256_shuffle_ps(c[2], c[3], 0xee));
    vf r = vf_add(_mm256_shuffle_ps(d0, d1, 0x88), _mm256_shuffle_ps(d0, d1, 0xdd));
    return _mm256_permutevar8x32_ps(r, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
VEC_FN vf vf_fold_rows(const vf *a)
{
    vf c[4];
    EACH (i, 4) c[i] = vf_fold_some(a + 2 * i);
    return vf_fold_rest(c);
}
VEC_FN float vf_hmax(vf a)
{
    a = vf_max(a, _mm256_permute2f128_ps(a, a, 1));
    a = vf_max(a, _mm256_shuffle_ps(a, a, 0x4e));
    return _mm256_cvtss_f32(vf_max(a, _mm256_shuffle_ps(a, a, 0xb1)));
}
VEC_FN int32_t vi_hmax(vi a)
{
    __m128i x = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
VEC_FN int32_t vi_hsum(vi a)
{
    __m128i x = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}
#endif
