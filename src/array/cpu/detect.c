/* detect.c: which instruction sets this machine can run, and the kernel table in use.
 *
 * Features come from CPUID and, since the operating system must save the wider registers, from
 * XCR0; never from a model number. The choice is made once; ig_device_set_isa replaces it for what
 * is lowered afterwards: steps keep the table they were lowered with. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "array/cpu/kernels.h"
#include "ingot/device.h"

enum {
    HAS_AVX2 = 1,   /* with FMA and F16C */
    HAS_AVX512 = 2, /* F, BW, DQ, VL */
    HAS_VNNI = 4,   /* AVX512-VNNI */
    HAS_NEON = 8,
    HAS_DOTPROD = 16 /* of Armv8.2 */
};

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t xcr0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool all_set(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

static int features(void)
{
    const uint32_t fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const uint32_t avx2 = 1u << 5, avx512_f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
    const uint32_t vnni = 1u << 11;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all_set(c, fma | osxsave | avx | f16c)) return 0;
    uint64_t saved = xcr0();
    if (!all_set(saved, 0x6) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2)) return 0;
    int has = HAS_AVX2;
    if (all_set(saved, 0xe6) && all_set(b, avx512_f | dq | bw | vl))
        has |= HAS_AVX512 | (c & vnni ? HAS_VNNI : 0);
    return has;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif

static int features(void) /* NEON is part of the base architecture */
{
    return HAS_NEON | (getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? HAS_DOTPROD : 0);
}
#else
static int features(void) { return 0; }
#endif

/* Rows of isa.def: tables and what they need, in the same order. What a machine lacks is a prefix,
 * since each table needs what those behind it need. */
#define ISA(name, table, needs) &kernels_##table,
#define BETTER ISA
static const kernels *const tables[] = {
#include "array/cpu/isa.def"
    NULL};
#undef ISA
#define ISA(name, table, needs) needs,
static const int needs_of[] = {
#include "array/cpu/isa.def"
};
#undef ISA
#undef BETTER

const kernels *const *kernels_all(void)
{
    int has = features();
    size_t first = 0;
    while (needs_of[first] & ~has) first++;
    return tables + first;
}

const kernels *kernels_find(const char *isa)
{
    for (const kernels *const *k = kernels_all(); *k; k++)
        if (!strcmp((*k)->isa, isa)) return *k;
    return NULL;
}

static _Atomic(const kernels *) current;

const kernels *kernels_current(void)
{
    const kernels *k = atomic_load_explicit(&current, memory_order_acquire);
    if (k) return k;
    k = kernels_find(ig_device_isas()[0]);
    atomic_store_explicit(&current, k, memory_order_release);
    return k;
}

const char *ig_device_isa(void) { return kernels_current()->isa; }

const char *const *ig_device_isas(void)
{
    static const char *const all[] = {
#define ISA(name, table, needs) #name,
#define BETTER(name, table, needs)
#include "array/cpu/isa.def"
#undef ISA
#undef BETTER
        NULL};
    size_t first = 0;
    while (!kernels_find(all[first])) first++;
    return all + first;
}

ig_status ig_device_set_isa(const char *isa)
{
    const kernels *k = isa ? kernels_find(isa) : NULL;
    if (!k) {
        char names[128] = "";
        size_t n = 0;
        for (const char *const *p = ig_device_isas(); *p && n < sizeof names; p++)
            n += (size_t)snprintf(names + n, sizeof names - n, " %s", *p);
        return ig_fail(IG_EUNSUPPORTED, "instruction set '%s': this machine runs%s",
                       isa ? isa : "(null)", names);
    }
    atomic_store_explicit(&current, k, memory_order_release);
    return IG_OK;
}
