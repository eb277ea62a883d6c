/* serving.h: `ingot serve` in a process of its own, on a small model and a Unix socket, with the
 * N-th I/O call of its log failing or killing it; and what its clients got.
 *
 * The process is the test program itself, started again: its main must begin with
 *     if (serving_is_child(argc, argv)) return serving_child(argv);
 * Functions fail the running cmocka test. */
#ifndef SUPPORT_SERVING_H
#define SUPPORT_SERVING_H
#include <sys/types.h>
#include "base/buf.h"
#include "base/io.h"
#include "support/tmp.h"

#define SERVING_MODEL "tiny"
#define SERVING_SEGMENT ((size_t)64 << 10) /* bytes of a segment: small, so that logs rotate */
#define SERVING_PATH_N (TMP_PATH_N + 16)

/* DIR/bundle, signed by DIR/publisher (DIR/publisher.pub): a small model whose tokens are bytes. */
void serving_bundle(const char *dir);

typedef struct serving {
    char log[SERVING_PATH_N], socket[SERVING_PATH_N];
    pid_t pid;
    bool ended;
    int status; /* as waitpid gave it, once ended */
} serving;

/* Starts a server of DIR/bundle with the log DIR/log, the fault armed for paths that begin with
 * DIR/log and what the fault's `below` adds to it (with nothing added, the log's key counts, too).
 * True: it is ready; false: it ended before. */
bool serving_start(serving *s, const char *dir, const io_fault *fault);
/* SIGTERM, where it still runs; waits for its end. */
void serving_stop(serving *s);
bool serving_was_killed(const serving *s);
/* Its exit code; -1 when it was killed. */
int serving_exit_code(const serving *s);
/* Did the fault strike? Known unless it was killed. */
bool serving_was_struck(const serving *s);

bool serving_is_child(int argc, char **argv);
int serving_child(char **argv);

/* ---- clients ---- */

/* What came back, as far as it came. */
typedef struct reply {
    int http;    /* 0: not even a status line */
    char id[64]; /* X-Request-Id; "" when there was none */
    buf text;    /* of the answer: content of the first choice, deltas joined */
    buf receipt; /* empty when none came */
    char finish[16], error[64], message[256];
    bool is_done; /* the stream ended with [DONE], the body was whole */
} reply;
void reply_done(reply *r);
static inline void reply_auto(reply *r) { reply_done(r); }

/* Sends POST `path`; a socket to read from, or -1: nobody is there any more. */
int serving_send(const serving *s, const char *path, const char *body);
/* Reads to the end (at most 20 s) and closes. Initialises ret_reply. */
void serving_receive(int fd, reply *ret_reply);
#endif
