/* cmd_perplexity.c: ingot perplexity: exp of the mean negative log-likelihood of a text, in
 * windows; optionally against a second arithmetic with the
 * mean KL divergence between their distributions (what `make quality` uses). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "ingot/device.h"
#include "ingot/lm.h"

#define CHUNK 64

typedef struct side {
    ig_lm *lm;
    double nll;
} side;

typedef struct job {
    const char *model, *kv, *arithmetic, *against;
    int64_t context, limit, threads;
    bool json;
    side a, b; /* b.lm NULL without --against */
    double kl;
    int64_t n, n_top_equal;
} job;

static ig_status open_side(const job *j, const char *arithmetic, const char *kv, side *ret_side)
{
    AUTO(buf) inner = {0}, config = {0};
    ig_dtype kv_type = IG_F16;
    if (!ig_dtype_of_name(kv, &kv_type))
        return ig_fail(IG_EINVAL, "%s: there is no such KV type: float16, bfloat16, int8, float32",
                       kv);
    ig_lm_options o = {.context = j->context + 1,
                       .kv_tokens = j->context + 1,
                       .kv_type = kv_type,
                       .max_tokens = CHUNK,
                       .max_sessions = 1,
                       .max_outputs = CHUNK,
                       .no_prefix_cache = 1,
                       .arithmetic = strcmp(arithmetic, "exact") ? IG_LM_INT8 : IG_LM_EXACT};
    buf_init(&config, 0);
    TRY(file_join(&inner, j->model, "model"));
    TRY(file_join(&config, inner.data, "config.json"));
    TRY(ig_lm_open(file_exists(config.data) ? inner.data : j->model, &o, &ret_side->lm));
    return ig_lm_warm(ret_side->lm);
}

/* log of the sum of exp, in double. */
static double log_norm(const float *l, int64_t n, int64_t *ret_top)
{
    int64_t top = 0;
    double sum = 0;
    for (int64_t i = 1; i < n; i++)
        if (l[i] > l[top]) top = i;
    for (int64_t i = 0; i < n; i++) sum += exp((double)l[i] - (double)l[top]);
    *ret_top = top;
    /* at least 1: the largest adds exp(0) */
    /* cppcheck-suppress invalidFunctionArg */
    return (double)l[top] + log(sum);
}

/* KL(reference || tested). */
static double divergence(const float *reference, double norm_r, const float *tested, double norm_t,
                         int64_t n)
{
    double kl = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = (double)reference[i] - norm_r;
        if (p > -60) kl += exp(p) * (p - ((double)tested[i] - norm_t));
    }
    return kl;
}

static void score_row(job *j, const float *a, const float *b, int64_t vocab, int32_t next)
{
    int64_t top_a, top_b;
    double norm_a = log_norm(a, vocab, &top_a);
    j->a.nll += norm_a - (double)a[next];
    j->n++;
    if (!b) return;
    double norm_b = log_norm(b, vocab, &top_b);
    j->b.nll += norm_b - (double)b[next];
    j->kl += divergence(b, norm_b, a, norm_a, vocab);
    j->n_top_equal += top_a == top_b;
}

static ig_status feed(side *s, ig_lm_session *session, int32_t n, const float **ret_rows)
{
    ig_lm_result r;
    TRY(ig_lm_step(s->lm, &(ig_lm_feed){session, n}, 1, &r));
    if (r.finish == IG_LM_FAILED)
        return ig_fail(IG_EDEVICE, "the model gave logits that are not finite");
    *ret_rows = r.logits;
    return IG_OK;
}

/* One window: every position predicts the next. */
static ig_status window(job *j, const int32_t *ids, int64_t n, int64_t vocab)
{
    ig_lm_session_spec spec = {.prompt = ids,
                               .n_prompt = n,
                               .max_new = 1,
                               .all_logits = 1,
                               .sampling = {.ignore_stop = 1}};
    ig_lm_session *a = NULL, *b = NULL;
    ig_status s = ig_lm_session_new(j->a.lm, &spec, &a);
    if (s == IG_OK && j->b.lm) s = ig_lm_session_new(j->b.lm, &spec, &b);
    for (int64_t at = 0; at < n && s == IG_OK; at += CHUNK) {
        int32_t take = (int32_t)(n - at < CHUNK ? n - at : CHUNK);
        const float *rows_a = NULL, *rows_b = NULL;
        s = feed(&j->a, a, take, &rows_a);
        if (s == IG_OK && b) s = feed(&j->b, b, take, &rows_b);
        for (int64_t i = 0; i < take && s == IG_OK && at + i + 1 < n; i++)
            score_row(j, rows_a + i * vocab, rows_b ? rows_b + i * vocab : NULL, vocab,
                      ids[at + i + 1]);
    }
    ig_lm_session_free(a);
    ig_lm_session_free(b);
    return s;
}

static ig_status score(job *j, const char *path)
{
    AUTO(buf) text = {0};
    ig_lm_prompt *p = NULL;
    ig_lm_facts f;
    progress_line line;
    int64_t n;
    TRY(file_read(path, (size_t)1 << 28, &text));
    TRY(ig_lm_prompt_text(j->a.lm, text.data ? text.data : "", text.n, IG_LM_ADD_SPECIAL, &p));
    const int32_t *ids = ig_lm_prompt_ids(p, &n);
    ig_lm_get_facts(j->a.lm, &f);
    if (j->limit && n > j->limit) n = j->limit;
    ig_status s =
        n < 2 ? ig_fail(IG_EINVAL, "%s: too short: %lld tokens", path, (long long)n) : IG_OK;
    progress_begin(&line, "scoring", "tokens");
    for (int64_t at = 0; at + 1 < n && s == IG_OK; at += j->context) {
        int64_t take = n - at < j->context ? n - at : j->context;
        if (take > 1) s = window(j, ids + at, take, f.vocab);
        progress_show(&line, at + take, n);
    }
    progress_end(&line);
    ig_lm_prompt_free(p);
    return s;
}

static ig_status run_job(job *j, const char *path)
{
    TRY(ig_device_set_threads((int)(j->threads ? j->threads : thread_n_cpus())));
    TRY(open_side(j, j->arithmetic, j->kv, &j->a));
    if (j->against) TRY(open_side(j, j->against, "float32", &j->b));
    return score(j, path);
}

static void report(const job *j, double seconds)
{
    double n = (double)j->n, ppl = exp(j->a.nll / n);
    if (!j->b.lm) {
        printf(j->json ? "{\"tokens\":%lld,\"perplexity\":%.5f,\"seconds\":%.1f}\n"
                       : "%lld tokens: perplexity %.5f, %.1f s\n",
               (long long)j->n, ppl, seconds);
        return;
    }
    double other = exp(j->b.nll / n);
    printf(j->json
               ? "{\"tokens\":%lld,\"perplexity\":%.5f,\"against\":%.5f,\"change_percent\":%.4f,"
                 "\"mean_kl\":%.6f,\"same_top\":%.5f,\"seconds\":%.1f}\n"
               : "%lld tokens: perplexity %.5f against %.5f (%+.4f %%), mean KL %.6f, same top "
                 "token %.5f, %.1f s\n",
           (long long)j->n, ppl, other, 100 * (ppl / other - 1), j->kl / n,
           (double)j->n_top_equal / n, seconds);
}

static int run(int argc, char **argv)
{
    job j = {.context = 512, .arithmetic = "int8", .kv = "float16"};
    text_list args;
    int code;
    const option_info options[] = {
        {"model", 'm', "DIR", "bundle, or its model folder", OPT_TEXT, &j.model, 0, 0},
        {"context", 'c', "N", "tokens of a window; default 512", OPT_INT, &j.context, 2, 1 << 20},
        {"limit", 'n', "N", "score at most N tokens", OPT_INT, &j.limit, 2, (int64_t)1 << 40},
        {"threads", 't', "N", "compute threads", OPT_INT, &j.threads, 1, 256},
        {"arithmetic", 0, "int8|exact", "numeric contract; default int8", OPT_TEXT, &j.arithmetic,
         0, 0},
        {"kv", 0, "TYPE", "KV cache: float16, bfloat16, int8, float32", OPT_TEXT, &j.kv, 0, 0},
        {"against", 0, "exact|int8",
         "compare with this arithmetic and a float32 cache: perplexity and KL", OPT_TEXT,
         &j.against, 0, 0},
        {"json", 0, NULL, "print JSON", OPT_FLAG, &j.json, 0, 0},
        {0},
    };
    cli_parse("perplexity", argc, argv, options, &args, 1, 1, &code);
    if (code >= 0) return code;
    if (!j.model) return cli_usage("perplexity", "-m DIR is needed");
    int64_t begin = clock_mono_us();
    ig_status s = run_job(&j, args.text[0]);
    if (s == IG_OK) report(&j, (double)(clock_mono_us() - begin) * 1e-6);
    ig_lm_close(j.a.lm);
    ig_lm_close(j.b.lm);
    return s == IG_OK ? EXIT_DONE : cli_fail("perplexity", s);
}

const command_info command_perplexity = {run};
