/* http.h: the HTTP server (libmicrohttpd): routes, bodies, authentication. Policy is elsewhere. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H
#include "server/server.h"

typedef struct http http;
/* Listens as the setting says and starts to serve. IG_EINVAL: an address that is not loopback
 * needs API keys. */
IG_MUST_USE ig_status http_start(server *sv, http **ret_http);
int http_port(const http *h);      /* 0 for a Unix socket */
void http_stop_listening(http *h); /* open connections go on */
/* Waits a little for clients to take the answers that are ready, then closes everything. NULL is
 * fine. */
void http_stop(http *h);
#endif
