/* walk.h: an operation with its N-th allocation, or its N-th I/O call, failing, N going up until it
 * succeeds. Each failure must be reported and must leave no memory behind. Functions fail the
 * running cmocka test. */
#ifndef SUPPORT_WALK_H
#define SUPPORT_WALK_H
#include <stdint.h>
#include "ingot/status.h"

typedef ig_status (*walk_op)(void *user);

/* op allocates with mem_*, frees what it made, and returns. Expected of a failure: IG_ENOMEM, or
 * IG_EFORMAT, because jansson reports some failed allocations as bad tokens. Returns how many
 * allocations were failed in turn. */
int64_t walk_memory(walk_op op, void *user);
/* The same for io_ calls: `err` (an errno) is injected, IG_EIO expected. check, which may be NULL,
 * looks at what the failed operation left. */
int64_t walk_io(walk_op op, void *user, int err, void (*check)(void *user));
#endif
