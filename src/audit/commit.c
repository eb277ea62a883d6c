/* commit.c: salted commitments and seeds (contract in commit.h). */
#include "audit/commit.h"

#include <string.h>

#define COMMIT_TAG 0x50

ig_status commit_secret_new(commit_secret *ret_secret)
{
    return random_bytes(ret_secret->b, sizeof ret_secret->b);
}

static ig_status begin(const commit_secret *secret, const char *name, sha256_ctx *c)
{
    uint8_t salted[1 + SHA256_N] = {COMMIT_TAG};
    TRY(sha256_init(c));
    hmac_sha256(secret->b, sizeof secret->b, name, strlen(name), salted + 1);
    sha256_add(c, salted, sizeof salted);
    return IG_OK;
}

ig_status commit_make(const commit_secret *secret, const char *name, const void *p, size_t n,
                      uint8_t ret_commit[SHA256_N])
{
    sha256_ctx c;
    TRY(begin(secret, name, &c));
    sha256_add(&c, p, n);
    sha256_final(&c, ret_commit);
    return IG_OK;
}

ig_status commit_make_ids(const commit_secret *secret, const char *name, const uint32_t *ids,
                          size_t n, uint8_t ret_commit[SHA256_N])
{
    sha256_ctx c;
    TRY(begin(secret, name, &c));
    for (size_t i = 0; i < n; i++) {
        uint8_t le[4] = {(uint8_t)ids[i], (uint8_t)(ids[i] >> 8), (uint8_t)(ids[i] >> 16),
                         (uint8_t)(ids[i] >> 24)};
        sha256_add(&c, le, sizeof le);
    }
    sha256_final(&c, ret_commit);
    return IG_OK;
}

ig_status commit_seed(const uint8_t root[SHA256_N], const char *req, uint64_t *ret_seed)
{
    static const char tag[] = "ingot seed\n";
    uint8_t d[SHA256_N];
    sha256_ctx c;
    TRY(sha256_init(&c));
    sha256_add(&c, tag, sizeof tag - 1);
    sha256_add(&c, root, SHA256_N);
    sha256_add(&c, req, strlen(req));
    sha256_final(&c, d);
    uint64_t seed = 0;
    for (size_t i = 0; i < 8; i++) seed = seed << 8 | d[i];
    *ret_seed = seed;
    return IG_OK;
}
