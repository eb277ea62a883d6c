/* serve.c: start and stop in order: settings, threads and kernels, the log and its boot event,
 * stages 2 and 3, the pipeline, HTTP. */
#include "server/serve.h"
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include "base/file.h"
#include "ingot/device.h"
#include "ingot/ingot.h"
#include "server/build.h"

static ig_status set_machine(const config *c)
{
    const char *isa = c->text[SET_isa];
    int64_t n = c->number[SET_threads] ? c->number[SET_threads] : thread_n_cpus();
    if (strcmp(isa, "auto")) TRY(ig_device_set_isa(isa));
    return ig_device_set_threads((int)n);
}

/* The log's key: given, or beside the log, made on first use with its public half. */
static ig_status open_key(server *sv)
{
    AUTO(buf) path = {0};
    const char *given = sv->config.text[SET_log_key];
    buf_init(&path, 4096);
    buf_printf(&path, *given ? "%s" : "%s.key", *given ? given : sv->config.text[SET_log]);
    TRY(buf_status(&path));
    if (*given) return log_key_read(path.data, &sv->log_key);
    if (file_exists(path.data)) {
        TRY(log_key_read(path.data, &sv->log_key));
    } else {
        TRY(log_key_generate(sv->config.text[SET_name], &sv->log_key));
        TRY(log_key_write(sv->log_key, path.data));
        sv->log_key_made = true;
    }
    buf_str(&path, ".vkey");
    TRY(buf_status(&path));
    if (file_exists(path.data)) return IG_OK; /* missing where a crash came between the two */
    return log_vkey_write(log_key_public(sv->log_key), path.data);
}

static void on_dead(void *user, const char *message) { pipeline_log_lost(user, message); }

static ig_status open_log(server *sv)
{
    char machine[128];
    struct stat st;
    build_machine_id(machine, sizeof machine);
    if (!*sv->config.text[SET_log])
        return ig_fail(IG_EINVAL,
                       "no audit log is given: --log DIR (it is made when it is missing)");
    if (stat(sv->config.text[SET_log], &st) == 0 && !S_ISDIR(st.st_mode))
        return ig_fail(IG_EINVAL, "%s: a file; --log takes a folder, which is made when missing",
                       sv->config.text[SET_log]);
    TRY(open_key(sv));
    audit_log_options o = {
        .dir = sv->config.text[SET_log],
        .key = sv->log_key,
        .srv = sv->config.text[SET_name],
        .machine_id = machine,
        .create = true,
        .segment_bytes = (size_t)sv->config.number[SET_log_segment],
        .take_over = sv->config.number[SET_take_over],
        .on_dead = on_dead,
        .user = sv,
        .progress = sv->callbacks.progress,
        .progress_user = sv->callbacks.user,
    };
    server_phase(sv, "reading the log");
    return audit_log_open(&o, &sv->log);
}

static ig_status log_boot(server *sv)
{
    uint8_t build[SHA256_N], mach[SHA256_N], cfg[SHA256_N];
    char cpu[128];
    struct timex t = {0};
    audit_ref ref;
    TRY(build_digest(build, NULL));
    build_cpu(cpu, sizeof cpu);
    audit_log_mach(sv->log, mach);
    config_digest(&sv->config, cfg);
    bool synced = adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);
    event *e = mem_alloc(sizeof *e);
    if (!e) return IG_ENOMEM;
    event_init(e, EVENT_BOOT);
    event_str(e, EV_BOOT_VER, IG_VERSION);
    event_hex(e, EV_BOOT_ENG_BUILD, build);
    event_str(e, EV_BOOT_ENG_ISA, ig_device_isa());
    event_int(e, EV_BOOT_ENG_THREADS, ig_device_threads());
    event_str(e, EV_BOOT_CPU, cpu);
    event_hex(e, EV_BOOT_MACH, mach);
    event_hex(e, EV_BOOT_CFG, cfg);
    event_str(e, EV_BOOT_CLOCK_SOURCE, synced ? "ntp" : "unknown");
    if (synced) event_int(e, EV_BOOT_CLOCK_ERROR, (int64_t)t.maxerror);
    ig_status s = audit_append(sv->log, e, &ref);
    mem_free(e);
    return s;
}

static ig_status write_port(const server *sv)
{
    char text[16];
    if (!*sv->config.text[SET_port_file]) return IG_OK;
    int n = snprintf(text, sizeof text, "%d\n", http_port(sv->http));
    return file_write_atomic(sv->config.text[SET_port_file], text, (size_t)n, 0644);
}

static ig_status copy_config(const config *from, config *to)
{
    TRY(config_init(to));
    for (int i = 0; i < N_SETTINGS; i++)
        TRY(config_set(to, config_table[i].name, from->text[i], from->from[i]));
    return IG_OK;
}

static ig_status start(server *sv, const config *c, ready_times *times)
{
    audit_token *probe = NULL;
    TRY(copy_config(c, &sv->config));
    TRY(set_machine(&sv->config));
    if (*sv->config.text[SET_api_keys]) TRY(keys_read(sv->config.text[SET_api_keys], &sv->keys));
    ready_mark(times, READY_SETTINGS);
    TRY(open_log(sv));
    ready_mark(times, READY_LOG);
    TRY(log_boot(sv));
    ready_mark(times, READY_BOOT);
    ig_status s = load_run(sv, times, &probe);
    if (s == IG_OK) s = warm_run(sv, probe, times);
    audit_token_free(probe);
    if (s != IG_OK) return s;
    TRY(pipeline_start(sv));
    TRY(http_start(sv, &sv->http));
    TRY(write_port(sv));
    ready_mark(times, READY_LISTEN);
    return IG_OK;
}

ig_status serve_stop(server *sv, const char *reason)
{
    ig_status s = IG_OK;
    if (sv->http) http_stop_listening(sv->http);
    pipeline_stop(sv);
    http_stop(sv->http);
    if (sv->log) s = audit_log_close(sv->log, reason);
    log_key_free(sv->log_key);
    ig_lm_close(sv->model.lm);
    keys_done(&sv->keys);
    config_free(&sv->config);
    cond_done(&sv->stop_watching);
    lock_done(&sv->lock);
    mem_free(sv);
    return s;
}

ig_status serve_start(const config *c, const serve_callbacks *callbacks, server **ret_server,
                      ready_times *ret_times)
{
    ready_times times;
    ready_begin(&times);
    server *sv = mem_calloc(1, sizeof *sv);
    if (!sv) return IG_ENOMEM;
    if (callbacks) sv->callbacks = *callbacks;
    ig_status s = lock_init(&sv->lock, RANK_SERVER);
    if (s == IG_OK && (s = cond_init(&sv->stop_watching)) != IG_OK) lock_done(&sv->lock);
    if (s != IG_OK) {
        mem_free(sv);
        return s;
    }
    s = start(sv, c, &times);
    if (s != IG_OK) {
        char message[1024];
        snprintf(message, sizeof message, "%s", ig_error_message());
        ig_status closed = serve_stop(sv, "error");
        (void)closed; /* the first failure is the one to tell */
        return ig_fail(s, "%s", message);
    }
    *ret_server = sv;
    *ret_times = times;
    return IG_OK;
}
