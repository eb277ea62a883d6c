/* machine.c: measures the machine's limits: memory, hashing, integer arithmetic, durable writes. */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "cli/machine.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/thread.h"
#include "ingot/ingot.h"

#define READ_BYTES ((size_t)512 << 20)

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* job(jobs[i]) on a thread each, the caller's among them; waits for all. */
static ig_status run_all(int n, pthread_t *thread, void *(*job)(void *), void *jobs, size_t size)
{
    int n_started = 1;
    ig_status s = IG_OK;
    for (; s == IG_OK && n_started < n; n_started += s == IG_OK)
        s = thread_start(&thread[n_started], "ingot measure", 0, job,
                         (char *)jobs + (size_t)n_started * size);
    if (s == IG_OK) job(jobs);
    for (int i = 1; i < n_started; i++) pthread_join(thread[i], NULL);
    return s;
}

typedef uint64_t words __attribute__((vector_size(16), aligned(16)));
#define LINE_WORDS 4 /* 64 bytes */
#define AHEAD_LINES 32

typedef struct read_job {
    const words *p;
    size_t n_lines;
    bool ahead; /* with prefetches: some machines read faster so, some slower */
    words sink;
} read_job;

static void *read_all(void *arg)
{
    read_job *j = arg;
    words a = {0}, b = a, c = a, d = a;
    const words *end = j->p + j->n_lines * LINE_WORDS;
    for (const words *p = j->p; p < end; p += LINE_WORDS) {
        if (j->ahead) __builtin_prefetch(p + AHEAD_LINES * LINE_WORDS);
        a ^= p[0], b ^= p[1], c ^= p[2], d ^= p[3];
    }
    j->sink = a ^ b ^ c ^ d;
    return NULL;
}

/* Best of six passes over 512 MiB by as many threads as the model uses. */
ig_status machine_read(int n_threads, double *ret_gb_s)
{
    AUTO(mem_ptr) memory = mem_aligned(2 << 20, READ_BYTES);
    AUTO(mem_ptr) job_memory = mem_aligned(64, (size_t)n_threads * sizeof(read_job));
    AUTO(mem_ptr) thread_memory = mem_calloc((size_t)n_threads, sizeof(pthread_t));
    read_job *job = job_memory;
    pthread_t *thread = thread_memory;
    double best = 0;
    if (!memory || !job || !thread) return IG_ENOMEM;
    madvise(memory, READ_BYTES, MADV_HUGEPAGE);
    memset(memory, 1, READ_BYTES);
    size_t n = READ_BYTES / 64 / (size_t)n_threads;
    for (int pass = 0; pass < 6; pass++) {
        for (int i = 0; i < n_threads; i++) {
            const words *first = (const words *)memory + (size_t)i * n * LINE_WORDS;
            job[i] = (read_job){.p = first, .n_lines = n, .ahead = pass % 2 == 1};
        }
        int64_t begin = clock_mono_ns();
        TRY(run_all(n_threads, thread, read_all, job, sizeof *job));
        double gb_s = (double)(n * 64 * (size_t)n_threads) / (double)(clock_mono_ns() - begin);
        if (gb_s > best) best = gb_s;
    }
    *ret_gb_s = best;
    return IG_OK;
}

/* SHA-256 of 64 MiB per thread, all threads at once. */
typedef struct hash_job {
    const uint8_t *p;
    uint8_t digest[SHA256_N];
} hash_job;
#define HASH_BYTES ((size_t)64 << 20)

static void *hash_all(void *arg)
{
    hash_job *j = arg;
    sha256(j->p, HASH_BYTES, j->digest);
    return NULL;
}

ig_status machine_hash(int n_threads, double *ret_gb_s)
{
    AUTO(mem_ptr) memory = mem_calloc(1, HASH_BYTES);
    AUTO(mem_ptr) job_memory = mem_calloc((size_t)n_threads, sizeof(hash_job));
    AUTO(mem_ptr) thread_memory = mem_calloc((size_t)n_threads, sizeof(pthread_t));
    hash_job *job = job_memory;
    pthread_t *thread = thread_memory;
    if (!memory || !job || !thread) return IG_ENOMEM;
    memset(memory, 1, HASH_BYTES);
    for (int i = 0; i < n_threads; i++) job[i].p = memory;
    int64_t begin = clock_mono_ns();
    TRY(run_all(n_threads, thread, hash_all, job, sizeof *job));
    *ret_gb_s = (double)n_threads * (double)HASH_BYTES / (double)(clock_mono_ns() - begin);
    return IG_OK;
}

/* The int8 kernel on a matrix that stays in the caches: what arithmetic gives when memory does not
 * hold it back. */
#define CORE_N 512
#define CORE_K 512
#define CORE_T 256

typedef struct core_job {
    ig_quantized w;
} core_job;

static ig_status core_trace(void *user, const ig_array *in, int n_in, ig_array *ret_out, int n_out)
{
    const core_job *j = user;
    (void)n_in, (void)n_out;
    ret_out[0] = ig_quantized_matmul_rows8(ig_int8_rows(in[0], 64), j->w);
    return ig_is_empty(ret_out[0]) ? ig_error_code() : IG_OK;
}

static ig_status time_core(ig_plan *p, double *ret_gop_s)
{
    double best = 0;
    memset(ig_plan_input(p, 0), 0, (size_t)CORE_T * CORE_K * sizeof(float));
    for (int i = 0; i < 60; i++) {
        int64_t begin = clock_mono_ns();
        TRY(ig_plan_replay(p, NULL, 0));
        double rate = 2.0 * CORE_N * CORE_K * CORE_T / (double)(clock_mono_ns() - begin);
        if (rate > best) best = rate;
    }
    *ret_gop_s = best;
    return IG_OK;
}

ig_status machine_int8(double *ret_gop_s)
{
    core_job job;
    ig_plan *p = NULL;
    ig_input input = {"x", IG_F32, 2, {CORE_T, CORE_K}, -1};
    ig_plan_spec spec = {.inputs = &input, .n_inputs = 1, .n_outputs = 1};
    ig_scope *scope = ig_scope_open();
    job.w = ig_quantize(ig_full((int64_t[]){CORE_N, CORE_K}, 2, 0.5, IG_F16), 64, 4);
    ig_status s = ig_compile(core_trace, &job, &spec, &p);
    if (s == IG_OK) s = time_core(p, ret_gop_s);
    ig_plan_free(p);
    ig_status closed = ig_scope_close(scope);
    return s != IG_OK ? s : closed;
}

/* Median of a 512-byte append and fdatasync in dir. */
ig_status machine_sync(const char *dir, double *ret_us)
{
    AUTO(buf) path = {0};
    double us[21];
    char block[512] = {0};
    int fd = -1;
    TRY(file_join(&path, dir, ".ingot-sync-test"));
    TRY(io_open(path.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600, &fd));
    ig_status s = IG_OK;
    for (int i = 0; i < 21 && s == IG_OK; i++) {
        int64_t begin = clock_mono_ns();
        s = io_write(fd, block, sizeof block, path.data);
        if (s == IG_OK) s = io_fdatasync(fd, path.data);
        us[i] = (double)(clock_mono_ns() - begin) * 1e-3;
    }
    io_close(fd);
    ig_status removed = io_unlink(path.data);
    if (s == IG_OK) s = removed;
    if (s == IG_OK) {
        qsort(us, 21, sizeof *us, by_size);
        *ret_us = us[10];
    }
    return s;
}
