/* arrays.c: see arrays.h. */
#include "support/arrays.h"
#include <math.h>
#include "support/test.h"

ig_array arrays_vector(ig_dtype dtype, const void *p, size_t n_bytes)
{
    int64_t n = (int64_t)(n_bytes / ig_dtype_size(dtype));
    return ig_array_copy(p, dtype, &n, 1);
}

/* Fractions of the golden ratio fill an interval evenly; the seed moves the start. */
ig_array arrays_spread(ig_dtype dtype, const int64_t *dims, int ndim, double lo, double hi,
                       uint32_t seed)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    double *v = malloc((size_t)(n ? n : 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        double t = (double)(i + 1) * 0.6180339887498949 + seed * 0.377;
        v[i] = lo + (hi - lo) * (t - floor(t));
    }
    ig_array a = ig_array_copy(v, IG_F64, dims, ndim), r = ig_astype(a, dtype);
    free(v);
    assert_ok(ig_eval(&r, 1));
    return r;
}

double *arrays_f64(ig_array a)
{
    int64_t n = ig_size(a);
    double *v = malloc((size_t)(n ? n : 1) * sizeof *v);
    assert_ok(ig_copy_out(a, IG_F64, v, n));
    return v;
}

void arrays_equal_f64(ig_array a, const double *want, int64_t n)
{
    if (ig_size(a) != n)
        fail_msg("%lld elements, not %lld: %s", (long long)ig_size(a), (long long)n,
                 ig_error_message());
    double *got = arrays_f64(a);
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i] && !(got[i] != got[i] && want[i] != want[i]))
            fail_msg("element %lld is %.17g, not %.17g", (long long)i, got[i], want[i]);
    free(got);
}

void arrays_dims(ig_array a, const int64_t *dims, int ndim)
{
    if (ig_is_empty(a)) fail_msg("empty: %s", ig_error_message());
    assert_int_equal(ig_ndim(a), ndim);
    for (int i = 0; i < ndim; i++) assert_int_equal(ig_dim(a, i), dims[i]);
}

static bool same_element(ig_dtype t, const char *a, const char *b, const double *x, const double *y)
{
    return memcmp(a, b, ig_dtype_size(t)) == 0 ||
           (t >= IG_F16 && t <= IG_F64 && *x != *x && *y != *y);
}

void arrays_same_bits(ig_array a, ig_array b, const char *what)
{
    const void *pa, *pb;
    if (ig_is_empty(a) || ig_is_empty(b)) fail_msg("%s: empty: %s", what, ig_error_message());
    assert_int_equal(ig_type(a), ig_type(b));
    assert_int_equal(ig_ndim(a), ig_ndim(b));
    for (int i = 0; i < ig_ndim(a); i++) assert_int_equal(ig_dim(a, i), ig_dim(b, i));
    assert_ok(ig_data(a, &pa));
    assert_ok(ig_data(b, &pb));
    size_t size = ig_dtype_size(ig_type(a));
    double *x = arrays_f64(a), *y = arrays_f64(b);
    for (int64_t i = 0; i < ig_size(a); i++)
        if (!same_element(ig_type(a), (const char *)pa + (size_t)i * size,
                          (const char *)pb + (size_t)i * size, &x[i], &y[i]))
            fail_msg("%s: element %lld is %.17g in one, %.17g in the other", what, (long long)i,
                     x[i], y[i]);
    free(x);
    free(y);
}

ig_counters arrays_counters(void)
{
    ig_counters c;
    ig_memory_counters(&c);
    return c;
}

/* What a test must give back. */
typedef struct before {
    ig_scope *scope;
    int64_t n_live_nodes, active_bytes;
} before;

int arrays_setup(void **state)
{
    before *b = malloc(sizeof *b);
    ig_error_clear();
    ig_counters c = arrays_counters();
    *b = (before){NULL, c.n_live_nodes, c.active_bytes};
    b->scope = ig_scope_open();
    *state = b;
    return b->scope ? 0 : -1;
}

int arrays_teardown(void **state)
{
    before *b = *state;
    int bad = ig_scope_close(b->scope) != IG_OK;
    if (bad) print_error("a failure was left behind: %s\n", ig_error_message());
    ig_counters c = arrays_counters();
    if (c.n_live_nodes != b->n_live_nodes || c.active_bytes != b->active_bytes) {
        print_error("left behind: %lld nodes, %lld bytes\n",
                    (long long)(c.n_live_nodes - b->n_live_nodes),
                    (long long)(c.active_bytes - b->active_bytes));
        bad = 1;
    }
    free(b);
    return -bad;
}
