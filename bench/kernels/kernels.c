/* kernels.c: how near the quantised kernels come to the machine's limits.
 *
 * For each shape it lays out many matrices, so that they come from memory and not from a cache,
 * and runs qmm8 over all of them, a barrier after each, as a model step does. A read of the same
 * bytes is timed between the rounds: the fraction printed is that of the faster of a plain and a
 * prefetching read loop, measured in the same seconds. Samples of the alternatives are
 * interleaved; the best and the median are printed.
 *
 *   bench/kernels/run.sh [-t threads] [-i isa,...] [-b 4|8] [-g 32|64|128] [-n tokens,...]
 *                        [-m MiB] [-r rounds] [-a bytes ahead] [-k KxN,...]
 *
 * With one thread, time is the thread's own: a busy machine then disturbs little. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/mman.h>
#include "array/cpu/kernels.h"
#include "array/cpu/machine.h"
#include "ingot/device.h"

#define MAX_THREADS 64
#define MAX_LIST 16
#define MAX_ROUNDS 32
#define BLOCK_ROWS 64

typedef struct list {
    int n;
    long v[MAX_LIST];
} list;
typedef struct options {
    int threads, bits, group, rounds;
    long ahead;
    size_t bytes;
    list tokens, k, n;
    int n_tables;
    const kernels *tables[MAX_LIST];
} options;

/* --- threads: one job at a time, everybody waits for everybody */
typedef struct team {
    int n;
    pthread_t thread[MAX_THREADS];
    void (*job)(int worker, void *arg);
    void *arg;
    _Alignas(128) atomic_int turn;
    _Alignas(128) atomic_int arrived;
} team;
typedef struct member {
    team *t;
    int index;
} member;
static team crew;
static member members[MAX_THREADS];

static void wait_while(atomic_int *word, int value)
{
    for (int spins = 0; atomic_load_explicit(word, memory_order_acquire) == value; spins++) {
        if (spins % 300 == 299)
            sched_yield();
        else
            cpu_pause();
    }
}

static void barrier(void)
{
    int turn = atomic_load(&crew.turn);
    if (atomic_fetch_add(&crew.arrived, 1) + 1 == crew.n) {
        atomic_store(&crew.arrived, 0);
        atomic_store_explicit(&crew.turn, turn + 1, memory_order_release);
    } else {
        wait_while(&crew.turn, turn);
    }
}

static void *serve(void *arg)
{
    member *m = arg;
    for (;;) {
        barrier();
        if (!m->t->job) return NULL;
        m->t->job(m->index, m->t->arg);
        barrier();
    }
}

static void run_job(void (*job)(int, void *), void *arg)
{
    crew.job = job;
    crew.arg = arg;
    barrier();
    if (!job) return;
    job(0, arg);
    barrier();
}

static void start_team(int n)
{
    crew.n = n;
    for (int i = 1; i < n; i++) {
        members[i] = (member){&crew, i};
        if (pthread_create(&crew.thread[i], NULL, serve, &members[i])) exit(1);
    }
}

static void end_team(void)
{
    run_job(NULL, NULL);
    for (int i = 1; i < crew.n; i++) pthread_join(crew.thread[i], NULL);
}

/* --- what is timed */
typedef struct matrices {
    char *memory;
    size_t bytes; /* of all matrices */
    int n;
    qmat *m;
    int64_t rows, k;
} matrices;

typedef struct trial {
    const kernels *table;
    const matrices *set;
    uint8_t *rec;
    size_t rec_stride, nt;
    float *y[MAX_THREADS];
    char *scratch[MAX_THREADS];
    int group, n_used;
} trial;

/* One thread counts its own time only: a busy machine then disturbs less. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(crew.n == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Worker w's share of `n` blocks of rows. */
static void share(int w, int64_t n, int64_t *first, int64_t *end)
{
    *first = n * w / crew.n;
    *end = n * (w + 1) / crew.n;
}

static void multiply(int w, void *arg)
{
    trial *t = arg;
    int64_t rows = t->set->rows, first, end;
    share(w, (rows + BLOCK_ROWS - 1) / BLOCK_ROWS, &first, &end);
    for (int i = 0; i < t->n_used; i++) {
        for (int64_t b = first; b < end; b++) {
            int64_t n0 = b * BLOCK_ROWS, n1 = n0 + BLOCK_ROWS < rows ? n0 + BLOCK_ROWS : rows;
            t->table->qmm8(t->y[w], BLOCK_ROWS, &t->set->m[i], n0, n1, t->rec, t->rec_stride,
                           t->group, t->nt, t->scratch[w]);
        }
        if (i + 1 < t->n_used) barrier();
    }
}

typedef struct reading {
    const matrices *set;
    size_t ahead;
    uint64_t sink[MAX_THREADS][16];
} reading;

typedef uint64_t line64 __attribute__((vector_size(32), aligned(8)));

static void read_all(int w, void *arg)
{
    reading *r = arg;
    int64_t first, end;
    share(w, (int64_t)(r->set->bytes / 4096), &first, &end);
    line64 a = {0}, b = {0}, c = {0}, d = {0};
    for (const char *p = r->set->memory + first * 4096, *e = r->set->memory + end * 4096; p < e;
         p += 128) {
        if (r->ahead) {
            __builtin_prefetch(p + r->ahead);
            __builtin_prefetch(p + r->ahead + 64);
        }
        a ^= *(const line64 *)p;
        b ^= *(const line64 *)(p + 32);
        c ^= *(const line64 *)(p + 64);
        d ^= *(const line64 *)(p + 96);
    }
    a ^= b ^ c ^ d;
    memcpy(r->sink[w], &a, sizeof a);
}

static double timed(void (*job)(int, void *), void *arg)
{
    double t = seconds();
    run_job(job, arg);
    return seconds() - t;
}

/* --- setting up */
static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static char *fresh(size_t n)
{
    size_t huge = 2u << 20, want = (n + huge - 1) / huge * huge;
    char *p = mmap(NULL, want + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit(1);
    p = (char *)(((uintptr_t)p + huge - 1) / huge * huge);
    madvise(p, want, MADV_HUGEPAGE);
    return p;
}

static size_t up64(size_t n) { return (n + 63) / 64 * 64; }

/* Cuts the memory into as many matrices as fit; f16 scales and biases near 2^-8. */
static matrices cut(char *memory, size_t bytes, int64_t rows, int64_t k, const options *o)
{
    size_t codes = up64((size_t)(rows * k) / 8 * (size_t)o->bits);
    size_t scales = up64((size_t)(rows * k / o->group) * 2), one = codes + 2 * scales;
    matrices s = {.memory = memory, .n = (int)(bytes / one), .rows = rows, .k = k};
    if (s.n < 1) s.n = 1;
    s.bytes = (size_t)s.n * one;
    s.m = calloc((size_t)s.n, sizeof *s.m);
    if (!s.m) exit(1);
    for (int i = 0; i < s.n; i++) {
        char *p = memory + (size_t)i * one;
        uint16_t *sb = (uint16_t *)(p + codes);
        for (size_t j = 0; j < scales; j++) sb[j] = (uint16_t)(0x1c00 | (j & 1023));
        s.m[i] = (qmat){
            (const uint8_t *)p, p + codes, p + codes + scales, rows, k, o->group, o->bits, IG_F16,
            (int32_t)o->ahead};
    }
    return s;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static const char *name_of(const kernels *k)
{
    return k == &kernels_avx512vnni ? "avx512vnni" : k->isa;
}

/* --- one line of the table */
static void bench_shape(const options *o, trial *t, matrices *set, size_t nt)
{
    size_t rb = rows8_bytes((size_t)set->k, (size_t)o->group < 64 ? 64 : (size_t)o->group);
    t->set = set;
    t->nt = nt;
    t->rec_stride = rb;
    t->group = o->group < 64 ? 64 : o->group;
    static double time[MAX_LIST + 2][MAX_ROUNDS];
    double ops = 2.0 * (double)set->rows * (double)set->k * (double)nt;
    /* a sample is at most some 0.2 s of arithmetic at 100 GOP/s per thread, and always a whole
     * matrix */
    double most = 2e10 * crew.n / ops;
    t->n_used = most < 1 ? 1 : most < set->n ? (int)most : set->n;
    size_t used = set->bytes / (size_t)set->n * (size_t)t->n_used;
    matrices part = *set;
    part.bytes = used;
    reading plain = {.set = &part}, ahead = {.set = &part, .ahead = 2048};
    for (int r = 0; r < o->rounds; r++) {
        for (int i = 0; i < o->n_tables; i++) {
            t->table = o->tables[i];
            time[i][r] = timed(multiply, t);
        }
        time[o->n_tables][r] = timed(read_all, &plain);
        time[o->n_tables + 1][r] = timed(read_all, &ahead);
    }
    for (int i = 0; i < o->n_tables + 2; i++)
        qsort(time[i], (size_t)o->rounds, sizeof(double), by_value);
    double p = time[o->n_tables][0], a = time[o->n_tables + 1][0],
           best_read = (double)used / (p < a ? p : a) * 1e-9;
    for (int i = 0; i < o->n_tables; i++) {
        double gb = (double)used / time[i][0] * 1e-9,
               mid = (double)used / time[i][o->rounds / 2] * 1e-9;
        printf("%-10s %5ld x %-6ld %4zu  %7.2f %7.2f  %8.1f  %6.2f  %5.2f\n", name_of(o->tables[i]),
               (long)set->k, (long)set->rows, nt, gb, mid, ops * t->n_used / time[i][0] * 1e-9,
               best_read, gb / best_read);
    }
    fflush(stdout);
}

static list parse(const char *text)
{
    list l = {0};
    while (*text && l.n < MAX_LIST) {
        char *end;
        l.v[l.n++] = strtol(text, &end, 10);
        text = *end ? end + 1 : end;
    }
    return l;
}

static void parse_shapes(options *o, const char *text)
{
    o->k.n = o->n.n = 0;
    while (*text && o->k.n < MAX_LIST) {
        char *end;
        o->k.v[o->k.n++] = strtol(text, &end, 10);
        text = *end ? end + 1 : end;
        o->n.v[o->n.n++] = strtol(text, &end, 10);
        text = *end ? end + 1 : end;
    }
}

static void parse_isas(options *o, char *text)
{
    o->n_tables = 0;
    for (char *s = strtok(text, ","); s && o->n_tables < MAX_LIST; s = strtok(NULL, ",")) {
        const kernels *const *k = kernels_all();
        while (*k && strcmp(name_of(*k), s)) k++;
        if (!*k) {
            fprintf(stderr, "this machine has no %s\n", s);
            exit(1);
        }
        o->tables[o->n_tables++] = *k;
    }
}

static options parse_options(int argc, char **argv)
{
    options o = {.threads = 2, .bits = 4, .group = 64, .rounds = 5, .bytes = (size_t)512 << 20};
    o.tokens = parse("1,2,4,8,16,32,128,512");
    parse_shapes(&o, "576x576,576x192,576x1536,1536x576,576x49152,2048x2048,2048x8192,8192x2048");
    for (const kernels *const *k = kernels_all(); *k != &kernels_ref; k++)
        o.tables[o.n_tables++] = *k;
    for (int c; (c = getopt(argc, argv, "t:i:b:g:n:m:r:a:k:")) != -1;) {
        switch (c) {
        case 't': o.threads = atoi(optarg); break;
        case 'i': parse_isas(&o, optarg); break;
        case 'b': o.bits = atoi(optarg); break;
        case 'g': o.group = atoi(optarg); break;
        case 'n': o.tokens = parse(optarg); break;
        case 'm': o.bytes = (size_t)atol(optarg) << 20; break;
        case 'r': o.rounds = atoi(optarg); break;
        case 'a': o.ahead = atol(optarg); break;
        case 'k': parse_shapes(&o, optarg); break;
        default: exit(2);
        }
    }
    if (o.threads < 1 || o.threads > MAX_THREADS || o.rounds < 1 || o.rounds > MAX_ROUNDS) exit(2);
    return o;
}

int main(int argc, char **argv)
{
    options o = parse_options(argc, argv);
    start_team(o.threads);
    size_t room = o.bytes + ((size_t)64 << 20);
    char *memory = fresh(room);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < room; i += 8) *(uint64_t *)(memory + i) = random_bits(&state);
    trial t = {0};
    long most = 0, widest = 0;
    for (int i = 0; i < o.tokens.n; i++) most = o.tokens.v[i] > most ? o.tokens.v[i] : most;
    for (int i = 0; i < o.k.n; i++) widest = o.k.v[i] > widest ? o.k.v[i] : widest;
    t.rec = (uint8_t *)fresh((size_t)most * rows8_bytes((size_t)widest, 32));
    for (int i = 0; i < o.threads; i++) {
        t.y[i] = (float *)fresh((size_t)most * BLOCK_ROWS * sizeof(float));
        t.scratch[i] = fresh(KERNEL_SCRATCH_BYTES);
    }
    float *x = (float *)fresh((size_t)widest * sizeof(float));
    printf(
        "# %d threads, %d-bit, group %d, %zu MiB of weights, prefetch %ld; best and median of %d\n",
        o.threads, o.bits, o.group, o.bytes >> 20, o.ahead, o.rounds);
    printf("%-10s %14s %4s  %7s %7s  %8s  %6s  %5s\n", "# isa", "K x rows", "nt", "GB/s", "median",
           "GOP/s", "read", "of it");
    for (int i = 0; i < o.k.n; i++) {
        matrices set = cut(memory, o.bytes, o.n.v[i], o.k.v[i], &o);
        for (long j = 0; j < o.k.v[i]; j++)
            x[j] = (float)(int64_t)(random_bits(&state) >> 40) * 0x1p-23f - 1;
        int act_group = o.group < 64 ? 64 : o.group;
        size_t rb = rows8_bytes((size_t)o.k.v[i], (size_t)act_group);
        for (long r = 0; r < most; r++)
            kernels_ref.rows8(t.rec + (size_t)r * rb, x, (size_t)o.k.v[i], act_group);
        for (int j = 0; j < o.tokens.n; j++) bench_shape(&o, &t, &set, (size_t)o.tokens.v[j]);
        free(set.m);
    }
    end_team();
    return 0;
}
