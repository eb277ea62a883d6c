/* walk.c: strided elements in row-major order (walk.h). */
#include <string.h>
#include "array/cpu/walk.h"

walk *walk_new(step_mem *mem, char *ptr, size_t size, int ndim, const int64_t *dims,
               const int64_t *stride)
{
    int64_t dim[IG_MAX_NDIM], by[IG_MAX_NDIM];
    int n = 0;
    for (int i = 0; i < ndim; i++) {
        int64_t bytes = stride[i] * (int64_t)size;
        if (dims[i] == 1) continue;
        if (n && by[n - 1] == dims[i] * bytes) {
            dim[n - 1] *= dims[i];
            by[n - 1] = bytes;
        } else {
            dim[n] = dims[i];
            by[n++] = bytes;
        }
    }
    if (!n) {
        dim[0] = 1;
        by[n++] = (int64_t)size;
    }
    walk *w = step_mem_get(mem, sizeof *w + 2 * (size_t)n * sizeof w->axis[0]);
    if (!w) return NULL;
    *w = (walk){.ptr = ptr, .n = n, .size = (int32_t)size};
    memcpy(w->axis, dim, (size_t)n * sizeof dim[0]);
    memcpy(w->axis + n, by, (size_t)n * sizeof by[0]);
    return w;
}

walk *walk_operand(step_mem *mem, const operand *o)
{
    return walk_new(mem, o->ptr, ig_dtype_size(o->s.dtype), o->s.ndim, o->s.dim, o->stride);
}

/* Bytes from element 0 to element i. */
static int64_t offset_of(const walk *w, int64_t i)
{
    int64_t offset = 0;
    const int64_t *by = w->axis + w->n;
    for (int a = w->n - 1; a > 0; a--) {
        offset += i % w->axis[a] * by[a];
        i /= w->axis[a];
    }
    return offset + i * by[0];
}

char *walk_at(const walk *w, int64_t i) { return w->ptr + offset_of(w, i); }

#define COPY(T, dst_by, src_by)                   \
    for (int64_t i = 0; i < n; i++) {             \
        T v;                                      \
        memcpy(&v, src + i * (src_by), sizeof v); \
        memcpy(dst + i * (dst_by), &v, sizeof v); \
    }

void walk_gather(char *dst, const char *src, size_t size, int64_t by, int64_t n)
{
    if (by == (int64_t)size)
        memcpy(dst, src, (size_t)n * size);
    else if (size == 4)
        COPY(uint32_t, 4, by)
    else if (size == 2)
        COPY(uint16_t, 2, by)
    else if (size == 8)
        COPY(uint64_t, 8, by)
    else
        COPY(uint8_t, 1, by)
}

static void scatter(char *dst, const char *src, size_t size, int64_t by, int64_t n)
{
    if (by == (int64_t)size)
        memcpy(dst, src, (size_t)n * size);
    else if (size == 4)
        COPY(uint32_t, by, 4)
    else if (size == 2)
        COPY(uint16_t, by, 2)
    else if (size == 8)
        COPY(uint64_t, by, 8)
    else
        COPY(uint8_t, by, 1)
}

void walk_fill(char *dst, const char *p, size_t size, int64_t n)
{
    walk_gather(dst, p, size, 0, n);
}

/* Calls part(address, step in bytes, elements, elements before it) for each innermost run that
 * [first, first + n) touches. */
#define EACH_RUN(w, first, n, part)                                                         \
    for (int64_t done = 0; done < (n);) {                                                   \
        int64_t at = (first) + done, run = walk_run(w);                                     \
        int64_t len = (w)->n == 1 || run - at % run > (n)-done ? (n)-done : run - at % run; \
        part;                                                                               \
        done += len;                                                                        \
    }

void walk_read_at(const walk *w, const char *base, int64_t first, int64_t n, char *dst)
{
    size_t size = (size_t)w->size;
    EACH_RUN(
        w, first, n,
        walk_gather(dst + (size_t)done * size, base + offset_of(w, at), size, walk_step(w), len))
}

void walk_write_at(const walk *w, char *base, int64_t first, int64_t n, const char *src)
{
    size_t size = (size_t)w->size;
    EACH_RUN(w, first, n,
             scatter(base + offset_of(w, at), src + (size_t)done * size, size, walk_step(w), len))
}
