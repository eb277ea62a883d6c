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
    option_info info[N_SETTINGS + 3];
} serve_options;

static void fill_options(serve_options *o)
{
    *o = (serve_options){0};
    for (int i = 0; i < N_SETTINGS; i++) {
        const setting_info *s = &config_table[i];
        bool is_flag = s->kind == 'f';
        o->info[i] = (option_info){s->name,
                                   0,
                                   is_flag          ? NULL
                                   : s->kind == 'n' ? "N"
                                   : s->choices     ? s->choices
                                                    : "TEXT",
                                   s->doc,
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

static void tell(const server *sv, const serve_report *r, bool json)
{
    const ig_lm_facts *f = &sv->model.facts;
    const char *where = sv->config.text[SET_listen];
    char address[300];
    if (!strncmp(where, "unix:", 5))
        snprintf(address, sizeof address, "%s", where);
    else
        snprintf(address, sizeof address, "http://%.*s:%d", (int)(strrchr(where, ':') - where),
                 where, http_port(sv->http));
    if (json) {
        printf("{\"ready\":true,\"address\":\"%s\",\"model\":\"%s\",\"hash_us\":%lld,"
               "\"hash_bytes\":%lld,\"bind_us\":%lld,\"touch_us\":%lld,\"touch_bytes\":%lld,"
               "\"prove_us\":%lld,\"ready_us\":%lld,\"kv_bytes\":%lld,\"arena_bytes\":%lld,"
               "\"kset\":\"%s\"}\n",
               address, sv->model.name, (long long)r->hash.us, (long long)r->hash.n_bytes,
               (long long)r->bind.us, (long long)r->touch.us, (long long)r->touch.n_bytes,
               (long long)r->prove.us, (long long)r->ready_us, (long long)f->kv_pool_bytes,
               (long long)f->arena_bytes, f->kset);
    } else {
        printf("2 load   %7.3f s  %.1f MB verified, %.2f GB/s\n",
               (double)(r->hash.us + r->bind.us) * 1e-6, (double)r->hash.n_bytes * 1e-6,
               r->hash.us ? (double)r->hash.n_bytes * 1e-3 / (double)r->hash.us : 0);
        printf("3 warm   %7.3f s  plan and memory %.3f s, known answer %.3f s\n",
               (double)(r->touch.us + r->prove.us) * 1e-6, (double)r->touch.us * 1e-6,
               (double)r->prove.us * 1e-6);
        printf("ready    %7.3f s  %s  model %s  log %s\n", (double)r->ready_us * 1e-6, address,
               sv->model.name, audit_log_vkey(sv->log)->name);
    }
    fflush(stdout);
}

static int wait_for_signal(const sigset_t *set)
{
    int sig = 0;
    while (sigwait(set, &sig) != 0 || !sig) continue;
    return sig;
}

static int serve(const config *c, bool json)
{
    progress_line line;
    serve_callbacks callbacks = {.hashing = progress_show, .log_dead = on_log_dead, .user = &line};
    serve_report report;
    server *sv;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    progress_begin(&line, "verifying");
    ig_status s = serve_start(c, &callbacks, &sv, &report);
    progress_end(&line);
    if (s != IG_OK) return cli_fail("serve", s);
    tell(sv, &report, json);
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
