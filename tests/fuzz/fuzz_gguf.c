/* Any bytes as a GGUF file: refused, or every key and tensor can be read to its end. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "io/gguf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const gguf *g)
{
    float block[256];
    for (size_t i = 0; i < g->n_values; i++) {
        const gguf_value *v = &g->value[i];
        if (v->kind == GGUF_ARRAY && v->element == GGUF_STRING) {
            const uint8_t *at = v->p;
            for (uint64_t k = 0; k < v->n; k++) (void)gguf_next_string(&at);
        } else if (v->kind != GGUF_STRING && v->n) {
            (void)gguf_num(v, v->n - 1);
        }
    }
    for (size_t i = 0; i < g->n_tensors; i++)
        if (g->tensor[i].dim[g->tensor[i].ndim - 1] >= 256 && g->tensor[i].n_bytes)
            gguf_decode(g->tensor[i].type, g->tensor[i].p, 256, block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    gguf *g = NULL;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (gguf_open(path, &g) == IG_OK) read_all(g);
    gguf_free(g);
    close(fd);
    return 0;
}
