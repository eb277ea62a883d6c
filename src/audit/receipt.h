/* receipt.h: the one file that proves an answer: three leaves, their proofs, checkpoint, secret.
 *
 *   ingot-receipt/v1
 *   secret <64 hex digits, or "none">
 *   open <name> <base64>              any number: bytes behind a commitment, e.g. in.ids, tout.0
 *   leaf load <index>
 *   <the leaf, one line of JSON>
 *   <base64 hash>                     inclusion proof, leaf to root, any number of lines
 *   leaf admit <index> ...
 *   leaf done <index> ...
 *   <empty line>
 *   <signed checkpoint, verbatim>
 *
 * Verified means: the checkpoint is signed by the log's key, it includes the three leaves, done
 * names this admit, admit names this load and its model root, every opening fits its commitment. */
#ifndef AUDIT_RECEIPT_H
#define AUDIT_RECEIPT_H
#include "audit/checkpoint.h"
#include "audit/commit.h"
#include "audit/event.h"
#include "audit/store.h"

#define RECEIPT_MAX ((size_t)8 << 20)
#define RECEIPT_MAX_OPENINGS 24

typedef enum receipt_leaf {
    RECEIPT_LOAD,
    RECEIPT_ADMIT,
    RECEIPT_DONE,
    RECEIPT_N_LEAVES
} receipt_leaf;

typedef struct receipt_opening {
    const char *name; /* of the commitment */
    const void *p;
    size_t n;
} receipt_opening;

/* Writes the receipt of the request whose done has this index, under the store's latest checkpoint.
 * Initialises ret_receipt. */
IG_MUST_USE ig_status receipt_write(store *s, uint64_t done, const commit_secret *secret,
                                    const receipt_opening *openings, size_t n_openings,
                                    buf *ret_receipt);

typedef struct receipt_part {
    uint64_t index;
    str leaf; /* inside receipt.text */
    tree_proof proof;
    event_parsed event;
} receipt_part;

typedef struct receipt {
    char *text; /* owned copy */
    size_t n_text;
    bool has_secret;
    commit_secret secret;
    receipt_part parts[RECEIPT_N_LEAVES];
    str note;
    checkpoint checkpoint;
    size_t n_openings;
    struct {
        str name;
        char *bytes; /* owned */
        size_t n;
    } openings[RECEIPT_MAX_OPENINGS];
} receipt;

/* Parses and verifies; `what` names the file in errors. */
IG_MUST_USE ig_status receipt_open(const char *what, str text, const log_vkey *v,
                                   receipt **ret_receipt);
void receipt_free(receipt *r);
AUTO_FN(receipt_ptr, receipt *, receipt_free)

/* Whether these bytes are behind the commitment of this name ("out.0", "in.body", ...). IG_EVERIFY
 * says no, naming it; IG_ENOTFOUND: the events hold no such commitment, or the receipt has no
 * secret. */
IG_MUST_USE ig_status receipt_check(const receipt *r, const char *name, const void *p, size_t n);
/* The opened bytes of a commitment; false when the receipt does not carry them. */
bool receipt_opened(const receipt *r, const char *name, str *ret_bytes);
/* A leaf and its C2SP tlog-proof as separate files for stock tools: DIR/<load|admit|done>.leaf and
 * .tlog-proof. */
IG_MUST_USE ig_status receipt_split(const receipt *r, const char *dir);
#endif
