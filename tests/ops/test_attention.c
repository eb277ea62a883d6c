/* Norms, rotary embedding and attention against plain graphs and the orders of docs/numerics.md. */
#include <math.h>
#include "array/core/paged.h"
#include "ingot/device.h"
#include "support/arrays.h"
#include "support/test.h"

static void near(ig_array a, ig_array b, double tol, const char *what)
{
    if (ig_is_empty(a) || ig_is_empty(b)) fail_msg("%s: %s", what, ig_error_message());
    assert_int_equal(ig_size(a), ig_size(b));
    double *x = arrays_f64(a), *y = arrays_f64(b);
    for (int64_t i = 0; i < ig_size(a); i++)
        if (!(fabs(x[i] - y[i]) <= tol * (1 + fabs(y[i]))))
            fail_msg("%s: element %lld is %.9g, not %.9g", what, (long long)i, x[i], y[i]);
    free(x);
    free(y);
}

/* --- norms */

TEST(rms_norm_equals_its_graph)
{
    ig_array x = arrays_spread(IG_F32, DIMS(2, 5, 301), -3, 3, 1),
             w = arrays_spread(IG_F32, DIMS(301), 0.5, 2, 2), none = {0};
    ig_array mean = ig_mean(ig_square(x), AXES(-1), true);
    ig_array plain = ig_multiply(x, ig_rsqrt(ig_add(mean, ig_scalar_f32(1e-5f))));
    near(ig_rms_norm(x, w, 1e-5), ig_multiply(plain, w), 1e-6, "weighted");
    near(ig_rms_norm(x, none, 1e-5), plain, 1e-6, "plain");
    arrays_same_bits(ig_rms_norm(ig_astype(x, IG_BF16), ig_astype(w, IG_BF16), 1e-5),
                     ig_astype(ig_rms_norm(ig_astype(ig_astype(x, IG_BF16), IG_F32),
                                           ig_astype(ig_astype(w, IG_BF16), IG_F32), 1e-5),
                               IG_BF16),
                     "bf16 rows are computed in f32");
}

TEST(layer_norm_equals_its_graph)
{
    ig_array x = arrays_spread(IG_F32, DIMS(7, 130), -3, 3, 1), none = {0};
    ig_array w = arrays_spread(IG_F32, DIMS(130), 0.5, 2, 2),
             b = arrays_spread(IG_F32, DIMS(130), -1, 1, 3);
    ig_array centred = ig_subtract(x, ig_mean(x, AXES(1), true));
    ig_array var = ig_mean(ig_square(centred), AXES(1), true);
    ig_array plain = ig_multiply(centred, ig_rsqrt(ig_add(var, ig_scalar_f32(1e-5f))));
    near(ig_layer_norm(x, w, b, 1e-5), ig_add(ig_multiply(plain, w), b), 2e-6, "both");
    near(ig_layer_norm(x, w, none, 1e-5), ig_multiply(plain, w), 2e-6, "weight");
    near(ig_layer_norm(x, none, b, 1e-5), ig_add(plain, b), 2e-6, "bias");
    near(ig_layer_norm(x, none, none, 1e-5), plain, 2e-6, "none");
}

/* Two elements, so that the order of the sums is plain. */
TEST(norms_of_float64_keep_its_digits_and_add_the_bias_by_fma)
{
    const double x[] = {0.1, 0.7}, w[] = {1.0 / 3, 5.0 / 7}, b[] = {0.3, -0.9}, eps = 0.1;
    ig_array ax = SHAPED(arrays_vector(IG_F64, x, sizeof x), 1, 2), none = {0};
    ig_array aw = arrays_vector(IG_F64, w, sizeof w), ab = arrays_vector(IG_F64, b, sizeof b);
    double mean = (x[0] + x[1]) / 2, d[] = {x[0] - mean, x[1] - mean};
    double inv = 1 / sqrt((d[0] * d[0] + d[1] * d[1]) / 2 + eps);
    double rms = 1 / sqrt((x[0] * x[0] + x[1] * x[1]) / 2 + eps);
    assert_elements(ig_rms_norm(ax, none, eps), x[0] * rms, x[1] * rms);
    assert_elements(ig_layer_norm(ax, aw, ab, eps), fma(d[0] * inv, w[0], b[0]),
                    fma(d[1] * inv, w[1], b[1]));
    assert_elements(ig_layer_norm(ax, aw, none, eps), d[0] * inv * w[0], d[1] * inv * w[1]);
}

TEST(norms_refuse_what_has_no_rows_or_other_weights)
{
    ig_array x = ig_full(DIMS(2, 3), 1, IG_F32), none = {0};
    assert_refused(ig_rms_norm(x, F32(1, 2), 1e-5), IG_ESHAPE,
                   "rms_norm: arguments x float32 [2, 3] and weight float32 [2]");
    assert_refused(ig_rms_norm(ig_scalar_f32(1), none, 1e-5), IG_ESHAPE,
                   "rms_norm: argument x is float32 []");
    assert_refused(ig_rms_norm(x, none, -1), IG_EINVAL, "rms_norm: eps is -1");
    assert_refused(ig_rms_norm(x, none, NAN), IG_EINVAL, "rms_norm: eps is");
    assert_refused(ig_layer_norm(ig_astype(x, IG_I32), none, none, 1e-5), IG_EDTYPE,
                   "layer_norm: argument x is int32");
}

/* --- rope */

static ig_array rope_table(int64_t n, int64_t half)
{
    float *t = malloc((size_t)(n * 2 * half) * sizeof *t);
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p * pow(10000, -(double)i / (double)half);
            t[(p * 2) * half + i] = (float)cos(angle);
            t[(p * 2 + 1) * half + i] = (float)sin(angle);
        }
    ig_array a = ig_array_copy(t, IG_F32, DIMS(n, 2, half));
    free(t);
    return a;
}

static void check_rope(bool interleaved, int64_t rotated)
{
    enum { T = 4, H = 3, D = 16 };
    static const int32_t pos[T] = {0, 7, 3, 19};
    int64_t half = rotated / 2;
    ig_array x = arrays_spread(IG_F32, DIMS(T, H, D), -2, 2, 1), table = rope_table(20, half);
    const float *v, *t;
    float want[T * H * D];
    assert_ok(ig_data(x, (const void **)&v));
    assert_ok(ig_data(table, (const void **)&t));
    memcpy(want, v, sizeof want);
    for (int row = 0; row < T * H; row++)
        for (int64_t i = 0; i < half; i++) {
            int64_t p = pos[row / H], at = row * D + (interleaved ? 2 * i : i),
                    bt = at + (interleaved ? 1 : half);
            float c = t[p * 2 * half + i], s = t[(p * 2 + 1) * half + i];
            want[at] = fmaf(-v[bt], s, v[at] * c);
            want[bt] = fmaf(v[at], s, v[bt] * c);
        }
    ig_array y = ig_rope(x, arrays_vector(IG_I32, pos, sizeof pos), table, interleaved);
    arrays_same_bits(y, ig_array_copy(want, IG_F32, DIMS(T, H, D)),
                     interleaved ? "interleaved" : "halves");
}

TEST(rope_rotates_pairs_by_the_row_of_the_position)
{
    const char *first = ig_device_isa();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        check_rope(false, 16);
        check_rope(true, 16);
        check_rope(false, 10); /* a part of the head */
        check_rope(true, 6);
    }
    assert_ok(ig_device_set_isa(first));
}

TEST(a_position_outside_the_table_gives_nan)
{
    ig_array y = ig_rope(ig_full(DIMS(3, 1, 4), 1, IG_F32), I32(2, -1, 1), rope_table(2, 2), false);
    double *v = arrays_f64(y);
    assert_true(v[0] != v[0] && v[4] != v[4] && v[8] == v[8]);
    free(v);
    assert_refused(ig_rope(ig_full(DIMS(3, 1, 4), 1, IG_F32), I32(1), rope_table(2, 2), false),
                   IG_ESHAPE, "one value for each row");
    assert_refused(ig_rope(ig_full(DIMS(1, 1, 2), 1, IG_F32), I32(1), rope_table(2, 2), false),
                   IG_ESHAPE, "R <= the head size");
}

/* --- scaled dot-product attention */

/* softmax(q kT scale + mask) v with heads of k and v repeated; mask may be empty. */
static ig_array attention_graph(ig_array q, ig_array k, ig_array v, ig_array mask, double scale)
{
    int64_t b = ig_dim(q, 0), h = ig_dim(q, 1), l = ig_dim(q, 2), d = ig_dim(q, 3),
            g = ig_dim(k, 1), s = ig_dim(k, 2);
    ig_array q5 = ig_reshape(q, DIMS(b, g, h / g, l, d));
    ig_array k5 = ig_reshape(k, DIMS(b, g, 1, s, d)),
             v5 = ig_reshape(v, DIMS(b, g, 1, s, ig_dim(v, 3)));
    ig_array score = ig_multiply(ig_matmul(q5, ig_transpose(k5, AXES(0, 1, 2, 4, 3))),
                                 ig_scalar_f32((float)scale));
    score = ig_reshape(score, DIMS(b, h, l, s));
    if (!ig_is_empty(mask) && ig_type(mask) == IG_BOOL)
        score = ig_where(mask, score, ig_scalar_f32(-INFINITY));
    else if (!ig_is_empty(mask))
        score = ig_add(score, mask);
    ig_array p = ig_reshape(ig_softmax(score, -1), DIMS(b, g, h / g, l, s));
    return ig_reshape(ig_matmul(p, v5), DIMS(b, h, l, ig_dim(v, 3)));
}

TEST(sdpa_equals_a_plain_softmax_graph)
{
    ig_array q = arrays_spread(IG_F32, DIMS(2, 6, 5, 16), -2, 2, 1),
             k = arrays_spread(IG_F32, DIMS(2, 2, 300, 16), -2, 2, 2);
    ig_array v = arrays_spread(IG_F32, DIMS(2, 2, 300, 24), -2, 2, 3), none = {0};
    ig_array additive = arrays_spread(IG_F32, DIMS(5, 300), -3, 0, 4),
             boolean = ig_greater(additive, ig_scalar_f32(-2));
    ig_array causal = ig_tri(5, 300, 295, IG_BOOL);
    near(ig_sdpa(q, k, v, none, 0.25, false), attention_graph(q, k, v, none, 0.25), 1e-5,
         "no mask");
    near(ig_sdpa(q, k, v, additive, 0.25, false), attention_graph(q, k, v, additive, 0.25), 1e-5,
         "additive");
    near(ig_sdpa(q, k, v, boolean, 0.25, false), attention_graph(q, k, v, boolean, 0.25), 1e-5,
         "boolean");
    near(ig_sdpa(q, k, v, none, 0.25, true), attention_graph(q, k, v, causal, 0.25), 1e-5,
         "causal");
    near(ig_sdpa(q, k, v, boolean, 0.25, true),
         attention_graph(q, k, v, ig_logical_and(boolean, causal), 0.25), 1e-5, "both");
    near(ig_sdpa(ig_astype(q, IG_F16), ig_astype(k, IG_F16), ig_astype(v, IG_F16), none, 0.25,
                 false),
         attention_graph(q, k, v, none, 0.25), 1e-2, "float16");
}

TEST(sdpa_refuses_shapes_that_do_not_meet)
{
    ig_array q = ig_full(DIMS(1, 6, 5, 16), 1, IG_F32), k = ig_full(DIMS(1, 4, 7, 16), 1, IG_F32),
             none = {0};
    assert_refused(ig_sdpa(q, k, k, none, 1, false), IG_ESHAPE,
                   "sdpa: arguments q float32 [1, 6, 5, 16] and k float32 [1, 4, 7, 16]");
    assert_refused(ig_sdpa(ig_full(DIMS(5, 16), 1, IG_F32), k, k, none, 1, false), IG_ESHAPE,
                   "it must have 4 dimensions");
    ig_array v = ig_full(DIMS(1, 6, 8, 16), 1, IG_F32);
    assert_refused(ig_sdpa(q, ig_full(DIMS(1, 6, 7, 16), 1, IG_F32), v, none, 1, false), IG_ESHAPE,
                   "batch, heads and positions of keys and values");
    ig_array k6 = ig_full(DIMS(1, 6, 7, 16), 1, IG_F32);
    assert_refused(ig_sdpa(q, k6, k6, ig_full(DIMS(5, 8), 0, IG_F32), 1, false), IG_ESHAPE,
                   "does not broadcast to");
    assert_refused(ig_sdpa(q, k6, k6, ig_full(DIMS(5, 7), 0, IG_I32), 1, false), IG_EDTYPE,
                   "argument mask is int32");
}

/* --- paged attention */

enum { HEADS = 6, KV = 2, D = 32, PAGES = 14, MAX_PAGES = 6 };

typedef struct paged {
    ig_array pool, pages; /* [S, MAX_PAGES] */
    ig_array k[2], v[2];  /* what sequence i holds, [n, KV, D] */
    int n[2];
} paged;

/* Two sequences of n0 and n1 positions, their pages scattered over the pool, written row by row
 * in a mixed order. */
static paged paged_new(int n0, int n1, ig_dtype type)
{
    static const int32_t page[2][MAX_PAGES] = {{3, 0, 9, 5, 12, 7}, {1, 11, 4, 13, 2, 6}};
    paged p = {.pages = ig_array_copy(page, IG_I32, DIMS(2, MAX_PAGES)), .n = {n0, n1}};
    p.pool = ig_full(DIMS(PAGES, ig_page_bytes(KV, D, type)), 0, IG_U8);
    for (int s = 0; s < 2; s++) {
        int n = p.n[s];
        int32_t *slot = malloc((size_t)(n + 1) * sizeof *slot);
        p.k[s] = arrays_spread(IG_F32, DIMS(n, KV, D), -2, 2, (uint32_t)s + 1);
        p.v[s] = arrays_spread(IG_F32, DIMS(n, KV, D), -2, 2, (uint32_t)s + 5);
        for (int i = 0; i < n; i++) slot[i] = page[s][i / KV_PAGE] * KV_PAGE + i % KV_PAGE;
        int64_t dim = n;
        p.pool = ig_paged_write(p.pool, p.k[s], p.v[s], ig_array_copy(slot, IG_I32, &dim, 1), KV, D,
                                type);
        free(slot);
    }
    return p;
}

/* [H, D] of one query over positions 0..pos of sequence s, by the plain graph. */
static ig_array expected_row(const paged *p, ig_array q, int s, int pos, double scale)
{
    ig_array k = ig_slice(p->k[s], DIMS(0, 0, 0), DIMS(pos + 1, KV, D), DIMS(1, 1, 1));
    ig_array v = ig_slice(p->v[s], DIMS(0, 0, 0), DIMS(pos + 1, KV, D), DIMS(1, 1, 1)), none = {0};
    ig_array y =
        attention_graph(ig_reshape(q, DIMS(1, HEADS, 1, D)),
                        ig_expand_dims(ig_transpose(k, AXES(1, 0, 2)), AXES(0)),
                        ig_expand_dims(ig_transpose(v, AXES(1, 0, 2)), AXES(0)), none, scale);
    return ig_reshape(y, DIMS(HEADS, D));
}

static void check_paged(ig_dtype type, double tol)
{
    enum { T = 6 };
    static const int32_t seq[T] = {0, 0, 0, 1, 1, 1}, pos[T] = {0, 63, 299, 64, 255, 256};
    paged p = paged_new(300, 257, type);
    ig_array q = arrays_spread(IG_F32, DIMS(T, HEADS, D), -2, 2, 9);
    ig_array y = ig_paged_attention(q, p.pool, p.pages, arrays_vector(IG_I32, seq, sizeof seq),
                                    arrays_vector(IG_I32, pos, sizeof pos), KV, type, 0.3);
    assert_dims(y, T, HEADS, D);
    for (int t = 0; t < T; t++)
        near(ig_reshape(ig_take(y, I32(t), 0), DIMS(HEADS, D)),
             expected_row(&p, ig_take(q, I32(t), 0), seq[t], pos[t], 0.3), tol,
             ig_dtype_name(type));
}

TEST(paged_attention_equals_a_plain_softmax_graph_in_every_cache_type)
{
    const char *first = ig_device_isa();
    for (const char *const *isa = ig_device_isas(); *isa; isa++) {
        assert_ok(ig_device_set_isa(*isa));
        check_paged(IG_F32, 1e-5);
        check_paged(IG_F16, 3e-3);
        check_paged(IG_BF16, 2e-2);
        check_paged(IG_I8, 4e-2);
    }
    assert_ok(ig_device_set_isa(first));
}

TEST(a_query_gives_the_same_bits_alone_and_in_any_batch)
{
    static const ig_dtype types[] = {IG_F32, IG_F16, IG_BF16, IG_I8};
    const char *first = ig_device_isa();
    int threads = ig_device_threads();
    for (int k = 0; k < 4; k++) {
        paged p = paged_new(300, 257, types[k]);
        ig_array q = arrays_spread(IG_F32, DIMS(40, HEADS, D), -2, 2, 9), all = {0};
        ig_array seq =
            ig_astype(ig_greater_equal(ig_arange(0, 40, 1, IG_I32), ig_scalar_i32(25)), IG_I32);
        ig_array pos = ig_remainder(ig_multiply(ig_arange(0, 40, 1, IG_I32), ig_scalar_i32(29)),
                                    ig_scalar_i32(257));
        for (const char *const *isa = ig_device_isas(); *isa; isa++) {
            assert_ok(ig_device_set_isa(*isa));
            assert_ok(ig_device_set_threads(1 + (*isa)[0] % 2));
            ig_array y = ig_paged_attention(q, p.pool, p.pages, seq, pos, KV, types[k], 0.3);
            assert_ok(ig_eval(&y, 1));
            if (ig_is_empty(all)) all = y;
            arrays_same_bits(y, all, *isa);
            for (int t = 0; t < 40; t += 13) {
                ig_array one = ig_paged_attention(ig_take(q, I32(t), 0), p.pool, p.pages,
                                                  ig_take(seq, I32(t), 0), ig_take(pos, I32(t), 0),
                                                  KV, types[k], 0.3);
                arrays_same_bits(one, ig_take(all, I32(t), 0), "alone");
            }
        }
    }
    assert_ok(ig_device_set_isa(first));
    assert_ok(ig_device_set_threads(threads));
}

TEST(keys_turned_while_they_are_written_have_the_bits_of_keys_turned_before)
{
    static const ig_dtype types[] = {IG_F32, IG_F16, IG_BF16, IG_I8};
    const char *first = ig_device_isa();
    ig_array k = arrays_spread(IG_F32, DIMS(5, KV, D), -2, 2, 1), /* every second of two heads */
        wide = ig_slice(arrays_spread(IG_F32, DIMS(5, 2 * KV, D), -2, 2, 2), DIMS(0, 1, 0),
                        DIMS(5, 2 * KV, D), DIMS(1, 2, 1));
    ig_array table = arrays_spread(IG_F32, DIMS(9, 2, D / 2 - 1), -1, 1, 3), /* two stay */
        at = I32(0, 8, 9, -1, 3), slots = I32(0, 64, 1, 127, -1);
    for (int i = 0; i < 4; i++) {
        ig_array pool = ig_full(DIMS(2, ig_page_bytes(KV, D, types[i])), 7, IG_U8);
        for (const char *const *isa = ig_device_isas(); *isa; isa++) {
            assert_ok(ig_device_set_isa(*isa));
            for (int j = 0; j < 4; j++) {
                ig_array x = j & 2 ? wide : k, before = ig_rope(x, at, table, j & 1);
                assert_ok(ig_eval(&before, 1));
                arrays_same_bits(
                    ig_paged_write(pool, ig_rope(x, at, table, j & 1), k, slots, KV, D, types[i]),
                    ig_paged_write(pool, before, k, slots, KV, D, types[i]), *isa);
            }
        }
    }
    assert_ok(ig_device_set_isa(first));
}

TEST(a_negative_slot_is_written_nowhere)
{
    ig_array pool = ig_full(DIMS(2, ig_page_bytes(1, 4, IG_F32)), 7, IG_U8),
             kv = ig_full(DIMS(3, 1, 4), 1, IG_F32);
    ig_array y = ig_paged_write(pool, kv, kv, I32(-1, -64, 2 * 64), 1, 4,
                                IG_F32); /* nowhere, nowhere, beyond the pool */
    arrays_same_bits(y, pool, "pool");
}

TEST(paged_operations_refuse_pools_of_another_geometry)
{
    ig_array pool = ig_full(DIMS(2, 100), 0, IG_U8), kv = ig_full(DIMS(3, 1, 4), 1, IG_F32);
    assert_refused(ig_paged_write(pool, kv, kv, I32(0, 1, 2), 1, 4, IG_F16), IG_ESHAPE,
                   "paged_write: argument pool is uint8 [2, 100]: a page of 1 heads of 4 in "
                   "float16 has 1024 bytes");
    assert_refused(ig_paged_write(pool, kv, kv, I32(0, 1, 2), 1, 4, IG_F64), IG_EDTYPE,
                   "dtype float64");
    assert_refused(ig_paged_write(pool, kv, kv, I32(0), 0, 4, IG_F16), IG_EINVAL, "0 heads of 4");
    ig_array wide = ig_full(DIMS(3, 1, 8), 1, IG_F32);
    assert_refused(ig_paged_write(ig_full(DIMS(2, 1024), 0, IG_U8), kv, wide, I32(0), 1, 4, IG_F16),
                   IG_ESHAPE, "both must be [T, n_kv, head_dim]");
    ig_array right = ig_full(DIMS(2, 1024), 0, IG_U8);
    assert_refused(ig_paged_write(right, kv, kv, I32(0, 1), 1, 4, IG_F16), IG_ESHAPE,
                   "one slot for each row");
    assert_refused(ig_paged_attention(ig_full(DIMS(3, 1, 4), 1, IG_F32), right,
                                      SHAPED(I32(0), 1, 1), I32(0), I32(0), 1, IG_F16, 1),
                   IG_ESHAPE,
                   "paged_attention: arguments q float32 [3, 1, 4] and seq int32 [1]: there "
                   "must be one value for each row");
    assert_refused(ig_paged_attention(ig_full(DIMS(1, 3, 2), 1, IG_F32), right,
                                      SHAPED(I32(0), 1, 1), I32(0), I32(0), 2, IG_F16, 1),
                   IG_ESHAPE, "its heads are not a multiple of 2");
    assert_refused(ig_paged_attention(ig_full(DIMS(1, 0, 4), 1, IG_F32), right,
                                      SHAPED(I32(0), 1, 1), I32(0), I32(0), 1, IG_F16, 1),
                   IG_ESHAPE, "it has no heads");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARRAY_CASE(rms_norm_equals_its_graph),
        ARRAY_CASE(layer_norm_equals_its_graph),
        ARRAY_CASE(norms_of_float64_keep_its_digits_and_add_the_bias_by_fma),
        ARRAY_CASE(norms_refuse_what_has_no_rows_or_other_weights),
        ARRAY_CASE(rope_rotates_pairs_by_the_row_of_the_position),
        ARRAY_CASE(a_position_outside_the_table_gives_nan),
        ARRAY_CASE(sdpa_equals_a_plain_softmax_graph),
        ARRAY_CASE(sdpa_refuses_shapes_that_do_not_meet),
        ARRAY_CASE(paged_attention_equals_a_plain_softmax_graph_in_every_cache_type),
        ARRAY_CASE(a_query_gives_the_same_bits_alone_and_in_any_batch),
        ARRAY_CASE(keys_turned_while_they_are_written_have_the_bits_of_keys_turned_before),
        ARRAY_CASE(a_negative_slot_is_written_nowhere),
        ARRAY_CASE(paged_operations_refuse_pools_of_another_geometry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
