/* Any bytes as JSON: read or refused, and what is read keeps the limits and comes back from its own
 * text. */
#include <stdint.h>
#include <stdlib.h>
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json_ptr) j = NULL;
    AUTO(json_ptr) again = NULL;
    if (json_parse("fuzz", (str){(const char *)data, size}, 1 << 20, 32, &j) != IG_OK) {
        if (j || ig_error_code() == IG_OK || ig_error_message()[0] == 0) abort();
        return 0;
    }
    char *text = json_dumps(j, JSON_COMPACT);
    if (!text || json_parse("again", str_of(text), 8 << 20, 32, &again) != IG_OK) abort();
    if (!json_equal(j, again)) abort();
    free(text);
    return 0;
}
