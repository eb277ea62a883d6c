/* What the pipeline does when the log does not take an event. */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/tmp.h"
#include "server/pipeline.h"
#include "server/stage.h"

static int n_told;

static void told(void *user, const char *message)
{
    (void)user, (void)message;
    n_told++;
}

TEST(a_refusal_that_finds_no_room_does_not_end_the_log)
{
    static server sv = {.callbacks = {.log_dead = told}};
    char dir[TMP_PATH_N];
    log_key *key;
    api_error e;
    tmp_open(dir);
    assert_ok(log_key_generate("ingot.test/log", &key));
    assert_ok(lock_init(&sv.lock, RANK_SERVER));
    assert_ok(auditlog_open(dir, key, &sv.log));
    api_error_set(&e, 413, "invalid_request_error", "request_too_large", NULL, "too large");
    pipeline_denied(&sv, "chat", NULL, &e); /* before boot the log takes nothing: as good as full */
    assert_string_equal(sv.dead, "");
    assert_false(atomic_load(&sv.log_lost));
    assert_ok(audit_log_alive(sv.log));

    pipeline_log_lost(&sv, "no space left"); /* what really ends it is told once */
    pipeline_log_lost(&sv, "again");
    assert_string_equal(sv.dead, "no space left");
    assert_true(atomic_load(&sv.log_lost));
    assert_int_equal(n_told, 1);
    assert_false(stage_admit_room(&sv, &e));
    assert_int_equal(e.http, 503);
    assert_string_equal(e.code, "audit_log_unavailable");

    audit_log_abandon(sv.log);
    log_key_free(key);
    lock_done(&sv.lock);
    tmp_close(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_refusal_that_finds_no_room_does_not_end_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
