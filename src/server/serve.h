/* serve.h: a whole server from its settings: log, load, warm, listen; and back. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H
#include "server/http.h"
#include "server/model_stage.h"
#include "server/pipeline.h"

/* On success the server is ready and listens, and ret_times says where the time from the call to
 * that moment went. On failure everything is closed again. */
IG_MUST_USE ig_status serve_start(const config *c, const serve_callbacks *callbacks,
                                  server **ret_server, ready_times *ret_times);
/* Drains, writes the stop event ("term", "int", "exit", "error"), closes. The status is the
 * log's. */
IG_MUST_USE ig_status serve_stop(server *sv, const char *reason);
#endif
