/* device.h: the devices, their instruction sets and threads. CPU only for now. */
#ifndef INGOT_DEVICE_H
#define INGOT_DEVICE_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif
/* Instruction set in use: "ref", "avx2", "avx512", "neon". */
IG_API const char *ig_device_isa(void);
/* Best to worst names that this machine can run, NULL-terminated. */
IG_API const char *const *ig_device_isas(void);
/* Chooses the kernel table for everything evaluated or compiled from now on; plans keep theirs.
 * IG_EUNSUPPORTED if the machine cannot. */
IG_API IG_MUST_USE ig_status ig_device_set_isa(const char *isa);
IG_API int ig_device_threads(void);
/* 1..256 workers (the caller of an evaluation is one of them). Parks the pool first. */
IG_API IG_MUST_USE ig_status ig_device_set_threads(int n);
/* Name and version of the numeric contract (docs/numerics.md): "i8c16-1". */
IG_API const char *ig_kset(void);
#ifdef __cplusplus
}
#endif
#endif
