/* cmd_verify.c: ingot verify: a bundle against a trusted key. */
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"
#include "ingot/audit.h"
#include "server/config.h"
#include "server/model_stage.h"

static ig_status verify(const char *bundle, const char *trusted, progress_line *line,
                        ig_audit_model *ret_model)
{
    AUTO(buf) model = {0}, sig = {0};
    buf_init(&sig, 0);
    TRY(file_join(&model, bundle, "model"));
    TRY(file_join(&sig, bundle, "model.sig"));
    return ig_audit_model_verify(model.data, sig.data, trusted, progress_show, line, ret_model);
}

/* The signature is good; may the release be used? What serve would refuse is said here already. */
static ig_status tell_release(const char *bundle, bool json)
{
    AUTO(buf) model = {0}, path = {0};
    release r;
    buf_init(&path, 0);
    TRY(file_join(&model, bundle, "model"));
    TRY(file_join(&path, model.data, "release.json"));
    if (!file_exists(path.data)) return IG_OK; /* signed by others */
    TRY(release_read(model.data, &r));
    if (!json)
        printf("  name %s, version %lld%s%s\n", r.name, (long long)r.version,
               *r.not_after ? ", last day of use " : "", r.not_after);
    if (release_check(&r) != IG_OK) {
        fprintf(stderr, "note: the server will refuse it: %s\n", ig_error_message());
        ig_error_clear();
    }
    return IG_OK;
}

static int run(int argc, char **argv)
{
    const char *trusted = config_table[SET_trust].dflt;
    bool json = false;
    text_list args;
    progress_line line;
    ig_audit_model m;
    int code;
    const option_info options[] = {
        {"trust", 0, "FILE|DIR", "trusted publisher keys; default /etc/ingot/trust", OPT_TEXT,
         &trusted, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &json, 0, 0},
        {0},
    };
    cli_parse("verify", argc, argv, options, &args, 1, 1, &code);
    if (code >= 0) return code;
    int64_t begin = clock_mono_us();
    progress_begin(&line, "verifying", NULL);
    ig_status s = verify(args.text[0], trusted, &line, &m);
    progress_end(&line);
    if (s != IG_OK) return cli_fail("verify", s);
    double seconds = (double)(clock_mono_us() - begin) * 1e-6;
    if (json) {
        cli_json("{\"bundle\":", args.text[0]);
        printf(",\"verified\":true,\"root\":\"%s\",\"key\":\"%s\",\"files\":%lld,"
               "\"bytes\":%lld,\"seconds\":%.3f}\n",
               m.root, m.fingerprint, (long long)m.n_files, (long long)m.n_bytes, seconds);
    } else {
        printf("%s: verified, %lld files, %.1f MB, %.2f s\n  root %s\n  key  %s\n", args.text[0],
               (long long)m.n_files, (double)m.n_bytes * 1e-6, seconds, m.root, m.fingerprint);
    }
    s = tell_release(args.text[0], json);
    return s == IG_OK ? EXIT_DONE : cli_fail("verify", s);
}

const command_info command_verify = {run};
