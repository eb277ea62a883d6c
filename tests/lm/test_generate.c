/* test_generate.c: prompts, text streams, the simple way to an answer, known answers. */
#include "ingot/device.h"
#include "lm/lm.h"
#include "support/test.h"
#include "support/tinylm.h"
#include "support/tmp.h"
#include "support/walk.h"

static char dir[TMP_PATH_N];
static ig_lm *lm;

static int open_model(void **state)
{
    (void)state;
    tmp_open(dir);
    tinylm_write(dir, NULL);
    return ig_lm_open(dir, NULL, &lm) == IG_OK ? 0 : -1;
}

static int close_model(void **state)
{
    (void)state;
    ig_lm_close(lm);
    tmp_close(dir);
    return 0;
}

typedef struct sink {
    char text[4096];
    size_t n;
    int calls_left; /* then it says stop */
} sink;

static bool collect(void *user, const char *text, size_t n)
{
    sink *s = user;
    assert_true(n > 0 && s->n + n < sizeof s->text);
    memcpy(s->text + s->n, text, n);
    s->n += n;
    return s->calls_left-- > 0;
}

static ig_lm_prompt *prompt_of(const char *text)
{
    ig_lm_prompt *p = NULL;
    assert_ok(ig_lm_prompt_text(lm, text, strlen(text), 0, &p));
    return p;
}

TEST(generated_text_is_what_the_tokens_of_a_session_mean)
{
    ig_lm_prompt *p = prompt_of("Where to?");
    const ig_lm_sampling sampling = {.temperature = 1, .seed = 3, .ignore_stop = 1};
    sink s = {.calls_left = 1000};
    ig_lm_finish finish;
    assert_ok(ig_lm_generate(lm, p, &sampling, 60, collect, &s, &finish));
    assert_int_equal(finish, IG_LM_LENGTH);
    ig_lm_session_spec spec = {.max_new = 60, .sampling = sampling};
    spec.prompt = ig_lm_prompt_ids(p, &spec.n_prompt);
    assert_int_equal(spec.n_prompt, 9);
    ig_lm_session *session = NULL;
    ig_lm_result r;
    assert_ok(ig_lm_session_new(lm, &spec, &session));
    while (ig_lm_session_pending(session))
        assert_ok(ig_lm_step(lm, &(ig_lm_feed){session, 1}, 1, &r));
    int64_t n;
    size_t n_text;
    char text[4096];
    const int32_t *ids = ig_lm_session_output(session, &n);
    assert_ok(ig_lm_detokenize(lm, ids, n, text, sizeof text, &n_text));
    assert_int_equal(s.n, n_text);
    assert_memory_equal(s.text, text, n_text);
    ig_lm_session_free(session);
    ig_lm_prompt_free(p);
}

TEST(a_caller_who_wants_no_more_text_gets_cancelled)
{
    ig_lm_prompt *p = prompt_of("Go");
    const ig_lm_sampling sampling = {.ignore_stop = 1};
    sink s = {.calls_left = 0};
    ig_lm_finish finish = IG_LM_RUNNING;
    ig_lm_facts before, after;
    ig_lm_get_facts(lm, &before);
    assert_fails(ig_lm_generate(lm, p, &sampling, 60, collect, &s, &finish), IG_ECANCELLED, "stop");
    ig_lm_get_facts(lm, &after);
    assert_int_equal(finish, IG_LM_RUNNING);
    assert_int_equal(after.kv_pages_free, before.kv_pages_free);
    ig_lm_prompt_free(p);
}

TEST(without_a_maximum_an_answer_may_fill_the_context)
{
    ig_lm_prompt *p = prompt_of("Fill");
    const ig_lm_sampling sampling = {.ignore_stop = 1, .temperature = 2, .seed = 1};
    sink s = {.calls_left = 10000};
    ig_lm_finish finish;
    ig_lm_step_stats before, after;
    ig_lm_get_step_stats(lm, &before);
    assert_ok(ig_lm_generate(lm, p, &sampling, 0, collect, &s, &finish));
    ig_lm_get_step_stats(lm, &after);
    assert_int_equal(finish, IG_LM_LENGTH);
    assert_int_equal(after.n_outputs - before.n_outputs, TINYLM_CONTEXT - 4);
    ig_lm_prompt_free(p);
}

TEST(a_prompt_that_fills_the_context_is_refused)
{
    int32_t ids[TINYLM_CONTEXT];
    ig_lm_prompt *p = NULL;
    sink s = {.calls_left = 1};
    ig_lm_finish finish;
    tinylm_prompt(1, TINYLM_VOCAB, ids, TINYLM_CONTEXT);
    assert_ok(ig_lm_prompt_tokens(lm, ids, TINYLM_CONTEXT, &p));
    assert_fails(ig_lm_generate(lm, p, NULL, 0, collect, &s, &finish), IG_ELIMIT,
                 "512 prompt tokens and 1 to generate exceed the context of 512");
    ig_lm_prompt_free(p);
    ids[3] = TINYLM_VOCAB;
    assert_fails(ig_lm_prompt_tokens(lm, ids, 5, &p), IG_EINVAL, "prompt token 3 is 300");
}

TEST(a_model_without_a_template_says_so)
{
    ig_lm_prompt *p = NULL;
    const char text[] = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    assert_fails(ig_lm_prompt_chat(lm, text, strlen(text), NULL, &p), IG_EUNSUPPORTED,
                 "no chat template");
}

TEST(known_answers_depend_on_the_arithmetic_and_on_nothing_else)
{
    ig_lm_kat first, again;
    ig_lm *exact = NULL;
    assert_ok(ig_device_set_threads(2));
    assert_ok(ig_lm_known_answer(lm, &first));
    assert_ok(ig_device_set_threads(1));
    assert_ok(ig_lm_known_answer(lm, &again));
    assert_memory_equal(&first, &again, sizeof first);
    const ig_lm_options o = {.arithmetic = IG_LM_EXACT, .context = 64, .max_tokens = 5};
    assert_ok(ig_lm_open(dir, &o, &exact));
    assert_ok(ig_lm_known_answer(exact, &again));
    assert_memory_not_equal(first.logits_sha256, again.logits_sha256, sizeof again.logits_sha256);
    ig_lm_close(exact);
    assert_ok(ig_lm_open(dir, &(ig_lm_options){.context = 32}, &exact));
    assert_fails(ig_lm_known_answer(exact, &again), IG_EINVAL, "a context of 40 tokens");
    ig_lm_close(exact);
}

static ig_status generate(void *user)
{
    sink s = {.calls_left = 1000};
    ig_lm_finish finish;
    return ig_lm_generate(lm, user, NULL, 4, collect, &s, &finish);
}

static ig_status make_prompt(void *user)
{
    ig_lm_prompt *p = NULL;
    ig_status s = ig_lm_prompt_text(lm, user, strlen(user), IG_LM_ADD_SPECIAL, &p);
    ig_lm_prompt_free(p);
    return s;
}

TEST(answers_and_prompts_that_find_no_memory_leave_nothing)
{
    static char text[] = "some words, in a row";
    ig_lm_prompt *p = prompt_of(text);
    assert_ok(generate(p));
    assert_true(walk_memory(generate, p) >= 5);
    assert_true(walk_memory(make_prompt, text) >= 3);
    ig_lm_prompt_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(generated_text_is_what_the_tokens_of_a_session_mean),
        CASE(a_caller_who_wants_no_more_text_gets_cancelled),
        CASE(without_a_maximum_an_answer_may_fill_the_context),
        CASE(a_prompt_that_fills_the_context_is_refused),
        CASE(a_model_without_a_template_says_so),
        CASE(known_answers_depend_on_the_arithmetic_and_on_nothing_else),
        CASE(answers_and_prompts_that_find_no_memory_leave_nothing),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
