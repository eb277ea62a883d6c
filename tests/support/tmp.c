/* tmp.c: directories for tests. */
#define _GNU_SOURCE
#include "support/tmp.h"
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(int ok, const char *what, const char *path)
{
    if (ok) return;
    fprintf(stderr, "tmp: cannot %s %s\n", what, path);
    exit(1);
}

void tmp_open(char ret_dir[TMP_PATH_N])
{
    const char *base = getenv("TMPDIR");
    snprintf(ret_dir, TMP_PATH_N, "%s/ingot-test-XXXXXX", base ? base : "/tmp");
    need(mkdtemp(ret_dir) != NULL, "make", ret_dir);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void tmp_close(const char *dir)
{
    need(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, "remove", dir);
}

const char *tmp_path(const char *dir, const char *name)
{
    static _Thread_local char paths[4][2 * TMP_PATH_N];
    static _Thread_local unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

void tmp_write(const char *dir, const char *name, const void *p, unsigned long n)
{
    const char *path = tmp_path(dir, name);
    FILE *f = fopen(path, "wb");
    need(f != NULL, "open", path);
    need(fwrite(p, 1, n, f) == n && fclose(f) == 0, "write", path);
}
