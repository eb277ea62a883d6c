/* parts.c: short ways to say what other operations do: zeros, and parts along one axis. */
#include <string.h>
#include "array/core/node.h"
#include "array/core/shape.h"
#include "ingot/ops.h"

ig_array ig_zeros(const int64_t *dims, int ndim, ig_dtype dtype)
{
    return ig_full(dims, ndim, 0, dtype);
}

static ig_array cut(ig_array a, int64_t axis, int64_t start, int64_t stop)
{
    int64_t from[IG_MAX_NDIM] = {0}, to[IG_MAX_NDIM], step[IG_MAX_NDIM];
    int n = ig_ndim(a);
    for (int i = 0; i < n; i++) {
        to[i] = INT64_MAX;
        step[i] = 1;
    }
    from[axis] = start;
    to[axis] = stop;
    return ig_slice(a, from, n, to, n, step, n);
}

ig_array ig_slice_axis(ig_array a, int axis, int64_t start, int64_t stop)
{
    int64_t at = axis;
    if (ig_is_empty(a) || shape_axis("slice_axis", node_spec(a), &at) != IG_OK)
        return (ig_array){0};
    return cut(a, at, start, stop);
}

/* Do n parts of these sizes make up the axis? */
static ig_status check_sizes(const spec *s, int64_t axis, int n, const int64_t *sizes)
{
    int64_t left = s->dim[axis];
    if (n < 1) return ig_fail(IG_EINVAL, "split: %d parts", n);
    bool fits = sizes || left % n == 0;
    for (int i = 0; sizes && fits && i < n; i++) {
        fits = sizes[i] >= 0 && sizes[i] <= left;
        if (fits) left -= sizes[i];
    }
    if (fits && (!sizes || left == 0)) return IG_OK;
    return ig_fail(IG_ESHAPE, "split: argument a is %s: axis %lld does not divide into %d %s",
                   SHAPE(s), (long long)axis, n, sizes ? "parts of these sizes" : "equal parts");
}

ig_status ig_split(ig_array a, int axis, int n, const int64_t *sizes, ig_array *ret_parts)
{
    int64_t at = axis, start = 0;
    memset(ret_parts, 0, (n > 0 ? (size_t)n : 0) * sizeof *ret_parts);
    if (ig_is_empty(a)) return ig_error_code();
    const spec *s = node_spec(a);
    TRY(shape_axis("split", s, &at));
    TRY(check_sizes(s, at, n, sizes));
    for (int i = 0; i < n; i++) {
        int64_t size = sizes ? sizes[i] : s->dim[at] / n;
        ret_parts[i] = cut(a, at, start, start + size);
        if (ig_is_empty(ret_parts[i])) {
            memset(ret_parts, 0, (size_t)n * sizeof *ret_parts);
            return ig_error_code();
        }
        start += size;
    }
    return IG_OK;
}
