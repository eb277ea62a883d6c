/* GGUF: block types decode as the gguf package decodes them; affine types are exact; lies are
 * refused. */
#include "support/test.h"
#include <errno.h>
#include <math.h>
#include "golden/io/gguf_blocks.h"
#include "base/half.h"
#include "io/gguf.h"
#include "support/tmp.h"
#include "support/walk.h"

static char dir[TMP_PATH_N];

static int open_dir(void **state)
{
    (void)state;
    tmp_open(dir);
    return 0;
}

static int close_dir(void **state)
{
    (void)state;
    tmp_close(dir);
    return 0;
}

typedef struct block_case {
    gguf_type type;
    const uint8_t *raw;
    const float *want;
} block_case;

static const block_case blocks[] = {
    {GGML_Q4_0, raw_Q4_0, want_Q4_0}, {GGML_Q4_1, raw_Q4_1, want_Q4_1},
    {GGML_Q5_0, raw_Q5_0, want_Q5_0}, {GGML_Q5_1, raw_Q5_1, want_Q5_1},
    {GGML_Q8_0, raw_Q8_0, want_Q8_0}, {GGML_Q2_K, raw_Q2_K, want_Q2_K},
    {GGML_Q3_K, raw_Q3_K, want_Q3_K}, {GGML_Q4_K, raw_Q4_K, want_Q4_K},
    {GGML_Q5_K, raw_Q5_K, want_Q5_K}, {GGML_Q6_K, raw_Q6_K, want_Q6_K},
    {GGML_BF16, raw_BF16, want_BF16},
};

TEST(every_block_type_decodes_as_its_own_package_does)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        float out[256];
        gguf_decode(blocks[i].type, blocks[i].raw, 256, out);
        for (int k = 0; k < 256; k++) {
            float want = blocks[i].want[k], slack = 4e-7f * (fabsf(want) + 1);
            if (!(fabsf(out[k] - want) <= slack))
                fail_msg("%s element %d: %.9g, expected %.9g", gguf_type_name(blocks[i].type), k,
                         (double)out[k], (double)want);
        }
    }
}

TEST(affine_types_keep_their_values_exactly)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        uint8_t codes[256];
        uint16_t scales[8], biases[8];
        float decoded[256];
        int bits;
        if (!gguf_affine_bits(blocks[i].type, &bits)) continue;
        assert_true(gguf_affine_row(blocks[i].type, blocks[i].raw, 256, codes, scales, biases));
        gguf_decode(blocks[i].type, blocks[i].raw, 256, decoded);
        for (int k = 0; k < 256; k++) {
            int q = bits == 8 ? codes[k] : codes[k / 2] >> (k % 2 * 4) & 15;
            float v = fmaf(f16_to_f32(scales[k / 32]), (float)q, f16_to_f32(biases[k / 32]));
            assert_true(v == decoded[k]);
        }
    }
}

TEST(a_bias_that_does_not_fit_is_told)
{
    uint8_t raw[34] = {0}, codes[32];
    uint16_t scale = f32_to_f16(600), s[1], b[1];
    memcpy(raw, &scale, 2);
    assert_false(gguf_affine_row(GGML_Q8_0, raw, 32, codes, s, b));
}

/* --- files made by hand */
typedef struct maker {
    uint8_t bytes[4096];
    size_t n;
} maker;

static void put(maker *m, uint64_t v, int n)
{
    for (int i = 0; i < n; i++) m->bytes[m->n++] = (uint8_t)(v >> 8 * i);
}

static void put_text(maker *m, const char *s)
{
    put(m, strlen(s), 8);
    memcpy(m->bytes + m->n, s, strlen(s));
    m->n += strlen(s);
}

/* Header with one u32 key. */
static maker make_head(uint32_t version, uint64_t n_tensors)
{
    maker m = {.n = 4};
    memcpy(m.bytes, "GGUF", 4);
    put(&m, version, 4);
    put(&m, n_tensors, 8);
    put(&m, 1, 8);
    put_text(&m, "answer");
    put(&m, GGUF_U32, 4);
    put(&m, 42, 4);
    return m;
}

static void put_tensor(maker *m, const char *name, uint32_t type, uint64_t dim, uint64_t offset)
{
    put_text(m, name);
    put(m, 1, 4);
    put(m, dim, 8);
    put(m, type, 4);
    put(m, offset, 8);
}

static void put_data(maker *m, size_t n)
{
    while (m->n % 32) m->bytes[m->n++] = 0;
    m->n += n;
}

/* One tensor at an offset; tail data bytes. */
static maker make(uint32_t version, uint32_t type, uint64_t dim, uint64_t offset, size_t n_data)
{
    maker m = make_head(version, 1);
    put_tensor(&m, "t", type, dim, offset);
    put_data(&m, n_data);
    return m;
}

static void refuses(const maker *m, ig_status code, const char *word)
{
    gguf *g = NULL;
    tmp_write(dir, "x.gguf", m->bytes, m->n);
    assert_fails(gguf_open(tmp_path(dir, "x.gguf"), &g), code, word);
    assert_null(g);
}

TEST(a_file_is_read_and_each_lie_in_it_refused)
{
    gguf *g = NULL;
    uint64_t v;
    maker good = make(3, GGML_F32, 4, 0, 16);
    tmp_write(dir, "g.gguf", good.bytes, good.n);
    assert_ok(gguf_open(tmp_path(dir, "g.gguf"), &g));
    assert_ok(gguf_get_u64(g, "answer", 100, &v));
    assert_int_equal(v, 42);
    assert_fails(gguf_get_u64(g, "answer", 41, &v), IG_ELIMIT, "answer");
    assert_fails(gguf_get_u64(g, "question", 100, &v), IG_EFORMAT, "question");
    assert_int_equal(gguf_tensor_find(g, "t")->n_bytes, 16);
    assert_null(gguf_tensor_find(g, "u"));
    gguf_free(g);

    maker m = make(1, GGML_F32, 4, 0, 16);
    refuses(&m, IG_EUNSUPPORTED, "version");
    m = make(3, 99, 4, 0, 16);
    refuses(&m, IG_EUNSUPPORTED, "type 99");
    m = make(3, GGML_F32, 4, 0, 12);
    refuses(&m, IG_EFORMAT, "truncated");
    m = make(3, GGML_F32, 4, UINT64_MAX - 31, 16);
    refuses(&m, IG_EFORMAT, "t needs bytes");
    m = make(3, GGML_F32, 4, 8, 32);
    refuses(&m, IG_EFORMAT, "aligned");
    m = make(3, GGML_Q4_0, 33, 0, 64);
    refuses(&m, IG_EFORMAT, "blocks");
    m = make(3, GGML_F32, UINT64_MAX / 2, 0, 16);
    refuses(&m, IG_EFORMAT, "t");
}

TEST(tensors_that_share_bytes_are_refused)
{
    maker m = make_head(3, 2);
    put_tensor(&m, "t", GGML_F32, 16, 0);
    put_tensor(&m, "u", GGML_F32, 8, 32);
    put_data(&m, 64);
    refuses(&m, IG_EFORMAT, "u begins before tensor t ends");
    m = make_head(3, 2);
    put_tensor(&m, "t", GGML_F32, 8, 32);
    put_tensor(&m, "u", GGML_F32, 8, 0);
    put_data(&m, 64);
    refuses(&m, IG_EFORMAT, "u begins before tensor t ends"); /* ggml wants them in order */
}

static ig_status open_and_close(void *user)
{
    gguf *g = NULL;
    (void)user;
    ig_status s = gguf_open(tmp_path(dir, "w.gguf"), &g);
    gguf_free(g);
    return s;
}

TEST(opening_survives_every_failing_allocation_and_read)
{
    maker m = make(3, GGML_F32, 4, 0, 16);
    tmp_write(dir, "w.gguf", m.bytes, m.n);
    assert_true(walk_memory(open_and_close, NULL) > 5);
    assert_true(walk_io(open_and_close, NULL, EIO, NULL) > 1);
}

TEST(every_truncation_is_refused)
{
    maker m = make(3, GGML_F32, 4, 0, 16);
    gguf *g = NULL;
    for (size_t n = 0; n < m.n; n++) {
        tmp_write(dir, "x.gguf", m.bytes, n);
        ig_error_clear();
        assert_int_not_equal(gguf_open(tmp_path(dir, "x.gguf"), &g), IG_OK);
        assert_true(*ig_error_message());
        assert_null(g);
    }
}

TEST(huge_counts_are_refused_before_memory_is_taken)
{
    maker m = make(3, GGML_F32, 4, 0, 16);
    for (int i = 0; i < 8; i++) m.bytes[8 + i] = 0xff;
    refuses(&m, IG_ELIMIT, "tensors");
    m = make(3, GGML_F32, 4, 0, 16);
    for (int i = 0; i < 8; i++) m.bytes[16 + i] = 0xff;
    refuses(&m, IG_ELIMIT, "keys");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_block_type_decodes_as_its_own_package_does),
        CASE(affine_types_keep_their_values_exactly),
        CASE(a_bias_that_does_not_fit_is_told),
        CASE(a_file_is_read_and_each_lie_in_it_refused),
        CASE(tensors_that_share_bytes_are_refused),
        CASE(opening_survives_every_failing_allocation_and_read),
        CASE(every_truncation_is_refused),
        CASE(huge_counts_are_refused_before_memory_is_taken),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
