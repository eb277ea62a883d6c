/* The sampler against a plain full sort, against hand-computed values, and against the distribution
 * that it claims. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/fmath.h"
#include "base/threefry.h"
#include "lm/sampler.h"
#include "support/walk.h"

#define MAX_VOCAB 3000

static uint64_t rng = 0x9E3779B97F4A7C15u;
static uint32_t below(uint32_t n)
{
    rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
    return (uint32_t)(rng >> 33) % n;
}
static float unit(void) { return (float)below(1 << 24) * 0x1p-24f; }

static void *scratch;
static int set_up(void **state)
{
    (void)state;
    scratch = malloc(sampler_scratch_bytes(MAX_VOCAB));
    return scratch ? 0 : -1;
}
static int tear_down(void **state)
{
    (void)state;
    free(scratch);
    return 0;
}

static sampler open_sampler(ig_lm_sampling p, int64_t vocab)
{
    sampler s;
    if (sampler_init(&p, vocab, &s) != IG_OK) fail_msg("%s", ig_error_message());
    return s;
}

static int32_t pick(const sampler *s, const float *logits, uint32_t index)
{
    int32_t id = -1;
    assert_true(sampler_pick(s, logits, index, scratch, &id));
    assert_true(id >= 0 && id < s->vocab);
    return id;
}

/* --- the reference: every candidate sorted by comparison, every rule as it is written down */

typedef struct row {
    float logit;
    int32_t id;
} row;

static int by_logit_then_id(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static float reference_uniform(const ig_lm_sampling *p, uint32_t index)
{
    uint32_t bits[2];
    threefry2x32((uint32_t[]){(uint32_t)(p->seed >> 32), (uint32_t)p->seed},
                 (uint32_t[]){p->choice, index}, bits);
    return (float)(bits[0] >> 8) / 16777216.0f;
}

static int32_t reference(const sampler *s, const float *logits, uint32_t index)
{
    static row rows[MAX_VOCAB];
    static float w[MAX_VOCAB];
    const ig_lm_sampling *p = &s->p;
    int64_t n = s->vocab, kept = 0;
    float total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) rows[i] = (row){logits[i], (int32_t)i};
    for (int32_t i = 0; i < p->n_bias; i++) rows[p->bias[i].id].logit += p->bias[i].bias;
    for (int64_t i = 0; i < n; i++) {
        float *l = &rows[i].logit;
        if (s->seen && s->seen[i])
            *l = *l > 0 ? *l / p->repetition_penalty : *l * p->repetition_penalty;
        if (s->n_out && s->n_out[i])
            *l -= fmaf(p->frequency_penalty, (float)s->n_out[i], p->presence_penalty);
        if (p->temperature > 0) *l /= p->temperature;
    }
    qsort(rows, (size_t)n, sizeof *rows, by_logit_then_id);
    if (p->temperature == 0) return rows[0].id;
    for (int64_t i = 0; i < n; i++) {
        float weight = fmath_exp(rows[i].logit - rows[0].logit);
        if (weight < p->min_p || weight == 0 || (p->top_k > 0 && i >= p->top_k)) break;
        w[kept++] = weight;
        total += weight;
    }
    if (p->top_p > 0 && p->top_p < 1) {
        float goal = p->top_p * total;
        int64_t all = kept;
        for (kept = 0, total = 0; kept < all && total < goal;) total += w[kept++];
    }
    float goal = reference_uniform(p, index) * total;
    for (int64_t i = 0; i < kept; i++)
        if ((sum += w[i]) > goal) return rows[i].id;
    return rows[kept - 1].id;
}

/* Logits with many exact ties and both zeros among them. */
static void random_logits(float *l, int64_t n)
{
    uint32_t kind = below(4);
    for (int64_t i = 0; i < n; i++) {
        l[i] = 20 * unit() - 10;
        if (kind == 1) l[i] = (float)below(5) - 2;
        if (kind == 2) l[i] = below(2) ? 0.0f : -0.0f;
        if (kind == 3) l[i] = -100 * (unit() * unit());
    }
}

static ig_lm_sampling random_parameters(ig_lm_bias *bias, int64_t vocab)
{
    ig_lm_sampling p = {0}; /* drawn one after another: the digest below needs one order */
    p.seed = (uint64_t)below(1 << 30) << 32;
    p.seed |= below(1 << 30);
    p.choice = below(4);
    if (below(8)) p.temperature = below(2) ? 0.7f : 0.05f + 3 * unit();
    if (!below(2)) p.top_k = 1 + (int32_t)below((uint32_t)vocab + 5);
    if (!below(2)) p.top_p = unit();
    if (!below(3)) p.min_p = unit() * unit();
    if (!below(3)) p.repetition_penalty = 0.5f + unit();
    if (!below(3)) p.presence_penalty = 2 * unit() - 1;
    if (!below(3)) p.frequency_penalty = 2 * unit() - 1;
    if (!below(3)) p.n_bias = (int32_t)below(5);
    for (int32_t i = 0; i < p.n_bias; i++)
        bias[i] = (ig_lm_bias){(int32_t)below((uint32_t)vocab), 10 * unit() - 5};
    p.bias = bias;
    return p;
}

static void picks_equal_a_full_sort_with_every_rule_in_its_place(void **state)
{
    (void)state;
    static float logits[MAX_VOCAB];
    for (int round = 0; round < 3000; round++) {
        int64_t vocab = below(10) ? 1 + below(200) : 1 + below(MAX_VOCAB);
        ig_lm_bias bias[5];
        sampler s = open_sampler(random_parameters(bias, vocab), vocab);
        for (int i = 0; i < 20; i++) sampler_prompt(&s, (int32_t)below((uint32_t)vocab));
        random_logits(logits, vocab);
        for (uint32_t index = 0; index < 5; index++) {
            int32_t got = pick(&s, logits, index), want = reference(&s, logits, index);
            if (got != want)
                fail_msg(
                    "round %d: %d, not %d (vocab %d, temperature %g, top_k %d, top_p %g, min_p %g)",
                    round, got, want, (int)vocab, (double)s.p.temperature, s.p.top_k,
                    (double)s.p.top_p, (double)s.p.min_p);
            sampler_output(&s, got);
        }
        sampler_done(&s);
    }
}

/* Weights from 1 down to where a float sum no longer feels them, and logits so large that they
 * differ by more than a weight's whole range. */
static void picks_equal_a_full_sort_where_weights_vanish(void **state)
{
    (void)state;
    static const float range[] = {9, 18, 40, 300, 0x1p22f}, top[] = {0, -1e4f, 0x1p19f, 0x1p24f};
    static float logits[MAX_VOCAB];
    for (size_t i = 0; i < N_ELEM(range) * N_ELEM(top); i++) {
        ig_lm_sampling p = {.temperature = 1, .seed = i, .top_p = i % 3 ? 0 : 0.999999f};
        sampler s = open_sampler(p, MAX_VOCAB);
        for (int k = 0; k < MAX_VOCAB; k++)
            logits[k] = top[i % N_ELEM(top)] - range[i / N_ELEM(top)] * unit();
        for (uint32_t index = 0; index < 200; index++)
            assert_int_equal(pick(&s, logits, index), reference(&s, logits, index));
        sampler_done(&s);
    }
}

static void greedy_takes_the_lowest_id_of_the_largest(void **state)
{
    (void)state;
    const float l[] = {1, 3, -0.0f, 3, 2}, zeros[] = {-0.0f, 0.0f, -0.0f};
    sampler s = open_sampler((ig_lm_sampling){0}, 5);
    assert_true(sampler_is_plain(&s));
    assert_int_equal(pick(&s, l, 0), 1);
    sampler_done(&s);
    s = open_sampler((ig_lm_sampling){.temperature = 1, .top_k = 1}, 3);
    for (uint32_t i = 0; i < 50; i++)
        assert_int_equal(pick(&s, zeros, i), 0); /* -0 and +0 are equal */
    sampler_done(&s);
}

/* With top_k, candidates tied with the last one kept lose to lower ids, never by accident of
 * order. */
static void ties_at_the_edge_of_top_k_go_to_the_lower_id(void **state)
{
    (void)state;
    float l[100];
    bool seen[100] = {false};
    for (int i = 0; i < 100; i++) l[i] = i == 70 ? 2 : 1;
    sampler s = open_sampler((ig_lm_sampling){.temperature = 1, .top_k = 4, .seed = 9}, 100);
    for (uint32_t i = 0; i < 2000; i++) seen[pick(&s, l, i)] = true;
    for (int i = 0; i < 100; i++) assert_int_equal(seen[i], i < 3 || i == 70);
    sampler_done(&s);
}

static void penalties_and_bias_give_the_values_computed_by_hand(void **state)
{
    (void)state;
    /* repetition 2: 4 -> 2, -1 -> -2; presence 0.5 and frequency 0.25: twice in the output is -1 */
    const float l[] = {4, -1, 1.9f, 1.4f};
    sampler s = open_sampler((ig_lm_sampling){.repetition_penalty = 2}, 4);
    sampler_prompt(&s, 0);
    assert_int_equal(pick(&s, l, 0), 0); /* 2 > 1.9 */
    sampler_done(&s);
    s = open_sampler((ig_lm_sampling){.repetition_penalty = 2.2f}, 4);
    sampler_prompt(&s, 0);
    assert_int_equal(pick(&s, l, 0), 2); /* 1.82 < 1.9 */
    sampler_done(&s);
    const float negative[] = {-1, -1.5f};
    s = open_sampler((ig_lm_sampling){.repetition_penalty = 1.6f}, 2);
    sampler_output(&s, 0);
    assert_int_equal(pick(&s, negative, 0), 1); /* -1.6 < -1.5: negative logits are multiplied */
    sampler_done(&s);
    s = open_sampler((ig_lm_sampling){.presence_penalty = 0.5f, .frequency_penalty = 0.25f}, 4);
    const float near[] = {3, 2.1f, 0, 0};
    sampler_prompt(&s, 0); /* the prompt does not count */
    assert_int_equal(pick(&s, near, 0), 0);
    sampler_output(&s, 0);
    assert_int_equal(pick(&s, near, 1), 0); /* 2.25 */
    sampler_output(&s, 0);
    assert_int_equal(pick(&s, near, 2), 1); /* 2.0 */
    sampler_done(&s);
    const ig_lm_bias bias[] = {{2, 1.5f}, {2, 1}, {0, -100}};
    s = open_sampler((ig_lm_sampling){.bias = bias, .n_bias = 3}, 4);
    assert_true(!sampler_is_plain(&s));
    assert_int_equal(pick(&s, l, 0), 2); /* 1.9 + 2.5, while 4 - 100 is out */
    sampler_done(&s);
}

static void truncation_keeps_exactly_the_candidates_it_should(void **state)
{
    (void)state;
    /* probabilities 1/2, 1/4, 1/8, 1/16, 1/16 */
    const float l[] = {0, -0.6931472f, -1.3862944f, -2.0794415f, -2.0794415f};
    static const struct {
        ig_lm_sampling p;
        int n_kept;
    } rows[] = {
        {{.temperature = 1}, 5},
        {{.temperature = 1, .top_k = 2}, 2},
        {{.temperature = 1, .top_p = 0.49f}, 1},
        {{.temperature = 1, .top_p = 0.74f}, 2},
        {{.temperature = 1, .top_p = 0.76f}, 3},
        {{.temperature = 1, .top_p = 1}, 5},
        {{.temperature = 1, .min_p = 0.3f}, 2},
        {{.temperature = 1, .min_p = 0.2f}, 3},
        {{.temperature = 1, .min_p = 1}, 1},
        {{.temperature = 1, .top_k = 3, .top_p = 0.9f}, 3},
        {{.temperature = 1, .top_k = 2, .top_p = 0.6f},
         1}, /* of the two that are left, 2/3 and 1/3 */
    };
    for (size_t i = 0; i < N_ELEM(rows); i++) {
        bool seen[5] = {false};
        sampler s = open_sampler(rows[i].p, 5);
        for (uint32_t k = 0; k < 3000; k++) seen[pick(&s, l, k)] = true;
        for (int k = 0; k < 5; k++)
            if (seen[k] != (k < rows[i].n_kept))
                fail_msg("row %zu: candidate %d %s", i, k, seen[k] ? "was picked" : "never was");
        sampler_done(&s);
    }
}

/* Chi-square of 200,000 draws over 20 tokens: below the 99.99 % point for 19 degrees of freedom. */
static void frequencies_are_those_of_the_softmax(void **state)
{
    (void)state;
    enum { VOCAB = 20, DRAWS = 200000 };
    float l[VOCAB];
    double p[VOCAB], sum = 0, chi = 0;
    int n[VOCAB] = {0};
    for (int i = 0; i < VOCAB; i++) l[i] = (float)((i * 7) % 11) * 0.4f;
    for (int i = 0; i < VOCAB; i++) sum += p[i] = exp((double)l[i] / 0.8);
    sampler s =
        open_sampler((ig_lm_sampling){.temperature = 0.8f, .seed = 12345, .choice = 2}, VOCAB);
    for (uint32_t i = 0; i < DRAWS; i++) n[pick(&s, l, i)]++;
    for (int i = 0; i < VOCAB; i++)
        chi += (n[i] - DRAWS * p[i] / sum) * (n[i] - DRAWS * p[i] / sum) / (DRAWS * p[i] / sum);
    print_message("chi-square %.1f\n", chi);
    assert_true(chi < 51.0);
    sampler_done(&s);
}

static void random_numbers_depend_on_seed_choice_and_index_alone(void **state)
{
    (void)state;
    float l[64] = {0};
    ig_lm_sampling p = {.temperature = 1, .seed = 42};
    sampler a = open_sampler(p, 64), b = open_sampler(p, 64);
    p.choice = 1;
    sampler c = open_sampler(p, 64);
    p.seed = 43, p.choice = 0;
    sampler d = open_sampler(p, 64);
    int same_c = 0, same_d = 0;
    for (uint32_t i = 100; i-- > 0;) { /* backwards: no hidden stream */
        int32_t x = pick(&a, l, i);
        assert_int_equal(x, pick(&b, l, i));
        assert_int_equal(x, (int32_t)(reference_uniform(&a.p, i) * 64));
        same_c += x == pick(&c, l, i);
        same_d += x == pick(&d, l, i);
    }
    assert_true(same_c < 15 && same_d < 15);
    sampler_done(&a), sampler_done(&b), sampler_done(&c), sampler_done(&d);
}

static void threefry_gives_the_published_vectors(void **state)
{
    (void)state;
    static const uint32_t v[][6] = {
        {0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
        {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7},
        {0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0},
    };
    for (size_t i = 0; i < N_ELEM(v); i++) {
        uint32_t out[2];
        threefry2x32(&v[i][0], &v[i][2], out);
        assert_true(out[0] == v[i][4] && out[1] == v[i][5]);
    }
}

static void a_logit_that_is_no_number_fails_the_row(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float l[33] = {0};
    int32_t id = -7;
    const ig_lm_sampling ways[] = {{0}, {.temperature = 1}, {.temperature = 1, .top_k = 2}};
    for (size_t w = 0; w < N_ELEM(ways); w++) {
        sampler s = open_sampler(ways[w], 33);
        for (size_t i = 0; i < N_ELEM(bad); i++)
            for (int at = 0; at < 33; at += 16) {
                l[at] = bad[i];
                assert_false(sampler_finite(l, 33));
                assert_false(sampler_pick(&s, l, 0, scratch, &id));
                l[at] = 0;
            }
        assert_true(sampler_finite(l, 33));
        l[3] = 3e38f; /* finite, but not after the division */
        if (w) {
            sampler hot = open_sampler((ig_lm_sampling){.temperature = 0.01f}, 33);
            assert_false(sampler_pick(&hot, l, 0, scratch, &id));
            sampler_done(&hot);
        }
        l[3] = 0;
        sampler_done(&s);
    }
    assert_int_equal(id, -7);
}

static void logprobs_are_of_the_raw_logits(void **state)
{
    (void)state;
    enum { VOCAB = 2500 };
    static float l[VOCAB];
    const ig_lm_bias bias = {5, 50};
    double sum = 0;
    ig_lm_logprob top[IG_LM_MAX_LOGPROBS];
    float logprob;
    int32_t n;
    for (int i = 0; i < VOCAB; i++)
        l[i] = (float)((i * 37) % 101) * 0.1f; /* the largest 25 times over */
    for (int i = 0; i < VOCAB; i++) sum += exp((double)l[i]);
    sampler s = open_sampler(
        (ig_lm_sampling){.temperature = 0.3f, .n_logprobs = 20, .bias = &bias, .n_bias = 1}, VOCAB);
    sampler_logprobs(&s, l, 5, &logprob, top, &n);
    assert_true(fabs((double)logprob - ((double)l[5] - log(sum))) < 2e-6);
    assert_int_equal(n, 20);
    for (int i = 0; i < 20; i++) {
        assert_true(l[top[i].id] == 10.0f && fabs((double)top[i].logprob - (10 - log(sum))) < 2e-6);
        if (i) assert_true(top[i].id > top[i - 1].id); /* the lower id first among equals */
    }
    sampler_done(&s);
    s = open_sampler((ig_lm_sampling){.n_logprobs = 20}, 3);
    sampler_logprobs(&s, l, 0, &logprob, top, &n);
    assert_int_equal(n, 3);
    assert_true(top[0].id == 2 && top[1].id == 1 && top[2].id == 0);
    sampler_done(&s);
}

/* A change of compiler, flags or machine that moves one pick changes it. */
static void picks_have_the_committed_digest(void **state)
{
    (void)state;
    static float l[997];
    uint32_t h = 2166136261u;
    rng = 20261129;
    for (int round = 0; round < 400; round++) {
        ig_lm_bias bias[5];
        sampler s = open_sampler(random_parameters(bias, 997), 997);
        random_logits(l, 997);
        for (uint32_t i = 0; i < 8; i++) {
            int32_t id = pick(&s, l, i);
            sampler_output(&s, id);
            h = (h ^ (uint32_t)id) * 16777619u;
        }
        sampler_done(&s);
    }
    if (h != 0x093bd562) fail_msg("digest is 0x%08x", h);
}

static void parameters_out_of_range_are_refused_by_name(void **state)
{
    (void)state;
    static const ig_lm_bias far = {10, 1}, nan_bias = {1, NAN}, below_zero = {-1, 1};
    static const struct {
        ig_lm_sampling p;
        const char *name;
    } rows[] = {
        {{.temperature = -0.1f}, "temperature"},
        {{.temperature = NAN}, "temperature"},
        {{.temperature = INFINITY}, "temperature"},
        {{.temperature = 1e-31f}, "temperature"},
        {{.top_k = -1}, "top_k"},
        {{.top_p = 1.5f}, "top_p"},
        {{.min_p = -1}, "min_p"},
        {{.repetition_penalty = -2}, "repetition_penalty"},
        {{.presence_penalty = 1000}, "presence_penalty"},
        {{.frequency_penalty = NAN}, "frequency_penalty"},
        {{.n_logprobs = 21}, "n_logprobs"},
        {{.n_bias = -1}, "n_bias"},
        {{.n_bias = IG_LM_MAX_BIAS + 1, .bias = &far}, "n_bias"},
        {{.n_bias = 1, .bias = &far}, "logit_bias"},
        {{.n_bias = 1, .bias = &nan_bias}, "logit_bias"},
        {{.n_bias = 1, .bias = &below_zero}, "logit_bias"},
    };
    for (size_t i = 0; i < N_ELEM(rows); i++) {
        sampler s = {.vocab = 77};
        assert_int_equal(sampler_init(&rows[i].p, 10, &s), IG_EINVAL);
        assert_non_null(strstr(ig_error_message(), rows[i].name));
        assert_int_equal(s.vocab, 77);
    }
}

static ig_status open_and_close(void *user)
{
    sampler s;
    TRY(sampler_init(user, 100, &s));
    sampler_done(&s);
    return IG_OK;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    const ig_lm_bias bias = {5, 1};
    ig_lm_sampling p = {
        .bias = &bias, .n_bias = 1, .repetition_penalty = 1.1f, .presence_penalty = 0.5f};
    assert_int_equal(walk_memory(open_and_close, &p), 3);
}

/* Sums of many weights: another rounding would choose another token now and then. */
static void the_callers_rounding_does_not_show(void **state)
{
    (void)state;
    static float logits[MAX_VOCAB];
    sampler s = open_sampler(
        (ig_lm_sampling){.temperature = 1.3f, .top_p = 0.9f, .seed = 5, .n_logprobs = 3},
        MAX_VOCAB);
    for (int i = 0; i < MAX_VOCAB; i++) logits[i] = unit();
    for (uint32_t index = 0; index < 300; index++) {
        float logprob[2];
        ig_lm_logprob top[2][3];
        int32_t id[2], n;
        for (int up = 0; up < 2; up++) {
            fesetround(up ? FE_UPWARD : FE_TONEAREST);
            bool picked = sampler_pick(&s, logits, index, scratch, &id[up]);
            sampler_logprobs(&s, logits, id[up], &logprob[up], top[up], &n);
            fesetround(FE_TONEAREST);
            assert_true(picked);
        }
        assert_int_equal(id[0], id[1]);
        assert_memory_equal(&logprob[0], &logprob[1], sizeof logprob[0]);
        assert_memory_equal(top[0], top[1], sizeof top[0]);
    }
    sampler_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_equal_a_full_sort_with_every_rule_in_its_place),
        cmocka_unit_test(picks_equal_a_full_sort_where_weights_vanish),
        cmocka_unit_test(greedy_takes_the_lowest_id_of_the_largest),
        cmocka_unit_test(ties_at_the_edge_of_top_k_go_to_the_lower_id),
        cmocka_unit_test(penalties_and_bias_give_the_values_computed_by_hand),
        cmocka_unit_test(truncation_keeps_exactly_the_candidates_it_should),
        cmocka_unit_test(frequencies_are_those_of_the_softmax),
        cmocka_unit_test(the_callers_rounding_does_not_show),
        cmocka_unit_test(random_numbers_depend_on_seed_choice_and_index_alone),
        cmocka_unit_test(threefry_gives_the_published_vectors),
        cmocka_unit_test(a_logit_that_is_no_number_fails_the_row),
        cmocka_unit_test(logprobs_are_of_the_raw_logits),
        cmocka_unit_test(picks_have_the_committed_digest),
        cmocka_unit_test(parameters_out_of_range_are_refused_by_name),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
