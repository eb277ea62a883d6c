/* digest.c: SHA-256, HMAC and random bytes (contract in digest.h).
 *
 * OpenSSL's low-level SHA-256 is used on purpose, though 3.0 marks it deprecated: its context is
 * plain data, so hashing allocates nothing and cannot fail, which the EVP interface does not offer
 * and evidence needs. It runs the same SHA-NI code. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/digest.h"
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_N 64 /* bytes in a SHA-256 block, for HMAC */

_Static_assert(sizeof(SHA256_CTX) <= sizeof(sha256_ctx), "OpenSSL's context has grown");

static SHA256_CTX *ctx(sha256_ctx *c) { return (SHA256_CTX *)(void *)c->state; }

ig_status sha256_init(sha256_ctx *c)
{
    memset(c, 0, sizeof *c);
    if (SHA256_Init(ctx(c)) != 1) return ig_fail(IG_EUNSUPPORTED, "OpenSSL refuses SHA-256");
    return IG_OK;
}

void sha256_add(sha256_ctx *c, const void *p, size_t n) { (void)SHA256_Update(ctx(c), p, n); }

void sha256_final(sha256_ctx *c, uint8_t out[SHA256_N])
{
    (void)SHA256_Final(out, ctx(c));
    sha256_done(c);
}

void sha256_done(sha256_ctx *c) { OPENSSL_cleanse(c, sizeof *c); }

void sha256_pair(const void *a, size_t n_a, const void *b, size_t n_b, uint8_t out[SHA256_N])
{
    sha256_ctx c = {{0}};
    (void)SHA256_Init(ctx(&c));
    sha256_add(&c, a, n_a);
    sha256_add(&c, b, n_b);
    sha256_final(&c, out);
}

void sha256(const void *p, size_t n, uint8_t out[SHA256_N]) { sha256_pair(p, n, NULL, 0, out); }

/* RFC 2104: H(key ^ opad, H(key ^ ipad, text)). */
void hmac_sha256(const void *key, size_t n_key, const void *p, size_t n, uint8_t out[SHA256_N])
{
    uint8_t block[BLOCK_N] = {0};
    if (n_key > BLOCK_N)
        sha256(key, n_key, block);
    else if (n_key)
        memcpy(block, key, n_key);
    uint8_t inner[SHA256_N];
    for (size_t i = 0; i < BLOCK_N; i++) block[i] ^= 0x36;
    sha256_pair(block, BLOCK_N, p, n, inner);
    for (size_t i = 0; i < BLOCK_N; i++) block[i] ^= 0x36 ^ 0x5C;
    sha256_pair(block, BLOCK_N, inner, SHA256_N, out);
    OPENSSL_cleanse(block, sizeof block);
    OPENSSL_cleanse(inner, sizeof inner);
}

bool digest_eq(const void *a, const void *b, size_t n) { return CRYPTO_memcmp(a, b, n) == 0; }

ig_status random_bytes(void *p, size_t n)
{
    uint8_t *to = p;
    while (n > 0) {
        ssize_t got = getrandom(to, n, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ig_fail(IG_EIO, "getrandom: %s", strerror(errno));
        to += got;
        n -= (size_t)got;
    }
    return IG_OK;
}
