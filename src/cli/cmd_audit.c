/* cmd_audit.c: ingot audit verify|prove|show: reading a log or a receipt with nothing but the
 * public key. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "audit/key.h"
#include "audit/scripts.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/cli.h"
#include "ingot/audit.h"

#define MAX_RECEIPT ((size_t)16 << 20)
#define MAX_TEXT ((size_t)1 << 30)
#define MAX_EVENT ((size_t)1 << 20)
#define MAX_EVENT_DEPTH 16

typedef struct audit_options {
    const char *vkey; /* file */
    const char *answer, *request, *known, *out, *split;
    int64_t choice;
    bool json;
} audit_options;

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* --- verify */
static void print_finding(void *user, const char *text)
{
    (void)user;
    fputs("found: ", stderr);
    cli_put(stderr, str_of(text), false);
    fputc('\n', stderr);
}

static ig_status verify_whole_log(const char *dir, const audit_options *o, const log_vkey *v)
{
    AUTO(buf) known = {0};
    progress_line line;
    ig_audit_log_report r = {0};
    buf_init(&known, 0);
    if (o->known) TRY(file_read(o->known, (size_t)1 << 16, &known));
    ig_audit_log_options lo = {.finding = print_finding,
                               .progress = progress_show,
                               .user = &line,
                               .known = o->known ? known.data : NULL};
    progress_begin(&line, "verifying", NULL);
    ig_status s = ig_audit_log_verify(dir, v->text, &lo, &r);
    progress_end(&line);
    printf(
        o->json
            ? "{\"verified\":%s,\"events\":%llu,\"signed\":%llu,\"sessions\":%llu,"
              "\"admits\":%llu,\"dones\":%llu,\"open\":%llu,\"findings\":%llu,\"root\":\"%s\"}\n"
            : "%s: %llu events, %llu of them under signed checkpoints; %llu starts of the server; "
              "%llu requests admitted, %llu ended, %llu open; %llu findings\n",
        o->json ? (s == IG_OK ? "true" : "false") : (s == IG_OK ? "verified" : "NOT verified"),
        (unsigned long long)r.size, (unsigned long long)r.signed_size,
        (unsigned long long)r.n_sessions, (unsigned long long)r.n_admits,
        (unsigned long long)r.n_dones, (unsigned long long)r.n_open,
        (unsigned long long)r.n_findings, r.root);
    if (!o->json && *r.root) printf("  root %s\n", r.root);
    return s;
}

static ig_status check_bytes(const ig_audit_receipt *r, const char *name, const char *what,
                             const char *path)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, MAX_TEXT, &text));
    ig_status s = ig_audit_receipt_check(r, name, text.data ? text.data : "", text.n);
    if (s == IG_EVERIFY)
        return ig_fail_context(s, "%s: not the %s that was recorded: ", path, what);
    return s == IG_OK ? s : ig_fail_context(s, "%s: ", path);
}

static ig_status open_receipt(const char *path, const log_vkey *v, ig_audit_receipt **ret_receipt)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, MAX_RECEIPT, &text));
    ig_status s = ig_audit_receipt_open(text.data ? text.data : "", text.n, v->text, ret_receipt);
    return s == IG_OK ? s : ig_fail_context(s, "%s: ", path);
}

static ig_status parse_event(const ig_audit_receipt *r, const char *which, json_t **ret_json)
{
    const char *text;
    size_t n;
    TRY(ig_audit_receipt_event(r, which, &text, &n));
    return json_parse(which, (str){text, n}, MAX_EVENT, MAX_EVENT_DEPTH, ret_json);
}

static const char *text_in(const json_t *event, const char *object, const char *key)
{
    const json_t *o = *object ? json_object_get(event, object) : event;
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "-";
}

/* Who answered, with which model, when: read from the three events that the receipt proves. */
static ig_status tell_receipt(const char *path, const audit_options *o, const ig_audit_receipt *r,
                              const log_vkey *v)
{
    if (o->json) {
        printf("{\"verified\":true,\"answer\":%s,\"request\":%s}\n", o->answer ? "true" : "null",
               o->request ? "true" : "null");
        return IG_OK;
    }
    AUTO(json_ptr) load = NULL, admit = NULL, done = NULL;
    TRY(parse_event(r, "load", &load));
    TRY(parse_event(r, "admit", &admit));
    TRY(parse_event(r, "done", &done));
    printf("%s: verified; answer %s, request %s\n"
           "  log      %s\n"
           "  model    %s, root %s\n"
           "           signed by key %s\n"
           "  request  %s, admitted %s\n"
           "  answer   %s%s%s, recorded %s\n",
           path, o->answer ? "matches" : "not given (--answer FILE)",
           o->request ? "matches" : "not given (--request FILE)", v->name,
           text_in(load, "model", "name"), text_in(load, "model", "root"), text_in(load, "", "key"),
           text_in(admit, "", "req"), text_in(admit, "", "t"), text_in(done, "", "status"),
           json_object_get(done, "finish") ? ", ended by " : "",
           json_object_get(done, "finish") ? text_in(done, "", "finish") : "",
           text_in(done, "", "t"));
    return IG_OK;
}

static ig_status verify_receipt(const char *path, const audit_options *o, const log_vkey *v)
{
    ig_audit_receipt *r = NULL;
    ig_status s = IG_OK;
    char name[32];
    TRY(open_receipt(path, v, &r));
    snprintf(name, sizeof name, "out.%lld", (long long)o->choice);
    if (o->answer) s = check_bytes(r, name, "answer", o->answer);
    if (s == IG_OK && o->request) s = check_bytes(r, "in.body", "request", o->request);
    if (s == IG_OK && o->split) s = ig_audit_receipt_split(r, o->split);
    if (s == IG_OK) s = tell_receipt(path, o, r, v);
    ig_audit_receipt_close(r);
    return s;
}

/* --- prove and show */
static ig_status open_log(const char *dir, const audit_options *o, ig_audit_log **ret_log)
{
    log_vkey v;
    TRY(log_vkey_read(o->vkey, &v));
    return ig_audit_log_open(dir, v.text, ret_log);
}

static ig_status write_out(const char *path, const char *text)
{
    if (path) return file_write_atomic(path, text, strlen(text), 0644);
    fputs(text, stdout);
    return IG_OK;
}

static ig_status find_index(ig_audit_log *l, const char *what, uint64_t *ret_index)
{
    int64_t n;
    if (str_int(str_of(what), 0, INT64_MAX, &n)) {
        *ret_index = (uint64_t)n;
        return IG_OK;
    }
    return ig_audit_log_find(l, what, ret_index);
}

static ig_status prove(const char *dir, const char *what, const audit_options *o)
{
    ig_audit_log *l = NULL;
    char *text = NULL;
    uint64_t index;
    TRY(open_log(dir, o, &l));
    ig_status s = find_index(l, what, &index);
    if (s == IG_OK) s = ig_audit_log_prove(l, index, &text);
    if (s == IG_OK) s = write_out(o->out, text);
    if (s == IG_OK && o->split) {
        ig_audit_receipt *r = NULL;
        log_vkey v;
        s = log_vkey_read(o->vkey, &v);
        if (s == IG_OK) s = ig_audit_receipt_open(text, strlen(text), v.text, &r);
        if (s == IG_OK) s = ig_audit_receipt_split(r, o->split);
        ig_audit_receipt_close(r);
    }
    ig_audit_text_free(text);
    ig_audit_log_close(l);
    return s;
}

static ig_status show_events(ig_audit_log *l, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++) {
        char *text = NULL;
        TRY(ig_audit_log_event(l, i, &text));
        printf("%llu %s\n", (unsigned long long)i, text);
        ig_audit_text_free(text);
    }
    return IG_OK;
}

/* A request is two events: done names its admit. */
static ig_status show_request(ig_audit_log *l, const char *id)
{
    AUTO(json_ptr) done = NULL;
    char *text = NULL;
    uint64_t index;
    TRY(ig_audit_log_find(l, id, &index));
    TRY(ig_audit_log_event(l, index, &text));
    ig_status s = json_parse("done", str_of(text), MAX_EVENT, MAX_EVENT_DEPTH, &done);
    ig_audit_text_free(text);
    if (s != IG_OK) return s;
    const json_t *admit = json_object_get(json_object_get(done, "admit"), "i");
    TRY(show_events(l, (uint64_t)json_integer_value(admit), 1));
    return show_events(l, index, 1);
}

static ig_status show_receipt(const char *path, const audit_options *o)
{
    static const char *const which[] = {"load", "admit", "done"};
    ig_audit_receipt *r = NULL;
    log_vkey v;
    const char *text;
    size_t n;
    TRY(log_vkey_read(o->vkey, &v));
    TRY(open_receipt(path, &v, &r));
    ig_status s = IG_OK;
    for (size_t i = 0; i < N_ELEM(which) && s == IG_OK; i++)
        if ((s = ig_audit_receipt_event(r, which[i], &text, &n)) == IG_OK)
            printf("%.*s\n", (int)n, text);
    ig_audit_receipt_close(r);
    return s;
}

static ig_status show(const char *path, const char *what, const audit_options *o)
{
    ig_audit_log *l = NULL;
    int64_t n;
    if (is_file(path)) return show_receipt(path, o);
    TRY(open_log(path, o, &l));
    ig_status s = !what ? show_events(l, 0, ig_audit_log_size(l))
                  : str_int(str_of(what), 0, INT64_MAX, &n) ? show_events(l, (uint64_t)n, 1)
                                                            : show_request(l, what);
    ig_audit_log_close(l);
    return s;
}

static ig_status verify(const char *path, const audit_options *o)
{
    log_vkey v;
    TRY(log_vkey_read(o->vkey, &v));
    if (!file_exists(path)) return ig_fail(IG_ENOTFOUND, "%s: not there", path);
    return is_file(path) ? verify_receipt(path, o, &v) : verify_whole_log(path, o, &v);
}

static int run(int argc, char **argv)
{
    audit_options o = {0};
    text_list args;
    int code;
    const option_info options[] = {
        {"key", 0, "FILE", "the log's verifier key (.vkey)", OPT_TEXT, &o.vkey, 0, 0},
        {"answer", 0, "FILE", "verify RECEIPT: the answer's text, exactly", OPT_TEXT, &o.answer, 0,
         0},
        {"choice", 0, "I", "verify RECEIPT: which choice the answer is; default 0", OPT_INT,
         &o.choice, 0, 7},
        {"request", 0, "FILE", "verify RECEIPT: the raw request body", OPT_TEXT, &o.request, 0, 0},
        {"known", 0, "FILE",
         "verify LOG: a checkpoint from an earlier visit, which the log must extend", OPT_TEXT,
         &o.known, 0, 0},
        {"out", 0, "FILE", "prove: where to write the receipt; default standard output", OPT_TEXT,
         &o.out, 0, 0},
        {"split", 0, "DIR", "also write leaves and tlog-proofs as files of their own", OPT_TEXT,
         &o.split, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &o.json, 0, 0},
        {0},
    };
    cli_parse("audit", argc, argv, options, &args, 2, 3, &code);
    if (code == EXIT_DONE)
        printf("\n  audit verify LOG|RECEIPT   audit prove LOG ID|INDEX   audit show LOG "
               "[ID|INDEX]   audit show RECEIPT   audit script FILE (writes check.sh)\n");
    if (code >= 0) return code;
    const char *what = args.text[0], *path = args.text[1],
               *more = args.n == 3 ? args.text[2] : NULL;
    ig_status s;
    if (!o.vkey && (!strcmp(what, "verify") || !strcmp(what, "prove") || !strcmp(what, "show")))
        return cli_usage("audit", "--key FILE is needed: the log's verifier key (.vkey)");
    if (!strcmp(what, "verify"))
        s = verify(path, &o);
    else if (!strcmp(what, "prove") && more)
        s = prove(path, more, &o);
    else if (!strcmp(what, "show"))
        s = show(path, more, &o);
    else if (!strcmp(what, "script"))
        s = scripts_write_check(path);
    else
        return cli_usage(
            "audit",
            "expected verify LOG|RECEIPT, prove LOG ID|INDEX, show LOG [ID|INDEX], show RECEIPT "
            "or script FILE");
    return s == IG_OK ? EXIT_DONE : cli_fail("audit", s);
}

const command_info command_audit = {run};
