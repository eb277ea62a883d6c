/* machine.h: what this machine can do now, for fractions of a limit. Each takes about a second. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H
#include "ingot/status.h"

/* Best of five passes of plain loads over 512 MiB (huge pages where there are any). */
IG_MUST_USE ig_status machine_read(int n_threads, double *ret_gb_s);
/* SHA-256 by all threads at once. */
IG_MUST_USE ig_status machine_hash(int n_threads, double *ret_gb_s);
/* The int8 kernel with 4-bit weights that stay in the caches; uses the device's threads. */
IG_MUST_USE ig_status machine_int8(double *ret_gop_s);
/* Median of a 512-byte append and fdatasync in dir. */
IG_MUST_USE ig_status machine_sync(const char *dir, double *ret_us);
#endif
