/* What a request body means, where a field's name does not say it. */
#include "support/test.h"
#include <float.h>
#include "server/api.h"

static api_request parse(const char *body)
{
    api_request r;
    api_error e;
    if (!api_parse(API_CHAT, str_of(body), 1000, &r, &e)) fail_msg("%s", e.message);
    return r;
}

TEST(a_top_p_of_zero_keeps_only_the_first_candidate)
{
    static const char *const bodies[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_p\":null}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_p\":0}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"top_p\":0.5}",
    };
    static const float wanted[] = {0, 0, FLT_MIN, 0.5F};
    for (size_t i = 0; i < N_ELEM(bodies); i++) {
        api_request r = parse(bodies[i]);
        assert_true(r.sampling.top_p == wanted[i]);
        api_request_done(&r);
    }
}

TEST(a_message_cut_in_mid_character_is_still_valid_json)
{
    AUTO(buf) body;
    api_error e;
    char name[200];
    buf_init(&body, 4096);
    for (size_t i = 0; i + 2 < sizeof name; i += 2) memcpy(name + i, "\xC3\xA9", 3);
    api_error_set(&e, 400, "invalid_request_error", "invalid_value", name, "%.61s", name);
    api_error_body(&e, &body);
    assert_ok(buf_status(&body));
    assert_true(utf8_valid(body.data, body.n));
}

TEST(a_word_with_a_nul_behind_it_is_another_word)
{
    static const char *const bodies[] = {
        "{\"messages\":[{\"role\":\"user\\u0000x\",\"content\":\"x\"}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\\u0000x\",\"text\":\"\"}]}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],"
        "\"response_format\":{\"type\":\"text\\u0000x\"}}",
    };
    static const char *const params[] = {"messages[0]", "messages[0].content", "response_format"};
    for (size_t i = 0; i < N_ELEM(bodies); i++) {
        api_request r;
        api_error e;
        assert_false(api_parse(API_CHAT, str_of(bodies[i]), 1000, &r, &e));
        assert_string_equal(e.param, params[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_top_p_of_zero_keeps_only_the_first_candidate),
        CASE(a_message_cut_in_mid_character_is_still_valid_json),
        CASE(a_word_with_a_nul_behind_it_is_another_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
