/* Any bytes as a safetensors file: refused, or every tensor lies inside. */
#include <stdint.h>
#include <stdlib.h>
#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(st_index) x = {0};
    if (safetensors_read("fuzz", data, size, &x) != IG_OK) return 0;
    size_t at = 0;
    for (size_t i = 0; i < x.n; i++) {
        const st_tensor *t = &x.t[i];
        if (t->begin < at || t->begin + t->n_bytes > size || t->begin % ig_dtype_size(t->dtype))
            abort();
        at = t->begin + t->n_bytes;
    }
    if (at != size && x.n) abort();
    return 0;
}
