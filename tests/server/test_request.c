/* The bytes on their way to a client: no hole, no limit for a reader that keeps up, one for a
 * reader that does not. */
#include "support/test.h"
#include "server/request.h"

#define PIECE ((size_t)64 << 10)

static server sv;
static request *r;

static int setup(void **state)
{
    (void)state;
    buf body;
    buf_init(&body, 0);
    if (request_new(&sv, API_CHAT, &body, &r) != IG_OK) return 1;
    request_start(r, 200, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    request_drop(r);
    return 0;
}

static void write_piece(unsigned i)
{
    static char piece[PIECE];
    memset(piece, (int)('a' + i % 26), sizeof piece);
    request_write(r, piece, sizeof piece);
}

/* Reads one piece and checks that it is the i-th. */
static void read_piece(unsigned i)
{
    static char got[PIECE];
    size_t n = 0;
    while (n < sizeof got) {
        int64_t k = request_read(r, got + n, sizeof got - n, NULL);
        assert_true(k > 0);
        n += (size_t)k;
    }
    for (size_t k = 0; k < sizeof got; k++) assert_int_equal(got[k], 'a' + i % 26);
}

TEST(a_reader_that_always_lags_a_little_gets_everything)
{
    const unsigned n = 1000; /* 62 MiB */
    write_piece(0);
    for (unsigned i = 1; i < n; i++) {
        write_piece(i);
        read_piece(i - 1);
    }
    request_finish(r, "end", 3);
    read_piece(n - 1);
    char rest[8];
    assert_int_equal(request_read(r, rest, sizeof rest, NULL), 3);
    assert_memory_equal(rest, "end", 3);
    assert_int_equal(request_read(r, rest, sizeof rest, NULL), -1);
    assert_false(atomic_load(&r->gone));
    assert_int_equal(r->sent, n * PIECE + 3);
    assert_true(r->out.cap < 2 * REQUEST_MAX_OUT);
}

TEST(a_reader_that_is_too_slow_is_cancelled_and_gets_no_hole)
{
    unsigned fits = REQUEST_MAX_OUT / PIECE;
    for (unsigned i = 0; i < fits; i++) write_piece(i);
    assert_false(atomic_load(&r->gone));
    write_piece(fits);
    assert_true(atomic_load(&r->gone));
    read_piece(0);
    write_piece(fits + 1); /* there would be room now, but a piece before it is lost */
    request_finish(r, "end", 3);
    for (unsigned i = 1; i < fits; i++) read_piece(i);
    char rest[8];
    assert_int_equal(request_read(r, rest, sizeof rest, NULL), -1);
}

TEST(the_last_bytes_may_be_longer_than_what_a_reader_may_lag)
{
    size_t n = REQUEST_MAX_OUT + 1;
    char *last = calloc(n, 1), block[4096];
    assert_non_null(last);
    write_piece(0);
    request_finish(r, last, n);
    read_piece(0);
    size_t got = 0;
    for (int64_t k; (k = request_read(r, block, sizeof block, NULL)) > 0;) got += (size_t)k;
    assert_int_equal(got, n);
    assert_false(atomic_load(&r->gone));
    free(last);
}

TEST(a_whole_body_may_be_longer_than_what_a_reader_may_lag)
{
    size_t n = 4 * REQUEST_MAX_OUT;
    char *body = calloc(n, 1);
    assert_non_null(body);
    request_start(r, 200, false);
    request_finish(r, body, n);
    assert_int_equal(r->out.status, IG_OK);
    assert_int_equal(r->out.n, n);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_reader_that_always_lags_a_little_gets_everything, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_reader_that_is_too_slow_is_cancelled_and_gets_no_hole,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_bytes_may_be_longer_than_what_a_reader_may_lag,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_whole_body_may_be_longer_than_what_a_reader_may_lag,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
