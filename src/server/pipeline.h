/* pipeline.h: the only place that moves requests between stages, and the only one that writes
 * audit events about them. */
#ifndef SERVER_PIPELINE_H
#define SERVER_PIPELINE_H
#include "server/request.h"

/* Starts the threads; the model is loaded, proven and warm. */
IG_MUST_USE ig_status pipeline_start(server *sv);
/* Ends admissions, waits for open requests up to the setting `drain`, ends the rest as errors,
 * ends the threads. Also after a pipeline_start that failed. */
void pipeline_stop(server *sv);

/* Stage 4, from an HTTP thread: parses, admits, and later answers through the request. False:
 * ret_error is the answer (already
 * recorded as denied); r may be dropped. */
bool pipeline_submit(server *sv, request *r, api_error *ret_error);
/* Records a refusal before there was a request (authentication, size, route); those for want of a
 * key together, one event a second. */
void pipeline_denied(server *sv, const char *api, const api_key *key, const api_error *e);
/* The log has died, or cannot take what it must: ends admissions and what is open, and tells the
 * owner of the server, once. */
void pipeline_log_lost(server *sv, const char *why);
/* The connection of r is through. */
void pipeline_disconnected(request *r);
/* Index of the done event of a request that ended lately; false when it is not remembered. */
bool pipeline_find_done(server *sv, const char *id, uint64_t *ret_done);
/* Is the server ready (0), and if not, why? */
bool pipeline_ready(server *sv, char *ret_why, size_t cap);
#endif
