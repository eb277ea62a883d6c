/* cmd_sign.c: ingot sign: model.sig of a bundle. */
#include <stdio.h>
#include "audit/sign.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/cli.h"

static ig_status sign(const char *bundle, const char *key_path, progress_line *line,
                      uint8_t root[SHA256_N])
{
    AUTO(buf) model = {0}, sig = {0};
    AUTO(publisher_key_ptr) key = NULL;
    manifest_options o = {.progress = progress_show, .user = line};
    buf_init(&sig, 0);
    TRY(file_join(&model, bundle, "model"));
    TRY(file_join(&sig, bundle, "model.sig"));
    TRY(publisher_key_read_private(key_path, &key));
    return oms_sign_dir(model.data, key, sig.data, &o, root);
}

static int run(int argc, char **argv)
{
    const char *key = NULL;
    bool json = false;
    text_list args;
    progress_line line;
    uint8_t root[SHA256_N];
    char hex[65];
    int code;
    const option_info options[] = {
        {"key", 0, "FILE", "private publisher key (ingot keygen publisher)", OPT_TEXT, &key, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &json, 0, 0},
        {0},
    };
    cli_parse("sign", argc, argv, options, &args, 1, 1, &code);
    if (code >= 0) return code;
    if (!key) return cli_usage("sign", "--key FILE is needed");
    int64_t begin = clock_mono_us();
    progress_begin(&line, "hashing", NULL);
    ig_status s = sign(args.text[0], key, &line, root);
    progress_end(&line);
    if (s != IG_OK) return cli_fail("sign", s);
    for (int i = 0; i < SHA256_N; i++) snprintf(hex + 2 * i, 3, "%02x", root[i]);
    double seconds = (double)(clock_mono_us() - begin) * 1e-6;
    if (json) {
        cli_json("{\"bundle\":", args.text[0]);
        printf(",\"root\":\"%s\",\"seconds\":%.3f}\n", hex, seconds);
    } else {
        printf("%s/model.sig: root %s, %.2f s\n", args.text[0], hex, seconds);
    }
    return EXIT_DONE;
}

const command_info command_sign = {run};
