/* receipt.c: writing, reading and verifying receipts (format and meaning in receipt.h). */
#include "audit/receipt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

static const char first_line[] = "ingot-receipt/v1";
static const char *const leaf_names[RECEIPT_N_LEAVES] = {"load", "admit", "done"};
static const event_type leaf_types[RECEIPT_N_LEAVES] = {EVENT_LOAD, EVENT_ADMIT, EVENT_DONE};

/* ---- writing ---- */

static ig_status parse_at(store *s, uint64_t index, event_type type, buf *ret_leaf,
                          event_parsed *ret_event)
{
    char what[40];
    (void)snprintf(what, sizeof what, "event %" PRIu64, index);
    TRY(store_leaf(s, index, ret_leaf));
    TRY(event_parse(what, (str){ret_leaf->data, ret_leaf->n}, ret_event));
    if (ret_event->e.type == type) return IG_OK;
    const char *is = event_type_name(ret_event->e.type);
    event_parsed_done(ret_event);
    return ig_fail(IG_EINVAL, "%s: its type is %s, not %s", what, is, event_type_name(type));
}

static ig_status put_part(store *s, const checkpoint *c, receipt_leaf which, uint64_t index,
                          const buf *leaf, buf *out)
{
    tree_proof proof;
    if (index >= c->size)
        return ig_fail(IG_ENOTFOUND,
                       "event %" PRIu64 " is not signed yet: a running server publishes a "
                       "checkpoint within a second, so try again",
                       index);
    TRY(store_prove_inclusion(s, c->size, index, &proof));
    buf_printf(out, "leaf %s %" PRIu64 "\n", leaf_names[which], index);
    buf_add(out, leaf->data, leaf->n);
    buf_char(out, '\n');
    for (size_t i = 0; i < proof.n; i++) {
        buf_base64(out, proof.hashes[i].b, SHA256_N);
        buf_char(out, '\n');
    }
    return buf_status(out);
}

static void put_head(const commit_secret *secret, const receipt_opening *openings,
                     size_t n_openings, buf *out)
{
    buf_printf(out, "%s\nsecret ", first_line);
    if (secret)
        buf_hex(out, secret->b, sizeof secret->b);
    else
        buf_str(out, "none");
    buf_char(out, '\n');
    for (size_t i = 0; secret && i < n_openings; i++) {
        buf_printf(out, "open %s ", openings[i].name);
        buf_base64(out, openings[i].p, openings[i].n);
        buf_char(out, '\n');
    }
}

ig_status receipt_write(store *s, uint64_t done, const commit_secret *secret,
                        const receipt_opening *openings, size_t n_openings, buf *ret_receipt)
{
    buf_init(ret_receipt, RECEIPT_MAX);
    if (n_openings > RECEIPT_MAX_OPENINGS)
        return ig_fail(IG_ELIMIT, "receipt: more than %d openings", RECEIPT_MAX_OPENINGS);
    AUTO(buf) leaf_load = {0}, leaf_admit = {0}, leaf_done = {0}, note = {0};
    buf_init(&leaf_load, 0);
    buf_init(&leaf_admit, 0);
    buf_init(&leaf_done, 0);
    buf_init(&note, 0);
    AUTO(event_parsed) d = {.store = NULL}, a = {.store = NULL}, l = {.store = NULL};
    TRY(parse_at(s, done, EVENT_DONE, &leaf_done, &d));
    uint64_t admit = (uint64_t)event_get_int(&d.e, EV_DONE_ADMIT_I);
    TRY(parse_at(s, admit, EVENT_ADMIT, &leaf_admit, &a));
    uint64_t load = (uint64_t)event_get_int(&a.e, EV_ADMIT_LOAD_I);
    TRY(parse_at(s, load, EVENT_LOAD, &leaf_load, &l));
    checkpoint c;
    TRY(store_latest(s, &c, &note));
    put_head(secret, openings, n_openings, ret_receipt);
    TRY(put_part(s, &c, RECEIPT_LOAD, load, &leaf_load, ret_receipt));
    TRY(put_part(s, &c, RECEIPT_ADMIT, admit, &leaf_admit, ret_receipt));
    TRY(put_part(s, &c, RECEIPT_DONE, done, &leaf_done, ret_receipt));
    buf_char(ret_receipt, '\n');
    buf_add(ret_receipt, note.data, note.n);
    return buf_status(ret_receipt);
}

/* ---- reading ---- */

typedef struct reader {
    const char *what;
    str rest;
    size_t line; /* of the last line taken, from 1 */
} reader;

static ig_status malformed(const reader *r, const char *wanted)
{
    return ig_fail(IG_EFORMAT, "%s: line %zu: expected %s", r->what, r->line, wanted);
}

static bool take_line(reader *r, str *ret_line)
{
    const char *end = r->rest.n ? memchr(r->rest.p, '\n', r->rest.n) : NULL;
    r->line++;
    if (!end) return false;
    *ret_line = (str){r->rest.p, (size_t)(end - r->rest.p)};
    r->rest = (str){end + 1, r->rest.n - ret_line->n - 1};
    return true;
}

static bool next_starts(const reader *r, const char *word)
{
    return str_starts(r->rest, str_of(word));
}

static str after(str line, const char *word)
{
    size_t n = strlen(word);
    return (str){line.p + n, line.n - n};
}

static ig_status read_secret(reader *rd, receipt *r)
{
    str line;
    if (!take_line(rd, &line) || !str_eq(line, str_of(first_line)))
        return malformed(rd, "\"ingot-receipt/v1\"; is this a receipt?");
    if (!take_line(rd, &line) || !str_starts(line, str_of("secret ")))
        return malformed(rd, "\"secret\"");
    str hex = after(line, "secret ");
    if (str_eq(hex, str_of("none"))) return IG_OK;
    if (!hex_decode(hex, r->secret.b, sizeof r->secret.b))
        return malformed(rd, "64 hex digits or \"none\"");
    r->has_secret = true;
    return IG_OK;
}

static ig_status read_opening(reader *rd, receipt *r)
{
    str line;
    if (!take_line(rd, &line)) return malformed(rd, "a whole line");
    str rest = after(line, "open ");
    const char *space = memchr(rest.p, ' ', rest.n);
    if (!space || r->n_openings == RECEIPT_MAX_OPENINGS || !r->has_secret)
        return malformed(rd, "at most 24 openings, and a secret for them");
    str name = {rest.p, (size_t)(space - rest.p)}, b64 = {space + 1, rest.n - name.n - 1};
    size_t cap = b64.n / 4 * 3 + 3, n = 0;
    char *bytes = mem_alloc(cap);
    if (!bytes) return IG_ENOMEM;
    r->openings[r->n_openings].name = name;
    r->openings[r->n_openings].bytes = bytes;
    if (!base64_decode(b64, (uint8_t *)bytes, cap, &n)) {
        mem_free(bytes);
        return malformed(rd, "base64");
    }
    r->openings[r->n_openings++].n = n;
    return IG_OK;
}

static ig_status read_proof(reader *rd, tree_proof *ret_proof)
{
    ret_proof->n = 0;
    while (rd->rest.n && rd->rest.p[0] != '\n' && !next_starts(rd, "leaf ")) {
        str line;
        size_t n = 0;
        if (!take_line(rd, &line) || ret_proof->n == TREE_MAX_PROOF ||
            !base64_decode(line, ret_proof->hashes[ret_proof->n].b, SHA256_N, &n) || n != SHA256_N)
            return malformed(rd, "a hash of the inclusion proof");
        ret_proof->n++;
    }
    return IG_OK;
}

static ig_status read_part(reader *rd, receipt_leaf which, receipt_part *part)
{
    char head[24];
    str line;
    int64_t index;
    (void)snprintf(head, sizeof head, "leaf %s ", leaf_names[which]);
    if (!take_line(rd, &line) || !str_starts(line, str_of(head))) return malformed(rd, head);
    str digits = after(line, head);
    if (!str_int(digits, 0, (int64_t)TREE_MAX_SIZE, &index) || (digits.n > 1 && digits.p[0] == '0'))
        return malformed(rd, "the index of the leaf");
    if (!take_line(rd, &part->leaf) || part->leaf.n > EVENT_MAX_LEAF)
        return malformed(rd, "the leaf");
    part->index = (uint64_t)index;
    return read_proof(rd, &part->proof);
}

static ig_status read_text(const char *what, receipt *r)
{
    reader rd = {.what = what, .rest = {r->text, r->n_text}};
    str line;
    TRY(read_secret(&rd, r));
    while (next_starts(&rd, "open ")) TRY(read_opening(&rd, r));
    for (receipt_leaf i = 0; i < RECEIPT_N_LEAVES; i++) TRY(read_part(&rd, i, &r->parts[i]));
    if (!take_line(&rd, &line) || line.n != 0) return malformed(&rd, "an empty line");
    r->note = rd.rest;
    return IG_OK;
}

/* ---- verifying ---- */

static ig_status verify_part(const char *what, receipt *r, receipt_leaf which, tree_hash *ret_hash)
{
    receipt_part *p = &r->parts[which];
    tree_hash_leaf(p->leaf.p, p->leaf.n, ret_hash);
    if (!tree_check_inclusion(&p->proof, r->checkpoint.size, &r->checkpoint.root, p->index,
                              ret_hash))
        return ig_fail(IG_EVERIFY, "%s: the %s leaf is not in the signed log at index %" PRIu64,
                       what, leaf_names[which], p->index);
    TRY(event_parse(what, p->leaf, &p->event));
    if (p->event.e.type != leaf_types[which])
        return ig_fail(IG_EVERIFY, "%s: the %s leaf is a %s event", what, leaf_names[which],
                       event_type_name(p->event.e.type));
    return IG_OK;
}

static bool names(const event *e, event_field index, event_field hash, const receipt_part *p,
                  const tree_hash *h)
{
    return (uint64_t)event_get_int(e, index) == p->index &&
           memcmp(event_get_raw(e, hash), h->b, SHA256_N) == 0;
}

static ig_status verify_links(const char *what, const receipt *r, const tree_hash *hashes)
{
    const event *load = &r->parts[RECEIPT_LOAD].event.e, *admit = &r->parts[RECEIPT_ADMIT].event.e,
                *done = &r->parts[RECEIPT_DONE].event.e;
    if (!names(done, EV_DONE_ADMIT_I, EV_DONE_ADMIT_H, &r->parts[RECEIPT_ADMIT],
               &hashes[RECEIPT_ADMIT]))
        return ig_fail(IG_EVERIFY, "%s: done names another admit", what);
    if (!names(admit, EV_ADMIT_LOAD_I, EV_ADMIT_LOAD_H, &r->parts[RECEIPT_LOAD],
               &hashes[RECEIPT_LOAD]))
        return ig_fail(IG_EVERIFY, "%s: admit names another load", what);
    if (!str_eq(event_get_str(done, EV_DONE_REQ), event_get_str(admit, EV_ADMIT_REQ)))
        return ig_fail(IG_EVERIFY, "%s: done and admit have different request ids", what);
    if (memcmp(event_get_raw(admit, EV_ADMIT_MODEL_ROOT), event_get_raw(load, EV_LOAD_MODEL_ROOT),
               SHA256_N) != 0)
        return ig_fail(IG_EVERIFY, "%s: admit and load name different models", what);
    return IG_OK;
}

static ig_status verify_openings(const char *what, const receipt *r)
{
    for (size_t i = 0; i < r->n_openings; i++) {
        char name[32];
        str n = r->openings[i].name;
        (void)snprintf(name, sizeof name, "%.*s", (int)(n.n < 31 ? n.n : 31), n.p);
        ig_status st = receipt_check(r, name, r->openings[i].bytes, r->openings[i].n);
        if (st != IG_OK) return ig_fail_context(st, "%s: ", what);
    }
    return IG_OK;
}

ig_status receipt_open(const char *what, str text, const log_vkey *v, receipt **ret_receipt)
{
    if (text.n > RECEIPT_MAX) return ig_fail(IG_ELIMIT, "%s: too long for a receipt", what);
    AUTO(receipt_ptr) r = mem_calloc(1, sizeof *r);
    if (!r) return IG_ENOMEM;
    r->text = mem_dup(text.p, text.n);
    if (!r->text) return IG_ENOMEM;
    r->n_text = text.n;
    tree_hash hashes[RECEIPT_N_LEAVES];
    TRY(read_text(what, r));
    TRY(checkpoint_open(what, r->note, v, &r->checkpoint));
    for (receipt_leaf i = 0; i < RECEIPT_N_LEAVES; i++) TRY(verify_part(what, r, i, &hashes[i]));
    TRY(verify_links(what, r, hashes));
    TRY(verify_openings(what, r));
    *ret_receipt = STEAL(r);
    return IG_OK;
}

void receipt_free(receipt *r)
{
    if (!r) return;
    for (receipt_leaf i = 0; i < RECEIPT_N_LEAVES; i++) event_parsed_done(&r->parts[i].event);
    for (size_t i = 0; i < r->n_openings; i++) mem_free(r->openings[i].bytes);
    mem_free(r->text);
    mem_free(r);
}

/* ---- commitments ---- */

/* A commitment and the length that goes with it (bytes, or tokens of 4 bytes); -1: none
 * recorded. */
typedef struct committed {
    const uint8_t *commit;
    int64_t n_bytes;
} committed;

static bool from_list(const event *e, event_field f, const event_commit *items, const char *digits,
                      int64_t unit, committed *ret)
{
    int64_t i;
    if (!event_has(e, f) || !str_int(str_of(digits), 0, EVENT_MAX_CHOICES - 1, &i)) return false;
    if ((size_t)i >= e->v[f].u.n) return false;
    *ret = (committed){items[i].commit, items[i].n * unit};
    return true;
}

static bool find_commit(const receipt *r, const char *name, committed *ret)
{
    static const struct {
        const char *name;
        receipt_leaf leaf;
        event_field commit, length;
        int64_t unit;
    } plain[] = {
        {"in.body", RECEIPT_ADMIT, EV_ADMIT_IN_COMMIT, EV_ADMIT_IN_BYTES, 1},
        {"in.text", RECEIPT_DONE, EV_DONE_IN_TEXT, EV_DONE_IN_BYTES, 1},
        {"in.ids", RECEIPT_DONE, EV_DONE_IN_IDS, EV_DONE_IN_N, 4},
        {"trace", RECEIPT_DONE, EV_DONE_EXEC_TRACE, EV_N_FIELDS, 1},
    };
    const event *done = &r->parts[RECEIPT_DONE].event.e;
    if (strncmp(name, "out.", 4) == 0)
        return from_list(done, EV_DONE_OUT, done->out, name + 4, 1, ret);
    if (strncmp(name, "tout.", 5) == 0)
        return from_list(done, EV_DONE_TOUT, done->tout, name + 5, 4, ret);
    for (size_t i = 0; i < N_ELEM(plain); i++) {
        const event *e = &r->parts[plain[i].leaf].event.e;
        if (strcmp(name, plain[i].name) != 0 || !event_has(e, plain[i].commit)) continue;
        bool length = plain[i].length != EV_N_FIELDS && event_has(e, plain[i].length);
        *ret = (committed){event_get_raw(e, plain[i].commit),
                           length ? event_get_int(e, plain[i].length) * plain[i].unit : -1};
        return true;
    }
    return false;
}

ig_status receipt_check(const receipt *r, const char *name, const void *p, size_t n)
{
    committed c;
    uint8_t commit[SHA256_N];
    if (!r->has_secret)
        return ig_fail(IG_ENOTFOUND, "this receipt has no secret; it cannot open \"%s\"", name);
    if (!find_commit(r, name, &c))
        return ig_fail(IG_ENOTFOUND, "the log holds no commitment \"%s\" for this request", name);
    TRY(commit_make(&r->secret, name, p, n, commit));
    if ((c.n_bytes >= 0 && (uint64_t)c.n_bytes != n) || !digest_eq(commit, c.commit, SHA256_N))
        return ig_fail(IG_EVERIFY, "these %zu bytes are not what the log commits to as \"%s\"", n,
                       name);
    return IG_OK;
}

bool receipt_opened(const receipt *r, const char *name, str *ret_bytes)
{
    for (size_t i = 0; i < r->n_openings; i++)
        if (str_eq(r->openings[i].name, str_of(name))) {
            if (ret_bytes) *ret_bytes = (str){r->openings[i].bytes, r->openings[i].n};
            return true;
        }
    return false;
}

/* ---- for stock tools ---- */

static ig_status write_part_file(const char *dir, receipt_leaf which, const char *suffix,
                                 const void *p, size_t n)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, dir, leaf_names[which]));
    buf_str(&path, suffix);
    TRY(buf_status(&path));
    return file_write_atomic(path.data, p, n, 0644);
}

ig_status receipt_split(const receipt *r, const char *dir)
{
    TRY(file_mkdirs(dir, 0755));
    for (receipt_leaf i = 0; i < RECEIPT_N_LEAVES; i++) {
        const receipt_part *p = &r->parts[i];
        AUTO(buf) proof = {0};
        buf_init(&proof, RECEIPT_MAX);
        buf_printf(&proof, "c2sp.org/tlog-proof@v1\nindex %" PRIu64 "\n", p->index);
        for (size_t j = 0; j < p->proof.n; j++) {
            buf_base64(&proof, p->proof.hashes[j].b, SHA256_N);
            buf_char(&proof, '\n');
        }
        buf_char(&proof, '\n');
        buf_add(&proof, r->note.p, r->note.n);
        TRY(buf_status(&proof));
        TRY(write_part_file(dir, i, ".leaf", p->leaf.p, p->leaf.n));
        TRY(write_part_file(dir, i, ".tlog-proof", proof.data, proof.n));
    }
    return IG_OK;
}
