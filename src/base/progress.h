/* progress.h: how far long work is. Libraries never draw: they call back (the command's line
 * is in src/cli/cli.h). */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
#include <stdint.h>
/* What long library calls report to; NULL means nobody listens. Called at most about 20 times a
 * second from the working thread. */
typedef void (*progress_fn)(void *user, int64_t done, int64_t total);
#endif
