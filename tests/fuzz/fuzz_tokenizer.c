/* A tokenizer.json, a NUL, and a text to encode with it. What opens encodes valid UTF-8 to ids
 * of its own, lets no untrusted byte become a control token, and streams what it decodes. */
#define _GNU_SOURCE /* memmem */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "lm/detokenise.h"
#include "lm/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_IDS 4096

static void check_text(const tokenizer *t, const token_ids *ids)
{
    AUTO(detokenise_ptr) d = NULL;
    AUTO(buf) whole;
    AUTO(buf) pushed;
    buf_init(&whole, 1 << 22);
    buf_init(&pushed, 1 << 22);
    bool ok = tokenizer_decode(t, ids->id, ids->n, true, &whole) == IG_OK;
    if (detokenise_new(t, true, &d) != IG_OK) return;
    for (size_t i = 0; ok && i < ids->n; i++) {
        size_t n = pushed.n;
        ok = detokenise_push(d, ids->id[i], &pushed) == IG_OK;
        if (ok && pushed.n > n && !utf8_valid(pushed.data + n, pushed.n - n)) abort();
    }
    ok = ok && detokenise_flush(d, &pushed) == IG_OK;
    if (ok && (whole.n != pushed.n || (whole.n && memcmp(whole.data, pushed.data, whole.n))))
        abort();
}

static void check_bytes(const tokenizer *t, const token_ids *ids)
{
    AUTO(buf) bytes;
    buf_init(&bytes, 1 << 20);
    for (size_t i = 0; i < ids->n && i < 64; i++) {
        str token;
        if (tokenizer_token(t, ids->id[i], &token))
            (void)tokenizer_token_bytes(t, ids->id[i], &bytes);
    }
}

/* The text as one span, trusted or not. */
static void check_encode(const tokenizer *t, str text, bool trusted)
{
    AUTO(token_ids) ids;
    token_ids_init(&ids, MAX_IDS);
    ig_error_clear();
    ig_status s = tokenizer_encode(
        t, text, (tokenizer_flags){.add_special = trusted, .parse_special = trusted}, &ids);
    if (s != IG_OK && (ids.n || !ig_error_message()[0])) abort();
    if (s == IG_OK && !utf8_valid(text.p, text.n)) abort();
    for (size_t i = 0; !trusted && i < ids.n; i++) {
        str token;
        if (!tokenizer_token(t, ids.id[i], &token)) abort();
        bool unk = memmem(token.p, token.n, "unk", 3) || memmem(token.p, token.n, "UNK", 3);
        if (tokenizer_is_control(t, ids.id[i]) && !unk) abort();
    }
    check_text(t, &ids);
    check_bytes(t, &ids);
}

static void check_spans(const tokenizer *t, str text)
{
    AUTO(token_ids) ids;
    token_ids_init(&ids, MAX_IDS);
    size_t a = text.n / 3, b = text.n - text.n / 3;
    const tokenizer_span spans[] = {
        {{text.p, a}, true}, {{text.p + a, b - a}, false}, {{text.p + b, text.n - b}, true}};
    if (tokenizer_encode_spans(t, spans, 3, true, &ids) == IG_OK) check_text(t, &ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t n = end ? (size_t)(end - data) : size;
    str text = end ? (str){(const char *)end + 1, size - n - 1} : (str){"", 0};
    AUTO(tokenizer_ptr) t = NULL;
    ig_error_clear();
    if (tokenizer_open("fuzz", (str){(const char *)data, n}, &t) != IG_OK) {
        if (t || !ig_error_message()[0]) abort();
        return 0;
    }
    if (text.n > 2000) text.n = 2000;
    check_encode(t, text, true);
    check_encode(t, text, false);
    check_spans(t, text);
    return 0;
}
