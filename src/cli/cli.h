/* cli.h: what the commands share: option tables, exit codes, messages, a progress line.
 *
 * Exit codes: 0 done; 1 the answer is no (a check failed, replay differs); 2 wrong usage; 3 bad
 * input (files, formats, requests); 4 the system
 * refused (I/O, memory, network); 5 not possible here (unsupported). */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include <stdio.h>
#include "base/buf.h"
#include "base/str.h"

enum {
    EXIT_DONE = 0,
    EXIT_NO = 1,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3,
    EXIT_SYSTEM = 4,
    EXIT_UNSUPPORTED = 5
};

/* One option: --name VALUE, or -n VALUE; a flag where arg is NULL. `to` is char *, int64_t or bool
 * by kind. */
typedef struct option_info {
    const char *name;
    char letter;     /* 0: none */
    const char *arg; /* label of the value; NULL: a flag */
    const char *doc;
    enum { OPT_TEXT, OPT_INT, OPT_FLAG, OPT_LIST } kind;
    void *to;       /* const char **, int64_t *, bool *, text_list * */
    int64_t lo, hi; /* OPT_INT */
} option_info;

#define TEXT_LIST_MAX 64
typedef struct text_list {
    const char *text[TEXT_LIST_MAX];
    int n;
} text_list;

/* Parses argv[1..]; positional arguments go to args (at most max_args). Prints help and exits the
 * command when --help is there: *ret_exit >= 0
 * then is the exit code; -1: go on. */
int cli_parse(const char *command, int argc, char **argv, const option_info *options,
              text_list *args, int min_args, int max_args, int *ret_exit);
void cli_help(const char *command, const option_info *options);

typedef struct command_info {
    int (*run)(int argc, char **argv);
} command_info;

/* Prints text that came from a file or another machine. Control characters, by which it could write
 * over what stands on the terminal or fake lines of ours, show as \xNN; with `lines`, newlines and
 * tabs stay. */
void cli_put(FILE *out, str text, bool lines);
/* Prints `before`, then text as a JSON string on stdout; null without memory. */
void cli_json(const char *before, const char *text);
/* Prints "ingot COMMAND: MESSAGE" of a failed status to stderr and gives the exit code for it. */
int cli_fail(const char *command, ig_status s);
int cli_no_command(const char *name);
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A progress line on stderr, if that is a terminal: its name at once, the bar after half a
 * second. */
typedef struct progress_line {
    const char *what;
    const char *unit; /* of what is counted; NULL: bytes, shown in GB */
    int64_t begin_us, last_us;
} progress_line;
/* The next line of work; ends the one before. */
void progress_begin(progress_line *p, const char *what, const char *unit);
void progress_show(void *line, int64_t done, int64_t total); /* a progress_fn */
void progress_end(progress_line *p);
#endif
