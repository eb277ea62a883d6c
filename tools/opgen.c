/* opgen.c: writes what derives from src/array/ops.def, by including it: no parser of tables is
 * needed.
 *
 *   opgen ops.h ops.md ops_builders.c
 *
 * The first two are committed (a review sees a change of the API), the third is compiled. A file is
 * touched only when its text changes. An argument list is text like "(ARR(a) INT(axis))": a kind
 * and a name each, kinds as the comment of ops.def says. */
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *name, *rule, *build, *args, *expr, *doc;
} row;

/* Twice, so that a macro standing for several columns counts as several: a row that is silent about
 * a column does not compile. */
#define OP(...) OP_ROW(__VA_ARGS__)
#define OP_ROW(name, rule, build, args, expr, sample, doc, vjp, jvp, vmap) \
    {#name, #rule, #build, #args, #expr, doc},
static const row rows[] = {
#include "array/ops.def"
};
#define N_ROWS (sizeof rows / sizeof rows[0])

#define WIDTH 100
#define MAX_ARGS 12
#define TEXT_N ((size_t)1 << 20)

typedef struct arg {
    char kind[16], name[32];
} arg;

typedef struct text {
    char *p;
    size_t n;
} text;

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "opgen: %s: %s\n", name, what);
    exit(1);
}

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->p + t->n, TEXT_N - t->n, format, list);
    va_end(list);
    if (n < 0 || (size_t)n >= TEXT_N - t->n) die("output too long", "text");
    t->n += (size_t)n;
}

/* The part of s up to `end` into out; the place after `end`. */
static const char *word(const char *s, char end, char *out, size_t cap, const row *r)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    if (n == 0 || n >= cap || s[n] != end) die("malformed argument list", r->name);
    memcpy(out, s, n);
    out[n] = 0;
    return s + n + 1;
}

static size_t parse(const row *r, arg out[MAX_ARGS])
{
    const char *s = r->args + 1; /* past the parenthesis */
    size_t n = 0;
    while (*s == ' ') s++;
    while (*s != ')') {
        if (n == MAX_ARGS) die("too many arguments", r->name);
        s = word(s, '(', out[n].kind, sizeof out[n].kind, r);
        s = word(s, ')', out[n].name, sizeof out[n].name, r);
        while (*s == ' ') s++;
        n++;
    }
    return n;
}

/* How a kind of argument is declared and put into the call; %s is its name. */
static const struct kind {
    const char *name, *declare, *fill;
} kinds[] = {
    {"ARR", "ig_array %s", "call_in(&c, %s)"},
    {"OPT", "ig_array %s", "call_in(&c, %s)"},
    {"ARRS", "const ig_array *%s, int n_%s", "call_arrays(&c, %s, n_%s)"},
    {"INT", "int64_t %s", "call_int(&c, %s)"},
    {"FLAG", "bool %s", "call_int(&c, %s)"},
    {"NUM", "double %s", "call_num(&c, %s)"},
    {"DTYPE", "ig_dtype %s", "call_int(&c, (int64_t)%s)"},
    {"DIMS", "const int64_t *%s, int n_%s", "call_dims(&c, %s, n_%s)"},
    {"AXES", "const int *%s, int n_%s", "call_axes(&c, %s, n_%s)"},
};

static const struct kind *kind_of(const row *r, const arg *a)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, a->kind) == 0) return &kinds[i];
    die("unknown kind of argument for a generated builder", r->name);
}

/* format has one or two %s, both for the name */
static void put_named(text *t, const char *format, const char *name)
{
    for (const char *s = format; *s; s++) {
        bool named = s[0] == '%' && s[1] == 's';
        put(t, named ? "%s" : "%.1s", named ? name : s);
        s += named;
    }
}

/* Text with a break before what would pass the last column; `indent` opens a new line. `stop` ends
 * a unit that is not broken: a space for prose, a comma (kept) for lists. */
static void put_wrapped(text *t, size_t column, const char *indent, char stop, const char *s)
{
    const char stops[2] = {stop, 0};
    while (*s) {
        size_t n = strcspn(s, stops);
        if (s[n] == ',') n++;
        if (column + n + (s[n] ? 0 : 3) > WIDTH) {
            t->n -= t->p[t->n - 1] == ' ';
            put(t, "\n%s", indent);
            column = strlen(indent);
        }
        put(t, "%.*s%s", (int)n, s, s[n] ? " " : "");
        column += n + 1;
        s += n + (s[n] == ' ');
    }
}

static void put_prototype(text *t, const row *r, const char *before, const char *after)
{
    arg args[MAX_ARGS];
    size_t n_args = parse(r, args), start = t->n;
    put(t, "%sig_array ig_%s(", before, r->name);
    size_t column = t->n - start;
    char list[1024], indent[WIDTH];
    text l = {list, 0};
    list[0] = 0;
    for (size_t i = 0; i < n_args; i++) {
        put_named(&l, kind_of(r, &args[i])->declare, args[i].name);
        if (i + 1 < n_args) put(&l, ", ");
    }
    snprintf(indent, sizeof indent, "%*s", (int)column, "");
    put_wrapped(t, column, indent, ',', n_args ? list : "void");
    put(t, ")%s", after);
}

static bool generated(const row *r) { return strcmp(r->build, "GEN") == 0; }

static const char header_top[] =
    "/* ops.h: the operations. Generated by tools/opgen.c from src/array/ops.def.\n"
    " *\n"
    " * All are graph builders: an empty input that is not optional gives an empty output; failures\n"
    " * are kept in the error record. Axes may be negative; a list of no axes means all of them. */\n"
    "#ifndef INGOT_OPS_H\n"
    "#define INGOT_OPS_H\n"
    "#include \"ingot/array.h\"\n\n"
    "#ifdef __cplusplus\n"
    "extern \"C\" {\n"
    "#endif\n\n";

static void write_header(text *t)
{
    put(t, "%s", header_top);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (!generated(&rows[i])) continue;
        put(t, "/* ");
        put_wrapped(t, 3, " * ", ' ', rows[i].doc);
        put(t, " */\n");
        put_prototype(t, &rows[i], "IG_API ", ";\n");
    }
    put(t, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

static void write_builders(text *t)
{
    put(t, "/* Generated by tools/opgen.c from src/array/ops.def. */\n"
           "#include \"array/core/node.h\"\n#include \"ingot/ops.h\"\n");
    for (size_t i = 0; i < N_ROWS; i++) {
        const row *r = &rows[i];
        if (!generated(r)) continue;
        arg args[MAX_ARGS];
        size_t n_args = parse(r, args);
        put(t, "\n");
        put_prototype(t, r, "", "\n{\n");
        put(t, "    op_call c = {.op = OP_%s};\n", r->name);
        for (size_t k = 0; k < n_args; k++) {
            put(t, "    ");
            put_named(t, kind_of(r, &args[k])->fill, args[k].name);
            put(t, ";\n");
        }
        put(t, "    return node_apply(&c);\n}\n");
    }
}

/* A cell of a Markdown table: a bar would end it. */
static void put_cell(text *t, const char *s)
{
    for (; *s; s++) put(t, *s == '|' ? "\\|" : "%.1s", s);
}

static void put_row(text *t, const row *r)
{
    arg args[MAX_ARGS];
    size_t n_args = parse(r, args);
    put(t, "| `%s(", r->name);
    for (size_t k = 0; k < n_args; k++) {
        bool optional = strcmp(args[k].kind, "OPT") == 0;
        put(t, "%s%s%s", k ? ", " : "", args[k].name, optional ? "?" : "");
    }
    put(t, ")`%s | ", generated(r) ? "" : " *");
    put_cell(t, r->doc);
    put(t, " | ");
    if (strncmp(r->expr, "EW", 2) == 0) { /* EW2(a + b) */
        char inner[256];
        snprintf(inner, sizeof inner, "`%.*s`", (int)strlen(r->expr + 4) - 1, r->expr + 4);
        put_cell(t, inner);
    }
    put(t, " |\n");
}

static const char doc_top[] =
    "# Operations\n\n"
    "Generated by `tools/opgen.c` from `src/array/ops.def`: change it there. `?` marks an input that\n"
    "may be empty, `*` an operation whose builder is written by hand (`include/ingot/quant.h`, or\n"
    "internal). The scalar column gives the meaning per element. Orders of summation and error\n"
    "bounds: `docs/numerics.md`.\n";

static void write_doc(text *t)
{
    put(t, "%s", doc_top);
    for (size_t i = 0; i < N_ROWS; i++) {
        if (i == 0 || strcmp(rows[i].rule, rows[i - 1].rule) != 0)
            put(t, "\n## Rule `%s`\n\n| operation | meaning | scalar |\n|---|---|---|\n",
                rows[i].rule);
        put_row(t, &rows[i]);
    }
}

/* Writes t to path unless the file holds just that already. */
static void store(const char *path, const text *t)
{
    FILE *f = fopen(path, "rb");
    if (f) {
        char *old = malloc(TEXT_N);
        size_t n = old ? fread(old, 1, TEXT_N, f) : 0;
        fclose(f);
        bool same = n == t->n && memcmp(old, t->p, n) == 0;
        free(old);
        if (same) return;
    }
    f = fopen(path, "wb");
    if (!f || fwrite(t->p, 1, t->n, f) != t->n || fclose(f) != 0) die("cannot write", path);
}

int main(int argc, char **argv)
{
    static void (*const writers[])(text *) = {write_header, write_doc, write_builders};
    if (argc != 4) die("usage: opgen ops.h ops.md ops_builders.c", "arguments");
    text t = {malloc(TEXT_N), 0};
    if (!t.p) die("out of memory", "text");
    for (int i = 0; i < 3; i++) {
        t.n = 0;
        writers[i](&t);
        store(argv[i + 1], &t);
    }
    free(t.p);
    return 0;
}
