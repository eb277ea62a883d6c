/* server.h: the running server: settings, the model, the log, the queues, and the threads that
 * walk them.
 *
 * Threads: HTTP (libmicrohttpd's), text workers (templates, tokens, receipts), one engine
 * (sessions and steps), a watcher (hang-ups, deadlines,
 * pings), the log's writer. A request is in exactly one place at a time; pipeline.c moves it. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H
#include <stdatomic.h>
#include "audit/log.h"
#include "base/progress.h"
#include "base/thread.h"
#include "ingot/lm.h"
#include "server/config.h"
#include "server/keys.h"
#include "server/stages.h"

struct request;

#define SERVER_N_RECENT 65536
typedef struct recent {
    char id[64];
    uint64_t done;
} recent;

/* First in, first out; linked through request.next. */
typedef struct queue {
    lock lock;
    cond filled;
    struct request *head, *tail;
    int32_t n;
    bool closed;
} queue;

/* The model that is served, and what was verified about it. */
typedef struct served {
    char name[129];           /* of the bundle: what clients name and events hold */
    int64_t version;          /* release.json */
    uint8_t root[SHA256_N];   /* model identity */
    uint8_t sig[SHA256_N];    /* SHA-256 of model.sig */
    char key[65];             /* fingerprint of the trusted key, hex */
    int64_t n_files, n_bytes; /* verified */
    bool writable;            /* this user may write the files; allowed by a setting */
    uint8_t tmpl[SHA256_N], tok[SHA256_N];
    bool has_tmpl;
    ig_lm *lm;
    ig_lm_facts facts;
    audit_ref load;       /* the load event */
    char fingerprint[24]; /* system_fingerprint: "fp_" and 12 hex digits of root */
} served;

/* What the caller of serve_start wants to hear. Each may be NULL. */
typedef struct serve_callbacks {
    void (*phase)(void *user, const char *what); /* "verifying": what begins now */
    progress_fn progress;                        /* of the phase, in bytes */
    void (*log_dead)(
        void *user,
        const char *message); /* once; the caller should stop the server and exit with a failure */
    void *user;
} serve_callbacks;

typedef struct server {
    config config;
    serve_callbacks callbacks;
    key_list keys;
    audit_log *log;
    log_key *log_key;
    bool log_key_made; /* at this start */
    served model;
    stage_counters stage[N_STAGES];
    queue text;  /* to prepare or to finish */
    queue ready; /* prepared, for the engine */
    pthread_t text_thread[2], engine_thread, watch_thread;
    int n_text; /* of text_thread that run */
    bool has_queues, has_engine, has_watch;
    cond stop_watching;    /* with `lock`: `stopping` is set */
    lock lock;             /* below */
    struct request **open; /* owned: admitted and not over */
    int32_t n_open, cap_open;
    bool draining;               /* no more admissions */
    char dead[256];              /* why the log died; "" while it lives */
    _Atomic bool ready_flag;     /* warm, and the last engine step was fine */
    _Atomic bool log_lost;       /* `dead` is set: what is open ends as an error */
    _Atomic int64_t n_strangers; /* refusals of clients without a key that no event counts yet */
    _Atomic bool cut;            /* the time to drain is over: likewise */
    _Atomic bool stopping;
    _Atomic int64_t engine_beat_us; /* last time that the engine looped */
    struct recent *recent;          /* owned: ring of ended requests, by id */
    uint64_t n_recent;              /* ever put in */
    struct http *http;
    void (*resume)(void *conn); /* wakes a suspended connection; http.c's */
} server;

static inline void server_phase(const server *sv, const char *what)
{
    if (sv->callbacks.phase) sv->callbacks.phase(sv->callbacks.user, what);
}
#endif
