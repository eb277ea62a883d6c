/* tokenizer_regex.h: the regular expressions of tokenizer.json, which are written for Oniguruma,
 * run by PCRE2. */
#ifndef LM_TOKENIZER_REGEX_H
#define LM_TOKENIZER_REGEX_H
#include "base/buf.h"
#include "base/str.h"

typedef struct regex regex;

/* `where` names the pattern in errors. What means something else to PCRE2 is translated, what
 * cannot be is refused by name. `literal`: the pattern is plain text. */
IG_MUST_USE ig_status regex_open(const char *where, str pattern, bool literal, regex **ret_regex);
void regex_free(regex *r);
AUTO_FN(regex_ptr, regex *, regex_free)

/* The PCRE2 form of an Oniguruma pattern (exposed for tests). */
IG_MUST_USE ig_status regex_translate(const char *where, str pattern, buf *ret_pattern);

/* What matching needs per thread. */
typedef struct regex_run {
    void *data, *context, *stack; /* PCRE2's; NULL until used */
} regex_run;
IG_MUST_USE ig_status regex_run_init(regex_run *run);
void regex_run_done(regex_run *run);

/* Goes over all matches as Oniguruma's iterator does: an empty match right behind a match is
 * skipped. */
typedef struct regex_iter {
    const regex *r;
    regex_run *run;
    const char *p;
    size_t n;
    size_t at;       /* where the search goes on */
    size_t last_end; /* end of the last match; SIZE_MAX: none */
} regex_iter;
static inline regex_iter regex_over(const regex *r, regex_run *run, const char *p, size_t n)
{
    return (regex_iter){r, run, p, n, 0, SIZE_MAX};
}
/* *ret_found false: no more. The text is valid UTF-8. IG_ELIMIT: the pattern takes too many
 * steps. */
IG_MUST_USE ig_status regex_next(regex_iter *it, bool *ret_found, size_t *ret_at, size_t *ret_end);
#endif
