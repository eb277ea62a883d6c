/* source_int.h: what a source is inside: a table of functions per format over a common list of
 * tensors. */
#ifndef SERVER_SOURCE_INT_H
#define SERVER_SOURCE_INT_H
#include "server/source.h"

#define SOURCE_MAX_TENSORS (1 << 18)
#define SOURCE_MAX_TEXT ((size_t)256 << 20)

typedef struct source_format {
    const char *name;
    ig_status (*rows)(const source *s, const source_tensor *t, int64_t row, int64_t n, float *out);
    ig_status (*raw_rows)(const source *s, const source_tensor *t, int64_t row, int64_t n,
                          void *out);
    ig_status (*affine)(const source *s, const source_tensor *t, int64_t row, int64_t n,
                        uint8_t *codes, uint16_t *scales, uint16_t *biases);
    ig_status (*config)(const source *s, buf *ret_json);
    ig_status (*quantization)(const source *s, buf *ret_json);
    ig_status (*files)(const source *s, source_file *files, int *n);
    void (*free)(void *impl);
} source_format;

struct source {
    const source_format *format;
    void *impl;       /* owned by format */
    char *path;       /* owned */
    source_tensor *t; /* owned */
    int64_t n;
};

IG_MUST_USE ig_status source_open_hf(source *s);
IG_MUST_USE ig_status source_open_gguf(source *s);
/* Adds a zeroed entry with a copy of name; IG_ELIMIT when there are too many. */
IG_MUST_USE ig_status source_add(source *s, const char *name, source_tensor **ret_tensor);
/* Adds a file with an empty content to fill. */
source_file *source_add_file(source_file *files, int *n, const char *name);
#endif
