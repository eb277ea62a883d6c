/* rows.c: reductions and normalisations of one contiguous row, in sum order. y may be x; any n, any
 * alignment. Cost: a pass for each reduction and one for the result; a row should fit in L2. */
#include "array/cpu/vec/vec_kernels.h"

float K(sum)(const float *x, size_t n) { return sum_row(TERM_X, x, NULL, 0, n); }
float K(sumsq)(const float *x, size_t n) { return sum_row(TERM_XX, x, NULL, 0, n); }
float K(dot)(const float *x, const float *y, size_t n) { return sum_row(TERM_XY, x, y, 0, n); }

float K(max)(const float *x, size_t n)
{
    vf low = vf_set(-INFINITY), m0 = low, m1 = low;
    size_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        m0 = vf_max(vf_load(x + i), m0);
        m1 = vf_max(vf_load(x + i + VF_N), m1);
    }
    for (; i + VF_N <= n; i += VF_N) m0 = vf_max(vf_load(x + i), m0);
    if (i < n) m1 = vf_max(vf_select(vm_first(n - i), vf_loadn(x + i, n - i), low), m1);
    return vf_hmax(vf_max(m0, m1)) + 0.0f; /* -0 becomes +0: which zero came first must not show */
}

/* Largest of n numbers, NaN passed over; -inf if there is no number. */
VEC_FN float top_number(const float *x, size_t n)
{
    vf low = vf_set(-INFINITY), m0 = low, m1 = low;
    size_t i = 0;
    for (; i + 2 * VF_N <= n; i += 2 * VF_N) {
        m0 = vf_greater(vf_load(x + i), m0);
        m1 = vf_greater(vf_load(x + i + VF_N), m1);
    }
    for (; i + VF_N <= n; i += VF_N) m0 = vf_greater(vf_load(x + i), m0);
    if (i < n) m1 = vf_greater(vf_select(vm_first(n - i), vf_loadn(x + i, n - i), low), m1);
    return vf_hmax(vf_max(m0, m1));
}

int64_t K(argmax)(const float *x, size_t n)
{
    float top = top_number(x, n);
    vf t = vf_set(top);
    size_t i = 0;
    while (i + VF_N <= n && !vm_any(vf_eq(vf_load(x + i), t))) i += VF_N;
    for (; i < n; i++)
        if (x[i] == top) return (int64_t)i;
    return 0; /* NaN only */
}

void K(rms_norm)(float *y, const float *x, const float *w, float eps, size_t n)
{
    float inv = 1.0f / sqrtf(sum_row(TERM_XX, x, NULL, 0, n) / (float)n + eps);
    vf r = vf_set(inv), one = vf_set(1); /* a product with 1 changes nothing */
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N)
        vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), r), w ? vf_load(w + i) : one));
    if (i < n) {
        vf v = vf_mul(vf_loadn(x + i, n - i), r);
        vf_storen(y + i, n - i, vf_mul(v, w ? vf_loadn(w + i, n - i) : one));
    }
}

void K(layer_norm)(float *y, const float *x, const float *w, const float *b, float eps, size_t n)
{
    float mean = sum_row(TERM_X, x, NULL, 0, n) / (float)n;
    float inv = 1.0f / sqrtf(sum_row(TERM_DEV, x, NULL, mean, n) / (float)n + eps);
    vf r = vf_set(inv), mv = vf_set(mean), one = vf_set(1), nothing = vf_set(-0.0f);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf t = vf_mul(vf_sub(vf_load(x + i), mv), r);
        vf_store(y + i, vf_fma(t, w ? vf_load(w + i) : one, b ? vf_load(b + i) : nothing));
    }
    if (i < n) {
        size_t k = n - i;
        vf t = vf_mul(vf_sub(vf_loadn(x + i, k), mv), r);
        vf bv = b ? vf_loadn(b + i, k) : nothing;
        vf_storen(y + i, k, vf_fma(t, w ? vf_loadn(w + i, k) : one, bv));
    }
}

void K(softmax)(float *y, const float *x, size_t n)
{
    if (!n) return;
    float m = K(max)(x, n);
    if (m == -INFINITY) {
        memset(y, 0, n * sizeof *y);
        return;
    }
    vf mv = vf_set(m);
    size_t i = 0;
    for (; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_exp(vf_sub(vf_load(x + i), mv)));
    if (i < n) vf_storen(y + i, n - i, vf_exp(vf_sub(vf_loadn(x + i, n - i), mv)));
    vf total = vf_set(sum_row(TERM_X, y, NULL, 0, n));
    for (i = 0; i + VF_N <= n; i += VF_N) vf_store(y + i, vf_div(vf_load(y + i), total));
    if (i < n) vf_storen(y + i, n - i, vf_div(vf_loadn(y + i, n - i), total));
}

float K(logsumexp)(const float *x, size_t n)
{
    float m = n ? K(max)(x, n) : -INFINITY;
    if (m == -INFINITY || m == INFINITY) return m;
    return m + fmath_log(sum_row(TERM_EXP, x, NULL, m, n));
}

/* Halves apart are two streams; interleaved pairs are rare (GPT-J's layout) and go one by one. */
void K(rope)(float *y, const float *x, const float *cos, const float *sin, size_t half,
             bool interleaved)
{
    size_t i = 0, gap = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    for (; !interleaved && i + VF_N <= half; i += VF_N) {
        vf a = vf_load(x + i), b = vf_load(x + half + i), c = vf_load(cos + i),
           s = vf_load(sin + i);
        vf_store(y + i, vf_fma(vf_sub(vf_set(-0.0f), b), s, vf_mul(a, c)));
        vf_store(y + half + i, vf_fma(a, s, vf_mul(b, c)));
    }
    for (; i < half; i++) {
        float a = x[i * gap], b = x[i * gap + apart];
        y[i * gap] = __builtin_fmaf(-b, sin[i], a * cos[i]);
        y[i * gap + apart] = __builtin_fmaf(a, sin[i], b * cos[i]);
    }
}
