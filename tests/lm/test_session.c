/* test_session.c: sessions and steps on a small model: pages, prefixes, limits, stops, failures of
 * one that leave the others alone. */
#include "base/mem.h"
#include "ingot/device.h"
#include "lm/lm.h"
#include "support/test.h"
#include "support/tinylm.h"
#include "support/tmp.h"
#include "support/walk.h"

#define PAGE 64
#define MAX_SESSIONS 12

static char dir[TMP_PATH_N], nan_dir[TMP_PATH_N];

static int write_models(void **state)
{
    (void)state;
    tmp_open(dir);
    tmp_open(nan_dir);
    tinylm_write(dir, NULL);
    tinylm_write(nan_dir, &(tinylm_fault){.is_nan = true});
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    tmp_close(dir);
    tmp_close(nan_dir);
    return 0;
}

static ig_lm *open_lm(const char *path, int64_t kv_pages)
{
    ig_lm *lm = NULL;
    const ig_lm_options o = {.kv_tokens = PAGE * kv_pages, .max_tokens = 256, .max_outputs = 128};
    assert_ok(ig_lm_open(path, &o, &lm));
    return lm;
}

static ig_lm_facts facts(const ig_lm *lm)
{
    ig_lm_facts f;
    ig_lm_get_facts(lm, &f);
    return f;
}

/* A greedy session over a prompt that depends on seed alone. */
static ig_status begin(ig_lm *lm, uint32_t seed, int64_t n_prompt, int64_t max_new,
                       const char *tenant, ig_lm_session **ret)
{
    int32_t ids[TINYLM_CONTEXT];
    tinylm_prompt(seed, TINYLM_VOCAB, ids, n_prompt);
    ig_lm_session_spec spec = {.prompt = ids,
                               .n_prompt = n_prompt,
                               .max_new = max_new,
                               .tenant = tenant,
                               .sampling = {.ignore_stop = 1}};
    return ig_lm_session_new(lm, &spec, ret);
}

static ig_lm_result feed(ig_lm *lm, ig_lm_session *s, int32_t n)
{
    ig_lm_result r;
    assert_ok(ig_lm_step(lm, &(ig_lm_feed){s, n}, 1, &r));
    return r;
}

static ig_lm_result feed_all(ig_lm *lm, ig_lm_session *s)
{
    ig_lm_result r = {0};
    while (ig_lm_session_pending(s)) {
        int64_t n = ig_lm_session_pending(s);
        r = feed(lm, s, (int32_t)(n < 256 ? n : 256));
    }
    return r;
}

/* --- pages */

static void count_pages(const ig_lm *lm, ig_lm_session *const *s, int n)
{
    bool held[1024] = {false};
    int64_t n_held = 0;
    for (int i = 0; i < n; i++)
        for (int32_t k = 0; s[i] && k < s[i]->n_pages; k++) held[s[i]->page[k]] = true;
    for (int i = 0; i < 1024; i++) n_held += held[i];
    assert_int_equal(facts(lm).kv_pages_free, facts(lm).kv_pages - n_held);
}

static void step_some(ig_lm *lm, ig_lm_session *const *s, unsigned *seed)
{
    ig_lm_feed feeds[MAX_SESSIONS];
    ig_lm_result results[MAX_SESSIONS];
    int32_t n = 0;
    for (int i = 0; i < MAX_SESSIONS; i++) {
        int64_t pending = s[i] ? ig_lm_session_pending(s[i]) : 0;
        int64_t some = 1 + rand_r(seed) % 20;
        if (pending) feeds[n++] = (ig_lm_feed){s[i], (int32_t)(some < pending ? some : pending)};
    }
    if (n) assert_ok(ig_lm_step(lm, feeds, n, results));
}

TEST(pages_are_accounted_exactly_whatever_joins_steps_and_leaves)
{
    static const char *const tenants[] = {NULL, "a", "b"};
    ig_lm *lm = open_lm(dir, 20);
    ig_lm_session *s[MAX_SESSIONS] = {NULL};
    unsigned seed = 1;
    int n_busy = 0, n_shared = 0;
    for (int turn = 0; turn < 600; turn++) {
        int i = rand_r(&seed) % MAX_SESSIONS;
        if (s[i]) {
            ig_lm_session_free(s[i]);
            s[i] = NULL;
        } else {
            int64_t n_prompt = 1 + rand_r(&seed) % 300, max_new = 1 + rand_r(&seed) % 100;
            ig_status st = begin(lm, (uint32_t)rand_r(&seed) % 3, n_prompt, max_new,
                                 tenants[rand_r(&seed) % 3], &s[i]);
            if (st != IG_EBUSY) assert_ok(st);
            n_busy += st == IG_EBUSY;
            n_shared += st == IG_OK && ig_lm_session_cached(s[i]) > 0;
        }
        if (turn % 2) step_some(lm, s, &seed);
        count_pages(lm, s, MAX_SESSIONS);
    }
    assert_true(n_busy > 20 && n_shared > 20);
    for (int i = 0; i < MAX_SESSIONS; i++) ig_lm_session_free(s[i]);
    assert_int_equal(facts(lm).kv_pages_free, 20);
    ig_lm_close(lm);
}

TEST(a_pool_that_is_full_says_busy_until_a_session_is_freed)
{
    ig_lm *lm = open_lm(dir, 4);
    ig_lm_session *a = NULL, *b = NULL, *c = NULL;
    assert_ok(begin(lm, 1, 100, 28, NULL, &a));
    assert_ok(begin(lm, 2, 60, 4, NULL, &b));
    assert_fails(begin(lm, 3, 60, 69, NULL, &c), IG_EBUSY, "3 KV pages needed, 1 of 4 free");
    assert_null(c);
    ig_lm_session_free(a);
    assert_ok(begin(lm, 3, 60, 69, NULL, &c));
    ig_lm_session_free(b);
    ig_lm_session_free(c);
    ig_lm_close(lm);
}

/* --- prefixes */

TEST(a_prefix_is_shared_within_a_tenant_and_with_nobody_else)
{
    static const char *const tenants[] = {NULL, "", "a", "b"};
    ig_lm *lm = open_lm(dir, 32);
    ig_lm_session *s = NULL;
    for (int i = 0; i < 4; i++) {
        assert_ok(begin(lm, 1, 200, 4, tenants[i], &s));
        assert_int_equal(ig_lm_session_cached(s), 0);
        feed_all(lm, s);
        ig_lm_session_free(s);
    }
    for (int i = 0; i < 4; i++) {
        assert_ok(begin(lm, 1, 200, 4, tenants[i], &s));
        assert_int_equal(ig_lm_session_cached(s), 3 * PAGE);
        ig_lm_session_free(s);
    }
    ig_lm_close(lm);
}

TEST(pages_are_shared_while_their_first_owner_still_runs)
{
    ig_lm *lm = open_lm(dir, 16);
    ig_lm_session *a = NULL, *b = NULL;
    assert_ok(begin(lm, 1, 200, 50, "t", &a));
    feed(lm, a, 130);
    assert_ok(begin(lm, 1, 200, 50, "t", &b));
    assert_int_equal(ig_lm_session_cached(b), 2 * PAGE);
    assert_int_equal(facts(lm).kv_pages_free, 16 - 4 - 2);
    ig_lm_session_free(a);
    assert_int_equal(facts(lm).kv_pages_free, 16 - 4);
    assert_true(feed_all(lm, b).finish == IG_LM_LENGTH);
    ig_lm_session_free(b);
    ig_lm_close(lm);
}

TEST(an_answer_that_becomes_prompt_is_shared_and_changes_no_bit)
{
    ig_lm *lm = open_lm(dir, 32);
    ig_lm_session *a = NULL, *b = NULL;
    int32_t ids[260];
    int64_t n;
    assert_ok(begin(lm, 1, 60, 200, "t", &a));
    feed_all(lm, a);
    tinylm_prompt(1, TINYLM_VOCAB, ids, 60);
    memcpy(ids + 60, ig_lm_session_output(a, &n), 199 * sizeof *ids);
    int32_t last = ig_lm_session_output(a, &n)[199];
    ig_lm_session_free(a);
    ig_lm_session_spec spec = {.prompt = ids, .n_prompt = 259, .max_new = 1, .tenant = "t"};
    assert_ok(ig_lm_session_new(lm, &spec, &b));
    assert_int_equal(ig_lm_session_cached(b), 4 * PAGE);
    assert_int_equal(feed_all(lm, b).token, last);
    ig_lm_session_free(b);
    ig_lm_close(lm);
}

TEST(without_a_prefix_cache_nothing_is_shared)
{
    ig_lm *lm = NULL;
    ig_lm_session *s = NULL;
    assert_ok(ig_lm_open(dir, &(ig_lm_options){.no_prefix_cache = 1}, &lm));
    for (int i = 0; i < 2; i++) {
        assert_ok(begin(lm, 1, 200, 4, NULL, &s));
        assert_int_equal(ig_lm_session_cached(s), 0);
        feed_all(lm, s);
        ig_lm_session_free(s);
    }
    assert_int_equal(facts(lm).kv_pages_cached, 0);
    ig_lm_close(lm);
}

/* --- limits */

TEST(what_can_never_fit_is_refused_with_the_numbers)
{
    ig_lm *lm = open_lm(dir, 4);
    ig_lm_session *s = NULL;
    assert_fails(ig_lm_fits(lm, 0, 1), IG_EINVAL, "prompt is empty");
    assert_fails(ig_lm_fits(lm, 1, 0), IG_EINVAL, "max_new 0");
    assert_fails(ig_lm_fits(lm, 400, 113), IG_ELIMIT, "400 prompt tokens and 113 to generate");
    assert_fails(ig_lm_fits(lm, INT64_MAX, INT64_MAX), IG_ELIMIT, "context of 512");
    assert_fails(ig_lm_fits(lm, 200, 57), IG_ELIMIT, "257 tokens need 5 KV pages, the pool has 4");
    assert_ok(ig_lm_fits(lm, 200, 56));
    assert_fails(begin(lm, 1, 200, 57, NULL, &s), IG_ELIMIT, "257 tokens");
    const int32_t wrong[] = {1, TINYLM_VOCAB, -1};
    ig_lm_session_spec spec = {.prompt = wrong, .n_prompt = 2, .max_new = 1};
    assert_fails(ig_lm_session_new(lm, &spec, &s), IG_EINVAL, "prompt token 1 is 300");
    spec.prompt = NULL;
    assert_fails(ig_lm_session_new(lm, &spec, &s), IG_EINVAL, "no prompt");
    spec = (ig_lm_session_spec){
        .prompt = wrong, .n_prompt = 1, .max_new = 1, .sampling = {.top_p = 1.5f}};
    assert_fails(ig_lm_session_new(lm, &spec, &s), IG_EINVAL, "top_p");
    assert_null(s);
    assert_int_equal(facts(lm).kv_pages_free, 4);
    ig_lm_close(lm);
}

TEST(steps_that_cannot_be_are_refused_and_move_nobody)
{
    ig_lm *lm = open_lm(dir, 32), *other = open_lm(dir, 4);
    ig_lm_session *a = NULL, *b = NULL, *foreign = NULL;
    ig_lm_result r[4];
    int32_t ids[200];
    assert_ok(begin(lm, 1, 300, 4, NULL, &a));
    assert_ok(begin(other, 1, 10, 4, NULL, &foreign));
    tinylm_prompt(2, TINYLM_VOCAB, ids, 200);
    ig_lm_session_spec spec = {.prompt = ids, .n_prompt = 200, .max_new = 1, .all_logits = 1};
    assert_ok(ig_lm_session_new(lm, &spec, &b));
    const ig_lm_feed none = {a, 0}, many = {a, 301}, most = {a, 257}, rows = {b, 129};
    const ig_lm_feed twice[] = {{a, 1}, {b, 1}, {a, 1}}, wide[] = {{a, 200}, {b, 57}};
    assert_fails(ig_lm_step(lm, &none, 0, r), IG_ELIMIT, "1 to 64 sessions, not 0");
    assert_fails(ig_lm_step(lm, &none, 1, r), IG_EINVAL, "0 tokens, the session has 300");
    assert_fails(ig_lm_step(lm, &many, 1, r), IG_EINVAL, "301 tokens");
    assert_fails(ig_lm_step(lm, &most, 1, r), IG_ELIMIT, "at most 256 tokens");
    assert_fails(ig_lm_step(lm, &rows, 1, r), IG_ELIMIT, "at most 128 rows");
    assert_fails(ig_lm_step(lm, twice, 3, r), IG_EINVAL, "feeds 0 and 2 are of one session");
    assert_fails(ig_lm_step(lm, wide, 2, r), IG_ELIMIT, "at most 256 tokens");
    assert_fails(ig_lm_step(lm, &(ig_lm_feed){foreign, 1}, 1, r), IG_EINVAL, "another model");
    assert_int_equal(ig_lm_session_pending(a), 300);
    assert_int_equal(ig_lm_session_pending(b), 200);
    ig_lm_session_free(a);
    ig_lm_session_free(b);
    ig_lm_session_free(foreign);
    ig_lm_close(lm);
    ig_lm_close(other);
}

/* --- ends */

TEST(a_stop_token_ends_a_session_unless_it_is_to_be_ignored)
{
    static const ig_lm_bias wish = {TINYLM_EOS, 1000};
    ig_lm *lm = open_lm(dir, 8);
    const int32_t ids[] = {5, 6, 8};
    int64_t n;
    for (int ignore = 0; ignore < 2; ignore++) {
        ig_lm_session *s = NULL;
        ig_lm_session_spec spec = {.prompt = ids,
                                   .n_prompt = 3,
                                   .max_new = 4,
                                   .sampling = {.bias = &wish, .n_bias = 1, .ignore_stop = ignore}};
        assert_ok(ig_lm_session_new(lm, &spec, &s));
        ig_lm_result r = feed_all(lm, s);
        assert_int_equal(r.token, TINYLM_EOS);
        assert_int_equal(r.finish, ignore ? IG_LM_LENGTH : IG_LM_STOP);
        ig_lm_session_output(s, &n);
        assert_int_equal(n, ignore ? 4 : 1);
        assert_fails(ig_lm_step(lm, &(ig_lm_feed){s, 1}, 1, &r), IG_EINVAL, "0 pending");
        ig_lm_session_free(s);
    }
    assert_true(ig_lm_is_stop(lm, TINYLM_EOS));
    assert_false(ig_lm_is_stop(lm, 5));
    ig_lm_close(lm);
}

TEST(logits_that_are_not_finite_fail_their_session_and_no_other)
{
    ig_lm *lm = open_lm(nan_dir, 16);
    ig_lm_session *alone = NULL, *with = NULL, *broken = NULL, *every = NULL;
    const int32_t bad[] = {5, TINYLM_NAN, 9, 9};
    int64_t n;
    ig_lm_session_spec spec = {.prompt = bad, .n_prompt = 4, .max_new = 8};
    assert_ok(begin(lm, 1, 40, 8, "x", &alone));
    feed_all(lm, alone);
    assert_ok(begin(lm, 1, 40, 8, "y", &with));
    assert_ok(ig_lm_session_new(lm, &spec, &broken));
    spec.all_logits = 1;
    assert_ok(ig_lm_session_new(lm, &spec, &every));
    const ig_lm_feed feeds[] = {{broken, 4}, {with, 40}, {every, 2}};
    ig_lm_result r[3];
    assert_ok(ig_lm_step(lm, feeds, 3, r));
    assert_int_equal(r[0].finish, IG_LM_FAILED);
    assert_int_equal(r[0].token, -1);
    assert_int_equal(r[1].finish, IG_LM_RUNNING);
    assert_int_equal(r[2].finish, IG_LM_FAILED);
    assert_int_equal(ig_lm_session_pending(broken), 0);
    feed_all(lm, with);
    assert_memory_equal(ig_lm_session_output(with, &n), ig_lm_session_output(alone, &n),
                        8 * sizeof(int32_t));
    ig_lm_session *const all[] = {alone, with, broken, every};
    for (int i = 0; i < 4; i++) ig_lm_session_free(all[i]);
    assert_int_equal(facts(lm).kv_pages_free, 16);
    ig_lm_close(lm);
}

TEST(log_probabilities_come_with_the_token)
{
    ig_lm *lm = open_lm(dir, 8);
    const int32_t ids[] = {5, 6, 8};
    ig_lm_session *s = NULL;
    ig_lm_session_spec spec = {
        .prompt = ids, .n_prompt = 3, .max_new = 1, .sampling = {.n_logprobs = 3}};
    assert_ok(ig_lm_session_new(lm, &spec, &s));
    ig_lm_result r = feed_all(lm, s);
    assert_int_equal(r.n_top, 3);
    assert_int_equal(r.top[0].id, r.token);
    assert_true(r.logprob == r.top[0].logprob && r.logprob < 0);
    assert_true(r.top[0].logprob >= r.top[1].logprob && r.top[1].logprob >= r.top[2].logprob);
    ig_lm_session_free(s);
    ig_lm_close(lm);
}

/* --- failing allocations */

static ig_status make_session(void *user)
{
    static const ig_lm_bias bias = {1, 1};
    int32_t ids[200];
    ig_lm_session *s = NULL;
    tinylm_prompt(4, TINYLM_VOCAB, ids, 200);
    ig_lm_session_spec spec = {.prompt = ids, .n_prompt = 200, .max_new = 10};
    spec.sampling = (ig_lm_sampling){
        .repetition_penalty = 1.2f, .presence_penalty = 0.5f, .bias = &bias, .n_bias = 1};
    ig_status st = ig_lm_session_new(user, &spec, &s);
    ig_lm_session_free(s);
    return st;
}

TEST(a_session_that_finds_no_memory_leaves_nothing)
{
    ig_lm *lm = open_lm(dir, 8);
    assert_true(walk_memory(make_session, lm) >= 6);
    assert_int_equal(facts(lm).kv_pages_free, 8);
    ig_lm_close(lm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(pages_are_accounted_exactly_whatever_joins_steps_and_leaves),
        CASE(a_pool_that_is_full_says_busy_until_a_session_is_freed),
        CASE(a_prefix_is_shared_within_a_tenant_and_with_nobody_else),
        CASE(pages_are_shared_while_their_first_owner_still_runs),
        CASE(an_answer_that_becomes_prompt_is_shared_and_changes_no_bit),
        CASE(without_a_prefix_cache_nothing_is_shared),
        CASE(what_can_never_fit_is_refused_with_the_numbers),
        CASE(steps_that_cannot_be_are_refused_and_move_nobody),
        CASE(a_stop_token_ends_a_session_unless_it_is_to_be_ignored),
        CASE(logits_that_are_not_finite_fail_their_session_and_no_other),
        CASE(log_probabilities_come_with_the_token),
        CASE(a_session_that_finds_no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, write_models, remove_models);
}
