/* io.c: raw calls on files (contract in io.h). One call of an io_ function is one step of the fault
 * counter, however many system calls it takes. The fault is process-wide by intent, like the one of
 * mem.c. */
#define _GNU_SOURCE /* strerror_r as GNU has it */
#include "base/io.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_int_least64_t n_calls;
static atomic_bool armed; /* read without the lock: nobody pays when nothing is armed */
static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
/* under fault_lock */
static io_fault fault;
static int64_t n_hits;
static struct {
    int fd; /* -1: none since its sync or close */
    int64_t offset;
    size_t n;
} unsynced; /* the last write while armed */

void io_fault_arm(io_fault f)
{
    (void)pthread_mutex_lock(&fault_lock);
    fault = f;
    n_hits = 0;
    unsynced.fd = -1;
    atomic_store(&armed, f.n > 0);
    (void)pthread_mutex_unlock(&fault_lock);
}

int64_t io_n_calls(void) { return atomic_load(&n_calls); }

int64_t io_fault_hits(void)
{
    (void)pthread_mutex_lock(&fault_lock);
    int64_t n = n_hits;
    (void)pthread_mutex_unlock(&fault_lock);
    return n;
}

/* Does the armed fault count this call? path NULL: of the file behind fd. */
static bool counts(const char *path, int fd)
{
    char link[32], target[1024];
    if (!fault.below) return true;
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n < 0) return false;
        target[n] = 0;
        path = target;
    }
    return !strncmp(path, fault.below, strlen(fault.below));
}

/* Counts this call; true when it is to fail as *ret_fault says, which is zeros otherwise. */
static bool fault_here(const char *path, int fd, io_fault *ret_fault)
{
    *ret_fault = (io_fault){0};
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    if (!atomic_load(&armed)) return false;
    (void)pthread_mutex_lock(&fault_lock);
    bool counted = fault.n > 0 && counts(path, fd), hit = counted && fault.n == 1;
    if (hit) *ret_fault = fault;
    if (counted && (!hit || !fault.sticky)) fault.n--;
    n_hits += hit;
    (void)pthread_mutex_unlock(&fault_lock);
    return hit;
}

/* Notes a write for `lose`. offset < 0: it ended at the file's own position */
static void wrote(int fd, size_t n, int64_t offset)
{
    if (!atomic_load(&armed)) return;
    (void)pthread_mutex_lock(&fault_lock);
    if (counts(NULL, fd)) {
        unsynced.fd = fd;
        unsynced.offset = offset < 0 ? (int64_t)lseek(fd, 0, SEEK_CUR) - (int64_t)n : offset;
        unsynced.n = n;
    }
    (void)pthread_mutex_unlock(&fault_lock);
}

/* The file was synced or closed. */
static void settled(int fd)
{
    if (!atomic_load(&armed)) return;
    (void)pthread_mutex_lock(&fault_lock);
    if (unsynced.fd == fd) unsynced.fd = -1;
    (void)pthread_mutex_unlock(&fault_lock);
}

static void lose_unsynced(void)
{
    static const char zeros[4096];
    (void)pthread_mutex_lock(&fault_lock);
    for (size_t done = 0; unsynced.fd >= 0 && done < unsynced.n;) {
        size_t n = unsynced.n - done < sizeof zeros ? unsynced.n - done : sizeof zeros;
        if (pwrite(unsynced.fd, zeros, n, (off_t)(unsynced.offset + (int64_t)done)) <= 0) break;
        done += n;
    }
    unsynced.fd = -1;
    (void)pthread_mutex_unlock(&fault_lock);
}

/* What the fault says: dies, or gives the errno to report. */
static int strike(const io_fault *f)
{
    if (f->lose) lose_unsynced();
    if (f->kill) (void)raise(SIGKILL);
    return f->err;
}

/* The errno to fail with before the call is made; 0 to go on. *ret_fault is for fault_after. */
static int fault_before(const char *path, int fd, io_fault *ret_fault)
{
    bool hit = fault_here(path, fd, ret_fault);
    return hit && !ret_fault->late ? strike(ret_fault) : 0;
}

/* The errno to report for a call that was made and gave err. */
static int fault_after(const io_fault *f, int err) { return f->n && f->late ? strike(f) : err; }

static ig_status refused(const char *what, const char *verb, int err)
{
    char text[128];
    ig_status code = err == ENOENT ? IG_ENOTFOUND : err == ENOMEM ? IG_ENOMEM : IG_EIO;
    return ig_fail(code, "%s: cannot %s: %s", what, verb, strerror_r(err, text, sizeof text));
}

ig_status io_open(const char *path, int flags, mode_t mode, int *ret_fd)
{
    io_fault f;
    int err = fault_before(path, -1, &f), fd = -1;
    while (!err && (fd = open(path, flags | O_CLOEXEC, mode)) < 0) {
        if (errno != EINTR) err = errno;
    }
    err = fault_after(&f, err);
    if (err) {
        io_close(fd);
        return refused(path, "open", err);
    }
    *ret_fd = fd;
    return IG_OK;
}

ig_status io_fstat(int fd, struct stat *ret_st, const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    struct stat st;
    if (!err && fstat(fd, &st) != 0) err = errno;
    err = fault_after(&f, err);
    if (err) return refused(what, "examine", err);
    *ret_st = st;
    return IG_OK;
}

/* offset < 0: the file's own position */
static ig_status read_full(int fd, void *p, size_t n, int64_t offset, size_t *ret_n,
                           const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    size_t done = 0;
    while (!err && done < n) {
        char *to = (char *)p + done;
        ssize_t got = offset < 0 ? read(fd, to, n - done)
                                 : pread(fd, to, n - done, (off_t)(offset + (int64_t)done));
        if (got == 0) break;
        if (got > 0) done += (size_t)got;
        if (got < 0 && errno != EINTR) err = errno;
    }
    err = fault_after(&f, err);
    if (err) return refused(what, "read", err);
    *ret_n = done;
    return IG_OK;
}

ig_status io_read(int fd, void *p, size_t n, size_t *ret_n, const char *what)
{
    return read_full(fd, p, n, -1, ret_n, what);
}

ig_status io_pread(int fd, void *p, size_t n, int64_t offset, size_t *ret_n, const char *what)
{
    if (offset < 0) return ig_fail(IG_EINVAL, "%s: cannot read at a negative offset", what);
    return read_full(fd, p, n, offset, ret_n, what);
}

ig_status io_data_end(int fd, int64_t n, int64_t *ret_end, const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    int64_t end = 0;
    while (!err && end < n) {
        off_t data = lseek(fd, (off_t)end, SEEK_DATA);
        if (data < 0 && errno == ENXIO) break; /* nothing but holes from here */
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        end = hole > (off_t)end ? (int64_t)hole : n; /* no answer: all may be data */
    }
    err = fault_after(&f, err);
    if (err) return refused(what, "examine", err);
    *ret_end = end < n ? end : n;
    return IG_OK;
}

/* The errno of the first failure, or 0. offset < 0: the file's own position */
static int write_all(int fd, const void *p, size_t n, int64_t offset)
{
    for (size_t done = 0; done < n;) {
        const char *from = (const char *)p + done;
        ssize_t put = offset < 0 ? write(fd, from, n - done)
                                 : pwrite(fd, from, n - done, (off_t)(offset + (int64_t)done));
        if (put > 0) done += (size_t)put;
        if (put == 0) return ENOSPC;
        if (put < 0 && errno != EINTR) return errno;
    }
    return 0;
}

static ig_status write_full(int fd, const void *p, size_t n, int64_t offset, const char *what)
{
    io_fault f;
    int err = 0;
    bool now = fault_here(NULL, fd, &f) && !f.late;
    if (now && f.short_write) (void)write_all(fd, p, n / 2, offset);
    if (now) {
        err = strike(&f);
    } else {
        err = write_all(fd, p, n, offset);
        if (!err) wrote(fd, n, offset);
        err = fault_after(&f, err);
    }
    return err ? refused(what, "write", err) : IG_OK;
}

ig_status io_write(int fd, const void *p, size_t n, const char *what)
{
    return write_full(fd, p, n, -1, what);
}

ig_status io_pwrite(int fd, const void *p, size_t n, int64_t offset, const char *what)
{
    if (offset < 0) return ig_fail(IG_EINVAL, "%s: cannot write at a negative offset", what);
    return write_full(fd, p, n, offset, what);
}

ig_status io_fdatasync(int fd, const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    /* Not retried, not even after EINTR: after a failed sync nobody knows what the disk holds. */
    if (!err && fdatasync(fd) != 0) err = errno;
    if (!err) settled(fd);
    err = fault_after(&f, err);
    return err ? refused(what, "sync", err) : IG_OK;
}

ig_status io_fsync_dir(const char *dir)
{
    io_fault f;
    int err = fault_before(dir, -1, &f), fd = -1;
    if (!err && (fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) err = errno;
    if (!err && fsync(fd) != 0) err = errno;
    err = fault_after(&f, err);
    io_close(fd);
    return err ? refused(dir, "sync the directory", err) : IG_OK;
}

ig_status io_rename(const char *from, const char *to)
{
    io_fault f;
    int err = fault_before(to, -1, &f);
    if (!err && rename(from, to) != 0) err = errno;
    err = fault_after(&f, err);
    return err ? refused(to, "move the new file into place", err) : IG_OK;
}

ig_status io_unlink(const char *path)
{
    io_fault f;
    int err = fault_before(path, -1, &f);
    if (!err && unlink(path) != 0) err = errno;
    err = fault_after(&f, err);
    return err ? refused(path, "delete", err) : IG_OK;
}

ig_status io_mkdir(const char *path, mode_t mode, bool *ret_existed)
{
    io_fault f;
    int err = fault_before(path, -1, &f);
    if (!err && mkdir(path, mode) != 0) err = errno;
    err = fault_after(&f, err);
    struct stat st;
    bool existed = err == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (err && !existed) return refused(path, "make the directory", err);
    *ret_existed = existed;
    return IG_OK;
}

ig_status io_ftruncate(int fd, int64_t n, const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    while (!err && ftruncate(fd, (off_t)n) != 0) {
        if (errno != EINTR) err = errno;
    }
    err = fault_after(&f, err);
    return err ? refused(what, "set the length", err) : IG_OK;
}

ig_status io_fallocate(int fd, int64_t n, const char *what)
{
    io_fault f;
    int err = fault_before(NULL, fd, &f);
    if (!err) {
        do err = posix_fallocate(fd, 0, (off_t)n);
        while (err == EINTR);
    }
    err = fault_after(&f, err);
    return err ? refused(what, "reserve space", err) : IG_OK;
}

void io_close(int fd)
{
    if (fd < 0) return;
    settled(fd);
    (void)close(fd);
}
