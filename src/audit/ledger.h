/* ledger.h: the rules that a sequence of events obeys, checked event by event.
 *
 *   log      := session*
 *   session  := boot (load | admit | done | denied)* (stop | gap done[recovered]*)
 *
 * Every admit is named by exactly one done, with its leaf hash and request id. A stop comes when no
 * request is open and counts them; before the next boot every orphan of a crash is closed as
 * recovered. An admit names a load of its own session and that load's model root. */
#ifndef AUDIT_LEDGER_H
#define AUDIT_LEDGER_H
#include "audit/event.h"
#include "audit/tree.h"

#define LEDGER_MAX_OPEN ((size_t)1 << 20)
#define LEDGER_MAX_LOADS 4096 /* of one session */

typedef struct ledger_open {
    uint64_t index; /* of the admit */
    tree_hash hash;
    char req[65]; /* request id; only when strict */
} ledger_open;

typedef struct ledger_load {
    uint64_t index;
    tree_hash hash;
    uint8_t root[SHA256_N];
} ledger_load;

typedef struct ledger_seed {
    bool from_log;
    uint64_t size; /* of the checkpoint that the admit names */
    tree_hash root;
} ledger_seed;

typedef struct ledger {
    bool running;      /* between boot and stop or gap */
    ledger_open *open; /* admits without done, ascending */
    size_t n_open, cap_open;
    ledger_load *loads; /* of the session; only when strict */
    size_t n_loads, cap_loads;
    uint64_t n_sessions, n_admits, n_dones; /* all */
    uint64_t session_admits, session_dones; /* of the running session */
    uint8_t boot[8];                        /* its id; only when strict */
    uint8_t mach[SHA256_N];                 /* of the last boot */
    bool has_mach;
    int64_t mono;
    ledger_seed seed; /* of the last admit; only when strict; the caller knows the checkpoints */
} ledger;

void ledger_init(ledger *l);
void ledger_done(ledger *l);
static inline void ledger_auto(ledger *l) { ledger_done(l); }
/* Strict parses every event and checks every rule; otherwise only what finding the open admits
 * needs, for a log whose bytes are known to be ours. Errors say which rule and start with "event N:
 * ". */
IG_MUST_USE ig_status ledger_add(ledger *l, uint64_t index, const tree_hash *hash, str leaf,
                                 bool strict);
#endif
