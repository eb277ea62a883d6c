/* detokenise.h: ids to text, one id at a time.
 *
 * The text pushed out, joined, plus what flush gives, is byte for byte tokenizer_decode of all
 * ids so far. Nothing that later ids could change is given out: no half character, no unfinished
 * run of byte-fallback tokens, no space that a rule at the end of the text would take away. */
#ifndef LM_DETOKENISE_H
#define LM_DETOKENISE_H
#include "lm/tokenizer.h"

typedef struct detokenise detokenise;

/* The tokenizer must outlive it. One thread at a time. */
IG_MUST_USE ig_status detokenise_new(const tokenizer *t, bool skip_special,
                                     detokenise **ret_detokenise);
void detokenise_free(detokenise *d);
AUTO_FN(detokenise_ptr, detokenise *, detokenise_free)

/* Appends to ret_text what has become certain; often nothing. */
IG_MUST_USE ig_status detokenise_push(detokenise *d, int32_t id, buf *ret_text);
/* The end of the text: appends the rest (an unfinished character becomes U+FFFD) and starts
 * afresh. */
IG_MUST_USE ig_status detokenise_flush(detokenise *d, buf *ret_text);
#endif
