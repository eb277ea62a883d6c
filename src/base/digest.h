/* digest.h: SHA-256 (OpenSSL 3 underneath: SHA-NI where the CPU has it), HMAC and random bytes.
 * Nothing here allocates. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include "base/mem.h"

#define SHA256_N 32

typedef struct sha256_ctx {
    uint64_t state[16]; /* OpenSSL's SHA256_CTX; plain data, may be copied to fork a hash */
} sha256_ctx;

IG_MUST_USE ig_status sha256_init(sha256_ctx *c);
void sha256_add(sha256_ctx *c, const void *p, size_t n);
void sha256_final(sha256_ctx *c, uint8_t out[SHA256_N]); /* also wipes */
void sha256_done(sha256_ctx *c);                         /* wipes; safe after final */
void sha256(const void *p, size_t n, uint8_t out[SHA256_N]);
/* Of a followed by b. */
void sha256_pair(const void *a, size_t n_a, const void *b, size_t n_b, uint8_t out[SHA256_N]);
void hmac_sha256(const void *key, size_t n_key, const void *p, size_t n, uint8_t out[SHA256_N]);
/* Equal bytes, in a time that does not depend on where they differ. */
bool digest_eq(const void *a, const void *b, size_t n);
IG_MUST_USE ig_status random_bytes(void *p, size_t n); /* cryptographic */
#endif
