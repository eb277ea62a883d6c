/* verify.h: the whole check of a log directory, everything that only needs the public key. */
#ifndef AUDIT_VERIFY_H
#define AUDIT_VERIFY_H
#include "audit/key.h"
#include "ingot/audit.h"

IG_MUST_USE ig_status verify_log(const char *dir, const log_vkey *vkey,
                                 const ig_audit_log_options *o, ig_audit_log_report *ret_report);
#endif
