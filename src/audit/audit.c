/* audit.c: the public calls of ingot/audit.h over the parts of this folder. */
#include "ingot/audit.h"

#include <string.h>

#include "audit/receipt.h"
#include "audit/sign.h"
#include "audit/store.h"
#include "audit/verify.h"

static void put_hex(char out[65], const uint8_t d[SHA256_N])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_N; i++) {
        out[2 * i] = digits[d[i] >> 4];
        out[2 * i + 1] = digits[d[i] & 15];
    }
    out[64] = 0;
}

ig_status ig_audit_model_verify(const char *model_dir, const char *sig_path, const char *trust_path,
                                ig_audit_progress progress, void *user, ig_audit_model *ret_model)
{
    AUTO(oms) s = {.n_ignored = 0};
    manifest_options o = {.progress = progress, .user = user};
    TRY(oms_verify(model_dir, sig_path, trust_path, &o, &s));
    ig_audit_model m = {.n_files = (int64_t)s.files.n, .n_bytes = s.files.n_bytes};
    put_hex(m.root, s.root);
    memcpy(m.fingerprint, s.fingerprint, sizeof m.fingerprint);
    (void)strncpy(m.name, s.name, sizeof m.name - 1);
    *ret_model = m;
    return IG_OK;
}

/* ---- receipts ---- */

struct ig_audit_receipt {
    receipt *r;
};

ig_status ig_audit_receipt_open(const void *text, size_t n_bytes, const char *vkey,
                                ig_audit_receipt **ret_receipt)
{
    log_vkey v;
    TRY(log_vkey_parse("log key", str_of(vkey), &v));
    ig_audit_receipt *r = mem_calloc(1, sizeof *r);
    if (!r) return IG_ENOMEM;
    ig_status st = receipt_open("receipt", (str){text, n_bytes}, &v, &r->r);
    if (st != IG_OK) {
        mem_free(r);
        return st;
    }
    *ret_receipt = r;
    return IG_OK;
}

void ig_audit_receipt_close(ig_audit_receipt *r)
{
    if (!r) return;
    receipt_free(r->r);
    mem_free(r);
}

ig_status ig_audit_receipt_event(const ig_audit_receipt *r, const char *which,
                                 const char **ret_json, size_t *ret_n)
{
    static const char *const names[RECEIPT_N_LEAVES] = {"load", "admit", "done"};
    for (receipt_leaf i = 0; i < RECEIPT_N_LEAVES; i++)
        if (strcmp(which, names[i]) == 0) {
            *ret_json = r->r->parts[i].leaf.p;
            *ret_n = r->r->parts[i].leaf.n;
            return IG_OK;
        }
    return ig_fail(IG_EINVAL, "a receipt has load, admit and done, no \"%s\"", which);
}

ig_status ig_audit_receipt_check(const ig_audit_receipt *r, const char *name, const void *bytes,
                                 size_t n)
{
    return receipt_check(r->r, name, bytes, n);
}

ig_status ig_audit_receipt_opened(const ig_audit_receipt *r, const char *name,
                                  const void **ret_bytes, size_t *ret_n)
{
    str bytes;
    if (!receipt_opened(r->r, name, &bytes))
        return ig_fail(IG_ENOTFOUND,
                       "this receipt does not carry \"%s\"; the one that came with the answer does",
                       name);
    *ret_bytes = bytes.p;
    *ret_n = bytes.n;
    return IG_OK;
}

ig_status ig_audit_receipt_split(const ig_audit_receipt *r, const char *dir)
{
    return receipt_split(r->r, dir);
}

/* ---- logs ---- */

ig_status ig_audit_log_verify(const char *dir, const char *vkey,
                              const ig_audit_log_options *options, ig_audit_log_report *ret_report)
{
    log_vkey v;
    TRY(log_vkey_parse("log key", str_of(vkey), &v));
    return verify_log(dir, &v, options, ret_report);
}

struct ig_audit_log {
    store *s;
};

ig_status ig_audit_log_open(const char *dir, const char *vkey, ig_audit_log **ret_log)
{
    log_vkey v;
    TRY(log_vkey_parse("log key", str_of(vkey), &v));
    ig_audit_log *l = mem_calloc(1, sizeof *l);
    if (!l) return IG_ENOMEM;
    ig_status st = store_open(dir, &v, NULL, &l->s);
    if (st != IG_OK) {
        mem_free(l);
        return st;
    }
    *ret_log = l;
    return IG_OK;
}

void ig_audit_log_close(ig_audit_log *l)
{
    if (!l) return;
    store_free(l->s);
    mem_free(l);
}

uint64_t ig_audit_log_size(ig_audit_log *l) { return store_size(l->s); }

ig_status ig_audit_log_event(ig_audit_log *l, uint64_t index, char **ret_json)
{
    AUTO(buf) leaf = {0};
    buf_init(&leaf, 0);
    TRY(store_leaf(l->s, index, &leaf));
    *ret_json = buf_take(&leaf);
    return IG_OK;
}

ig_status ig_audit_log_find(ig_audit_log *l, const char *request, uint64_t *ret_index)
{
    return store_find_done(l->s, request, ret_index);
}

ig_status ig_audit_log_prove(ig_audit_log *l, uint64_t done, char **ret_receipt)
{
    AUTO(buf) text = {0};
    buf_init(&text, 0);
    TRY(receipt_write(l->s, done, NULL, NULL, 0, &text));
    *ret_receipt = buf_take(&text);
    return IG_OK;
}

void ig_audit_text_free(char *text) { mem_free(text); }
