/* pool.h: the threads that run phases of steps.
 *
 * A run walks phases in order; inside a phase workers claim blocks, their own range first, then
 * others'. A phase ends when its blocks are done, not when its workers have arrived, so a core
 * that is taken away stalls nobody. The caller of a run is worker 0. When pool_run returns, no
 * thread reads the steps, their arguments or sym any more: they may be freed at once. Which
 * worker runs which block, and in which order, is unspecified: a step's blocks must be
 * independent of each other. */
#ifndef CPU_POOL_H
#define CPU_POOL_H
#include "array/core/device.h"

#define POOL_MAX_THREADS 256

typedef struct pool pool;
/* A pool of n workers, 1..POOL_MAX_THREADS, the caller of a run included. Threads start with the
 * first run that has work for two. */
IG_MUST_USE ig_status pool_new(int n_threads, pool **ret_pool);
void pool_free(pool *p); /* joins its threads; no run may be in progress */
/* The process's pool, one worker per CPU; NULL (recorded) without memory. */
pool *pool_shared(void);
int pool_threads(const pool *p);
/* Waits for the run in progress, joins the threads, and uses n from the next run on. */
IG_MUST_USE ig_status pool_set_threads(pool *p, int n_threads);
/* Runs phases [0, n_phases): phase i is steps [first[i], first[i + 1]). Any thread may call, but
 * not from inside a step; calls take turns. The caller's floating-point environment is set to the
 * contract's and restored. Takes no lock and allocates nothing once the threads run and nobody else
 * is waiting. c may be NULL. */
IG_MUST_USE ig_status pool_run(pool *p, const step *steps, const int32_t *first, int n_phases,
                               const int64_t *sym, run_counters *c);
#endif
