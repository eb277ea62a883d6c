/* auditlog.c: audit events and small logs for tests. */
#include "support/auditlog.h"
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t digest[SHA256_N] = {1, 2, 3, 4};
static const uint32_t prompt_ids[] = {1, 2, 70000};
static const uint32_t answer_ids[] = {42, 43};

void auditlog_common(event *e)
{
    event_str(e, EV_ANY_T, "2026-01-02T03:04:05.678901Z");
    event_int(e, EV_ANY_MONO, 123456);
    event_hex(e, EV_ANY_BOOT, "12345678");
    event_str(e, EV_ANY_SRV, "test");
}

void auditlog_boot(event *e, const audit_log *l)
{
    uint8_t mach[SHA256_N];
    audit_log_mach(l, mach);
    event_init(e, EVENT_BOOT);
    event_str(e, EV_BOOT_VER, "0.1.0");
    event_hex(e, EV_BOOT_ENG_BUILD, digest);
    event_str(e, EV_BOOT_ENG_ISA, "ref");
    event_int(e, EV_BOOT_ENG_THREADS, 2);
    event_str(e, EV_BOOT_CPU, "Test CPU (2 cores)");
    event_hex(e, EV_BOOT_MACH, mach);
    event_hex(e, EV_BOOT_CFG, digest);
    event_str(e, EV_BOOT_CLOCK_SOURCE, "unknown");
}

void auditlog_load(event *e)
{
    event_init(e, EVENT_LOAD);
    event_hex(e, EV_LOAD_MODEL_ROOT, digest);
    event_hex(e, EV_LOAD_MODEL_SIG, digest);
    event_str(e, EV_LOAD_MODEL_NAME, "test-model");
    event_int(e, EV_LOAD_MODEL_VER, 1);
    event_int(e, EV_LOAD_MODEL_FILES, 3);
    event_int(e, EV_LOAD_MODEL_BYTES, 1000);
    event_hex(e, EV_LOAD_KEY, digest);
    event_str(e, EV_LOAD_VERIFIED, "full");
    event_str(e, EV_LOAD_RESIDENCY, "mapped");
    event_int(e, EV_LOAD_WRITABLE, 0);
    event_str(e, EV_LOAD_ENG_KSET, "k1");
    event_str(e, EV_LOAD_ENG_KV, "f16");
}

void auditlog_secret(commit_secret *ret_secret) { memset(ret_secret->b, 7, sizeof ret_secret->b); }

void auditlog_admit(event *e, const char *req, const audit_ref *load)
{
    commit_secret secret;
    uint8_t commit[SHA256_N] = {0};
    auditlog_secret(&secret);
    event_init(e, EVENT_ADMIT);
    if (commit_make(&secret, "in.body", AUDITLOG_BODY, strlen(AUDITLOG_BODY), commit) != IG_OK)
        return;
    event_str(e, EV_ADMIT_REQ, req);
    event_str(e, EV_ADMIT_KIND, "request");
    event_str(e, EV_ADMIT_API, "chat");
    event_int(e, EV_ADMIT_LOAD_I, (int64_t)load->index);
    event_hex(e, EV_ADMIT_LOAD_H, load->leaf.b);
    event_hex(e, EV_ADMIT_MODEL_ROOT, digest);
    event_str(e, EV_ADMIT_ENG_KSET, "k1");
    event_str(e, EV_ADMIT_ENG_KV, "f16");
    event_hex(e, EV_ADMIT_IN_COMMIT, commit);
    event_int(e, EV_ADMIT_IN_BYTES, (int64_t)strlen(AUDITLOG_BODY));
    event_int(e, EV_ADMIT_P_N, 1);
    event_int(e, EV_ADMIT_P_STREAM, 1);
    event_int(e, EV_ADMIT_P_MAX_TOKENS, 256);
    event_str(e, EV_ADMIT_P_TEMPERATURE, "0.7");
    event_str(e, EV_ADMIT_P_TOP_P, "1");
    event_int(e, EV_ADMIT_P_TOP_K, 0);
    event_str(e, EV_ADMIT_P_MIN_P, "0");
    event_str(e, EV_ADMIT_P_REPETITION, "1");
    event_str(e, EV_ADMIT_P_PRESENCE, "0");
    event_str(e, EV_ADMIT_P_FREQUENCY, "0");
    event_int(e, EV_ADMIT_P_LOGPROBS, 0);
    event_int(e, EV_ADMIT_P_N_STOP, 0);
    event_int(e, EV_ADMIT_P_N_BIAS, 0);
    event_str(e, EV_ADMIT_SEED_VALUE, "18446744073709551615");
    event_str(e, EV_ADMIT_SEED_FROM, "client");
}

void auditlog_done(event *e)
{
    event_init(e, EVENT_DONE);
    event_str(e, EV_DONE_STATUS, "cancelled");
    event_str(e, EV_DONE_FINISH, "none");
    event_int(e, EV_DONE_HTTP, 0);
    event_int(e, EV_DONE_SENT, 0);
}

void auditlog_done_full(event *e)
{
    commit_secret secret;
    event_commit out = {.n = (int64_t)strlen(AUDITLOG_ANSWER)}, tout = {.n = 2};
    uint8_t ids[SHA256_N];
    auditlog_secret(&secret);
    auditlog_done(e);
    if (commit_make(&secret, "out.0", AUDITLOG_ANSWER, strlen(AUDITLOG_ANSWER), out.commit) ||
        commit_make_ids(&secret, "tout.0", answer_ids, 2, tout.commit) ||
        commit_make_ids(&secret, "in.ids", prompt_ids, 3, ids))
        return;
    event_str(e, EV_DONE_STATUS, "ok");
    event_str(e, EV_DONE_FINISH, "stop");
    event_int(e, EV_DONE_HTTP, 200);
    event_hex(e, EV_DONE_IN_IDS, ids);
    event_int(e, EV_DONE_IN_N, 3);
    event_commits(e, EV_DONE_OUT, &out, 1);
    event_commits(e, EV_DONE_TOUT, &tout, 1);
}

void auditlog_denied(event *e)
{
    event_init(e, EVENT_DENIED);
    event_str(e, EV_DENIED_API, "chat");
    event_str(e, EV_DENIED_REASON, "overload");
    event_int(e, EV_DENIED_HTTP, 503);
    event_int(e, EV_DENIED_N, 1);
}

ig_status auditlog_open(const char *dir, const log_key *key, audit_log **ret_log)
{
    audit_log_options o = {
        .dir = dir, .key = key, .create = true, .srv = "test", .segment_bytes = SEGMENT_MIN_BYTES};
    return audit_log_open(&o, ret_log);
}

ig_status auditlog_start(audit_log *l, audit_ref *ret_load)
{
    event e;
    audit_ref ref;
    audit_token *probe;
    auditlog_boot(&e, l);
    TRY(audit_append(l, &e, &ref));
    auditlog_load(&e);
    TRY(audit_load(l, &e, &probe));
    *ret_load = *audit_token_ref(probe);
    audit_token_free(probe);
    return IG_OK;
}

ig_status auditlog_request(audit_log *l, const char *req, const audit_ref *load,
                           audit_ref *ret_done)
{
    event e;
    audit_token *t;
    auditlog_admit(&e, req, load);
    TRY(audit_admit(l, &e, &t));
    auditlog_done_full(&e);
    ig_status st = audit_done(t, &e, ret_done);
    audit_token_free(t);
    return st;
}

size_t auditlog_n_segments(const char *dir)
{
    char pattern[1024];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/segments/*.seg", dir);
    size_t n = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
    globfree(&found);
    return n;
}

static void ignore(void *user, ig_status status, const audit_ref *ref)
{
    (void)user, (void)status, (void)ref;
}

ig_status auditlog_fill(audit_log *l, size_t n)
{
    event e;
    audit_ref ref;
    for (size_t i = 0; i < n; i++) {
        auditlog_denied(&e);
        if (i + 1 < n && audit_append_async(l, &e, ignore, NULL) == IG_OK) continue;
        ig_error_clear();
        for (int tries = 0; audit_append(l, &e, &ref) != IG_OK; tries++) {
            if (tries == 2000 || audit_log_alive(l) != IG_OK) return IG_ELIMIT;
            usleep(1000); /* no room yet: the writer is behind, or it waits to try again */
        }
    }
    return IG_OK;
}
