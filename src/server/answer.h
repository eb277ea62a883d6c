/* answer.h: the bytes of an answer in the OpenAI dialect: SSE chunks and whole bodies. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H
#include "server/request.h"

/* "data: {...}\n\n" that opens choice i (chat: the role). */
void answer_open_chunk(const request *r, int i, buf *out);
/* A piece of text of choice i, with its logprobs entries (JSON list items, may be empty). */
void answer_text_chunk(const request *r, int i, str text, str logprobs, buf *out);
/* The chunk that carries finish_reason; `proof` (a receipt, may be empty) goes into the field
 * audit of the last one. */
void answer_finish_chunk(const request *r, int i, str proof, buf *out);
void answer_usage_chunk(const request *r, buf *out);
/* "data: {"error":...}\n\n": the end of a stream that failed. */
void answer_error_chunk(const api_error *e, buf *out);
/* The body of an answer that is not streamed. */
void answer_body(const request *r, str proof, buf *out);
/* One entry of logprobs for a token; comma first when `more`. */
void answer_logprob(const request *r, const ig_lm_result *result, bool more, buf *out);
const char *answer_finish_name(ig_lm_finish f); /* "stop", "length" */
void answer_usage_counts(const request *r, int64_t *ret_prompt, int64_t *ret_completion);
#endif
