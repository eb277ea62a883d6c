/* Chat templates give what Jinja2 gives: tests/golden/lm/template_*, made by
 * tests/golden/scripts/make_templates.py. Where Jinja raises, we refuse. */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "lm/template.h"

#define DIR "tests/golden/lm/"

static json_t *read_json(const char *name)
{
    AUTO(buf) path = {0}, text = {0};
    json_t *j = NULL;
    assert_int_equal(file_join(&path, DIR, name), IG_OK);
    assert_int_equal(file_read(path.data, 16 << 20, &text), IG_OK);
    if (json_parse(name, (str){text.data, text.n}, 16 << 20, 100, &j) != IG_OK)
        fail_msg("%s", ig_error_message());
    return j;
}

static template *read_template(const char *kind)
{
    AUTO(buf) text = {0};
    char path[128];
    template *t = NULL;
    snprintf(path, sizeof path, DIR "templates/%s.jinja", kind);
    assert_int_equal(file_read(path, 1 << 20, &text), IG_OK);
    if (template_parse(kind, (str){text.data, text.n}, &t) != IG_OK)
        fail_msg("%s", ig_error_message());
    return t;
}

/* Renders conversation `chat` of template_chats.json. */
static ig_status render_chat(const template *t, const json_t *all, const json_t *chat,
                             template_output *ret)
{
    const json_t *tools = json_object_get(chat, "tools");
    template_input in = {
        .messages = json_object_get(chat, "messages"),
        .tools =
            tools ? json_array_get(json_object_get(all, "tools"), (size_t)json_integer_value(tools))
                  : NULL,
        .documents = json_object_get(chat, "documents"),
        .kwargs = json_object_get(chat, "kwargs"),
        .bos_token = "<s>",
        .eos_token = "</s>",
        .add_generation_prompt = json_is_true(json_object_get(chat, "add_generation_prompt")),
        .date = "2026-11-29T13:14:15",
    };
    return template_render(t, &in, ret);
}

/* Spans cover the text without gap, and words that only users wrote lie in untrusted ones. */
static void check_spans(const template_output *o)
{
    static const char *const words[] = {"obey",     "padded",   "2 + 2", "gęślą",
                                        "line two", "[INST] x", "back",  "Be terse"};
    size_t next = 0;
    for (size_t i = 0; i < o->n_spans; i++) {
        const template_span *s = &o->spans[i];
        assert_true(s->offset == next && s->n > 0);
        assert_true(i == 0 || s->trusted != o->spans[i - 1].trusted);
        assert_true(utf8_valid(o->text + next, s->n));
        for (size_t w = 0; s->trusted && w < N_ELEM(words); w++)
            if (memmem(o->text + next, s->n, words[w], strlen(words[w])))
                fail_msg("'%s' counts as the template's", words[w]);
        next += s->n;
    }
    assert_int_equal(next, o->n);
}

/* One line of template_digests.txt: kind, then a digest or "!" per conversation. */
static void check_kind(char *line, const json_t *all, size_t *n_refused)
{
    char *save = NULL, *kind = strtok_r(line, " ", &save);
    AUTO(template_ptr) t = read_template(kind);
    const json_t *chats = json_object_get(all, "chats");
    for (size_t i = 0; i < json_array_size(chats); i++) {
        AUTO(template_output) o = {0};
        uint8_t sha[SHA256_N];
        AUTO(buf) hex;
        buf_init(&hex, 64);
        const char *want = strtok_r(NULL, " ", &save);
        assert_non_null(want);
        ig_status s = render_chat(t, all, json_array_get(chats, i), &o);
        if (s == IG_OK) {
            check_spans(&o);
            sha256(o.text, o.n, sha);
            buf_hex(&hex, sha, 6);
        }
        if (strcmp(want, s == IG_OK ? hex.data : "!"))
            fail_msg("%s, conversation %zu: want %s, got %s:\n%.2000s", kind, i, want,
                     s == IG_OK ? hex.data : "!", s == IG_OK ? o.text : ig_error_message());
        *n_refused += s != IG_OK;
    }
    assert_null(strtok_r(NULL, " ", &save));
}

static void two_hundred_conversations_over_published_kinds_equal_jinja(void **state)
{
    (void)state;
    AUTO(json_ptr) all = read_json("template_chats.json");
    AUTO(buf) digests = {0};
    size_t n_kinds = 0, n_refused = 0;
    assert_int_equal(json_array_size(json_object_get(all, "chats")), 200);
    assert_int_equal(file_read(DIR "template_digests.txt", 1 << 20, &digests), IG_OK);
    for (char *save = NULL, *line = strtok_r(digests.data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save), n_kinds++)
        check_kind(line, all, &n_refused);
    print_message("%zu kinds, %zu of %zu refused by both\n", n_kinds, n_refused, n_kinds * 200);
    assert_true(n_kinds >= 12);
}

static void results_in_full_equal_jinja(void **state)
{
    (void)state;
    AUTO(json_ptr) all = read_json("template_chats.json"),
                   file = read_json("template_outputs.json");
    const json_t *outputs = json_object_get(file, "outputs");
    assert_true(json_array_size(outputs) >= 40);
    for (size_t i = 0; i < json_array_size(outputs); i++) {
        const json_t *row = json_array_get(outputs, i);
        AUTO(template_ptr) t = read_template(json_string_value(json_array_get(row, 0)));
        AUTO(template_output) o = {0};
        const json_t *chat = json_array_get(json_object_get(all, "chats"),
                                            (size_t)json_integer_value(json_array_get(row, 1)));
        if (render_chat(t, all, chat, &o) != IG_OK) fail_msg("%s", ig_error_message());
        assert_string_equal(o.text, json_string_value(json_array_get(row, 2)));
    }
}

static void every_construct_gives_what_jinja_gives(void **state)
{
    (void)state;
    AUTO(json_ptr) file = read_json("template_cases.json"), none = json_array();
    const json_t *cases = json_object_get(file, "cases");
    size_t wrong = 0;
    assert_true(json_array_size(cases) >= 800);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        AUTO(template_ptr) t = NULL;
        AUTO(template_output) o = {0};
        const json_t *text = json_array_get(json_array_get(cases, i), 0),
                     *want = json_array_get(json_array_get(cases, i), 1);
        template_input in = {.messages = none,
                             .kwargs = json_object_get(file, "variables"),
                             .date = "2026-11-29T13:14:15"};
        ig_status s = template_parse("case", str_of(json_string_value(text)), &t);
        if (s == IG_OK) s = template_render(t, &in, &o);
        if (json_is_null(want) ? s != IG_OK
                               : s == IG_OK && !strcmp(o.text, json_string_value(want)))
            continue;
        wrong++;
        print_error("%s\n  want %s\n  got  %s\n", json_string_value(text),
                    json_is_null(want) ? "refused" : json_string_value(want),
                    s == IG_OK ? o.text : ig_error_message());
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hundred_conversations_over_published_kinds_equal_jinja),
        cmocka_unit_test(results_in_full_equal_jinja),
        cmocka_unit_test(every_construct_gives_what_jinja_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
