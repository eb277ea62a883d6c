/* checkpoint.h: signed tree heads: C2SP tlog-checkpoint inside a C2SP signed note, Ed25519.
 *
 *   <origin>\n<size>\n<base64 root>\n\n— <key name> <base64(key id || signature)>\n
 *
 * The signature covers the first three lines with their newlines. Notes from outside may carry more
 * signatures (witnesses) and extension lines; ours carry none. */
#ifndef AUDIT_CHECKPOINT_H
#define AUDIT_CHECKPOINT_H
#include "audit/key.h"
#include "audit/tree.h"
#include "base/buf.h"

#define CHECKPOINT_MAX 8192 /* bytes of a note */

typedef struct checkpoint {
    uint64_t size; /* leaves */
    tree_hash root;
} checkpoint;

/* Appends the signed note. The caller promises that the `size` leaves are durable and that no other
 * root was ever signed for this size. */
IG_MUST_USE ig_status checkpoint_sign(const log_key *k, const checkpoint *c, buf *out);
/* Parses and verifies: origin is the key's name, at least one signature by the key, all of the
 * key's signatures good. `what` names the note in errors. */
IG_MUST_USE ig_status checkpoint_open(const char *what, str note, const log_vkey *v,
                                      checkpoint *ret_checkpoint);
/* Parses without verifying a signature, for text whose origin is known. */
IG_MUST_USE ig_status checkpoint_parse(const char *what, str note, const log_vkey *v,
                                       checkpoint *ret_checkpoint);
#endif
