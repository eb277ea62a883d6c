/* file.c: whole files (contract in file.h). */
#define _GNU_SOURCE /* MADV_POPULATE_READ, MAP_FIXED with MAP_NORESERVE */
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/digest.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define READ_STEP ((size_t)256 * 1024)
#define WALK_MAX_BYTES ((size_t)64 << 20) /* all names of a walk together */
#define WALK_MAX_DEPTH 32

/* Address space first, then the file over it: the only way to choose the alignment. */
static ig_status map_aligned(file_map *m, const char *path)
{
    size_t n_base;
    if (!mem_add(m->n_bytes, 2 * HUGE_PAGE, &n_base))
        return ig_fail(IG_ELIMIT, "%s: too large to map", path);
    void *base = mmap(NULL, n_base, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return ig_fail(IG_ENOMEM, "%s: no address space for %zu bytes", path, n_base);
    m->base = base;
    m->n_base = n_base;
    uint8_t *at = (uint8_t *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (m->n_bytes > 0) {
        if (mmap(at, m->n_bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, m->fd, 0) == MAP_FAILED)
            return ig_fail(IG_EIO, "%s: cannot map: %s", path, strerror(errno));
        (void)madvise(at, m->n_bytes, MADV_HUGEPAGE);
    }
    m->bytes = at;
    return IG_OK;
}

static ig_status check_regular(const struct stat *st, size_t max_bytes, const char *path)
{
    if (!S_ISREG(st->st_mode)) return ig_fail(IG_EINVAL, "%s: not a regular file", path);
    if ((uint64_t)st->st_size > max_bytes)
        return ig_fail(IG_ELIMIT, "%s: %lld bytes, at most %zu are read", path,
                       (long long)st->st_size, max_bytes);
    return IG_OK;
}

ig_status file_map_open(const char *path, size_t max_bytes, file_map *ret_map)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    TRY(io_open(path, O_RDONLY | O_NONBLOCK, 0, &m.fd)); /* a FIFO must not hang us */
    TRY(io_fstat(m.fd, &m.st, path));
    TRY(check_regular(&m.st, max_bytes, path));
    m.n_bytes = (size_t)m.st.st_size;
    TRY(map_aligned(&m, path));
    *ret_map = m;
    m = FILE_MAP_NONE;
    return IG_OK;
}

void file_map_done(file_map *m)
{
    if (m->base) (void)munmap(m->base, m->n_base);
    io_close(m->fd);
    *m = FILE_MAP_NONE;
}

void file_map_populate(const file_map *m)
{
    if (m->n_bytes == 0) return;
    uint8_t *at = (uint8_t *)(uintptr_t)m->bytes;
    if (madvise(at, m->n_bytes, MADV_POPULATE_READ) != 0) /* Linux before 5.14 */
        (void)madvise(at, m->n_bytes, MADV_WILLNEED);
}

static bool is_cached(int fd, int64_t offset)
{
    uint8_t byte;
    struct iovec one = {&byte, 1};
    return preadv2(fd, &one, 1, (off_t)offset, RWF_NOWAIT) >= 0;
}

void file_cache_huge(int fd, int64_t offset, size_t n)
{
    if (n < HUGE_PAGE || is_cached(fd, offset)) return;
    size_t n_base = n + 2 * HUGE_PAGE;
    uint8_t *base =
        mmap(NULL, n_base, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return;
    uint8_t *at = (uint8_t *)(((uintptr_t)base + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (mmap(at, n, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (off_t)offset) != MAP_FAILED) {
        (void)madvise(at, n, MADV_HUGEPAGE);
        (void)madvise(at, n, MADV_POPULATE_READ);
    }
    (void)munmap(base, n_base);
}

void file_uncache(int fd) { (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

static ig_status read_to_end(int fd, size_t max_bytes, const char *path, buf *b)
{
    AUTO(mem_ptr) step = mem_alloc(READ_STEP);
    if (!step) return IG_ENOMEM;
    for (size_t got = READ_STEP; got == READ_STEP;) {
        TRY(io_read(fd, step, READ_STEP, &got, path));
        buf_add(b, step, got);
        if (b->status == IG_ELIMIT)
            return ig_fail(IG_ELIMIT, "%s: more than %zu bytes", path, max_bytes);
        TRY(buf_status(b));
    }
    return IG_OK;
}

/* Opened without waiting for a writer, a pipe that has one is read as usual; without one it is at
 * its end. */
static ig_status wait_for_bytes(int fd, const char *path)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0) return IG_OK;
    return ig_fail(IG_EIO, "%s: cannot read: %s", path, strerror(errno));
}

/* Of a pipe at its end: nobody had it open for writing since we opened it (a writer that went away
 * is a hang-up). */
static bool had_no_writer(int fd)
{
    struct stat st;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && poll(&p, 1, 0) == 0;
}

ig_status file_read(const char *path, size_t max_bytes, buf *ret_buf)
{
    buf_init(ret_buf, max_bytes);
    int fd;
    TRY(io_open(path, O_RDONLY | O_NONBLOCK, 0, &fd)); /* a FIFO must not hang us */
    ig_status s = wait_for_bytes(fd, path);
    if (s == IG_OK) s = read_to_end(fd, max_bytes, path, ret_buf);
    if (s == IG_OK && !ret_buf->n && had_no_writer(fd))
        s = ig_fail(IG_EINVAL, "%s: a pipe into which nobody writes", path);
    io_close(fd);
    if (s != IG_OK) buf_done(ret_buf);
    return s;
}

/* dirname without its quirks: what a new entry of path must be synced in */
static ig_status parent_of(const char *path, buf *ret_dir)
{
    buf_init(ret_dir, FILE_PATH_MAX);
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    while (n > 0 && path[n - 1] != '/') n--;
    while (n > 1 && path[n - 1] == '/') n--;
    if (n == 0)
        buf_char(ret_dir, '.');
    else
        buf_add(ret_dir, path, n);
    return buf_status(ret_dir);
}

static ig_status write_new(const char *path, const void *p, size_t n, mode_t mode)
{
    int fd;
    TRY(io_open(path, O_WRONLY | O_CREAT | O_EXCL, mode, &fd));
    ig_status s = io_write(fd, p, n, path);
    if (s == IG_OK) s = io_fdatasync(fd, path);
    io_close(fd);
    return s;
}

ig_status file_write_atomic(const char *path, const void *p, size_t n, mode_t mode)
{
    uint8_t unique[6];
    TRY(random_bytes(unique, sizeof unique));
    AUTO(buf) tmp = {0}, dir = {0};
    buf_init(&tmp, FILE_PATH_MAX);
    buf_init(&dir, FILE_PATH_MAX);
    buf_printf(&tmp, "%s.tmp-", path);
    buf_hex(&tmp, unique, sizeof unique);
    TRY(buf_status(&tmp));
    TRY(parent_of(path, &dir));
    ig_status s = write_new(tmp.data, p, n, mode);
    if (s == IG_OK) s = io_rename(tmp.data, path);
    if (s != IG_OK) {
        (void)unlink(tmp.data); /* best effort: the failure to report is the first one */
        return s;
    }
    return io_fsync_dir(dir.data);
}

ig_status file_mkdirs(const char *path, mode_t mode)
{
    AUTO(buf) part = {0}, dir = {0};
    buf_init(&part, FILE_PATH_MAX);
    buf_init(&dir, FILE_PATH_MAX);
    for (size_t i = 0; path[i];) {
        size_t start = i;
        while (path[i] == '/') i++;
        while (path[i] && path[i] != '/') i++;
        buf_add(&part, path + start, i - start);
        TRY(buf_status(&part));
        if (part.data[part.n - 1] == '/') continue; /* the root, or a trailing slash */
        bool existed;
        TRY(io_mkdir(part.data, mode, &existed));
        if (existed) continue;
        buf_done(&dir);
        TRY(parent_of(part.data, &dir));
        TRY(io_fsync_dir(dir.data));
    }
    return IG_OK;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

ig_status file_join(buf *ret_path, const char *dir, const char *name)
{
    buf_init(ret_path, FILE_PATH_MAX);
    size_t n = strlen(dir);
    buf_add(ret_path, dir, n);
    if (n > 0 && dir[n - 1] != '/') buf_char(ret_path, '/');
    buf_str(ret_path, name);
    if (ret_path->status == IG_ELIMIT)
        return ig_fail(IG_ELIMIT, "%.100s/%.100s...: path longer than %d bytes", dir, name,
                       FILE_PATH_MAX);
    return buf_status(ret_path);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    (void)(type == FTW_DP ? rmdir(path) : unlink(path));
    return 0;
}

void file_remove_tree(const char *dir) { (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

typedef struct walk {
    const char *dir;
    buf names; /* found so far, each followed by NUL */
    size_t n;  /* names */
} walk;

static ig_status walk_dir(walk *w, const char *relative, int depth);

/* `relative` is below w->dir; "" is the top. */
static ig_status walk_entry(walk *w, const char *relative, const char *name, int depth)
{
    AUTO(buf) below = {0}, full = {0};
    buf_init(&below, FILE_PATH_MAX);
    buf_init(&full, FILE_PATH_MAX);
    ig_status s = file_join(&below, relative, name);
    if (s == IG_OK) s = file_join(&full, w->dir, below.data);
    if (s != IG_OK) return s;
    struct stat st;
    if (lstat(full.data, &st) != 0)
        return ig_fail(IG_EIO, "%s: cannot examine: %s", full.data, strerror(errno));
    if (S_ISDIR(st.st_mode)) return walk_dir(w, below.data, depth + 1);
    if (!S_ISREG(st.st_mode))
        return ig_fail(IG_EINVAL, "%s: neither a regular file nor a directory", full.data);
    buf_add(&w->names, below.data, below.n + 1);
    w->n++;
    if (w->names.status == IG_ELIMIT) return ig_fail(IG_ELIMIT, "%s: too many files", w->dir);
    return buf_status(&w->names);
}

static ig_status walk_dir(walk *w, const char *relative, int depth)
{
    if (depth > WALK_MAX_DEPTH)
        return ig_fail(IG_ELIMIT, "%s/%s: more than %d directories deep", w->dir, relative,
                       WALK_MAX_DEPTH);
    AUTO(buf) full = {0};
    TRY(file_join(&full, w->dir, relative));
    DIR *d = opendir(full.data);
    if (!d)
        return ig_fail(errno == ENOENT ? IG_ENOTFOUND : IG_EIO, "%s: cannot list: %s", full.data,
                       strerror(errno));
    ig_status s = IG_OK;
    struct dirent *e;
    while (s == IG_OK && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        s = walk_entry(w, relative, e->d_name, depth);
    }
    if (s == IG_OK && errno) s = ig_fail(IG_EIO, "%s: cannot list: %s", full.data, strerror(errno));
    (void)closedir(d);
    return s;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ig_status visit(const walk *w, file_walk_fn fn, void *user)
{
    AUTO(mem_ptr) block = mem_calloc(w->n, sizeof(char *));
    if (!block) return IG_ENOMEM;
    const char **names = block, *at = w->names.data;
    for (size_t i = 0; i < w->n; i++, at += strlen(at) + 1) names[i] = at;
    if (w->n) qsort(names, w->n, sizeof *names, by_bytes);
    for (size_t i = 0; i < w->n; i++) {
        AUTO(buf) full = {0};
        struct stat st;
        TRY(file_join(&full, w->dir, names[i]));
        if (lstat(full.data, &st) != 0)
            return ig_fail(IG_EIO, "%s: cannot examine: %s", full.data, strerror(errno));
        TRY(fn(user, names[i], &st));
    }
    return IG_OK;
}

ig_status file_walk(const char *dir, file_walk_fn fn, void *user)
{
    walk w = {.dir = dir};
    buf_init(&w.names, WALK_MAX_BYTES);
    ig_status s = walk_dir(&w, "", 0);
    if (s == IG_OK) s = visit(&w, fn, user);
    buf_done(&w.names);
    return s;
}
