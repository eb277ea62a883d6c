/* machine.h: two things that C cannot say about the core it runs on: the pause of a spin loop, and
 * a cheap clock (the floating-point control word is base/fp.h). One block per architecture;
 * everything else falls back to the system's clock. */
#ifndef CPU_MACHINE_H
#define CPU_MACHINE_H
#include <stdint.h>

/* cpu_ticks: monotonic on one core, constant rate, unit unknown (the pool relates it to nanoseconds
 * per run). */
#if defined(__x86_64__)
static inline void cpu_pause(void) { __builtin_ia32_pause(); }
static inline int64_t cpu_ticks(void) { return (int64_t)__builtin_ia32_rdtsc(); }

#elif defined(__aarch64__)
static inline void cpu_pause(void) { __asm__ volatile("isb" : : : "memory"); }
static inline int64_t cpu_ticks(void)
{
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return (int64_t)t;
}

#else
#include "base/clock.h"
static inline void cpu_pause(void) { __asm__ volatile("" : : : "memory"); }
static inline int64_t cpu_ticks(void) { return clock_mono_ns(); }
#endif

/* No load after it is done before a store before it is seen. A fence of C11 would do;
 * ThreadSanitizer refuses those. */
static inline void cpu_fence(void) { __sync_synchronize(); }
#endif
