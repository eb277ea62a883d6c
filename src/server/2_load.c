/* 2_load.c: a bundle becomes a verified, mapped, bound model.
 * takes    a bundle (model/, model.sig) and a trusted key from outside it
 * gives    an ig_lm over mapped files, all hashed against the signature; the durable load event
 * refuses  a signature by no trusted key, a file that differs, is missing, unlisted or a link; an
 * expired release or one for a newer engine;
 *          files that this user may write, unless allowed; tensors that the config has no place
 *          for, or the other way round
 * touches  the bundle (read only), the log. Limit: storage and verification. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "ingot/ingot.h"
#include "ingot/io.h"
#include "server/model_stage.h"
#include "server/tensors.h"

#define MAX_RELEASE ((size_t)1 << 16)

static ig_status copy_text(const char *what, const char *key, str s, char *out, size_t cap)
{
    if (s.n >= cap)
        return ig_fail(IG_EFORMAT, "%s: %s is longer than %zu bytes", what, key, cap - 1);
    memcpy(out, s.p ? s.p : "", s.n);
    out[s.n] = 0;
    return IG_OK;
}

/* "1.2.3" as a number to compare, each part below 1000; -1: it is no version. */
static int64_t engine_number(const char *v)
{
    int64_t number = 0, part;
    for (int i = 0; i < 3; i++) {
        size_t n = strcspn(v, ".");
        if (!str_int((str){v, n}, 0, 999, &part)) return -1;
        number = number * 1000 + part;
        v += n + (v[n] && i < 2);
    }
    return *v ? -1 : number;
}

bool release_date_valid(const char *date)
{
    static const char shape[] = "dddd-dd-dd";
    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'd' ? date[i] < '0' || date[i] > '9' : date[i] != shape[i]) return false;
    return true;
}

ig_status release_read(const char *model_dir, release *ret_release)
{
    AUTO(buf) path = {0}, text = {0};
    AUTO(json_ptr) root = NULL;
    release r = {0};
    str name, not_after, engine;
    buf_init(&text, 0);
    TRY(file_join(&path, model_dir, "release.json"));
    TRY(file_read(path.data, MAX_RELEASE, &text));
    TRY(json_parse(path.data, (str){text.data, text.n}, MAX_RELEASE, 8, &root));
    TRY(json_get_str(path.data, root, "name", &name));
    TRY(json_get_int(path.data, root, "version", 0, (int64_t)1 << 53, &r.version));
    TRY(json_opt_str(path.data, root, "not_after", &not_after));
    TRY(json_opt_str(path.data, root, "min_engine", &engine));
    TRY(copy_text(path.data, "name", name, r.name, sizeof r.name));
    TRY(copy_text(path.data, "not_after", not_after, r.not_after, sizeof r.not_after));
    TRY(copy_text(path.data, "min_engine", engine, r.min_engine, sizeof r.min_engine));
    /* a limit that cannot be read must not pass as none */
    if (*r.not_after && !release_date_valid(r.not_after))
        return ig_fail(IG_EFORMAT, "%s: not_after: '%s' is no date YYYY-MM-DD", path.data,
                       r.not_after);
    if (*r.min_engine && engine_number(r.min_engine) < 0)
        return ig_fail(IG_EFORMAT, "%s: min_engine: '%s' is no version like 1.2.3", path.data,
                       r.min_engine);
    *ret_release = r;
    return IG_OK;
}

ig_status release_check(const release *r)
{
    char today[16];
    time_t now = (time_t)(clock_wall_us() / 1000000);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(today, sizeof today, "%Y-%m-%d", &tm);
    if (*r->not_after && strcmp(today, r->not_after) > 0)
        return ig_fail(
            IG_EVERIFY,
            "%s version %lld may not be used after %s (today is %s): get a newer release", r->name,
            (long long)r->version, r->not_after, today);
    if (engine_number(r->min_engine) > engine_number(IG_VERSION))
        return ig_fail(IG_EVERIFY, "%s version %lld needs Ingot %s or newer; this is %s", r->name,
                       (long long)r->version, r->min_engine, IG_VERSION);
    return IG_OK;
}

/* The system is asked, because it knows about groups, access lists and read-only mounts. */
static ig_status check_writable(server *sv, const oms *s, const char *model_dir)
{
    for (size_t i = 0; i < s->files.n; i++) {
        AUTO(buf) path = {0};
        TRY(file_join(&path, model_dir, s->files.files[i].name));
        if (faccessat(AT_FDCWD, path.data, W_OK, AT_EACCESS)) continue;
        sv->model.writable = true;
        if (!sv->config.number[SET_allow_writable])
            return ig_fail(
                IG_EVERIFY,
                "%s can be written by the user that runs this server: give the model to another "
                "user, read-only, or "
                "allow it with --allow-writable (the load event will say so)",
                s->files.files[i].name);
    }
    return IG_OK;
}

static int64_t time_ns(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           time_ns(a->st_mtim) == time_ns(b->st_mtim) && time_ns(a->st_ctim) == time_ns(b->st_ctim);
}

/* What was read by name (config, tokenizer, template, release) is what was hashed: called when all
 * of it has been read. */
static ig_status check_unchanged(const oms *s, const char *model_dir)
{
    for (size_t i = 0; i < s->files.n; i++) {
        AUTO(buf) path = {0};
        struct stat now;
        TRY(file_join(&path, model_dir, s->files.files[i].name));
        if (lstat(path.data, &now) || !same_file(&now, &s->files.files[i].st))
            return ig_fail(IG_EVERIFY, "%s: changed between its verification and its use",
                           path.data);
    }
    return IG_OK;
}

/* What is mapped is what was hashed. */
static ig_status check_mapped(const ig_lm *lm, const oms *s, const char *model_dir)
{
    size_t n_dir = strlen(model_dir) + 1;
    for (int64_t i = 0; i < ig_lm_n_files(lm); i++) {
        ig_weights_file f;
        TRY(ig_lm_file_at(lm, i, &f));
        const manifest_file *signed_file = oms_find(s, str_of(f.path + n_dir));
        if (!signed_file)
            return ig_fail(IG_EVERIFY, "%s: mapped, but the signature does not list it", f.path);
        const struct stat *st = &signed_file->st;
        if ((uint64_t)st->st_dev != f.dev || (uint64_t)st->st_ino != f.ino ||
            (int64_t)st->st_size != f.n_bytes || time_ns(st->st_mtim) != f.mtime_ns ||
            time_ns(st->st_ctim) != f.ctime_ns)
            return ig_fail(IG_EVERIFY, "%s: changed between its verification and its mapping",
                           f.path);
    }
    return IG_OK;
}

static ig_status open_model(server *sv, const char *model_dir)
{
    const config *c = &sv->config;
    ig_dtype kv_type = IG_F16;
    if (!ig_dtype_of_name(c->text[SET_kv_type], &kv_type))
        return ig_fail(IG_EINVAL, "%s: there is no such KV type: float16, bfloat16, int8, float32",
                       c->text[SET_kv_type]);
    ig_lm_options o = {
        .context = c->number[SET_context],
        .kv_tokens = c->number[SET_kv_tokens],
        .kv_type = kv_type,
        .max_tokens = (int32_t)c->number[SET_step_tokens],
        .max_sessions = (int32_t)c->number[SET_sessions],
        .max_outputs = (int32_t)c->number[SET_sessions],
        .arithmetic = strcmp(c->text[SET_arithmetic], "exact") ? IG_LM_INT8 : IG_LM_EXACT,
        .no_prefix_cache = (int)c->number[SET_no_prefix_cache],
        .progress = sv->callbacks.progress,
        .progress_user = sv->callbacks.user,
    };
    TRY(ig_lm_open(model_dir, &o, &sv->model.lm));
    ig_lm_get_facts(sv->model.lm, &sv->model.facts);
    return IG_OK;
}

static void describe(server *sv, const oms *s, const release *r)
{
    served *m = &sv->model;
    const manifest_file *tok = oms_find(s, str_of("tokenizer.json")),
                        *tmpl = oms_find(s, str_of("chat_template.jinja"));
    if (!tmpl) tmpl = oms_find(s, str_of("tokenizer_config.json"));
    memcpy(m->name, r->name, sizeof m->name);
    m->version = r->version;
    memcpy(m->root, s->root, SHA256_N);
    memcpy(m->sig, s->sig, SHA256_N);
    memcpy(m->key, s->fingerprint, sizeof m->key);
    m->n_files = (int64_t)s->files.n;
    m->n_bytes = s->files.n_bytes;
    if (tok) memcpy(m->tok, tok->digest, SHA256_N);
    m->has_tmpl = tmpl != NULL;
    if (tmpl) memcpy(m->tmpl, tmpl->digest, SHA256_N);
    snprintf(m->fingerprint, sizeof m->fingerprint, "fp_%02x%02x%02x%02x%02x%02x", m->root[0],
             m->root[1], m->root[2], m->root[3], m->root[4], m->root[5]);
}

static ig_status log_load(server *sv, int64_t us_hash, audit_token **ret_probe)
{
    const served *m = &sv->model;
    uint8_t key[SHA256_N];
    event *e = mem_alloc(sizeof *e);
    if (!e) return IG_ENOMEM;
    event_init(e, EVENT_LOAD);
    event_hex(e, EV_LOAD_MODEL_ROOT, m->root);
    event_hex(e, EV_LOAD_MODEL_SIG, m->sig);
    event_str(e, EV_LOAD_MODEL_NAME, m->name);
    event_int(e, EV_LOAD_MODEL_VER, m->version);
    event_int(e, EV_LOAD_MODEL_FILES, m->n_files);
    event_int(e, EV_LOAD_MODEL_BYTES, m->n_bytes);
    if (hex_decode(str_of(m->key), key, sizeof key)) event_hex(e, EV_LOAD_KEY, key);
    event_str(e, EV_LOAD_VERIFIED, "full");
    event_str(e, EV_LOAD_RESIDENCY, "mapped");
    event_int(e, EV_LOAD_WRITABLE, m->writable);
    event_str(e, EV_LOAD_ENG_KSET, m->facts.kset);
    event_str(e, EV_LOAD_ENG_KV, m->facts.kv_type);
    if (m->has_tmpl) event_hex(e, EV_LOAD_TMPL, m->tmpl);
    event_hex(e, EV_LOAD_TOK, m->tok);
    event_int(e, EV_LOAD_US_HASH, us_hash);
    ig_status s = audit_load(sv->log, e, ret_probe);
    mem_free(e);
    return s;
}

ig_status load_run(server *sv, ready_times *times, audit_token **ret_probe)
{
    AUTO(buf) model_dir = {0}, sig = {0};
    AUTO(oms) s = {0};
    release r;
    const char *bundle = sv->config.text[SET_bundle];
    manifest_options o = {.n_threads = (int)sv->config.number[SET_threads],
                          .progress = sv->callbacks.progress,
                          .user = sv->callbacks.user};
    buf_init(&sig, 0);
    if (!*bundle) {
        buf_init(&model_dir, 0);
        return ig_fail(IG_EINVAL, "no bundle is given: --bundle DIR");
    }
    TRY(file_join(&model_dir, bundle, "model"));
    TRY(file_join(&sig, bundle, "model.sig"));
    server_phase(sv, "verifying");
    ig_status verified = oms_verify(model_dir.data, sig.data, sv->config.text[SET_trust], &o, &s);
    if (verified == IG_EVERIFY) tensors_name_damage(model_dir.data, verified);
    TRY(verified);
    ready_mark(times, READY_HASH);
    times->hash_bytes = s.files.n_bytes;
    TRY(release_read(model_dir.data, &r));
    TRY(release_check(&r));
    TRY(check_writable(sv, &s, model_dir.data));
    TRY(open_model(sv, model_dir.data));
    TRY(check_mapped(sv->model.lm, &s, model_dir.data));
    TRY(check_unchanged(&s, model_dir.data));
    describe(sv, &s, &r);
    ready_mark(times, READY_BIND);
    ready_move(times, READY_BIND, READY_TEXT, sv->model.facts.times.text_us);
    TRY(log_load(sv, times->us[READY_HASH], ret_probe));
    sv->model.load = *audit_token_ref(*ret_probe);
    ready_mark(times, READY_LOADED);
    stage_count(&sv->stage[STAGE_LOAD].units, s.files.n_bytes);
    stage_count(&sv->stage[STAGE_LOAD].us, ready_stage_us(times, STAGE_LOAD));
    return IG_OK;
}
