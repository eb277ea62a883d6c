/* sign.h: model signatures: OpenSSF Model Signing v1.0, method "files", SHA-256, key method, ECDSA
 * P-256.
 *
 * What oms_sign writes, `model_signing verify key` accepts. What oms_open accepts is stricter than
 * what that tool accepts: one signature, by a key given from outside; one subject; unique plain
 * names; lower-case hex; the root recomputed; no symlinks; nothing ignored but the four git names
 * and *.sig at the top; nothing extra, nothing missing. */
#ifndef AUDIT_SIGN_H
#define AUDIT_SIGN_H
#include "audit/key.h"
#include "audit/manifest.h"

#define SIGN_MAX_BYTES ((size_t)64 << 20) /* of a model.sig */

/* Appends model.sig for a hashed directory; `name` is informative (its basename). */
IG_MUST_USE ig_status oms_sign(const manifest *m, const char *name, const publisher_key *k,
                               buf *out);
/* Hashes dir and writes sig_path. ret_root may be NULL. */
IG_MUST_USE ig_status oms_sign_dir(const char *dir, const publisher_key *k, const char *sig_path,
                                   const manifest_options *o, uint8_t ret_root[SHA256_N]);

/* A verified signature. */
typedef struct oms {
    uint8_t root[SHA256_N]; /* the model's identity */
    uint8_t sig[SHA256_N];  /* SHA-256 of model.sig */
    char fingerprint[KEY_FINGERPRINT_N];
    char *key_path; /* the trusted file that holds the key */
    char *name;     /* of the subject; informative */
    manifest files; /* sorted by name; st is filled by oms_verify_dir */
    char *ignored;  /* names at the top that the signature leaves out, each followed by NUL */
    size_t n_ignored;
} oms;

/* Checks the signature itself; no file of the model is read. */
IG_MUST_USE ig_status oms_open(const char *sig_path, const trust *t, oms *ret_oms);
IG_MUST_USE ig_status oms_parse(const char *what, str text, const trust *t, oms *ret_oms);
/* Hashes dir and compares every file; the first difference is named. Fills files[].st, by which a
 * loader knows that what it maps is what was hashed. */
IG_MUST_USE ig_status oms_verify_dir(oms *s, const char *dir, const manifest_options *o);
/* oms_open, then oms_verify_dir. */
IG_MUST_USE ig_status oms_verify(const char *dir, const char *sig_path, const char *trust_path,
                                 const manifest_options *o, oms *ret_oms);
/* A signed file, or NULL: whatever is opened must be found here. */
const manifest_file *oms_find(const oms *s, str name);
void oms_done(oms *s);
static inline void oms_auto(oms *s) { oms_done(s); }
#endif
