/* serve.h: a whole server from its settings: log, load, warm, listen; and back. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H
#include "server/http.h"
#include "server/model_stage.h"
#include "server/pipeline.h"

/* Times of the start, for those who print them. */
typedef struct serve_report {
    stage_report hash, bind, touch, prove;
    int64_t ready_us; /* from the call of serve_start to ready */
} serve_report;

/* On success the server is ready and listens. On failure everything is closed again. */
IG_MUST_USE ig_status serve_start(const config *c, const serve_callbacks *callbacks,
                                  server **ret_server, serve_report *ret_report);
/* Drains, writes the stop event ("term", "int", "exit", "error"), closes. The status is the
 * log's. */
IG_MUST_USE ig_status serve_stop(server *sv, const char *reason);
#endif
