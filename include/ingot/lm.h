/* lm.h: language models on libingot: load, tokenise, chat templates, sessions, steps, sampling.
 *
 * An ig_lm is a loaded model with its KV pool and its plan. Text functions (tokenise, chat,
 * detokenise) may be called from any thread at once. Sessions and steps belong to one thread at a
 * time (the engine thread). A step is one replay of one plan for any mix of sessions: prompt
 * chunks and single tokens alike; the bits of a token do not depend on the mix, the chunks, the
 * threads or the instruction set (docs/numerics.md). */
#ifndef INGOT_LM_H
#define INGOT_LM_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct ig_lm ig_lm;
typedef struct ig_lm_session ig_lm_session;
typedef struct ig_lm_prompt ig_lm_prompt;
typedef struct ig_lm_stream ig_lm_stream;

typedef enum ig_lm_arithmetic {
    IG_LM_INT8 = 0, /* integer activations where weights have 4 or 8 bits: the default kset */
    IG_LM_EXACT = 1 /* activations as they are */
} ig_lm_arithmetic;

/* Work done of work in sight. */
typedef void (*ig_lm_progress)(void *user, int64_t done, int64_t total);

/* Zero means default everywhere. */
typedef struct ig_lm_options {
    int64_t context;    /* longest sequence, tokens; default: the model's, at most 8192 */
    int64_t kv_tokens;  /* pool capacity, tokens, rounded up to pages of 64; default: 4 x context */
    ig_dtype kv_type;   /* IG_F16 (default), IG_BF16, IG_F32, IG_I8 */
    int32_t max_tokens; /* rows of one step; default 512 */
    int32_t max_sessions; /* sessions of one step; default 64 */
    int32_t max_outputs;  /* rows of one step with logits; default 64; more to see every position */
    ig_lm_arithmetic arithmetic;
    int no_prefix_cache;     /* 1: never share pages */
    ig_lm_progress progress; /* of ig_lm_warm: bytes touched */
    void *progress_user;
} ig_lm_options;

/* Opens a model directory: config.json, safetensors, tokenizer.json, tokenizer_config.json or
 * chat_template.jinja, generation_config.json. Weights stay where they are mapped. Every tensor
 * that the config implies must be there with its shape, and no other. Signatures are not checked
 * here: ig_audit_model_verify does that. */
IG_API IG_MUST_USE ig_status ig_lm_open(const char *model_dir, const ig_lm_options *options,
                                        ig_lm **ret_lm);
IG_API void ig_lm_close(ig_lm *lm); /* after its sessions, prompts and streams */
/* Touches arena, pages and weights, compiles the plan and tunes it (ig_plan_tune): the first
 * request pays nothing. Any time before, between or after steps. */
IG_API IG_MUST_USE ig_status ig_lm_warm(ig_lm *lm);

/* Where the time went, microseconds. */
typedef struct ig_lm_times {
    int64_t text_us;  /* ig_lm_open: config, tokenizer, chat template */
    int64_t bind_us;  /* ig_lm_open: weights mapped, tensors bound */
    int64_t touch_us; /* ig_lm_warm: weights mapped in, pages of the KV cache and arena zeroed */
    int64_t plan_us;  /* ig_lm_warm: step traced and compiled */
    int64_t tune_us;  /* ig_lm_warm: prefetch distances chosen */
} ig_lm_times;

typedef struct ig_lm_facts {
    const char *family; /* "llama" */
    int64_t vocab, layers, hidden, heads, kv_heads, head_dim, ffn;
    int64_t context;       /* of this ig_lm */
    int64_t model_context; /* of the config */
    int64_t parameters;
    int64_t weight_bytes; /* mapped bytes that a step of one token reads, table rows left out */
    int64_t file_bytes;
    int64_t kv_bytes_per_token, kv_pool_bytes, kv_pages, kv_pages_free, kv_pages_cached;
    int64_t arena_bytes;
    int64_t n_plans; /* compiled by this ig_lm */
    ig_lm_times times;
    const char *kset;    /* numeric contract with arithmetic: "i8c16-1" or "i8c16-1/exact" */
    const char *kv_type; /* "float16" */
} ig_lm_facts;
IG_API void ig_lm_get_facts(const ig_lm *lm, ig_lm_facts *ret_facts);
/* IG_EVERIFY, naming the file, if a mapped weight file changed since it was opened. */
IG_API IG_MUST_USE ig_status ig_lm_unchanged(const ig_lm *lm);
/* The mapped files, so that a verifier's device, inode, size and times can be compared. */
IG_API int64_t ig_lm_n_files(const ig_lm *lm);
struct ig_weights_file;
IG_API IG_MUST_USE ig_status ig_lm_file_at(const ig_lm *lm, int64_t i,
                                           struct ig_weights_file *ret_file);

/* --- text */
#define IG_LM_ADD_SPECIAL 1   /* what the tokenizer adds by itself (BOS) */
#define IG_LM_PARSE_SPECIAL 2 /* control tokens written in the text count */
/* A prompt owns token ids and the text they came from. */
IG_API IG_MUST_USE ig_status ig_lm_prompt_text(const ig_lm *lm, const char *text, size_t n,
                                               int flags, ig_lm_prompt **ret_prompt);
IG_API IG_MUST_USE ig_status ig_lm_prompt_tokens(const ig_lm *lm, const int32_t *ids, int64_t n,
                                                 ig_lm_prompt **ret_prompt);
typedef struct ig_lm_chat_options {
    int no_generation_prompt;
    const char
        *date; /* "2026-11-29" for templates that print one; NULL: such templates are refused */
    const char *kwargs_json; /* object of further template variables, or NULL */
    const char *tools_json;  /* array, or NULL */
} ig_lm_chat_options;
/* messages_json: an array of {"role", "content", ...}. Roles: system developer user assistant
 * tool. User text never becomes a control token. */
IG_API IG_MUST_USE ig_status ig_lm_prompt_chat(const ig_lm *lm, const char *messages_json, size_t n,
                                               const ig_lm_chat_options *options,
                                               ig_lm_prompt **ret_prompt);
IG_API const int32_t *ig_lm_prompt_ids(const ig_lm_prompt *p, int64_t *ret_n);
IG_API const char *ig_lm_prompt_rendered(const ig_lm_prompt *p, size_t *ret_n);
IG_API void ig_lm_prompt_free(ig_lm_prompt *p);
/* Whole text of ids, control tokens left out, into out (NUL-terminated, truncated to cap); *ret_n
 * is the length wanted. */
IG_API IG_MUST_USE ig_status ig_lm_detokenize(const ig_lm *lm, const int32_t *ids, int64_t n,
                                              char *out, size_t cap, size_t *ret_n);
/* Streaming: text that is certain, never half a character. The returned text is valid until the
 * next call on the stream. */
IG_API IG_MUST_USE ig_status ig_lm_stream_new(const ig_lm *lm, ig_lm_stream **ret_stream);
IG_API IG_MUST_USE ig_status ig_lm_stream_push(ig_lm_stream *s, int32_t id, const char **ret_text,
                                               size_t *ret_n);
IG_API IG_MUST_USE ig_status ig_lm_stream_flush(ig_lm_stream *s, const char **ret_text,
                                                size_t *ret_n);
IG_API void ig_lm_stream_free(ig_lm_stream *s);
/* Bytes that one token stands for (need not be UTF-8), truncated to cap. */
IG_API IG_MUST_USE ig_status ig_lm_token_bytes(const ig_lm *lm, int32_t id, char *out, size_t cap,
                                               size_t *ret_n);
/* Does id end a turn? Union of the config files' EOS ids. */
IG_API bool ig_lm_is_stop(const ig_lm *lm, int32_t id);

/* --- sampling (docs/numerics.md: order of steps, tie rules, random numbers) */
typedef struct ig_lm_bias {
    int32_t id;
    float bias;
} ig_lm_bias;
#define IG_LM_MAX_BIAS 1024
#define IG_LM_MAX_LOGPROBS 20
typedef struct ig_lm_sampling {
    float temperature;        /* 0: greedy */
    int32_t top_k;            /* 0: off */
    float top_p;              /* 0 or 1: off */
    float min_p;              /* 0: off */
    float repetition_penalty; /* 0 or 1: off */
    float presence_penalty, frequency_penalty;
    uint64_t seed;
    uint32_t choice;        /* index of this answer among the n of a request */
    const ig_lm_bias *bias; /* [n_bias], copied */
    int32_t n_bias;
    int32_t n_logprobs; /* alternatives reported per token */
    int ignore_stop;    /* 1: stop tokens do not end the session (benchmarks) */
} ig_lm_sampling;

/* --- sessions: one sequence each. All functions of this part: one thread at a time. */
typedef struct ig_lm_session_spec {
    const int32_t *prompt; /* [n_prompt], copied */
    int64_t n_prompt;      /* at least one token */
    int64_t max_new;       /* most tokens to generate, >= 1 */
    ig_lm_sampling sampling;
    const char *tenant; /* pages are shared only within one tenant; NULL: shared by NULLs */
    int all_logits;     /* 1: every prompt position gets a logits row (perplexity, tests) */
} ig_lm_session_spec;
/* Could a session of these sizes ever run? IG_ELIMIT, with the numbers, if not. */
IG_API IG_MUST_USE ig_status ig_lm_fits(const ig_lm *lm, int64_t n_prompt, int64_t max_new);
/* Reserves the pages of prompt + max_new at once, sharing pages of an equal prefix. IG_EBUSY: not
 * enough free pages now. */
IG_API IG_MUST_USE ig_status ig_lm_session_new(ig_lm *lm, const ig_lm_session_spec *spec,
                                               ig_lm_session **ret_session);
/* Any time between steps: cancels. */
IG_API void ig_lm_session_free(ig_lm_session *s);
/* Tokens to feed before it samples; 0: finished. */
IG_API int64_t ig_lm_session_pending(const ig_lm_session *s);
/* Prompt tokens taken from shared pages. */
IG_API int64_t ig_lm_session_cached(const ig_lm_session *s);
IG_API const int32_t *ig_lm_session_output(const ig_lm_session *s, int64_t *ret_n);

typedef struct ig_lm_feed {
    ig_lm_session *session;
    int32_t n_tokens; /* 1..pending */
} ig_lm_feed;
typedef enum ig_lm_finish {
    IG_LM_RUNNING = 0,
    IG_LM_STOP = 1,
    IG_LM_LENGTH = 2,
    IG_LM_FAILED = 3
} ig_lm_finish;
typedef struct ig_lm_logprob {
    int32_t id;
    float logprob;
} ig_lm_logprob;
typedef struct ig_lm_result {
    int32_t token; /* sampled, or -1 when the prompt is not finished (or the session failed) */
    ig_lm_finish finish; /* IG_LM_FAILED: a row was not finite; the session is over, others go on */
    float logprob;       /* of token, from raw logits; when n_logprobs > 0 */
    int32_t n_top;
    ig_lm_logprob top[IG_LM_MAX_LOGPROBS];
    const float *logits; /* raw rows [n_rows, vocab], valid until the next step; NULL when none */
    int32_t n_rows;      /* 1 where a token was sampled; all fed positions with all_logits */
} ig_lm_result;
/* One replay. Sum of n_tokens <= max_tokens, n <= max_sessions, rows with logits <= max_outputs;
 * each session once. On failure no session has moved: the same feeds may be tried again. */
IG_API IG_MUST_USE ig_status ig_lm_step(ig_lm *lm, const ig_lm_feed *feeds, int32_t n,
                                        ig_lm_result *ret_results);

typedef struct ig_lm_step_stats {
    int64_t n_steps, n_tokens, n_outputs;
    int64_t wall_ns;            /* of steps: inputs written, plan replayed, tokens sampled */
    int64_t plan_ns;            /* of it in replays */
    int64_t kernel_ns, wait_ns; /* as in ig_plan_stats: of all workers, when timing is on */
} ig_lm_step_stats;
IG_API void ig_lm_get_step_stats(const ig_lm *lm, ig_lm_step_stats *ret_stats);
IG_API void ig_lm_set_timing(ig_lm *lm, bool on);
/* Text of the plan, as ig_plan_format. */
IG_API size_t ig_lm_format_plan(const ig_lm *lm, char *out, size_t cap);

/* --- the simple way: prompt in, text out, one session. max_new 0: what the context leaves. on_text
 * returns false to stop, which gives IG_ECANCELLED. */
typedef bool (*ig_lm_on_text)(void *user, const char *text, size_t n);
IG_API IG_MUST_USE ig_status ig_lm_generate(ig_lm *lm, const ig_lm_prompt *prompt,
                                            const ig_lm_sampling *sampling, int64_t max_new,
                                            ig_lm_on_text on_text, void *user,
                                            ig_lm_finish *ret_finish);

/* --- known answers: a fixed prompt of token ids, 16 greedy tokens; digests of ids and of all
 * logits rows (SHA-256 of their float32 little-endian words): what is compared with kat.json. */
typedef struct ig_lm_kat {
    uint8_t tokens_sha256[32], logits_sha256[32];
} ig_lm_kat;
IG_API IG_MUST_USE ig_status ig_lm_known_answer(ig_lm *lm, ig_lm_kat *ret_kat);

#ifdef __cplusplus
}
#endif
#endif
