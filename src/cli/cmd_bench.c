/* cmd_bench.c: ingot bench: prompt (pp) and generation (tg) speed of a model, with llama-bench's
 * flags, beside the machine's read bandwidth measured
 * in the same minute. The median of the repetitions is what counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "ingot/device.h"
#include "ingot/ingot.h"
#include "ingot/lm.h"
#include "server/build.h"

#define MAX_REPEATS 64

typedef struct bench {
    const char *model, *isa, *arithmetic, *kv, *machine;
    int64_t n_prompt, n_gen, threads, repeats, depth, batch;
    bool json;
    ig_lm *lm;
    ig_lm_facts facts;
    double read_gb_s;
} bench;

typedef struct row {
    char test[32];
    double tok_s, lo, hi, gb_s, fraction;
} row;

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ingot bench --machine: the four limits, measured now. */
static ig_status run_machine(bench *b)
{
    char cpu[128];
    double hash = 0, core = 0, sync_us = 0;
    int64_t threads = b->threads ? b->threads : thread_n_cpus();
    if (b->isa) TRY(ig_device_set_isa(b->isa));
    TRY(ig_device_set_threads((int)threads));
    TRY(machine_read((int)threads, &b->read_gb_s));
    TRY(machine_hash((int)threads, &hash));
    TRY(machine_int8(&core));
    TRY(machine_sync(b->machine, &sync_us));
    build_cpu(cpu, sizeof cpu);
    printf(b->json
               ? "{\"cpu\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"read_gb_s\":%.2f,"
                 "\"sha256_gb_s\":%.2f,\"int8_gop_s\":%.1f,\"sync_us\":%.0f}\n"
               : "%s, %s, %d threads\nmemory read     %.2f GB/s\nSHA-256         %.2f GB/s\nint8 "
                 "arithmetic %.1f GOP/s (4-bit weights, in cache)\ndurable write   %.0f us\n",
           cpu, ig_device_isa(), ig_device_threads(), b->read_gb_s, hash, core, sync_us);
    return IG_OK;
}

/* --- one repetition: seconds for the tokens of a test */
static ig_status feed_all(bench *b, ig_lm_session *s, ig_lm_result *r)
{
    do {
        int64_t pending = ig_lm_session_pending(s);
        TRY(ig_lm_step(b->lm, &(ig_lm_feed){s, (int32_t)(pending < b->batch ? pending : b->batch)},
                       1, r));
    } while (r->token < 0 && r->finish == IG_LM_RUNNING);
    return IG_OK;
}

static ig_status once(bench *b, int64_t n_prompt, int64_t n_gen, double *ret_seconds)
{
    int64_t n = b->depth + (n_prompt ? n_prompt : 1);
    AUTO(mem_ptr) memory = mem_calloc((size_t)n, sizeof(int32_t));
    int32_t *ids = memory;
    ig_lm_session *s = NULL;
    ig_lm_result r;
    if (!ids) return IG_ENOMEM;
    for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)((i * 7919 + 11) % b->facts.vocab);
    ig_lm_session_spec spec = {
        .prompt = ids, .n_prompt = n, .max_new = n_gen + 1, .sampling = {.ignore_stop = 1}};
    TRY(ig_lm_session_new(b->lm, &spec, &s));
    ig_status status = IG_OK;
    for (int64_t left = b->depth; left > 0 && status == IG_OK;) { /* the depth is not timed */
        int64_t take = left < b->batch ? left : b->batch;
        status = ig_lm_step(b->lm, &(ig_lm_feed){s, (int32_t)take}, 1, &r);
        left -= take;
    }
    if (!n_prompt && status == IG_OK) status = feed_all(b, s, &r);
    int64_t begin = clock_mono_ns();
    if (n_prompt && status == IG_OK) status = feed_all(b, s, &r);
    for (int64_t i = 0; i < n_gen && status == IG_OK; i++) status = feed_all(b, s, &r);
    *ret_seconds = (double)(clock_mono_ns() - begin) * 1e-9;
    ig_lm_session_free(s);
    return status;
}

static ig_status run_test(bench *b, const char *kind, int64_t n_prompt, int64_t n_gen, row *ret_row)
{
    double rate[MAX_REPEATS], seconds;
    int64_t n = n_prompt + n_gen;
    TRY(once(b, n_prompt < 32 ? n_prompt : 32, n_gen < 4 ? n_gen : 4, &seconds)); /* warm-up */
    for (int64_t i = 0; i < b->repeats; i++) {
        TRY(once(b, n_prompt, n_gen, &seconds));
        rate[i] = (double)n / seconds;
    }
    qsort(rate, (size_t)b->repeats, sizeof *rate, by_size);
    row r = {.tok_s = rate[b->repeats / 2], .lo = rate[0], .hi = rate[b->repeats - 1]};
    snprintf(r.test, sizeof r.test, b->depth ? "%s%lld@d%lld" : "%s%lld", kind, (long long)n,
             (long long)b->depth);
    double steps_s =
        n_gen ? r.tok_s : r.tok_s / (double)(n_prompt < b->batch ? n_prompt : b->batch);
    r.gb_s = steps_s * (double)b->facts.weight_bytes * 1e-9;
    r.fraction = r.gb_s / b->read_gb_s;
    *ret_row = r;
    return IG_OK;
}

/* A bundle, or a bare model directory. */
static ig_status open_model(bench *b)
{
    AUTO(buf) inner = {0}, config = {0};
    int64_t context = b->depth + b->n_prompt + b->n_gen + 64;
    ig_dtype kv_type = IG_F16;
    if (!ig_dtype_of_name(b->kv, &kv_type))
        return ig_fail(IG_EINVAL, "%s: there is no such KV type: float16, bfloat16, int8, float32",
                       b->kv);
    ig_lm_options o = {.context = context,
                       .kv_tokens = context,
                       .kv_type = kv_type,
                       .max_tokens = (int32_t)b->batch,
                       .max_sessions = 1,
                       .max_outputs = 1,
                       .no_prefix_cache = 1,
                       .arithmetic = strcmp(b->arithmetic, "exact") ? IG_LM_INT8 : IG_LM_EXACT};
    buf_init(&config, 0);
    TRY(file_join(&inner, b->model, "model"));
    TRY(file_join(&config, inner.data, "config.json"));
    TRY(ig_lm_open(file_exists(config.data) ? inner.data : b->model, &o, &b->lm));
    TRY(ig_lm_warm(b->lm));
    ig_lm_get_facts(b->lm, &b->facts);
    return IG_OK;
}

static void print_rows(const bench *b, const row *rows, int n)
{
    char cpu[128];
    build_cpu(cpu, sizeof cpu);
    if (b->json) {
        printf("{\"machine\":{\"cpu\":\"%s\",\"isa\":\"%s\",\"threads\":%d,\"read_gb_s\":%.2f},"
               "\"model\":{\"parameters\":%lld,\"weight_bytes\":%lld,\"kset\":\"%s\","
               "\"kv\":\"%s\"},\"rows\":[",
               cpu, ig_device_isa(), ig_device_threads(), b->read_gb_s,
               (long long)b->facts.parameters, (long long)b->facts.weight_bytes, b->facts.kset,
               b->facts.kv_type);
        for (int i = 0; i < n; i++)
            printf("%s{\"test\":\"%s\",\"tok_s\":%.2f,\"tok_s_min\":%.2f,\"tok_s_max\":%.2f,"
                   "\"gb_s\":%.3f,\"fraction\":%.3f}",
                   i ? "," : "", rows[i].test, rows[i].tok_s, rows[i].lo, rows[i].hi, rows[i].gb_s,
                   rows[i].fraction);
        printf("]}\n");
        return;
    }
    printf("%s, %s, %d threads, reads %.1f GB/s\n%-14s %10s %22s %8s %s\n", cpu, ig_device_isa(),
           ig_device_threads(), b->read_gb_s, "test", "tokens/s", "min .. max", "GB/s",
           "of read bandwidth");
    for (int i = 0; i < n; i++)
        printf("%-14s %10.2f %10.2f .. %-9.2f %7.2f %.0f %%\n", rows[i].test, rows[i].tok_s,
               rows[i].lo, rows[i].hi, rows[i].gb_s, 100 * rows[i].fraction);
}

static ig_status run_bench(bench *b, row *rows, int *ret_n)
{
    int64_t threads = b->threads ? b->threads : thread_n_cpus();
    if (b->isa) TRY(ig_device_set_isa(b->isa));
    TRY(ig_device_set_threads((int)threads));
    TRY(open_model(b));
    TRY(machine_read((int)threads, &b->read_gb_s));
    if (b->n_prompt) TRY(run_test(b, "pp", b->n_prompt, 0, &rows[(*ret_n)++]));
    if (b->n_gen) TRY(run_test(b, "tg", 0, b->n_gen, &rows[(*ret_n)++]));
    return IG_OK;
}

static int run(int argc, char **argv)
{
    bench b = {.n_prompt = 512,
               .n_gen = 128,
               .repeats = 5,
               .batch = 512,
               .arithmetic = "int8",
               .kv = "float16"};
    row rows[2];
    text_list args;
    int code, n = 0;
    const option_info options[] = {
        {"model", 'm', "DIR", "bundle, or its model folder", OPT_TEXT, &b.model, 0, 0},
        {"n_prompt", 'p', "N", "prompt tokens; default 512", OPT_INT, &b.n_prompt, 0, 1 << 20},
        {"n_gen", 'n', "N", "generated tokens; default 128", OPT_INT, &b.n_gen, 0, 1 << 20},
        {"threads", 't', "N", "compute threads; default one per processor", OPT_INT, &b.threads, 1,
         256},
        {"repetitions", 'r', "N", "repetitions; default 5", OPT_INT, &b.repeats, 1, MAX_REPEATS},
        {"depth", 'd', "N", "tokens in the cache before the test; default 0", OPT_INT, &b.depth, 0,
         1 << 20},
        {"ubatch", 0, "N", "most prompt tokens of one step; default 512", OPT_INT, &b.batch, 1,
         8192},
        {"isa", 0, "NAME", "kernels to use: ref, avx2, avx512, neon", OPT_TEXT, &b.isa, 0, 0},
        {"arithmetic", 0, "int8|exact", "numeric contract; default int8", OPT_TEXT, &b.arithmetic,
         0, 0},
        {"kv", 0, "TYPE", "KV cache: float16, bfloat16, int8, float32", OPT_TEXT, &b.kv, 0, 0},
        {"machine", 0, "DIR", "no model: measure the machine's limits; durable writes in DIR",
         OPT_TEXT, &b.machine, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &b.json, 0, 0},
        {0},
    };
    cli_parse("bench", argc, argv, options, &args, 0, 0, &code);
    if (code >= 0) return code;
    if (b.machine) {
        ig_status measured = run_machine(&b);
        return measured == IG_OK ? EXIT_DONE : cli_fail("bench", measured);
    }
    if (!b.model) return cli_usage("bench", "-m DIR is needed");
    ig_status s = run_bench(&b, rows, &n);
    if (s == IG_OK) print_rows(&b, rows, n);
    ig_lm_close(b.lm);
    return s == IG_OK ? EXIT_DONE : cli_fail("bench", s);
}

const command_info command_bench = {run};
