/* manifest.h: the files of a directory and their SHA-256, hashed in parallel, one thread per file;
 * chunk lists. Names are relative, '/'-separated, sorted by bytes. */
#ifndef AUDIT_MANIFEST_H
#define AUDIT_MANIFEST_H
#include <sys/stat.h>
#include "base/buf.h"
#include "base/digest.h"
#include "base/progress.h"
#include "base/str.h"

#define MANIFEST_MAX_FILES 100000
#define CHUNK_BYTES ((size_t)4 << 20)
#define CHUNK_SUFFIX ".sha256c"

typedef struct manifest_file {
    char *name;
    uint8_t digest[SHA256_N];
    struct stat st; /* of the very file that was hashed: dev, ino, size, mtime, ctime */
    buf chunks;     /* 32 bytes per chunk; only where asked for */
} manifest_file;

typedef struct manifest {
    manifest_file *files;
    size_t n, cap;
    int64_t n_bytes;
} manifest;

typedef struct manifest_options {
    int n_threads; /* 0: as many as CPUs */
    progress_fn progress;
    void *user;
    const char *chunks_of; /* also make chunk lists of files whose names end so; NULL: none */
} manifest_options;

/* Lists regular files below dir, hidden ones too. Symlinks, special files, names with control
 * characters or backslashes are errors that name the file. */
IG_MUST_USE ig_status manifest_list(const char *dir, manifest *ret_manifest);
/* Hashes every file. A file that changes while it is read is an error. */
IG_MUST_USE ig_status manifest_hash(const char *dir, const manifest_options *o, manifest *m);
/* Both. */
IG_MUST_USE ig_status manifest_hash_dir(const char *dir, const manifest_options *o,
                                        manifest *ret_manifest);
const manifest_file *manifest_find(const manifest *m, str name);
/* SHA-256 over the raw digests in order: the identity of the directory. */
IG_MUST_USE ig_status manifest_root(const manifest *m, uint8_t ret_root[SHA256_N]);
void manifest_done(manifest *m);
static inline void manifest_auto(manifest *m) { manifest_done(m); }
/* NULL, or what is wrong with a name in a manifest or signature. */
const char *manifest_bad_name(str name);

/* Writes dir/verity/NAME.sha256c for every *.safetensors below dir: the SHA-256 of each 4 MiB. To
 * be called before signing. */
IG_MUST_USE ig_status chunks_write(const char *dir, const manifest_options *o);
/* Compares chunk i (up to CHUNK_BYTES, only the last may be shorter) with a list. */
bool chunks_check(const uint8_t *list, size_t n_list, size_t i, const void *p, size_t n);
#endif
