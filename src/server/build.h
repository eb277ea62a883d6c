/* build.h: what program this is: a digest over the executable and every library loaded into it. */
#ifndef SERVER_BUILD_H
#define SERVER_BUILD_H
#include "base/buf.h"
#include "base/digest.h"

/* SHA-256 over lines "HEX-SHA256-OF-FILE  NAME\n" of the executable and its loaded libraries,
 * sorted; NAME without its folder. `list` (may be
 * NULL, initialised) gets the lines. Files that have no path (vdso) are left out. */
IG_MUST_USE ig_status build_digest(uint8_t ret_digest[SHA256_N], buf *list);
/* The processor's own name, printable, without quotes; "unknown" where the system does not say. */
void build_cpu(char *out, size_t cap);
/* The machine id of the system, "" where it has none. */
void build_machine_id(char *out, size_t cap);
#endif
