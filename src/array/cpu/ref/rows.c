/* rows.c: reductions and normalisations of one contiguous row, in sum order. */
#include <math.h>
#include <string.h>
#include "array/cpu/ref/ref.h"
#include "base/fmath.h"

float ref_fold(float partial[SUM_LANES])
{
    for (int half = SUM_LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) partial[i] += partial[i + half];
    return partial[0];
}

/* One sum in sum order: `step` adds element i to the partial p. */
#define SUM_ORDER(total, n, step)                                     \
    for (size_t block = 0; block < (n); block += SUM_BLOCK) {         \
        size_t end = (n)-block < SUM_BLOCK ? (n) : block + SUM_BLOCK; \
        float partial[SUM_LANES] = {0};                               \
        for (size_t i = block; i < end; i++) {                        \
            float *p = partial + i % SUM_LANES;                       \
            step;                                                     \
        }                                                             \
        total += ref_fold(partial);                                   \
    }

float ref_sum(const float *x, size_t n)
{
    float total = 0;
    SUM_ORDER(total, n, *p += x[i])
    return total;
}

float ref_sumsq(const float *x, size_t n)
{
    float total = 0;
    SUM_ORDER(total, n, *p = fmaf(x[i], x[i], *p))
    return total;
}

float ref_dot(const float *x, const float *y, size_t n)
{
    float total = 0;
    SUM_ORDER(total, n, *p = fmaf(x[i], y[i], *p))
    return total;
}

float ref_max(const float *x, size_t n)
{
    float m = x[0];
    for (size_t i = 1; i < n; i++) m = m != m ? m : m > x[i] ? m : x[i];
    return m + 0.0f; /* -0 becomes +0: which zero came first must not show */
}

int64_t ref_argmax(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
    return (int64_t)best;
}

void ref_rms_norm(float *y, const float *x, const float *w, float eps, size_t n)
{
    float inv = 1.0f / sqrtf(ref_sumsq(x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++) {
        float t = x[i] * inv;
        y[i] = w ? t * w[i] : t;
    }
}

void ref_layer_norm(float *y, const float *x, const float *w, const float *b, float eps, size_t n)
{
    float mean = ref_sum(x, n) / (float)n, total = 0;
    SUM_ORDER(total, n, *p = fmaf(x[i] - mean, x[i] - mean, *p))
    float inv = 1.0f / sqrtf(total / (float)n + eps);
    for (size_t i = 0; i < n; i++) {
        float t = (x[i] - mean) * inv;
        y[i] = fmaf(t, w ? w[i] : 1.0f, b ? b[i] : -0.0f);
    }
}

void ref_softmax(float *y, const float *x, size_t n)
{
    if (!n) return;
    float m = ref_max(x, n);
    if (m == -INFINITY) {
        memset(y, 0, n * sizeof *y);
        return;
    }
    for (size_t i = 0; i < n; i++) y[i] = fmath_exp(x[i] - m);
    float total = ref_sum(y, n);
    for (size_t i = 0; i < n; i++) y[i] = y[i] / total;
}

float ref_logsumexp(const float *x, size_t n)
{
    float m = n ? ref_max(x, n) : -INFINITY, total = 0;
    if (m == -INFINITY || m == INFINITY) return m;
    SUM_ORDER(total, n, *p += fmath_exp(x[i] - m))
    return m + fmath_log(total);
}

void ref_rope(float *y, const float *x, const float *cos, const float *sin, size_t half,
              bool interleaved)
{
    size_t next = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    for (size_t i = 0; i < half; i++) {
        float a = x[i * next], b = x[i * next + apart];
        y[i * next] = fmaf(-b, sin[i], a * cos[i]);
        y[i * next + apart] = fmaf(a, sin[i], b * cos[i]);
    }
}
