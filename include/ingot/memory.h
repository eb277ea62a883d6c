/* memory.h: what arrays cost: limits and counters of this process. */
#ifndef INGOT_MEMORY_H
#define INGOT_MEMORY_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif
typedef struct ig_counters {
    int64_t active_bytes; /* in live buffers (adopted memory not counted) */
    int64_t cache_bytes;  /* in the reuse cache */
    int64_t peak_bytes;   /* highest active since reset */
    int64_t n_nodes;      /* graph nodes created so far */
    int64_t n_live_nodes;
    int64_t n_allocs; /* heap allocations made by the library so far, of any kind */
    int64_t n_plans;  /* plans compiled so far */
} ig_counters;
IG_API void ig_memory_counters(ig_counters *ret_counters);
IG_API void ig_memory_reset_peak(void);
IG_API void ig_memory_set_cache_limit(int64_t n_bytes); /* default 256 MiB */
IG_API void ig_memory_set_limit(int64_t n_bytes); /* active bytes over it: IG_ENOMEM; 0 = none */
IG_API void ig_memory_clear_cache(void);
#ifdef __cplusplus
}
#endif
#endif
