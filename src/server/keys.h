/* keys.h: API keys: digests only. A line of the file: ID TENANT SHA256-OF-KEY-IN-HEX; # starts a
 * comment. */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H
#include "base/digest.h"
#include "base/str.h"

#define KEYS_MAX 4096
typedef struct api_key {
    char id[65], tenant[65];
    uint8_t sha256[SHA256_N];
    int64_t served; /* engine's clock of the last start: fairness */
} api_key;
typedef struct key_list {
    api_key *k;
    size_t n;
} key_list; /* n 0: no keys are needed */

IG_MUST_USE ig_status keys_read(const char *path, key_list *ret_list);
void keys_done(key_list *l);
/* The key of an Authorization header ("Bearer ..."), comparing in constant time; NULL: none
 * matches. */
api_key *keys_find(const key_list *l, const char *authorization);
#endif
