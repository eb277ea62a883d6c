/* thread.c: threads, ranked locks and conditions (contract in thread.h). With INGOT_DEBUG each
 * thread remembers the ranks it holds and an order that could deadlock stops the program at the
 * second lock, whether or not it would have deadlocked this time. */
#define _GNU_SOURCE /* pthread_setname_np, sched_getaffinity, gettid */
#include "base/thread.h"
#include <assert.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NAME_N 16 /* bytes of a thread's name, NUL included; the kernel's limit */

#ifdef INGOT_DEBUG
#define MAX_HELD 16

static _Thread_local int held[MAX_HELD]; /* ranks, in the order taken */
static _Thread_local int n_held;

static void rank_enter(int rank)
{
    for (int i = 0; i < n_held; i++) assert(held[i] < rank && "locks taken in the wrong order");
    assert(n_held < MAX_HELD);
    held[n_held++] = rank;
}

static void rank_leave(int rank)
{
    int i = n_held - 1;
    while (i >= 0 && held[i] != rank) i--;
    assert(i >= 0 && "a lock is dropped that is not held");
    n_held--;
    memmove(held + i, held + i + 1, (size_t)(n_held - i) * sizeof held[0]);
}
#else
static void rank_enter(int rank) { (void)rank; }

static void rank_leave(int rank) { (void)rank; }
#endif

ig_status lock_init(lock *l, lock_rank rank)
{
    int err = pthread_mutex_init(&l->m, NULL);
    if (err) return ig_fail(IG_ENOMEM, "cannot make a lock: %s", strerror(err));
    l->rank = (int)rank;
    return IG_OK;
}

void lock_done(lock *l) { (void)pthread_mutex_destroy(&l->m); }

void lock_take(lock *l)
{
    rank_enter(l->rank);
    (void)pthread_mutex_lock(&l->m);
}

void lock_drop(lock *l)
{
    int rank = l->rank; /* once unlocked, the next holder may free the lock */
    (void)pthread_mutex_unlock(&l->m);
    rank_leave(rank);
}

ig_status cond_init(cond *c)
{
    pthread_condattr_t attr;
    int err = pthread_condattr_init(&attr);
    if (err) return ig_fail(IG_ENOMEM, "cannot make a condition: %s", strerror(err));
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    err = pthread_cond_init(&c->c, &attr);
    (void)pthread_condattr_destroy(&attr);
    return err ? ig_fail(IG_ENOMEM, "cannot make a condition: %s", strerror(err)) : IG_OK;
}

void cond_done(cond *c) { (void)pthread_cond_destroy(&c->c); }

void cond_wait(cond *c, lock *l) { (void)pthread_cond_wait(&c->c, &l->m); }

bool cond_wait_until(cond *c, lock *l, int64_t deadline_us)
{
    if (deadline_us < 0) deadline_us = 0;
    struct timespec t = {.tv_sec = deadline_us / 1000000,
                         .tv_nsec = (long)(deadline_us % 1000000) * 1000};
    return pthread_cond_timedwait(&c->c, &l->m, &t) == 0;
}

void cond_signal(cond *c) { (void)pthread_cond_signal(&c->c); }

void cond_broadcast(cond *c) { (void)pthread_cond_broadcast(&c->c); }

typedef struct start {
    char name[NAME_N];
    int nice;
    void *(*fn)(void *);
    void *arg;
} start;

static void *run(void *p)
{
    start s = *(start *)p;
    mem_free(p);
    (void)pthread_setname_np(pthread_self(), s.name);
    if (s.nice) {
        id_t me = (id_t)gettid(); /* on Linux niceness belongs to the thread */
        (void)setpriority(PRIO_PROCESS, me, getpriority(PRIO_PROCESS, me) + s.nice);
    }
    return s.fn(s.arg);
}

/* All signals but those that a thread raises itself: the host's handlers run on its own threads. */
static void block_signals(sigset_t *ret_old)
{
    sigset_t block;
    (void)sigfillset(&block);
    const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    for (size_t i = 0; i < N_ELEM(own); i++) (void)sigdelset(&block, own[i]);
    (void)pthread_sigmask(SIG_BLOCK, &block, ret_old);
}

ig_status thread_start(pthread_t *ret_thread, const char *name, int nice, void *(*fn)(void *),
                       void *arg)
{
    start *s = mem_alloc(sizeof *s);
    if (!s) return IG_ENOMEM;
    *s = (start){.nice = nice, .fn = fn, .arg = arg};
    (void)snprintf(s->name, sizeof s->name, "%s", name);
    sigset_t old;
    block_signals(&old);
    int err = pthread_create(ret_thread, NULL, run, s);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err) {
        mem_free(s);
        return ig_fail(IG_EIO, "cannot start thread %s: %s", name, strerror(err));
    }
    return IG_OK;
}

int thread_n_cpus(void)
{
    for (int n = 1024; n <= 1 << 20; n *= 2) { /* the kernel's mask may be wider than cpu_set_t */
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        size_t n_bytes = CPU_ALLOC_SIZE((size_t)n);
        if (!set) break;
        int count = sched_getaffinity(0, n_bytes, set) == 0 ? CPU_COUNT_S(n_bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return 1;
}
