/* main.c: drives a fuzz target without libFuzzer: its seeds, then mutations of them, the same ones
 * every time. FUZZ_RUNS mutations (20000) or FUZZ_SECONDS (3), whichever ends first. An input that
 * kills the target is left as crash-NAME in the current directory; one that takes 20 s counts. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)1 << 18)
#define MAX_SEEDS 1024
#define HANG_S 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    uint8_t *p;
    size_t n;
} input;

static input seeds[MAX_SEEDS];
static size_t n_seeds;
static uint64_t state = 0x9E3779B97F4A7C15u;
static char crash_path[256];
static const uint8_t *volatile now_p; /* what the target is reading, for the crash handler */
static volatile size_t now_n;

static uint64_t next(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static size_t below(size_t n) { return n ? (size_t)(next() % n) : 0; }

static void on_crash(int sig)
{
    int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, (const void *)now_p, now_n) == (ssize_t)now_n)
        (void)!write(2, "fuzz: the input is in the file crash-NAME\n", 42);
    signal(sig, SIG_DFL);
    raise(sig == SIGALRM ? SIGABRT : sig);
}

/* The target gets a copy of just n bytes, so that a sanitizer sees a read past the end. */
static void run(const uint8_t *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy) exit(1);
    if (n) memcpy(copy, p, n);
    now_p = copy, now_n = n;
    alarm(HANG_S);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static void load_seed(const char *dir, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(MAX_BYTES);
    if (!f || !p || n_seeds == MAX_SEEDS) {
        fprintf(stderr, "fuzz: cannot load %s\n", path);
        exit(1);
    }
    seeds[n_seeds++] = (input){p, fread(p, 1, MAX_BYTES, f)};
    fclose(f);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void load_seeds(const char *dir)
{
    struct dirent **e;
    int n = scandir(dir, &e, NULL, by_name);
    for (int i = 0; i < n; i++) {
        if (e[i]->d_name[0] != '.') load_seed(dir, e[i]->d_name);
        free(e[i]);
    }
    if (n >= 0) free(e);
}

static void set_bytes(input *x)
{
    static const uint64_t values[] = {0,          1,         0x7F,       0x80,
                                      0xFF,       0x7FFF,    0xFFFF,     0x7FFFFFFF,
                                      0xFFFFFFFF, INT64_MAX, UINT64_MAX, (uint64_t)1 << 32};
    size_t width = (size_t)1 << below(4);
    if (x->n < width) return;
    uint64_t v = values[below(sizeof values / sizeof values[0])];
    memcpy(x->p + below(x->n - width + 1), &v, width);
}

static void flip_bit(input *x)
{
    if (x->n) x->p[below(x->n)] ^= (uint8_t)(1u << below(8));
}

static void set_text(input *x)
{
    static const char marks[] = "0123456789-+.eE\"\\{}[]():,<>|%u \n\t\0\x80\xC0\xED\xF4\xFF";
    if (x->n) x->p[below(x->n)] = (uint8_t)marks[below(sizeof marks - 1)];
}

static void cut(input *x)
{
    size_t at = below(x->n + 1), n = below(x->n - at + 1);
    memmove(x->p + at, x->p + at + n, x->n - at - n);
    x->n -= n;
}

static void truncate_end(input *x) { x->n = below(x->n + 1); }

static void repeat(input *x)
{
    size_t at = below(x->n + 1), n = below((x->n - at < 64 ? x->n - at : 64) + 1);
    if (x->n + n > MAX_BYTES) return;
    memmove(x->p + at + n, x->p + at, x->n - at);
    x->n += n;
}

static void splice(input *x)
{
    const input *other = &seeds[below(n_seeds)];
    size_t from = below(other->n + 1), n = below(other->n - from + 1), at = below(x->n + 1);
    if (at + n > MAX_BYTES) return;
    memcpy(x->p + at, other->p + from, n);
    if (at + n > x->n) x->n = at + n;
}

static void mutate(input *x)
{
    static void (*const how[])(input *) = {set_bytes, flip_bit,     set_text, set_text,
                                           cut,       truncate_end, repeat,   splice};
    for (size_t k = 1 + below(4); k > 0; k--) how[below(sizeof how / sizeof how[0])](x);
}

static long setting(const char *name, long otherwise)
{
    const char *s = getenv(name);
    return s ? atol(s) : otherwise;
}

int main(int argc, char **argv)
{
    static uint8_t bytes[MAX_BYTES + 8];
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    snprintf(crash_path, sizeof crash_path, "crash-%s", name);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) signal(signals[i], on_crash);
    for (int i = 1; i < argc; i++) load_seed(".", argv[i]);
    if (argc == 1) {
        char dir[512];
        snprintf(dir, sizeof dir, "tests/fuzz/corpus/%s",
                 name + (strncmp(name, "fuzz_", 5) ? 0 : 5));
        load_seeds(dir);
    }
    run(bytes, 0);
    for (size_t i = 0; i < n_seeds; i++) run(seeds[i].p, seeds[i].n);
    long runs = argc > 1 || !n_seeds ? 0 : setting("FUZZ_RUNS", 20000), done = 0;
    time_t end = time(NULL) + setting("FUZZ_SECONDS", 3);
    for (; done < runs && time(NULL) <= end; done++) {
        const input *seed = &seeds[below(n_seeds)];
        memcpy(bytes, seed->p, seed->n);
        input x = {bytes, seed->n};
        mutate(&x);
        run(x.p, x.n);
    }
    printf("%s: %zu seeds, %ld mutations\n", name, n_seeds, done);
    for (size_t i = 0; i < n_seeds; i++) free(seeds[i].p);
    return 0;
}
