/* manifest.c: listing and hashing directories (contract in manifest.h).
 *
 * SHA-256 of one file is sequential, so the parallelism is the number of files: workers take the
 * largest file that nobody took. The calling thread only reports progress and collects the first
 * failure. */
#include "audit/manifest.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"

#define READ_N ((size_t)1 << 20)
#define AHEAD_N ((int64_t)32 << 20) /* brought into the page cache at once */
#define MAX_THREADS 64
#define PROGRESS_US 50000

/* ---- listing ---- */

const char *manifest_bad_name(str name)
{
    if (name.n == 0 || name.n > FILE_PATH_MAX) return "empty or too long";
    if (name.p[0] == '/') return "absolute";
    if (!utf8_valid(name.p, name.n)) return "not UTF-8";
    for (size_t i = 0; i < name.n; i++)
        if ((uint8_t)name.p[i] < ' ' || name.p[i] == 0x7F || name.p[i] == '\\')
            return "has a control character or a backslash";
    for (size_t at = 0; at <= name.n;) {
        const char *slash = memchr(name.p + at, '/', name.n - at);
        size_t n = slash ? (size_t)(slash - name.p) - at : name.n - at;
        str part = {name.p + at, n};
        if (n == 0 || str_eq(part, str_of(".")) || str_eq(part, str_of("..")))
            return "has an empty, . or .. part";
        at += n + 1;
    }
    return NULL;
}

static ig_status add_file(void *user, const char *name, const struct stat *st)
{
    manifest *m = user;
    const char *bad = manifest_bad_name(str_of(name));
    if (bad) return ig_fail(IG_EINVAL, "%s: this name cannot be signed: %s", name, bad);
    if (m->n == m->cap) {
        if (m->cap >= MANIFEST_MAX_FILES)
            return ig_fail(IG_ELIMIT, "more than %d files", MANIFEST_MAX_FILES);
        size_t cap = m->cap ? m->cap * 2 : 64;
        manifest_file *p = mem_realloc(m->files, cap * sizeof *p);
        if (!p) return IG_ENOMEM;
        m->files = p;
        m->cap = cap;
    }
    char *copy = mem_strdup(name);
    if (!copy) return IG_ENOMEM;
    m->files[m->n++] = (manifest_file){.name = copy, .st = *st};
    m->n_bytes += st->st_size;
    return IG_OK;
}

ig_status manifest_list(const char *dir, manifest *ret_manifest)
{
    AUTO(manifest) m = {.n = 0};
    TRY(file_walk(dir, add_file, &m));
    *ret_manifest = m;
    m = (manifest){.n = 0};
    return IG_OK;
}

void manifest_done(manifest *m)
{
    for (size_t i = 0; i < m->n; i++) {
        mem_free(m->files[i].name);
        buf_done(&m->files[i].chunks);
    }
    mem_free(m->files);
    *m = (manifest){.n = 0};
}

const manifest_file *manifest_find(const manifest *m, str name)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2, n = strlen(m->files[mid].name);
        size_t common = n < name.n ? n : name.n;
        int c = memcmp(m->files[mid].name, name.p, common);
        if (c == 0) c = (n > name.n) - (n < name.n);
        if (c == 0) return &m->files[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

ig_status manifest_root(const manifest *m, uint8_t ret_root[SHA256_N])
{
    sha256_ctx c;
    TRY(sha256_init(&c));
    for (size_t i = 0; i < m->n; i++) sha256_add(&c, m->files[i].digest, SHA256_N);
    sha256_final(&c, ret_root);
    return IG_OK;
}

/* ---- hashing ---- */

typedef struct job {
    const char *dir;
    const manifest_options *o;
    manifest *m;
    size_t *order; /* indices of files, largest first */
    atomic_size_t next;
    atomic_int_least64_t done; /* bytes */
    atomic_bool failed;
    lock lock; /* of what follows */
    cond wake;
    int n_running;
    ig_status status;
    char message[1024];
} job;

/* A whole-file hash and, where asked for, one per chunk, in one pass. */
typedef struct hasher {
    sha256_ctx whole, chunk;
    size_t in_chunk;
    buf *chunks; /* NULL: none */
} hasher;

static ig_status close_chunk(hasher *h)
{
    uint8_t d[SHA256_N];
    sha256_final(&h->chunk, d);
    buf_add(h->chunks, d, sizeof d);
    h->in_chunk = 0;
    return sha256_init(&h->chunk);
}

static ig_status hash_bytes(hasher *h, const uint8_t *p, size_t n)
{
    sha256_add(&h->whole, p, n);
    while (h->chunks && n) {
        size_t left = CHUNK_BYTES - h->in_chunk, take = n < left ? n : left;
        sha256_add(&h->chunk, p, take);
        h->in_chunk += take;
        p += take;
        n -= take;
        if (h->in_chunk == CHUNK_BYTES) TRY(close_chunk(h));
    }
    return IG_OK;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static ig_status hash_open_file(job *j, manifest_file *f, int fd, const char *path, uint8_t *step)
{
    struct stat after;
    bool chunked = j->o->chunks_of && str_ends(str_of(f->name), str_of(j->o->chunks_of));
    hasher h = {.chunks = chunked ? &f->chunks : NULL};
    TRY(io_fstat(fd, &f->st, path));
    if (!S_ISREG(f->st.st_mode)) return ig_fail(IG_EINVAL, "%s: not a regular file", path);
    buf_init(&f->chunks, ((size_t)f->st.st_size / CHUNK_BYTES + 1) * SHA256_N);
    TRY(sha256_init(&h.whole));
    TRY(sha256_init(&h.chunk));
    for (int64_t at = 0;;) {
        size_t got;
        if (atomic_load(&j->failed)) return IG_ECANCELLED;
        int64_t left = f->st.st_size - at;
        if (at % AHEAD_N == 0 && left > 0)
            file_cache_huge(fd, at, (size_t)(left < AHEAD_N ? left : AHEAD_N));
        TRY(io_pread(fd, step, READ_N, at, &got, path));
        TRY(hash_bytes(&h, step, got));
        at += (int64_t)got;
        atomic_fetch_add(&j->done, (int64_t)got);
        if (got < READ_N) break;
    }
    if (h.chunks && h.in_chunk) TRY(close_chunk(&h));
    sha256_final(&h.whole, f->digest);
    TRY(buf_status(&f->chunks));
    TRY(io_fstat(fd, &after, path));
    if (!same_file(&f->st, &after))
        return ig_fail(IG_EVERIFY, "%s: changed while it was read", path);
    return IG_OK;
}

static ig_status hash_file(job *j, manifest_file *f, uint8_t *step)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    int fd;
    TRY(file_join(&path, j->dir, f->name));
    TRY(io_open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd));
    ig_status st = hash_open_file(j, f, fd, path.data, step);
    io_close(fd);
    return st;
}

static ig_status hash_files(job *j)
{
    AUTO(mem_ptr) step = mem_alloc(READ_N);
    if (!step) return IG_ENOMEM;
    for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->m->n;)
        TRY(hash_file(j, &j->m->files[j->order[i]], step));
    return IG_OK;
}

static void *work(void *arg)
{
    job *j = arg;
    ig_status st = hash_files(j);
    lock_take(&j->lock);
    if (st != IG_OK && !atomic_exchange(&j->failed, true)) {
        j->status = st;
        (void)strncpy(j->message, ig_error_message(), sizeof j->message - 1);
    }
    j->n_running--;
    cond_signal(&j->wake);
    lock_drop(&j->lock);
    return NULL;
}

static void report(const job *j)
{
    if (j->o->progress) j->o->progress(j->o->user, atomic_load(&j->done), j->m->n_bytes);
}

static void wait_for_workers(job *j)
{
    lock_take(&j->lock);
    while (j->n_running) {
        (void)cond_wait_until(&j->wake, &j->lock, clock_mono_us() + PROGRESS_US);
        lock_drop(&j->lock);
        report(j);
        lock_take(&j->lock);
    }
    lock_drop(&j->lock);
    report(j); /* the end, also when all was done before the first look */
}

static ig_status run_threads(job *j)
{
    int n = j->o->n_threads > 0 ? j->o->n_threads : thread_n_cpus();
    pthread_t threads[MAX_THREADS];
    if (n > MAX_THREADS) n = MAX_THREADS;
    if ((size_t)n > j->m->n) n = (int)j->m->n;
    int started = 0;
    ig_status st = IG_OK;
    j->n_running = n;
    while (started < n && (st = thread_start(&threads[started], "hash", 0, work, j)) == IG_OK)
        started++;
    if (st != IG_OK) { /* those that did not start will not report */
        atomic_store(&j->failed, true);
        lock_take(&j->lock);
        j->n_running -= n - started;
        lock_drop(&j->lock);
    }
    wait_for_workers(j);
    for (int i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
    if (st != IG_OK) return st;
    return j->status == IG_OK ? IG_OK : ig_fail(j->status, "%s", j->message);
}

typedef struct sized {
    int64_t n_bytes;
    size_t index;
} sized;

static int larger_first(const void *a, const void *b)
{
    const sized *x = a, *y = b;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static ig_status order_files(const manifest *m, size_t **ret_order)
{
    AUTO(mem_ptr) memory = mem_calloc(m->n + 1, sizeof(sized));
    sized *by_size = memory;
    size_t *order = mem_calloc(m->n + 1, sizeof *order);
    if (!by_size || !order) {
        mem_free(order);
        return IG_ENOMEM;
    }
    for (size_t i = 0; i < m->n; i++) by_size[i] = (sized){m->files[i].st.st_size, i};
    if (m->n) qsort(by_size, m->n, sizeof *by_size, larger_first);
    for (size_t i = 0; i < m->n; i++) order[i] = by_size[i].index;
    *ret_order = order;
    return IG_OK;
}

ig_status manifest_hash(const char *dir, const manifest_options *o, manifest *m)
{
    static const manifest_options plain = {.n_threads = 0};
    job j = {.dir = dir, .o = o ? o : &plain, .m = m};
    AUTO(mem_ptr) order = NULL;
    TRY(order_files(m, &j.order));
    order = j.order;
    TRY(lock_init(&j.lock, RANK_LEAF));
    ig_status st = cond_init(&j.wake);
    if (st == IG_OK) {
        st = run_threads(&j);
        cond_done(&j.wake);
    }
    lock_done(&j.lock);
    return st;
}

ig_status manifest_hash_dir(const char *dir, const manifest_options *o, manifest *ret_manifest)
{
    AUTO(manifest) m = {.n = 0};
    TRY(manifest_list(dir, &m));
    TRY(manifest_hash(dir, o, &m));
    *ret_manifest = m;
    m = (manifest){.n = 0};
    return IG_OK;
}

/* ---- chunk lists ---- */

static ig_status write_list(const char *dir, const manifest_file *f)
{
    AUTO(buf) path = {0}, parent = {0};
    buf_init(&path, 0);
    buf_init(&parent, FILE_PATH_MAX);
    TRY(file_join(&path, dir, "verity/"));
    buf_printf(&path, "%s" CHUNK_SUFFIX, f->name);
    TRY(buf_status(&path));
    buf_add(&parent, path.data, (size_t)(strrchr(path.data, '/') - path.data));
    TRY(buf_status(&parent));
    TRY(file_mkdirs(parent.data, 0755));
    return file_write_atomic(path.data, f->chunks.data, f->chunks.n, 0644);
}

/* Keeps only the files that get a list, so that nothing else is read. */
static void keep_chunked(manifest *m, const char *suffix)
{
    size_t n = 0;
    m->n_bytes = 0;
    for (size_t i = 0; i < m->n; i++) {
        manifest_file f = m->files[i];
        if (!str_ends(str_of(f.name), str_of(suffix))) {
            mem_free(f.name);
            continue;
        }
        m->n_bytes += f.st.st_size;
        m->files[n++] = f;
    }
    m->n = n;
}

ig_status chunks_write(const char *dir, const manifest_options *o)
{
    manifest_options with = o ? *o : (manifest_options){.n_threads = 0};
    AUTO(manifest) m = {.n = 0};
    with.chunks_of = ".safetensors";
    TRY(manifest_list(dir, &m));
    keep_chunked(&m, with.chunks_of);
    TRY(manifest_hash(dir, &with, &m));
    for (size_t i = 0; i < m.n; i++) TRY(write_list(dir, &m.files[i]));
    return IG_OK;
}

bool chunks_check(const uint8_t *list, size_t n_list, size_t i, const void *p, size_t n)
{
    uint8_t d[SHA256_N];
    if (n == 0 || n > CHUNK_BYTES || i >= n_list / SHA256_N) return false;
    sha256(p, n, d);
    return memcmp(d, list + i * SHA256_N, SHA256_N) == 0;
}
