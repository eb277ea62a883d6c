/* stages.h: the table of stages and what each has done. */
#ifndef SERVER_STAGES_H
#define SERVER_STAGES_H
#include <stdatomic.h>
#include <stdint.h>

typedef enum limit {
    LIMIT_NO_LIMIT,
    LIMIT_VERIFY,
    LIMIT_COMPUTE,
    LIMIT_BANDWIDTH,
    LIMIT_CAPACITY
} limit;
typedef enum stage {
    STAGE_NONE,
#define STAGE(number, NAME, ...) STAGE_##NAME,
#include "server/stages.def"
#undef STAGE
    N_STAGES
} stage;
typedef struct stage_info {
    int number;
    const char *name;
    limit limit;
    const char *takes, *gives, *refuses, *unit;
} stage_info;
extern const stage_info stage_table[N_STAGES];
const char *stage_limit_name(limit l); /* "storage and verification" */

/* Counters of one stage; any thread adds. */
typedef struct stage_counters {
    _Atomic int64_t n_in, n_out, n_refused;
    _Atomic int64_t us;    /* time spent in the stage, summed */
    _Atomic int64_t units; /* in the table's unit */
} stage_counters;
static inline void stage_count(_Atomic int64_t *c, int64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}
#endif
