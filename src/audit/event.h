/* event.h: one audit event: set fields, encode it to the bytes of a leaf, parse a leaf back.
 *
 * A leaf is one JSON object on one line: integers and strings, in the order of event.def, no space,
 * no escape. There is exactly one encoding of an event, and parsing accepts no other. */
#ifndef AUDIT_EVENT_H
#define AUDIT_EVENT_H
#include "base/buf.h"
#include "base/digest.h"
#include "base/str.h"

#define EVENT_MAX_LEAF 8192 /* bytes of a leaf */
#define EVENT_MAX_DONE 4096 /* bytes of a done leaf: what admission reserves for it */
#define EVENT_MAX_CHOICES 8
#define EVENT_MAX_IDS 32

typedef enum event_type {
#define EVENT(name, text, doc) EVENT_##name,
#define RESERVED(text, doc)
#define FIELD(event, name, path, kind, lo, hi, need, choices, doc)
#include "audit/event.def"
    EVENT_N_TYPES
} event_type;

typedef enum event_field {
#define EVENT(name, text, doc)
#define RESERVED(text, doc)
#define FIELD(event, name, path, kind, lo, hi, need, choices, doc) EV_##event##_##name,
#include "audit/event.def"
    EV_N_FIELDS
} event_field;

typedef struct event_commit {
    uint8_t commit[SHA256_N];
    int64_t n; /* bytes or tokens */
} event_commit;

typedef struct event_value {
    bool set;
    union {
        int64_t i;
        str s;                 /* borrowed until the event is encoded */
        uint8_t raw[SHA256_N]; /* HEX */
        size_t n;              /* entries of a list */
    } u;
} event_value;

typedef struct event {
    event_type type;
    event_value v[EV_N_FIELDS];
    event_commit out[EVENT_MAX_CHOICES];  /* EV_DONE_OUT */
    event_commit tout[EVENT_MAX_CHOICES]; /* EV_DONE_TOUT */
    str ids[EVENT_MAX_IDS];               /* EV_ADMIT_IGNORED; borrowed */
    const char *bad;                      /* first misuse of a setter; encoding then fails */
} event;

void event_init(event *e, event_type type);
/* Setters of a field whose kind is another, or of another event, are remembered and fail
 * encoding. */
void event_int(event *e, event_field f, int64_t value);
void event_str(event *e, event_field f, const char *value); /* borrowed */
void event_str_n(event *e, event_field f, str value);       /* borrowed */
void event_hex(event *e, event_field f, const void *raw);   /* as many bytes as the row says */
void event_dec(event *e, event_field f, double value, char storage[32]); /* shortest exact text */
void event_commits(event *e, event_field f, const event_commit *items, size_t n);
void event_ids(event *e, const str *ids, size_t n); /* EV_ADMIT_IGNORED; borrowed */

/* Checks every field and appends the leaf. */
IG_MUST_USE ig_status event_encode(const event *e, buf *out);

/* A parsed event; strings point into `store`. */
typedef struct event_parsed {
    event e;
    void *store; /* json_t */
} event_parsed;
IG_MUST_USE ig_status event_parse(const char *what, str leaf, event_parsed *ret_event);
void event_parsed_done(event_parsed *p);
static inline void event_parsed_auto(event_parsed *p) { event_parsed_done(p); }

bool event_has(const event *e, event_field f);
int64_t event_get_int(const event *e, event_field f);
str event_get_str(const event *e, event_field f);
const uint8_t *event_get_raw(const event *e, event_field f);
bool event_is(const event *e, event_field f, const char *value);

/* What scanning a log needs, without a full parse: the type, and for done the index of its admit.
 * False when the bytes do not start like an event. Only for leaves that are known to be ours. */
bool event_peek(str leaf, event_type *ret_type, uint64_t *ret_admit);
const char *event_type_name(event_type type);

/* The text of docs/events.md. */
void event_docs(buf *out);
#endif
