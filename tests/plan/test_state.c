/* States by themselves: their memory, the arrays over it, and writes that read what they write. The
 * order of reads and writes in a plan is test_plan's. */
#include <sys/mman.h>
#include <unistd.h>
#include "ingot/ingot.h"
#include "support/test.h"

#define COLS 64
#define SEVERAL 40

/* A plan of one output and no inputs. */
static ig_plan *compile(ig_trace_fn fn, ig_state *st)
{
    const ig_plan_spec s = {.n_outputs = 1};
    ig_plan *p = NULL;
    assert_ok(ig_compile(fn, st, &s, &p));
    return p;
}

TEST(a_state_is_zeroed_even_in_memory_that_was_used_before)
{
    const int64_t n = ((int64_t)5 << 20) + 3;
    for (int round = 0; round < 2; round++) {
        ig_state *st = NULL;
        assert_ok(ig_state_new(IG_U8, &n, 1, &st));
        uint8_t *bytes = ig_state_data(st), any = 0;
        for (int64_t i = 0; i < n; i++) any |= bytes[i];
        assert_int_equal(any, 0);
        memset(bytes, 0xff, (size_t)n);
        ig_state_free(st);
    }
    ig_memory_clear_cache();
}

static bool resident(const char *p, size_t page)
{
    unsigned char there = 0;
    assert_int_equal(mincore((void *)(uintptr_t)p, page, &there), 0);
    return there & 1;
}

TEST(the_memory_of_a_state_is_there_as_far_as_it_reaches_and_no_further)
{
    const int64_t n = (int64_t)33 << 20; /* in a size class of 36 MiB */
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ig_state *st = NULL;
    ig_memory_clear_cache();
    assert_ok(ig_state_new(IG_U8, &n, 1, &st));
    const char *p = ig_state_data(st);
    for (int64_t at = 0; at < n; at += 1 << 20) assert_true(resident(p + at, page));
    assert_false(resident(p + ((int64_t)35 << 20), page)); /* the last huge page ends at 34 MiB */
    ig_state_free(st);
    ig_memory_clear_cache();
}

TEST(outside_a_trace_a_state_is_an_array_over_the_same_memory)
{
    ig_state *st = NULL;
    assert_ok(ig_state_new(IG_I32, (int64_t[]){3}, 1, &st));
    ig_scope *s = ig_scope_open();
    ((int32_t *)ig_state_data(st))[2] = 9;
    ig_array a = ig_state_array(st);
    const void *data = NULL;
    assert_ok(ig_data(a, &data));
    assert_ptr_equal(data, ig_state_data(st));
    ig_state_free(st); /* the array keeps the memory */
    assert_int_equal(((const int32_t *)data)[2], 9);
    assert_ok(ig_scope_close(s));
    assert_fails(ig_state_new(IG_I32, (int64_t[]){-3}, 1, &st), IG_ESHAPE, "negative");
    assert_fails(ig_state_new((ig_dtype)77, (int64_t[]){3}, 1, &st), IG_EDTYPE, "77 is not");
    assert_fails(ig_state_new(IG_F32, NULL, 1, &st), IG_EINVAL, "without values");
    assert_fails(ig_state_new(IG_F64, (int64_t[]){INT64_MAX / 4, 8}, 2, &st), IG_ELIMIT, "");
    ig_state_free(NULL);
}

TEST(a_state_array_that_no_scope_could_own_keeps_no_memory)
{
    ig_counters before, after;
    ig_state *st = NULL;
    ig_memory_counters(&before);
    assert_ok(ig_state_new(IG_I32, (int64_t[]){3}, 1, &st));
    assert_true(ig_is_empty(ig_state_array(st)));
    assert_int_equal(ig_error_code(), IG_EINVAL);
    ig_state_free(st);
    ig_memory_counters(&after);
    assert_int_equal(after.active_bytes, before.active_bytes);
    ig_error_clear();
}

/* --- writes that read what they write */

#define ROWS 1000

/* The rows of a state moved down by one, then upside down: each write reads a view of the state. */
static ig_status move_rows(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)in, (void)n_in, (void)n_out;
    const int64_t one[] = {1, 1}, back[] = {-1, 1}, top[] = {0, 0}, second[] = {1, 0},
                  last[] = {ROWS - 1, 0}, but_last[] = {ROWS - 1, COLS}, all[] = {ROWS, COLS},
                  first[] = {-ROWS - 1, COLS};
    ig_array s = ig_state_array(user);
    s = ig_slice_update(s, ig_slice(s, top, 2, but_last, 2, one, 2), second, 2, all, 2, one, 2);
    ig_array upside_down = ig_slice(s, last, 2, first, 2, back, 2);
    out[0] = ig_put_rows(s, ig_arange(0, ROWS, 1, IG_I32), upside_down);
    return IG_OK;
}

TEST(a_write_of_a_state_may_read_the_state_itself)
{
    ig_state *st = NULL;
    assert_ok(ig_state_new(IG_F32, (int64_t[]){ROWS, COLS}, 2, &st));
    ig_plan *p = compile(move_rows, st);
    float *bank = ig_state_data(st);
    for (int round = 0; round < SEVERAL; round++) {
        for (int i = 0; i < ROWS * COLS; i++) bank[i] = (float)(i / COLS);
        assert_ok(ig_plan_replay(p, NULL, 0));
        for (int i = 0; i < ROWS * COLS; i++) {
            int row = ROWS - 1 - i / COLS;
            assert_true(bank[i] == (float)(row ? row - 1 : 0));
        }
    }
    ig_plan_free(p);
    ig_state_free(st);
}

static ig_status own_indices(void *user, const ig_array *in, int n_in, ig_array *out, int n_out)
{
    (void)in, (void)n_in, (void)n_out;
    ig_array s = ig_state_array(user);
    out[0] = ig_put_rows(s, s, ig_arange(10, 50, 10, IG_I32));
    return IG_OK;
}

TEST(a_state_may_be_the_indices_of_its_own_write)
{
    ig_state *st = NULL;
    assert_ok(ig_state_new(IG_I32, (int64_t[]){4}, 1, &st));
    ig_plan *p = compile(own_indices, st);
    memcpy(ig_state_data(st), (int32_t[]){1, 2, 3, 0}, 16);
    assert_ok(ig_plan_replay(p, NULL, 0));
    assert_memory_equal(ig_state_data(st), ((int32_t[]){40, 10, 20, 30}), 16);
    ig_plan_free(p);
    ig_state_free(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_state_is_zeroed_even_in_memory_that_was_used_before),
        CASE(the_memory_of_a_state_is_there_as_far_as_it_reaches_and_no_further),
        CASE(outside_a_trace_a_state_is_an_array_over_the_same_memory),
        CASE(a_state_array_that_no_scope_could_own_keeps_no_memory),
        CASE(a_write_of_a_state_may_read_the_state_itself),
        CASE(a_state_may_be_the_indices_of_its_own_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
