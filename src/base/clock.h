/* clock.h: time in microseconds. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include <stdint.h>
#include "base/mem.h"
int64_t clock_mono_us(void);
int64_t clock_mono_ns(void);
int64_t clock_wall_us(void); /* since 1970, UTC */
#define CLOCK_RFC3339_N 28   /* "2026-01-02T03:04:05.678901Z" and NUL */
void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_N]);
#endif
