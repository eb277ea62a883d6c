/* Threads, locks, conditions, clocks. */
#define _GNU_SOURCE
#include "support/test.h"
#include "support/walk.h"
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/thread.h"

typedef struct shared {
    lock l;
    cond c;
    int64_t n;
    char name[16];
    int niceness;
    sigset_t blocked;
} shared;

static void *count_up(void *p)
{
    shared *s = p;
    for (int i = 0; i < 10000; i++) {
        lock_take(&s->l);
        s->n++;
        lock_drop(&s->l);
    }
    return NULL;
}

TEST(a_lock_excludes)
{
    shared s = {.n = 0};
    pthread_t t[3];
    assert_ok(lock_init(&s.l, RANK_LEAF));
    for (int i = 0; i < 3; i++) assert_ok(thread_start(&t[i], "count", 0, count_up, &s));
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    assert_int_equal(s.n, 30000);
    lock_done(&s.l);
}

static void *look_around(void *p)
{
    shared *s = p;
    pthread_getname_np(pthread_self(), s->name, sizeof s->name);
    s->niceness = getpriority(PRIO_PROCESS, (id_t)gettid());
    pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    return p;
}

TEST(a_thread_has_its_name_its_niceness_and_no_signals_of_the_host)
{
    shared s = {.n = 0};
    pthread_t t;
    void *result;
    int before = getpriority(PRIO_PROCESS, 0);
    assert_ok(thread_start(&t, "a-name-that-is-too-long", 3, look_around, &s));
    pthread_join(t, &result);
    assert_ptr_equal(result, &s);
    assert_string_equal(s.name, "a-name-that-is-");
    assert_int_equal(s.niceness, before + 3 > 19 ? 19 : before + 3);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
    assert_true(sigismember(&s.blocked, SIGTERM) && sigismember(&s.blocked, SIGINT));
    assert_false(sigismember(&s.blocked, SIGSEGV) || sigismember(&s.blocked, SIGBUS));
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, NULL, &mine);
    assert_false(sigismember(&mine, SIGTERM));
}

static ig_status start_and_join(void *p)
{
    pthread_t t;
    TRY(thread_start(&t, "x", 0, look_around, p));
    pthread_join(t, NULL);
    return IG_OK;
}

TEST(a_thread_that_cannot_start_leaves_nothing)
{
    shared s = {.n = 0};
    assert_int_equal(walk_memory(start_and_join, &s), 1);
}

static void *wake(void *p)
{
    shared *s = p;
    lock_take(&s->l);
    s->n = 1;
    cond_signal(&s->c);
    lock_drop(&s->l);
    return NULL;
}

TEST(a_condition_wakes_or_times_out)
{
    shared s = {.n = 0};
    pthread_t t;
    assert_ok(lock_init(&s.l, RANK_QUEUE));
    assert_ok(cond_init(&s.c));
    lock_take(&s.l);
    int64_t start = clock_mono_us();
    while (cond_wait_until(&s.c, &s.l, start + 20000)) {}
    assert_true(clock_mono_us() >= start + 20000);
    assert_false(cond_wait_until(&s.c, &s.l, -5));
    assert_ok(thread_start(&t, "wake", 0, wake, &s));
    while (!s.n) cond_wait(&s.c, &s.l);
    lock_drop(&s.l);
    pthread_join(t, NULL);
    cond_done(&s.c);
    lock_done(&s.l);
}

TEST(the_cpus_of_the_process_are_counted)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    assert_true(thread_n_cpus() >= 1);
    pid_t child = fork();
    if (child == 0) {
        CPU_SET(sched_getcpu(), &one);
        _exit(sched_setaffinity(0, sizeof one, &one) == 0 ? thread_n_cpus() : 99);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 1);
}

TEST(monotonic_time_goes_forward)
{
    int64_t a = clock_mono_ns(), b = clock_mono_ns();
    assert_true(b >= a);
    assert_in_range(clock_mono_us() - a / 1000, 0, 10000000);
    assert_true(clock_wall_us() > 1700000000000000);
}

TEST(a_moment_is_written_as_rfc_3339_says)
{
    static const struct {
        int64_t us;
        const char *text;
    } cases[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {1709210096789012, "2024-02-29T12:34:56.789012Z"},
        {253402300799999999, "9999-12-31T23:59:59.999999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000000Z"},
    };
    for (size_t i = 0; i < N_ELEM(cases); i++) {
        char text[CLOCK_RFC3339_N];
        clock_rfc3339(cases[i].us, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_lock_excludes),
        CASE(a_thread_has_its_name_its_niceness_and_no_signals_of_the_host),
        CASE(a_thread_that_cannot_start_leaves_nothing),
        CASE(a_condition_wakes_or_times_out),
        CASE(the_cpus_of_the_process_are_counted),
        CASE(monotonic_time_goes_forward),
        CASE(a_moment_is_written_as_rfc_3339_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
