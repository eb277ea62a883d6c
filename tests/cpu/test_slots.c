/* test_slots.c: every slot of every kernel table that this machine can run, against the reference,
 * bit for bit: random sizes and alignments, tails, denormals, zeros of both signs, infinities and
 * NaN (any NaN equals any NaN). One checker for each row of kernels.def: a slot without one does
 * not compile. Outputs are followed by guards that must survive. */
#include <math.h>
#include "array/cpu/kernels.h"
#include "base/half.h"
#include "base/mem.h"
#include "ingot/device.h"
#include "support/test.h"

#define MAX_N 9000
#define PAD 64
#define GUARD 0x5a

typedef struct bench {
    const kernels *k; /* under test */
    uint64_t seed;
    char *scratch;
    float *x, *y, *z; /* inputs, MAX_N + PAD floats */
    char *got, *want; /* outputs, GUARD_FROM + guards */
    size_t at;        /* offset in elements of all pointers of a trial */
} bench;
#define OUT_BYTES ((size_t)4 << 20)

static uint32_t draw(bench *b)
{
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(b->seed >> 33);
}

static size_t below(bench *b, size_t n) { return draw(b) % n; }

static float as_float(uint32_t bits) { return half_bits_f32(bits); }

/* kinds of values: 0 ordinary, 1 any finite, 2 tiny and denormal, 3 with infinities and NaN, 4
 * mostly equal, 5 large */
static float value(bench *b, int kind)
{
    uint32_t bits = draw(b) << 16 ^ draw(b);
    float ordinary = ((float)(bits >> 8) * 0x1p-24f - 0.5f) * 8;
    switch (kind) {
    case 1: return isfinite(as_float(bits)) ? as_float(bits) : ordinary;
    case 2: return as_float(bits & 0x80ffffff);
    case 3:
        return bits % 37 == 0   ? INFINITY
               : bits % 41 == 0 ? -INFINITY
               : bits % 43 == 0 ? NAN
               : bits % 11      ? ordinary
                                : -0.0f;
    case 4: return (float)(int)(bits % 3) - 1;
    case 5: return ordinary * 0x1p100f;
    default: return ordinary;
    }
}

static void fill(bench *b, float *x, size_t n, int kind)
{
    for (size_t i = 0; i < n; i++) x[i] = value(b, kind);
}

static size_t size(bench *b)
{
    size_t few = below(b, 140), near[] = {4095, 4096, 4097, 8192, 8193, 2048, 576, 1536};
    return below(b, 4) ? few : below(b, 2) ? near[below(b, N_ELEM(near))] : below(b, MAX_N);
}

static void arm(bench *b)
{
    memset(b->got, GUARD, OUT_BYTES);
    memset(b->want, GUARD, OUT_BYTES);
    b->at = below(b, 16);
}

static bool same_f32(const float *a, const float *b, size_t n, size_t *ret_at)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i] != a[i] && b[i] != b[i]) continue;
        if (half_f32_bits(a[i]) == half_f32_bits(b[i])) continue;
        *ret_at = i;
        return false;
    }
    return true;
}

/* The whole output area as floats: results and untouched guards. */
static void compare(bench *b, const char *what, size_t n)
{
    size_t at, end = (n + 2 * PAD) * 4;
    const float *got = (const float *)b->got, *want = (const float *)b->want;
    if (!same_f32(got, want, end / 4, &at))
        fail_msg("%s on %s, %zu results: word %zu is %a (%08x), the reference says %a (%08x)", what,
                 b->k->isa, n, at, (double)got[at], half_f32_bits(got[at]), (double)want[at],
                 half_f32_bits(want[at]));
}

static void compare_bytes(bench *b, const char *what, size_t n)
{
    for (size_t i = 0; i < n + PAD; i++)
        if (b->got[i] != b->want[i])
            fail_msg("%s on %s: byte %zu of %zu is %d, the reference says %d", what, b->k->isa, i,
                     n, b->got[i], b->want[i]);
}

static void compare_value(bench *b, const char *what, size_t n, float got, float want)
{
    size_t at;
    if (!same_f32(&got, &want, 1, &at))
        fail_msg("%s on %s, n %zu: %a, the reference says %a", what, b->k->isa, n, (double)got,
                 (double)want);
}

#define TRIALS(b, n) for (int trial = 0, kind = 0; trial < (n); trial++, kind = (int)below(b, 6))
#define OUT(b, p) ((float *)(p) + (b)->at)

/* --- conversions */

static void check_widen(bench *b, const char *what, void (*got)(float *, const uint16_t *, size_t),
                        void (*want)(float *, const uint16_t *, size_t))
{
    for (uint32_t first = 0; first < 65536; first += 509) {
        uint16_t *x = (uint16_t *)b->x + below(b, 9);
        size_t n = below(b, 510);
        for (size_t i = 0; i < n; i++) x[i] = (uint16_t)(first + i);
        arm(b);
        got(OUT(b, b->got), x, n);
        want(OUT(b, b->want), x, n);
        compare(b, what, n);
    }
}

static void check_narrow(bench *b, const char *what, void (*got)(uint16_t *, const float *, size_t),
                         void (*want)(uint16_t *, const float *, size_t))
{
    TRIALS(b, 300)
    {
        size_t n = size(b);
        fill(b, b->x + b->at, n, kind);
        for (size_t i = 0; i < n; i += 3)
            b->x[b->at + i] = f16_to_f32((uint16_t)draw(b)) * (1 + (float)below(b, 3) * 0x1p-12f);
        arm(b);
        got((uint16_t *)b->got + b->at, b->x + b->at, n);
        want((uint16_t *)b->want + b->at, b->x + b->at, n);
        compare_bytes(b, what, 2 * (n + b->at));
    }
}

static void check_f16_to_f32(bench *b)
{
    check_widen(b, "f16_to_f32", b->k->f16_to_f32, kernels_ref.f16_to_f32);
}
static void check_bf16_to_f32(bench *b)
{
    check_widen(b, "bf16_to_f32", b->k->bf16_to_f32, kernels_ref.bf16_to_f32);
}
static void check_f32_to_f16(bench *b)
{
    check_narrow(b, "f32_to_f16", b->k->f32_to_f16, kernels_ref.f32_to_f16);
}
static void check_f32_to_bf16(bench *b)
{
    check_narrow(b, "f32_to_bf16", b->k->f32_to_bf16, kernels_ref.f32_to_bf16);
}

/* --- reductions */

#define REDUCTION(name, least, call)                      \
    static void check_##name(bench *b)                    \
    {                                                     \
        TRIALS(b, 400)                                    \
        {                                                 \
            size_t n = size(b) + (least);                 \
            const kernels *k = b->k;                      \
            b->at = below(b, 16);                         \
            float *x = b->x + b->at, *y = b->y + b->at;   \
            fill(b, x, n, kind);                          \
            fill(b, y, n, kind);                          \
            float got = (float)call;                      \
            k = &kernels_ref;                             \
            compare_value(b, #name, n, got, (float)call); \
        }                                                 \
    }
REDUCTION(sum, 0, k->sum(x, n))
REDUCTION(sumsq, 0, k->sumsq(x, n))
REDUCTION(dot, 0, k->dot(x, y, n))
REDUCTION(max, 1, k->max(x, n))
REDUCTION(argmax, 1, k->argmax(x, n))
REDUCTION(logsumexp, 0, k->logsumexp(x, n))

/* --- rows */

static void check_rms_norm(bench *b)
{
    TRIALS(b, 200)
    {
        size_t n = size(b);
        float *w = trial % 4 ? b->y + 3 : NULL, eps = trial % 3 ? 1e-5f : 0;
        fill(b, b->x, n + PAD, kind);
        fill(b, b->y, n + PAD, 0);
        arm(b);
        b->k->rms_norm(OUT(b, b->got), b->x + b->at, w, eps, n);
        kernels_ref.rms_norm(OUT(b, b->want), b->x + b->at, w, eps, n);
        compare(b, "rms_norm", n);
    }
}

static void check_layer_norm(bench *b)
{
    TRIALS(b, 200)
    {
        size_t n = size(b);
        float *w = trial % 4 ? b->y + 3 : NULL, *bias = trial % 3 ? b->z + 1 : NULL;
        fill(b, b->x, n + PAD, kind);
        fill(b, b->y, n + PAD, 0);
        fill(b, b->z, n + PAD, kind);
        arm(b);
        b->k->layer_norm(OUT(b, b->got), b->x + b->at, w, bias, 1e-5f, n);
        kernels_ref.layer_norm(OUT(b, b->want), b->x + b->at, w, bias, 1e-5f, n);
        compare(b, "layer_norm", n);
    }
}

static void check_softmax(bench *b)
{
    TRIALS(b, 200)
    {
        size_t n = size(b);
        arm(b);
        float *x = b->x + b->at;
        fill(b, x, n, kind);
        if (trial % 9 == 0)
            for (size_t i = 0; i < n; i++) x[i] = -INFINITY;
        memcpy(OUT(b, b->got), x, n * 4); /* in place */
        b->k->softmax(OUT(b, b->got), OUT(b, b->got), n);
        kernels_ref.softmax(OUT(b, b->want), x, n);
        compare(b, "softmax", n);
    }
}

static void check_rope(bench *b)
{
    TRIALS(b, 200)
    {
        size_t half = below(b, 140);
        bool interleaved = trial & 1;
        fill(b, b->x, 2 * half + PAD, kind);
        fill(b, b->y, half + PAD, 0);
        fill(b, b->z, half + PAD, 0);
        arm(b);
        memcpy(OUT(b, b->got), b->x + b->at, 8 * half); /* in place */
        b->k->rope(OUT(b, b->got), OUT(b, b->got), b->y + 1, b->z + 2, half, interleaved);
        kernels_ref.rope(OUT(b, b->want), b->x + b->at, b->y + 1, b->z + 2, half, interleaved);
        compare(b, "rope", 2 * half);
    }
}

static void check_axpy(bench *b)
{
    TRIALS(b, 200)
    {
        size_t n = size(b);
        float a = value(b, kind);
        fill(b, b->x, n + PAD, kind);
        fill(b, b->y, n + PAD, kind);
        arm(b);
        memcpy(OUT(b, b->got), b->y, n * 4);
        memcpy(OUT(b, b->want), b->y, n * 4);
        b->k->axpy(OUT(b, b->got), a, b->x + b->at, n);
        kernels_ref.axpy(OUT(b, b->want), a, b->x + b->at, n);
        compare(b, "axpy", n);
    }
}

/* --- int8 */

static void check_rows8(bench *b)
{
    static const int groups[] = {32, 64, 128};
    TRIALS(b, 300)
    {
        size_t n = size(b);
        int group = groups[trial % 3];
        fill(b, b->x, n + PAD, kind);
        arm(b);
        b->k->rows8((uint8_t *)b->got, b->x + b->at, n, group);
        kernels_ref.rows8((uint8_t *)b->want, b->x + b->at, n, group);
        /* d of a poisoned group is a NaN, and any NaN will do */
        size_t d_at = rows8_d_at(n), sums_at = rows8_sums_at(n, (size_t)group), at;
        if (!same_f32((float *)(b->got + d_at), (float *)(b->want + d_at), (sums_at - d_at) / 4,
                      &at))
            fail_msg("rows8 on %s, n %zu: d of group %zu differs", b->k->isa, n, at);
        memcpy(b->got + d_at, b->want + d_at, sums_at - d_at);
        compare_bytes(b, "rows8", rows8_bytes(n, (size_t)group));
    }
}

static void check_kv8(bench *b)
{
    TRIALS(b, 300)
    {
        size_t n = 1 + below(b, 256);
        float got = 0, want = 0;
        fill(b, b->x, n + PAD, kind);
        arm(b);
        b->k->kv8((int8_t *)b->got + b->at, &got, b->x + b->at, n);
        kernels_ref.kv8((int8_t *)b->want + b->at, &want, b->x + b->at, n);
        compare_value(b, "kv8 (d)", n, got, want);
        compare_bytes(b, "kv8", n + b->at);
    }
}

/* --- quantised matrices: random bytes are codes; scales and biases are small numbers */

typedef struct matrix {
    qmat m;
    uint8_t *codes;
    void *scales, *biases;
} matrix;

static void *random_sb(bench *b, ig_dtype t, size_t n, bool wild)
{
    char *p = mem_alloc(n * 4 + 16);
    for (size_t i = 0; i < n; i++) {
        float v = value(b, wild ? 3 : 0) * 0.01f;
        if (t == IG_F32)
            memcpy(p + 4 * i, &v, 4);
        else {
            uint16_t h = t == IG_F16 ? f32_to_f16(v) : f32_to_bf16(v);
            memcpy(p + 2 * i, &h, 2);
        }
    }
    return p;
}

static matrix make_matrix(bench *b, int64_t n, int64_t k, int group, int bits, bool wild)
{
    static const ig_dtype types[] = {IG_F32, IG_F16, IG_BF16};
    matrix w = {.m = {.n = n, .k = k, .group = group, .bits = bits, .sb_type = types[below(b, 3)]}};
    size_t n_codes = (size_t)(n * k * bits / 8), n_sb = (size_t)(n * k / group);
    w.codes = mem_alloc(n_codes + 1);
    for (size_t i = 0; i < n_codes; i++) w.codes[i] = (uint8_t)draw(b);
    w.scales = random_sb(b, w.m.sb_type, n_sb, wild);
    w.biases = random_sb(b, w.m.sb_type, n_sb, wild);
    w.m.codes = w.codes;
    w.m.scales = w.scales;
    w.m.biases = w.biases;
    return w;
}

static void drop_matrix(matrix *w)
{
    mem_free(w->codes);
    mem_free(w->scales);
    mem_free(w->biases);
}

static int64_t columns(bench *b, int group)
{
    static const int64_t some[] = {576, 1536, 2048, 4096, 4224, 64, 128, 960};
    int64_t k = below(b, 2) ? some[below(b, N_ELEM(some))] : (int64_t)(1 + below(b, 40)) * group;
    return k < group ? group : k / group * group;
}

static void check_qmm8(bench *b)
{
    static const int groups[] = {32, 64, 128};
    for (int trial = 0; trial < 250; trial++) {
        int g = (int)below(b, 3), group = groups[g],
            act = groups[g + (int)below(b, (size_t)(3 - g))];
        int64_t k = columns(b, group), n = 1 + (int64_t)below(b, 90),
                n0 = (int64_t)below(b, (size_t)n);
        int64_t n1 = n0 + 1 + (int64_t)below(b, (size_t)(n - n0));
        size_t nt = below(b, 3) ? 1 + below(b, 7) : below(b, 70),
               stride = rows8_bytes((size_t)k, (size_t)act);
        size_t ldy = (size_t)(n1 - n0) + below(b, 5);
        matrix w = make_matrix(b, n, k, group, below(b, 2) ? 4 : 8, trial % 25 == 0);
        uint8_t *rec = mem_aligned(64, nt * stride + 64);
        for (size_t t = 0; t < nt; t++) {
            fill(b, b->x, (size_t)k, trial % 11 ? 0 : (int)below(b, 6));
            kernels_ref.rows8(rec + t * stride, b->x, (size_t)k, act);
        }
        arm(b);
        b->k->qmm8(OUT(b, b->got), ldy, &w.m, n0, n1, rec, stride, act, nt, b->scratch);
        kernels_ref.qmm8(OUT(b, b->want), ldy, &w.m, n0, n1, rec, stride, act, nt, b->scratch);
        compare(b, "qmm8", nt * ldy);
        mem_free(rec);
        drop_matrix(&w);
    }
}

static const int all_bits[] = {2, 3, 4, 5, 6, 8};

static void check_qmm(bench *b)
{
    static const int groups[] = {32, 64, 128};
    for (int trial = 0; trial < 120; trial++) {
        int group = groups[below(b, 3)];
        int64_t k = columns(b, group), n = 1 + (int64_t)below(b, 20),
                n0 = (int64_t)below(b, (size_t)n);
        int64_t n1 = n0 + 1 + (int64_t)below(b, (size_t)(n - n0));
        size_t nt = 1 + below(b, 12), ldx = (size_t)k + below(b, 5),
               ldy = (size_t)(n1 - n0) + below(b, 5);
        matrix w = make_matrix(b, n, k, group, all_bits[trial % 6], trial % 25 == 0);
        float *x = mem_alloc(nt * ldx * 4);
        fill(b, x, nt * ldx, trial % 11 ? 0 : (int)below(b, 6));
        arm(b);
        b->k->qmm(OUT(b, b->got), ldy, &w.m, n0, n1, x, ldx, nt, b->scratch);
        kernels_ref.qmm(OUT(b, b->want), ldy, &w.m, n0, n1, x, ldx, nt, b->scratch);
        compare(b, "qmm", nt * ldy);
        mem_free(x);
        drop_matrix(&w);
    }
}

static void check_qrow(bench *b)
{
    static const int groups[] = {32, 64, 128};
    for (int trial = 0; trial < 200; trial++) {
        int group = groups[below(b, 3)];
        int64_t k = columns(b, group), n = 1 + (int64_t)below(b, 4),
                row = (int64_t)below(b, (size_t)n);
        matrix w = make_matrix(b, n, k, group, all_bits[trial % 6], trial % 9 == 0);
        arm(b);
        b->k->qrow(OUT(b, b->got), &w.m, row);
        kernels_ref.qrow(OUT(b, b->want), &w.m, row);
        compare(b, "qrow", (size_t)k);
        drop_matrix(&w);
    }
}

static void check_mm(bench *b)
{
    static const ig_dtype types[] = {IG_F32, IG_F16, IG_BF16};
    for (int trial = 0; trial < 150; trial++) {
        ig_dtype t = types[trial % 3];
        size_t k = size(b), n = 1 + below(b, 20), n0 = below(b, n), n1 = n0 + 1 + below(b, n - n0);
        size_t nt = 1 + below(b, 12), ldw = k + below(b, 5), ldx = k + below(b, 5),
               ldy = n1 - n0 + below(b, 5);
        char *w = random_sb(b, t, n * ldw, trial % 11 == 0);
        float *x = mem_alloc(nt * ldx * 4 + 4);
        fill(b, x, nt * ldx, trial % 11 ? 0 : (int)below(b, 6));
        arm(b);
        b->k->mm(OUT(b, b->got), ldy, w, t, ldw, (int64_t)n0, (int64_t)n1, x, ldx, k, nt,
                 b->scratch);
        kernels_ref.mm(OUT(b, b->want), ldy, w, t, ldw, (int64_t)n0, (int64_t)n1, x, ldx, k, nt,
                       b->scratch);
        compare(b, "mm", nt * ldy);
        mem_free(x);
        mem_free(w);
    }
}

/* --- attention */

/* A pool of random vectors, stored through the reference; page ids are a permutation. */
static char *make_pool(bench *b, const attend_args *a, int64_t n_pages, int kind)
{
    int64_t bytes = ig_page_bytes(a->n_kv, a->head_dim, a->kv_type), d = a->head_dim;
    char *pool = mem_aligned(64, (size_t)(n_pages * bytes));
    size_t el = a->kv_type == IG_I8 ? 1 : a->kv_type == IG_F32 ? 4 : 2;
    for (int64_t v = 0; v < n_pages * 2 * a->n_kv * KV_PAGE; v++) {
        char *page = pool + v / (2 * a->n_kv * KV_PAGE) * bytes;
        int64_t at = v % (2 * a->n_kv * KV_PAGE);
        char *y = page + (size_t)(at * d) * el;
        fill(b, b->x, (size_t)d, kind);
        if (a->kv_type == IG_F32)
            memcpy(y, b->x, (size_t)d * 4);
        else if (a->kv_type == IG_F16)
            kernels_ref.f32_to_f16((uint16_t *)y, b->x, (size_t)d);
        else if (a->kv_type == IG_BF16)
            kernels_ref.f32_to_bf16((uint16_t *)y, b->x, (size_t)d);
        else
            kernels_ref.kv8((int8_t *)y, (float *)(page + 2 * a->n_kv * KV_PAGE * d) + at, b->x,
                            (size_t)d);
    }
    return pool;
}

static void check_attend(bench *b)
{
    static const ig_dtype types[] = {IG_F32, IG_F16, IG_BF16, IG_I8};
    static const int64_t dims[] = {64, 128, 80, 96, 32, 256, 72};
    enum { ROWS = 64, PAGES = 16 };
    for (int trial = 0; trial < 60; trial++) {
        int64_t d = dims[below(b, N_ELEM(dims))];
        const float *q[ROWS];
        float *got[ROWS], *want[ROWS];
        int32_t pos[ROWS], pages[PAGES];
        bool one_split = trial % 3 == 0;
        size_t reach = one_split ? 1000 : below(b, 2) ? 1000 : 70;
        attend_args a = {.n_rows = trial % 5 ? 1 + (int)below(b, 9) : ROWS,
                         .q = q,
                         .pos = pos,
                         .pages = pages,
                         .n_kv = 1 + (int64_t)below(b, 3),
                         .head_dim = d,
                         .kv_type = types[trial % 4],
                         .scale = 0.125f};
        a.kv_head = (int64_t)below(b, (size_t)a.n_kv);
        for (int i = 0; i < PAGES; i++) pages[i] = (i * 7 + 3) % PAGES;
        char *pool = make_pool(b, &a, PAGES, trial % 10 == 9 ? 3 : 0);
        a.pool = pool;
        float *rows = mem_alloc((size_t)(ROWS * d) * 4);
        fill(b, rows, (size_t)(ROWS * d), 0);
        arm(b);
        int64_t splits = 1;
        for (int r = 0; r < a.n_rows; r++) {
            q[r] = rows + r * d;
            got[r] = OUT(b, b->got) + r * d;
            want[r] = OUT(b, b->want) + r * d;
            pos[r] = (int32_t)below(b, reach);
            if (pos[r] / KV_SPLIT + 1 > splits) splits = pos[r] / KV_SPLIT + 1;
        }
        a.split0 = one_split ? (int64_t)below(b, (size_t)splits) : 0;
        a.split1 = one_split ? a.split0 + 1 : splits;
        a.o = got;
        if (one_split) a.part = OUT(b, b->got);
        b->k->attend(&a, b->scratch);
        a.o = want;
        if (one_split) a.part = OUT(b, b->want);
        kernels_ref.attend(&a, b->scratch);
        compare(b, "attend", (size_t)(a.n_rows * (d + 2)));
        mem_free(rows);
        mem_free(pool);
    }
}

static void check_merge(bench *b)
{
    TRIALS(b, 300)
    {
        size_t d = 1 + below(b, 256);
        fill(b, b->x, d + PAD, 0);
        fill(b, b->y, d + PAD, kind);
        arm(b);
        float *got = OUT(b, b->got), *want = OUT(b, b->want), *part = b->y + 5;
        memcpy(got, b->x, d * 4);
        got[d] = value(b, 0);
        got[d + 1] = trial % 5 ? 1 + (float)below(b, 60) : 0;
        part[d] = value(b, trial % 7 ? 0 : 3);
        part[d + 1] = trial % 4 ? 1 + (float)below(b, 60) : 0;
        memcpy(want, got, (d + 2) * 4);
        b->k->merge(got, part, d);
        kernels_ref.merge(want, part, d);
        compare(b, "merge", d + 2);
    }
}

/* --- elementwise functions of the tables */

static void check_elementwise(bench *b)
{
    for (int op = 0; op < N_OPS; op++) {
        ew1_fn one = b->k->ew1[op], one_ref = kernels_ref.ew1[op];
        ew2_fn two = b->k->ew2[op], two_ref = kernels_ref.ew2[op];
        if ((one_ref && !one) || (two_ref && !two))
            fail_msg("%s has no %s", b->k->isa, op_table[op].name);
        TRIALS(b, one || two ? 60 : 0)
        {
            size_t n = size(b);
            fill(b, b->x, n + PAD, kind);
            fill(b, b->y, n + PAD, (int)below(b, 6));
            if (kind == 3) /* every exponent, both signs */
                for (size_t i = 0; i < n; i += 2)
                    b->x[b->at + i] = as_float((uint32_t)(i * 0x00c90fdb));
            arm(b);
            memcpy(OUT(b, b->got), b->x + b->at, n * 4); /* in place */
            if (one)
                one(OUT(b, b->got), OUT(b, b->got), n);
            else
                two(OUT(b, b->got), OUT(b, b->got), b->y + b->at, n);
            if (one)
                one_ref(OUT(b, b->want), b->x + b->at, n);
            else
                two_ref(OUT(b, b->want), b->x + b->at, b->y + b->at, n);
            compare(b, op_table[op].name, n);
        }
    }
}

typedef struct checker {
    const char *slot;
    void (*check)(bench *b);
} checker;

static const checker checkers[] = {
#define SLOT(ret, name, args) {#name, check_##name},
#include "array/cpu/kernels.def"
#undef SLOT
    {"elementwise", check_elementwise},
};

TEST(every_slot_of_every_table_has_the_bits_of_the_reference)
{
    bench b = {.seed = 1};
    b.scratch = mem_aligned(64, KERNEL_SCRATCH_BYTES);
    b.x = mem_alloc((MAX_N + 2 * PAD) * 4);
    b.y = mem_alloc((MAX_N + 2 * PAD) * 4);
    b.z = mem_alloc((MAX_N + 2 * PAD) * 4);
    b.got = mem_aligned(64, OUT_BYTES);
    b.want = mem_aligned(64, OUT_BYTES);
    for (const kernels *const *table = kernels_all(); *table != &kernels_ref; table++) {
        b.k = *table;
        for (size_t i = 0; i < N_ELEM(checkers); i++) {
            const char *only = getenv("SLOT");
            if (only && strcmp(only, checkers[i].slot)) continue;
            memset(b.scratch, 0xff,
                   KERNEL_SCRATCH_BYTES); /* contents are undefined: NaN shows a read */
            checkers[i].check(&b);
        }
    }
    mem_free(b.scratch);
    mem_free(b.x);
    mem_free(b.y);
    mem_free(b.z);
    mem_free(b.got);
    mem_free(b.want);
}

TEST(every_table_is_complete)
{
    for (const char *const *isa = ig_device_isas(); *isa; isa++)
        assert_string_equal(kernels_find(*isa)->isa, *isa);
    for (const kernels *const *table = kernels_all(); *table; table++) {
        const kernels *k = *table;
#define SLOT(ret, name, args) assert_non_null(k->name);
#include "array/cpu/kernels.def"
#undef SLOT
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_table_is_complete),
        CASE(every_slot_of_every_table_has_the_bits_of_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
