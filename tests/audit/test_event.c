/* Events: one encoding, every field checked, nothing else accepted; docs/events.md. */
#include "support/test.h"
#include "support/auditlog.h"
#include "support/walk.h"
#include "base/file.h"
#include "base/json.h"

static void encode(const event *e, buf *out)
{
    buf_init(out, EVENT_MAX_LEAF);
    assert_ok(event_encode(e, out));
}

static void make_admit(event *e)
{
    audit_ref load = {.index = 1};
    auditlog_admit(e, "req-1", &load);
    auditlog_common(e);
}

TEST(an_event_survives_encoding_and_parsing)
{
    event e;
    AUTO(buf) leaf = {0}, again = {0};
    AUTO(event_parsed) p = {.store = NULL};
    str ids[] = {str_of("user"), str_of("logit_bias")};
    make_admit(&e);
    event_ids(&e, ids, 2);
    encode(&e, &leaf);
    assert_ok(event_parse("leaf", (str){leaf.data, leaf.n}, &p));
    assert_int_equal(p.e.type, EVENT_ADMIT);
    assert_int_equal(event_get_int(&p.e, EV_ADMIT_P_MAX_TOKENS), 256);
    assert_true(event_is(&p.e, EV_ADMIT_REQ, "req-1"));
    encode(&p.e, &again);
    assert_string_equal(again.data, leaf.data);
    assert_non_null(strstr(leaf.data, ",\"ignored\":[\"user\",\"logit_bias\"]}"));
}

TEST(fields_stand_in_the_order_of_the_table_and_objects_close)
{
    event e;
    AUTO(buf) leaf = {0};
    auditlog_denied(&e);
    auditlog_common(&e);
    event_str(&e, EV_DENIED_AUTH_KID, "k1");
    encode(&e, &leaf);
    assert_string_equal(
        leaf.data,
        "{\"v\":1,\"type\":\"denied\",\"t\":\"2026-01-02T03:04:05.678901Z\",\"mono\":123456,"
        "\"boot\":\"3132333435363738\",\"srv\":\"test\",\"api\":\"chat\",\"auth\":{\"kid\":"
        "\"k1\"},\"reason\":\"overload\",\"http\":503,\"n\":1}");
}

TEST(a_missing_field_is_named)
{
    event e;
    AUTO(buf) out = {0};
    buf_init(&out, EVENT_MAX_LEAF);
    make_admit(&e);
    e.v[EV_ADMIT_P_TOP_K].set = false;
    assert_fails(event_encode(&e, &out), IG_EINVAL, "params.top_k is missing");
    assert_int_equal(out.n, 0);
}

TEST(text_of_a_user_fits_no_field)
{
    static const char *const texts[] = {"hello world", "a\"b", "a\\b", "caf\xC3\xA9", "", "a\nb"};
    for (size_t i = 0; i < N_ELEM(texts); i++) {
        event e;
        AUTO(buf) out = {0};
        buf_init(&out, EVENT_MAX_LEAF);
        make_admit(&e);
        event_str(&e, EV_ADMIT_REQ, texts[i]);
        assert_fails(event_encode(&e, &out), IG_EINVAL, "req is out of its range");
    }
}

TEST(values_out_of_range_are_named)
{
    event e;
    AUTO(buf) out = {0};
    buf_init(&out, EVENT_MAX_LEAF);
    make_admit(&e);
    event_int(&e, EV_ADMIT_P_N, 9);
    assert_fails(event_encode(&e, &out), IG_EINVAL, "params.n is out of its range");
    make_admit(&e);
    event_str(&e, EV_ADMIT_API, "cha");
    assert_fails(event_encode(&e, &out), IG_EINVAL, "api is out of its range");
    make_admit(&e);
    event_str(&e, EV_ADMIT_P_TOP_P, "0x1");
    assert_fails(event_encode(&e, &out), IG_EINVAL, "params.top_p is out of its range");
    make_admit(&e);
    event_str(&e, EV_ADMIT_SEED_FROM, "log");
    assert_fails(event_encode(&e, &out), IG_EINVAL, "without seed.root");
    event_int(&e, EV_ADMIT_SEED_SIZE, 1);
    event_hex(&e, EV_ADMIT_SEED_ROOT, "0123456789abcdef0123456789abcdef");
    assert_fails(event_encode(&e, &out), IG_EINVAL, "does not follow from seed.root and req");
    make_admit(&e);
    event_str(&e, EV_ANY_T, "2026-01-02 03:04:05.678901Z");
    assert_fails(event_encode(&e, &out), IG_EINVAL, "t is out of its range");
}

TEST(a_setter_of_another_event_or_kind_is_remembered)
{
    event e;
    AUTO(buf) out = {0};
    buf_init(&out, EVENT_MAX_LEAF);
    make_admit(&e);
    event_int(&e, EV_DONE_SENT, 1);
    assert_fails(event_encode(&e, &out), IG_EINVAL, "sent was set");
    make_admit(&e);
    event_int(&e, EV_ADMIT_REQ, 1);
    assert_fails(event_encode(&e, &out), IG_EINVAL, "req was set");
}

TEST(a_done_that_is_ok_commits_to_its_answer)
{
    event e;
    AUTO(buf) out = {0};
    buf_init(&out, EVENT_MAX_LEAF);
    auditlog_done_full(&e);
    auditlog_common(&e);
    event_str(&e, EV_DONE_REQ, "r");
    event_int(&e, EV_DONE_ADMIT_I, 1);
    event_hex(&e, EV_DONE_ADMIT_H, "01234567890123456789012345678901");
    assert_ok(event_encode(&e, &out));
    e.v[EV_DONE_TOUT].set = false;
    buf_clear(&out);
    assert_fails(event_encode(&e, &out), IG_EINVAL, "status ok without");
}

TEST(the_longest_done_fits_its_reservation)
{
    event e;
    AUTO(buf) out = {0};
    event_commit items[EVENT_MAX_CHOICES];
    memset(items, 0xEE, sizeof items);
    for (size_t i = 0; i < EVENT_MAX_CHOICES; i++) items[i].n = (int64_t)1 << 53;
    auditlog_done_full(&e);
    auditlog_common(&e);
    event_int(&e, EV_DONE_ADMIT_I, (int64_t)1 << 53);
    event_hex(&e, EV_DONE_ADMIT_H, items[0].commit);
    event_str(&e, EV_DONE_REQ, "0123456789012345678901234567890123456789012345678901234567890123");
    event_str(&e, EV_DONE_ERR, "0123456789012345678901234567890123456789012345678901234567890123");
    event_commits(&e, EV_DONE_OUT, items, EVENT_MAX_CHOICES);
    event_commits(&e, EV_DONE_TOUT, items, EVENT_MAX_CHOICES);
    for (event_field f = EV_DONE_US_QUEUE; f <= EV_DONE_US_TOTAL; f++)
        event_int(&e, f, (int64_t)1 << 53);
    buf_init(&out, EVENT_MAX_LEAF);
    assert_ok(event_encode(&e, &out));
    assert_in_range(out.n, 2000, EVENT_MAX_DONE);
}

TEST(numbers_are_written_shortest_and_exact)
{
    event e;
    char storage[32];
    event_init(&e, EVENT_ADMIT);
    event_dec(&e, EV_ADMIT_P_TEMPERATURE, 0.7, storage);
    assert_true(event_is(&e, EV_ADMIT_P_TEMPERATURE, "0.7"));
    event_dec(&e, EV_ADMIT_P_TEMPERATURE, 1.0 / 3.0, storage);
    double back;
    assert_true(str_double(event_get_str(&e, EV_ADMIT_P_TEMPERATURE), &back));
    assert_true(back == 1.0 / 3.0);
}

/* Each edit turns the one encoding into another spelling of the same or a wrong event. */
TEST(only_the_one_encoding_is_accepted)
{
    static const struct {
        const char *from, *to, *message;
    } edits[] = {
        {"{\"v\":1", "{ \"v\":1", "one encoding"},
        {"\"v\":1,\"type\":\"denied\"", "\"type\":\"denied\",\"v\":1", "one encoding"},
        {"\"n\":1}", "\"n\":1,\"x\":2}", "one encoding"},
        {"\"n\":1}", "\"n\":1.0}", "n has the wrong type"},
        {"\"n\":1}", "\"n\":\"1\"}", "n has the wrong type"},
        {"\"n\":1}", "\"n\":0}", "n is out of its range"},
        {"\"n\":1}", "\"n\":1,\"n\":1}", "leaf"},
        {"\"chat\"", "\"ch\\u0061t\"", "one encoding"},
        {"\"boot\":\"31", "\"boot\":\"3G", "boot has the wrong type"},
        {"\"boot\":\"3132", "\"boot\":\"", "boot has the wrong type"},
        {"\"type\":\"denied\"", "\"type\":\"mark\"", "newer Ingot"},
        {"\"type\":\"denied\"", "\"type\":\"x\"", "no known type"},
        {"\"type\":\"denied\"", "\"type\":\"stop\"", "reason is out of its range"},
        {"\"http\":503,", "", "http is missing"},
        {"}", "", "leaf"},
    };
    event e;
    AUTO(buf) leaf = {0};
    auditlog_denied(&e);
    auditlog_common(&e);
    encode(&e, &leaf);
    for (size_t i = 0; i < N_ELEM(edits); i++) {
        AUTO(event_parsed) p = {.store = NULL};
        AUTO(buf) edited = {0};
        const char *at = strstr(leaf.data, edits[i].from);
        assert_non_null(at);
        buf_init(&edited, EVENT_MAX_LEAF);
        buf_add(&edited, leaf.data, (size_t)(at - leaf.data));
        buf_str(&edited, edits[i].to);
        buf_str(&edited, at + strlen(edits[i].from));
        ig_error_clear();
        ig_status st = event_parse("leaf", (str){edited.data, edited.n}, &p);
        if (st == IG_OK) fail_msg("accepted: %s", edited.data);
        if (!strstr(ig_error_message(), edits[i].message))
            fail_msg("%s: %s", edited.data, ig_error_message());
    }
}

TEST(peeking_finds_type_and_admit)
{
    event e;
    AUTO(buf) leaf = {0};
    event_type type;
    uint64_t admit = 0;
    auditlog_done(&e);
    auditlog_common(&e);
    event_str(&e, EV_DONE_REQ, "r");
    event_int(&e, EV_DONE_ADMIT_I, 123456789);
    event_hex(&e, EV_DONE_ADMIT_H, "01234567890123456789012345678901");
    encode(&e, &leaf);
    assert_true(event_peek((str){leaf.data, leaf.n}, &type, &admit));
    assert_int_equal(type, EVENT_DONE);
    assert_int_equal(admit, 123456789);
    assert_false(event_peek(str_of("{\"v\":1,\"type\":\"mark\"}"), &type, &admit));
    assert_false(event_peek(str_of("{}"), &type, &admit));
}

static ig_status round_trip(void *user)
{
    AUTO(buf) out = {0};
    AUTO(event_parsed) p = {.store = NULL};
    buf_init(&out, EVENT_MAX_LEAF);
    TRY(event_encode(user, &out));
    return event_parse("leaf", (str){out.data, out.n}, &p);
}

TEST(every_failing_allocation_is_reported)
{
    event e;
    make_admit(&e);
    json_set_alloc_funcs(mem_alloc, mem_free);
    assert_in_range(walk_memory(round_trip, &e), 3, 1000);
}

TEST(the_documentation_is_that_of_the_table)
{
    AUTO(buf) want = {0}, have = {0};
    buf_init(&want, 1 << 20);
    event_docs(&want);
    assert_ok(buf_status(&want));
    if (getenv("INGOT_WRITE_DOCS"))
        assert_ok(file_write_atomic("docs/events.md", want.data, want.n, 0644));
    assert_ok(file_read("docs/events.md", 1 << 20, &have));
    assert_string_equal(have.data, want.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_event_survives_encoding_and_parsing),
        CASE(fields_stand_in_the_order_of_the_table_and_objects_close),
        CASE(a_missing_field_is_named),
        CASE(text_of_a_user_fits_no_field),
        CASE(values_out_of_range_are_named),
        CASE(a_setter_of_another_event_or_kind_is_remembered),
        CASE(a_done_that_is_ok_commits_to_its_answer),
        CASE(the_longest_done_fits_its_reservation),
        CASE(numbers_are_written_shortest_and_exact),
        CASE(only_the_one_encoding_is_accepted),
        CASE(peeking_finds_type_and_admit),
        CASE(every_failing_allocation_is_reported),
        CASE(the_documentation_is_that_of_the_table),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
