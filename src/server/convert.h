/* convert.h: a source's tensors as MLX-quantised safetensors shards. Streaming: a few megabytes of
 * rows at a time.
 *
 * A matrix is kept (its own 4- or 8-bit groups exactly, or 16 bits), or quantised to bits and
 * group; where the group does not divide
 * the rows, the largest smaller one that does is used, and `note` is told. A rule that matches no
 * matrix is refused. */
#ifndef SERVER_CONVERT_H
#define SERVER_CONVERT_H
#include "base/progress.h"
#include "server/source.h"

#define CONVERT_MAX_RULES 64

typedef struct convert_rule {
    const char *pattern; /* shell pattern over matrix paths: "model.embed_tokens", "*.down_proj" */
    int bits, group;     /* bits 0: keep; 4, 8 or 16; group 0: the default */
} convert_rule;

typedef struct convert_options {
    int bits;                  /* 0: keep what the source has */
    int group;                 /* 32, 64, 128; 0: 64 */
    const convert_rule *rules; /* the last match wins */
    int n_rules;
    int64_t shard_bytes;  /* 0: chosen by size, at least 16 shards for more than 2 GiB */
    progress_fn progress; /* bytes written of bytes to write */
    void (*note)(void *user, const char *text); /* a sentence about tensors; NULL: nobody listens */
    void *user;
} convert_options;

typedef struct convert_result {
    int64_t n_tensors, n_bytes, n_parameters, n_shards;
    double bits_per_weight;
} convert_result;

/* Writes shards, model.safetensors.index.json and config.json into dir (which exists). */
IG_MUST_USE ig_status convert_run(const source *s, const convert_options *o, const char *dir,
                                  convert_result *ret_result);
#endif
