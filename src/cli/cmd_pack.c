/* cmd_pack.c: ingot pack: stage 1 without the signature. */
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "server/model_stage.h"

static void note(void *user, const char *text)
{
    (void)user;
    fputs("note: ", stderr);
    cli_put(stderr, str_of(text), false);
    fputc('\n', stderr);
}

/* "PATTERN=BITS" or "PATTERN=BITS:GROUP", BITS 0 to keep. */
static bool parse_rule(const char *text, char *pattern, size_t cap, convert_rule *ret_rule)
{
    const char *equals = strrchr(text, '='), *colon;
    int64_t bits, group = 0;
    if (!equals || equals == text || (size_t)(equals - text) >= cap) return false;
    colon = strchr(equals, ':');
    str b = {equals + 1, colon ? (size_t)(colon - equals - 1) : strlen(equals + 1)};
    if (!str_int(b, 0, 16, &bits) || (bits && bits != 4 && bits != 8 && bits != 16)) return false;
    if (colon && (!str_int(str_of(colon + 1), 32, 128, &group) ||
                  (group != 32 && group != 64 && group != 128)))
        return false;
    memcpy(pattern, text, (size_t)(equals - text));
    pattern[equals - text] = 0;
    *ret_rule = (convert_rule){pattern, (int)bits, (int)group};
    return true;
}

static int report(bool json, const char *bundle, const convert_result *r, const stage_report *s)
{
    double seconds = (double)s->us * 1e-6;
    if (json) {
        cli_json("{\"bundle\":", bundle);
        printf(",\"tensors\":%lld,\"parameters\":%lld,\"bytes\":%lld,"
               "\"shards\":%lld,\"bits_per_weight\":%.3f,\"seconds\":%.3f}\n",
               (long long)r->n_tensors, (long long)r->n_parameters, (long long)r->n_bytes,
               (long long)r->n_shards, r->bits_per_weight, seconds);
    } else {
        printf("%s: %lld tensors, %lld parameters, %.2f bits per weight, %.1f MB in %lld shards, "
               "%.2f s\nnext: ingot sign %s --key FILE\n",
               bundle, (long long)r->n_tensors, (long long)r->n_parameters, r->bits_per_weight,
               (double)r->n_bytes * 1e-6, (long long)r->n_shards, seconds, bundle);
    }
    return EXIT_DONE;
}

static int run(int argc, char **argv)
{
    package_options o = {0};
    int64_t bits = 0, group = 0, version = 1;
    bool json = false;
    text_list args, overrides = {{0}, 0};
    static char patterns[TEXT_LIST_MAX][256];
    convert_rule rules[TEXT_LIST_MAX];
    progress_line line;
    int code;
    const option_info options[] = {
        {"bits", 0, "4|8|16", "quantise matrices; default: keep what SRC has", OPT_INT, &bits, 4,
         16},
        {"group", 0, "32|64|128", "weights per scale; default 64", OPT_INT, &group, 32, 128},
        {"override", 0, "PATTERN=BITS[:GROUP]",
         "another format for matching matrices; BITS 0 keeps; may be repeated", OPT_LIST,
         &overrides, 0, 0},
        {"name", 0, "NAME", "model name; default: the bundle's last part", OPT_TEXT, &o.name, 0, 0},
        {"version", 0, "N", "release number; default 1", OPT_INT, &version, 0, (int64_t)1 << 40},
        {"not_after", 0, "YYYY-MM-DD", "last day of use", OPT_TEXT, &o.not_after, 0, 0},
        {"license", 0, "FILE", "licence text to ship", OPT_TEXT, &o.license_file, 0, 0},
        {"no_known_answer", 0, NULL, "leave kat.json out; such a bundle cannot be served", OPT_FLAG,
         &o.no_known_answer, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &json, 0, 0},
        {0},
    };
    cli_parse("pack", argc, argv, options, &args, 2, 2, &code);
    if (code >= 0) return code;
    if (bits && bits != 4 && bits != 8 && bits != 16)
        return cli_usage("pack", "--bits must be 4, 8 or 16");
    if (group && group != 32 && group != 64 && group != 128)
        return cli_usage("pack", "--group must be 32, 64 or 128");
    if (group && !bits && !overrides.n)
        return cli_usage("pack", "--group has no effect without --bits: what SRC has is kept");
    for (int i = 0; i < overrides.n; i++)
        if (!parse_rule(overrides.text[i], patterns[i], sizeof patterns[i], &rules[i]))
            return cli_usage("pack", "--override %s: expected PATTERN=BITS or PATTERN=BITS:GROUP",
                             overrides.text[i]);
    o.source = args.text[0];
    o.bundle = args.text[1];
    o.version = version;
    o.convert = (convert_options){.bits = (int)bits,
                                  .group = (int)group,
                                  .rules = rules,
                                  .n_rules = overrides.n,
                                  .progress = progress_show,
                                  .note = note,
                                  .user = &line};
    convert_result r;
    stage_report s;
    progress_begin(&line, "packing", NULL);
    ig_status status = package_run(&o, &r, &s);
    progress_end(&line);
    return status == IG_OK ? report(json, o.bundle, &r, &s) : cli_fail("pack", status);
}

const command_info command_pack = {run};
