/* test_slow_bits.c: test_bits.c on SmolLM2-135M: every instruction set but plain C, which needs
 * half a second for a token. */
#include "ingot/device.h"
#include "support/demomodel.h"
#include "support/lmbits.h"
#include "support/test.h"

static void everywhere(const bits_case *c, bool few)
{
    const char *dir = demomodel();
    if (!dir) skip();
    for (const char *const *isa = ig_device_isas(); *isa; isa++)
        if (strcmp(*isa, "ref") != 0) bits_run(dir, c, *isa, few);
}

TEST(the_real_model_gives_the_same_bits_greedy)
{
    everywhere(&(bits_case){"smollm2-f16-greedy", IG_F16, IG_LM_INT8, false, false, 140, 8}, false);
}

TEST(the_real_model_gives_the_same_bits_sampled)
{
    everywhere(&(bits_case){"smollm2-i8-sampled", IG_I8, IG_LM_INT8, true, false, 140, 8}, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_real_model_gives_the_same_bits_greedy),
        CASE(the_real_model_gives_the_same_bits_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
