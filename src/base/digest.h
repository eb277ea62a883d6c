/* digest.h: SHA-256 (OpenSSL 3 underneath: SHA-NI where the CPU has it), HMAC and random bytes. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include "base/mem.h"
#define SHA256_N 32
typedef struct sha256_ctx { void *evp; } sha256_ctx;
IG_MUST_USE ig_status sha256_init(sha256_ctx *c);
void sha256_add(sha256_ctx *c, const void *p, size_t n);
void sha256_final(sha256_ctx *c, uint8_t out[SHA256_N]);  /* also frees */
void sha256_done(sha256_ctx *c);                          /* frees without result; safe after final */
void sha256(const void *p, size_t n, uint8_t out[SHA256_N]);
void hmac_sha256(const void *key, size_t n_key, const void *p, size_t n, uint8_t out[SHA256_N]);
IG_MUST_USE ig_status random_bytes(void *p, size_t n);    /* cryptographic */
#endif
