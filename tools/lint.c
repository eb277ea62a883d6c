/* lint.c: our own rules, those that no compiler and no formatter knows.
 *
 *   lint BUILD
 *
 * Of the text: lengths, forbidden words, a comment at the top, no conditional compilation inside a
 * function, READMEs. Of library code: no call that ends the process, prints, reads the environment,
 * or goes to heap and disk past base/. Of what was built in BUILD: compile flags of the numeric
 * contract, exported names, no names from our libraries in anybody else's namespace.
 * A line that has to break a rule says so: "lint: allow fopen, why" in a comment on it. */
#define _GNU_SOURCE
#include <ctype.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINES 800
#define MAX_COLUMNS 100
#define MAX_FUNCTION 80 /* lines; longer ones give their reason: "lint: allow length, why" */
#define MAX_README 60
#define MAX_FILES_BARE 4 /* files in a folder without a README */
#define LINE_N 4096

/* nftw passes no argument on, hence globals in this small tool. */
static int n_wrong, n_files;

__attribute__((format(printf, 3, 4))) static void wrong(const char *path, int line,
                                                        const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s:%d: ", path, line);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    n_wrong++;
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

/* --- rules about calls ---------------------------------------------------------------------- */

static const char *const process_calls[] = {
    "getenv", "secure_getenv", "setenv",  "exit",   "_exit",  "abort", "printf", "fprintf",
    "puts",   "fputs",         "putchar", "perror", "system", "popen", "signal", NULL};
static const char *const heap_calls[] = {"malloc",        "calloc",  "realloc",  "free",
                                         "strdup",        "strndup", "asprintf", "posix_memalign",
                                         "aligned_alloc", NULL};
static const char *const disk_calls[] = {
    "fopen",  "open",   "openat",    "pwrite", "fwrite",          "fsync", "fdatasync",
    "rename", "unlink", "ftruncate", "mkdir",  "posix_fallocate", NULL};
static const char *const weak_calls[] = {"strcpy", "strcat", "sprintf", "vsprintf",  "gets",
                                         "strtok", "atoi",   "atol",    "atof",      "alloca",
                                         "rand",   "srand",  "strtod",  "setlocale", NULL};
static const char *const assert_calls[] = {"assert", NULL};

/* Where no call of a list may stand. `except`: the files whose business it is. */
static const struct rule {
    const char *where, *const *calls, *except, *why;
} rules[] = {
    {"src/base/", process_calls, "", "a library does not end, print or read the environment"},
    {"src/array/", process_calls, "", "a library does not end, print or read the environment"},
    {"src/io/", process_calls, "", "a library does not end, print or read the environment"},
    {"src/lm/", process_calls, "", "a library does not end, print or read the environment"},
    {"src/audit/", process_calls, "", "a library does not end, print or read the environment"},
    {"src/server/", process_calls, "", "the command prints and ends, the server reports"},
    {"src/", heap_calls, "src/base/mem.c", "memory comes from base/mem.h"},
    {"src/base/", disk_calls, "src/base/io.c src/base/file.c",
     "files are reached through base/io.h"},
    {"src/array/", disk_calls, "src/array/cpu/detect.c", "files are reached through base/io.h"},
    {"src/io/", disk_calls, "", "files are reached through base/io.h"},
    {"src/lm/", disk_calls, "", "files are reached through base/io.h"},
    {"src/audit/", disk_calls, "", "files are reached through base/io.h"},
    {"src/", weak_calls, "", "unbounded, or dependent on the locale"},
    {"src/io/", assert_calls, "", "outside input never reaches an assert"},
    {"src/audit/", assert_calls, "", "outside input never reaches an assert"},
    {"src/server/", assert_calls, "", "outside input never reaches an assert"},
};

/* Is `name` called in this line of code (comments and strings already blank)? */
static bool calls(const char *code, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = code; (s = strstr(s, name)); s += n) {
        bool own = s > code &&
                   (isalnum((unsigned char)s[-1]) || s[-1] == '_' || s[-1] == '.' || s[-1] == '>');
        if (!own && s[n + strspn(s + n, " ")] == '(') return true;
    }
    return false;
}

static void check_calls(const char *path, int number, const char *code, const char *line)
{
    const char *allow = strstr(line, "lint: allow ");
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        if (!starts(path, rules[r].where) || strstr(rules[r].except, path)) continue;
        for (const char *const *c = rules[r].calls; *c; c++)
            if (calls(code, *c) && !(allow && starts(allow + 12, *c)))
                wrong(path, number, "calls %s: %s", *c, rules[r].why);
    }
}

/* --- rules about text ----------------------------------------------------------------------- */

/* Blanks comments and the insides of strings, carrying an open comment from line to line. */
static void blank(char *s, bool *in_comment)
{
    char quote = 0;
    for (; *s; s++) {
        if (*in_comment) {
            bool end = s[0] == '*' && s[1] == '/';
            *s = ' ';
            if (end) *++s = ' ', *in_comment = false;
        } else if (quote) {
            bool escaped = *s == '\\' && s[1];
            if (*s == quote) quote = 0;
            *s = ' ';
            if (escaped) *++s = ' ';
        } else if (s[0] == '/' && s[1] == '*') {
            *in_comment = true;
            *s = ' ';
        } else if (s[0] == '/' && s[1] == '/') {
            *s = 0;
            return;
        } else if (*s == '"' || *s == '\'') {
            quote = *s;
        }
    }
}

static int columns(const char *s)
{
    int n = 0;
    for (; *s && *s != '\n'; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

static void check_words(const char *path, int number, const char *line)
{
    static const char *const words[] = {"TO"
                                        "DO",
                                        "FIX"
                                        "ME",
                                        "XX"
                                        "X",
                                        "HA"
                                        "CK"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const char *s = strstr(line, words[i]);
        if (!s) continue;
        size_t n = strlen(words[i]);
        bool inside = (s > line && isalnum((unsigned char)s[-1])) || isalnum((unsigned char)s[n]);
        if (!inside) wrong(path, number, "%s: do it, or write an issue", words[i]);
    }
}

static void check_layout(const char *path, int number, const char *line)
{
    size_t n = strcspn(line, "\n");
    /* a row of a table and a literal stay whole */
    bool whole = ends(path, ".def") || line[strspn(line, " ")] == '"';
    if (!whole && columns(line) > MAX_COLUMNS)
        wrong(path, number, "%d columns, at most %d", columns(line), MAX_COLUMNS);
    if (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        wrong(path, number, "blank at the end");
    if (strchr(line, '\t')) wrong(path, number, "a tab; four spaces");
}

typedef struct scan {
    const char *path;
    int number; /* of the current line */
    bool in_comment;
    int function_start;  /* line of the brace that opened the current function, or 0 */
    bool length_allowed; /* the comment above the function gives a reason for its length */
} scan;

/* Our format puts the braces of a function, and of nothing else that has #if inside, in column 0.
 */
static void check_function(scan *s, const char *code, const char *line)
{
    if (strstr(line, "lint: allow length")) s->length_allowed = true;
    if (code[0] == '{') s->function_start = s->number;
    if (s->function_start && starts(code + strspn(code, " "), "#if"))
        wrong(s->path, s->number,
              "conditional compilation inside a function: a platform is a file");
    if (code[0] != '}') return;
    int n = s->function_start ? s->number - s->function_start - 1 : 0;
    if (n > MAX_FUNCTION && !s->length_allowed)
        wrong(s->path, s->function_start, "a function of %d lines, at most %d", n, MAX_FUNCTION);
    s->function_start = 0;
    s->length_allowed = false;
}

static bool is_c(const char *path)
{
    return ends(path, ".c") || ends(path, ".h") || ends(path, ".def");
}

static void check_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) {
        wrong(path, 0, "cannot read");
        return;
    }
    char line[LINE_N], code[LINE_N];
    scan s = {.path = path, .number = 1};
    for (; fgets(line, sizeof line, f); s.number++) {
        check_words(path, s.number, line);
        if (!is_c(path)) continue;
        if (s.number == 1 && !starts(line, "/*"))
            wrong(path, 1, "opens without saying what it owns");
        check_layout(path, s.number, line);
        memcpy(code, line, sizeof code);
        blank(code, &s.in_comment);
        check_calls(path, s.number, code, line);
        check_function(&s, code, line);
    }
    fclose(f);
    n_files++;
    if (is_c(path) && s.number - 1 > MAX_LINES)
        wrong(path, s.number, "%d lines, at most %d: split by noun", s.number - 1, MAX_LINES);
    if (ends(path, "/README.md") && starts(path, "src/") && s.number - 1 > MAX_README)
        wrong(path, s.number, "%d lines, a folder's README has at most %d", s.number - 1,
              MAX_README);
}

/* --- rules about folders -------------------------------------------------------------------- */

static int visit_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    static const char *const kinds[] = {".c", ".h", ".def", ".md", ".sh", ".py"};
    if (type != FTW_F || starts(path, "tests/golden/") || starts(path, "tests/fuzz/corpus/"))
        return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (ends(path, kinds[i])) check_file(path);
    return 0;
}

static int visit_folder(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    if (type != FTW_D) return 0;
    char command[LINE_N], readme[LINE_N];
    snprintf(command, sizeof command, "find '%s' -maxdepth 1 -type f ! -name README.md | wc -l",
             path);
    snprintf(readme, sizeof readme, "%s/README.md", path);
    FILE *p = popen(command, "r");
    int n = 0;
    if (!p || fscanf(p, "%d", &n) != 1) wrong(path, 0, "cannot list");
    if (p) pclose(p);
    if (n > MAX_FILES_BARE && access(readme, R_OK) != 0)
        wrong(readme, 0, "missing: the folder has %d files", n);
    return 0;
}

/* --- rules about what was built ------------------------------------------------------------- */

static int visit_command(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    static const char *const forbidden[] = {"-ffast-math",        "-Ofast",  "-funsafe-math",
                                            "-ffp-contract=fast", "-mrecip", "-fassociative-math",
                                            "-freciprocal-math"};
    if (type != FTW_F || !ends(path, ".o.cmd")) return 0;
    FILE *f = fopen(path, "r");
    char line[LINE_N] = "";
    if (!f || !fgets(line, sizeof line, f)) wrong(path, 1, "cannot read");
    if (f) fclose(f);
    if (!strstr(line, " -ffp-contract=off ")) wrong(path, 1, "compiled without -ffp-contract=off");
    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++)
        if (strstr(line, forbidden[i])) wrong(path, 1, "compiled with %s", forbidden[i]);
    return 0;
}

/* Every line of the command's output is a symbol that has to start so. */
static void check_symbols(const char *library, const char *options, const char *prefix)
{
    char command[LINE_N], symbol[LINE_N];
    if (access(library, R_OK) != 0) return; /* its sources do not exist yet */
    snprintf(command, sizeof command, "nm %s '%s' | awk 'NF >= 2 {print $NF}'", options, library);
    FILE *p = popen(command, "r");
    int n = 0;
    for (; p && fscanf(p, "%4095s", symbol) == 1; n++)
        if (!starts(symbol, prefix))
            wrong(library, 0, "exports %s: public names start with %s", symbol, prefix);
    if (p) pclose(p);
    if (n == 0) wrong(library, 0, "exports nothing");
}

static void walk(const char *root,
                 int (*visit)(const char *, const struct stat *, int, struct FTW *))
{
    if (access(root, R_OK) == 0 && nftw(root, visit, 16, FTW_PHYS) != 0)
        wrong(root, 0, "cannot walk");
}

int main(int argc, char **argv)
{
    static const char *const texts[] = {"include", "src",   "tools", "examples",
                                        "tests",   "bench", "docs"};
    static const char *const folders[] = {"src", "tools", "examples", "bench"};
    if (argc != 2 || access("LAYERS", R_OK) != 0) {
        fprintf(stderr, "usage: lint BUILD, in the root of the repository\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) walk(texts[i], visit_file);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) walk(folders[i], visit_folder);
    char path[LINE_N];
    snprintf(path, sizeof path, "%s/obj", argv[1]);
    walk(path, visit_command);
    snprintf(path, sizeof path, "%s/libingot.so", argv[1]);
    check_symbols(path, "-D --defined-only", "ig_");
    snprintf(path, sizeof path, "%s/libingot-lm.so", argv[1]);
    check_symbols(path, "-D --defined-only", "ig_");
    if (n_wrong) {
        fprintf(stderr, "lint: %d violations\n", n_wrong);
        return 1;
    }
    printf("lint: %d files keep the rules\n", n_files);
    return 0;
}
