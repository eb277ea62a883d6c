/* client.h: a small HTTP/1.1 client for `ask` and `chat`: one request on a connection to a numeric
 * address or a Unix socket, body or event
 * stream. It has no TLS, follows nothing and resolves no names; programs of users have their own
 * clients. Kept out of a library because
 * the same executable serves, and a server that links no client can open no outbound connection by
 * accident. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H
#include "base/buf.h"
#include "base/str.h"

/* url: http://ADDRESS:PORT or unix:PATH. Called with each piece of the body as it arrives; false
 * stops. */
typedef bool (*client_on_data)(void *user, const char *p, size_t n);
IG_MUST_USE ig_status client_request(const char *url, const char *method, const char *path,
                                     const char *api_key, str body, client_on_data on_data,
                                     void *user, int *ret_http);
#endif
