/* cmd_serve.c: ingot serve, and ingot config (the same settings, printed). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "server/serve.h"

/* Settings from the environment: INGOT_NAME. Read here and nowhere else. */
static ig_status read_environment(config *c)
{
    for (int i = 0; i < N_SETTINGS; i++) {
        char name[64] = "INGOT_";
        size_t n = strlen(name);
        for (const char *p = config_table[i].name; *p && n + 1 < sizeof name; p++)
            name[n++] = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        name[n] = 0;
        const char *value = getenv(name);
        if (value) TRY(config_set(c, config_table[i].name, value, ORIGIN_ENVIRONMENT));
    }
    return IG_OK;
}

/* The options of config.def, plus --file and --json. */
typedef struct serve_options {
    const char *text[N_SETTINGS];
    bool flag[N_SETTINGS];
    const char *file;
    bool json;
    char doc[N_SETTINGS][192];
    option_info info[N_SETTINGS + 3];
} serve_options;

static void fill_options(serve_options *o)
{
    *o = (serve_options){0};
    for (int i = 0; i < N_SETTINGS; i++) {
        const setting_info *s = &config_table[i];
        bool is_flag = s->kind == 'f';
        snprintf(o->doc[i], sizeof o->doc[i], is_flag || !*s->dflt ? "%s" : "%s; default %s",
                 s->doc, s->dflt);
        o->info[i] = (option_info){s->name,
                                   0,
                                   s->label,
                                   o->doc[i],
                                   is_flag ? OPT_FLAG : OPT_TEXT,
                                   is_flag ? (void *)&o->flag[i] : (void *)&o->text[i],
                                   0,
                                   0};
    }
    o->info[N_SETTINGS] = (option_info){
        "file", 0, "FILE", "settings as name = value lines", OPT_TEXT, &o->file, 0, 0};
    o->info[N_SETTINGS + 1] =
        (option_info){"json", 0, NULL, "print JSON", OPT_FLAG, &o->json, 0, 0};
}

static ig_status effective(const serve_options *o, config *c)
{
    TRY(config_init(c));
    if (o->file) TRY(config_read_file(c, o->file));
    TRY(read_environment(c));
    for (int i = 0; i < N_SETTINGS; i++) {
        if (o->text[i]) TRY(config_set(c, config_table[i].name, o->text[i], ORIGIN_FLAG));
        if (o->flag[i]) TRY(config_set(c, config_table[i].name, "true", ORIGIN_FLAG));
    }
    return IG_OK;
}

static void on_log_dead(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "ingot serve: the audit log is dead: %s; stopping\n", message);
    kill(getpid(), SIGUSR1);
}

static void format_address(const server *sv, char *out, size_t cap)
{
    const char *where = sv->config.text[SET_listen];
    if (!strncmp(where, "unix:", 5))
        snprintf(out, cap, "%s", where);
    else
        snprintf(out, cap, "http://%.*s:%d", (int)(strrchr(where, ':') - where), where,
                 http_port(sv->http));
}

/* "hash 0.412, text 0.050": the parts of a stage, seconds; STAGE_NONE: those of the server. */
static void print_parts(const ready_times *t, stage s)
{
    const char *comma = "";
    for (int i = 0; i < N_READY_PARTS; i++) {
        if (ready_table[i].stage != s) continue;
        printf("%s%s %.3f", comma, ready_table[i].name, (double)t->us[i] * 1e-6);
        comma = ", ";
    }
    printf("\n");
}

static void print_rate(int64_t n_bytes, const char *what, int64_t us)
{
    printf("%.1f MB %s, %.2f GB/s; ", (double)n_bytes * 1e-6, what,
           us ? (double)n_bytes * 1e-3 / (double)us : 0);
}

static void tell(const server *sv, const ready_times *t)
{
    char address[300];
    format_address(sv, address, sizeof address);
    printf("  start  %7.3f s  ", (double)ready_stage_us(t, STAGE_NONE) * 1e-6);
    print_parts(t, STAGE_NONE);
    printf("2 load   %7.3f s  ", (double)ready_stage_us(t, STAGE_LOAD) * 1e-6);
    print_rate(t->hash_bytes, "verified", t->us[READY_HASH]);
    print_parts(t, STAGE_LOAD);
    printf("3 warm   %7.3f s  ", (double)ready_stage_us(t, STAGE_WARM) * 1e-6);
    print_rate(t->touch_bytes, "touched", t->us[READY_TOUCH]);
    print_parts(t, STAGE_WARM);
    printf("ready    %7.3f s  %.3f s without hash, touch, prove\n"
           "serving  %s  model %s  log %s\n",
           (double)ready_total_us(t) * 1e-6, (double)ready_rest_us(t) * 1e-6, address,
           sv->model.name, audit_log_vkey(sv->log)->name);
    if (sv->log_key_made)
        printf(
            "made     %s.key, which signs this log: keep it; and %s.key.vkey: give it to those who "
            "check receipts\n",
            sv->config.text[SET_log], sv->config.text[SET_log]);
    fflush(stdout);
}

static void tell_json(const server *sv, const ready_times *t)
{
    const ig_lm_facts *f = &sv->model.facts;
    AUTO(buf) parts = {0};
    char address[300];
    buf_init(&parts, 4096);
    ready_json(t, &parts);
    format_address(sv, address, sizeof address);
    cli_json("{\"ready\":true,\"address\":", address);
    cli_json(",\"model\":", sv->model.name);
    printf(",\"kset\":\"%s\","
           "\"hash_bytes\":%lld,\"touch_bytes\":%lld,\"kv_bytes\":%lld,\"arena_bytes\":%lld,"
           "\"parts_us\":%s,\"load_us\":%lld,\"warm_us\":%lld,\"ready_us\":%lld,"
           "\"rest_us\":%lld}\n",
           f->kset, (long long)t->hash_bytes, (long long)t->touch_bytes,
           (long long)f->kv_pool_bytes, (long long)f->arena_bytes, parts.data ? parts.data : "{}",
           (long long)ready_stage_us(t, STAGE_LOAD), (long long)ready_stage_us(t, STAGE_WARM),
           (long long)ready_total_us(t), (long long)ready_rest_us(t));
    fflush(stdout);
}

static void on_phase(void *line, const char *what) { progress_begin(line, what, NULL); }

static int wait_for_signal(const sigset_t *set)
{
    int sig = 0;
    while (sigwait(set, &sig) != 0 || !sig) continue;
    return sig;
}

static int serve(const config *c, bool json)
{
    progress_line line = {0};
    serve_callbacks callbacks = {
        .phase = on_phase, .progress = progress_show, .log_dead = on_log_dead, .user = &line};
    ready_times times;
    server *sv;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    ig_status s = serve_start(c, &callbacks, &sv, &times);
    progress_end(&line);
    if (s != IG_OK) return cli_fail("serve", s);
    (json ? tell_json : tell)(sv, &times);
    int sig = wait_for_signal(&set);
    s = serve_stop(sv, sig == SIGTERM ? "term" : sig == SIGINT ? "int" : "error");
    if (s != IG_OK) return cli_fail("serve", s);
    return sig == SIGUSR1 ? EXIT_SYSTEM : EXIT_DONE;
}

static int run_serve(int argc, char **argv)
{
    static serve_options o;
    AUTO(config) c = {0};
    text_list args;
    int code;
    fill_options(&o);
    cli_parse("serve", argc, argv, o.info, &args, 0, 0, &code);
    if (code >= 0) return code;
    ig_status s = effective(&o, &c);
    return s == IG_OK ? serve(&c, o.json) : cli_fail("serve", s);
}

static int run_config(int argc, char **argv)
{
    static serve_options o;
    AUTO(config) c = {0};
    AUTO(buf) text = {0};
    text_list args;
    int code;
    buf_init(&text, 1 << 20);
    fill_options(&o);
    cli_parse("config", argc, argv, o.info, &args, 0, 0, &code);
    if (code >= 0) return code;
    ig_status s = effective(&o, &c);
    if (s != IG_OK) return cli_fail("config", s);
    config_print(&c, &text);
    fputs(text.data ? text.data : "", stdout);
    return EXIT_DONE;
}

const command_info command_serve = {run_serve};
const command_info command_config = {run_config};
