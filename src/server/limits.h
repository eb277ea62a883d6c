/* limits.h: what each stage has done, as JSON: GET /limits. */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H
#include "server/server.h"

/* {"model", "kv", "arena_bytes", "log", "stages": [{"number", "name", "limit", "in", "out",
 * "refused", "us", "units", "unit"}, ...]} */
void limits_json(server *sv, buf *out);
#endif
