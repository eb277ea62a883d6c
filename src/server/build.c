/* build.c: reads what the dynamic linker mapped. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "server/build.h"
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"

#define MAX_OBJECTS 256
#define MAX_OBJECT_BYTES ((size_t)1 << 32)

typedef struct object_list {
    char line[MAX_OBJECTS][256];
    int n;
    ig_status status;
} object_list;

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static ig_status add_file(object_list *l, const char *path)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    uint8_t digest[SHA256_N];
    char hex[65];
    const char *slash = strrchr(path, '/');
    if (l->n == MAX_OBJECTS)
        return ig_fail(IG_ELIMIT, "more than %d loaded libraries", MAX_OBJECTS);
    TRY(file_map_open(path, MAX_OBJECT_BYTES, &m));
    sha256(m.bytes, m.n_bytes, digest);
    for (int i = 0; i < SHA256_N; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    snprintf(l->line[l->n++], sizeof l->line[0], "%s  %.180s\n", hex, slash ? slash + 1 : path);
    return IG_OK;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *user)
{
    object_list *l = user;
    (void)size;
    if (!*info->dlpi_name || *info->dlpi_name != '/') return 0; /* the program itself, the vdso */
    l->status = add_file(l, info->dlpi_name);
    return l->status != IG_OK;
}

ig_status build_digest(uint8_t ret_digest[SHA256_N], buf *list)
{
    sha256_ctx h;
    object_list *l = mem_calloc(1, sizeof *l);
    if (!l) return IG_ENOMEM;
    ig_status s = add_file(l, "/proc/self/exe");
    if (s == IG_OK) snprintf(l->line[0] + 66, sizeof l->line[0] - 66, "ingot\n");
    if (s == IG_OK) dl_iterate_phdr(on_object, l);
    if (s == IG_OK) s = l->status;
    if (s == IG_OK) s = sha256_init(&h);
    if (s == IG_OK) {
        qsort(l->line, (size_t)l->n, sizeof l->line[0], by_text);
        for (int i = 0; i < l->n; i++) {
            sha256_add(&h, l->line[i], strlen(l->line[i]));
            if (list) buf_str(list, l->line[i]);
        }
        sha256_final(&h, ret_digest);
    }
    mem_free(l);
    return s;
}

void build_cpu(char *out, size_t cap)
{
    AUTO(buf) text = {0};
    snprintf(out, cap, "unknown");
    if (file_read("/proc/cpuinfo", (size_t)16 << 20, &text) != IG_OK) {
        ig_error_clear();
        return;
    }
    const char *at = text.data ? strstr(text.data, "model name") : NULL,
               *colon = at ? strchr(at, ':') : NULL;
    size_t n = 0;
    for (const char *p = colon ? colon + 2 : ""; *p && *p != '\n' && n + 1 < cap && n < 120; p++)
        if (*p >= ' ' && *p < 127 && *p != '"' && *p != '\\') out[n++] = *p;
    if (n) out[n] = 0;
}

void build_machine_id(char *out, size_t cap)
{
    AUTO(buf) text = {0};
    *out = 0;
    if (file_read("/etc/machine-id", 256, &text) != IG_OK) {
        ig_error_clear();
        return;
    }
    snprintf(out, cap, "%.*s", (int)strcspn(text.data, "\n"), text.data);
}
