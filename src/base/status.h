/* status.h: error records, for the scope stack (array/core/scope.c); everybody else uses ig_fail.
 *
 * A thread has a root record and, above it, one record per open scope. In a pushed record the first
 * failure wins; in the root the last one does. Popping a failed record hands it up as information:
 * the record below shows it, but a failure of its own replaces it: a fallback is not poisoned. */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H
#include <stdbool.h>
#include "ingot/status.h"

#define STATUS_MESSAGE_N 1024 /* bytes of a message, NUL included */

typedef struct status_record {
    ig_status code;                 /* IG_OK: nothing recorded */
    bool handed_up;                 /* came from a closed scope; the next failure replaces it */
    struct status_record *below;    /* the enclosing record; NULL in the root */
    char message[STATUS_MESSAGE_N]; /* NUL-terminated */
} status_record;

/* The innermost record of this thread. Never NULL. */
status_record *status_top(void);
/* Makes r, owned by the caller, the innermost record, and empties it. */
void status_push(status_record *r);
/* Removes r, which must be the innermost record, and hands a failure up. Returns r's code. */
ig_status status_pop(status_record *r);
#endif
