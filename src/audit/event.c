/* event.c owns the encoding of events: the table of event.def walked in both directions. Parsing
 * reads the values by the table, writes them again and compares: one comparison refuses unknown
 * fields, other orders, spaces, escapes and duplicate spellings at once. */
#define _GNU_SOURCE /* memmem */
#include "audit/event.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/commit.h"
#include "base/json.h"

typedef enum kind { INT, HEX, ID, LABEL, DEC, TIME, CHOICE, IDS, COMMITS, TOKENS } kind;
enum { OPTIONAL, REQUIRED };

typedef struct row {
    event_type type; /* EVENT_N_TYPES: in every event */
    kind kind;
    const char *path;
    int64_t lo, hi;
    bool required;
    const char *choices;
    const char *doc;
} row;

#define EVENT_ANY EVENT_N_TYPES
static const row rows[] = {
#define EVENT(name, text, doc)
#define RESERVED(text, doc)
#define FIELD(event, name, path, kind, lo, hi, need, choices, doc) \
    {EVENT_##event, kind, path, lo, hi, need, choices, doc},
#include "audit/event.def"
};

static const struct {
    const char *name, *doc;
} types[] = {
#define EVENT(name, text, doc) {text, doc},
#define RESERVED(text, doc)
#define FIELD(event, name, path, kind, lo, hi, need, choices, doc)
#include "audit/event.def"
};

static const struct {
    const char *name, *doc;
} reserved[] = {
#define EVENT(name, text, doc)
#define RESERVED(text, doc) {text, doc},
#define FIELD(event, name, path, kind, lo, hi, need, choices, doc)
#include "audit/event.def"
};

const char *event_type_name(event_type type)
{
    return type < EVENT_N_TYPES ? types[type].name : "?";
}

/* ---- setting ---- */

void event_init(event *e, event_type type)
{
    memset(e, 0, sizeof *e);
    e->type = type;
    event_int(e, EV_ANY_V, 1);
    event_str(e, EV_ANY_TYPE, types[type].name);
}

static bool belongs(const event *e, const row *r)
{
    return r->type == e->type || r->type == EVENT_ANY;
}

static event_value *slot(event *e, event_field f, bool kind_fits)
{
    if (!kind_fits || !belongs(e, &rows[f])) {
        if (!e->bad) e->bad = rows[f].path;
        return NULL;
    }
    e->v[f].set = true;
    return &e->v[f];
}

void event_int(event *e, event_field f, int64_t value)
{
    event_value *v = slot(e, f, rows[f].kind == INT);
    if (v) v->u.i = value;
}

void event_str_n(event *e, event_field f, str value)
{
    kind k = rows[f].kind;
    event_value *v = slot(e, f, k == ID || k == LABEL || k == DEC || k == TIME || k == CHOICE);
    if (v) v->u.s = value;
}

void event_str(event *e, event_field f, const char *value) { event_str_n(e, f, str_of(value)); }

void event_hex(event *e, event_field f, const void *raw)
{
    event_value *v = slot(e, f, rows[f].kind == HEX);
    if (v) memcpy(v->u.raw, raw, (size_t)rows[f].lo);
}

void event_dec(event *e, event_field f, double value, char storage[32])
{
    if (!isfinite(value)) {
        if (!e->bad) e->bad = rows[f].path;
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(storage, 32, "%.*g", digits, value);
        double back;
        if (str_double(str_of(storage), &back) && back == value) break;
    }
    event_str(e, f, storage);
}

void event_commits(event *e, event_field f, const event_commit *items, size_t n)
{
    event_value *v = slot(e, f, (f == EV_DONE_OUT || f == EV_DONE_TOUT) && n <= EVENT_MAX_CHOICES);
    if (!v) return;
    v->u.n = n;
    memcpy(f == EV_DONE_OUT ? e->out : e->tout, items, n * sizeof *items);
}

void event_ids(event *e, const str *ids, size_t n)
{
    event_value *v = slot(e, EV_ADMIT_IGNORED, n <= EVENT_MAX_IDS);
    if (!v) return;
    v->u.n = n;
    memcpy(e->ids, ids, n * sizeof *ids);
}

/* ---- checking ---- */

static bool is_id(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    (c != 0 && strchr("._:/@+-", c));
        if (!good) return false;
    }
    return true;
}

static bool is_label(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < ' ' || s.p[i] > '~' || s.p[i] == '"' || s.p[i] == '\\') return false;
    return true;
}

static bool is_time(str s)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    for (size_t i = 0; i < s.n; i++)
        if (shape[i] == 'd' ? s.p[i] < '0' || s.p[i] > '9' : s.p[i] != shape[i]) return false;
    return true;
}

static bool is_choice(str s, const char *choices)
{
    for (const char *p = choices; *p;) {
        size_t n = strcspn(p, "|");
        if (str_eq(s, (str){p, n})) return true;
        p += n + (p[n] == '|');
    }
    return false;
}

/* A seed is a decimal number above 2^53, so DEC is checked as text, not as a double. */
static bool is_dec(str s)
{
    double unused;
    return str_double(s, &unused);
}

static bool string_fits(const row *r, str s)
{
    if (r->kind == CHOICE) return is_choice(s, r->choices);
    if ((int64_t)s.n < r->lo || (int64_t)s.n > r->hi) return false;
    switch (r->kind) {
    case ID: return is_id(s);
    case LABEL: return is_label(s);
    case DEC: return is_dec(s);
    default: return is_time(s);
    }
}

static bool list_fits(const event *e, event_field f)
{
    const row *r = &rows[f];
    size_t n = e->v[f].u.n;
    if ((int64_t)n > r->hi) return false;
    if (r->kind == IDS) {
        for (size_t i = 0; i < n; i++)
            if (e->ids[i].n == 0 || e->ids[i].n > 64 || !is_id(e->ids[i])) return false;
        return true;
    }
    const event_commit *items = r->kind == COMMITS ? e->out : e->tout;
    for (size_t i = 0; i < n; i++)
        if (items[i].n < 0 || items[i].n > (int64_t)1 << 53) return false;
    return true;
}

static bool fits(const event *e, event_field f)
{
    const row *r = &rows[f];
    const event_value *v = &e->v[f];
    switch (r->kind) {
    case INT: return v->u.i >= r->lo && v->u.i <= r->hi;
    case HEX: return true;
    case IDS:
    case COMMITS:
    case TOKENS: return list_fits(e, f);
    default: return string_fits(r, v->u.s);
    }
}

/* A seed from the log is a function of a root and the request id, so nobody has chosen it. */
static const char *broken_seed(const event *e)
{
    char req[65], text[24];
    uint64_t seed;
    str id = e->v[EV_ADMIT_REQ].u.s; /* at most 64 characters: checked before */
    if (!event_is(e, EV_ADMIT_SEED_FROM, "log")) return NULL;
    if (!e->v[EV_ADMIT_SEED_ROOT].set || !e->v[EV_ADMIT_SEED_SIZE].set)
        return "a seed from the log without seed.root and seed.size";
    memcpy(req, id.p, id.n);
    req[id.n] = 0;
    if (commit_seed(e->v[EV_ADMIT_SEED_ROOT].u.raw, req, &seed) != IG_OK)
        return "no memory to compute the seed";
    (void)snprintf(text, sizeof text, "%" PRIu64, seed);
    return event_is(e, EV_ADMIT_SEED_VALUE, text)
               ? NULL
               : "seed.value does not follow from seed.root and req";
}

/* What one row cannot say. */
static const char *broken_rule(const event *e)
{
    if (!event_is(e, EV_ANY_TYPE, types[e->type].name)) return "type names another event";
    if (e->type == EVENT_DONE && event_is(e, EV_DONE_STATUS, "ok")) {
        static const event_field need[] = {EV_DONE_IN_IDS, EV_DONE_IN_N, EV_DONE_OUT, EV_DONE_TOUT};
        for (size_t i = 0; i < N_ELEM(need); i++)
            if (!e->v[need[i]].set) return "status ok without in.ids, in.n, out and tout";
        if (e->v[EV_DONE_OUT].u.n != e->v[EV_DONE_TOUT].u.n) return "out and tout differ in length";
    }
    return e->type == EVENT_ADMIT ? broken_seed(e) : NULL;
}

static ig_status check(const event *e)
{
    const char *name = types[e->type].name;
    if (e->bad)
        return ig_fail(IG_EINVAL, "event %s: %s was set with the wrong kind or size", name, e->bad);
    for (event_field f = 0; f < EV_N_FIELDS; f++) {
        if (!belongs(e, &rows[f])) continue;
        if (!e->v[f].set && rows[f].required)
            return ig_fail(IG_EINVAL, "event %s: %s is missing", name, rows[f].path);
        if (e->v[f].set && !fits(e, f))
            return ig_fail(IG_EINVAL, "event %s: %s is out of its range", name, rows[f].path);
    }
    const char *broken = broken_rule(e);
    return broken ? ig_fail(IG_EINVAL, "event %s: %s", name, broken) : IG_OK;
}

/* ---- writing ---- */

static void put_string(buf *out, str s)
{
    buf_char(out, '"');
    buf_add(out, s.p, s.n);
    buf_char(out, '"');
}

static void put_list(const event *e, event_field f, buf *out)
{
    kind k = rows[f].kind;
    buf_char(out, '[');
    for (size_t i = 0; i < e->v[f].u.n; i++) {
        if (i) buf_char(out, ',');
        if (k == IDS) {
            put_string(out, e->ids[i]);
            continue;
        }
        const event_commit *item = k == COMMITS ? &e->out[i] : &e->tout[i];
        buf_str(out, "{\"commit\":\"");
        buf_hex(out, item->commit, SHA256_N);
        buf_printf(out, "\",\"%s\":%" PRId64 "}", k == COMMITS ? "bytes" : "n", item->n);
    }
    buf_char(out, ']');
}

static void put_value(const event *e, event_field f, buf *out)
{
    const event_value *v = &e->v[f];
    switch (rows[f].kind) {
    case INT: buf_printf(out, "%" PRId64, v->u.i); break;
    case HEX:
        buf_char(out, '"');
        buf_hex(out, v->u.raw, (size_t)rows[f].lo);
        buf_char(out, '"');
        break;
    case IDS:
    case COMMITS:
    case TOKENS: put_list(e, f, out); break;
    default: put_string(out, v->u.s);
    }
}

static void put(const event *e, buf *out)
{
    str open = {NULL, 0}; /* the object that is open inside the top one */
    bool first = true;    /* nothing yet in the innermost object */
    buf_char(out, '{');
    for (event_field f = 0; f < EV_N_FIELDS; f++) {
        if (!e->v[f].set) continue;
        const char *path = rows[f].path, *dot = strchr(path, '.');
        str in = {path, dot ? (size_t)(dot - path) : 0};
        if (open.n && !str_eq(open, in)) {
            buf_char(out, '}');
            open.n = 0;
        }
        if (!first) buf_char(out, ',');
        if (in.n && !open.n) {
            put_string(out, in);
            buf_str(out, ":{");
            open = in;
        }
        put_string(out, str_of(dot ? dot + 1 : path));
        buf_char(out, ':');
        put_value(e, f, out);
        first = false;
    }
    if (open.n) buf_char(out, '}');
    buf_char(out, '}');
}

ig_status event_encode(const event *e, buf *out)
{
    TRY(check(e));
    size_t start = out->n, max = e->type == EVENT_DONE ? EVENT_MAX_DONE : EVENT_MAX_LEAF;
    put(e, out);
    TRY(buf_status(out));
    if (out->n - start > max)
        return ig_fail(IG_ELIMIT, "event %s: %zu bytes, at most %zu", types[e->type].name,
                       out->n - start, max);
    return IG_OK;
}

/* ---- reading ---- */

static const json_t *find(const json_t *root, const char *path)
{
    const char *dot = strchr(path, '.');
    if (!dot) return json_object_get(root, path);
    char head[32];
    (void)snprintf(head, sizeof head, "%.*s", (int)(dot - path), path);
    return json_object_get(json_object_get(root, head), dot + 1);
}

static bool take_commits(event *e, event_field f, const json_t *j)
{
    event_commit items[EVENT_MAX_CHOICES];
    size_t n = json_array_size(j);
    if (!json_is_array(j) || n > EVENT_MAX_CHOICES) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(j, i), *c = json_object_get(o, "commit");
        const json_t *len = json_object_get(o, rows[f].kind == COMMITS ? "bytes" : "n");
        str hex = {json_string_value(c), json_string_length(c)};
        if (!hex.p || !json_is_integer(len) || !hex_decode(hex, items[i].commit, SHA256_N))
            return false;
        items[i].n = json_integer_value(len);
    }
    event_commits(e, f, items, n);
    return true;
}

static bool take_ids(event *e, const json_t *j)
{
    str ids[EVENT_MAX_IDS];
    size_t n = json_array_size(j);
    if (!json_is_array(j) || n > EVENT_MAX_IDS) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_array_get(j, i);
        if (!json_is_string(s)) return false;
        ids[i] = (str){json_string_value(s), json_string_length(s)};
    }
    event_ids(e, ids, n);
    return true;
}

static bool take_value(event *e, event_field f, const json_t *j)
{
    switch (rows[f].kind) {
    case INT:
        if (!json_is_integer(j)) return false;
        event_int(e, f, json_integer_value(j));
        return true;
    case COMMITS:
    case TOKENS: return take_commits(e, f, j);
    case IDS: return take_ids(e, j);
    default: break;
    }
    str s = {json_string_value(j), json_string_length(j)};
    if (!s.p) return false;
    if (rows[f].kind != HEX) {
        event_str_n(e, f, s);
        return true;
    }
    uint8_t raw[SHA256_N];
    if (!hex_decode(s, raw, (size_t)rows[f].lo)) return false;
    event_hex(e, f, raw);
    return true;
}

static ig_status find_type(const char *what, const json_t *root, event_type *ret_type)
{
    const char *name = json_string_value(json_object_get(root, "type"));
    for (event_type t = 0; name && t < EVENT_N_TYPES; t++)
        if (strcmp(name, types[t].name) == 0) {
            *ret_type = t;
            return IG_OK;
        }
    for (size_t i = 0; name && i < N_ELEM(reserved); i++)
        if (strcmp(name, reserved[i].name) == 0)
            return ig_fail(IG_EUNSUPPORTED, "%s: events of type %s need a newer Ingot", what, name);
    return ig_fail(IG_EFORMAT, "%s: not an audit event: no known type", what);
}

ig_status event_parse(const char *what, str leaf, event_parsed *ret_event)
{
    AUTO(json_ptr) root = NULL;
    AUTO(mem_ptr) storage = mem_alloc(sizeof(event_parsed));
    event_parsed *p = storage;
    if (!p) return IG_ENOMEM;
    TRY(json_parse(what, leaf, EVENT_MAX_LEAF, 4, &root));
    event_type type = EVENT_N_TYPES;
    TRY(find_type(what, root, &type));
    event_init(&p->e, type);
    for (event_field f = 0; f < EV_N_FIELDS; f++) {
        const json_t *j = belongs(&p->e, &rows[f]) ? find(root, rows[f].path) : NULL;
        if (j && !take_value(&p->e, f, j))
            return ig_fail(IG_EFORMAT, "%s: event %s: %s has the wrong type", what,
                           types[type].name, rows[f].path);
    }
    AUTO(buf) again = {0};
    buf_init(&again, EVENT_MAX_LEAF);
    ig_status st = event_encode(&p->e, &again);
    if (st != IG_OK) return ig_fail_context(st == IG_ENOMEM ? st : IG_EFORMAT, "%s: ", what);
    if (!str_eq(leaf, (str){again.data, again.n}))
        return ig_fail(IG_EFORMAT,
                       "%s: event %s: unknown fields, or not in the one encoding of event.def",
                       what, types[type].name);
    *ret_event = *p;
    ret_event->store = STEAL(root);
    return IG_OK;
}

void event_parsed_done(event_parsed *p)
{
    json_decref(p->store);
    p->store = NULL;
}

bool event_has(const event *e, event_field f) { return e->v[f].set; }

int64_t event_get_int(const event *e, event_field f) { return e->v[f].set ? e->v[f].u.i : 0; }

str event_get_str(const event *e, event_field f)
{
    return e->v[f].set ? e->v[f].u.s : (str){NULL, 0};
}

const uint8_t *event_get_raw(const event *e, event_field f) { return e->v[f].u.raw; }

bool event_is(const event *e, event_field f, const char *value)
{
    return e->v[f].set && str_eq(e->v[f].u.s, str_of(value));
}

bool event_peek(str leaf, event_type *ret_type, uint64_t *ret_admit)
{
    static const char head[] = "{\"v\":1,\"type\":\"", admit[] = "\"admit\":{\"i\":";
    size_t n = sizeof head - 1;
    if (leaf.n < n || memcmp(leaf.p, head, n) != 0) return false;
    const char *name = leaf.p + n, *end = memchr(name, '"', leaf.n - n);
    if (!end) return false;
    event_type type = 0;
    str wanted = {name, (size_t)(end - name)};
    while (type < EVENT_N_TYPES && !str_eq(wanted, str_of(types[type].name))) type++;
    if (type == EVENT_N_TYPES) return false;
    if (type == EVENT_DONE) {
        const char *at = memmem(leaf.p, leaf.n, admit, sizeof admit - 1);
        if (!at) return false;
        uint64_t i = 0;
        at += sizeof admit - 1;
        for (; at < leaf.p + leaf.n && *at >= '0' && *at <= '9'; at++)
            i = i * 10 + (uint64_t)(*at - '0');
        *ret_admit = i;
    }
    *ret_type = type;
    return true;
}

/* ---- documentation ---- */

static void doc_kind(const row *r, buf *out)
{
    static const char *const text[] = {[LABEL] = "label",
                                       [DEC] = "decimal number as a string",
                                       [TIME] = "RFC 3339 time",
                                       [IDS] = "list of names",
                                       [COMMITS] = "list of {commit, bytes}",
                                       [TOKENS] = "list of {commit, n}"};
    switch (r->kind) {
    case INT:
        if (r->hi >= (int64_t)1 << 53)
            buf_printf(out, "integer ≥ %lld", (long long)r->lo);
        else
            buf_printf(out, "integer %lld..%lld", (long long)r->lo, (long long)r->hi);
        break;
    case HEX: buf_printf(out, "hex, %lld bytes", (long long)r->lo); break;
    case ID: buf_printf(out, "name, at most %lld", (long long)r->hi); break;
    case CHOICE:
        for (const char *p = r->choices; *p; p++) {
            if (*p == '|')
                buf_str(out, ", ");
            else
                buf_char(out, *p);
        }
        break;
    default: buf_str(out, text[r->kind]);
    }
}

static void doc_rows(event_type type, buf *out)
{
    buf_str(out, "| field | holds | meaning |\n|---|---|---|\n");
    for (event_field f = 0; f < EV_N_FIELDS; f++) {
        const row *r = &rows[f];
        if (r->type != type) continue;
        buf_printf(out, "| `%s`%s | ", r->path, r->required ? "" : " (optional)");
        doc_kind(r, out);
        buf_printf(out, " | %s |\n", r->doc);
    }
    buf_char(out, '\n');
}

void event_docs(buf *out)
{
    buf_str(out,
            "# Audit events\n\n"
            "Generated from `src/audit/event.def`; a test compares. After a change: "
            "`INGOT_WRITE_DOCS=1 build/tests/audit/test_event`.\n\n"
            "A leaf of the log is one JSON object: integers and strings, fields in this order, no "
            "space and no escape, so an event has exactly one encoding. Names are made of `A-Z a-z "
            "0-9 . _ : / @ + -`. A commitment is SHA-256(0x50, salt, bytes) with salt = "
            "HMAC-SHA256(secret, name of the commitment); the secret is in the caller's receipt "
            "only. No field can hold text of a user.\n\n## In every event\n\n");
    doc_rows(EVENT_ANY, out);
    for (event_type t = 0; t < EVENT_N_TYPES; t++) {
        buf_printf(out, "## %s\n\n%s\n\n", types[t].name, types[t].doc);
        doc_rows(t, out);
    }
    buf_str(out, "## Names kept for later\n\n");
    for (size_t i = 0; i < N_ELEM(reserved); i++)
        buf_printf(out, "- `%s`: %s\n", reserved[i].name, reserved[i].doc);
}
