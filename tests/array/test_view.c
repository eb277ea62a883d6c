/* Views: every chain of them equals the same moves made on a dense copy, and moves no bytes
 * where strides can say it. */
#include "support/arrays.h"
#include "support/test.h"

#define MAX_ELEMENTS 4096

/* A dense array that is really moved. */
typedef struct dense {
    int ndim;
    int64_t dim[8];
    float v[MAX_ELEMENTS];
} dense;

static int64_t size_of(const dense *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

/* out[index] = in[map(index)] where map is start + index * step per axis of in; axis k of out
 * reads axis from[k]. */
static void gather(const dense *in, dense *out, const int *from, const int64_t *start,
                   const int64_t *every)
{
    int64_t index[8] = {0};
    for (int64_t i = 0; i < size_of(out); i++) {
        int64_t at[8] = {0}, flat = 0;
        for (int k = 0; k < in->ndim; k++) at[k] = start[k];
        for (int k = 0; k < out->ndim; k++)
            if (from[k] >= 0) at[from[k]] += index[k] * every[from[k]];
        for (int k = 0; k < in->ndim; k++) flat = flat * in->dim[k] + at[k];
        out->v[i] = in->v[flat];
        for (int k = out->ndim - 1; k >= 0 && ++index[k] == out->dim[k]; k--) index[k] = 0;
    }
}

static uint32_t random_state;
static int pick(int n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)((random_state >> 16) % (uint32_t)n);
}

static ig_array random_transpose(ig_array a, dense *d)
{
    int axes[8];
    int64_t zero[8] = {0}, one[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    dense out = {.ndim = d->ndim};
    for (int i = 0; i < d->ndim; i++) axes[i] = i;
    for (int i = d->ndim - 1; i > 0; i--) {
        int j = pick(i + 1), x = axes[i];
        axes[i] = axes[j];
        axes[j] = x;
    }
    for (int i = 0; i < d->ndim; i++) out.dim[i] = d->dim[axes[i]];
    gather(d, &out, axes, zero, one);
    *d = out;
    for (int i = 0; i < d->ndim; i++) axes[i] -= pick(2) ? d->ndim : 0;
    return ig_transpose(a, axes, d->ndim);
}

static ig_array random_slice(ig_array a, dense *d)
{
    int64_t start[8], stop[8], every[8], first[8];
    int from[8];
    dense out = {.ndim = d->ndim};
    for (int i = 0; i < d->ndim; i++) {
        int64_t n = d->dim[i];
        from[i] = i;
        every[i] = n ? (pick(2) ? 1 : -1) * (1 + pick(3)) : 1;
        first[i] = n ? pick((int)n) : 0;
        int64_t room =
            every[i] > 0 ? (n - first[i] + every[i] - 1) / every[i] : first[i] / -every[i] + 1;
        int64_t m = room > 0 ? 1 + pick((int)room) : 0;
        out.dim[i] = m;
        start[i] = first[i] - (n && pick(2) ? n : 0);
        stop[i] = first[i] + m * every[i];
        if (every[i] > 0 && stop[i] > n) stop[i] = n + pick(3); /* clipped */
        if (every[i] < 0 && stop[i] < 0) stop[i] = -n - 1;      /* before the first */
    }
    gather(d, &out, from, first, every);
    *d = out;
    return ig_slice(a, start, d->ndim, stop, d->ndim, every, d->ndim);
}

static ig_array random_broadcast(ig_array a, dense *d)
{
    int64_t zero[8] = {0}, every[8];
    int from[8];
    dense out = {.ndim = d->ndim < 5 ? d->ndim + 1 : d->ndim};
    int shift = out.ndim - d->ndim;
    out.dim[0] = 1 + pick(2);
    from[0] = -1;
    for (int i = 0; i < d->ndim; i++) {
        bool repeat = d->dim[i] == 1;
        from[i + shift] = i;
        every[i] = repeat ? 0 : 1;
        out.dim[i + shift] = repeat ? 1 + pick(3) : d->dim[i];
    }
    if (size_of(&out) > MAX_ELEMENTS) return a;
    gather(d, &out, from, zero, every);
    *d = out;
    return ig_broadcast_to(a, d->dim, d->ndim);
}

/* Splits an axis, or joins two. */
static ig_array random_reshape(ig_array a, dense *d)
{
    int64_t asked[8];
    int k = pick(d->ndim);
    if (d->ndim < 5 && d->dim[k] % 2 == 0 && d->dim[k]) {
        for (int i = d->ndim; i > k + 1; i--) d->dim[i] = d->dim[i - 1];
        d->dim[k + 1] = d->dim[k] / 2;
        d->dim[k] = 2;
        d->ndim++;
    } else if (d->ndim > 1 && k + 1 < d->ndim) {
        d->dim[k] *= d->dim[k + 1];
        d->ndim--;
        for (int i = k + 1; i < d->ndim; i++) d->dim[i] = d->dim[i + 1];
    }
    memcpy(asked, d->dim, sizeof asked);
    if (size_of(d)) asked[pick(d->ndim)] = -1;
    return ig_reshape(a, asked, d->ndim);
}

static ig_array random_expand(ig_array a, dense *d)
{
    int k = pick(d->ndim + 1);
    if (d->ndim == 5) return ig_contiguous(a);
    for (int i = d->ndim; i > k; i--) d->dim[i] = d->dim[i - 1];
    d->dim[k] = 1;
    d->ndim++;
    return ig_expand_dims(a, &k, 1);
}

static ig_array random_squeeze(ig_array a, dense *d)
{
    int n = 0;
    for (int i = 0; i < d->ndim; i++)
        if (d->dim[i] != 1) d->dim[n++] = d->dim[i];
    d->ndim = n;
    return ig_squeeze(a, NO_AXES);
}

static void check(ig_array a, const dense *d, int round, int step)
{
    float got[MAX_ELEMENTS];
    if (ig_is_empty(a)) fail_msg("round %d step %d: %s", round, step, ig_error_message());
    arrays_dims(a, d->dim, d->ndim);
    assert_ok(ig_copy_out(a, IG_F32, got, size_of(d)));
    if (memcmp(got, d->v, (size_t)size_of(d) * sizeof got[0]) != 0)
        fail_msg("round %d step %d: other elements", round, step);
    const void *flat;
    assert_ok(ig_data(a, &flat));
    assert_memory_equal(flat, d->v, (size_t)size_of(d) * sizeof got[0]);
}

TEST(chains_of_views_equal_the_same_moves_on_a_dense_copy)
{
    static ig_array (*const moves[])(ig_array, dense *) = {random_transpose, random_slice,
                                                           random_broadcast, random_reshape,
                                                           random_expand,    random_squeeze};
    static dense d;
    for (int round = 0; round < 400; round++) {
        random_state = (uint32_t)round;
        ig_scope *s = ig_scope_open();
        d = (dense){.ndim = 3, .dim = {1 + pick(6), 1 + pick(6), 1 + pick(6)}};
        for (int64_t i = 0; i < size_of(&d); i++) d.v[i] = (float)i;
        ig_array a = ig_array_copy(d.v, IG_F32, d.dim, d.ndim);
        for (int step = 0; step < 6 && d.ndim > 0; step++) {
            a = moves[pick(6)](a, &d);
            if (pick(2)) check(a, &d, round, step);
        }
        check(a, &d, round, 6);
        assert_ok(ig_scope_close(s));
    }
}

static bool takes_memory(ig_array view)
{
    int64_t before = arrays_counters().active_bytes;
    assert_ok(ig_eval(&view, 1));
    return arrays_counters().active_bytes != before;
}

TEST(views_take_no_memory)
{
    ig_array a = arrays_spread(IG_F32, DIMS(64, 64), -1, 1, 1);
    assert_false(takes_memory(ig_transpose(a, NO_AXES)));
    assert_false(takes_memory(ig_slice(a, DIMS(3, 9), DIMS(60, 20), DIMS(2, 3))));
    assert_false(takes_memory(ig_broadcast_to(a, DIMS(100, 64, 64))));
    assert_false(takes_memory(ig_reshape(a, DIMS(8, -1, 16))));
    assert_false(takes_memory(ig_reshape(
        ig_transpose(ig_reshape(a, DIMS(4, 16, 64)), AXES(1, 0, 2)), DIMS(16, 4, 8, 8))));
    assert_false(takes_memory(ig_squeeze(ig_expand_dims(a, AXES(0, 2)), NO_AXES)));
    assert_true(takes_memory(
        ig_reshape(ig_transpose(a, NO_AXES), DIMS(-1)))); /* cannot be said by strides */
}

TEST(a_row_major_view_gives_the_address_inside_its_base)
{
    const char *p, *q;
    ig_array a = arrays_spread(IG_F32, DIMS(16, 4), -1, 1, 1);
    ig_array rows = ig_slice(a, DIMS(5, 0), DIMS(9, 4), DIMS(1, 1));
    assert_ok(ig_data(a, (const void **)&p));
    assert_ok(ig_data(rows, (const void **)&q));
    assert_ptr_equal(q, p + 5 * 4 * sizeof(float));
}

TEST(wrong_views_are_refused_with_a_reason)
{
    ig_array a = arrays_spread(IG_F32, DIMS(2, 3), -1, 1, 1);
    assert_refused(ig_reshape(a, DIMS(4, 2)), IG_ESHAPE,
                   "reshape: argument a is float32 [2, 3]: its elements do not fill");
    assert_refused(ig_reshape(a, DIMS(-1, -1)), IG_EINVAL, "one of them may be -1");
    assert_refused(ig_reshape(a, DIMS(-2, 3)), IG_EINVAL, "must be >= 0");
    assert_refused(ig_reshape(a, DIMS(-1, 4)), IG_ESHAPE, "do not fill");
    assert_refused(ig_reshape(a, DIMS(INT64_MAX, INT64_MAX)), IG_ELIMIT, "too large a product");
    assert_refused(ig_transpose(a, AXES(0)), IG_ESHAPE,
                   "transpose: argument a is float32 [2, 3]: as many axes");
    assert_refused(ig_transpose(a, AXES(0, 0)), IG_EINVAL, "transpose: axis 0 is listed twice");
    assert_refused(ig_transpose(a, AXES(0, 2)), IG_EINVAL,
                   "axis 2 is out of range for float32 [2, 3]");
    assert_refused(ig_slice(a, DIMS(0, 0), DIMS(2, 3), DIMS(1, 0)), IG_EINVAL,
                   "slice: step of axis 1 is 0");
    assert_refused(ig_slice(a, DIMS(0), DIMS(2, 3), DIMS(1, 1)), IG_ESHAPE,
                   "one value for each dimension");
    assert_refused(ig_broadcast_to(a, DIMS(3)), IG_ESHAPE, "more dimensions than asked for");
    assert_refused(ig_broadcast_to(a, DIMS(2, 4)), IG_ESHAPE,
                   "float32 [2, 3] does not broadcast to float32 [2, 4]");
    assert_refused(ig_broadcast_to(a, DIMS(-1, 3)), IG_ESHAPE, "dimension 0 is negative");
    assert_refused(ig_squeeze(a, AXES(0)), IG_ESHAPE,
                   "squeeze: argument a is float32 [2, 3]: only fixed");
    assert_refused(ig_expand_dims(a, AXES(4)), IG_EINVAL, "expand_dims: axis 4 is out of range");
    assert_refused(ig_reshape(a, (const int64_t[17]){1}, 17), IG_EINVAL,
                   "reshape: a list of dims or axes longer than 16");
    assert_refused(ig_broadcast_to(a, DIMS(1ll << 40, 1ll << 40, 2, 3)), IG_ELIMIT,
                   "more bytes than 63 bits");
}

TEST(slices_clip_as_python_does)
{
    ig_array a = I32(0, 1, 2, 3, 4);
    assert_elements(ig_slice(a, DIMS(-3), DIMS(99), DIMS(1)), 2, 3, 4);
    assert_elements(ig_slice(a, DIMS(-99), DIMS(2), DIMS(1)), 0, 1);
    assert_elements(ig_slice(a, DIMS(99), DIMS(-99), DIMS(-2)), 4, 2, 0);
    assert_elements(ig_slice(a, DIMS(3), DIMS(0), DIMS(-1)), 3, 2, 1);
    assert_dims(ig_slice(a, DIMS(3), DIMS(1), DIMS(1)), 0);
    assert_elements(ig_slice(a, DIMS(0), DIMS(5), DIMS(INT64_MAX)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(chains_of_views_equal_the_same_moves_on_a_dense_copy),
        ARRAY_CASE(views_take_no_memory),
        ARRAY_CASE(a_row_major_view_gives_the_address_inside_its_base),
        ARRAY_CASE(wrong_views_are_refused_with_a_reason),
        ARRAY_CASE(slices_clip_as_python_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
