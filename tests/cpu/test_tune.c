/* The prefetch distance: found by measuring, per shape, and of no consequence for any bit. */
#include "array/cpu/tune.h"
#include "base/clock.h"
#include "support/test.h"

/* A step that takes 20 us at its best distance and 300 us at others. */
typedef struct args {
    int32_t ahead, best;
    int n_runs;
} args;

static int64_t one_block(const void *p, const run_ctx *r)
{
    (void)p, (void)r;
    return 1;
}

static void spin(const void *p, const run_ctx *r, int64_t block)
{
    args *a = (args *)(uintptr_t)p;
    (void)r, (void)block;
    a->n_runs++;
    int64_t end = clock_mono_ns() + (a->ahead == a->best ? 20000 : 300000);
    while (clock_mono_ns() < end) continue;
}

static step step_of(args *a, int64_t row_bytes)
{
    return (step){.run = spin,
                  .blocks = one_block,
                  .args = a,
                  .const_bytes = 1 << 20,
                  .ahead = &a->ahead,
                  .row_bytes = row_bytes};
}

static const int64_t no_symbols[] = {1};

TEST(each_shape_gets_the_distance_that_was_fastest)
{
    enum { LAYERS = 12 };
    static const int32_t best[] = {1024, 0, 4096};
    args a[LAYERS][3];
    step s[LAYERS * 3];
    for (int i = 0; i < LAYERS; i++)
        for (int j = 0; j < 3; j++) {
            a[i][j] = (args){.best = best[j]};
            s[i * 3 + j] = step_of(&a[i][j], 100 + j);
        }
    assert_ok(tune_steps(s, LAYERS * 3, no_symbols));
    for (int i = 0; i < LAYERS; i++)
        for (int j = 0; j < 3; j++) assert_int_equal(a[i][j].ahead, best[j]);
}

TEST(a_shape_of_one_step_is_run_with_every_distance)
{
    args a = {.best = 512};
    step s = step_of(&a, 100);
    assert_ok(tune_steps(&s, 1, no_symbols));
    assert_int_equal(a.ahead, 512);
}

TEST(steps_without_weights_are_not_run)
{
    args a = {.ahead = 7};
    step s = step_of(&a, 100);
    s.ahead = NULL;
    assert_ok(tune_steps(&s, 1, no_symbols));
    assert_int_equal(a.n_runs, 0);
    assert_int_equal(a.ahead, 7);
}

/* What no distance speeds up costs a bounded number of runs, however many steps there are. */
TEST(a_model_of_many_layers_is_sampled_not_walked)
{
    enum { LAYERS = 400 };
    static args a[LAYERS];
    static step s[LAYERS];
    int n_runs = 0;
    for (int i = 0; i < LAYERS; i++) {
        a[i].best = a[i].ahead = -1;
        s[i] = step_of(&a[i], 100);
    }
    assert_ok(tune_steps(s, LAYERS, no_symbols));
    for (int i = 0; i < LAYERS; i++) n_runs += a[i].n_runs;
    assert_in_range(n_runs, 5, 40);
}

TEST(without_memory_steps_are_left_as_they_are)
{
    args a = {.ahead = 7};
    step s = step_of(&a, 100);
    mem_fault_arm(1, false);
    ig_status st = tune_steps(&s, 1, no_symbols);
    mem_fault_arm(0, false);
    ig_error_clear();
    assert_int_equal(st, IG_ENOMEM);
    assert_int_equal(a.n_runs, 0);
    assert_int_equal(a.ahead, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(each_shape_gets_the_distance_that_was_fastest),
        CASE(a_shape_of_one_step_is_run_with_every_distance),
        CASE(steps_without_weights_are_not_run),
        CASE(a_model_of_many_layers_is_sampled_not_walked),
        CASE(without_memory_steps_are_left_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
