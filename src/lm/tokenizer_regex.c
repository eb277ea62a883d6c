/* tokenizer_regex.c: patterns run by PCRE2 with its JIT (contract in tokenizer_regex.h;
 * translation in tokenizer_dialect.c). The text is known to be valid UTF-8, so matching skips
 * PCRE2's own check, which would cost a pass over the text per match. */
#define _GNU_SOURCE /* memmem */
#include "lm/tokenizer_regex.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#define MAX_PATTERN_BYTES ((size_t)1 << 20)
#define MAX_STEPS_PER_MATCH \
    20000000u /* a match that needs more is refused: no pattern may hang a server */
#define MAX_HEAP_KIB (256u << 10)
#define JIT_STACK_MAX \
    ((size_t)64 << 20) /* address space; touched only as far as a pattern backtracks */

struct regex {
    pcre2_code *code;
    bool jit;
    char *literal; /* plain text that is searched without PCRE2; owned, NULL otherwise */
    size_t n_literal;
    char *where; /* for errors; owned */
};

static void *pcre_alloc(size_t n, void *user)
{
    (void)user;
    return mem_alloc(n);
}

static void pcre_free(void *p, void *user)
{
    (void)user;
    mem_free(p);
}

static ig_status compile(regex *r, const buf *pattern)
{
    pcre2_general_context *general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int error = 0;
    PCRE2_SIZE at = 0;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        r->code = pcre2_compile((PCRE2_SPTR)pattern->data, pattern->n,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                &error, &at, context);
    }
    if (r->code) r->jit = pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE) == 0;
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (r->code) return IG_OK;
    if (!context || error == PCRE2_ERROR_HEAP_FAILED) return IG_ENOMEM;
    char text[128];
    pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
    return ig_fail(IG_EFORMAT, "%s: pattern does not compile at byte %zu of %s: %s", r->where,
                   (size_t)at, pattern->data, text);
}

ig_status regex_open(const char *where, str pattern, bool literal, regex **ret_regex)
{
    if (pattern.n > MAX_PATTERN_BYTES)
        return ig_fail(IG_ELIMIT, "%s: a pattern of %zu bytes, at most %zu are read", where,
                       pattern.n, MAX_PATTERN_BYTES);
    AUTO(regex_ptr) r = mem_calloc(1, sizeof *r);
    if (!r || !(r->where = mem_strdup(where))) return IG_ENOMEM;
    if (literal && pattern.n) {
        r->literal = mem_dup(pattern.p, pattern.n);
        if (!r->literal) return IG_ENOMEM;
        r->n_literal = pattern.n;
    } else {
        AUTO(buf) translated = {0};
        buf_init(&translated, MAX_PATTERN_BYTES * 4);
        TRY(regex_translate(where, pattern, &translated));
        TRY(compile(r, &translated));
    }
    *ret_regex = STEAL(r);
    return IG_OK;
}

void regex_free(regex *r)
{
    if (!r) return;
    pcre2_code_free(r->code);
    mem_free(r->literal);
    mem_free(r->where);
    mem_free(r);
}

ig_status regex_run_init(regex_run *run)
{
    *run = (regex_run){0};
    pcre2_general_context *general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (general) {
        run->data = pcre2_match_data_create(1, general);
        run->context = pcre2_match_context_create(general);
        run->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK_MAX, general);
    }
    pcre2_general_context_free(general);
    if (!run->data || !run->context || !run->stack) {
        regex_run_done(run);
        return ig_fail(IG_ENOMEM, "out of memory for pattern matching");
    }
    pcre2_set_match_limit(run->context, MAX_STEPS_PER_MATCH);
    pcre2_set_heap_limit(run->context, MAX_HEAP_KIB);
    pcre2_jit_stack_assign(run->context, NULL, run->stack);
    return IG_OK;
}

void regex_run_done(regex_run *run)
{
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->context);
    pcre2_jit_stack_free(run->stack);
    *run = (regex_run){0};
}

/* The match at or behind it->at. */
static ig_status search(regex_iter *it, bool *ret_found, size_t *ret_at, size_t *ret_end)
{
    const regex *r = it->r;
    if (r->literal) {
        const char *hit = memmem(it->p + it->at, it->n - it->at, r->literal, r->n_literal);
        *ret_found = hit != NULL;
        if (!hit) return IG_OK;
        *ret_at = (size_t)(hit - it->p);
        *ret_end = *ret_at + r->n_literal;
        return IG_OK;
    }
    PCRE2_SPTR p = (PCRE2_SPTR)it->p;
    int rc = PCRE2_ERROR_JIT_STACKLIMIT;
    if (r->jit) rc = pcre2_jit_match(r->code, p, it->n, it->at, 0, it->run->data, it->run->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, p, it->n, it->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         it->run->data, it->run->context);
    *ret_found = rc > 0;
    if (rc > 0) {
        const PCRE2_SIZE *v = pcre2_get_ovector_pointer(it->run->data);
        *ret_at = v[0];
        *ret_end = v[1];
        return IG_OK;
    }
    if (rc == PCRE2_ERROR_NOMATCH) return IG_OK;
    if (rc == PCRE2_ERROR_NOMEMORY) return ig_fail(IG_ENOMEM, "out of memory for pattern matching");
    return ig_fail(IG_ELIMIT,
                   "%s: the pattern takes too many steps on a text of %zu bytes (PCRE2 error %d)",
                   r->where, it->n, rc);
}

ig_status regex_next(regex_iter *it, bool *ret_found, size_t *ret_at, size_t *ret_end)
{
    for (;;) {
        bool found = false;
        size_t at = 0, end = 0;
        if (it->at <= it->n) TRY(search(it, &found, &at, &end));
        *ret_found = found;
        if (!found) return IG_OK;
        if (at == end && end == it->last_end) { /* nothing, right behind a match: try one on */
            it->at++;
            while (it->at < it->n && ((uint8_t)it->p[it->at] & 0xc0) == 0x80) it->at++;
            continue;
        }
        it->at = it->last_end = end;
        *ret_at = at;
        *ret_end = end;
        return IG_OK;
    }
}
