/* qmm8_neon.h: qmm8 on 128-bit vectors. Row by row; codes are read and unpacked once for up to
 * four tokens.
 *
 * First pass: 4 groups at a time give 4 lanes u = fma(s, I, b * S). Second pass: the u of a row
 * are added into 16 classes. Codes of 8 bits are taken less 128, as signed bytes; I gets 128 * S
 * back, exactly. Reads exactly the bytes of the rows.
 *
 * Whoever includes it has defined dot16: acc + 16 products of signed bytes, four to a lane or in
 * any other way, since only the sum of the lanes counts. Cost per 32 codes and token: 2 loads, 2
 * of those dots, 1 pairwise add. */
#define ISA neon
#include "array/cpu/vec/vec_kernels.h"

#define TOKENS 4

/* One token: its codes where they lie, S and d of each weight group, and u of the row at hand. */
typedef struct token {
    const int8_t *x;
    float *sum, *d, *u;
} token;

typedef struct walk {
    const qmat *w;
    size_t k, group, n_groups;
    token at[TOKENS];
} walk;

static size_t up64(size_t n) { return (n + 63) / 64 * 64; }
static size_t walk_bytes(const qmat *w)
{
    return TOKENS * 3 * up64((size_t)(w->k / w->group) * sizeof(float));
}

static void start_token(const walk *k, token *t, const uint8_t *rec, size_t act_group)
{
    const float *d = (const float *)(rec + rows8_d_at(k->k));
    const int32_t *sums = (const int32_t *)(rec + rows8_sums_at(k->k, act_group));
    size_t per = k->group / 32, shift = (size_t)__builtin_ctzl(act_group / k->group);
    t->x = (const int8_t *)rec;
    for (size_t g = 0; g < k->n_groups; g++) {
        int32_t s = 0;
        for (size_t i = 0; i < per; i++) s += sums[g * per + i];
        t->sum[g] = (float)s;
        t->d[g] = d[g >> shift];
    }
}

/* --- first pass */

/* 32 codes as signed bytes, in the order of load_x. */
VEC_FN int8x16x2_t load_codes(const uint8_t *p, int bits)
{
    int8x16x2_t r;
    if (bits == 4) {
        uint8x16_t v = vld1q_u8(p);
        r.val[0] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
        r.val[1] = vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
    } else {
        r.val[0] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p), vdupq_n_u8(0x80)));
        r.val[1] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(p + 16), vdupq_n_u8(0x80)));
    }
    return r;
}
VEC_FN int8x16x2_t load_x(const int8_t *x, int bits)
{
    if (bits == 4) return vld2q_s8(x); /* evens, odds */
    int8x16x2_t r = {{vld1q_s8(x), vld1q_s8(x + 16)}};
    return r;
}

/* Four lanes whose sum is I of one group, for each token. */
VEC_FN void dot_group(int32x4_t *ret, const walk *k, const uint8_t *codes, size_t at, int bits,
                      int group, int nt)
{
    EACH (t, nt) ret[t] = vdupq_n_s32(0);
    for (int i = 0; i < group; i += 32) {
        int8x16x2_t w = load_codes(codes + i / 8 * bits, bits);
        EACH (t, nt) {
            int8x16x2_t x = load_x(k->at[t].x + at + i, bits);
            ret[t] = dot16(dot16(ret[t], w.val[0], x.val[0]), w.val[1], x.val[1]);
        }
    }
}

/* u of n groups, 4 or, at the end of a row, one. scale and bias: of those groups. */
VEC_FN void put_terms(const walk *k, const int32x4_t *dot, size_t g, size_t n, const float *scale,
                      const float *bias, int bits, int nt)
{
    EACH (t, nt) {
        const token *a = &k->at[t];
        vf sum = n == 4 ? vf_load(a->sum + g) : vf_set(a->sum[g]);
        vf s = n == 4 ? vf_load(scale) : vf_set(scale[0]),
           b = n == 4 ? vf_load(bias) : vf_set(bias[0]);
        vf dots = vf_of_int(dot[t]);
        if (bits == 8) dots = vf_fma(vf_set(128), sum, dots); /* exact: below 2^24 */
        vf u = vf_fma(s, dots, vf_mul(b, sum));
        if (n == 4)
            vf_store(a->u + g, u);
        else
            a->u[g] = vgetq_lane_f32(u, 0);
    }
}

VEC_FN void first_pass(const walk *k, int64_t row, int bits, int group, int nt)
{
    const qmat *w = k->w;
    size_t first = (size_t)row * k->n_groups, bytes = (size_t)(group / 8 * bits), g = 0;
    const uint8_t *codes = w->codes + first * bytes;
    for (; g + 4 <= k->n_groups; g += 4, codes += 4 * bytes) {
        int32x4_t d[4][TOKENS], all[TOKENS];
        float s[4], b[4];
        EACH (i, 4)
            dot_group(d[i], k, codes + (size_t)i * bytes, (g + (size_t)i) * (size_t)group, bits,
                      group, nt);
        EACH (t, nt)
            all[t] = vpaddq_s32(vpaddq_s32(d[0][t], d[1][t]), vpaddq_s32(d[2][t], d[3][t]));
        vf_store(s, load_as(w->scales, w->sb_type, first + g));
        vf_store(b, load_as(w->biases, w->sb_type, first + g));
        put_terms(k, all, g, 4, s, b, bits, nt);
    }
    for (; g < k->n_groups; g++, codes += bytes) {
        int32x4_t d[TOKENS];
        float s = float_at(w->scales, w->sb_type, first + g),
              b = float_at(w->biases, w->sb_type, first + g);
        dot_group(d, k, codes, g * (size_t)group, bits, group, nt);
        EACH (t, nt) d[t] = vdupq_n_s32(vaddvq_s32(d[t]));
        put_terms(k, d, g, 1, &s, &b, bits, nt);
    }
}

/* --- second pass: acc[class] = fma(d, u, acc[class]), groups ascending; four classes to a
 * vector while a row has them */
VEC_FN float add_classes(const walk *k, const token *t, int group)
{
    float acc[16] = {0};
    size_t g = 0, n = group == 32
                          ? 8
                          : 4; /* groups of four classes; those of 128 have every other class */
    for (; g + n <= k->n_groups; g += n) {
        float *a = acc + g * (size_t)group / 64 % 16;
        vf d = vf_load(t->d + g), u = vf_load(t->u + g);
        if (group == 32) {
            vf d2 = vf_load(t->d + g + 4), u2 = vf_load(t->u + g + 4);
            vf sum = vf_fma(vuzp1q_f32(d, d2), vuzp1q_f32(u, u2), vf_load(a));
            vf_store(a, vf_fma(vuzp2q_f32(d, d2), vuzp2q_f32(u, u2), sum));
        } else if (group == 64) {
            vf_store(a, vf_fma(d, u, vf_load(a)));
        } else {
            float32x4x2_t pair = vld2q_f32(a); /* even classes, odd classes */
            pair.val[0] = vf_fma(d, u, pair.val[0]);
            vst2q_f32(a, pair);
        }
    }
    for (; g < k->n_groups; g++) {
        float *a = acc + g * (size_t)group / 64 % 16;
        *a = __builtin_fmaf(t->d[g], t->u[g], *a);
    }
    vf a = vf_add(vf_load(acc), vf_load(acc + 8)), b = vf_add(vf_load(acc + 4), vf_load(acc + 12));
    return vf_fold(vf_add(a, b));
}

typedef void (*rows_fn)(const walk *k, int64_t n0, int64_t n1, float *y, size_t ldy);

VEC_FN void rows(const walk *k, int64_t n0, int64_t n1, float *y, size_t ldy, int bits, int group,
                 int nt)
{
    for (int64_t n = n0; n < n1; n++) {
        first_pass(k, n, bits, group, nt);
        for (int t = 0; t < nt; t++)
            y[(size_t)t * ldy + (size_t)(n - n0)] = add_classes(k, &k->at[t], group);
    }
}

#define ROWS(bits, group, nt)                                                                 \
    static void rows_##bits##_##group##_##nt(const walk *k, int64_t n0, int64_t n1, float *y, \
                                             size_t ldy)                                      \
    {                                                                                         \
        rows(k, n0, n1, y, ldy, bits, group, nt);                                             \
    }
#define ROWS_NT(bits, group) \
    ROWS(bits, group, 1) ROWS(bits, group, 2) ROWS(bits, group, 3) ROWS(bits, group, 4)
ROWS_NT(4, 32)
ROWS_NT(4, 64)
ROWS_NT(4, 128)
ROWS_NT(8, 32)
ROWS_NT(8, 64)
ROWS_NT(8, 128)
#define ENTRY(bits, group)                                                               \
    {                                                                                    \
        rows_##bits##_##group##_1, rows_##bits##_##group##_2, rows_##bits##_##group##_3, \
            rows_##bits##_##group##_4                                                    \
    }
static const rows_fn rows_of[2][3][TOKENS] = {{ENTRY(4, 32), ENTRY(4, 64), ENTRY(4, 128)},
                                              {ENTRY(8, 32), ENTRY(8, 64), ENTRY(8, 128)}};

/* The slot. Rows of some hundred thousand codes, whose u do not fit the scratch, are left to the
 * reference. */
VEC_FN void qmm8(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const uint8_t *rec,
                 size_t rec_stride, int act_group, size_t nt, char *scratch)
{
    if (walk_bytes(w) > KERNEL_SCRATCH_BYTES) {
        kernels_ref.qmm8(y, ldy, w, n0, n1, rec, rec_stride, act_group, nt, scratch);
        return;
    }
    walk k = {.w = w,
              .k = (size_t)w->k,
              .group = (size_t)w->group,
              .n_groups = (size_t)(w->k / w->group)};
    size_t each = up64(k.n_groups * sizeof(float));
    for (size_t t0 = 0; t0 < nt; t0 += TOKENS) {
        size_t here = nt - t0 < TOKENS ? nt - t0 : TOKENS;
        char *p = scratch;
        for (size_t t = 0; t < here; t++, p += 3 * each) {
            k.at[t] =
                (token){.sum = (float *)p, .d = (float *)(p + each), .u = (float *)(p + 2 * each)};
            start_token(&k, &k.at[t], rec + (t0 + t) * rec_stride, (size_t)act_group);
        }
        rows_of[w->bits == 8][w->group / 64][here - 1](&k, n0, n1, y + t0 * ldy, ldy);
    }
}
