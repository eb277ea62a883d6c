/* thread.h: threads and ranked locks. A thread may take a lock only of a higher rank than it holds;
 * debug builds (INGOT_DEBUG) check. */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H
#include <pthread.h>
#include "base/mem.h"

typedef enum lock_rank {
    RANK_SERVER = 10,
    RANK_QUEUE = 30,
    RANK_REQUEST = 35,
    RANK_AUDIT = 40,
    RANK_EVAL = 45,
    RANK_POOL = 50,
    RANK_BUFFER = 60,
    RANK_LEAF = 90
} lock_rank;

typedef struct lock {
    pthread_mutex_t m;
    int rank; /* lock_rank */
} lock;

IG_MUST_USE ig_status lock_init(lock *l, lock_rank rank);
void lock_done(lock *l);
void lock_take(lock *l);
void lock_drop(lock *l);

typedef struct cond {
    pthread_cond_t c; /* on the monotonic clock */
} cond;

IG_MUST_USE ig_status cond_init(cond *c);
void cond_done(cond *c);
void cond_wait(cond *c, lock *l);
/* False on time-out. deadline_us is a clock_mono_us time. */
bool cond_wait_until(cond *c, lock *l, int64_t deadline_us);
void cond_signal(cond *c);
void cond_broadcast(cond *c);
/* Starts a named joinable thread; nice is added to the thread's niceness (a negative one
 * needs a right; without it nothing changes). Signals that do not come from the thread itself stay
 * with the threads of the host. */
IG_MUST_USE ig_status thread_start(pthread_t *ret_thread, const char *name, int nice,
                                   void *(*fn)(void *), void *arg);
int thread_n_cpus(void); /* CPUs this process may use */
#endif
