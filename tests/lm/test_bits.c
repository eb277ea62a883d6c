/* test_bits.c: the same question gives the same bits, whatever else happens: a small model with
 * every kind of matrix, every KV type, greedy and sampled, on every instruction set of the machine
 * and in plain C. The goldens are the same on all machines (run_aarch64.sh). */
#include "ingot/device.h"
#include "support/lmbits.h"
#include "support/test.h"
#include "support/tinylm.h"
#include "support/tmp.h"

static char dir[TMP_PATH_N];

static int write_model(void **state)
{
    (void)state;
    tmp_open(dir);
    tinylm_write(dir, NULL);
    return 0;
}

static int remove_model(void **state)
{
    (void)state;
    tmp_close(dir);
    return 0;
}

/* On every instruction set; in plain C only where `in_ref` says so. Plain C and emulators (RUN, see
 * tests/run.sh) are slow: they go the few ways that matter most, and plain C under an emulator only
 * in the default case. */
static void everywhere(const bits_case *c, bool in_ref)
{
    const char *emulator = getenv("RUN");
    bool slow = emulator && *emulator;
    if (slow) in_ref = in_ref && c->kv == IG_F16;
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        bool is_ref = !strcmp(*isa, "ref");
        if (!is_ref || in_ref) bits_run(dir, c, *isa, is_ref || slow);
    }
}

TEST(float16_pages_give_the_same_bits_greedy)
{
    everywhere(&(bits_case){"tiny-f16-greedy", IG_F16, IG_LM_INT8, false, false, 330, 24}, true);
}

TEST(float16_pages_give_the_same_bits_sampled)
{
    everywhere(&(bits_case){"tiny-f16-sampled", IG_F16, IG_LM_INT8, true, false, 330, 24}, false);
}

TEST(bfloat16_pages_give_the_same_bits)
{
    everywhere(&(bits_case){"tiny-bf16-greedy", IG_BF16, IG_LM_INT8, false, false, 330, 24}, false);
}

TEST(int8_pages_give_the_same_bits_greedy)
{
    everywhere(&(bits_case){"tiny-i8-greedy", IG_I8, IG_LM_INT8, false, false, 330, 24}, true);
}

TEST(int8_pages_give_the_same_bits_sampled)
{
    everywhere(&(bits_case){"tiny-i8-sampled", IG_I8, IG_LM_INT8, true, false, 330, 24}, false);
}

TEST(float32_pages_give_the_same_bits)
{
    everywhere(&(bits_case){"tiny-f32-sampled", IG_F32, IG_LM_INT8, true, false, 330, 24}, false);
}

TEST(exact_arithmetic_gives_the_same_bits)
{
    everywhere(&(bits_case){"tiny-f32-exact", IG_F32, IG_LM_EXACT, false, false, 330, 24}, true);
}

TEST(every_position_of_a_prompt_has_the_same_bits)
{
    everywhere(&(bits_case){"tiny-f16-every", IG_F16, IG_LM_INT8, false, true, 330, 4}, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(float16_pages_give_the_same_bits_greedy),
        CASE(float16_pages_give_the_same_bits_sampled),
        CASE(bfloat16_pages_give_the_same_bits),
        CASE(int8_pages_give_the_same_bits_greedy),
        CASE(int8_pages_give_the_same_bits_sampled),
        CASE(float32_pages_give_the_same_bits),
        CASE(exact_arithmetic_gives_the_same_bits),
        CASE(every_position_of_a_prompt_has_the_same_bits),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
