/* commit.h: commitments to bytes that never enter the log.
 *
 * commit = SHA-256(0x50 || salt || bytes), salt = HMAC-SHA256(secret, name). One 32-byte secret
 * opens all commitments of a request; it leaves in the receipt and is then forgotten. Names:
 * in.body in.text in.ids out.I tout.I trace. */
#ifndef AUDIT_COMMIT_H
#define AUDIT_COMMIT_H
#include "base/digest.h"
#include "base/str.h"

typedef struct commit_secret {
    uint8_t b[SHA256_N];
} commit_secret;

IG_MUST_USE ig_status commit_secret_new(commit_secret *ret_secret);
IG_MUST_USE ig_status commit_make(const commit_secret *secret, const char *name, const void *p,
                                  size_t n, uint8_t ret_commit[SHA256_N]);
/* The same over token ids, hashed as u32 little-endian. */
IG_MUST_USE ig_status commit_make_ids(const commit_secret *secret, const char *name,
                                      const uint32_t *ids, size_t n, uint8_t ret_commit[SHA256_N]);

/* The seed of a request whose client chose none: first 8 bytes, big-endian, of
 * SHA-256("ingot seed\n" || root || req). The root is that of a signed checkpoint, so that the
 * operator cannot choose the seed freely; nothing of the prompt enters. */
IG_MUST_USE ig_status commit_seed(const uint8_t root[SHA256_N], const char *req,
                                  uint64_t *ret_seed);
#endif
