/* gguf_tokenizer.h: a GGUF's tokenizer (tokenizer.ggml.*) rewritten as a tokenizer.json. */
#ifndef LM_GGUF_TOKENIZER_H
#define LM_GGUF_TOKENIZER_H
#include "base/buf.h"
#include "base/str.h"

/* What the metadata said, borrowed. Arrays that the file lacks are NULL. */
typedef struct gguf_tokenizer {
    str model;         /* tokenizer.ggml.model: "gpt2" or "llama" */
    str pre;           /* tokenizer.ggml.pre; n 0 when absent */
    const str *tokens; /* tokenizer.ggml.tokens [n_tokens] */
    size_t n_tokens;
    const float *scores; /* tokenizer.ggml.scores [n_tokens]; "llama" needs it */
    const int32_t *
        /* tokenizer.ggml.token_type [n_tokens]: 1 normal 2 unknown 3 control 4 user-defined 5
         * unused 6 byte */
        types;
    const str *merges; /* tokenizer.ggml.merges [n_merges], "left right"; "gpt2" needs it */
    size_t n_merges;
    int64_t bos_id, eos_id, unk_id; /* tokenizer.ggml.{bos,eos,unknown}_token_id; -1 when absent */
    bool add_bos;          /* tokenizer.ggml.add_bos_token (default: "llama" true, "gpt2" false) */
    bool add_eos;          /* tokenizer.ggml.add_eos_token (default false) */
    bool add_space_prefix; /* tokenizer.ggml.add_space_prefix (default true); "llama" only */
} gguf_tokenizer;

/* Appends a tokenizer.json for tokenizer_open. An unknown model or pre-tokeniser name is refused
 * by name. */
IG_MUST_USE ig_status gguf_tokenizer_to_json(const gguf_tokenizer *g, buf *ret_json);
#endif
