/* scripts.h: the checks that travel with bundles and receipts, for people who do not have Ingot. */
#ifndef AUDIT_SCRIPTS_H
#define AUDIT_SCRIPTS_H
#include "base/buf.h"

/* Writes verify.sh and VERIFY.md into a bundle (the folder that holds model/ and model.sig). */
IG_MUST_USE ig_status scripts_write_bundle(const char *bundle_dir);
/* Writes check.sh, which checks a receipt, to this path. */
IG_MUST_USE ig_status scripts_write_check(const char *path);
#endif
