/* io.h: raw calls on files, with EINTR and short writes handled and the N-th call failing on
 * demand. Every call that can fail names its path (or `what`) in the error. Durable code (the audit
 * log) uses only these. */
#ifndef BASE_IO_H
#define BASE_IO_H
#include <sys/stat.h>
#include "base/mem.h"

/* Of every call: a file that is not there is IG_ENOTFOUND, memory that the system lacks IG_ENOMEM,
 * any other refusal IG_EIO. Outputs are untouched on failure. io_open adds O_CLOEXEC. */
IG_MUST_USE ig_status io_open(const char *path, int flags, mode_t mode, int *ret_fd);
IG_MUST_USE ig_status io_fstat(int fd, struct stat *ret_st, const char *what);
IG_MUST_USE ig_status io_read(int fd, void *p, size_t n, size_t *ret_n, const char *what);
IG_MUST_USE ig_status io_pread(int fd, void *p, size_t n, int64_t offset, size_t *ret_n,
                               const char *what); /* both: ret_n < n only at end of file */
IG_MUST_USE ig_status io_write(int fd, const void *p, size_t n, const char *what);
IG_MUST_USE ig_status io_pwrite(int fd, const void *p, size_t n, int64_t offset, const char *what);
/* Where data ends in the first n bytes of a file: what follows was reserved, never written, and
 * reads as zeros. n where the file system cannot tell. */
IG_MUST_USE ig_status io_data_end(int fd, int64_t n, int64_t *ret_end, const char *what);
IG_MUST_USE ig_status io_fdatasync(int fd, const char *what);
IG_MUST_USE ig_status io_fsync_dir(const char *dir);
IG_MUST_USE ig_status io_rename(const char *from, const char *to);
IG_MUST_USE ig_status io_unlink(const char *path);
IG_MUST_USE ig_status io_mkdir(const char *path, mode_t mode, bool *ret_existed);
IG_MUST_USE ig_status io_ftruncate(int fd, int64_t n, const char *what);
IG_MUST_USE ig_status io_fallocate(int fd, int64_t n, const char *what);
void io_close(int fd); /* -1 is fine */

/* Fault injection, process-wide: the n-th io_ call from now (1 = the next; io_close does not count)
 * fails with `err`. Only tests arm it: no setting and no variable of the environment leads here. */
typedef struct io_fault {
    int64_t n;         /* 0 disarms */
    int err;           /* EIO, ENOSPC, ... */
    bool kill;         /* raise SIGKILL at that call instead of failing it */
    bool short_write;  /* a write stores half its bytes first */
    bool late;         /* the call is made first, then it fails (or the process dies) */
    bool lose;         /* what the last write before it stored is zeros, unless it was synced or
                        * its file closed: a page that never got to the disk */
    bool sticky;       /* all later calls fail too */
    const char *below; /* counts only calls on paths that begin so; NULL: all. Borrowed */
} io_fault;
void io_fault_arm(io_fault f);
int64_t io_n_calls(void);
int64_t io_fault_hits(void); /* calls that were struck since arming */
#endif
