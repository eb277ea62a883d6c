/* io.h: model and array files. Reading maps safetensors and adopts their bytes; npy is copied.
 * Every size in a file is checked against the file's length before use; errors name file, tensor
 * and remedy. */
#ifndef INGOT_IO_H
#define INGOT_IO_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Named tensors over one or more mapped safetensors files. */
typedef struct ig_weights ig_weights;

/* path: a .safetensors file, or a directory holding model.safetensors.index.json with its shards,
 * or model.safetensors.
 * Refused: gaps, overlaps, trailing bytes, duplicate names, tensors missing from or extra to the
 * index. */
IG_API IG_MUST_USE ig_status ig_weights_open(const char *path, ig_weights **ret_weights);
IG_API void ig_weights_free(ig_weights *w); /* after every array taken from it */
IG_API int64_t ig_weights_count(const ig_weights *w);
IG_API const char *ig_weights_name(const ig_weights *w,
                                   int64_t i); /* in file order; NULL out of range */
/* An array over the mapped bytes, in the innermost scope; empty with IG_ENOTFOUND recorded when
 * absent. A bool tensor is copied: any nonzero byte of a file is true. */
IG_API ig_array ig_weights_get(const ig_weights *w, const char *name);
IG_API bool ig_weights_has(const ig_weights *w, const char *name);
/* Value of a key of the first file's __metadata__ ("" when absent). */
IG_API const char *ig_weights_metadata(const ig_weights *w, const char *key);
/* Reads file i ahead into the page cache and the page tables; a hint. */
IG_API void ig_weights_populate(const ig_weights *w, int64_t i);

/* A mapped file, for those who compare it later (device, inode, size, times). */
typedef struct ig_weights_file {
    const char *path;
    uint64_t dev, ino;
    int64_t n_bytes;
    int64_t mtime_ns, ctime_ns;
} ig_weights_file;
IG_API int64_t ig_weights_n_files(const ig_weights *w);
IG_API ig_weights_file ig_weights_file_at(const ig_weights *w, int64_t i);
/* IG_EVERIFY, naming the file, if a mapped file is no longer the one that was opened. */
IG_API IG_MUST_USE ig_status ig_weights_unchanged(const ig_weights *w);

/* Evaluates n arrays and writes them to a safetensors file (atomically), those of larger elements
 * first. Names are unique and non-empty. */
IG_API IG_MUST_USE ig_status ig_save_safetensors(const char *path, const char *const *names,
                                                 const ig_array *arrays, int n);

/* NumPy .npy, version 1.0 to 3.0, C order, little endian. Loading copies. */
IG_API IG_MUST_USE ig_status ig_load_npy(const char *path, ig_array *ret_array);
IG_API IG_MUST_USE ig_status ig_save_npy(const char *path, ig_array a);

#ifdef __cplusplus
}
#endif
#endif
