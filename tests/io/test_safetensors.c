/* safetensors files and npy files: what is written comes back, what lies is refused by name. */
#include "support/test.h"
#include <errno.h>
#include "base/file.h"
#include "base/json.h"
#include "ingot/io.h"
#include "ingot/memory.h"
#include "ingot/ops.h"
#include "io/safetensors.h"
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

/* A file with this header text, padded to 8 bytes, and n data bytes. */
static void write_file(const char *name, const char *header, size_t n_data)
{
    size_t n_text = strlen(header), n = (n_text + 7) / 8 * 8;
    uint8_t *bytes = calloc(1, 8 + n + n_data);
    memset(bytes + 8, ' ', n);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(n >> 8 * i);
    memcpy(bytes + 8, header, n_text);
    tmp_write(dir, name, bytes, 8 + n + n_data);
    free(bytes);
}

/* Opening such a file fails with this code and word. */
static void refuses(const char *header, size_t n_data, ig_status code, const char *word)
{
    ig_weights *w = NULL;
    write_file("x.safetensors", header, n_data);
    assert_fails(ig_weights_open(tmp_path(dir, "x.safetensors"), &w), code, word);
    assert_null(w);
}

TEST(what_is_saved_is_opened_with_the_same_bytes)
{
    const int64_t dims[] = {3, 5};
    ig_weights *w = NULL;
    ig_scope *s = ig_scope_open();
    ig_array a = ig_arange(0, 15, 1, IG_F32), b = ig_arange(0, 7, 1, IG_U8);
    ig_array both[] = {ig_reshape(a, dims, 2), b};
    const char *names[] = {"a.weight", "b"};
    assert_ok(ig_save_safetensors(tmp_path(dir, "s.safetensors"), names, both, 2));
    assert_ok(ig_weights_open(tmp_path(dir, "s.safetensors"), &w));
    assert_int_equal(ig_weights_count(w), 2);
    ig_array back = ig_weights_get(w, "a.weight");
    const void *p, *q;
    assert_ok(ig_data(back, &p));
    assert_ok(ig_data(a, &q));
    assert_int_equal(ig_dim(back, 1), 5);
    assert_memory_equal(p, q, 60);
    assert_int_equal((uintptr_t)p % 64, 0);
    assert_true(ig_is_empty(ig_weights_get(w, "c")));
    assert_int_equal(ig_error_code(), IG_ENOTFOUND);
    ig_error_clear();
    (void)!ig_scope_close(s);
    ig_weights_free(w);
}

TEST(arrays_of_any_sizes_are_saved_so_that_they_can_be_opened)
{
    ig_weights *w = NULL;
    ig_scope *s = ig_scope_open();
    ig_array arrays[] = {ig_arange(0, 3, 1, IG_U8), ig_arange(0, 5, 1, IG_F16),
                         ig_arange(0, 7, 1, IG_F64), ig_arange(0, 9, 1, IG_F32)};
    const char *names[] = {"u8", "f16", "f64", "f32"};
    assert_ok(ig_save_safetensors(tmp_path(dir, "o.safetensors"), names, arrays, 4));
    assert_ok(ig_weights_open(tmp_path(dir, "o.safetensors"), &w));
    for (int i = 0; i < 4; i++) {
        const void *p, *q;
        ig_array back = ig_weights_get(w, names[i]);
        assert_ok(ig_data(back, &p));
        assert_ok(ig_data(arrays[i], &q));
        assert_int_equal(ig_nbytes(back), ig_nbytes(arrays[i]));
        assert_memory_equal(p, q, (size_t)ig_nbytes(back));
    }
    assert_ok(ig_scope_close(s));
    ig_weights_free(w);
}

TEST(any_nonzero_byte_of_a_bool_tensor_is_true)
{
    ig_weights *w = NULL;
    ig_scope *s = ig_scope_open();
    write_file("t.safetensors",
               "{\"a\":{\"dtype\":\"BOOL\",\"shape\":[2],"
               "\"data_offsets\":[0,2]}}",
               2);
    FILE *f = fopen(tmp_path(dir, "t.safetensors"), "r+b");
    fseek(f, -1, SEEK_END);
    fputc(2, f);
    fclose(f);
    assert_ok(ig_weights_open(tmp_path(dir, "t.safetensors"), &w));
    int64_t n = 0;
    assert_ok(ig_item_i64(ig_sum(ig_weights_get(w, "a"), NULL, 0, false), &n));
    assert_int_equal(n, 1);
    assert_ok(ig_scope_close(s));
    ig_weights_free(w);
}

TEST(a_lying_header_is_refused_with_its_reason)
{
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, IG_EFORMAT, "a");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8, IG_EFORMAT,
            "need 12");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 12, IG_EFORMAT,
            "follow");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, IG_EFORMAT,
            "gap");
    refuses(
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\","
        "\"shape\":[4],\"data_offsets\":[2,6]}}",
        6, IG_EFORMAT, "overlap");
    refuses(
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"b\":{\"dtype\":\"F32\","
        "\"shape\":[1],\"data_offsets\":[1,5]}}",
        5, IG_EFORMAT, "aligned");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, IG_EFORMAT,
            "size 0");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,4]}}",
            4, IG_EFORMAT, "overflow");
    refuses("{\"a\":{\"dtype\":\"F7\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, IG_EUNSUPPORTED,
            "F7");
    refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, IG_EFORMAT,
            "ascending");
    refuses("{\"a\":1}", 0, IG_EFORMAT, "a");
    refuses("[]", 0, IG_EFORMAT, "object");
    refuses(
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"a\":{\"dtype\":\"U8\","
        "\"shape\":[1],\"data_offsets\":[1,2]}}",
        2, IG_EFORMAT, "x.safetensors");
    refuses("{\"__metadata__\":{\"k\":1}}", 0, IG_EFORMAT, "k");
}

TEST(short_and_oversized_files_are_refused)
{
    ig_weights *w = NULL;
    tmp_write(dir, "x.safetensors", "1234567", 7);
    assert_fails(ig_weights_open(tmp_path(dir, "x.safetensors"), &w), IG_EFORMAT, "too short");
    tmp_write(dir, "x.safetensors", "\xff\xff\xff\xff\0\0\0\0{}", 10);
    assert_fails(ig_weights_open(tmp_path(dir, "x.safetensors"), &w), IG_ELIMIT, "header");
    tmp_write(dir, "x.safetensors", "\x10\0\0\0\0\0\0\0{}", 10);
    assert_fails(ig_weights_open(tmp_path(dir, "x.safetensors"), &w), IG_EFORMAT, "truncated");
    assert_fails(ig_weights_open(tmp_path(dir, "nothing"), &w), IG_ENOTFOUND, "nothing");
}

TEST(an_index_and_its_shards_must_agree)
{
    ig_weights *w = NULL;
    const char *one = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    const char *cases[][2] = {
        {"{\"weight_map\":{\"a\":\"m.safetensors\",\"b\":\"m.safetensors\"}}", "b is in no shard"},
        {"{\"weight_map\":{}}", "empty"},
        {"{\"weight_map\":{\"a\":\"../m.safetensors\"}}", "plain"},
        {"{\"weight_map\":{\"a\":\".m.safetensors\"}}", "plain"},
        {"{\"weight_map\":{\"a\":7}}", "plain"},
        {"{}", "weight_map"},
    };
    write_file("m.safetensors", one, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tmp_write(dir, "model.safetensors.index.json", cases[i][0], strlen(cases[i][0]));
        assert_fails(ig_weights_open(dir, &w), IG_EFORMAT, cases[i][1]);
    }
    const char *two = "{\"weight_map\":{\"a\":\"m.safetensors\"}}";
    const char *more = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                       "\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}";
    write_file("m.safetensors", more, 2);
    tmp_write(dir, "model.safetensors.index.json", two, strlen(two));
    assert_fails(ig_weights_open(dir, &w), IG_EFORMAT, "z of");
    /* one name ends with the other */
    const char *mixed = "{\"weight_map\":{\"a\":\"m.safetensors\",\"b\":\"om.safetensors\"}}";
    write_file("m.safetensors", "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
               1);
    write_file("om.safetensors", one, 1);
    tmp_write(dir, "model.safetensors.index.json", mixed, strlen(mixed));
    assert_fails(ig_weights_open(dir, &w), IG_EFORMAT, "a is in");
}

TEST(a_changed_file_is_noticed)
{
    ig_weights *w = NULL;
    write_file("c.safetensors", "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
               4);
    assert_ok(ig_weights_open(tmp_path(dir, "c.safetensors"), &w));
    assert_ok(ig_weights_unchanged(w));
    FILE *f = fopen(tmp_path(dir, "c.safetensors"), "r+b");
    fseek(f, -1, SEEK_END);
    fputc(1, f);
    fclose(f);
    assert_fails(ig_weights_unchanged(w), IG_EVERIFY, "c.safetensors");
    ig_weights_free(w);
}

TEST(npy_files_come_back_and_bad_ones_are_refused)
{
    ig_scope *s = ig_scope_open();
    const int64_t dims[] = {2, 3};
    ig_array a = ig_reshape(ig_arange(0, 6, 1, IG_I32), dims, 2), b = {0};
    const char *path = tmp_path(dir, "a.npy");
    assert_ok(ig_save_npy(path, a));
    assert_ok(ig_load_npy(path, &b));
    const void *p, *q;
    assert_ok(ig_data(a, &p));
    assert_ok(ig_data(b, &q));
    assert_int_equal(ig_ndim(b), 2);
    assert_int_equal(ig_dim(b, 1), 3);
    assert_int_equal(ig_type(b), IG_I32);
    assert_memory_equal(p, q, 24);
    struct {
        const char *header;
        ig_status code;
        const char *word;
    } bad[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", IG_EFORMAT, "needs 8"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", IG_EUNSUPPORTED, "Fortran"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", IG_EUNSUPPORTED, "dtype"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", IG_EUNSUPPORTED, "dtype"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", IG_EFORMAT, "closed"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", IG_EFORMAT,
         "shape"},
        {"{'descr': '<f4', 'fortran_order': False, }", IG_EFORMAT, "shape"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char bytes[256] = "\x93NUMPY\x01\x00";
        size_t n = strlen(bad[i].header);
        bytes[8] = (char)n;
        memcpy(bytes + 10, bad[i].header, n);
        tmp_write(dir, "b.npy", bytes, 10 + n + 4);
        assert_fails(ig_load_npy(tmp_path(dir, "b.npy"), &b), bad[i].code, bad[i].word);
    }
    ig_error_clear();
    (void)!ig_scope_close(s);
}

static ig_status save_open_load(void *user)
{
    const int64_t dims[] = {2, 3};
    const char *names[] = {"a", "b"};
    ig_weights *w = NULL;
    ig_array back = {0};
    (void)user;
    ig_scope *s = ig_scope_open();
    if (!s) return IG_ENOMEM;
    ig_array a = ig_array_copy((const float[6]){1}, IG_F32, dims, 2), both[] = {a, a};
    ig_status st = ig_is_empty(a) ? ig_error_code() : IG_OK;
    if (st == IG_OK) st = ig_save_safetensors(tmp_path(dir, "f.safetensors"), names, both, 2);
    if (st == IG_OK) st = ig_weights_open(tmp_path(dir, "f.safetensors"), &w);
    if (st == IG_OK) st = ig_save_npy(tmp_path(dir, "f.npy"), a);
    if (st == IG_OK) st = ig_load_npy(tmp_path(dir, "f.npy"), &back);
    ig_status closed = ig_scope_close(s);
    ig_weights_free(w);
    ig_memory_clear_cache();
    return st != IG_OK ? st : closed;
}

static ig_status open_sharded(void *user)
{
    ig_weights *w = NULL;
    (void)user;
    ig_status s = ig_weights_open(dir, &w);
    ig_weights_free(w);
    return s;
}

TEST(files_survive_every_failing_allocation_and_call)
{
    const char *index = "{\"weight_map\":{\"a\":\"m.safetensors\",\"b\":\"n.safetensors\"}}";
    write_file("m.safetensors", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
               1);
    write_file("n.safetensors", "{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
               1);
    tmp_write(dir, "model.safetensors.index.json", index, strlen(index));
    json_set_alloc_funcs(mem_alloc, mem_free);
    ig_memory_clear_cache(); /* of what earlier tests left */
    assert_true(walk_memory(save_open_load, NULL) > 20);
    assert_true(walk_io(save_open_load, NULL, EIO, NULL) > 10);
    assert_true(walk_memory(open_sharded, NULL) > 20);
    assert_true(walk_io(open_sharded, NULL, EIO, NULL) > 5);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_saved_is_opened_with_the_same_bytes),
        CASE(arrays_of_any_sizes_are_saved_so_that_they_can_be_opened),
        CASE(any_nonzero_byte_of_a_bool_tensor_is_true),
        CASE(a_lying_header_is_refused_with_its_reason),
        CASE(short_and_oversized_files_are_refused),
        CASE(an_index_and_its_shards_must_agree),
        CASE(a_changed_file_is_noticed),
        CASE(npy_files_come_back_and_bad_ones_are_refused),
        CASE(files_survive_every_failing_allocation_and_call),
    };
    return cmocka_run_group_tests(tests, open_dir, close_dir);
}
