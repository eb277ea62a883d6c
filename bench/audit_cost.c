/* audit_cost: what evidence costs on this machine. One JSON line per measurement:
 *   sync       pwrite + fdatasync of one record into preallocated space: the floor of the others
 *   append     durable events with N threads waiting at once (group commit): events/s, latency
 *   request    admit and done of N callers, each waiting for both, done with its signature
 *   receipt    writing a receipt from the log
 *   hash       files of a model through SHA-256, one thread per file
 * Usage: audit_cost [dir [seconds]]; dir must be on the disk to be measured. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "audit/log.h"
#include "audit/manifest.h"
#include "audit/segment.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"

#define MAX_SAMPLES ((size_t)1 << 20)
#define MAX_THREADS 256

typedef struct measure {
    audit_log *l;
    audit_ref load;
    int64_t until_us;
    bool requests; /* else denied events */
    atomic_size_t n;
    int64_t *us; /* [MAX_SAMPLES] */
} measure;

static void need(ig_status st)
{
    if (st == IG_OK) return;
    fprintf(stderr, "audit_cost: %s\n", ig_error_message());
    exit(1);
}

static void make_load(event *e)
{
    static const uint8_t zero[SHA256_N];
    event_init(e, EVENT_LOAD);
    event_hex(e, EV_LOAD_MODEL_ROOT, zero);
    event_hex(e, EV_LOAD_MODEL_SIG, zero);
    event_str(e, EV_LOAD_MODEL_NAME, "bench");
    event_int(e, EV_LOAD_MODEL_VER, 1);
    event_int(e, EV_LOAD_MODEL_FILES, 1);
    event_int(e, EV_LOAD_MODEL_BYTES, 1);
    event_hex(e, EV_LOAD_KEY, zero);
    event_str(e, EV_LOAD_VERIFIED, "full");
    event_str(e, EV_LOAD_RESIDENCY, "mapped");
    event_int(e, EV_LOAD_WRITABLE, 0);
    event_str(e, EV_LOAD_ENG_KSET, "k1");
    event_str(e, EV_LOAD_ENG_KV, "f16");
}

static void make_admit(event *e, const audit_ref *load)
{
    static const uint8_t zero[SHA256_N];
    static const event_field off[] = {EV_ADMIT_P_TOP_K, EV_ADMIT_P_LOGPROBS, EV_ADMIT_P_N_STOP,
                                      EV_ADMIT_P_N_BIAS, EV_ADMIT_P_STREAM};
    static const event_field dec[] = {
        EV_ADMIT_P_TEMPERATURE, EV_ADMIT_P_TOP_P,     EV_ADMIT_P_MIN_P,   EV_ADMIT_P_REPETITION,
        EV_ADMIT_P_PRESENCE,    EV_ADMIT_P_FREQUENCY, EV_ADMIT_SEED_VALUE};
    event_init(e, EVENT_ADMIT);
    event_str(e, EV_ADMIT_REQ, "01JDEXAMPLE0000000000000000");
    event_str(e, EV_ADMIT_KIND, "request");
    event_str(e, EV_ADMIT_API, "chat");
    event_int(e, EV_ADMIT_LOAD_I, (int64_t)load->index);
    event_hex(e, EV_ADMIT_LOAD_H, load->leaf.b);
    event_hex(e, EV_ADMIT_MODEL_ROOT, zero);
    event_str(e, EV_ADMIT_ENG_KSET, "k1");
    event_str(e, EV_ADMIT_ENG_KV, "f16");
    event_hex(e, EV_ADMIT_IN_COMMIT, zero);
    event_int(e, EV_ADMIT_IN_BYTES, 100);
    event_int(e, EV_ADMIT_P_N, 1);
    event_int(e, EV_ADMIT_P_MAX_TOKENS, 256);
    for (size_t i = 0; i < N_ELEM(off); i++) event_int(e, off[i], 0);
    for (size_t i = 0; i < N_ELEM(dec); i++) event_str(e, dec[i], "0");
    event_str(e, EV_ADMIT_SEED_FROM, "client");
}

static void make_done(event *e)
{
    event_commit c = {.n = 100};
    static const uint8_t zero[SHA256_N];
    event_init(e, EVENT_DONE);
    event_str(e, EV_DONE_STATUS, "ok");
    event_str(e, EV_DONE_FINISH, "stop");
    event_int(e, EV_DONE_HTTP, 200);
    event_int(e, EV_DONE_SENT, 0);
    event_hex(e, EV_DONE_IN_IDS, zero);
    event_int(e, EV_DONE_IN_N, 20);
    event_commits(e, EV_DONE_OUT, &c, 1);
    event_commits(e, EV_DONE_TOUT, &c, 1);
}

static void make_denied(event *e)
{
    event_init(e, EVENT_DENIED);
    event_str(e, EV_DENIED_API, "chat");
    event_str(e, EV_DENIED_REASON, "overload");
    event_int(e, EV_DENIED_HTTP, 503);
    event_int(e, EV_DENIED_N, 1);
}

static void one(measure *m, event *e)
{
    audit_ref ref;
    if (!m->requests) {
        make_denied(e);
        need(audit_append(m->l, e, &ref));
        return;
    }
    audit_token *t;
    make_admit(e, &m->load);
    need(audit_admit(m->l, e, &t));
    make_done(e);
    need(audit_done(t, e, &ref));
    audit_token_free(t);
}

static void *call(void *arg)
{
    measure *m = arg;
    event e;
    for (int64_t now; (now = clock_mono_us()) < m->until_us;) {
        one(m, &e);
        size_t i = atomic_fetch_add(&m->n, 1);
        if (i < MAX_SAMPLES) m->us[i] = clock_mono_us() - now;
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_samples(const char *what, int n_threads, int64_t *us, size_t n, double seconds)
{
    if (n > MAX_SAMPLES) n = MAX_SAMPLES;
    qsort(us, n, sizeof *us, ascending);
    printf("{\"test\":\"%s\",\"waiters\":%d,\"n\":%zu,\"per_s\":%.0f,"
           "\"p50_us\":%lld,\"p99_us\":%lld}\n",
           what, n_threads, n, (double)n / seconds, (long long)us[n / 2],
           (long long)us[n * 99 / 100]);
}

static void run(measure *m, const char *what, int n_threads, double seconds)
{
    pthread_t threads[MAX_THREADS];
    int64_t start = clock_mono_us();
    m->requests = strcmp(what, "request") == 0;
    m->n = 0;
    m->until_us = start + (int64_t)(seconds * 1e6);
    for (int i = 0; i < n_threads; i++) need(thread_start(&threads[i], "caller", 0, call, m));
    for (int i = 0; i < n_threads; i++) (void)pthread_join(threads[i], NULL);
    print_samples(what, n_threads, m->us, m->n, (double)(clock_mono_us() - start) / 1e6);
}

static void measure_sync(const char *dir, int64_t *us, double seconds)
{
    AUTO(buf) path = {0};
    char record[480] = {1};
    int fd;
    size_t n = 0;
    need(file_join(&path, dir, "sync"));
    need(io_open(path.data, O_RDWR | O_CREAT | O_TRUNC, 0644, &fd));
    need(io_fallocate(fd, 64 << 20, path.data));
    int64_t start = clock_mono_us(), now;
    while ((now = clock_mono_us()) < start + (int64_t)(seconds * 1e6) && n < 100000) {
        need(io_pwrite(fd, record, sizeof record, (int64_t)(n * sizeof record), path.data));
        need(io_fdatasync(fd, path.data));
        us[n++] = clock_mono_us() - now;
    }
    io_close(fd);
    need(io_unlink(path.data));
    print_samples("sync", 1, us, n, (double)(clock_mono_us() - start) / 1e6);
}

static void measure_receipts(measure *m, double seconds)
{
    event e;
    audit_token *t;
    audit_ref done;
    commit_secret secret = {{0}};
    size_t n = 0;
    make_admit(&e, &m->load);
    need(audit_admit(m->l, &e, &t));
    make_done(&e);
    need(audit_done(t, &e, &done));
    audit_token_free(t);
    int64_t start = clock_mono_us(), now;
    while ((now = clock_mono_us()) < start + (int64_t)(seconds * 1e6) && n < MAX_SAMPLES) {
        AUTO(buf) text = {0};
        need(audit_receipt(m->l, done.index, &secret, NULL, 0, &text));
        m->us[n++] = clock_mono_us() - now;
    }
    print_samples("receipt", 1, m->us, n, (double)(clock_mono_us() - start) / 1e6);
}

static void measure_hash(const char *dir, int n_threads)
{
    AUTO(buf) sub = {0};
    AUTO(manifest) m = {.n = 0};
    need(file_join(&sub, dir, "files"));
    need(file_mkdirs(sub.data, 0755));
    size_t n = (size_t)128 << 20;
    char *p = calloc(1, n);
    for (int i = 0; i < 4; i++) {
        AUTO(buf) path = {0};
        char name[16];
        (void)snprintf(name, sizeof name, "%d", i);
        need(file_join(&path, sub.data, name));
        if (!file_exists(path.data)) need(file_write_atomic(path.data, p, n, 0644));
    }
    free(p);
    manifest_options o = {.n_threads = n_threads};
    int64_t best = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        manifest_done(&m);
        int64_t start = clock_mono_us();
        need(manifest_hash_dir(sub.data, &o, &m));
        int64_t took = clock_mono_us() - start;
        if (took < best) best = took;
    }
    printf("{\"test\":\"hash\",\"threads\":%d,\"gb_s\":%.2f}\n", n_threads,
           (double)m.n_bytes / (double)best / 1e3);
}

int main(int argc, char **argv)
{
    static const int waiters[] = {1, 16, 64};
    const char *dir = argc > 1 ? argv[1] : "build/bench-audit";
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    measure m = {.us = malloc(MAX_SAMPLES * sizeof(int64_t))};
    log_key *key;
    event e;
    audit_ref ref;
    audit_token *probe;
    AUTO(buf) log_dir = {0};
    static const uint8_t zero[SHA256_N];
    need(file_mkdirs(dir, 0755));
    measure_sync(dir, m.us, seconds);
    need(log_key_generate("bench", &key));
    need(file_join(&log_dir, dir, log_key_public(key)->name));
    need(audit_log_open(&(audit_log_options){.dir = log_dir.data, .key = key, .create = true},
                        &m.l));
    event_init(&e, EVENT_BOOT);
    event_str(&e, EV_BOOT_VER, "bench");
    event_hex(&e, EV_BOOT_ENG_BUILD, zero);
    event_str(&e, EV_BOOT_ENG_ISA, "none");
    event_int(&e, EV_BOOT_ENG_THREADS, 1);
    event_str(&e, EV_BOOT_CPU, "");
    uint8_t mach[SHA256_N];
    audit_log_mach(m.l, mach);
    event_hex(&e, EV_BOOT_MACH, mach);
    event_hex(&e, EV_BOOT_CFG, zero);
    event_str(&e, EV_BOOT_CLOCK_SOURCE, "unknown");
    need(audit_append(m.l, &e, &ref));
    make_load(&e);
    need(audit_load(m.l, &e, &probe));
    m.load = *audit_token_ref(probe);
    audit_token_free(probe);
    for (size_t i = 0; i < N_ELEM(waiters); i++) run(&m, "append", waiters[i], seconds);
    for (size_t i = 0; i < N_ELEM(waiters); i++) run(&m, "request", waiters[i], seconds);
    measure_receipts(&m, seconds / 4);
    audit_stats s;
    audit_log_stats(m.l, &s);
    printf("{\"test\":\"log\",\"events\":%llu,\"syncs\":%llu,\"checkpoints\":%llu,"
           "\"derived_failures\":%llu}\n",
           (unsigned long long)s.size, (unsigned long long)s.n_syncs,
           (unsigned long long)s.n_checkpoints, (unsigned long long)s.n_derived_failures);
    need(audit_log_close(m.l, "exit"));
    int64_t start = clock_mono_us();
    need(audit_log_open(&(audit_log_options){.dir = log_dir.data, .key = key}, &m.l));
    printf("{\"test\":\"restart\",\"events\":%llu,\"ms\":%lld}\n",
           (unsigned long long)audit_log_recovery(m.l)->size,
           (long long)(clock_mono_us() - start) / 1000);
    audit_log_abandon(m.l);
    measure_hash(dir, 1);
    measure_hash(dir, 2);
    log_key_free(key);
    free(m.us);
    return 0;
}
