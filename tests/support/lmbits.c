/* lmbits.c: see lmbits.h. */
#include "support/lmbits.h"
#include "base/digest.h"
#include "base/threefry.h"
#include "ingot/device.h"
#include "support/test.h"
#include "support/tinylm.h"

#define N_STRANGERS 7
#define STRANGER_PROMPT 150
#define MAX_PROMPT 512
#define KV_PAGES 34 /* the request and seven strangers, but not what they all leave behind */

/* What must not decide them. */
typedef struct way {
    const char *name;
    const char *tenant; /* a prefix is shared with earlier ways of the same tenant */
    int threads;
    int32_t chunk;
    bool crowd, few;
    bool cached; /* pages are shared with an earlier way */
    bool evict;  /* strangers take the whole pool first */
} way;

static const way ways[] = {
    {"alone", "a", 2, 512, false, true, false, false},
    {"alone after itself", "a", 1, 512, false, false, true, false},
    {"one by one", "b", 1, 1, false, false, false, false},
    {"in sevens", "c", 2, 7, false, true, false, false},
    {"in pages", "d", 1, 64, false, false, false, false},
    {"in a crowd, in sevens", "e", 2, 7, true, true, false, false},
    {"in a crowd, in pages, prefix shared", "e", 1, 64, true, false, true, false},
    {"alone, its prefix pushed out", "e", 2, 64, false, false, false, true},
};

typedef struct digests {
    uint8_t tokens[SHA256_N], logits[SHA256_N];
} digests;

typedef struct crowd {
    ig_lm *lm;
    ig_lm_session *s[N_STRANGERS];
    const int32_t *prompt; /* of the request: some strangers begin with it */
    int64_t vocab;
    uint32_t turn;
} crowd;

static uint32_t draw(crowd *c, uint32_t n)
{
    uint32_t out[2];
    threefry2x32((const uint32_t[2]){77, 1}, (const uint32_t[2]){c->turn++, 0}, out);
    return out[0] % n;
}

static void join(crowd *c, int i)
{
    static const char *const tenants[] = {"a", "e", "x", NULL};
    int32_t ids[STRANGER_PROMPT];
    ig_lm_session_spec spec = {.prompt = ids,
                               .n_prompt = 1 + draw(c, STRANGER_PROMPT),
                               .max_new = 1 + draw(c, 40),
                               .tenant = tenants[draw(c, 4)]};
    spec.sampling = (ig_lm_sampling){.temperature = (float)draw(c, 2), .seed = c->turn};
    tinylm_prompt(c->turn, c->vocab, ids, spec.n_prompt);
    if (!draw(c, 4)) memcpy(ids, c->prompt, (size_t)spec.n_prompt * sizeof *ids);
    ig_status s = ig_lm_session_new(c->lm, &spec, &c->s[i]);
    if (s == IG_EBUSY)
        ig_error_clear();
    else
        assert_ok(s);
}

/* Strangers end, leave early, join; those there feed a few tokens each. */
static int32_t crowd_feeds(crowd *c, ig_lm_feed *feeds)
{
    int32_t n = 0;
    for (int i = 0; i < N_STRANGERS; i++) {
        if (c->s[i] && (!ig_lm_session_pending(c->s[i]) || !draw(c, 9))) {
            ig_lm_session_free(c->s[i]);
            c->s[i] = NULL;
        }
        if (!c->s[i] && draw(c, 3)) join(c, i);
        if (!c->s[i] || !draw(c, 5)) continue;
        int64_t pending = ig_lm_session_pending(c->s[i]), some = 1 + draw(c, 20);
        feeds[n++] = (ig_lm_feed){c->s[i], (int32_t)(some < pending ? some : pending)};
    }
    return n;
}

static void crowd_done(crowd *c)
{
    for (int i = 0; i < N_STRANGERS; i++) ig_lm_session_free(c->s[i]);
}

/* One step of the session, among strangers if there are any. */
static ig_lm_result step(ig_lm *lm, ig_lm_session *s, int32_t chunk, crowd *c)
{
    ig_lm_feed feeds[N_STRANGERS + 1];
    ig_lm_result results[N_STRANGERS + 1];
    int64_t pending = ig_lm_session_pending(s);
    int32_t n = c ? crowd_feeds(c, feeds) : 0, at = c ? (int32_t)draw(c, (uint32_t)n + 1) : 0;
    feeds[n++] = feeds[at];
    feeds[at] = (ig_lm_feed){s, (int32_t)(pending < chunk ? pending : chunk)};
    assert_ok(ig_lm_step(lm, feeds, n, results));
    assert_int_not_equal(results[at].finish, IG_LM_FAILED);
    return results[at];
}

static void answer(ig_lm *lm, ig_lm_session *s, const way *w, crowd *c, digests *ret)
{
    sha256_ctx tokens, logits;
    ig_lm_facts f;
    ig_lm_get_facts(lm, &f);
    assert_ok(sha256_init(&tokens));
    assert_ok(sha256_init(&logits));
    while (ig_lm_session_pending(s)) {
        ig_lm_result r = step(lm, s, w->chunk, c);
        sha256_add(&logits, r.logits, (size_t)(r.n_rows * f.vocab) * sizeof *r.logits);
        if (r.token >= 0) sha256_add(&tokens, &r.token, sizeof r.token);
    }
    sha256_final(&tokens, ret->tokens);
    sha256_final(&logits, ret->logits);
}

static ig_lm_session_spec spec_of(const bits_case *c, const char *tenant, const int32_t *prompt)
{
    static const ig_lm_bias bias[] = {{5, 1.5f}, {13, -2}};
    ig_lm_session_spec spec = {.prompt = prompt,
                               .n_prompt = c->n_prompt,
                               .max_new = c->n_new,
                               .tenant = tenant,
                               .all_logits = c->every,
                               .sampling = {.ignore_stop = 1}};
    if (c->sampled)
        spec.sampling = (ig_lm_sampling){.temperature = 0.9f,
                                         .top_k = 60,
                                         .top_p = 0.97f,
                                         .min_p = 0.01f,
                                         .repetition_penalty = 1.1f,
                                         .presence_penalty = 0.2f,
                                         .frequency_penalty = 0.1f,
                                         .seed = 20240607,
                                         .choice = 1,
                                         .bias = bias,
                                         .n_bias = 2,
                                         .ignore_stop = 1};
    return spec;
}

/* Sessions that hold every page, for a moment. */
static void take_all_pages(ig_lm *lm)
{
    ig_lm_session *s[KV_PAGES];
    const int32_t id = 3;
    const ig_lm_session_spec spec = {.prompt = &id, .n_prompt = 1, .max_new = 63};
    for (int i = 0; i < KV_PAGES; i++) assert_ok(ig_lm_session_new(lm, &spec, &s[i]));
    for (int i = 0; i < KV_PAGES; i++) ig_lm_session_free(s[i]);
}

static void hex(const uint8_t *p, char out[2 * SHA256_N + 1])
{
    for (int i = 0; i < SHA256_N; i++) snprintf(out + 2 * i, 3, "%02x", p[i]);
}

/* The golden line of the case must be this one. */
static void compare(const char *name, const char *how, const digests *d)
{
    char path[128], want[512], line[512], tokens[2 * SHA256_N + 1], logits[2 * SHA256_N + 1];
    hex(d->tokens, tokens);
    hex(d->logits, logits);
    snprintf(want, sizeof want, "%s %s %s\n", name, tokens, logits);
    snprintf(path, sizeof path, "tests/golden/bits-%s.txt", ig_kset());
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) found = !strcmp(line, want);
    if (f) fclose(f);
    if (!found) fail_msg("%s (%s, %s): got\n%s", name, how, ig_device_isa(), want);
}

static void run_way(ig_lm *lm, const bits_case *c, const way *w, const int32_t *prompt)
{
    ig_lm_facts f;
    ig_lm_get_facts(lm, &f);
    crowd strangers = {.lm = lm, .prompt = prompt, .vocab = f.vocab};
    ig_lm_session_spec spec = spec_of(c, w->tenant, prompt);
    ig_lm_session *s = NULL;
    digests d;
    assert_ok(ig_device_set_threads(w->threads));
    if (w->evict) take_all_pages(lm);
    assert_ok(ig_lm_session_new(lm, &spec, &s));
    assert_int_equal(ig_lm_session_cached(s) > 0, w->cached && !c->every);
    answer(lm, s, w, w->crowd ? &strangers : NULL, &d);
    ig_lm_session_free(s);
    crowd_done(&strangers);
    compare(c->name, w->name, &d);
}

void bits_run(const char *model_dir, const bits_case *c, const char *isa, bool few)
{
    int32_t prompt[MAX_PROMPT];
    ig_lm_options o = {.context = MAX_PROMPT,
                       .kv_tokens = 64 * KV_PAGES,
                       .kv_type = c->kv,
                       .arithmetic = c->arithmetic,
                       .max_outputs = c->every ? MAX_PROMPT : 8,
                       .max_sessions = N_STRANGERS + 1};
    ig_lm *lm = NULL;
    ig_lm_facts f;
    assert_ok(ig_device_set_isa(isa));
    assert_ok(ig_lm_open(model_dir, &o, &lm));
    ig_lm_get_facts(lm, &f);
    tinylm_prompt(1, f.vocab, prompt, c->n_prompt);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (!few || ways[i].few) run_way(lm, c, &ways[i], prompt);
    ig_lm_close(lm);
}
