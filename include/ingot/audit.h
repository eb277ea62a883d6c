/* audit.h: checking evidence as a user of the library: a signed model, a receipt, a whole log.
 *
 * Everything here only reads. Trust always comes from outside: the publisher's public key for
 * models, the log's
 * verifier key (NAME+HASH+BASE64, as in a .vkey file) for logs and receipts. A key found beside
 * what it
 * signs proves nothing.
 *
 * IG_EVERIFY means "this is not what was signed", with a message that names the file, event or
 * byte;
 * IG_EFORMAT means "these bytes are no such thing"; IG_EIO that the system refused. Each function
 * may be used
 * from any thread; one object from one thread at a time. Link with libingot-lm. */
#ifndef INGOT_AUDIT_H
#define INGOT_AUDIT_H
#include <stddef.h>
#include <stdint.h>
#include "ingot/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Long calls report bytes done; NULL: nobody listens. */
typedef void (*ig_audit_progress)(void *user, int64_t done, int64_t total);

/* ---- models ---- */

typedef struct ig_audit_model {
    char root[65];        /* root digest, hex: the model's identity everywhere */
    char fingerprint[65]; /* of the trusted key that signed it */
    char name[256];       /* what the signature calls it; informative */
    int64_t n_files;
    int64_t n_bytes;
} ig_audit_model;

/* Verifies every file below model_dir against the signature file, under a key of `trust`: a PEM
 * file, or a
 * directory of *.pub and *.pem files. Files are hashed in parallel. */
IG_API IG_MUST_USE ig_status ig_audit_model_verify(const char *model_dir, const char *sig_path,
                                                   const char *trust, ig_audit_progress progress,
                                                   void *user, ig_audit_model *ret_model);

/* ---- receipts ---- */

typedef struct ig_audit_receipt ig_audit_receipt;

/* Parses and verifies a receipt (docs/formats.md): checkpoint signature, inclusion of the three
 * events, their
 * links, every opening it carries. */
IG_API IG_MUST_USE ig_status ig_audit_receipt_open(const void *text, size_t n_bytes,
                                                   const char *vkey,
                                                   ig_audit_receipt **ret_receipt);
IG_API void ig_audit_receipt_close(ig_audit_receipt *r); /* NULL is fine */
/* The exact bytes of an event: which is "load", "admit" or "done". Borrowed. */
IG_API IG_MUST_USE ig_status ig_audit_receipt_event(const ig_audit_receipt *r, const char *which,
                                                    const char **ret_json, size_t *ret_n);
/* Whether these bytes are what the log commits to under this name: "out.0" is the text of choice
 * 0, "in.body"
 * the raw request, "in.text" the rendered prompt, "in.ids" and "tout.0" token ids as u32
 * little-endian. */
IG_API IG_MUST_USE ig_status ig_audit_receipt_check(const ig_audit_receipt *r, const char *name,
                                                    const void *bytes, size_t n);
/* Bytes of a commitment that the receipt itself carries; IG_ENOTFOUND when it does not.
 * Borrowed. */
IG_API IG_MUST_USE ig_status ig_audit_receipt_opened(const ig_audit_receipt *r, const char *name,
                                                     const void **ret_bytes, size_t *ret_n);
/* Writes DIR/load.leaf, load.tlog-proof and so on, for tools that speak C2SP tlog-proof. */
IG_API IG_MUST_USE ig_status ig_audit_receipt_split(const ig_audit_receipt *r, const char *dir);

/* ---- logs ---- */

typedef struct ig_audit_log_report {
    uint64_t size;          /* events */
    uint64_t signed_size;   /* covered by the largest checkpoint */
    uint64_t n_checkpoints; /* signatures checked */
    uint64_t n_sessions, n_admits, n_dones;
    uint64_t n_open; /* admits without done: running, or a crash that no restart has closed yet */
    uint64_t n_torn; /* bytes of an unfinished write at the end; a finding unless the server runs */
    uint64_t n_missing;  /* derived files (tiles) that are missing; the next start rewrites them */
    uint64_t n_findings; /* what is wrong */
    char root[65];       /* of all events */
} ig_audit_log_report;

/* Called for each thing that is wrong, with file and event. */
typedef void (*ig_audit_finding)(void *user, const char *text);

typedef struct ig_audit_log_options {
    ig_audit_finding finding;
    ig_audit_progress progress;
    void *user;
    const char
        *known; /* text of a checkpoint from an earlier visit that the log must extend, or NULL */
} ig_audit_log_options;

/* Reads every byte of a log: segments, events and their rules, checkpoints, tiles. IG_OK when
 * nothing is
 * wrong; else IG_EVERIFY with the first finding as message. ret_report is filled as far as the
 * check got, also
 * on failure. A log may be verified while its server runs. */
IG_API IG_MUST_USE ig_status ig_audit_log_verify(const char *dir, const char *vkey,
                                                 const ig_audit_log_options *options,
                                                 ig_audit_log_report *ret_report);

typedef struct ig_audit_log ig_audit_log;
/* Opens for reading; the structure is verified, the rules between events are not. */
IG_API IG_MUST_USE ig_status ig_audit_log_open(const char *dir, const char *vkey,
                                               ig_audit_log **ret_log);
IG_API void ig_audit_log_close(ig_audit_log *l); /* NULL is fine */
IG_API uint64_t ig_audit_log_size(ig_audit_log *l);
/* An event's bytes as a new NUL-terminated string; free with ig_audit_text_free. */
IG_API IG_MUST_USE ig_status ig_audit_log_event(ig_audit_log *l, uint64_t index, char **ret_json);
/* The index of the done event of a request id. */
IG_API IG_MUST_USE ig_status ig_audit_log_find(ig_audit_log *l, const char *request,
                                               uint64_t *ret_index);
/* The receipt of a finished request, made from the log alone: it proves what was logged, and opens
 * nothing,
 * because the log does not hold the secret. */
IG_API IG_MUST_USE ig_status ig_audit_log_prove(ig_audit_log *l, uint64_t done, char **ret_receipt);
IG_API void ig_audit_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
