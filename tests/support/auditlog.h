/* auditlog.h: audit events and small logs for tests. */
#ifndef SUPPORT_AUDITLOG_H
#define SUPPORT_AUDITLOG_H
#include "audit/log.h"

/* Fixed, well-formed events; the log fills the common fields. */
void auditlog_boot(event *e, const audit_log *l);
void auditlog_load(event *e);
void auditlog_admit(event *e, const char *req, const audit_ref *load);
void auditlog_done(event *e);
void auditlog_denied(event *e);
/* Sets the common fields too, for tests of events alone. */
void auditlog_common(event *e);

/* The bytes behind the commitments of the requests made below. */
#define AUDITLOG_BODY "{\"model\":\"test\",\"messages\":[]}"
#define AUDITLOG_ANSWER "Paris \xE2\x80\x94 it is."
void auditlog_secret(commit_secret *ret_secret); /* the same for every request */
/* A done with all commitments of a finished request. */
void auditlog_done_full(event *e);

/* Opens dir with the key, 64 KiB segments. */
IG_MUST_USE ig_status auditlog_open(const char *dir, const log_key *key, audit_log **ret_log);
/* boot and load. */
IG_MUST_USE ig_status auditlog_start(audit_log *l, audit_ref *ret_load);
/* One request, admitted and done. */
IG_MUST_USE ig_status auditlog_request(audit_log *l, const char *req, const audit_ref *load,
                                       audit_ref *ret_done);
/* Segment files of a closed log. */
size_t auditlog_n_segments(const char *dir);
/* n denied events, in few syncs. */
IG_MUST_USE ig_status auditlog_fill(audit_log *l, size_t n);
#endif
