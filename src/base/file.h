/* file.h: every system call on files that can fail, with the N-th failing on demand. Paths in errors.
 * Durable code (the audit log) uses only these. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include <sys/stat.h>
#include "base/buf.h"
#include "base/str.h"

/* A read-only mapping of a whole regular file at a 2 MiB-aligned address (MADV_HUGEPAGE). */
typedef struct file_map {
    const uint8_t *bytes;   /* NULL when not mapped; an empty file has n_bytes 0 */
    size_t n_bytes;
    void *base;             /* reservation, owned */
    size_t n_base;
    struct stat st;         /* at open: dev, ino, size, mtime, ctime */
    int fd;                 /* kept open; -1 when not mapped */
} file_map;
IG_MUST_USE ig_status file_map_open(const char *path, size_t max_bytes, file_map *ret_map);
void file_map_done(file_map *m);
static inline void file_map_auto(file_map *m) { file_map_done(m); }
/* Reads ahead into the page cache and page tables (MADV_POPULATE_READ); a hint, never fails. */
void file_map_populate(const file_map *m);

IG_MUST_USE ig_status file_read(const char *path, size_t max_bytes, buf *ret_buf);  /* ret_buf initialised here */
/* Writes tmp + fsync + rename + fsync(dir). mode e.g. 0644. */
IG_MUST_USE ig_status file_write_atomic(const char *path, const void *p, size_t n, mode_t mode);
IG_MUST_USE ig_status file_mkdirs(const char *path, mode_t mode);
bool file_exists(const char *path);
IG_MUST_USE ig_status file_join(buf *ret_path, const char *dir, const char *name);  /* initialises ret_path (max 4096) */
/* Regular files below dir (recursive), names relative to it, sorted by bytes; symlinks and special
 * files are errors. fn returns a status; iteration stops on failure. */
IG_MUST_USE ig_status file_walk(const char *dir, ig_status (*fn)(void *user, const char *name, const struct stat *st), void *user);

/* Raw calls with fault injection, EINTR and short writes handled. */
IG_MUST_USE ig_status io_open(const char *path, int flags, mode_t mode, int *ret_fd);
IG_MUST_USE ig_status io_write(int fd, const void *p, size_t n, const char *what);
IG_MUST_USE ig_status io_pwrite(int fd, const void *p, size_t n, int64_t offset, const char *what);
IG_MUST_USE ig_status io_pread(int fd, void *p, size_t n, int64_t offset, size_t *ret_n, const char *what); /* ret_n < n only at end of file */
IG_MUST_USE ig_status io_fdatasync(int fd, const char *what);
IG_MUST_USE ig_status io_fsync_dir(const char *dir);
IG_MUST_USE ig_status io_rename(const char *from, const char *to);
IG_MUST_USE ig_status io_unlink(const char *path);
IG_MUST_USE ig_status io_ftruncate(int fd, int64_t n, const char *what);
IG_MUST_USE ig_status io_fallocate(int fd, int64_t n, const char *what);
void io_close(int fd);                                    /* -1 is fine */
/* The n-th io_ call from now fails with `err` (EIO, ENOSPC); `kill` raises SIGKILL there instead,
 * `short_write` writes half first. 0 disarms. sticky: all later ones fail too. */
typedef struct io_fault { int64_t n; int err; bool kill, short_write, sticky; } io_fault;
void io_fault_arm(io_fault f);
int64_t io_n_calls(void);
#endif
