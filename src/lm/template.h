/* template.h: chat templates: the Jinja that published models ship, as an interpreter of our own.
 *
 * Owns: parsing template text once, rendering it for a conversation. The dialect is Jinja2 3.1 as
 * Hugging Face sets it up: trim_blocks, lstrip_blocks, loop controls, the immutable sandbox, their
 * tojson, raise_exception and strftime_now (goldens: tests/golden/lm/template_*). What is not
 * implemented is refused by name and line, when the template is parsed where possible.
 *
 * A template can reach nothing but the values below: no files, no clock, no environment. Steps,
 * depth, memory and output are limited; passing a limit is IG_ELIMIT and names the line.
 *
 * Trust. Every character of the result is the template's (trusted) or somebody else's:
 * - trusted: text and string constants of the template, constants of this interpreter ("True", the
 *   punctuation of tojson over a container that the template built), bos_token and the other
 *   `constants`, the date, and the value of "role" in a message where it is one of `roles`;
 * - untrusted: every other string, number, key and container of messages, tools, documents and
 *   kwargs, and the punctuation that tojson writes for such a container.
 * String operations keep the mark of each character (case mapping and padding included); arithmetic
 * on an untrusted number is untrusted; lengths, counts, loop indices and truth values are trusted.
 * A control token counts only where the tokenizer finds it wholly in trusted spans, so no text of a
 * user becomes one, and none grows together out of "<|" + user text + "|>".
 *
 * A template is immutable: any number of threads may render it at once. Stack needed at the default
 * depth, measured with -O2: 512 KiB to parse, 256 KiB to render. */
#ifndef LM_TEMPLATE_H
#define LM_TEMPLATE_H
#include <jansson.h>
#include "base/str.h"

#define TEMPLATE_MAX_BYTES ((size_t)1 << 20)

typedef struct template template;

/* `what` names the text in errors ("chat_template.jinja"). IG_EFORMAT: not a template;
 * IG_EUNSUPPORTED: one that needs what is not done here. */
IG_MUST_USE ig_status template_parse(const char *what, str text, template **ret_template);
void template_free(template *t);
AUTO_FN(template_ptr, template *, template_free)

/* Does the template mention this variable or function anywhere ("tools", "strftime_now")? */
bool template_mentions(const template *t, const char *name);

/* Zero means default. */
typedef struct template_limits {
    int64_t max_steps; /* nodes visited, plus bytes and items handled / 64; default 4,000,000 */
    int32_t max_depth; /* nested expressions, blocks and calls; default 500 */
    size_t max_output; /* bytes of the result, and of any string on the way; default 16 MiB */
    size_t max_memory; /* bytes of values made while rendering; default 256 MiB */
} template_limits;

/* JSON is read, not kept; its strings must be UTF-8, as json_parse makes sure. */
typedef struct template_input {
    const json_t *messages;  /* array of objects with "role" */
    const json_t *tools;     /* array; NULL: the variable is none, as transformers passes it */
    const json_t *documents; /* likewise */
    /* Object of further variables of the request, or NULL; may not name one of the others here. */
    const json_t *kwargs;
    /* Object of further variables that the server vouches for (pad_token, ...), or NULL. */
    const json_t *constants;
    const char *bos_token; /* NULL: undefined */
    const char *eos_token; /* NULL: undefined */
    bool add_generation_prompt;
    /* What strftime_now formats: "2026-11-29" or "2026-11-29T13:14:15"; NULL: it is an error. */
    const char *date;
    const char *const *roles; /* trusted values of "role"; NULL: the five of the OpenAI API */
    size_t n_roles;
    template_limits limits;
} template_input;

typedef struct template_span {
    size_t offset, n; /* bytes of the text; spans follow each other without gap, n > 0 */
    bool trusted;     /* neighbours differ */
} template_span;

typedef struct template_output {
    char *text; /* owned, valid UTF-8, NUL-terminated */
    size_t n;
    template_span *spans; /* owned */
    size_t n_spans;
} template_output;
void template_output_done(template_output *o); /* frees; safe twice */
static inline void template_output_auto(template_output *o) { template_output_done(o); }

/* IG_EINVAL: the template refused the conversation (raise_exception) or met a value it cannot use;
 * the message says what and on which line. */
IG_MUST_USE ig_status template_render(const template *t, const template_input *in,
                                      template_output *ret_output);
#endif
