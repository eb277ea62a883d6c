/* sampler.c: see sampler.h for the order that this file keeps. */
#include "lm/sampler.h"
#include <math.h>
#include <string.h>
#include "base/fmath.h"
#include "base/fp.h"
#include "base/threefry.h"

#define RADIX_BITS 11
#define RADIX (1 << RADIX_BITS)
#define MIN_TEMPERATURE 1e-30f /* below, the division would overflow */

typedef struct candidate {
    uint32_t key;
    int32_t id;
} candidate;

typedef struct pick_scratch {
    float *l;         /* [vocab] adjusted logits */
    candidate *a, *b; /* [vocab] each */
    uint32_t *count;  /* [3 * RADIX] */
} pick_scratch;

static ig_status check(const ig_lm_sampling *p, int64_t vocab)
{
    const struct {
        const char *name;
        double v, lo, hi;
    } range[] = {
        {"temperature", p->temperature, 0, 100},
        {"top_k", p->top_k, 0, INT32_MAX},
        {"top_p", p->top_p, 0, 1},
        {"min_p", p->min_p, 0, 1},
        {"repetition_penalty", p->repetition_penalty, 0, 100},
        {"presence_penalty", p->presence_penalty, -100, 100},
        {"frequency_penalty", p->frequency_penalty, -100, 100},
        {"n_logprobs", p->n_logprobs, 0, IG_LM_MAX_LOGPROBS},
        {"n_bias", p->n_bias, 0, IG_LM_MAX_BIAS},
    };
    for (size_t i = 0; i < N_ELEM(range); i++)
        if (!(range[i].v >= range[i].lo && range[i].v <= range[i].hi))
            return ig_fail(IG_EINVAL, "%s: %g is not within %g and %g", range[i].name, range[i].v,
                           range[i].lo, range[i].hi);
    if (p->temperature > 0 && p->temperature < MIN_TEMPERATURE)
        return ig_fail(IG_EINVAL, "temperature: %g is above 0 and below %g; 0 is greedy",
                       (double)p->temperature, (double)MIN_TEMPERATURE);
    for (int32_t i = 0; i < p->n_bias; i++) {
        if (p->bias[i].id < 0 || p->bias[i].id >= vocab)
            return ig_fail(IG_EINVAL, "logit_bias: token %d is not in a vocabulary of %lld",
                           p->bias[i].id, (long long)vocab);
        if (!isfinite(p->bias[i].bias))
            return ig_fail(IG_EINVAL, "logit_bias: not a finite number");
    }
    return IG_OK;
}

ig_status sampler_init(const ig_lm_sampling *p, int64_t vocab, sampler *ret_sampler)
{
    sampler s = {.p = *p, .vocab = vocab};
    TRY(check(p, vocab));
    s.p.bias = NULL;
    if (p->n_bias) s.p.bias = mem_dup(p->bias, (size_t)p->n_bias * sizeof *p->bias);
    bool counted = p->presence_penalty != 0 || p->frequency_penalty != 0;
    bool repeats = p->repetition_penalty != 0 && p->repetition_penalty != 1;
    if (counted) s.n_out = mem_calloc((size_t)vocab, sizeof *s.n_out);
    if (repeats) s.seen = mem_calloc((size_t)vocab, 1);
    if ((p->n_bias && !s.p.bias) || (counted && !s.n_out) || (repeats && !s.seen)) {
        sampler_done(&s);
        return IG_ENOMEM;
    }
    *ret_sampler = s;
    return IG_OK;
}

void sampler_done(sampler *s)
{
    mem_free((void *)s->p.bias);
    mem_free(s->n_out);
    mem_free(s->seen);
    *s = (sampler){0};
}

void sampler_prompt(sampler *s, int32_t id)
{
    if (s->seen) s->seen[id] = 1;
}

void sampler_output(sampler *s, int32_t id)
{
    if (s->seen) s->seen[id] = 1;
    if (s->n_out && s->n_out[id] < UINT16_MAX) s->n_out[id]++;
}

bool sampler_is_plain(const sampler *s)
{
    return s->p.temperature == 0 && !s->p.n_bias && !s->n_out && !s->seen;
}

size_t sampler_scratch_bytes(int64_t vocab)
{
    return (size_t)vocab * (sizeof(float) + 2 * sizeof(candidate)) + 3 * RADIX * sizeof(uint32_t);
}

static pick_scratch divide(void *scratch, int64_t vocab)
{
    pick_scratch s;
    s.a = scratch;
    s.b = s.a + vocab;
    s.l = (float *)(s.b + vocab);
    s.count = (uint32_t *)(s.l + vocab);
    return s;
}

/* An integer maximum, because compilers may reorder and so vectorise it. */
bool sampler_finite(const float *logits, int64_t n)
{
    uint32_t top = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)fmath_bits(logits[i]) & 0x7fffffffu;
        top = bits > top ? bits : top;
    }
    return top < 0x7f800000u;
}

/* Bias, penalties, temperature. */
static void adjust(const sampler *s, const float *logits, float *l)
{
    const ig_lm_sampling *p = &s->p;
    memcpy(l, logits, (size_t)s->vocab * sizeof *l);
    for (int32_t i = 0; i < p->n_bias; i++) l[p->bias[i].id] += p->bias[i].bias;
    if (s->seen)
        for (int64_t i = 0; i < s->vocab; i++)
            if (s->seen[i])
                l[i] = l[i] > 0 ? l[i] / p->repetition_penalty : l[i] * p->repetition_penalty;
    if (s->n_out)
        for (int64_t i = 0; i < s->vocab; i++)
            if (s->n_out[i])
                l[i] -= fmaf(p->frequency_penalty, (float)s->n_out[i], p->presence_penalty);
    if (p->temperature > 0)
        for (int64_t i = 0; i < s->vocab; i++) l[i] = l[i] / p->temperature;
}

static int32_t argmax(const float *l, int64_t n)
{
    int32_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (l[i] > l[best]) best = (int32_t)i;
    return best;
}

/* Ascending keys are descending logits; -0 and +0 are equal. */
static uint32_t key_of(float l)
{
    uint32_t u = (uint32_t)fmath_bits(l + 0.0f);
    return ~(u >> 31 ? ~u : u | 0x80000000u);
}

static float logit_of(uint32_t key)
{
    uint32_t u = ~key;
    return fmath_of_bits((int32_t)(u >> 31 ? u & 0x7fffffffu : ~u));
}

/* The largest key that can matter. A weight below 2^-24 of the first one changes no float sum that
 * begins with it, so neither the total nor any prefix: it is never picked, since the goal is less
 * than the total. exp(-17) is less by a third, more than the subtraction rounds where logits are
 * below 2^20. */
static uint32_t last_key(const float *l, int64_t n)
{
    uint32_t first = UINT32_MAX;
    for (int64_t i = 0; i < n; i++) {
        uint32_t key = key_of(l[i]);
        first = key < first ? key : first;
    }
    float top = logit_of(first);
    return fabsf(top) < 0x1p20f ? key_of(top - 17) : UINT32_MAX;
}

/* All candidates that may be among the first k and matter: whole bins of the top key bits, so ties
 * are complete. */
static int64_t shortlist(const float *l, int64_t n, int64_t k, const pick_scratch *s)
{
    int64_t n_kept = 0, below = 0;
    uint32_t last = last_key(l, n), bin = 0;
    if (k < n) {
        memset(s->count, 0, RADIX * sizeof *s->count);
        for (int64_t i = 0; i < n; i++) s->count[key_of(l[i]) >> (32 - RADIX_BITS)]++;
        while (bin < RADIX - 1 && (below += s->count[bin]) < k) bin++;
        uint32_t end = bin << (32 - RADIX_BITS) | (UINT32_MAX >> RADIX_BITS);
        last = end < last ? end : last;
    }
    for (int64_t i = 0; i < n; i++) {
        s->a[n_kept] = (candidate){key_of(l[i]), (int32_t)i};
        n_kept += s->a[n_kept].key <= last;
    }
    return n_kept;
}

/* Stable radix sort of a by key; the result is in a or b. */
static candidate *sort_candidates(const pick_scratch *s, int64_t n)
{
    candidate *from = s->a, *to = s->b;
    memset(s->count, 0, 3 * RADIX * sizeof *s->count);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < 3; d++)
            s->count[d * RADIX + (from[i].key >> d * RADIX_BITS & (RADIX - 1))]++;
    for (int d = 0; d < 3; d++) {
        uint32_t *c = s->count + d * RADIX, at = 0;
        for (int r = 0; r < RADIX; r++) {
            uint32_t here = c[r];
            c[r] = at;
            at += here;
        }
        for (int64_t i = 0; i < n; i++)
            to[c[from[i].key >> d * RADIX_BITS & (RADIX - 1)]++] = from[i];
        candidate *t = from;
        from = to;
        to = t;
    }
    return from;
}

/* Number of candidates left by min-p, top-k and top-p; weights exp(l - l0) go to w. */
static int64_t truncate_candidates(const ig_lm_sampling *p, const candidate *c, int64_t n, float *w,
                                   float *ret_total)
{
    float l0 = logit_of(c[0].key), total = 0, sum = 0;
    int64_t kept = 0;
    if (p->top_k > 0 && p->top_k < n) n = p->top_k;
    for (; kept < n; kept++) {
        w[kept] = fmath_exp(logit_of(c[kept].key) - l0);
        if (w[kept] == 0 || w[kept] < p->min_p) break;
        total += w[kept];
    }
    if (p->top_p > 0 && p->top_p < 1) {
        float goal = p->top_p * total;
        for (int64_t i = 0; i < kept; i++)
            if ((sum += w[i]) >= goal) {
                kept = i + 1;
                total = sum;
                break;
            }
    }
    *ret_total = total;
    return kept;
}

bool sampler_pick(const sampler *s, const float *logits, uint32_t index, void *scratch,
                  int32_t *ret_id)
{
    AUTO(fp_state) fp = fp_enter();
    const ig_lm_sampling *p = &s->p;
    pick_scratch x = divide(scratch, s->vocab);
    if (!sampler_finite(logits, s->vocab)) return false;
    adjust(s, logits, x.l);
    if (!sampler_finite(x.l, s->vocab)) return false;
    if (p->temperature == 0) {
        *ret_id = argmax(x.l, s->vocab);
        return true;
    }
    int64_t k = p->top_k > 0 && p->top_k < s->vocab ? p->top_k : s->vocab;
    int64_t n = shortlist(x.l, s->vocab, k, &x);
    const candidate *c = sort_candidates(&x, n);
    float total, *w = x.l; /* the adjusted logits live on in the keys */
    n = truncate_candidates(p, c, n, w, &total);
    uint32_t bits[2];
    threefry2x32((uint32_t[]){(uint32_t)(p->seed >> 32), (uint32_t)p->seed},
                 (uint32_t[]){p->choice, index}, bits);
    float goal = (float)(bits[0] >> 8) * 0x1p-24f * total, sum = 0;
    int64_t i = 0;
    for (; i < n - 1; i++)
        if ((sum += w[i]) > goal) break;
    *ret_id = c[i].id;
    return true;
}

/* The sum order of docs/numerics.md over exp(l - max). */
static float sum_exp(const float *l, int64_t n, float max)
{
    float sum = 0;
    for (int64_t block = 0; block < n; block += 4096) {
        float part[64] = {0};
        int64_t end = block + 4096 < n ? block + 4096 : n;
        for (int64_t i = block; i < end; i++) part[i % 64] += fmath_exp(l[i] - max);
        for (int half = 32; half; half >>= 1)
            for (int i = 0; i < half; i++) part[i] += part[i + half];
        sum += part[0];
    }
    return sum;
}

void sampler_logprobs(const sampler *s, const float *logits, int32_t id, float *ret_logprob,
                      ig_lm_logprob *ret_top, int32_t *ret_n)
{
    AUTO(fp_state) fp = fp_enter();
    int32_t n = 0, want = s->p.n_logprobs;
    float max = logits[argmax(logits, s->vocab)], norm = fmath_log(sum_exp(logits, s->vocab, max));
    *ret_logprob = (logits[id] - max) - norm;
    for (int64_t i = 0; i < s->vocab && want; i++) {
        if (n == want && !(logits[i] > ret_top[n - 1].logprob)) continue;
        int32_t at = n < want ? n++ : n - 1;
        for (; at > 0 && logits[i] > ret_top[at - 1].logprob; at--) ret_top[at] = ret_top[at - 1];
        ret_top[at] = (ig_lm_logprob){(int32_t)i, logits[i]};
    }
    for (int32_t i = 0; i < n; i++) ret_top[i].logprob = (ret_top[i].logprob - max) - norm;
    *ret_n = n;
}
