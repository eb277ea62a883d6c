/* checkpoint.c: writing and reading signed tree heads (contract in checkpoint.h). */
#include "audit/checkpoint.h"

#include <inttypes.h>
#include <string.h>

static const char dash[] = "\xE2\x80\x94 "; /* em dash, space: opens a signature line */
#define MAX_SIGNATURES 32

ig_status checkpoint_sign(const log_key *k, const checkpoint *c, buf *out)
{
    const log_vkey *v = log_key_public(k);
    size_t start = out->n;
    buf_printf(out, "%s\n%" PRIu64 "\n", v->name, c->size);
    buf_base64(out, c->root.b, SHA256_N);
    buf_char(out, '\n');
    TRY(buf_status(out));
    uint8_t blob[4 + 64] = {(uint8_t)(v->hash >> 24), (uint8_t)(v->hash >> 16),
                            (uint8_t)(v->hash >> 8), (uint8_t)v->hash};
    TRY(log_key_sign(k, out->data + start, out->n - start, blob + 4));
    buf_printf(out, "\n%s%s ", dash, v->name);
    buf_base64(out, blob, sizeof blob);
    buf_char(out, '\n');
    return buf_status(out);
}

/* Cuts one line off; false when there is no newline left. */
static bool take_line(str *rest, str *ret_line)
{
    const char *end = memchr(rest->p, '\n', rest->n);
    if (!end) return false;
    *ret_line = (str){rest->p, (size_t)(end - rest->p)};
    *rest = (str){end + 1, rest->n - ret_line->n - 1};
    return true;
}

static bool plain_text(str s)
{
    if (!utf8_valid(s.p, s.n)) return false;
    for (size_t i = 0; i < s.n; i++)
        if ((uint8_t)s.p[i] < ' ' && s.p[i] != '\n') return false;
    return true;
}

/* The text ends at the last empty line: "\n\n" followed by signature lines only. */
static bool split_note(str note, str *ret_text, str *ret_signatures)
{
    for (size_t i = note.n; i-- > 1;)
        if (note.p[i] == '\n' && note.p[i - 1] == '\n') {
            *ret_text = (str){note.p, i};
            *ret_signatures = (str){note.p + i + 1, note.n - i - 1};
            return true;
        }
    return false;
}

static bool parse_text(str text, const log_vkey *v, checkpoint *ret_checkpoint)
{
    str origin, size, root, more;
    int64_t n;
    size_t n_root = 0;
    checkpoint c;
    if (!take_line(&text, &origin) || !take_line(&text, &size) || !take_line(&text, &root))
        return false;
    if (!str_eq(origin, str_of(v->name))) return false;
    if (!str_int(size, 0, (int64_t)TREE_MAX_SIZE, &n) || (size.n > 1 && size.p[0] == '0'))
        return false;
    if (!base64_decode(root, c.root.b, SHA256_N, &n_root) || n_root != SHA256_N) return false;
    while (text.n)
        if (!take_line(&text, &more) || more.n == 0) return false;
    c.size = (uint64_t)n;
    *ret_checkpoint = c;
    return true;
}

typedef enum verdict { OTHER_KEY, GOOD, BAD } verdict;

static verdict check_line(str line, str text, const log_vkey *v, bool verify)
{
    str mark = str_of(dash);
    if (!str_starts(line, mark)) return BAD;
    str rest = {line.p + mark.n, line.n - mark.n};
    const char *space = memchr(rest.p, ' ', rest.n);
    if (!space || space == rest.p) return BAD;
    str name = {rest.p, (size_t)(space - rest.p)}, b64 = {space + 1, rest.n - name.n - 1};
    uint8_t blob[8192];
    size_t n = 0;
    if (!base64_decode(b64, blob, sizeof blob, &n) || n < 5) return BAD;
    uint32_t hash =
        (uint32_t)blob[0] << 24 | (uint32_t)blob[1] << 16 | (uint32_t)blob[2] << 8 | blob[3];
    if (!str_eq(name, str_of(v->name)) || hash != v->hash) return OTHER_KEY;
    if (n != 4 + 64) return BAD;
    return !verify || log_vkey_check(v, text.p, text.n, blob + 4) ? GOOD : BAD;
}

static ig_status open_note(const char *what, str note, const log_vkey *v, bool verify,
                           checkpoint *ret_checkpoint)
{
    str text, signatures, line;
    checkpoint c;
    if (note.n > CHECKPOINT_MAX)
        return ig_fail(IG_ELIMIT, "%s: a checkpoint of %zu bytes", what, note.n);
    if (!plain_text(note) || !split_note(note, &text, &signatures))
        return ig_fail(IG_EFORMAT, "%s: not a signed note", what);
    if (!parse_text(text, v, &c)) {
        size_t n = strcspn(text.p, "\n");
        return ig_fail(IG_EFORMAT,
                       "%s: not a checkpoint of log %s, which the key is of; it names log %.*s",
                       what, v->name, (int)(n < 200 ? n : 200), text.p);
    }
    size_t n_good = 0;
    for (size_t i = 0; signatures.n; i++) {
        verdict d = BAD;
        if (i < MAX_SIGNATURES && take_line(&signatures, &line))
            d = check_line(line, text, v, verify);
        if (d == BAD)
            return ig_fail(IG_EVERIFY, "%s: signature line %zu does not verify under key %s", what,
                           i + 1, v->text);
        n_good += d == GOOD;
    }
    if (n_good == 0) return ig_fail(IG_EVERIFY, "%s: no signature by key %s", what, v->text);
    *ret_checkpoint = c;
    return IG_OK;
}

ig_status checkpoint_open(const char *what, str note, const log_vkey *v, checkpoint *ret_checkpoint)
{
    return open_note(what, note, v, true, ret_checkpoint);
}

ig_status checkpoint_parse(const char *what, str note, const log_vkey *v,
                           checkpoint *ret_checkpoint)
{
    return open_note(what, note, v, false, ret_checkpoint);
}
