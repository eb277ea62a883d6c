/* limits.h: what each stage has done, as JSON: GET /limits. */
#ifndef SERVER_LIMITS_H
#define SERVER_LIMITS_H
#include "server/server.h"

/* {"model":{...},"kv":{...},"log":{...},"stages":[{"number":4,"name":"admit","limit":"...","in":..,"out":..,"refused":..,"us":..,"units":..,"unit":".."},...]} */
void limits_json(server *sv, buf *out);
#endif
