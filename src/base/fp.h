/* fp.h: the floating-point control word that the numeric contract needs: whoever computes for it
 * enters first, since a caller may have set another rounding, or flush subnormals (as anything
 * linked with -ffast-math does). One block per architecture; everything else falls back to
 * <fenv.h>.
 *
 *   AUTO(fp_state) fp = fp_enter();
 */
#ifndef BASE_FP_H
#define BASE_FP_H
#include <stdint.h>
#include "base/auto.h"

/* fp_enter: round to nearest, no flushing of subnormals, exceptions masked; gives what to hand to
 * fp_leave. */
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

#else
#include <fenv.h>
typedef fenv_t fp_state;
static inline fp_state fp_enter(void)
{
    fenv_t was;
    fegetenv(&was);
    fesetenv(FE_DFL_ENV);
    return was;
}
static inline void fp_leave(fp_state was) { fesetenv(&was); }
#endif

static inline void fp_state_auto(fp_state *was) { fp_leave(*was); }
#endif
