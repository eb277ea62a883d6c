/* pool.c: how blocks reach threads, and how a phase ends.
 *
 * Work is published as *rounds*: some members of one phase, cut into lanes of consecutive blocks,
 * one lane a worker. Whoever finishes the last block of a round publishes the next one; it alone
 * writes lanes and slot. Two sets of lanes alternate. The claim word of a lane is (round number,
 * blocks left); taking blocks is a compare-and-swap of the whole word. A thread reads the rest of a
 * lane only after such a claim succeeded: then its round is not finished, so neither the lane nor
 * the steps behind it can change or go away. A thread that was away for any time finds another
 * number in the word and touches nothing. (Should the number have come round again with the same
 * count left, the claim is a valid claim of the new round.)
 *
 * Rounds of one block, and everything when there is one worker, run in the publishing thread
 * without a shared word. Waiters pause, then yield; a thread that has waited for POOL_PARK_US parks
 * on `changed`, and publishers wake only when somebody is parked (a futex costs 50 to 75 us on a
 * virtual CPU, a round 0.3). Our own threads, which are nicer than the caller, offer their core
 * between blocks, having reported what it did: a thread that loses its core inside a block makes
 * all others wait for it. */
#include "array/cpu/pool.h"
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include "array/cpu/machine.h"
#include "base/clock.h"
#include "base/fp.h"
#include "base/thread.h"

#define POOL_LINE 128               /* two 64-byte lines: the prefetcher pairs them */
#define POOL_MEMBERS 32             /* steps in one round; a wider phase takes several */
#define POOL_LANE_MEMBERS 4         /* of them beside a lane's claim word */
#define POOL_ROUND_BLOCKS (1 << 16) /* blocks in one round; a longer step takes several */
#define POOL_PORTION 16             /* blocks taken at once, at most */
#define POOL_PAUSES 300             /* before a waiter yields */
#define POOL_YIELDS 8               /* between two looks at the clock */
#define POOL_PARK_US 4000 /* more than the host needs between two steps, for sampling say */
#define POOL_BURST_US 500 /* of work, then the core is offered to others */
#define POOL_CHECK_US 100 /* about how often a working thread looks at the clock */
#define POOL_MAX_CHECK 256
#define POOL_NICE 2 /* compute gives way to HTTP and audit threads */
#define HUGE_PAGE ((size_t)2 << 20)

typedef struct member {
    const step *s;
    int32_t start; /* its first block in the round */
} member;

/* Some members of one phase; owned by the worker that publishes it. */
typedef struct round {
    int64_t base; /* block of m[0].s that is the round's first: a long step takes several rounds */
    int32_t n_blocks, n_members;
    member m[POOL_MEMBERS + 1]; /* m[n_members].start = n_blocks */
} round;

/* One worker's share of a round, with what running it needs on the lines that a claim fetches. */
typedef struct __attribute__((aligned(POOL_LINE))) lane {
    _Atomic uint64_t claim; /* round number << 32 | blocks left in this lane */
    int64_t base;           /* as in round */
    int32_t end;            /* the round's block after the last of this lane */
    const member *m;        /* own, or where they do not fit the publisher's */
    member own[POOL_LANE_MEMBERS + 1];
} lane;

/* Where a round begins: the next block to publish. */
typedef struct cursor {
    int32_t phase, step;
    int64_t block;
} cursor;

/* The end of a round. Whoever takes the last block off `left` has the line, and publishes. */
typedef struct __attribute__((aligned(POOL_LINE))) slot {
    _Atomic int64_t left; /* blocks not finished */
    cursor next;          /* where the next round begins */
} slot;

typedef struct __attribute__((aligned(POOL_LINE))) worker {
    run_ctx ctx;
    pool *pool;
    pthread_t thread;
    int64_t kernel_ticks;        /* written between claim and finish */
    int64_t resumed_us;          /* when this thread last got its core, as far as it knows */
    int64_t checked_us;          /* when it last looked at the clock */
    int32_t n_portions, n_check; /* claims since then, and how many until it looks again */
    bool due;                    /* it is time to offer the core to others */
    _Atomic int64_t wait_ticks;  /* also written after a run's end, hence atomic */
    round round;                 /* the last one that it published */
} worker;

/* The run in progress; does not change while it lasts. */
typedef struct job {
    const step *steps;
    const int32_t *first;
    int n_phases;
    const int64_t *sym;
    bool timing;
} job;

struct pool {
    _Alignas(POOL_LINE) _Atomic uint64_t
        now; /* round number << 16 | lanes; no lanes: idle, the run is over */
    _Alignas(POOL_LINE) _Atomic bool parked; /* somebody may sleep on `changed` */
    _Atomic bool stop, timing;
    _Alignas(POOL_LINE) _Atomic int owner; /* 1 while a run or a resize is in progress */
    _Atomic int n_queued;                  /* threads waiting for their turn */
    _Alignas(POOL_LINE) job job;
    slot slots[2];
    worker *workers; /* [n_threads] */
    lane *lanes[2];  /* [n_threads] each */
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

static bool stays(pool *p, uint64_t now)
{
    return atomic_load(&p->now) == now && !atomic_load(&p->stop);
}

/* One lock for all who are parked: they need not be told twice. */
static void wake(pool *p)
{
    if (!atomic_load(&p->parked)) return;
    lock_take(&p->lock);
    atomic_store(&p->parked, false);
    cond_broadcast(&p->changed);
    lock_drop(&p->lock);
}

/* A thread woken by the news of an earlier round says again that it is there. */
static void park(pool *p, uint64_t now)
{
    lock_take(&p->lock);
    for (;;) {
        atomic_store(&p->parked, true);
        if (!stays(p, now)) break;
        cond_wait(&p->changed, &p->lock);
    }
    lock_drop(&p->lock);
}

/* True when the round changed within POOL_PARK_US, yielding the core all the while. */
static bool yield_until_change(pool *p, uint64_t now)
{
    int64_t deadline = clock_mono_us() + POOL_PARK_US;
    do {
        for (int i = 0; i < POOL_YIELDS; i++) {
            if (!stays(p, now)) return true;
            sched_yield();
        }
    } while (clock_mono_us() < deadline);
    return false;
}

static void wait_change(pool *p, worker *w, uint64_t now)
{
    for (int i = 0; i < POOL_PAUSES; i++) {
        if (!stays(p, now)) return;
        cpu_pause();
    }
    if (!yield_until_change(p, now)) park(p, now);
    w->resumed_us = clock_mono_us();
}

/* After a claim's blocks: is it time to offer the core? Where another process wants it, it is then
 * taken between two claims and not inside a block for which everybody waits. */
static bool is_due(worker *w)
{
    if (++w->n_portions < w->n_check) return false;
    int64_t now = clock_mono_us(), spent = now - w->checked_us;
    if (spent > 2 * POOL_CHECK_US) w->n_check = (int32_t)(w->n_check * POOL_CHECK_US / spent) + 1;
    if (spent < POOL_CHECK_US / 2 && w->n_check < POOL_MAX_CHECK) w->n_check *= 2;
    w->checked_us = now;
    w->n_portions = 0;
    return now - w->resumed_us > POOL_BURST_US;
}

/* Offers the core if that is due; only with all finished blocks reported. */
static bool offered_core(worker *w)
{
    if (!w->due) return false;
    w->due = false;
    sched_yield();
    w->resumed_us = w->checked_us = clock_mono_us();
    return true;
}

static void wait_timed(pool *p, worker *w, uint64_t now)
{
    if (!n_lanes(now) || !atomic_load_explicit(&p->timing, memory_order_relaxed)) {
        wait_change(p, w, now);
        return;
    }
    int64_t t = cpu_ticks();
    wait_change(p, w, now);
    atomic_fetch_add_explicit(&w->wait_ticks, cpu_ticks() - t, memory_order_relaxed);
}

/* --- running blocks */

/* First block of lane i when n blocks are cut into lanes. */
static int64_t lane_start(int64_t n, int i, int of) { return n * i / of; }

/* How many blocks to take at once from a lane that has `left`: half, so that little is lost at the
 * end when one worker is slower or goes away, and few are the claims. */
static uint32_t portion(uint32_t left)
{
    uint32_t n = left / 2;
    return n < 1 ? 1 : n > POOL_PORTION ? POOL_PORTION : n;
}
/* Takes blocks of a lane of round `number`; 0 when the lane has none or is of another round. The
 * first one taken is *ret_left blocks before the lane's end. */
static uint32_t claim(lane *l, uint32_t number, uint32_t *ret_left)
{
    uint64_t x = atomic_load_explicit(&l->claim, memory_order_relaxed);
    while (x >> 32 == number && (uint32_t)x) {
        uint32_t n = portion((uint32_t)x);
        if (atomic_compare_exchange_weak_explicit(&l->claim, &x, x - n, memory_order_acquire,
                                                  memory_order_relaxed)) {
            *ret_left = (uint32_t)x;
            return n;
        }
    }
    return 0;
}

/* Runs blocks [k, k + n) of a round. */
static void run_blocks(worker *w, const member *first, int64_t base, int64_t k, int64_t n)
{
    const job *j = &w->pool->job;
    const member *m = first;
    int64_t t = j->timing ? cpu_ticks() : 0;
    w->ctx.sym = j->sym;
    for (int64_t end = k + n; k < end; k++) {
        while (k >= m[1].start) m++;
        m->s->run(m->s->args, &w->ctx, k - m->start + (m == first ? base : 0));
    }
    if (j->timing) w->kernel_ticks += cpu_ticks() - t;
}

/* Claims and runs what is left of a lane, or until the core is to be offered; returns how many
 * blocks. */
static int64_t drain(worker *w, lane *l, uint32_t number)
{
    uint32_t left, taken;
    int64_t n_done = 0;
    while (!w->due && (taken = claim(l, number, &left))) {
        run_blocks(w, l->m, l->base, l->end - (int64_t)left, taken);
        n_done += taken;
        if (w->ctx.worker) w->due = is_due(w);
    }
    return n_done;
}

/* Were these the last blocks of the round? */
static bool finishes(slot *s, int64_t n_done)
{
    return n_done && atomic_fetch_sub_explicit(&s->left, n_done, memory_order_acq_rel) == n_done;
}

/* Claims and runs what is left of a round, of which this thread has done n_done blocks before;
 * true when it finished the last block and has to publish. Blocks are reported lane by lane, its
 * own first: mostly they are the last; and before it offers its core: nobody waits for a thread
 * that is away. */
static bool work_round(pool *p, worker *w, uint64_t now, int64_t n_done)
{
    uint32_t number = (uint32_t)(now >> 16);
    int n = n_lanes(now);
    if (!n) return false;
    slot *s = &p->slots[number & 1];
    lane *lanes = p->lanes[number & 1];
    int own = w->ctx.worker % n;
    for (int v = 0; v < n; v++) do {
            if (finishes(s, n_done + drain(w, &lanes[(own + v) % n], number))) return true;
            n_done = 0;
        } while (offered_core(w));
    return false;
}

/* --- publishing */

/* Lists the next blocks of one phase in r, from the cursor on, and moves it. None: the run is
 * over. */
static int32_t gather(const job *j, cursor *at, round *r, const run_ctx *ctx)
{
    int64_t n = 0;
    r->n_members = 0;
    while (!n && at->phase < j->n_phases) {
        int32_t end = j->first[at->phase + 1];
        while (at->step < end && r->n_members < POOL_MEMBERS && n < POOL_ROUND_BLOCKS) {
            const step *st = &j->steps[at->step];
            int64_t rest = st->blocks(st->args, ctx) - at->block, take = rest;
            if (take > POOL_ROUND_BLOCKS - n) take = POOL_ROUND_BLOCKS - n;
            if (take > 0) {
                if (!n) r->base = at->block;
                r->m[r->n_members++] = (member){st, (int32_t)n};
                n += take;
            }
            at->block = take < rest ? at->block + take : 0;
            at->step += take >= rest;
        }
        if (at->step == end) at->phase++;
    }
    r->m[r->n_members] = (member){.start = (int32_t)n};
    r->n_blocks = (int32_t)n;
    return (int32_t)n;
}

/* Fetches what publishing the next phases will read: weights have driven it out of the caches since
 * the last run. The arguments of the phase at the cursor; the steps of the one after it, which say
 * where their arguments are. */
static void look_ahead(const job *j, const cursor *at)
{
    if (at->phase + 1 >= j->n_phases) return;
    const int32_t *first = &j->first[at->phase];
    for (int32_t i = first[0]; i < first[1] && i < first[0] + POOL_LANE_MEMBERS; i++) {
        __builtin_prefetch(j->steps[i].args);
        __builtin_prefetch((const char *)j->steps[i].args + 64);
    }
    for (int32_t i = first[1]; i < first[2] && i < first[1] + POOL_LANE_MEMBERS; i++) {
        __builtin_prefetch(&j->steps[i]);
        __builtin_prefetch((const char *)&j->steps[i + 1] - 1);
    }
}

static void start_threads(pool *p);

/* Cuts a round into lanes; the publisher's own starts without its first blocks. Returns how many
 * these are. */
static uint32_t fill_lanes(lane *lanes, int n, uint32_t number, const round *r, int own)
{
    uint32_t mine = 0;
    for (int i = 0; i < n; i++) {
        lane *l = &lanes[i];
        l->base = r->base;
        l->end = (int32_t)lane_start(r->n_blocks, i + 1, n);
        l->m = r->m;
        if (r->n_members <= POOL_LANE_MEMBERS) {
            for (int k = 0; k <= r->n_members; k++) l->own[k] = r->m[k];
            l->m = l->own;
        }
        uint32_t count = (uint32_t)(l->end - lane_start(r->n_blocks, i, n));
        if (i == own) count -= mine = portion(count);
        atomic_store_explicit(&l->claim, (uint64_t)number << 32 | count, memory_order_release);
    }
    return mine;
}

/* Parked workers sleep on: only the caller needs to know, and it is not told what it just found
 * out itself. */
static void finish(pool *p, const worker *w, uint64_t now)
{
    if (!n_lanes(now)) return;
    atomic_store(&p->now, ((now >> 16) + 1) << 16);
    if (w->ctx.worker) wake(p);
}

/* Publishes the round after `now` and runs this thread's first blocks of it; rounds of one block
 * run here at once; at the end of the run tells everybody. Returns how many blocks of the new
 * round are done. The stores travel to the other cores while the first blocks run; what a thread
 * that parks meanwhile may have missed is looked at again after them. */
static int64_t publish(pool *p, worker *w, uint64_t now)
{
    const job *j = &p->job;
    uint32_t number = (uint32_t)(now >> 16);
    cursor at = n_lanes(now) ? p->slots[number & 1].next : (cursor){.step = j->first[0]};
    round *r = &w->round;
    w->ctx.sym = j->sym;
    int32_t n;
    while ((n = gather(j, &at, r, &w->ctx)) == 1) run_blocks(w, r->m, r->base, 0, 1);
    if (!n) {
        finish(p, w, now);
        return 0;
    }
    start_threads(p);
    number++;
    slot *s = &p->slots[number & 1];
    lane *lanes = p->lanes[number & 1];
    int lanes_n = n < w->ctx.n_workers ? n : w->ctx.n_workers, own = w->ctx.worker % lanes_n;
    atomic_store_explicit(&s->left, n, memory_order_relaxed);
    s->next = at;
    uint32_t mine = fill_lanes(lanes, lanes_n, number, r, own);
    atomic_store_explicit(&p->now, (uint64_t)number << 16 | (unsigned)lanes_n,
                          memory_order_release);
    wake(p);
    look_ahead(j, &at);
    run_blocks(w, r->m, r->base, lane_start(n, own, lanes_n), mine);
    cpu_fence();
    wake(p);
    return mine;
}

/* Works on round `now`, of which n_done blocks are done here, and publishes the next for as long as
 * this thread is the one that finishes. Returns the round that has nothing left to take. */
static uint64_t take_part(pool *p, worker *w, uint64_t now, int64_t n_done)
{
    while (work_round(p, w, now, n_done)) {
        n_done = publish(p, w, now);
        now = atomic_load_explicit(&p->now, memory_order_relaxed);
    }
    return now;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    pool *p = w->pool;
    fp_enter();
    while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
        uint64_t now = atomic_load_explicit(&p->now, memory_order_acquire);
        wait_timed(p, w, take_part(p, w, now, 0));
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
    lane *lanes[2];
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
              .lanes = {mem_aligned(POOL_LINE, (size_t)n * sizeof(lane)),
                        mem_aligned(POOL_LINE, (size_t)n * sizeof(lane))},
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
        c.workers[i].n_check = 1;
        for (int k = 0; k < 2; k++) atomic_init(&c.lanes[k][i].claim, 0);
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
        int64_t n = s->blocks(s->args, &w->ctx), t = j->timing ? cpu_ticks() : 0;
        for (int64_t b = 0; b < n; b++) s->run(s->args, &w->ctx, b);
        if (j->timing) w->kernel_ticks += cpu_ticks() - t;
    }
}

static void run_shared(pool *p, worker *w)
{
    uint64_t now = atomic_load_explicit(&p->now, memory_order_relaxed);
    int64_t n_done = publish(p, w, now);
    now = atomic_load_explicit(&p->now, memory_order_relaxed);
    while (n_lanes(now = take_part(p, w, now, n_done))) {
        wait_timed(p, w, now);
        now = atomic_load_explicit(&p->now, memory_order_acquire);
        n_done = 0;
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
    p->job =
        (job){.steps = steps, .first = first, .n_phases = n_phases, .sym = sym, .timing = timing};
    atomic_store_explicit(&p->timing, timing, memory_order_relaxed);
    if (timing)
        run_timed(p, c);
    else
        run_any(p);
    fp_leave(fp);
    leave(p);
    return IG_OK;
}
