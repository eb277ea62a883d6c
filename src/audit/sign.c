/* sign.c: writing and reading OpenSSF model signatures (contract in sign.h).
 *
 * A bundle is JSON around a DSSE envelope; the signature covers PAE(payload type, payload), the
 * payload is an in-toto statement whose predicate lists every file. The bytes of the payload are
 * what counts: it is verified before it is parsed. */
#include "audit/sign.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/map.h"

#define MEDIA_TYPE "application/vnd.dev.sigstore.bundle.v0.3+json"
#define PAYLOAD_TYPE "application/vnd.in-toto+json"
#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"
#define PREDICATE_TYPE "https://model_signing/signature/v1.0"

static const char *const git_names[] = {".git", ".gitattributes", ".github", ".gitignore"};

static bool is_git_name(str s)
{
    for (size_t i = 0; i < N_ELEM(git_names); i++)
        if (str_eq(s, str_of(git_names[i]))) return true;
    return false;
}

/* First component of a name. */
static str top_of(str name)
{
    const char *slash = memchr(name.p, '/', name.n);
    return slash ? (str){name.p, (size_t)(slash - name.p)} : name;
}

/* Pre-authentication encoding of DSSE. */
static void put_pae(buf *out, const char *payload, size_t n)
{
    buf_printf(out, "DSSEv1 %zu %s %zu ", sizeof PAYLOAD_TYPE - 1, PAYLOAD_TYPE, n);
    buf_add(out, payload, n);
}

/* ---- signing ---- */

static void put_statement(const manifest *m, const char *name, const uint8_t root[SHA256_N],
                          buf *out)
{
    buf_str(out, "{\"_type\":\"" STATEMENT_TYPE "\",\"subject\":[{\"name\":");
    buf_json_string(out, name, strlen(name));
    buf_str(out, ",\"digest\":{\"sha256\":\"");
    buf_hex(out, root, SHA256_N);
    buf_str(out,
            "\"}}],\"predicateType\":\"" PREDICATE_TYPE
            "\",\"predicate\":{\"serialization\":{\"method\":\"files\",\"hash_type\":\"sha256\","
            "\"allow_symlinks\":false,\"ignore_paths\":[]},\"resources\":[");
    for (size_t i = 0; i < m->n; i++) {
        buf_str(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(out, m->files[i].name, strlen(m->files[i].name));
        buf_str(out, ",\"algorithm\":\"sha256\",\"digest\":\"");
        buf_hex(out, m->files[i].digest, SHA256_N);
        buf_str(out, "\"}");
    }
    buf_str(out, "]}}");
}

/* The Python tool leaves these out by default, so a signature over them would not verify there. */
static ig_status refuse_git(const manifest *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (is_git_name(top_of(str_of(m->files[i].name))))
            return ig_fail(IG_EINVAL, "%s: git's files do not belong into a model; remove them",
                           m->files[i].name);
    return m->n ? IG_OK : ig_fail(IG_EINVAL, "there is no file to sign");
}

ig_status oms_sign(const manifest *m, const char *name, const publisher_key *k, buf *out)
{
    AUTO(buf) statement = {0}, pae = {0};
    uint8_t root[SHA256_N], der[80];
    size_t n_der;
    buf_init(&statement, SIGN_MAX_BYTES / 2);
    buf_init(&pae, SIGN_MAX_BYTES / 2 + 100);
    TRY(refuse_git(m));
    TRY(manifest_root(m, root));
    put_statement(m, name, root, &statement);
    TRY(buf_status(&statement));
    put_pae(&pae, statement.data, statement.n);
    TRY(buf_status(&pae));
    TRY(publisher_key_sign(k, pae.data, pae.n, der, &n_der));
    buf_str(out, "{\"mediaType\":\"" MEDIA_TYPE
                 "\",\"verificationMaterial\":{\"publicKey\":{\"hint\":\"");
    buf_str(out, publisher_key_fingerprint(k));
    buf_str(out, "\"},\"tlogEntries\":[]},\"dsseEnvelope\":{\"payload\":\"");
    buf_base64(out, statement.data, statement.n);
    buf_str(out, "\",\"payloadType\":\"" PAYLOAD_TYPE "\",\"signatures\":[{\"sig\":\"");
    buf_base64(out, der, n_der);
    buf_str(out, "\",\"keyid\":\"\"}]}}");
    return buf_status(out);
}

static const char *basename_of(const char *dir, buf *ret_name)
{
    size_t n = strlen(dir), start;
    while (n > 1 && dir[n - 1] == '/') n--;
    for (start = n; start > 0 && dir[start - 1] != '/';) start--;
    buf_add(ret_name, dir + start, n - start);
    return ret_name->data;
}

ig_status oms_sign_dir(const char *dir, const publisher_key *k, const char *sig_path,
                       const manifest_options *o, uint8_t ret_root[SHA256_N])
{
    AUTO(manifest) m = {.n = 0};
    AUTO(buf) out = {0}, name = {0};
    uint8_t root[SHA256_N];
    buf_init(&out, SIGN_MAX_BYTES);
    buf_init(&name, FILE_PATH_MAX);
    (void)basename_of(dir, &name);
    TRY(buf_status(&name));
    TRY(manifest_hash_dir(dir, o, &m));
    TRY(oms_sign(&m, name.data, k, &out));
    TRY(manifest_root(&m, root));
    TRY(file_write_atomic(sig_path, out.data, out.n, 0644));
    if (ret_root) memcpy(ret_root, root, SHA256_N);
    return IG_OK;
}

/* ---- opening ---- */

static ig_status bad(const char *what, const char *rule)
{
    return ig_fail(IG_EFORMAT, "%s: %s", what, rule);
}

/* Every key of obj must be in the NULL-ended list. */
static bool only_keys(const json_t *obj, const char *const *allowed)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)obj, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(key, allowed[i]) != 0) i++;
        if (!allowed[i]) return false;
    }
    return true;
}

static bool is_string(const json_t *obj, const char *key, const char *value)
{
    const json_t *j = json_object_get(obj, key);
    return json_is_string(j) && json_string_length(j) == strlen(value) &&
           memcmp(json_string_value(j), value, strlen(value)) == 0;
}

/* Layer 1: the bundle. Gives hint and envelope. */
static ig_status read_bundle(const char *what, const json_t *root, str *ret_hint,
                             const json_t **ret_envelope)
{
    static const char *const top[] = {"mediaType", "verificationMaterial", "dsseEnvelope", NULL};
    static const char *const material[] = {"publicKey", "tlogEntries", "timestampVerificationData",
                                           NULL};
    static const char *const key[] = {"hint", NULL};
    const json_t *vm = json_object_get(root, "verificationMaterial");
    const json_t *pk = json_object_get(vm, "publicKey"), *tlog = json_object_get(vm, "tlogEntries");
    if (!only_keys(root, top) || !is_string(root, "mediaType", MEDIA_TYPE))
        return bad(what, "not a Sigstore bundle " MEDIA_TYPE);
    if (!json_is_object(pk))
        return ig_fail(
            IG_EUNSUPPORTED,
            "%s: not signed with the key method (certificates and keyless signatures are "
            "not trusted here)",
            what);
    if (!only_keys(vm, material) || !only_keys(pk, key))
        return bad(what, "unknown fields in verificationMaterial");
    if (tlog && json_array_size(tlog) != 0) return bad(what, "tlogEntries is not empty");
    TRY(json_get_str(what, pk, "hint", ret_hint));
    uint8_t unused[SHA256_N];
    if (!hex_decode(*ret_hint, unused, sizeof unused)) return bad(what, "hint is no fingerprint");
    *ret_envelope = json_object_get(root, "dsseEnvelope");
    return json_is_object(*ret_envelope) ? IG_OK : bad(what, "no dsseEnvelope");
}

static ig_status decode(const char *what, const json_t *obj, const char *field, buf *out)
{
    str b64;
    size_t n = 0;
    TRY(json_get_str(what, obj, field, &b64));
    size_t cap = b64.n / 4 * 3 + 3;
    AUTO(mem_ptr) bytes = mem_alloc(cap);
    if (!bytes) return IG_ENOMEM;
    if (!base64_decode(b64, bytes, cap, &n))
        return ig_fail(IG_EFORMAT, "%s: %s is not base64", what, field);
    buf_init(out, cap);
    buf_add(out, bytes, n);
    return buf_status(out);
}

/* Layer 2: the envelope. Gives the verified payload. */
static ig_status read_envelope(const char *what, const json_t *envelope, str hint,
                               const publisher_key *k, buf *ret_payload)
{
    static const char *const fields[] = {"payload", "payloadType", "signatures", NULL};
    static const char *const sig_fields[] = {"sig", "keyid", NULL};
    const json_t *sigs = json_object_get(envelope, "signatures"), *one = json_array_get(sigs, 0);
    AUTO(buf) der = {0}, pae = {0};
    str keyid;
    buf_init(&der, 0);
    buf_init(&pae, SIGN_MAX_BYTES + 100);
    if (!only_keys(envelope, fields) || !is_string(envelope, "payloadType", PAYLOAD_TYPE))
        return bad(what, "not a DSSE envelope of " PAYLOAD_TYPE);
    if (json_array_size(sigs) != 1 || !only_keys(one, sig_fields))
        return bad(what, "there must be exactly one signature");
    TRY(json_opt_str(what, one, "keyid", &keyid));
    if (keyid.n && !str_eq(keyid, hint)) return bad(what, "keyid and hint name different keys");
    TRY(decode(what, envelope, "payload", ret_payload));
    TRY(decode(what, one, "sig", &der));
    put_pae(&pae, ret_payload->data ? ret_payload->data : "", ret_payload->n);
    TRY(buf_status(&pae));
    if (!publisher_key_check(k, pae.data, pae.n, (const uint8_t *)(der.data ? der.data : ""),
                             der.n))
        return ig_fail(IG_EVERIFY, "%s: the signature does not verify under key %s", what,
                       publisher_key_fingerprint(k));
    return IG_OK;
}

/* Names at the top, or below a git folder; nothing by which weights could be left out. */
static bool may_ignore(str path)
{
    if (manifest_bad_name(path)) return false;
    if (is_git_name(top_of(path))) return true;
    return !memchr(path.p, '/', path.n) && str_ends(path, str_of(".sig"));
}

static ig_status read_serialization(const char *what, const json_t *ser, oms *s)
{
    const json_t *ignore = json_object_get(ser, "ignore_paths");
    AUTO(buf) names = {0};
    buf_init(&names, (size_t)1 << 20);
    if (!is_string(ser, "method", "files") || !is_string(ser, "hash_type", "sha256"))
        return ig_fail(IG_EUNSUPPORTED, "%s: only method \"files\" with \"sha256\" is supported",
                       what);
    if (json_is_true(json_object_get(ser, "allow_symlinks")))
        return bad(what, "allow_symlinks is true; a model must hold real files");
    if (ignore && !json_is_array(ignore)) return bad(what, "ignore_paths is not a list");
    for (size_t i = 0; i < json_array_size(ignore); i++) {
        const json_t *j = json_array_get(ignore, i);
        str path = {json_string_value(j), json_string_length(j)};
        if (!path.p || !may_ignore(path))
            return ig_fail(IG_EVERIFY,
                           "%s: leaves out \"%s\"; only git's files and *.sig at the top may be",
                           what, path.p ? path.p : "?");
        buf_add(&names, path.p, path.n + 1);
        s->n_ignored++;
    }
    TRY(buf_status(&names));
    s->ignored = names.n ? buf_take(&names) : NULL;
    return IG_OK;
}

static ig_status add_resource(const char *what, const json_t *r, map *seen, oms *s)
{
    str name, hex;
    bool existed;
    manifest_file *f = &s->files.files[s->files.n];
    TRY(json_get_str(what, r, "name", &name));
    const char *wrong = manifest_bad_name(name);
    if (wrong)
        return ig_fail(IG_EVERIFY, "%s: resource %zu: the name is %s", what, s->files.n, wrong);
    TRY(map_put(seen, name, 0, &existed));
    if (existed) return ig_fail(IG_EVERIFY, "%s: lists %.*s twice", what, (int)name.n, name.p);
    if (!is_string(r, "algorithm", "sha256"))
        return ig_fail(IG_EUNSUPPORTED, "%s: %.*s: algorithm is not sha256", what, (int)name.n,
                       name.p);
    TRY(json_get_str(what, r, "digest", &hex));
    if (!hex_decode(hex, f->digest, SHA256_N))
        return ig_fail(IG_EFORMAT, "%s: %.*s: digest is not 64 lower-case hex digits", what,
                       (int)name.n, name.p);
    f->name = mem_strdup(name.p);
    if (!f->name) return IG_ENOMEM;
    s->files.n++;
    return IG_OK;
}

static ig_status read_resources(const char *what, const json_t *predicate, oms *s)
{
    json_t *list;
    AUTO(map_ptr) seen = NULL;
    TRY(json_get_arr(what, predicate, "resources", &list));
    size_t n = json_array_size(list);
    if (n == 0 || n > MANIFEST_MAX_FILES)
        return ig_fail(IG_ELIMIT, "%s: lists %zu files; 1 to %d are allowed", what, n,
                       MANIFEST_MAX_FILES);
    TRY(map_new(n, &seen));
    s->files.files = mem_calloc(n, sizeof *s->files.files);
    if (!s->files.files) return IG_ENOMEM;
    s->files.cap = n;
    for (size_t i = 0; i < n; i++) TRY(add_resource(what, json_array_get(list, i), seen, s));
    return manifest_root(&s->files, s->root);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const manifest_file *)a)->name, ((const manifest_file *)b)->name);
}

/* Layer 3: the statement. */
static ig_status read_statement(const char *what, str payload, oms *s)
{
    AUTO(json_ptr) root = NULL;
    json_t *predicate, *ser, *subjects;
    str name, hex;
    uint8_t digest[SHA256_N];
    TRY(json_parse(what, payload, SIGN_MAX_BYTES, 8, &root));
    if (!is_string(root, "_type", STATEMENT_TYPE) ||
        !is_string(root, "predicateType", PREDICATE_TYPE))
        return bad(what, "not a statement of OpenSSF Model Signing v1.0");
    TRY(json_get_arr(what, root, "subject", &subjects));
    if (json_array_size(subjects) != 1) return bad(what, "there must be exactly one subject");
    const json_t *subject = json_array_get(subjects, 0);
    TRY(json_get_str(what, subject, "name", &name));
    TRY(json_get_str(what, json_object_get(subject, "digest"), "sha256", &hex));
    if (!hex_decode(hex, digest, SHA256_N)) return bad(what, "the subject's digest is not hex");
    TRY(json_get_obj(what, root, "predicate", &predicate));
    TRY(json_get_obj(what, predicate, "serialization", &ser));
    TRY(read_serialization(what, ser, s));
    TRY(read_resources(what, predicate, s)); /* in listed order: the root depends on it */
    if (memcmp(digest, s->root, SHA256_N) != 0)
        return ig_fail(IG_EVERIFY, "%s: the root digest is not that of the listed files", what);
    if (s->files.n) qsort(s->files.files, s->files.n, sizeof *s->files.files, by_name);
    s->name = mem_strdup(name.p);
    return s->name ? IG_OK : IG_ENOMEM;
}

static ig_status untrusted(const char *what, str hint, const trust *t)
{
    AUTO(buf) list = {0};
    buf_init(&list, 600);
    for (size_t i = 0; i < t->n && i < 4; i++)
        buf_printf(&list, "%s%.16s… (%s)", i ? ", " : "", publisher_key_fingerprint(t->keys[i]),
                   t->paths[i]);
    return ig_fail(IG_EVERIFY, "%s: signed by key %.64s, which is not trusted; trusted: %s", what,
                   hint.p, list.n && list.status == IG_OK ? list.data : "none");
}

ig_status oms_parse(const char *what, str text, const trust *t, oms *ret_oms)
{
    AUTO(oms) s = {.n_ignored = 0};
    AUTO(json_ptr) root = NULL;
    AUTO(buf) payload = {0};
    const json_t *envelope = NULL;
    const char *key_path = NULL;
    str hint;
    buf_init(&payload, 0);
    TRY(json_parse(what, text, SIGN_MAX_BYTES, 8, &root));
    TRY(read_bundle(what, root, &hint, &envelope));
    const publisher_key *k = trust_find(t, hint, &key_path);
    if (!k) return untrusted(what, hint, t);
    TRY(read_envelope(what, envelope, hint, k, &payload));
    TRY(read_statement(what, (str){payload.data, payload.n}, &s));
    memcpy(s.fingerprint, publisher_key_fingerprint(k), KEY_FINGERPRINT_N);
    s.key_path = mem_strdup(key_path);
    if (!s.key_path) return IG_ENOMEM;
    sha256(text.p, text.n, s.sig);
    *ret_oms = s;
    s = (oms){.n_ignored = 0};
    return IG_OK;
}

ig_status oms_open(const char *sig_path, const trust *t, oms *ret_oms)
{
    AUTO(buf) text = {0};
    buf_init(&text, 0);
    TRY(file_read(sig_path, SIGN_MAX_BYTES, &text));
    return oms_parse(sig_path, (str){text.data, text.n}, t, ret_oms);
}

/* ---- comparing with a directory ---- */

static bool is_ignored(const oms *s, const char *name)
{
    const char *p = s->ignored;
    for (size_t i = 0; i < s->n_ignored; i++, p += strlen(p) + 1) {
        size_t n = strlen(p);
        if (strncmp(name, p, n) == 0 && (name[n] == 0 || name[n] == '/')) return true;
    }
    return false;
}

/* Nothing that the signature does not know, nothing that it knows missing. */
static ig_status check_names(const oms *s, const char *dir, const manifest *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (!oms_find(s, str_of(m->files[i].name)) && !is_ignored(s, m->files[i].name))
            return ig_fail(IG_EVERIFY, "%s/%s: not covered by the signature; remove it", dir,
                           m->files[i].name);
    for (size_t i = 0; i < s->files.n; i++)
        if (!manifest_find(m, str_of(s->files.files[i].name)))
            return ig_fail(IG_EVERIFY, "%s/%s: signed, but missing", dir, s->files.files[i].name);
    return IG_OK;
}

/* Takes the ignored files out, so that both lists have the same names. */
static void drop_ignored(const oms *s, manifest *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (oms_find(s, str_of(m->files[i].name)))
            m->files[n++] = m->files[i];
        else
            mem_free(m->files[i].name);
    }
    m->n = n;
}

ig_status oms_verify_dir(oms *s, const char *dir, const manifest_options *o)
{
    AUTO(manifest) m = {.n = 0};
    TRY(manifest_list(dir, &m));
    TRY(check_names(s, dir, &m));
    drop_ignored(s, &m);
    TRY(manifest_hash(dir, o, &m));
    for (size_t i = 0; i < m.n; i++) { /* both lists are sorted and equal in names */
        manifest_file *f = &s->files.files[i];
        if (memcmp(m.files[i].digest, f->digest, SHA256_N) != 0)
            return ig_fail(IG_EVERIFY, "%s/%s: not the bytes that were signed", dir, f->name);
        f->st = m.files[i].st;
        s->files.n_bytes += f->st.st_size;
    }
    return IG_OK;
}

ig_status oms_verify(const char *dir, const char *sig_path, const char *trust_path,
                     const manifest_options *o, oms *ret_oms)
{
    AUTO(trust) t = {.n = 0};
    AUTO(oms) s = {.n_ignored = 0};
    TRY(trust_read(trust_path, &t));
    TRY(oms_open(sig_path, &t, &s));
    TRY(oms_verify_dir(&s, dir, o));
    *ret_oms = s;
    s = (oms){.n_ignored = 0};
    return IG_OK;
}

const manifest_file *oms_find(const oms *s, str name) { return manifest_find(&s->files, name); }

void oms_done(oms *s)
{
    mem_free(s->key_path);
    mem_free(s->name);
    mem_free(s->ignored);
    manifest_done(&s->files);
    *s = (oms){.n_ignored = 0};
}
