/* words.h: from a request to the token ids of its prompt, and from token ids to an answer's text.
 * Stages 5 and 8 do it for clients, replay does it again to see that text and tokens of a receipt
 * belong together. */
#ifndef SERVER_WORDS_H
#define SERVER_WORDS_H
#include "server/api.h"

/* The prompt of a parsed request: chat template, text, or ids as they are. date may be empty; max
 * bounds the messages as they are handed to the template. */
IG_MUST_USE ig_status words_prompt(const ig_lm *lm, const api_request *r, const char *date,
                                   size_t max, ig_lm_prompt **ret_prompt);
/* Offset of the first stop string in a text, or -1. */
int64_t words_first_stop(const api_request *r, str text);
/* The text that a client is given for these tokens; *ret_cut: a stop string ended it. ret_text is
 * initialised, also on failure. */
IG_MUST_USE ig_status words_answer(const ig_lm *lm, const api_request *r, const int32_t *ids,
                                   int64_t n, buf *ret_text, bool *ret_cut);
#endif
