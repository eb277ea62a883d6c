/* log.h: the running audit log: one writer, group commit, admission tokens, receipts.
 *
 * Promises, in this order of time:
 *   an append is reported only after its bytes were synced;
 *   a checkpoint is signed only over synced leaves;
 *   a done is reported only after a checkpoint over it was signed;
 *   the first failed write or sync ends the log: everything queued and everything later fails
 *   with the same reason, nothing is retried, the next start reads the disk.
 * Room for the done of every admitted request is reserved before the admit is written. */
#ifndef AUDIT_LOG_H
#define AUDIT_LOG_H
#include "audit/checkpoint.h"
#include "audit/commit.h"
#include "audit/event.h"
#include "audit/key.h"
#include "audit/receipt.h"
#include "base/progress.h"

typedef struct audit_log audit_log;

typedef struct audit_log_options {
    const char *dir;
    const log_key *key;     /* borrowed until close */
    const char *srv;        /* name of this instance in every event; NULL: "ingot" */
    const char *machine_id; /* e.g. of /etc/machine-id; NULL: "" */
    bool create;            /* make the log when dir holds none; a key belongs to one log */
    bool take_over;         /* accept a log that was last booted on another machine */
    size_t segment_bytes;   /* 0: 64 MiB */
    int64_t publish_us;     /* how old the published checkpoint may get; 0: one second */
    /* Called once, from the writer, when the log has died. */
    void (*on_dead)(void *user, const char *message);
    void *user;
    progress_fn progress; /* of the scan at start, in bytes */
    void *progress_user;
} audit_log_options;

/* What the scan at start found; `gap` and `done recovered` events were written for it. */
typedef struct audit_recovery {
    bool gap;             /* the session before did not end in order */
    uint64_t size;        /* events found */
    uint64_t signed_size; /* of the largest checkpoint known */
    size_t cut;           /* bytes of torn tail cut off */
    uint64_t orphans;     /* requests closed as recovered */
} audit_recovery;

/* Takes the lock, scans and verifies the whole log against the key, repairs what a crash leaves,
 * starts the writer. IG_EVERIFY: tampering, lost data or a foreign log; IG_EIO with "in use":
 * another process. */
IG_MUST_USE ig_status audit_log_open(const audit_log_options *o, audit_log **ret_log);
const audit_recovery *audit_log_recovery(const audit_log *l);
const log_vkey *audit_log_vkey(const audit_log *l);
/* The `mach` field of boot events on this machine. */
void audit_log_mach(const audit_log *l, uint8_t ret_mach[SHA256_N]);
/* Writes `stop` (reason: term int exit error) and closes. Every token must have been freed. On
 * failure the log is closed all the same. */
IG_MUST_USE ig_status audit_log_close(audit_log *l, const char *reason);
/* Closes without `stop`, as a crash would: the next start writes a gap. NULL is fine. */
void audit_log_abandon(audit_log *l);
/* IG_OK, or why the log has died. */
IG_MUST_USE ig_status audit_log_alive(audit_log *l);

/* Where an event stands. */
typedef struct audit_ref {
    uint64_t index;
    tree_hash leaf;
} audit_ref;

/* Appends boot, denied and the like (not admit, done, load, gap, stop). The log fills v, type, t,
 * mono, boot, srv. The first event must be boot. Blocks until durable. */
IG_MUST_USE ig_status audit_append(audit_log *l, event *e, audit_ref *ret_ref);
/* `fn` runs in the writer, once, if and only if this returns IG_OK; it must not block. */
typedef void (*audit_append_fn)(void *user, ig_status status, const audit_ref *ref);
IG_MUST_USE ig_status audit_append_async(audit_log *l, event *e, audit_append_fn fn, void *user);

/* ---- admission ----
 * A token exists only because an event is durable: a REQUEST token because of an admit, a PROBE
 * token because of a load. The engine takes a token where it starts work, so nothing is computed
 * without one. */
typedef enum audit_token_kind { AUDIT_TOKEN_REQUEST, AUDIT_TOKEN_PROBE } audit_token_kind;
typedef struct audit_token audit_token;
audit_token_kind audit_token_what(const audit_token *t);
const audit_ref *audit_token_ref(const audit_token *t); /* of the admit or load */
const char *audit_token_req(const audit_token *t);      /* request id; "" of a probe */
/* Frees the token and, when no done was written, its reservation: such a request stays open until
 * the next start closes it as recovered. NULL is fine. */
void audit_token_free(audit_token *t);

/* Appends a load and mints the token for the probe that warms this model. */
IG_MUST_USE ig_status audit_load(audit_log *l, event *e, audit_token **ret_probe);
/* Appends an admit. IG_ELIMIT: no room could be reserved, answer 503 and try again later. */
IG_MUST_USE ig_status audit_admit(audit_log *l, event *e, audit_token **ret_token);
typedef void (*audit_admit_fn)(void *user, ig_status status, audit_token *token);
IG_MUST_USE ig_status audit_admit_async(audit_log *l, event *e, audit_admit_fn fn, void *user);
/* Appends the done of a request; the log fills req and admit. Once per token; cannot fail for lack
 * of memory or room. Reported after a checkpoint over it was signed. */
IG_MUST_USE ig_status audit_done(audit_token *t, event *e, audit_ref *ret_ref);
IG_MUST_USE ig_status audit_done_async(audit_token *t, event *e, audit_append_fn fn, void *user);

/* ---- reading ---- */
/* The largest signed checkpoint; initialises ret_note. IG_ENOTFOUND before the first. */
IG_MUST_USE ig_status audit_checkpoint(audit_log *l, checkpoint *ret_checkpoint, buf *ret_note);
IG_MUST_USE ig_status audit_leaf(audit_log *l, uint64_t index, buf *ret_leaf);
/* The receipt of a finished request (done: its index). `secret` may be NULL: the receipt then
 * proves what was logged and opens nothing. Initialises ret_receipt. */
IG_MUST_USE ig_status audit_receipt(audit_log *l, uint64_t done, const commit_secret *secret,
                                    const receipt_opening *openings, size_t n_openings,
                                    buf *ret_receipt);

typedef struct audit_stats {
    uint64_t size, signed_size;
    uint64_t n_syncs, n_checkpoints;
    int64_t queued_bytes, reserved_bytes, room_bytes;
    uint64_t n_derived_failures; /* tiles that could not be written; rebuilt later */
} audit_stats;
void audit_log_stats(audit_log *l, audit_stats *ret_stats);
#endif
