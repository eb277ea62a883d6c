/* test_lm_open.c: opening a model directory: tensors that do not fit are named, options are
 * bounded, and whatever fails half-way leaves no memory and no open file. */
#include <dirent.h>
#include "base/mem.h"
#include "ingot/io.h"
#include "ingot/memory.h"
#include "ingot/ingot.h"
#include "lm/lm.h"
#include "support/test.h"
#include "support/tinylm.h"
#include "support/tmp.h"
#include "support/walk.h"

static char dir[TMP_PATH_N];

static int write_model(void **state)
{
    (void)state;
    tmp_open(dir);
    tinylm_write(dir, NULL);
    return 0;
}

static int remove_model(void **state)
{
    (void)state;
    tmp_close(dir);
    return 0;
}

static void refused(const tinylm_fault *fault, ig_status code, const char *says)
{
    char broken[TMP_PATH_N];
    ig_lm *lm = NULL;
    tmp_open(broken);
    tinylm_write(broken, fault);
    assert_fails(ig_lm_open(broken, NULL, &lm), code, says);
    assert_null(lm);
    tmp_close(broken);
}

TEST(a_tensor_that_is_missing_is_named)
{
    refused(&(tinylm_fault){.missing = "model.layers.1.mlp.down_proj.weight"}, IG_EFORMAT,
            "tensor model.layers.1.mlp.down_proj.weight is missing");
    refused(&(tinylm_fault){.missing = "model.layers.0.self_attn.k_proj.scales"}, IG_EFORMAT,
            "model.layers.0.self_attn.k_proj.scales is missing");
    refused(&(tinylm_fault){.missing = "model.layers.0.self_attn.o_proj.bias"}, IG_EFORMAT,
            "model.layers.0.self_attn.o_proj.bias is missing");
    refused(&(tinylm_fault){.missing = "model.norm.weight"}, IG_EFORMAT, "model.norm.weight");
}

TEST(a_tensor_without_a_place_is_named)
{
    refused(&(tinylm_fault){.extra = "model.layers.2.mlp.up_proj.weight"}, IG_EFORMAT,
            "tensor model.layers.2.mlp.up_proj.weight is in the files");
}

TEST(a_tensor_of_another_shape_is_named_with_both_shapes)
{
    refused(&(tinylm_fault){.reshaped = "lm_head.weight"}, IG_ESHAPE,
            "tensor lm_head.weight has shape [301, 12], the config needs [300, 12]");
    refused(&(tinylm_fault){.reshaped = "model.layers.1.input_layernorm.weight"}, IG_ESHAPE,
            "has shape [97], the config needs [96]");
}

TEST(a_tensor_of_another_type_is_named)
{
    refused(&(tinylm_fault){.retyped = "model.layers.0.mlp.up_proj.weight"}, IG_EDTYPE,
            "model.layers.0.mlp.up_proj.weight is int32, expected float32, float16 or bfloat16");
    refused(&(tinylm_fault){.retyped = "lm_head.weight"}, IG_EDTYPE, "expected uint32 codes");
}

TEST(files_that_are_missing_or_contradict_each_other_are_named)
{
    char empty[TMP_PATH_N];
    ig_lm *lm = NULL;
    tmp_open(empty);
    assert_fails(ig_lm_open(empty, NULL, &lm), IG_ENOTFOUND, "config.json");
    tmp_close(empty);
    assert_fails(ig_lm_open(NULL, NULL, &lm), IG_EINVAL, "no directory");
    refused(&(tinylm_fault){.tokenizer = "{}"}, IG_EFORMAT, "tokenizer.json");
    refused(&(tinylm_fault){.config = "{\"model_type\": \"bert\"}"}, IG_EUNSUPPORTED, "bert");
}

TEST(options_are_bounded)
{
    static const struct {
        ig_lm_options o;
        const char *says;
    } bad[] = {
        {{.context = 513}, "context 513: this model takes 1 to 512"},
        {{.context = -1}, "context -1"},
        {{.kv_tokens = -64}, "kv_tokens -64"},
        {{.kv_tokens = (int64_t)1 << 40}, "kv_tokens"},
        {{.kv_type = IG_I32}, "KV type int32"},
        {{.max_tokens = 1 << 20}, "max_tokens 1048576"},
        {{.max_sessions = -1}, "max_sessions -1"},
        {{.max_outputs = -1}, "max_outputs -1"},
        {{.arithmetic = (ig_lm_arithmetic)5}, "arithmetic 5"},
    };
    ig_lm *lm = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_fails(ig_lm_open(dir, &bad[i].o, &lm), IG_EINVAL, bad[i].says);
    assert_null(lm);
}

TEST(facts_tell_what_was_opened)
{
    ig_lm *lm = NULL;
    ig_lm_facts f;
    struct ig_weights_file file;
    assert_ok(ig_lm_open(dir, &(ig_lm_options){.kv_type = IG_I8, .kv_tokens = 100}, &lm));
    ig_lm_get_facts(lm, &f);
    assert_string_equal(f.family, "llama");
    assert_string_equal(f.kset, "i8c16-1");
    assert_string_equal(f.kv_type, "int8");
    assert_int_equal(f.context, 512);
    assert_int_equal(f.kv_pages, 2);
    assert_int_equal(f.kv_pages_free, 2);
    assert_int_equal(f.kv_bytes_per_token, 2 * 2 * (32 + 4));
    assert_int_equal(f.kv_pool_bytes, 128 * f.kv_bytes_per_token);
    assert_int_equal(f.n_plans, 0);
    assert_ok(ig_lm_warm(lm));
    assert_ok(ig_lm_warm(lm));
    ig_lm_get_facts(lm, &f);
    assert_int_equal(f.n_plans, 1);
    assert_true(f.arena_bytes > 0 && f.weight_bytes > 0 && f.weight_bytes < f.file_bytes);
    assert_int_equal(ig_lm_n_files(lm), 1);
    assert_ok(ig_lm_file_at(lm, 0, &file));
    assert_true(file.n_bytes > f.file_bytes && strstr(file.path, "model.safetensors"));
    assert_fails(ig_lm_file_at(lm, 1, &file), IG_EINVAL, "file 1 of 1");
    assert_ok(ig_lm_unchanged(lm));
    ig_lm_close(lm);
    ig_lm_close(NULL);
}

typedef struct seen {
    int64_t n, done, total;
    bool ordered; /* done grew with each call and stayed within total */
} seen;

static void on_touched(void *user, int64_t done, int64_t total)
{
    seen *s = user;
    s->ordered = s->ordered && done > s->done && done <= total && (!s->n || total == s->total);
    s->done = done;
    s->total = total;
    s->n++;
}

TEST(opening_takes_no_kv_memory_and_warming_up_tells_each_byte_that_it_touches)
{
    seen s = {.ordered = true};
    ig_lm *lm = NULL;
    ig_lm_facts f;
    ig_counters before, opened, warm;
    struct ig_weights_file file;
    ig_memory_clear_cache();
    ig_memory_counters(&before);
    const ig_lm_options o = {.kv_tokens = 1 << 16, .progress = on_touched, .progress_user = &s};
    assert_ok(ig_lm_open(dir, &o, &lm));
    ig_lm_get_facts(lm, &f);
    ig_memory_counters(&opened);
    assert_true(opened.active_bytes - before.active_bytes < f.kv_pool_bytes / 4);
    assert_int_equal(s.n, 0);
    assert_ok(ig_lm_warm(lm));
    ig_memory_counters(&warm);
    assert_true(warm.active_bytes - opened.active_bytes >= f.kv_pool_bytes);
    assert_ok(ig_lm_file_at(lm, 0, &file));
    assert_true(s.ordered);
    assert_int_equal(s.n, 1 + f.layers); /* one file, then the pages of each layer */
    assert_int_equal(s.done, s.total);
    assert_int_equal(s.total, file.n_bytes + f.kv_pool_bytes);
    ig_lm_get_facts(lm, &f);
    assert_true(f.times.text_us > 0 && f.times.bind_us > 0 && f.times.touch_us > 0);
    assert_true(f.times.plan_us > 0);
    ig_lm_close(lm);
}

TEST(a_weight_file_that_changes_is_noticed)
{
    char other[TMP_PATH_N];
    ig_lm *lm = NULL;
    tmp_open(other);
    tinylm_write(other, NULL);
    assert_ok(ig_lm_open(other, NULL, &lm));
    FILE *f = fopen(tmp_path(other, "model.safetensors"), "r+b");
    assert_non_null(f);
    assert_true(fseek(f, -1, SEEK_END) == 0 && fputc('x', f) == 'x' && fclose(f) == 0);
    assert_fails(ig_lm_unchanged(lm), IG_EVERIFY, "model.safetensors");
    ig_lm_close(lm);
    tmp_close(other);
}

/* --- failures half-way */

static int n_open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static ig_status open_and_warm(void *user)
{
    const ig_lm_options o = {.context = 64, .kv_tokens = 64, .max_tokens = 8, .max_outputs = 2};
    ig_lm *lm = NULL;
    (void)user;
    ig_status s = ig_lm_open(dir, &o, &lm);
    if (s == IG_OK) s = ig_lm_warm(lm);
    ig_lm_close(lm);
    ig_memory_clear_cache();
    return s;
}

static ig_status only_open(void *user)
{
    const ig_lm_options o = {.context = 64, .kv_tokens = 64};
    ig_lm *lm = NULL;
    (void)user;
    ig_status s = ig_lm_open(dir, &o, &lm);
    ig_lm_close(lm);
    ig_memory_clear_cache();
    return s;
}

/* jansson stays on malloc: where it cannot grow a string it drops a character and goes on (2.14),
 * so that its failures look like anything. */
TEST(opening_and_warming_without_memory_leave_nothing)
{
    ig_counters before, after;
    assert_ok(open_and_warm(NULL)); /* what the process keeps for good exists now */
    ig_memory_counters(&before);
    int n_files = n_open_files();
    int64_t n = walk_memory(open_and_warm, NULL);
    ig_memory_counters(&after);
    print_message("%lld allocations failed in turn\n", (long long)n);
    assert_true(n > 500);
    assert_int_equal(after.active_bytes, before.active_bytes);
    assert_int_equal(after.n_live_nodes, before.n_live_nodes);
    assert_int_equal(n_open_files(), n_files);
}

TEST(opening_with_failing_reads_leaves_nothing)
{
    int n_files = n_open_files();
    assert_true(walk_io(only_open, NULL, 5 /* EIO */, NULL) > 4);
    assert_int_equal(n_open_files(), n_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_tensor_that_is_missing_is_named),
        CASE(a_tensor_without_a_place_is_named),
        CASE(a_tensor_of_another_shape_is_named_with_both_shapes),
        CASE(a_tensor_of_another_type_is_named),
        CASE(files_that_are_missing_or_contradict_each_other_are_named),
        CASE(options_are_bounded),
        CASE(facts_tell_what_was_opened),
        CASE(opening_takes_no_kv_memory_and_warming_up_tells_each_byte_that_it_touches),
        CASE(a_weight_file_that_changes_is_noticed),
        CASE(opening_and_warming_without_memory_leave_nothing),
        CASE(opening_with_failing_reads_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
