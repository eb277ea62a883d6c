/* key.h: the two kinds of key, never used for each other's purpose.
 *
 * Publisher key: ECDSA P-256, signs models. Private: PKCS#8 PEM, mode 0600. Public: SPKI PEM. Its
 * fingerprint is the SHA-256 of the PEM text that OpenSSL prints (`openssl pkey -pubin -in k.pub |
 * sha256sum`), which OMS bundles carry as `hint`.
 *
 * Log key: Ed25519, signs checkpoints. Public form: the verifier key ("vkey") of C2SP signed-note,
 * NAME+HASH+BASE64. Private: the signer key of golang.org/x/mod/sumdb/note on one line, mode 0600:
 * PRIVATE+KEY+NAME+HASH+BASE64. One log key belongs to one log; the name is the log's origin. */
#ifndef AUDIT_KEY_H
#define AUDIT_KEY_H
#include "base/digest.h"
#include "base/str.h"

#define KEY_MAX_PEM 16384
#define KEY_FINGERPRINT_N 65 /* 64 lower-case hex digits and NUL */
#define KEY_MAX_NAME 200     /* bytes of a log's name */
#define KEY_MAX_VKEY 320

/* A P-256 key, private or public only. */
typedef struct publisher_key publisher_key;
IG_MUST_USE ig_status publisher_key_generate(publisher_key **ret_key);
IG_MUST_USE ig_status publisher_key_read_private(const char *path, publisher_key **ret_key);
IG_MUST_USE ig_status publisher_key_read_public(const char *path, publisher_key **ret_key);
IG_MUST_USE ig_status publisher_key_parse_public(const char *what, str pem,
                                                 publisher_key **ret_key);
/* Refuse to overwrite an existing file. */
IG_MUST_USE ig_status publisher_key_write_private(const publisher_key *k, const char *path);
IG_MUST_USE ig_status publisher_key_write_public(const publisher_key *k, const char *path);
const char *publisher_key_fingerprint(const publisher_key *k);
/* ASN.1 DER ECDSA signature over SHA-256 of the bytes, appended to ret_der. */
IG_MUST_USE ig_status publisher_key_sign(const publisher_key *k, const void *p, size_t n,
                                         uint8_t ret_der[80], size_t *ret_n);
bool publisher_key_check(const publisher_key *k, const void *p, size_t n, const uint8_t *der,
                         size_t n_der);
void publisher_key_free(publisher_key *k);
AUTO_FN(publisher_key_ptr, publisher_key *, publisher_key_free)

/* The public half of a log key. */
typedef struct log_vkey {
    char name[KEY_MAX_NAME + 1];
    uint32_t hash; /* key id of signed notes */
    uint8_t pub[32];
    char text[KEY_MAX_VKEY]; /* NAME+HASH+BASE64, no newline */
} log_vkey;
IG_MUST_USE ig_status log_vkey_parse(const char *what, str text, log_vkey *ret_vkey);
IG_MUST_USE ig_status log_vkey_read(const char *path, log_vkey *ret_vkey);
IG_MUST_USE ig_status log_vkey_write(const log_vkey *v, const char *path);
bool log_vkey_check(const log_vkey *v, const void *p, size_t n, const uint8_t sig[64]);

typedef struct log_key log_key;
/* NAME becomes `base/` and 16 random hex digits, so that no two logs share an origin. */
IG_MUST_USE ig_status log_key_generate(const char *base, log_key **ret_key);
IG_MUST_USE ig_status log_key_read(const char *path, log_key **ret_key);
IG_MUST_USE ig_status log_key_write(const log_key *k, const char *path);
const log_vkey *log_key_public(const log_key *k);
IG_MUST_USE ig_status log_key_sign(const log_key *k, const void *p, size_t n, uint8_t ret_sig[64]);
void log_key_free(log_key *k);
AUTO_FN(log_key_ptr, log_key *, log_key_free)

/* Trusted publisher keys: one PEM file, or every *.pub and *.pem in a directory (others are
 * ignored, unreadable ones are errors). */
typedef struct trust {
    publisher_key **keys;
    char **paths;
    size_t n;
} trust;
#define TRUST_MAX_KEYS 256
IG_MUST_USE ig_status trust_read(const char *path, trust *ret_trust);
/* The key with this fingerprint, or NULL; *ret_path (may be NULL) names its file. */
const publisher_key *trust_find(const trust *t, str fingerprint, const char **ret_path);
void trust_done(trust *t);
static inline void trust_auto(trust *t) { trust_done(t); }
#endif
