/* A log's verifier key on the first line, then any bytes as the only segment of a log: scanned and
 * verified, never trusted, never crashing; every leaf that the scan accepts can be read back. */
#define _GNU_SOURCE /* mkdtemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "audit/store.h"
#include "audit/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[64] = "/dev/shm/ingot-fuzz-XXXXXX", segment[128];

static void clean(void)
{
    char sub[100];
    snprintf(sub, sizeof sub, "%s/segments", dir);
    (void)unlink(segment);
    (void)rmdir(sub);
    (void)rmdir(dir);
}

static void prepare(void)
{
    if (segment[0]) return;
    if (access("/dev/shm", W_OK) != 0) memcpy(dir, "/tmp/ingot-fuzz-XXXXXX", 23);
    if (!mkdtemp(dir)) abort();
    snprintf(segment, sizeof segment, "%s/segments", dir);
    if (mkdir(segment, 0755) != 0) abort();
    strcat(segment, "/00000000000000000000.seg");
    (void)atexit(clean);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    AUTO(store_ptr) s = NULL;
    log_vkey v;
    prepare();
    ig_error_clear();
    if (!end || log_vkey_parse("key", (str){(const char *)data, (size_t)(end - data)}, &v) != IG_OK)
        return 0;
    size_t n = size - (size_t)(end - data) - 1;
    FILE *f = fopen(segment, "wb");
    if (!f || fwrite(end + 1, 1, n, f) != n || fclose(f) != 0) abort();
    ig_audit_log_report r;
    ig_status whole = verify_log(dir, &v, NULL, &r);
    if (store_open(dir, &v, NULL, &s) != IG_OK) {
        if (whole == IG_OK) abort();
        return 0;
    }
    for (uint64_t i = 0; i < s->range.size; i++) {
        AUTO(buf) leaf = {0};
        tree_hash h, from_tile[TREE_TILE_WIDTH];
        if (store_leaf(s, i, &leaf) != IG_OK) abort();
        if (store_tile(s, 0, i / TREE_TILE_WIDTH, from_tile) != IG_OK) abort();
        tree_hash_leaf(leaf.data, leaf.n, &h);
        if (!tree_hash_eq(&h, &from_tile[i % TREE_TILE_WIDTH])) abort();
    }
    return 0;
}
