/* scope.h (internal): joining the innermost scope of this thread. */
#ifndef ARRAY_SCOPE_H
#define ARRAY_SCOPE_H
#include "array/core/node.h"

/* Arrays that one scope may own. */
#define SCOPE_MAX_NODES ((size_t)1 << 26)

/* Is a scope open on this thread? Without one, builders fail: nobody would own what they make. */
bool scope_is_open(void);
/* Gives the caller's reference to the innermost scope; dropped on failure. */
IG_MUST_USE ig_status scope_add(ig_node *n);
#endif
