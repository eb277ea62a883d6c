/* machine.h: three things that C cannot say about the core it runs on: the floating-point
 * control word, the pause of a spin loop, and a cheap clock. One block per architecture;
 * everything else falls back to <fenv.h> and the system's clock. */
#ifndef CPU_MACHINE_H
#define CPU_MACHINE_H
#include <stdint.h>

/* fp_enter: round to nearest, no flushing of subnormals, exceptions masked; gives what to hand
 * to fp_leave. cpu_ticks: monotonic on one core, constant rate, unit unknown (the pool relates
 * it to nanoseconds per run). */
#if defined(__x86_64__)
#define MXCSR_DEFAULT 0x1f80u
#define MXCSR_STATUS 0x3fu
typedef uint32_t fp_state;
static inline fp_state fp_enter(void)
{
    uint32_t was = __builtin_ia32_stmxcsr();
    if ((was & ~MXCSR_STATUS) != MXCSR_DEFAULT) __builtin_ia32_ldmxcsr(MXCSR_DEFAULT);
    return was;
}
static inline void fp_leave(fp_state was)
{
    if ((was & ~MXCSR_STATUS) != MXCSR_DEFAULT) __builtin_ia32_ldmxcsr(was);
}
static inline void cpu_pause(void) { __builtin_ia32_pause(); }
static inline int64_t cpu_ticks(void) { return (int64_t)__builtin_ia32_rdtsc(); }

#elif defined(__aarch64__)
typedef uint64_t fp_state;
static inline fp_state fp_enter(void)
{
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    if (was) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return was;
}
static inline void fp_leave(fp_state was)
{
    if (was) __asm__ volatile("msr fpcr, %0" : : "r"(was));
}
static inline void cpu_pause(void) { __asm__ volatile("isb" : : : "memory"); }
static inline int64_t cpu_ticks(void)
{
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return (int64_t)t;
}

#else
#include <fenv.h>
#include "base/clock.h"
typedef fenv_t fp_state;
static inline fp_state fp_enter(void)
{
    fenv_t was;
    fegetenv(&was);
    fesetenv(FE_DFL_ENV);
    return was;
}
static inline void fp_leave(fp_state was) { fesetenv(&was); }
static inline void cpu_pause(void) { __asm__ volatile("" : : : "memory"); }
static inline int64_t cpu_ticks(void) { return clock_mono_ns(); }
#endif

/* No load after it is done before a store before it is seen. A fence of C11 would do;
 * ThreadSanitizer refuses those. */
static inline void cpu_fence(void) { __sync_synchronize(); }
#endif
