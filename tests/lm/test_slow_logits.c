/* test_slow_logits.c: SmolLM2-135M against transformers in float32 on the same dequantised weights:
 * 20 prompts, every position (tests/golden/lm/logits.txt, made by golden/scripts/make_logits.py).
 * Distances are fractions of the prompt's logit range. */
#include <math.h>
#include "ingot/lm.h"
#include "support/demomodel.h"
#include "support/test.h"

#define MAX_IDS 128
#define MAX_LINE 8192
#define N_GREEDY 16
#define N_PROMPTS 20

/* One session over one prompt, and the worst distance of all. */
typedef struct checker {
    ig_lm *lm;
    int64_t vocab;
    ig_lm_session *s;
    int32_t ids[MAX_IDS], made[MAX_IDS];
    int n_ids, n_made;
    double range, worst;
    const float *rows; /* [n_ids, vocab], valid until the next step */
    int n_prompts, n_positions;
} checker;

static int read_ids(const char *text, int32_t *ids)
{
    int n = 0;
    char *end;
    for (long v = strtol(text, &end, 10); end != text; text = end, v = strtol(text, &end, 10)) {
        assert_true(n < MAX_IDS);
        ids[n++] = (int32_t)v;
    }
    return n;
}

/* Runs the prompt in one step; its rows stay until the next. */
static void begin(checker *c)
{
    ig_lm_session_spec spec = {
        .prompt = c->ids, .n_prompt = c->n_ids, .max_new = N_GREEDY, .all_logits = 1};
    ig_lm_result r;
    assert_ok(ig_lm_session_new(c->lm, &spec, &c->s));
    assert_ok(ig_lm_step(c->lm, &(ig_lm_feed){c->s, c->n_ids}, 1, &r));
    assert_int_equal(r.n_rows, c->n_ids);
    c->rows = r.logits;
    c->n_prompts++;
}

/* "POSITION ARGMAX COLUMN=VALUE..." */
static void check_row(checker *c, char *text)
{
    char *end;
    long position = strtol(text, &end, 10), best = strtol(end, &end, 10);
    assert_in_range(position, 0, c->n_ids - 1);
    const float *row = c->rows + position * c->vocab;
    int64_t top = 0;
    for (int64_t i = 1; i < c->vocab; i++)
        if (row[i] > row[top]) top = i;
    if (fabs((double)row[top] - (double)row[best]) > 2e-3 * c->range)
        fail_msg("position %ld: %lld is likeliest, not %ld", position, (long long)top, best);
    while (*end == ' ') {
        long column = strtol(end, &end, 10);
        assert_true(*end == '=' && column >= 0 && column < c->vocab);
        double distance = fabs((double)row[column] - strtod(end + 1, &end)) / c->range;
        if (!(distance <= c->worst)) c->worst = distance;
    }
    c->n_positions++;
}

/* Goes on greedily and ends the session. */
static void check_greedy(checker *c, const char *text, bool must_agree)
{
    int n_want = read_ids(text, c->made);
    int64_t n;
    ig_lm_result r;
    while (ig_lm_session_pending(c->s)) assert_ok(ig_lm_step(c->lm, &(ig_lm_feed){c->s, 1}, 1, &r));
    const int32_t *have = ig_lm_session_output(c->s, &n);
    if (must_agree) {
        assert_int_equal(n, n_want);
        assert_memory_equal(have, c->made, (size_t)n * sizeof *have);
    }
    ig_lm_session_free(c->s);
    c->s = NULL;
}

static void check_line(checker *c, char *line, bool exact)
{
    if (!strncmp(line, "ids ", 4)) c->n_ids = read_ids(line + 4, c->ids);
    if (!strncmp(line, "range ", 6)) {
        char *end;
        double low = strtod(line + 6, &end);
        c->range = strtod(end, NULL) - low;
        begin(c);
    }
    if (!strncmp(line, "at ", 3)) check_row(c, line + 3);
    if (!strncmp(line, "greedy ", 7)) check_greedy(c, line + 7, exact);
}

static void check_all(ig_dtype kv, double most, bool exact)
{
    const ig_lm_options o = {.context = 256,
                             .kv_type = kv,
                             .arithmetic = IG_LM_EXACT,
                             .max_outputs = MAX_IDS,
                             .no_prefix_cache = 1};
    const char *dir = demomodel();
    static char line[MAX_LINE];
    ig_lm_facts f;
    checker c = {0};
    if (!dir) skip();
    assert_ok(ig_lm_open(dir, &o, &c.lm));
    ig_lm_get_facts(c.lm, &f);
    c.vocab = f.vocab;
    FILE *golden = fopen("tests/golden/lm/logits.txt", "r");
    assert_non_null(golden);
    while (fgets(line, sizeof line, golden)) check_line(&c, line, exact);
    fclose(golden);
    ig_lm_close(c.lm);
    print_message("%d positions: at most %.2e of the range\n", c.n_positions, c.worst);
    assert_int_equal(c.n_prompts, N_PROMPTS);
    assert_true(c.worst <= most);
}

TEST(exact_arithmetic_with_float32_pages_gives_the_logits_and_tokens_of_transformers)
{
    check_all(IG_F32, 1e-4, true);
}

TEST(exact_arithmetic_with_float16_pages_stays_near_them) { check_all(IG_F16, 2e-3, false); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(exact_arithmetic_with_float32_pages_gives_the_logits_and_tokens_of_transformers),
        CASE(exact_arithmetic_with_float16_pages_stays_near_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
