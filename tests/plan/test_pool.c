/* The thread pool: every block runs once, phases are ordered, and a thread that was away harms
 * nothing. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <cmocka.h>
#include "array/cpu/pool.h"
#include "base/clock.h"
#include "base/thread.h"

#define MAX_PHASES 64
#define MAX_STEPS 256

/* Every block raises its own counter and the job's; it first checks that the phases before are
 * complete. */
typedef struct args {
    int64_t n; /* blocks; times sym[1] when by_symbol */
    bool by_symbol;
    int64_t spin;          /* work in a block */
    _Atomic int64_t *ran;  /* [n]: how often each block ran in this run */
    _Atomic int64_t *done; /* blocks done so far in this run */
    int64_t n_before;      /* blocks of earlier phases */
} args;

typedef struct job {
    step steps[MAX_STEPS];
    args a[MAX_STEPS];
    int32_t first[MAX_PHASES + 1];
    int n_phases;
    int64_t sym[2];
    _Atomic int64_t *ran;
    _Atomic int64_t done;
    int64_t n_blocks;
} job;

static _Atomic int64_t n_wrong;

static int64_t blocks_of(const void *p, const run_ctx *r)
{
    const args *a = p;
    return a->by_symbol ? a->n * r->sym[1] : a->n;
}

static void run_of(const void *p, const run_ctx *r, int64_t block)
{
    const args *a = p;
    if (atomic_load(a->done) < a->n_before) atomic_fetch_add(&n_wrong, 1);
    if (r->worker < 0 || r->worker >= r->n_workers) atomic_fetch_add(&n_wrong, 1);
    for (volatile int64_t i = 0; i < a->spin; i++) r->scratch[i & 63]++;
    atomic_fetch_add(&a->ran[block], 1);
    atomic_fetch_add(a->done, 1);
}

/* A random job; the same seed gives the same one. Freed right after its run by those who test
 * that. */
static job *make_job(unsigned seed, int64_t symbol)
{
    job *j = calloc(1, sizeof *j);
    assert_non_null(j);
    j->sym[0] = 1;
    j->sym[1] = symbol;
    j->n_phases = 1 + (int)(rand_r(&seed) % 12);
    int64_t total = 0, where[MAX_STEPS];
    int n = 0;
    for (int p = 0; p < j->n_phases; p++) {
        j->first[p] = n;
        int64_t n_before = total;
        int members = rand_r(&seed) % 8 ? (int)(rand_r(&seed) % 4) : 40;
        for (int m = 0; m < members && n < MAX_STEPS; m++, n++) {
            args *a = &j->a[n];
            int shape = (int)(rand_r(&seed) % 4);
            *a = (args){.n = shape == 0   ? 1
                             : shape == 1 ? (int64_t)(rand_r(&seed) % 70)
                                          : (int64_t)(rand_r(&seed) % 5),
                        .by_symbol = rand_r(&seed) % 3 == 0,
                        .spin = (int64_t)(rand_r(&seed) % 30),
                        .done = &j->done,
                        .n_before = n_before};
            where[n] = total;
            total += a->by_symbol ? a->n * symbol : a->n;
            j->steps[n] = (step){.run = run_of, .blocks = blocks_of, .args = a};
        }
    }
    j->first[j->n_phases] = n;
    j->n_blocks = total;
    j->ran = calloc((size_t)total + 1, sizeof *j->ran);
    assert_non_null(j->ran);
    for (int i = 0; i < n; i++) j->a[i].ran = j->ran + where[i];
    return j;
}

static void free_job(job *j)
{
    free(j->ran);
    memset(j, 0x5a, sizeof *j);
    free(j);
}

static void check_run(pool *p, unsigned seed, int64_t symbol)
{
    job *j = make_job(seed, symbol);
    run_counters c = {.timing = seed % 2};
    assert_int_equal(pool_run(p, j->steps, j->first, j->n_phases, j->sym, &c), IG_OK);
    for (int64_t i = 0; i < j->n_blocks; i++) assert_int_equal(atomic_load(&j->ran[i]), 1);
    assert_int_equal(atomic_load(&j->done), j->n_blocks);
    free_job(j);
}

static pool *new_pool(int n)
{
    pool *p = NULL;
    assert_int_equal(pool_new(n, &p), IG_OK);
    return p;
}

static void every_block_runs_once_and_phases_keep_their_order(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n++) {
        pool *p = new_pool(n);
        for (unsigned i = 0; i < 400; i++) check_run(p, i, (int64_t)(i % 5));
        pool_free(p);
    }
    assert_int_equal(n_wrong, 0);
}

static void the_number_of_threads_may_change_between_runs(void **state)
{
    (void)state;
    pool *p = new_pool(1);
    for (unsigned i = 0; i < 60; i++) {
        int n = 1 + (int)(i * 7 % 5);
        assert_int_equal(pool_set_threads(p, n), IG_OK);
        assert_int_equal(pool_threads(p), n);
        for (unsigned k = 0; k < 5; k++) check_run(p, i * 5 + k, 3);
    }
    assert_int_equal(pool_set_threads(p, 0), IG_EINVAL);
    assert_int_equal(pool_set_threads(p, POOL_MAX_THREADS + 1), IG_EINVAL);
    assert_non_null(strstr(ig_error_message(), "threads: 257"));
    pool_free(p);
    assert_int_equal(n_wrong, 0);
}

typedef struct caller {
    pool *p;
    unsigned seed;
} caller;

static void *call_often(void *arg)
{
    caller *c = arg;
    for (unsigned i = 0; i < 150; i++) check_run(c->p, c->seed + i, 2);
    return NULL;
}

static void *resize_often(void *arg)
{
    caller *c = arg;
    for (unsigned i = 0; i < 40; i++) {
        if (pool_set_threads(c->p, 1 + (int)(i % 4)) != IG_OK) atomic_fetch_add(&n_wrong, 1);
        sched_yield();
    }
    return NULL;
}

static void many_threads_may_call_while_another_changes_the_size(void **state)
{
    (void)state;
    pool *p = new_pool(3);
    pthread_t t[4];
    caller c[4];
    for (int i = 0; i < 4; i++) {
        c[i] = (caller){p, (unsigned)(1000 * i)};
        assert_int_equal(pthread_create(&t[i], NULL, i < 3 ? call_often : resize_often, &c[i]), 0);
    }
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    pool_free(p);
    assert_int_equal(n_wrong, 0);
}

/* --- threads that are away: the kernel stops them anywhere, which a signal handler that sleeps
 * imitates */

static void sleep_a_while(int sig)
{
    (void)sig;
    struct timespec t = {.tv_nsec = 3000000};
    nanosleep(&t, NULL);
}

static _Atomic pid_t stalled[POOL_MAX_THREADS];

static void learn_thread(const void *p, const run_ctx *r, int64_t block)
{
    (void)block;
    const args *a = p;
    sigset_t s;
    sigemptyset(&s);
    sigaddset(&s, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &s, NULL);
    atomic_store(&stalled[r->worker], (pid_t)syscall(SYS_gettid));
    for (volatile int64_t i = 0; i < a->spin; i++) r->scratch[0]++;
}

typedef struct pest {
    _Atomic bool stop;
    int n;
} pest;

static void *stall_workers(void *arg)
{
    pest *s = arg;
    unsigned seed = 1;
    while (!atomic_load(&s->stop)) {
        pid_t t = atomic_load(&stalled[1 + rand_r(&seed) % (unsigned)(s->n - 1)]);
        if (t) syscall(SYS_tgkill, getpid(), t, SIGUSR1);
        struct timespec d = {.tv_nsec = 20000 + rand_r(&seed) % 400000};
        nanosleep(&d, NULL);
    }
    return NULL;
}

static void learn_threads(pool *p, int n)
{
    args a = {.n = 64, .spin = 3000};
    step s = {.run = learn_thread, .blocks = blocks_of, .args = &a};
    int32_t first[2] = {0, 1};
    int64_t sym[1] = {1};
    for (int i = 0; i < n; i++) atomic_store(&stalled[i], 0);
    for (int known = 0, tries = 0; known < n - 1 && tries < 1000; tries++) {
        assert_int_equal(pool_run(p, &s, first, 1, sym, NULL), IG_OK);
        known = 0;
        for (int i = 1; i < n; i++) known += atomic_load(&stalled[i]) != 0;
    }
}

static void a_worker_stalled_anywhere_corrupts_nothing_and_freed_jobs_are_not_touched(void **state)
{
    (void)state;
    struct sigaction act = {.sa_handler = sleep_a_while}, old;
    sigaction(SIGUSR1, &act, &old);
    pool *p = new_pool(3);
    learn_threads(p, 3);
    pest s = {.n = 3};
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, stall_workers, &s), 0);
    for (unsigned i = 0; i < 1500; i++) check_run(p, i, 2);
    atomic_store(&s.stop, true);
    pthread_join(t, NULL);
    pool_free(p);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(n_wrong, 0);
}

static void one_block(const void *p, const run_ctx *r, int64_t block)
{
    (void)block;
    if (r->worker) atomic_fetch_add(&n_wrong, 1);
    atomic_fetch_add(((const args *)p)->done, 1);
}

static int n_threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void work_of_one_block_runs_in_the_caller_and_starts_no_thread(void **state)
{
    (void)state;
    pool *p = new_pool(4);
    _Atomic int64_t n = 0;
    args a = {.n = 1, .done = &n}, none = {.n = 0};
    step s[3] = {{.run = one_block, .blocks = blocks_of, .args = &a},
                 {.run = one_block, .blocks = blocks_of, .args = &none},
                 {.run = one_block, .blocks = blocks_of, .args = &a}};
    int32_t first[4] = {0, 1, 2, 3};
    int64_t sym[1] = {1};
    int before = n_threads_now();
    for (int i = 0; i < 100; i++) assert_int_equal(pool_run(p, s, first, 3, sym, NULL), IG_OK);
    assert_int_equal(n, 200);
    assert_int_equal(n_wrong, 0);
    assert_int_equal(n_threads_now(), before);
    pool_free(p);
}

static void a_step_of_very_many_blocks_runs_each_of_them_once(void **state)
{
    (void)state;
    enum { N = 200001 };
    pool *p = new_pool(3);
    _Atomic int64_t done = 0, *ran = calloc(2 * N, sizeof *ran);
    assert_non_null(ran);
    args a[2] = {{.n = N, .done = &done, .ran = ran},
                 {.n = N, .done = &done, .ran = ran + N, .n_before = 0}};
    step s[2] = {{.run = run_of, .blocks = blocks_of, .args = &a[0]},
                 {.run = run_of, .blocks = blocks_of, .args = &a[1]}};
    int32_t first[2] = {0, 2};
    int64_t sym[1] = {1};
    assert_int_equal(pool_run(p, s, first, 1, sym, NULL), IG_OK);
    for (int i = 0; i < 2 * N; i++)
        if (atomic_load(&ran[i]) != 1) fail_msg("block %d ran %d times", i, (int)ran[i]);
    pool_free(p);
    free(ran);
}

static void check_fp(const void *p, const run_ctx *r, int64_t block)
{
    (void)p, (void)r, (void)block;
    volatile float subnormal = 1e-40f, one = 1, little = 0x1p-30f;
    if (subnormal * one == 0 || one + little != 1) atomic_fetch_add(&n_wrong, 1);
}

static void blocks_round_to_nearest_whatever_the_caller_does(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        pool *p = new_pool(n);
        args a = {.n = 200};
        step s = {.run = check_fp, .blocks = blocks_of, .args = &a};
        int32_t first[2] = {0, 1};
        int64_t sym[1] = {1};
        fesetround(FE_UPWARD);
        ig_status st = pool_run(p, &s, first, 1, sym, NULL);
        int round = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(st, IG_OK);
        assert_int_equal(round, FE_UPWARD);
        pool_free(p);
    }
    assert_int_equal(n_wrong, 0);
}

static _Atomic int64_t ns_inside;

static void spin_timed(const void *p, const run_ctx *r, int64_t block)
{
    (void)block;
    int64_t t = clock_mono_ns();
    for (volatile int64_t i = 0; i < ((const args *)p)->spin; i++) r->scratch[0]++;
    atomic_fetch_add(&ns_inside, clock_mono_ns() - t);
}

static void timing_finds_the_time_inside_blocks(void **state)
{
    (void)state;
    pool *p = new_pool(2);
    args a = {.n = 8, .spin = 400000};
    step s = {.run = spin_timed, .blocks = blocks_of, .args = &a};
    int32_t first[2] = {0, 1};
    int64_t sym[1] = {1};
    run_counters c = {.timing = true}, off = {0};
    int64_t t = clock_mono_ns();
    assert_int_equal(pool_run(p, &s, first, 1, sym, &c), IG_OK);
    t = clock_mono_ns() - t;
    assert_true(c.kernel_ns > ns_inside - ns_inside / 10);
    assert_true(c.kernel_ns < 2 * t + t / 10);
    assert_int_equal(pool_run(p, &s, first, 1, sym, &off), IG_OK);
    assert_int_equal(off.kernel_ns, 0);
    pool_free(p);
}

static void after_a_pause_parked_workers_come_back(void **state)
{
    (void)state;
    pool *p = new_pool(3);
    struct timespec t = {.tv_nsec = 5000000};
    for (unsigned i = 0; i < 20; i++) {
        check_run(p, 2 * i, 4);
        nanosleep(&t, NULL);
    }
    pool_free(p);
    assert_int_equal(n_wrong, 0);
}

static void making_a_pool_survives_every_failing_allocation(void **state)
{
    (void)state;
    int64_t live = mem_n_live();
    pool *p = NULL;
    int n = 0;
    for (;; n++) {
        mem_fault_arm(n + 1, false);
        ig_status st = pool_new(3, &p);
        mem_fault_arm(0, false);
        if (st == IG_OK) break;
        assert_int_equal(st, IG_ENOMEM);
        assert_null(p);
        assert_int_equal(mem_n_live(), live);
    }
    assert_true(n >= 4);
    live = mem_n_live();
    mem_fault_arm(2, true);
    assert_int_equal(pool_set_threads(p, 2), IG_ENOMEM);
    mem_fault_arm(0, false);
    assert_int_equal(pool_threads(p), 3);
    assert_int_equal(mem_n_live(), live);
    mem_fault_arm(1, true); /* no thread can be started: the caller does it all */
    job *j = make_job(5, 2);
    assert_int_equal(pool_run(p, j->steps, j->first, 0, j->sym, NULL), IG_OK);
    check_run(p, 4, 2);
    mem_fault_arm(0, false);
    free_job(j);
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_block_runs_once_and_phases_keep_their_order),
        cmocka_unit_test(the_number_of_threads_may_change_between_runs),
        cmocka_unit_test(many_threads_may_call_while_another_changes_the_size),
        cmocka_unit_test(a_worker_stalled_anywhere_corrupts_nothing_and_freed_jobs_are_not_touched),
        cmocka_unit_test(work_of_one_block_runs_in_the_caller_and_starts_no_thread),
        cmocka_unit_test(a_step_of_very_many_blocks_runs_each_of_them_once),
        cmocka_unit_test(blocks_round_to_nearest_whatever_the_caller_does),
        cmocka_unit_test(timing_finds_the_time_inside_blocks),
        cmocka_unit_test(after_a_pause_parked_workers_come_back),
        cmocka_unit_test(making_a_pool_survives_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
