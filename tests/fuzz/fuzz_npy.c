/* Any bytes as a .npy file: refused with a reason, or an array that the file's bytes fill. */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ingot/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    ig_array a = {0};
    ig_scope *s = ig_scope_open();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (!s || fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ig_load_npy(path, &a) != IG_OK) {
        if (!ig_is_empty(a) || !*ig_error_message()) abort();
        ig_error_clear();
    } else if (ig_nbytes(a) > (int64_t)size) {
        abort();
    }
    close(fd);
    if (ig_scope_close(s) != IG_OK) abort();
    return 0;
}
