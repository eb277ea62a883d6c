/* gguf_decode.c: the block types of ggml as f32 values, and the three of them that are affine
 * groups as they stand.
 *
 * Blocks (little endian, f16 d and m):
 *   Q4_0  d | 16 bytes: low nibbles are elements 0..15, high nibbles 16..31; value (q - 8) d
 *   Q4_1  d m | the same nibbles; value q d + m
 *   Q5_0  d | u32 fifth bits | nibbles; value (q - 16) d          Q5_1  d m | u32 | nibbles; value
 *   q d + m
 *   Q8_0  d | 32 int8; value q d
 *   K types: super-blocks of 256 with 6- or 4-bit sub-scales; each decoder below states its
 *   layout. */
#include "base/half.h"
#include "io/gguf.h"

static float f16_at(const uint8_t *p) { return f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

static void decode_f32(const uint8_t *p, float *out) { memcpy(out, p, 4); }

static void decode_f16(const uint8_t *p, float *out) { *out = f16_at(p); }

static void decode_bf16(const uint8_t *p, float *out)
{
    *out = bf16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static void nibbles(const uint8_t *q, uint32_t fifth, int offset, float d, float m, float *out)
{
    for (int j = 0; j < 16; j++) {
        int lo = (q[j] & 15) | (int)(fifth >> j & 1) << 4,
            hi = q[j] >> 4 | (int)(fifth >> (j + 16) & 1) << 4;
        out[j] = (float)(lo - offset) * d + m;
        out[j + 16] = (float)(hi - offset) * d + m;
    }
}

static uint32_t u32_at(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void decode_q4_0(const uint8_t *p, float *out) { nibbles(p + 2, 0, 8, f16_at(p), 0, out); }
static void decode_q4_1(const uint8_t *p, float *out)
{
    nibbles(p + 4, 0, 0, f16_at(p), f16_at(p + 2), out);
}
static void decode_q5_0(const uint8_t *p, float *out)
{
    nibbles(p + 6, u32_at(p + 2), 16, f16_at(p), 0, out);
}
static void decode_q5_1(const uint8_t *p, float *out)
{
    nibbles(p + 8, u32_at(p + 4), 0, f16_at(p), f16_at(p + 2), out);
}

static void decode_q8_0(const uint8_t *p, float *out)
{
    float d = f16_at(p);
    for (int j = 0; j < 32; j++) out[j] = (float)(int8_t)p[2 + j] * d;
}

/* scales[16] (low nibble scale, high nibble min) | qs[64] | d dmin; 16 sub-blocks of 16; 2-bit
 * codes: each 32 bytes of qs hold four runs
 * of 32 elements at shifts 0, 2, 4, 6. */
static void decode_q2_k(const uint8_t *p, float *out)
{
    float d = f16_at(p + 80), dmin = f16_at(p + 82);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, shift = i % 128 / 32 * 2, l = i % 32;
        uint8_t s = p[i / 16];
        int q = p[16 + 32 * half + l] >> shift & 3;
        out[i] = d * (float)(s & 15) * (float)q - dmin * (float)(s >> 4);
    }
}

/* hmask[32] | qs[64] | scales[12] | d; third bit of element i: bit (i / 32) of hmask[i % 32],
 * absent means -4; 6-bit scales minus 32:
 * low nibbles in bytes 0..7, high bit pairs in bytes 8..11. */
static void decode_q3_k(const uint8_t *p, float *out)
{
    const uint8_t *h = p, *q = p + 32, *s = p + 96;
    float d = f16_at(p + 108);
    for (int i = 0; i < 256; i++) {
        int b = i / 16, l = i % 32;
        int low = b < 8 ? s[b] & 15 : s[b - 8] >> 4;
        int high = s[8 + b % 4] >> (2 * (b / 4)) & 3;
        int code =
            (q[32 * (i / 128) + l] >> (i % 128 / 32 * 2) & 3) - (h[l] >> (i / 32) & 1 ? 0 : 4);
        out[i] = d * (float)((low | high << 4) - 32) * (float)code;
    }
}

/* Sub-block j of 8 has a 6-bit scale and minimum in 12 bytes: j < 4: low 6 bits of bytes j and j +
 * 4; else nibbles of byte j + 4 with the top
 * bits of bytes j - 4 and j. */
static void scale_min(const uint8_t *s, int j, int *scale, int *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;
    } else {
        *scale = (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        *min = s[j + 4] >> 4 | s[j] >> 6 << 4;
    }
}

/* d dmin | scales[12] | qs[128]: each 32 bytes of qs hold two sub-blocks of 32, low nibbles then
 * high. */
static void decode_q4_k(const uint8_t *p, float *out)
{
    float d = f16_at(p), dmin = f16_at(p + 2);
    for (int j = 0; j < 8; j++) {
        int s, m;
        scale_min(p + 4, j, &s, &m);
        for (int l = 0; l < 32; l++) {
            int q = p[16 + 32 * (j / 2) + l] >> (j % 2 * 4) & 15;
            out[32 * j + l] = d * (float)s * (float)q - dmin * (float)m;
        }
    }
}

/* d dmin | scales[12] | qh[32] | qs[128]: as Q4_K with the fifth bit of sub-block j in bit j of
 * qh. */
static void decode_q5_k(const uint8_t *p, float *out)
{
    float d = f16_at(p), dmin = f16_at(p + 2);
    for (int j = 0; j < 8; j++) {
        int s, m;
        scale_min(p + 4, j, &s, &m);
        for (int l = 0; l < 32; l++) {
            int q = (p[48 + 32 * (j / 2) + l] >> (j % 2 * 4) & 15) | (p[16 + l] >> j & 1) << 4;
            out[32 * j + l] = d * (float)s * (float)q - dmin * (float)m;
        }
    }
}

/* ql[128] | qh[64] | int8 scales[16] | d; per half of 128: run r of 32 takes ql[64 half + (r % 2)
 * 32 + l] low nibble for r < 2, high after,
 * and two bits of qh[32 half + l] at shift 2 r; minus 32. */
static void decode_q6_k(const uint8_t *p, float *out)
{
    float d = f16_at(p + 208);
    for (int i = 0; i < 256; i++) {
        int half = i / 128, r = i % 128 / 32, l = i % 32;
        int low = p[64 * half + r % 2 * 32 + l] >> (r < 2 ? 0 : 4) & 15;
        int high = p[128 + 32 * half + l] >> (2 * r) & 3;
        int scale = (int8_t)p[192 + i / 16];
        out[i] = d * (float)scale * (float)((low | high << 4) - 32);
    }
}

static const gguf_type_info types[] = {
    {GGML_F32, "F32", 1, 4, decode_f32},        {GGML_F16, "F16", 1, 2, decode_f16},
    {GGML_BF16, "BF16", 1, 2, decode_bf16},     {GGML_Q4_0, "Q4_0", 32, 18, decode_q4_0},
    {GGML_Q4_1, "Q4_1", 32, 20, decode_q4_1},   {GGML_Q5_0, "Q5_0", 32, 22, decode_q5_0},
    {GGML_Q5_1, "Q5_1", 32, 24, decode_q5_1},   {GGML_Q8_0, "Q8_0", 32, 34, decode_q8_0},
    {GGML_Q2_K, "Q2_K", 256, 84, decode_q2_k},  {GGML_Q3_K, "Q3_K", 256, 110, decode_q3_k},
    {GGML_Q4_K, "Q4_K", 256, 144, decode_q4_k}, {GGML_Q5_K, "Q5_K", 256, 176, decode_q5_k},
    {GGML_Q6_K, "Q6_K", 256, 210, decode_q6_k},
};

const gguf_type_info *gguf_type_find(uint32_t type)
{
    for (size_t i = 0; i < N_ELEM(types); i++)
        if ((uint32_t)types[i].type == type) return &types[i];
    return NULL;
}

void gguf_decode(gguf_type t, const uint8_t *p, int64_t n, float *out)
{
    const gguf_type_info *k = gguf_type_find((uint32_t)t);
    if (!k) return; /* gguf_open lets no such type in */
    for (int64_t i = 0; i < n; i += k->block, p += k->bytes) k->decode(p, out + i);
}

bool gguf_affine_bits(gguf_type t, int *ret_bits)
{
    if (t != GGML_Q4_0 && t != GGML_Q4_1 && t != GGML_Q8_0) return false;
    *ret_bits = t == GGML_Q8_0 ? 8 : 4;
    return true;
}

/* ggml's nibble order (j, j + 16) to MLX's (2 j, 2 j + 1). */
static void pack_nibbles(const uint8_t *q, uint8_t *codes)
{
    uint8_t v[32];
    for (int j = 0; j < 16; j++) {
        v[j] = q[j] & 15;
        v[j + 16] = q[j] >> 4;
    }
    for (int j = 0; j < 16; j++) codes[j] = (uint8_t)(v[2 * j] | v[2 * j + 1] << 4);
}

bool gguf_affine_row(gguf_type t, const uint8_t *p, int64_t n, uint8_t *codes, uint16_t *scales,
                     uint16_t *biases)
{
    for (int64_t g = 0; g < n / 32; g++) {
        uint16_t d = (uint16_t)(p[0] | p[1] << 8);
        scales[g] = d;
        if (t == GGML_Q4_1) {
            biases[g] = (uint16_t)(p[2] | p[3] << 8);
            pack_nibbles(p + 4, codes);
            codes += 16, p += 20;
            continue;
        }
        float bias =
            f16_to_f32(d) * (t == GGML_Q8_0
                                 ? -128.0f
                                 : -8.0f); /* a power of two: exact in f16 unless it overflows */
        biases[g] = f32_to_f16(bias);
        if (f16_to_f32(biases[g]) != bias) return false;
        if (t == GGML_Q4_0) {
            pack_nibbles(p + 2, codes);
            codes += 16, p += 18;
        } else {
            for (int j = 0; j < 32; j++) codes[j] = (uint8_t)((int8_t)p[2 + j] + 128);
            codes += 32, p += 34;
        }
    }
    return true;
}
