/* cli.c: option parsing by table, messages, the progress line. */
#include "cli/cli.h"
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"

typedef struct command_row {
    const char *name, *arguments, *doc;
} command_row;
static const command_row commands[] = {
#define COMMAND(name, arguments, doc) {#name, arguments, doc},
#include "cli/commands.def"
#undef COMMAND
};

static const command_row *find_command(const char *name)
{
    for (size_t i = 0; i < N_ELEM(commands); i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

/* The name as it is typed: no_known_answer is --no-known-answer. */
typedef struct dashed {
    char name[48];
} dashed;
static dashed dash(const char *name)
{
    dashed d;
    snprintf(d.name, sizeof d.name, "%s", name);
    for (char *p = d.name; *p; p++)
        if (*p == '_') *p = '-';
    return d;
}

#define LEFT 32 /* column of names and values; a longer one has a line of its own */

void cli_help(const char *command, const option_info *options)
{
    const command_row *row = find_command(command);
    if (row)
        printf("ingot %s%s%s\n  %s\n", command, *row->arguments ? " " : "", row->arguments,
               row->doc);
    for (const option_info *o = options; o && o->name; o++) {
        char left[96];
        int n = snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                         o->letter ? o->letter : ' ', o->letter ? ", " : "  ", dash(o->name).name,
                         o->arg ? " " : "", o->arg ? o->arg : "");
        if (n > LEFT)
            printf("  %s\n  %-*s %s\n", left, LEFT, "", o->doc);
        else
            printf("  %-*s %s\n", LEFT, left, o->doc);
    }
}

int cli_no_command(const char *name)
{
    fprintf(stderr, "ingot: there is no command '%s'; try: ingot help\n", name);
    return EXIT_USAGE;
}

int cli_usage(const char *command, const char *format, ...)
{
    va_list args;
    fprintf(stderr, "ingot %s: ", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\ntry: ingot help %s\n", command);
    return EXIT_USAGE;
}

/* Bytes of the control character at p (C0, DEL, or a C1 in UTF-8), or 0. */
static size_t control_at(str text, size_t i, bool lines)
{
    unsigned char c = (unsigned char)text.p[i];
    if (lines && (c == '\n' || c == '\t')) return 0;
    if (c < ' ' || c == 0x7F) return 1;
    return c == 0xC2 && i + 1 < text.n && ((unsigned char)text.p[i + 1] & 0xE0) == 0x80 ? 2 : 0;
}

void cli_put(FILE *out, str text, bool lines)
{
    for (size_t i = 0, n; i < text.n; i += n ? n : 1) {
        n = control_at(text, i, lines);
        if (!n) fputc(text.p[i], out);
        for (size_t k = 0; k < n; k++) fprintf(out, "\\x%02x", (unsigned char)text.p[i + k]);
    }
}

void cli_json(const char *before, const char *text)
{
    AUTO(buf) b = {0};
    buf_init(&b, (size_t)1 << 20);
    buf_json_string(&b, text, strlen(text));
    printf("%s%s", before, buf_status(&b) == IG_OK ? b.data : "null");
}

int cli_fail(const char *command, ig_status s)
{
    static const int codes[] = {
        [IG_OK] = EXIT_DONE,
        [IG_EINVAL] = EXIT_INPUT,
        [IG_ESHAPE] = EXIT_INPUT,
        [IG_EDTYPE] = EXIT_INPUT,
        [IG_ENOMEM] = EXIT_SYSTEM,
        [IG_EIO] = EXIT_SYSTEM,
        [IG_EFORMAT] = EXIT_INPUT,
        [IG_EDEVICE] = EXIT_SYSTEM,
        [IG_ELIMIT] = EXIT_INPUT,
        [IG_ECANCELLED] = EXIT_NO,
        [IG_EVERIFY] = EXIT_NO,
        [IG_ENOTFOUND] = EXIT_INPUT,
        [IG_EUNSUPPORTED] = EXIT_UNSUPPORTED,
        [IG_EBUSY] = EXIT_SYSTEM,
    };
    fprintf(stderr, "ingot %s: ", command);
    cli_put(stderr, str_of(*ig_error_message() ? ig_error_message() : "failed"), false);
    fprintf(stderr, " (%s)\n", ig_status_name(s));
    return codes[s];
}

static bool name_is(const char *given, const char *name)
{
    while (*name && (*given == *name || (*given == '-' && *name == '_'))) given++, name++;
    return !*given && !*name;
}

static const option_info *find_option(const option_info *options, const char *arg)
{
    for (const option_info *o = options; o && o->name; o++) {
        if (arg[0] == '-' && arg[1] == '-' && name_is(arg + 2, o->name)) return o;
        if (arg[0] == '-' && o->letter && arg[1] == o->letter && !arg[2]) return o;
    }
    return NULL;
}

static int set_option(const char *command, const option_info *o, const char *value)
{
    if (o->kind == OPT_FLAG) {
        *(bool *)o->to = true;
    } else if (o->kind == OPT_TEXT) {
        *(const char **)o->to = value;
    } else if (o->kind == OPT_LIST) {
        text_list *l = o->to;
        if (l->n == TEXT_LIST_MAX)
            return cli_usage(command, "--%s may be given at most %d times", dash(o->name).name,
                             TEXT_LIST_MAX);
        l->text[l->n++] = value;
    } else if (!str_int(str_of(value), o->lo, o->hi, o->to)) {
        return cli_usage(command, "--%s: '%s' is not a whole number between %lld and %lld",
                         dash(o->name).name, value, (long long)o->lo, (long long)o->hi);
    }
    return EXIT_DONE;
}

int cli_parse(const char *command, int argc, char **argv, const option_info *options,
              text_list *args, int min_args, int max_args, int *ret_exit)
{
    *ret_exit = -1;
    args->n = 0;
    for (int i = 1; i < argc; i++) {
        const option_info *o = find_option(options, argv[i]);
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            cli_help(command, options);
            return *ret_exit = EXIT_DONE;
        }
        if (o && o->arg && i + 1 == argc)
            return *ret_exit = cli_usage(command, "%s needs a value: %s", argv[i], o->arg);
        if (o) {
            int code = set_option(command, o, o->arg ? argv[++i] : NULL);
            if (code != EXIT_DONE) return *ret_exit = code;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            return *ret_exit = cli_usage(command, "there is no option %s", argv[i]);
        } else if (args->n == max_args) {
            return *ret_exit = cli_usage(command, "'%s' is one argument too many", argv[i]);
        } else {
            args->text[args->n++] = argv[i];
        }
    }
    if (args->n < min_args)
        return *ret_exit = cli_usage(command, "an argument is missing: ingot %s %s", command,
                                     find_command(command)->arguments);
    return EXIT_DONE;
}

/* --- progress */
#define BAR 28
#define LINE 100

void progress_begin(progress_line *p, const char *what, const char *unit)
{
    *p = (progress_line){.what = what, .unit = unit, .begin_us = clock_mono_us()};
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-*s\r%s ... ", LINE, "", what);
}

void progress_show(void *line, int64_t done, int64_t total)
{
    progress_line *p = line;
    int64_t now = clock_mono_us();
    if (!isatty(STDERR_FILENO) || now - p->begin_us < 500000 || now - p->last_us < 100000) return;
    double seconds = (double)(now - p->begin_us) * 1e-6, rate = (double)done / seconds,
           left = rate > 0 ? (double)(total - done) / rate : 0;
    int full = total > 0 ? (int)(done * BAR / total) : 0;
    double scale = p->unit ? 1 : 1e-9;
    int decimals = p->unit ? 0 : 2;
    const char *unit = p->unit ? p->unit : "GB";
    p->last_us = now;
    fprintf(stderr, "\r%-10s [%.*s%.*s] %6.*f of %.*f %s  %.*f %s/s  %d s left ", p->what, full,
            "############################", BAR - full, "                            ", decimals,
            (double)done * scale, decimals, (double)total * scale, unit, decimals, rate * scale,
            unit, (int)(left + 0.5));
}

void progress_end(progress_line *p)
{
    if (p->what && isatty(STDERR_FILENO)) fprintf(stderr, "\r%-*s\r", LINE, "");
    p->what = NULL;
}
