/* pool.c: how blocks reach threads, and how a phase ends.
 *
 * Work is published as *rounds*: some members of one phase, cut into lanes of consecutive
 * blocks, one lane a worker. Whoever finishes the last block of a round publishes the next one;
 * that thread alone owns `cursor` and the slot it writes. Two slots alternate. The claim word of
 * a lane is (round number, blocks left); taking a block is a compare-and-swap of the whole word.
 * A thread reads a slot only after such a claim succeeded: then its round is not finished, so
 * neither the slot nor the steps behind it can change or go away. A thread that was away for any
 * time finds another number in the word and touches nothing. (Should the number have come round
 * again with the same count left, the claim is a valid claim of the new round.)
 *
 * Rounds of one block, and everything when there is one worker, run in the publishing thread
 * without a shared word. Waiters pause, then yield; a thread that has waited for POOL_PARK_US
 * parks on `changed`, and publishers wake only when somebody is parked (a futex costs 50 to 75
 * us on a virtual CPU, a round 0.3). */
#include "array/cpu/pool.h"
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include "array/cpu/machine.h"
#include "base/clock.h"
#include "base/thread.h"

#define POOL_LINE 128               /* two 64-byte lines: the prefetcher pairs them */
#define POOL_MEMBERS 32             /* steps in one round; a wider phase takes several */
#define POOL_ROUND_BLOCKS (1 << 30) /* blocks in one round; a longer step takes several */
#define POOL_PAUSES 300             /* before a waiter yields */
#define POOL_YIELDS 64              /* between two looks at the clock */
#define POOL_PARK_US 1000
#define POOL_NICE 2 /* compute gives way to HTTP and audit threads */
#define HUGE_PAGE ((size_t)2 << 20)

typedef struct __attribute__((aligned(POOL_LINE))) line {
    _Atomic uint64_t v; /* claim word: round number << 32 | blocks left in this lane */
} line;

typedef struct member {
    const step *s;
    int64_t base; /* block of s that is block `start` of the round */
    int64_t start;
} member;

typedef struct slot {
    _Alignas(POOL_LINE) _Atomic int64_t left; /* blocks not finished */
    _Alignas(POOL_LINE) int64_t n_blocks;
    int n_members, n_lanes;
    const int64_t *sym; /* of the run */
    bool timing;
    member m[POOL_MEMBERS + 1]; /* m[n_members].start = n_blocks */
} slot;

typedef struct __attribute__((aligned(POOL_LINE))) worker {
    run_ctx ctx;
    pool *pool;
    pthread_t thread;
    int64_t kernel_ticks;       /* written between claim and finish */
    _Atomic int64_t wait_ticks; /* also written after a run's end, hence atomic */
} worker;

/* The run in progress; owned by the thread that publishes. */
typedef struct job {
    const step *steps;
    const int32_t *first;
    int n_phases;
    const int64_t *sym;
    bool timing;
    int phase; /* cursor: next block to publish */
    int32_t step;
    int64_t block;
} job;

struct pool {
    _Alignas(POOL_LINE) _Atomic uint64_t
        now; /* round number << 16 | lanes; no lanes: idle, the run is over */
    _Alignas(POOL_LINE) _Atomic int n_parked;
    _Atomic bool stop, timing;
    _Alignas(POOL_LINE) _Atomic int owner; /* 1 while a run or a resize is in progress */
    _Atomic int n_queued;                  /* threads waiting for their turn */
    _Alignas(POOL_LINE) job job;
    slot slots[2];
    worker *workers; /* [n_threads] */
    line *lanes[2];  /* [n_threads] each */
    char *scratch;   /* RUN_SCRATCH_BYTES a worker */
    _Atomic int n_threads;
    int n_started; /* threads of ours that run, <= n_threads - 1; with `started`, owner's */
    bool started;  /* once per setting: a thread that cannot be had is done without */
    bool handed;   /* under lock: ownership is on its way to a queued thread */
    lock lock;
    cond changed, turn;
};

static int n_lanes(uint64_t now) { return (int)(now & 0xffff); }

/* --- turns */

static void enter(pool *p)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&p->owner, &none, 1)) return;
    lock_take(&p->lock);
    atomic_fetch_add(&p->n_queued, 1);
    for (;;) {
        none = 0;
        if (p->handed || atomic_compare_exchange_strong(&p->owner, &none, 1)) break;
        cond_wait(&p->turn, &p->lock);
    }
    p->handed = false;
    atomic_fetch_sub(&p->n_queued, 1);
    lock_drop(&p->lock);
}

/* Hands the pool to a queued thread where there is one, so that a thread that runs in a loop
 * starves nobody. */
static void leave(pool *p)
{
    if (!atomic_load(&p->n_queued)) {
        atomic_store(&p->owner, 0);
        if (!atomic_load(&p->n_queued)) return;
        lock_take(&p->lock); /* queued in between: it may have seen owner 1 and sleep */
        cond_signal(&p->turn);
        lock_drop(&p->lock);
        return;
    }
    lock_take(&p->lock);
    if (atomic_load(&p->n_queued)) {
        p->handed = true;
        cond_signal(&p->turn);
    } else {
        atomic_store(&p->owner, 0);
    }
    lock_drop(&p->lock);
}

/* --- waiting for the next round */

static void wake(pool *p)
{
    if (!atomic_load(&p->n_parked)) return;
    lock_take(&p->lock);
    cond_broadcast(&p->changed);
    lock_drop(&p->lock);
}

static void park(pool *p, uint64_t now)
{
    lock_take(&p->lock);
    atomic_fetch_add(&p->n_parked, 1);
    while (atomic_load(&p->now) == now && !atomic_load(&p->stop)) cond_wait(&p->changed, &p->lock);
    atomic_fetch_sub(&p->n_parked, 1);
    lock_drop(&p->lock);
}

static bool stays(pool *p, uint64_t now)
{
    return atomic_load_explicit(&p->now, memory_order_acquire) == now &&
           !atomic_load_explicit(&p->stop, memory_order_relaxed);
}

static void wait_change(pool *p, uint64_t now)
{
    for (int i = 0; i < POOL_PAUSES; i++) {
        if (!stays(p, now)) return;
        cpu_pause();
    }
    int64_t deadline = clock_mono_us() + POOL_PARK_US;
    do {
        for (int i = 0; i < POOL_YIELDS; i++) {
            if (!stays(p, now)) return;
            sched_yield();
        }
    } while (clock_mono_us() < deadline);
    park(p, now);
}

static void wait_timed(pool *p, worker *w, uint64_t now)
{
    if (!n_lanes(now) || !atomic_load_explicit(&p->timing, memory_order_relaxed)) {
        wait_change(p, now);
        return;
    }
    int64_t t = cpu_ticks();
    wait_change(p, now);
    atomic_fetch_add_explicit(&w->wait_ticks, cpu_ticks() - t, memory_order_relaxed);
}

/* --- running blocks */

static void run_block(worker *w, const step *s, int64_t block, bool timing)
{
    if (!timing) {
        s->run(s->args, &w->ctx, block);
        return;
    }
    int64_t t = cpu_ticks();
    s->run(s->args, &w->ctx, block);
    w->kernel_ticks += cpu_ticks() - t;
}

/* First block of lane i when n blocks are cut into lanes. */
static int64_t lane_start(int64_t n, int i, int of) { return n * i / of; }

/* Takes the next block of a lane of round `number`; false when the lane has none or is of
 * another round. */
static bool claim(line *l, uint32_t number, uint32_t *ret_left)
{
    uint64_t x = atomic_load_explicit(&l->v, memory_order_relaxed);
    while (x >> 32 == number && (uint32_t)x)
        if (atomic_compare_exchange_weak_explicit(&l->v, &x, x - 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *ret_left = (uint32_t)x;
            return true;
        }
    return false;
}

static void run_claimed(const slot *s, worker *w, int64_t k)
{
    const member *m = s->m;
    while (k >= m[1].start) m++;
    w->ctx.sym = s->sym;
    run_block(w, m->s, m->base + (k - m->start), s->timing);
}

/* Claims and runs what is left of a round; true when this thread finished its last block and has
 * to publish. */
static bool work_round(pool *p, worker *w, uint64_t now)
{
    uint32_t number = (uint32_t)(now >> 16), left;
    int n = n_lanes(now);
    slot *s = &p->slots[number & 1];
    line *lanes = p->lanes[number & 1];
    int64_t n_done = 0;
    for (int v = 0; v < n; v++) {
        int i = (w->ctx.worker + v) % n;
        while (claim(&lanes[i], number, &left)) {
            run_claimed(s, w, lane_start(s->n_blocks, i + 1, s->n_lanes) - left);
            n_done++;
        }
    }
    return n_done && atomic_fetch_sub_explicit(&s->left, n_done, memory_order_acq_rel) == n_done;
}

/* --- publishing */

/* Moves the cursor over the next blocks of one phase and lists them in s. Zero blocks: the run
 * is over. */
static int64_t gather(job *j, slot *s, const run_ctx *ctx)
{
    int64_t n = 0;
    s->n_members = 0;
    while (!n && j->phase < j->n_phases) {
        int32_t end = j->first[j->phase + 1];
        while (j->step < end && s->n_members < POOL_MEMBERS && n < POOL_ROUND_BLOCKS) {
            const step *st = &j->steps[j->step];
            int64_t rest = st->blocks(st->args, ctx) - j->block, take = rest;
            if (take > POOL_ROUND_BLOCKS - n) take = POOL_ROUND_BLOCKS - n;
            if (take > 0) s->m[s->n_members++] = (member){st, j->block, n};
            n += take > 0 ? take : 0;
            j->block = take < rest ? j->block + take : 0;
            j->step += take >= rest;
        }
        if (j->step == end) j->phase++;
    }
    s->m[s->n_members] = (member){.start = n};
    s->n_blocks = n;
    return n;
}

static void start_threads(pool *p);

static void announce(pool *p, uint32_t number, int lanes)
{
    atomic_store(&p->now, (uint64_t)number << 16 | (unsigned)lanes);
    wake(p);
}

/* Parked workers sleep on: only the caller needs to know, and it is not told what it just found
 * out itself. */
static void finish(pool *p, const worker *w, uint64_t now)
{
    if (!n_lanes(now)) return;
    atomic_store(&p->now, ((now >> 16) + 1) << 16);
    if (w->ctx.worker) wake(p);
}

/* Publishes the next round, running rounds of one block here; at the end of the run tells
 * everybody. */
static void publish(pool *p, worker *w)
{
    job *j = &p->job;
    uint64_t now = atomic_load_explicit(&p->now, memory_order_relaxed);
    uint32_t number = (uint32_t)(now >> 16) + 1;
    slot *s = &p->slots[number & 1];
    line *lanes = p->lanes[number & 1];
    w->ctx.sym = j->sym;
    int64_t n;
    while ((n = gather(j, s, &w->ctx)) == 1) run_block(w, s->m[0].s, s->m[0].base, j->timing);
    if (!n) {
        finish(p, w, now);
        return;
    }
    start_threads(p);
    s->n_lanes = n < w->ctx.n_workers ? (int)n : w->ctx.n_workers;
    s->sym = j->sym;
    s->timing = j->timing;
    atomic_store_explicit(&s->left, n, memory_order_relaxed);
    for (int i = 0; i < s->n_lanes; i++) {
        uint64_t count =
            (uint64_t)(lane_start(n, i + 1, s->n_lanes) - lane_start(n, i, s->n_lanes));
        atomic_store_explicit(&lanes[i].v, (uint64_t)number << 32 | count, memory_order_release);
    }
    announce(p, number, s->n_lanes);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    pool *p = w->pool;
    fp_enter();
    while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
        uint64_t now = atomic_load_explicit(&p->now, memory_order_acquire);
        if (work_round(p, w, now))
            publish(p, w);
        else
            wait_timed(p, w, now);
    }
    return NULL;
}

/* --- threads and their memory */

/* Called by a publisher; the first one of a setting is the caller of a run. */
static void start_threads(pool *p)
{
    if (p->started) return;
    p->started = true;
    bool clean = ig_error_code() == IG_OK;
    for (int i = 1; i < p->workers[0].ctx.n_workers; i++) {
        worker *w = &p->workers[i];
        if (thread_start(&w->thread, "ingot-worker", POOL_NICE, worker_main, w) != IG_OK) {
            if (clean)
                ig_error_clear(); /* the run does not fail: others steal this worker's blocks */
            return;
        }
        p->n_started = i;
    }
}

static void stop_threads(pool *p)
{
    atomic_store(&p->stop, true);
    lock_take(&p->lock);
    cond_broadcast(&p->changed);
    lock_drop(&p->lock);
    for (int i = 1; i <= p->n_started; i++) pthread_join(p->workers[i].thread, NULL);
    p->n_started = 0;
    p->started = false;
    atomic_store(&p->stop, false);
}

/* What depends on the number of workers, made before anything of the old setting is given up. */
typedef struct crew {
    worker *workers;
    line *lanes[2];
    char *scratch;
} crew;

static void crew_done(crew *c)
{
    mem_free(c->workers);
    mem_free(c->lanes[0]);
    mem_free(c->lanes[1]);
    mem_free(c->scratch);
}

static ig_status crew_make(pool *p, int n, crew *ret_crew)
{
    size_t n_scratch = ((size_t)n * RUN_SCRATCH_BYTES + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    crew c = {.workers = mem_aligned(POOL_LINE, (size_t)n * sizeof(worker)),
              .lanes = {mem_aligned(POOL_LINE, (size_t)n * sizeof(line)),
                        mem_aligned(POOL_LINE, (size_t)n * sizeof(line))},
              .scratch = mem_aligned(HUGE_PAGE, n_scratch)};
    if (!c.workers || !c.lanes[0] || !c.lanes[1] || !c.scratch) {
        crew_done(&c);
        return IG_ENOMEM;
    }
    madvise(c.scratch, n_scratch,
            MADV_HUGEPAGE); /* a hint: without huge pages kernels are slower, not wrong */
    for (int i = 0; i < n; i++) {
        memset(&c.workers[i], 0, sizeof(worker));
        c.workers[i].pool = p;
        c.workers[i].ctx = (run_ctx){
            .scratch = c.scratch + (size_t)i * RUN_SCRATCH_BYTES, .worker = i, .n_workers = n};
        for (int k = 0; k < 2; k++) atomic_init(&c.lanes[k][i].v, 0);
    }
    *ret_crew = c;
    return IG_OK;
}

static void crew_install(pool *p, int n, const crew *c)
{
    p->workers = c->workers;
    p->lanes[0] = c->lanes[0];
    p->lanes[1] = c->lanes[1];
    p->scratch = c->scratch;
    atomic_store(&p->n_threads, n);
}

static crew crew_of(const pool *p)
{
    return (crew){p->workers, {p->lanes[0], p->lanes[1]}, p->scratch};
}

static ig_status check_threads(int n)
{
    if (n >= 1 && n <= POOL_MAX_THREADS) return IG_OK;
    return ig_fail(IG_EINVAL, "threads: %d is not between 1 and %d", n, POOL_MAX_THREADS);
}

/* --- public */

static ig_status init(pool *p, int n_threads)
{
    TRY(lock_init(&p->lock, RANK_POOL));
    if (cond_init(&p->changed) != IG_OK) goto fail_lock;
    if (cond_init(&p->turn) != IG_OK) goto fail_changed;
    crew c;
    if (crew_make(p, n_threads, &c) != IG_OK) goto fail_turn;
    crew_install(p, n_threads, &c);
    return IG_OK;
fail_turn:
    cond_done(&p->turn);
fail_changed:
    cond_done(&p->changed);
fail_lock:
    lock_done(&p->lock);
    return IG_ENOMEM;
}

ig_status pool_new(int n_threads, pool **ret_pool)
{
    TRY(check_threads(n_threads));
    pool *p = mem_aligned(POOL_LINE, sizeof *p);
    if (!p) return IG_ENOMEM;
    memset(p, 0, sizeof *p);
    ig_status st = init(p, n_threads);
    if (st != IG_OK) {
        mem_free(p);
        return st;
    }
    *ret_pool = p;
    return IG_OK;
}

void pool_free(pool *p)
{
    if (!p) return;
    stop_threads(p);
    crew c = crew_of(p);
    crew_done(&c);
    cond_done(&p->turn);
    cond_done(&p->changed);
    lock_done(&p->lock);
    mem_free(p);
}

pool *pool_shared(void)
{
    static pool *_Atomic shared; /* the CPU device's threads: as long as the process */
    pool *p = atomic_load(&shared), *none = NULL;
    if (p) return p;
    int n = thread_n_cpus();
    if (n > POOL_MAX_THREADS) n = POOL_MAX_THREADS;
    if (pool_new(n < 1 ? 1 : n, &p) != IG_OK) return NULL;
    if (atomic_compare_exchange_strong(&shared, &none, p)) return p;
    pool_free(p); /* another thread was first */
    return none;
}

int pool_threads(const pool *p) { return atomic_load(&((pool *)(uintptr_t)p)->n_threads); }

ig_status pool_set_threads(pool *p, int n_threads)
{
    TRY(check_threads(n_threads));
    enter(p);
    ig_status st = IG_OK;
    crew c;
    if (n_threads != atomic_load(&p->n_threads) && (st = crew_make(p, n_threads, &c)) == IG_OK) {
        stop_threads(p);
        crew old = crew_of(p);
        crew_install(p, n_threads, &c);
        crew_done(&old);
    }
    leave(p);
    return st;
}

static void run_serial(worker *w, const job *j)
{
    w->ctx.sym = j->sym;
    for (int32_t i = j->first[0]; i < j->first[j->n_phases]; i++) {
        const step *s = &j->steps[i];
        int64_t n = s->blocks(s->args, &w->ctx);
        for (int64_t b = 0; b < n; b++) run_block(w, s, b, j->timing);
    }
}

static void run_shared(pool *p, worker *w)
{
    publish(p, w);
    for (;;) {
        uint64_t now = atomic_load_explicit(&p->now, memory_order_acquire);
        if (!n_lanes(now)) return;
        if (work_round(p, w, now))
            publish(p, w);
        else
            wait_timed(p, w, now);
    }
}

static void run_any(pool *p)
{
    worker *w = &p->workers[0];
    if (w->ctx.n_workers == 1)
        run_serial(w, &p->job);
    else
        run_shared(p, w);
}

/* The same with clocks; ticks become nanoseconds by this run's own ratio. */
static void run_timed(pool *p, run_counters *c)
{
    int n = p->workers[0].ctx.n_workers;
    for (int i = 0; i < n; i++) {
        p->workers[i].kernel_ticks = 0;
        atomic_store_explicit(&p->workers[i].wait_ticks, 0, memory_order_relaxed);
    }
    int64_t ns = clock_mono_ns(), ticks = cpu_ticks();
    run_any(p);
    ticks = cpu_ticks() - ticks;
    ns = clock_mono_ns() - ns;
    double ns_per_tick = ticks > 0 ? (double)ns / (double)ticks : 0;
    for (int i = 0; i < n; i++) {
        c->kernel_ns += (int64_t)((double)p->workers[i].kernel_ticks * ns_per_tick);
        c->wait_ns += (int64_t)((double)atomic_load_explicit(&p->workers[i].wait_ticks,
                                                             memory_order_relaxed) *
                                ns_per_tick);
    }
}

ig_status pool_run(pool *p, const step *steps, const int32_t *first, int n_phases,
                   const int64_t *sym, run_counters *c)
{
    if (n_phases <= 0) return IG_OK;
    bool timing = c && c->timing;
    enter(p);
    fp_state fp = fp_enter();
    p->job = (job){.steps = steps,
                   .first = first,
                   .n_phases = n_phases,
                   .sym = sym,
                   .timing = timing,
                   .step = first[0]};
    atomic_store_explicit(&p->timing, timing, memory_order_relaxed);
    if (timing)
        run_timed(p, c);
    else
        run_any(p);
    fp_leave(fp);
    leave(p);
    return IG_OK;
}
