/* walk.h: elements of a strided operand in row-major order, a contiguous range at a time.
 *
 * The one place that turns strides (negative, zero, of any rank) into contiguous memory and back.
 * Axes that lie behind one another are merged, so most operands are one run. Axis 0 may be a row
 * symbol: nothing here depends on its extent. */
#ifndef CPU_WALK_H
#define CPU_WALK_H
#include "array/core/device.h"

typedef struct walk {
    char *ptr;      /* element 0 */
    int32_t n;      /* axes after merging, at least 1 */
    int32_t size;   /* bytes of an element: 1, 2, 4 or 8 */
    int64_t axis[]; /* n extents (the first is not read), then n strides in bytes */
} walk;

/* A walk over dims[0..ndim) of an operand with these strides (elements); NULL (recorded) without
 * memory. */
walk *walk_new(step_mem *mem, char *ptr, size_t size, int ndim, const int64_t *dims,
               const int64_t *stride);
walk *walk_operand(step_mem *mem, const operand *o);

/* Elements of the innermost run; with n == 1 there is only one run. */
static inline int64_t walk_run(const walk *w) { return w->axis[w->n - 1]; }
static inline int64_t walk_step(const walk *w) { return w->axis[2 * w->n - 1]; } /* bytes */
static inline bool walk_is_contiguous(const walk *w)
{
    return w->n == 1 && walk_step(w) == w->size;
}
/* Address of element i. */
char *walk_at(const walk *w, int64_t i);
/* Copies elements [first, first + n) of the same walk laid at `base` to dst, or from src. */
void walk_read_at(const walk *w, const char *base, int64_t first, int64_t n, char *dst);
void walk_write_at(const walk *w, char *base, int64_t first, int64_t n, const char *src);
static inline void walk_read(const walk *w, int64_t first, int64_t n, char *dst)
{
    walk_read_at(w, w->ptr, first, n, dst);
}
static inline void walk_write(const walk *w, int64_t first, int64_t n, const char *src)
{
    walk_write_at(w, w->ptr, first, n, src);
}
/* Packs n elements that lie `by` bytes apart. */
void walk_gather(char *dst, const char *src, size_t size, int64_t by, int64_t n);
/* Fills n elements of size bytes with the one at p. */
void walk_fill(char *dst, const char *p, size_t size, int64_t n);
#endif
