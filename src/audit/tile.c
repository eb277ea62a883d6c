/* tile.c: names, writing and reading of tile files (contract in tile.h). */
#include "audit/tile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Index in groups of three digits, all but the last with an x: 1234067 is x001/x234/067. */
static void put_index(uint64_t index, buf *out)
{
    char groups[8][5];
    size_t n = 0;
    do {
        (void)snprintf(groups[n++], sizeof groups[0], "%03u", (unsigned)(index % 1000));
        index /= 1000;
    } while (index);
    while (n-- > 0) buf_printf(out, n ? "x%s/" : "%s", groups[n]);
}

ig_status tile_path(const char *dir, tile_id id, buf *ret_path)
{
    TRY(file_join(ret_path, dir, "tile/"));
    if (id.level == TILE_ENTRIES)
        buf_str(ret_path, "entries/");
    else
        buf_printf(ret_path, "%d/", id.level);
    put_index(id.index, ret_path);
    if (id.width < TREE_TILE_WIDTH) buf_printf(ret_path, ".p/%u", id.width);
    return buf_status(ret_path);
}

static ig_status make_parent(const char *path)
{
    AUTO(buf) parent = {0};
    buf_init(&parent, FILE_PATH_MAX);
    buf_add(&parent, path, (size_t)(strrchr(path, '/') - path));
    TRY(buf_status(&parent));
    return file_exists(parent.data) ? IG_OK : file_mkdirs(parent.data, 0755);
}

/* Deletes the partial tiles that a full one replaces; what is left over does no harm. */
static void drop_partials(const char *full_path)
{
    AUTO(buf) partials = {0};
    buf_init(&partials, FILE_PATH_MAX);
    buf_printf(&partials, "%s.p", full_path);
    if (partials.status != IG_OK) return;
    DIR *d = opendir(partials.data);
    if (!d) return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') (void)unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    (void)rmdir(partials.data);
}

static ig_status write_whole(const char *path, const void *p, size_t n)
{
    int fd;
    TRY(io_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &fd));
    ig_status s = io_write(fd, p, n, path);
    io_close(fd);
    return s;
}

ig_status tile_write(const char *dir, tile_id id, const void *p, size_t n)
{
    AUTO(buf) path = {0}, tmp = {0};
    buf_init(&path, FILE_PATH_MAX);
    buf_init(&tmp, FILE_PATH_MAX);
    TRY(tile_path(dir, id, &path));
    TRY(make_parent(path.data));
    buf_printf(&tmp, "%s.tmp", path.data);
    TRY(buf_status(&tmp));
    TRY(write_whole(tmp.data, p, n));
    TRY(io_rename(tmp.data, path.data));
    if (id.width == TREE_TILE_WIDTH) drop_partials(path.data);
    return IG_OK;
}

static size_t max_bytes(tile_id id)
{
    return id.level == TILE_ENTRIES ? TILE_MAX_BUNDLE : (size_t)TREE_TILE_WIDTH * SHA256_N;
}

ig_status tile_read(const char *dir, tile_id id, buf *ret_bytes)
{
    AUTO(buf) path = {0};
    buf_init(&path, FILE_PATH_MAX);
    buf_init(ret_bytes, 0);
    TRY(tile_path(dir, id, &path));
    if (id.width < TREE_TILE_WIDTH && !file_exists(path.data)) {
        id.width = TREE_TILE_WIDTH;
        buf_done(&path);
        TRY(tile_path(dir, id, &path));
    }
    return file_read(path.data, max_bytes(id), ret_bytes);
}

bool tile_exists(const char *dir, tile_id id)
{
    AUTO(buf) path = {0};
    buf_init(&path, FILE_PATH_MAX);
    return tile_path(dir, id, &path) == IG_OK && file_exists(path.data);
}

void tile_entry_add(buf *bundle, str entry)
{
    uint8_t n[2] = {(uint8_t)(entry.n >> 8), (uint8_t)entry.n};
    buf_add(bundle, n, sizeof n);
    buf_add(bundle, entry.p, entry.n);
}
