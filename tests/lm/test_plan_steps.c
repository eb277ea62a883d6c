/* test_plan_steps.c: a step replays a plan and makes nothing: counted, step by step, on a small
 * model; test_slow_plan_steps.c does it on the real one. */
#include "support/lmsteps.h"
#include "support/test.h"
#include "support/tinylm.h"
#include "support/tmp.h"

TEST(a_thousand_steps_with_a_changing_batch_make_no_node_and_no_allocation)
{
    char dir[TMP_PATH_N];
    ig_lm *lm = NULL;
    tmp_open(dir);
    tinylm_write(dir, NULL);
    assert_ok(ig_lm_open(dir, NULL, &lm));
    lmsteps_run(lm, 1000);
    ig_lm_close(lm);
    tmp_close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_thousand_steps_with_a_changing_batch_make_no_node_and_no_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
