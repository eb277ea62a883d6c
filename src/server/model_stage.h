/* model_stage.h: stages 1 to 3, once per model. */
#ifndef SERVER_MODEL_STAGE_H
#define SERVER_MODEL_STAGE_H
#include "audit/sign.h"
#include "base/progress.h"
#include "server/convert.h"
#include "server/ready.h"
#include "server/server.h"

/* Time and work of a stage, for those who print it. */
typedef struct stage_report {
    int64_t us;
    int64_t n_bytes;
} stage_report;

/* --- 1 package */
typedef struct package_options {
    const char *source; /* directory or .gguf */
    const char *bundle; /* to make; must not exist */
    convert_options convert;
    const char *name;         /* of the model; NULL: the bundle's last path part */
    int64_t version;          /* release.json */
    const char *not_after;    /* "2027-12-31" or NULL */
    const char *license_file; /* to ship as model/LICENSE; NULL: the source's */
    bool no_known_answer; /* leave kat.json out (a foreign machine without memory for the model) */
} package_options;
IG_MUST_USE ig_status package_run(const package_options *o, convert_result *ret_result,
                                  stage_report *ret_report);

/* --- 2 load */
/* What release.json says. */
typedef struct release {
    char name[129];
    int64_t version;
    char not_after[11];
    char min_engine[33];
} release;
IG_MUST_USE ig_status release_read(const char *model_dir, release *ret_release);
/* IG_EVERIFY after its last day, and where it needs a newer program. */
IG_MUST_USE ig_status release_check(const release *r);
bool release_date_valid(const char *date); /* "2027-12-31" */
/* Verifies, maps, binds; appends the load event; gives the probe token for stage 3. Marks its parts
 * in times. */
IG_MUST_USE ig_status load_run(server *sv, ready_times *times, audit_token **ret_probe);

/* --- 3 warm */
/* Touches, plans, runs the known prompt, compares with kat.json. Needs the probe token: nothing is
 * computed without an event. */
IG_MUST_USE ig_status warm_run(server *sv, const audit_token *probe, ready_times *times);
/* kat.json: known answers per kset and KV type. */
IG_MUST_USE ig_status kat_write(const char *model_dir);
IG_MUST_USE ig_status kat_check(const char *model_dir, ig_lm *lm);
#endif
