/* touch.c: zeroing in parallel (contract in touch.h). */
#include "array/transform/touch.h"
#include <string.h>
#include "array/core/device.h"

#define TOUCH_BLOCK ((size_t)1 << 20)

/* What was asked for: the rest of the buffer's size class stays address space. */
typedef struct area {
    char *p;
    size_t n_bytes;
} area;

static int64_t blocks(const void *args, const run_ctx *r)
{
    (void)r;
    return (int64_t)((((const area *)args)->n_bytes + TOUCH_BLOCK - 1) / TOUCH_BLOCK);
}

static void zero_block(const void *args, const run_ctx *r, int64_t block)
{
    (void)r;
    const area *a = args;
    size_t at = (size_t)block * TOUCH_BLOCK, n = a->n_bytes - at;
    memset(a->p + at, 0, n < TOUCH_BLOCK ? n : TOUCH_BLOCK);
}

ig_status touch_new(size_t n_bytes, buffer **ret_buffer)
{
    buffer *b = NULL;
    TRY(buffer_new(n_bytes ? n_bytes : 1, &b));
    area a = {b->ptr, n_bytes ? n_bytes : 1};
    step s = {.run = zero_block, .blocks = blocks, .args = &a, .label = "zero"};
    const int32_t first[2] = {0, 1};
    const int64_t sym[1] = {1};
    ig_status st = device_default()->run(&s, first, 1, sym, NULL);
    if (st != IG_OK) {
        buffer_drop(b);
        return st;
    }
    *ret_buffer = b;
    return IG_OK;
}
