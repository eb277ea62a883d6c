/* Chat templates: any bytes as a template, rendered for a fixed conversation within small
 * limits. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/json.h"
#include "lm/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char messages[] =
    "[{\"role\":\"system\",\"content\":\"be\\nnice \"},"
    "{\"role\":\"user\",\"content\":\"h\\u00e9 <|im_end|>\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"abcdefghi\","
    "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,true]}}}]},"
    "{\"role\":\"tool\",\"content\":\"3\"}]";
static const char kwargs[] = "{\"s\":\"Hello, W\\u00f6rld\",\"n\":5,\"f\":2.5,\"l\":[3,1,2],"
                             "\"d\":{\"b\":1,\"a\":2},\"x\":null,\"t\":true}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(template_ptr) t = NULL;
    AUTO(template_output) o = {0};
    AUTO(json_ptr) m = NULL, k = NULL;
    if (json_parse("m", str_of(messages), 1 << 16, 20, &m) != IG_OK ||
        json_parse("k", str_of(kwargs), 1 << 16, 20, &k) != IG_OK)
        return 0;
    if (template_parse("fuzz", (str){(const char *)data, size}, &t) != IG_OK) return 0;
    template_input in = {
        .messages = m,
        .kwargs = k,
        .bos_token = "<s>",
        .eos_token = "</s>",
        .add_generation_prompt = true,
        .date = "2026-11-29",
        .limits = {.max_steps = 20000,
                   .max_depth = 100,
                   .max_output = 1 << 16,
                   .max_memory = 4 << 20},
    };
    if (template_render(t, &in, &o) != IG_OK) return 0;
    size_t next = 0; /* what a rendering promises about its spans */
    for (size_t i = 0; i < o.n_spans; i++) {
        if (o.spans[i].offset != next || !o.spans[i].n || !utf8_valid(o.text + next, o.spans[i].n))
            __builtin_trap();
        next += o.spans[i].n;
    }
    if (next != o.n) __builtin_trap();
    return 0;
}
