/* Error records: who wins, what is handed up, what a cut leaves. */
#include "support/test.h"
#include <pthread.h>
#include "base/status.h"

TEST(outside_any_scope_the_last_failure_is_kept)
{
    (void)ig_fail(IG_EIO, "first");
    assert_int_equal(ig_fail(IG_ESHAPE, "second %d", 2), IG_ESHAPE);
    assert_int_equal(ig_error_code(), IG_ESHAPE);
    assert_string_equal(ig_error_message(), "second 2");
    ig_error_clear();
    assert_int_equal(ig_error_code(), IG_OK);
    assert_string_equal(ig_error_message(), "");
}

TEST(in_a_scope_the_first_failure_is_kept)
{
    status_record r;
    status_push(&r);
    assert_int_equal(ig_fail(IG_EIO, "first"), IG_EIO);
    assert_int_equal(ig_fail(IG_ESHAPE, "second"), IG_ESHAPE);
    assert_string_equal(ig_error_message(), "first");
    assert_int_equal(status_pop(&r), IG_EIO);
    ig_error_clear();
}

TEST(opening_a_scope_starts_with_an_empty_record)
{
    status_record r;
    (void)ig_fail(IG_EIO, "before");
    status_push(&r);
    assert_int_equal(ig_error_code(), IG_OK);
    assert_int_equal(status_pop(&r), IG_OK);
    assert_string_equal(ig_error_message(), "before");
    ig_error_clear();
}

TEST(a_failed_scope_hands_its_record_up)
{
    status_record outer, inner;
    status_push(&outer);
    status_push(&inner);
    (void)ig_fail(IG_EDTYPE, "inner");
    (void)status_pop(&inner);
    assert_int_equal(ig_error_code(), IG_EDTYPE);
    assert_string_equal(ig_error_message(), "inner");
    (void)status_pop(&outer);
    assert_string_equal(ig_error_message(), "inner");
    ig_error_clear();
}

TEST(what_was_handed_up_gives_way_to_a_failure_of_the_scope_itself)
{
    status_record outer, inner;
    status_push(&outer);
    status_push(&inner);
    (void)ig_fail(IG_EDTYPE, "inner, a fallback follows");
    (void)status_pop(&inner);
    (void)ig_fail(IG_EIO, "the fallback failed");
    assert_string_equal(ig_error_message(), "the fallback failed");
    (void)ig_fail(IG_EINVAL, "later");
    assert_string_equal(ig_error_message(), "the fallback failed");
    (void)status_pop(&outer);
    ig_error_clear();
}

TEST(a_failure_of_the_scope_itself_is_not_replaced_from_below)
{
    status_record outer, inner;
    status_push(&outer);
    (void)ig_fail(IG_EIO, "outer");
    status_push(&inner);
    (void)ig_fail(IG_EDTYPE, "inner");
    (void)status_pop(&inner);
    assert_string_equal(ig_error_message(), "outer");
    (void)status_pop(&outer);
    ig_error_clear();
}

TEST(context_comes_before_the_message)
{
    (void)ig_fail(IG_EFORMAT, "bad header");
    assert_int_equal(ig_fail_context(IG_EFORMAT, "%s: ", "a.gguf"), IG_EFORMAT);
    assert_string_equal(ig_error_message(), "a.gguf: bad header");
    ig_error_clear();
}

TEST(a_message_may_quote_the_current_one)
{
    (void)ig_fail(IG_EIO, "disk");
    (void)ig_fail(IG_EIO, "log: %s", ig_error_message());
    assert_string_equal(ig_error_message(), "log: disk");
    ig_error_clear();
}

TEST(a_message_is_cut_between_characters)
{
    char text[3 * 600 + 1];
    for (int i = 0; i < 600; i++) memcpy(text + 3 * i, "\xE2\x82\xAC", 4); /* euro signs */
    (void)ig_fail(IG_EIO, "%s", text);
    assert_int_equal(strlen(ig_error_message()), 1023); /* 341 of them */
    (void)ig_fail_context(IG_EIO, "x");
    assert_int_equal(strlen(ig_error_message()), 1 + 3 * 340);
    ig_error_clear();
}

static void *fail_elsewhere(void *p)
{
    (void)ig_fail(IG_EDEVICE, "elsewhere");
    return p;
}

TEST(threads_do_not_see_each_other)
{
    pthread_t t;
    ig_error_clear();
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, NULL), 0);
    pthread_join(t, NULL);
    assert_int_equal(ig_error_code(), IG_OK);
}

TEST(every_status_has_its_name)
{
    assert_string_equal(ig_status_name(IG_OK), "IG_OK");
    assert_string_equal(ig_status_name(IG_EUNSUPPORTED), "IG_EUNSUPPORTED");
    assert_string_equal(ig_status_name((ig_status)99), "IG_UNKNOWN");
    assert_string_equal(ig_status_name((ig_status)-1), "IG_UNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(outside_any_scope_the_last_failure_is_kept),
        CASE(in_a_scope_the_first_failure_is_kept),
        CASE(opening_a_scope_starts_with_an_empty_record),
        CASE(a_failed_scope_hands_its_record_up),
        CASE(what_was_handed_up_gives_way_to_a_failure_of_the_scope_itself),
        CASE(a_failure_of_the_scope_itself_is_not_replaced_from_below),
        CASE(context_comes_before_the_message),
        CASE(a_message_may_quote_the_current_one),
        CASE(a_message_is_cut_between_characters),
        CASE(threads_do_not_see_each_other),
        CASE(every_status_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
