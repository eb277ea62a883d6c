/* progress.h: one line for long work: bar, bytes or items, rate, time left. Only when the stream is
 * a terminal; silent in a pipe. The library itself never draws: callers pass a callback. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H
#include <stdint.h>
/* What long library calls report to; NULL means nobody listens. Called at most about 20 times a
 * second from the working thread. */
typedef void (*progress_fn)(void *user, int64_t done, int64_t total);
#endif
