/* clock.c: the two clocks and how a moment is written down (contract in clock.h). */
#include "base/clock.h"
#include <stdio.h>
#include <time.h>

static int64_t now_ns(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t); /* cannot fail for these two clocks */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_mono_us(void) { return now_ns(CLOCK_MONOTONIC) / 1000; }

int64_t clock_mono_ns(void) { return now_ns(CLOCK_MONOTONIC); }

int64_t clock_wall_us(void) { return now_ns(CLOCK_REALTIME) / 1000; }

void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_N])
{
    /* The format has four digits for the year: times outside 0000 to 9999 show the nearest one. */
    const int64_t first_us = -62167219200000000, last_us = 253402300799999999;
    if (wall_us < first_us) wall_us = first_us;
    if (wall_us > last_us) wall_us = last_us;
    int64_t us = wall_us % 1000000;
    if (us < 0) us += 1000000;
    time_t s = (time_t)((wall_us - us) / 1000000);
    struct tm t;
    (void)gmtime_r(&s, &t);
    char text[96];
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", t.tm_year + 1900,
                   t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec, (int)us);
    (void)snprintf(out, CLOCK_RFC3339_N, "%.27s", text);
}
