/* Where a plan's values lie: lives that meet never share bytes, and bytes are reused. */
#include "array/transform/arena.h"
#include "support/test.h"

static bool meet(const arena_item *a, const arena_item *b)
{
    bool in_time = a->first <= b->last && b->first <= a->last;
    bool in_space = a->offset < b->offset + b->n_bytes && b->offset < a->offset + a->n_bytes;
    return in_time && in_space && a->n_bytes && b->n_bytes;
}

TEST(lives_that_meet_never_share_bytes)
{
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        arena_item x[80];
        int n = (int)(rand_r(&seed) % 80);
        int64_t total, sum = 0;
        for (int i = 0; i < n; i++) {
            int32_t first = (int32_t)(rand_r(&seed) % 20);
            int32_t last = first + (int32_t)(rand_r(&seed) % 6);
            if (rand_r(&seed) % 10 == 0) last = INT32_MAX;
            x[i] = (arena_item){(int64_t)(rand_r(&seed) % 1000), first, last, 0};
            sum += (x[i].n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
        }
        assert_ok(arena_place(x, (size_t)n, &total));
        assert_true(total <= sum);
        for (int i = 0; i < n; i++) {
            assert_true(x[i].offset >= 0 && x[i].offset % ARENA_ALIGN == 0);
            assert_true(x[i].offset + x[i].n_bytes <= total);
            for (int k = 0; k < i; k++) assert_false(meet(&x[i], &x[k]));
        }
    }
}

TEST(a_chain_of_equal_values_needs_two_places)
{
    arena_item x[50];
    int64_t total;
    for (int i = 0; i < 50; i++) x[i] = (arena_item){4096, i, i + 1, 0};
    assert_ok(arena_place(x, 50, &total));
    assert_int_equal(total, 2 * 4096);
}

TEST(a_value_goes_into_the_tightest_gap)
{
    arena_item x[] = {
        {1024, 0, 3, 0}, {64, 1, 9, 0}, {512, 2, 3, 0}, {64, 3, 9, 0}, {500, 4, 4, 0},
    };
    int64_t total;
    assert_ok(arena_place(x, N_ELEM(x), &total));
    assert_int_equal(x[4].offset, x[2].offset);
    assert_int_equal(total, 1024 + 512 + 2 * 64);
}

TEST(values_larger_than_any_memory_are_refused)
{
    arena_item one = {INT64_MAX, 0, 0, 0}, many[3];
    int64_t total = 5;
    assert_fails(arena_place(&one, 1, &total), IG_ELIMIT, "bytes");
    for (int i = 0; i < 3; i++) many[i] = (arena_item){ARENA_MAX_BYTES / 2, 0, 0, 0};
    assert_fails(arena_place(many, 3, &total), IG_ELIMIT, "bytes");
    assert_int_equal(total, 5);
    assert_ok(arena_place(many, 0, &total));
    assert_int_equal(total, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(lives_that_meet_never_share_bytes),
        CASE(a_chain_of_equal_values_needs_two_places),
        CASE(a_value_goes_into_the_tightest_gap),
        CASE(values_larger_than_any_memory_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
