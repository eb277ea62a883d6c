/* test_slow_plan_steps.c: test_plan_steps.c on SmolLM2-135M. */
#include "support/demomodel.h"
#include "support/lmsteps.h"
#include "support/test.h"

TEST(a_thousand_steps_of_the_real_model_make_no_node_and_no_allocation)
{
    const char *dir = demomodel();
    const ig_lm_options o = {.context = 256, .max_sessions = 8};
    ig_lm *lm = NULL;
    if (!dir) skip();
    assert_ok(ig_lm_open(dir, &o, &lm));
    lmsteps_run(lm, 1000);
    ig_lm_close(lm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_thousand_steps_of_the_real_model_make_no_node_and_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
