/* log_internal.h: what log.c (queue, tokens, writer thread) and start.c (start, recovery, end)
 * share. */
#ifndef AUDIT_LOG_INTERNAL_H
#define AUDIT_LOG_INTERNAL_H
#include "audit/log.h"
#include "audit/writer.h"

#define LOG_MESSAGE_N 512

typedef struct node {
    struct node *next;
    buf leaf;
    bool sign;     /* report only after a checkpoint covers it */
    bool shared;   /* lives in a token: not freed after its report */
    bool reserved; /* paid by its admit */
    audit_append_fn fn;
    void *user;
    audit_ref ref;
} node;

struct audit_log {
    writer w; /* the writer thread's alone, after open */
    audit_recovery recovery;
    char srv[65];
    uint8_t boot[8], mach[SHA256_N];
    int64_t publish_us;
    void (*on_dead)(void *user, const char *message);
    void *user;
    pthread_t thread;
    bool has_thread;

    lock lock; /* of all below */
    cond wake;
    node *head, **tail;
    bool stopping, dead, booted;
    int64_t queued, reserved, room; /* bytes */
    bool want_spare;
    uint64_t n_tokens, n_admits, n_dones;
    uint64_t n_syncs, n_notes, n_derived_failures; /* copies of the writer's, for stats */
    char message[LOG_MESSAGE_N];                   /* why it is dead */
};

/* Runs the writer until log_stop_thread. */
IG_MUST_USE ig_status log_start_thread(audit_log *l);
/* Ends the thread; what is queued is written first. */
void log_stop_thread(audit_log *l);
/* Appends an event of any type and waits; `sign`: until a checkpoint covers it. */
IG_MUST_USE ig_status log_append_wait(audit_log *l, event *e, bool sign, audit_ref *ret_ref);
#endif
