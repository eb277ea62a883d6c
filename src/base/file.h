/* file.h: whole files: mapped, read, written so that a crash leaves the old or the new content,
 * listed. Paths in errors. Built on the raw calls of io.h, hence with the N-th call failing on
 * demand. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include <sys/stat.h>
#include "base/buf.h"
#include "base/io.h"
#include "base/str.h"

#define FILE_PATH_MAX 4095 /* bytes of a path, NUL not counted */

/* A read-only mapping of a whole regular file at a 2 MiB-aligned address (MADV_HUGEPAGE). */
typedef struct file_map {
    const uint8_t *bytes; /* NULL when not mapped; an empty file has n_bytes 0 */
    size_t n_bytes;
    void *base; /* reservation, owned */
    size_t n_base;
    struct stat st; /* at open: dev, ino, size, mtime, ctime */
    int fd;         /* kept open; -1 when not mapped */
} file_map;
#define FILE_MAP_NONE ((file_map){.fd = -1})

IG_MUST_USE ig_status file_map_open(const char *path, size_t max_bytes, file_map *ret_map);
void file_map_done(file_map *m);
static inline void file_map_auto(file_map *m) { file_map_done(m); }
/* Reads ahead into the page cache and page tables (MADV_POPULATE_READ); a hint, never fails. */
void file_map_populate(const file_map *m);
/* How a file lies in the page cache decides how fast it can be read where it is mapped: kernels
 * bring it in as huge pages for a mapping that asks for them, and as small ones for read() and
 * write(). Hints, which never fail. */
/* Before bytes [offset, offset + n) are read: brings them in as huge pages, unless they are
 * there. offset a multiple of 2 MiB. */
void file_cache_huge(int fd, int64_t offset, size_t n);
/* After a file was written and synced: the next reader brings it in anew. */
void file_uncache(int fd);

/* Initialises ret_buf, also on failure (then empty). Reads regular files and pipes; a pipe without
 * a writer is an error, not a wait: folders from outside may hold one. */
IG_MUST_USE ig_status file_read(const char *path, size_t max_bytes, buf *ret_buf);
/* Writes a temporary file beside path, syncs it, renames it over path, syncs the directory. On
 * failure path is as before, or, when only the last sync failed, possibly new. mode e.g. 0644. */
IG_MUST_USE ig_status file_write_atomic(const char *path, const void *p, size_t n, mode_t mode);
/* Makes path and what is missing above it, each made durable in its parent. */
IG_MUST_USE ig_status file_mkdirs(const char *path, mode_t mode);
/* Removes dir with all that is below it; links go, what they name stays. For what a failure leaves
 * behind: what cannot be removed stays too, and nobody is told. */
void file_remove_tree(const char *dir);
bool file_exists(const char *path);
/* Initialises ret_path, also on failure. */
IG_MUST_USE ig_status file_join(buf *ret_path, const char *dir, const char *name);
/* Regular files below dir (recursive), names relative to it, sorted by bytes; symlinks and special
 * files are errors. fn returns a status; iteration stops on failure. */
typedef ig_status (*file_walk_fn)(void *user, const char *name, const struct stat *st);
IG_MUST_USE ig_status file_walk(const char *dir, file_walk_fn fn, void *user);
#endif
