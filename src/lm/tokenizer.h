/* tokenizer.h: text to token ids and back, as a Hugging Face tokenizer.json says.
 *
 * Owns: reading tokenizer.json into a compact form, encoding, decoding. A component that is not
 * implemented is refused at tokenizer_open by name and place; nothing is guessed. Ids and
 * decoded text equal those of the `tokenizers` library (goldens: tests/golden/lm/tokenizers.*).
 *
 * A tokenizer is immutable once open; any number of threads may encode and decode with it at
 * once. "truncation" and "padding" of the file are not applied (a server refuses what is too
 * long, it never cuts it). Text must be valid UTF-8; anything else is refused with the offset of
 * the bad byte. */
#ifndef LM_TOKENIZER_H
#define LM_TOKENIZER_H
#include "base/buf.h"
#include "base/str.h"

/* Limits on what a tokenizer.json may hold; passing one is IG_ELIMIT and names it. */
#define TOKENIZER_MAX_JSON_BYTES ((size_t)256 << 20)
#define TOKENIZER_MAX_TOKENS ((size_t)1 << 22)   /* ids are below this */
#define TOKENIZER_MAX_TOKEN_BYTES ((size_t)8192) /* text of one token */
#define TOKENIZER_MAX_MERGES ((size_t)1 << 23)
#define TOKENIZER_MAX_TEXT_BYTES ((size_t)256 << 20) /* one prompt */

typedef struct tokenizer tokenizer;

/* `what` names the document in errors ("bundle/model/tokenizer.json"). */
IG_MUST_USE ig_status tokenizer_open(const char *what, str json, tokenizer **ret_tokenizer);
void tokenizer_free(tokenizer *t);
AUTO_FN(tokenizer_ptr, tokenizer *, tokenizer_free)

/* Ids, growable to `max`; encoding appends. */
typedef struct token_ids {
    int32_t *id; /* owned; NULL while empty */
    size_t n;    /* ids used */
    size_t cap;  /* ids allocated */
    size_t max;  /* ids allowed */
} token_ids;
void token_ids_init(token_ids *v, size_t max);
void token_ids_done(token_ids *v); /* frees; safe twice */
static inline void token_ids_auto(token_ids *v) { token_ids_done(v); }
IG_MUST_USE ig_status token_ids_add(token_ids *v, const int32_t *ids, size_t n);

typedef struct tokenizer_flags {
    bool add_special;   /* add what the post-processor adds (BOS, [CLS], ...) */
    bool parse_special; /* recognise control tokens written in the text */
} tokenizer_flags;

/* One text. With parse_special it is one trusted span, without it one untrusted span. On failure
 * ret_ids keeps what it held before. */
IG_MUST_USE ig_status tokenizer_encode(const tokenizer *t, str text, tokenizer_flags flags,
                                       token_ids *ret_ids);

/* A piece of a prompt and whether its author may write control tokens. */
typedef struct tokenizer_span {
    str text;     /* valid UTF-8 by itself: a span never ends inside a character */
    bool trusted; /* written by the template (true) or by a user (false) */
} tokenizer_span;

/* Several spans as one prompt. The spans are joined and tokenised as one text, so that merges and
 * word splits across span borders happen exactly as if the text were one string, except:
 * - a *control token* is found only if every byte of it lies in trusted spans next to each other.
 *   Control tokens are all added tokens of the file, special or not (published chat markers such as
 *   DeepSeek's <|User|> are not marked special), except those made of white space (or U+2581) only,
 *   which are found everywhere;
 * - in a stretch between control tokens that holds any untrusted byte, the model itself (BPE,
 *   Unigram, WordPiece) may not produce a control token either; it then splits the text otherwise,
 *   and what it does not know is the unknown token, or nothing where the file names a control token
 *   such as <|endoftext|> as the unknown one.
 * So no byte of an untrusted span ever becomes, or becomes part of, a control token. A token that
 * strips the white space beside it (lstrip, rstrip) strips untrusted white space too. */
IG_MUST_USE ig_status tokenizer_encode_spans(const tokenizer *t, const tokenizer_span *spans,
                                             size_t n_spans, bool add_special, token_ids *ret_ids);

/* Appends the text of ids to ret_text. Ids without a token are skipped, as `tokenizers` does.
 * Invalid UTF-8 becomes U+FFFD. For text that arrives id by id see detokenise.h: it gives the
 * same bytes. */
IG_MUST_USE ig_status tokenizer_decode(const tokenizer *t, const int32_t *ids, size_t n_ids,
                                       bool skip_special, buf *ret_text);

size_t tokenizer_vocab_size(const tokenizer *t); /* highest id + 1; ids may have holes */
bool tokenizer_id(const tokenizer *t, str token, int32_t *ret_id); /* "<|im_end|>" to 2 */
bool tokenizer_token(const tokenizer *t, int32_t id,
                     str *ret_token); /* as the vocabulary spells it; borrowed from t */
bool tokenizer_is_special(const tokenizer *t, int32_t id); /* skipped by skip_special */
bool tokenizer_is_control(const tokenizer *t, int32_t id); /* never made of untrusted text */
/* Appends the bytes that one token stands for (byte-level and byte-fallback undone, no
 * start-of-text rules): they need not be UTF-8. For logprobs and constrained output. False when
 * id has no token. */
bool tokenizer_token_bytes(const tokenizer *t, int32_t id, buf *ret_bytes);
#endif
