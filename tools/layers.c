/* layers.c: checks every #include "..." of the tree against LAYERS (whose comment has the format).
 *
 *   layers LAYERS
 *
 * A file belongs to the longest folder in LAYERS that holds it. It may include its own folder's
 * files (also by bare name, when they lie beside it), and what its line lists. A folder below src/
 * that no line covers is an error: a new folder has to say where it stands. */
#define _GNU_SOURCE
#include <ctype.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LAYERS 64
#define MAX_ALLOWED 24
#define NAME_N 96
#define LINE_N 512

typedef struct layer {
    char folder[NAME_N];               /* src/array/core */
    char allowed[MAX_ALLOWED][NAME_N]; /* array/ops.def, base */
    int n_allowed;
} layer;

static layer layers[MAX_LAYERS]; /* nftw passes no argument on, hence globals in this small tool */
static int n_layers, n_wrong, n_files;

static _Noreturn void die(const char *what, const char *where)
{
    fprintf(stderr, "layers: %s: %s\n", where, what);
    exit(2);
}

/* Is `path` the folder or file `under`, or below it? */
static bool lies_in(const char *path, const char *under)
{
    size_t n = strlen(under);
    return strncmp(path, under, n) == 0 && (path[n] == 0 || path[n] == '/');
}

static void parse_line(char *line, const char *where)
{
    line[strcspn(line, "#\n")] = 0;
    char *save, *word = strtok_r(line, " \t", &save);
    if (!word) return;
    layer *l = &layers[n_layers++];
    if (n_layers > MAX_LAYERS) die("too many lines", where);
    snprintf(l->folder, NAME_N, "%s", word);
    word = strtok_r(NULL, " \t", &save);
    if (!word || strcmp(word, ":") != 0) die("expected \"folder : allowed...\"", where);
    while ((word = strtok_r(NULL, " \t", &save))) {
        if (l->n_allowed == MAX_ALLOWED) die("too many words in a line", where);
        snprintf(l->allowed[l->n_allowed++], NAME_N, "%s", word);
    }
}

static const layer *layer_of(const char *path)
{
    const layer *best = NULL;
    for (int i = 0; i < n_layers; i++)
        if (lies_in(path, layers[i].folder) &&
            (!best || strlen(layers[i].folder) > strlen(best->folder)))
            best = &layers[i];
    return best;
}

/* How files of a folder are named in an #include: the part after src/, include/ or tests/. */
static const char *include_name(const char *folder)
{
    static const char *const roots[] = {"src/", "include/", "tests/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (strncmp(folder, roots[i], strlen(roots[i])) == 0) return folder + strlen(roots[i]);
    return folder;
}

static bool may_include(const layer *l, const char *path, const char *name)
{
    if (!strchr(name, '/')) {
        char beside[3 * LINE_N];
        snprintf(beside, sizeof beside, "%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
        return access(beside, R_OK) == 0;
    }
    if (lies_in(name, include_name(l->folder))) return true;
    for (int i = 0; i < l->n_allowed; i++)
        if (lies_in(name, l->allowed[i])) return true;
    return false;
}

static void check_file(const char *path, const layer *l)
{
    FILE *f = fopen(path, "r");
    if (!f) die("cannot read", path);
    char line[LINE_N];
    for (int number = 1; fgets(line, sizeof line, f); number++) {
        const char *s = line + strspn(line, " \t");
        if (*s++ != '#') continue;
        s += strspn(s, " \t");
        if (strncmp(s, "include", 7) != 0) continue;
        s += 7 + strspn(s + 7, " \t");
        if (*s != '"') continue;
        char name[LINE_N];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(s + 1, "\""), s + 1);
        if (may_include(l, path, name)) continue;
        fprintf(stderr, "%s:%d: %s may not include \"%s\" (LAYERS)\n", path, number, l->folder,
                name);
        n_wrong++;
    }
    fclose(f);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)at;
    const char *dot = strrchr(path, '.');
    if (type != FTW_F || !dot) return 0;
    if (strcmp(dot, ".c") != 0 && strcmp(dot, ".h") != 0 && strcmp(dot, ".def") != 0) return 0;
    const layer *l = layer_of(path);
    n_files++;
    if (l) {
        check_file(path, l);
    } else if (!lies_in(path, "src/array/ops.def")) {
        fprintf(stderr, "%s: its folder is not in LAYERS\n", path);
        n_wrong++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const roots[] = {"include", "src", "tools", "examples", "tests", "bench"};
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) die("usage: layers LAYERS, in the root of the repository", "arguments");
    char line[LINE_N];
    while (fgets(line, sizeof line, f)) parse_line(line, argv[1]);
    fclose(f);
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++)
        if (access(roots[i], R_OK) == 0 && nftw(roots[i], visit, 16, FTW_PHYS) != 0)
            die("cannot walk", roots[i]);
    if (n_wrong) return 1;
    printf("layers: %d files include only downwards\n", n_files);
    return 0;
}
