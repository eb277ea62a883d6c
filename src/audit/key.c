/* key.c owns keys: making, reading, writing and using them. Secrets live in OpenSSL's objects; the
 * text of a private file is wiped before its buffer is freed. */
#include "audit/key.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/buf.h"
#include "base/file.h"

struct publisher_key {
    EVP_PKEY *pkey;
    bool is_private;
    char fingerprint[KEY_FINGERPRINT_N];
};

struct log_key {
    EVP_PKEY *pkey;
    uint8_t seed[32];
    log_vkey vkey;
};

static ig_status openssl_failed(const char *what)
{
    char reason[160];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    ERR_clear_error();
    return ig_fail(IG_EDEVICE, "%s: OpenSSL: %s", what, reason);
}

static void bio_auto(BIO **b) { BIO_free(*b); }

/* ---- P-256 ---- */

static bool is_p256(EVP_PKEY *k)
{
    char group[64];
    size_t n = 0;
    return EVP_PKEY_get_base_id(k) == EVP_PKEY_EC &&
           EVP_PKEY_get_utf8_string_param(k, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof group, &n) &&
           strcmp(group, "prime256v1") == 0;
}

static ig_status public_pem(EVP_PKEY *k, buf *ret_pem)
{
    __attribute__((cleanup(bio_auto))) BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || !PEM_write_bio_PUBKEY(bio, k)) return openssl_failed("public key");
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    buf_init(ret_pem, KEY_MAX_PEM);
    buf_add(ret_pem, p, (size_t)n);
    return buf_status(ret_pem);
}

/* Takes over pkey, also on failure. */
static ig_status publisher_wrap(const char *what, EVP_PKEY *pkey, bool is_private,
                                publisher_key **ret_key)
{
    AUTO(publisher_key_ptr) k = mem_calloc(1, sizeof *k);
    if (!k) {
        EVP_PKEY_free(pkey);
        return IG_ENOMEM;
    }
    k->pkey = pkey;
    k->is_private = is_private;
    if (!is_p256(pkey))
        return ig_fail(IG_EUNSUPPORTED, "%s: not an ECDSA P-256 key; make one with `ingot keygen`",
                       what);
    AUTO(buf) pem = {0};
    TRY(public_pem(pkey, &pem));
    uint8_t d[SHA256_N];
    sha256(pem.data, pem.n, d);
    AUTO(buf) hex = {0};
    buf_init(&hex, KEY_FINGERPRINT_N);
    buf_hex(&hex, d, sizeof d);
    TRY(buf_status(&hex));
    memcpy(k->fingerprint, hex.data, KEY_FINGERPRINT_N);
    *ret_key = STEAL(k);
    return IG_OK;
}

ig_status publisher_key_generate(publisher_key **ret_key)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    if (!pkey) return openssl_failed("making a P-256 key");
    return publisher_wrap("new key", pkey, true, ret_key);
}

/* A private key must not be readable by others: whoever reads it can sign. Asked of what turned
 * out to be one: `chmod` is no advice to somebody who gave a public key. */
static ig_status check_secret(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && (st.st_mode & 077) != 0)
        return ig_fail(IG_EINVAL, "%s: others may read this private key; run `chmod 600 %s`", path,
                       path);
    return IG_OK;
}

static void wipe(buf *b)
{
    if (b->data) OPENSSL_cleanse(b->data, b->n);
    buf_done(b);
}

static ig_status write_secret(const char *path, const void *p, size_t n)
{
    if (file_exists(path))
        return ig_fail(IG_EINVAL, "%s exists; a key is never overwritten, choose another path",
                       path);
    return file_write_atomic(path, p, n, 0600);
}

/* Encrypted keys would make OpenSSL prompt on the terminal; a callback that declines does not. */
static int no_password(char *out, int size, int rwflag, void *user)
{
    (void)out, (void)size, (void)rwflag, (void)user;
    return -1;
}

ig_status publisher_key_read_private(const char *path, publisher_key **ret_key)
{
    __attribute__((cleanup(wipe))) buf text = {0};
    TRY(file_read(path, KEY_MAX_PEM, &text));
    __attribute__((cleanup(bio_auto))) BIO *bio = BIO_new_mem_buf(text.data, (int)text.n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    ERR_clear_error();
    if (!pkey && text.n && strstr(text.data, "BEGIN PUBLIC KEY"))
        return ig_fail(IG_EFORMAT, "%s: a public key; the private one is needed here", path);
    if (!pkey) return ig_fail(IG_EFORMAT, "%s: not an unencrypted PEM private key", path);
    AUTO(publisher_key_ptr) key = NULL;
    TRY(publisher_wrap(path, pkey, true, &key));
    TRY(check_secret(path));
    *ret_key = STEAL(key);
    return IG_OK;
}

ig_status publisher_key_parse_public(const char *what, str pem, publisher_key **ret_key)
{
    if (pem.n > KEY_MAX_PEM) return ig_fail(IG_ELIMIT, "%s: too long for a public key", what);
    __attribute__((cleanup(bio_auto))) BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL) : NULL;
    ERR_clear_error();
    if (!pkey) return ig_fail(IG_EFORMAT, "%s: not a PEM public key (BEGIN PUBLIC KEY)", what);
    return publisher_wrap(what, pkey, false, ret_key);
}

ig_status publisher_key_read_public(const char *path, publisher_key **ret_key)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, KEY_MAX_PEM, &text));
    return publisher_key_parse_public(path, (str){text.data, text.n}, ret_key);
}

ig_status publisher_key_write_private(const publisher_key *k, const char *path)
{
    if (!k->is_private) return ig_fail(IG_EINVAL, "%s: this key has no private half", path);
    __attribute__((cleanup(bio_auto))) BIO *bio = BIO_new(BIO_s_secmem());
    if (!bio || !PEM_write_bio_PKCS8PrivateKey(bio, k->pkey, NULL, NULL, 0, NULL, NULL))
        return openssl_failed(path);
    char *p = NULL;
    long n = BIO_get_mem_data(bio, &p);
    return write_secret(path, p, (size_t)n);
}

ig_status publisher_key_write_public(const publisher_key *k, const char *path)
{
    if (file_exists(path))
        return ig_fail(IG_EINVAL, "%s exists; a key is never overwritten, choose another path",
                       path);
    AUTO(buf) pem = {0};
    TRY(public_pem(k->pkey, &pem));
    return file_write_atomic(path, pem.data, pem.n, 0644);
}

const char *publisher_key_fingerprint(const publisher_key *k) { return k->fingerprint; }

static void md_ctx_auto(EVP_MD_CTX **c) { EVP_MD_CTX_free(*c); }

ig_status publisher_key_sign(const publisher_key *k, const void *p, size_t n, uint8_t ret_der[80],
                             size_t *ret_n)
{
    if (!k->is_private) return ig_fail(IG_EINVAL, "signing needs a private key");
    __attribute__((cleanup(md_ctx_auto))) EVP_MD_CTX *c = EVP_MD_CTX_new();
    size_t n_der = 80;
    if (!c || EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, k->pkey) != 1 ||
        EVP_DigestSign(c, ret_der, &n_der, p, n) != 1)
        return openssl_failed("signing");
    *ret_n = n_der;
    return IG_OK;
}

bool publisher_key_check(const publisher_key *k, const void *p, size_t n, const uint8_t *der,
                         size_t n_der)
{
    __attribute__((cleanup(md_ctx_auto))) EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool good = c && EVP_DigestVerifyInit(c, NULL, EVP_sha256(), NULL, k->pkey) == 1 &&
                EVP_DigestVerify(c, der, n_der, p, n) == 1;
    ERR_clear_error();
    return good;
}

void publisher_key_free(publisher_key *k)
{
    if (!k) return;
    EVP_PKEY_free(k->pkey);
    mem_free(k);
}

/* ---- Ed25519 ---- */

#define ALG_ED25519 0x01

/* First four bytes of SHA-256(name || 0A || 01 || public key). */
static uint32_t note_key_hash(const char *name, const uint8_t pub[32])
{
    uint8_t in[KEY_MAX_NAME + 2 + 32], d[SHA256_N];
    size_t n = strlen(name);
    memcpy(in, name, n);
    in[n] = '\n';
    in[n + 1] = ALG_ED25519;
    memcpy(in + n + 2, pub, 32);
    sha256(in, n + 34, d);
    return (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3];
}

/* Printable ASCII without space and '+': the note format forbids those two, and a name that is a
 * URL path needs nothing more. */
static bool name_valid(str name)
{
    if (name.n == 0 || name.n > KEY_MAX_NAME) return false;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] <= ' ' || name.p[i] > '~' || name.p[i] == '+') return false;
    return true;
}

static ig_status vkey_fill(str name, const uint8_t pub[32], log_vkey *ret_vkey)
{
    log_vkey v = {0};
    memcpy(v.name, name.p, name.n);
    memcpy(v.pub, pub, 32);
    v.hash = note_key_hash(v.name, pub);
    uint8_t typed[33] = {ALG_ED25519};
    memcpy(typed + 1, pub, 32);
    AUTO(buf) text = {0};
    buf_init(&text, KEY_MAX_VKEY - 1);
    buf_printf(&text, "%s+%08x+", v.name, v.hash);
    buf_base64(&text, typed, sizeof typed);
    TRY(buf_status(&text));
    memcpy(v.text, text.data, text.n);
    *ret_vkey = v;
    return IG_OK;
}

/* Splits NAME+HASH+BASE64(01 || 32 bytes); false when malformed. */
static bool split_note_key(str text, str *ret_name, uint32_t *ret_hash, uint8_t ret_key[32])
{
    while (text.n && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r')) text.n--;
    const char *plus = memchr(text.p, '+', text.n);
    if (!plus) return false;
    str name = {text.p, (size_t)(plus - text.p)};
    str rest = {plus + 1, text.n - name.n - 1};
    uint8_t hash[4], typed[33];
    size_t n = 0;
    if (!name_valid(name) || rest.n < 9 || rest.p[8] != '+' ||
        !hex_decode((str){rest.p, 8}, hash, 4))
        return false;
    if (!base64_decode((str){rest.p + 9, rest.n - 9}, typed, sizeof typed, &n) || n != 33 ||
        typed[0] != ALG_ED25519)
        return false;
    *ret_name = name;
    *ret_hash =
        (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
    memcpy(ret_key, typed + 1, 32);
    return true;
}

ig_status log_vkey_parse(const char *what, str text, log_vkey *ret_vkey)
{
    str name;
    uint32_t hash;
    uint8_t pub[32];
    log_vkey v;
    if (!split_note_key(text, &name, &hash, pub))
        return ig_fail(IG_EFORMAT, "%s: not a log verifier key (NAME+HASH+BASE64)", what);
    TRY(vkey_fill(name, pub, &v));
    if (v.hash != hash)
        return ig_fail(IG_EFORMAT, "%s: the key's hash is %08x, the text says %08x", what, v.hash,
                       hash);
    *ret_vkey = v;
    return IG_OK;
}

ig_status log_vkey_read(const char *path, log_vkey *ret_vkey)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, 4096, &text));
    return log_vkey_parse(path, (str){text.data, text.n}, ret_vkey);
}

ig_status log_vkey_write(const log_vkey *v, const char *path)
{
    AUTO(buf) text = {0};
    buf_init(&text, KEY_MAX_VKEY + 1);
    buf_printf(&text, "%s\n", v->text);
    TRY(buf_status(&text));
    return file_write_atomic(path, text.data, text.n, 0644);
}

static void pkey_auto(EVP_PKEY **k) { EVP_PKEY_free(*k); }

bool log_vkey_check(const log_vkey *v, const void *p, size_t n, const uint8_t sig[64])
{
    __attribute__((cleanup(pkey_auto))) EVP_PKEY *k =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, v->pub, 32);
    __attribute__((cleanup(md_ctx_auto))) EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool good = k && c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
                EVP_DigestVerify(c, sig, 64, p, n) == 1;
    ERR_clear_error();
    return good;
}

static ig_status log_key_from_seed(str name, const uint8_t seed[32], log_key **ret_key)
{
    AUTO(log_key_ptr) k = mem_calloc(1, sizeof *k);
    if (!k) return IG_ENOMEM;
    memcpy(k->seed, seed, 32);
    k->pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    uint8_t pub[32];
    size_t n = sizeof pub;
    if (!k->pkey || EVP_PKEY_get_raw_public_key(k->pkey, pub, &n) != 1)
        return openssl_failed("log key");
    TRY(vkey_fill(name, pub, &k->vkey));
    *ret_key = STEAL(k);
    return IG_OK;
}

ig_status log_key_generate(const char *base, log_key **ret_key)
{
    uint8_t seed[32], suffix[8];
    TRY(random_bytes(seed, sizeof seed));
    TRY(random_bytes(suffix, sizeof suffix));
    AUTO(buf) name = {0};
    buf_init(&name, KEY_MAX_NAME);
    buf_printf(&name, "%s/", base);
    buf_hex(&name, suffix, sizeof suffix);
    TRY(buf_status(&name));
    str n = {name.data, name.n};
    if (!name_valid(n))
        return ig_fail(IG_EINVAL, "log name \"%s\": use printable ASCII without spaces and '+'",
                       base);
    ig_status st = log_key_from_seed(n, seed, ret_key);
    OPENSSL_cleanse(seed, sizeof seed);
    return st;
}

static const char private_prefix[] = "PRIVATE+KEY+";

ig_status log_key_read(const char *path, log_key **ret_key)
{
    __attribute__((cleanup(wipe))) buf text = {0};
    TRY(file_read(path, 4096, &text));
    str t = {text.data, text.n}, prefix = str_of(private_prefix), name;
    uint32_t hash;
    uint8_t seed[32];
    if (!str_starts(t, prefix) && split_note_key(t, &name, &hash, seed))
        return ig_fail(IG_EFORMAT, "%s: a verifier key; the log's private key is needed here",
                       path);
    if (!str_starts(t, prefix) ||
        !split_note_key((str){t.p + prefix.n, t.n - prefix.n}, &name, &hash, seed))
        return ig_fail(IG_EFORMAT, "%s: not a log signing key (PRIVATE+KEY+NAME+HASH+BASE64)",
                       path);
    AUTO(log_key_ptr) k = NULL;
    ig_status st = log_key_from_seed(name, seed, &k);
    OPENSSL_cleanse(seed, sizeof seed);
    TRY(st);
    if (k->vkey.hash != hash)
        return ig_fail(IG_EFORMAT, "%s: the key's hash is %08x, the file says %08x", path,
                       k->vkey.hash, hash);
    TRY(check_secret(path));
    *ret_key = STEAL(k);
    return IG_OK;
}

ig_status log_key_write(const log_key *k, const char *path)
{
    uint8_t typed[33] = {ALG_ED25519};
    memcpy(typed + 1, k->seed, 32);
    __attribute__((cleanup(wipe))) buf text = {0};
    buf_init(&text, 1024);
    buf_printf(&text, "%s%s+%08x+", private_prefix, k->vkey.name, k->vkey.hash);
    buf_base64(&text, typed, sizeof typed);
    buf_char(&text, '\n');
    OPENSSL_cleanse(typed, sizeof typed);
    TRY(buf_status(&text));
    return write_secret(path, text.data, text.n);
}

const log_vkey *log_key_public(const log_key *k) { return &k->vkey; }

ig_status log_key_sign(const log_key *k, const void *p, size_t n, uint8_t ret_sig[64])
{
    __attribute__((cleanup(md_ctx_auto))) EVP_MD_CTX *c = EVP_MD_CTX_new();
    size_t n_sig = 64;
    if (!c || EVP_DigestSignInit(c, NULL, NULL, NULL, k->pkey) != 1 ||
        EVP_DigestSign(c, ret_sig, &n_sig, p, n) != 1 || n_sig != 64)
        return openssl_failed("signing a checkpoint");
    return IG_OK;
}

void log_key_free(log_key *k)
{
    if (!k) return;
    EVP_PKEY_free(k->pkey);
    OPENSSL_cleanse(k->seed, sizeof k->seed);
    mem_free(k);
}

/* ---- trusted keys ---- */

static ig_status trust_add(trust *t, const char *path)
{
    if (t->n == TRUST_MAX_KEYS)
        return ig_fail(IG_ELIMIT, "%s: more than %d trusted keys", path, TRUST_MAX_KEYS);
    AUTO(publisher_key_ptr) k = NULL;
    TRY(publisher_key_read_public(path, &k));
    char *copy = mem_strdup(path);
    if (!copy) return IG_ENOMEM;
    t->paths[t->n] = copy;
    t->keys[t->n++] = STEAL(k);
    return IG_OK;
}

static void dir_auto(DIR **d)
{
    if (*d) closedir(*d);
}

static ig_status trust_read_dir(trust *t, const char *path)
{
    __attribute__((cleanup(dir_auto))) DIR *d = opendir(path);
    if (!d) return ig_fail(IG_EIO, "%s: %s", path, strerror(errno));
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        str name = str_of(e->d_name);
        if (name.p[0] == '.' ||
            (!str_ends(name, str_of(".pub")) && !str_ends(name, str_of(".pem"))))
            continue;
        AUTO(buf) full = {0};
        TRY(file_join(&full, path, e->d_name));
        TRY(trust_add(t, full.data));
    }
    if (t->n == 0)
        return ig_fail(IG_ENOTFOUND, "%s: no *.pub or *.pem; put the publisher's public key there",
                       path);
    return IG_OK;
}

ig_status trust_read(const char *path, trust *ret_trust)
{
    AUTO(trust) t = {0};
    t.keys = mem_calloc(TRUST_MAX_KEYS, sizeof *t.keys);
    t.paths = mem_calloc(TRUST_MAX_KEYS, sizeof *t.paths);
    if (!t.keys || !t.paths) return IG_ENOMEM;
    struct stat st;
    if (stat(path, &st) != 0)
        return ig_fail(IG_ENOTFOUND,
                       "%s: %s; give the publisher's public key with --trust FILE or DIR", path,
                       strerror(errno));
    if (S_ISDIR(st.st_mode))
        TRY(trust_read_dir(&t, path));
    else
        TRY(trust_add(&t, path));
    *ret_trust = t;
    t = (trust){0};
    return IG_OK;
}

const publisher_key *trust_find(const trust *t, str fingerprint, const char **ret_path)
{
    for (size_t i = 0; i < t->n; i++)
        if (str_eq(fingerprint, str_of(t->keys[i]->fingerprint))) {
            if (ret_path) *ret_path = t->paths[i];
            return t->keys[i];
        }
    return NULL;
}

void trust_done(trust *t)
{
    for (size_t i = 0; i < t->n; i++) {
        publisher_key_free(t->keys[i]);
        mem_free(t->paths[i]);
    }
    mem_free(t->keys);
    mem_free(t->paths);
    *t = (trust){0};
}
