/* Any bytes as a leaf of the audit log: refused, or the one encoding of an event. */
#include <stdint.h>
#include <stdlib.h>
#include "audit/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(event_parsed) p = {.store = NULL};
    AUTO(buf) again = {0};
    str leaf = {(const char *)data, size};
    event_type type;
    uint64_t admit;
    ig_error_clear();
    bool peeked = event_peek(leaf, &type, &admit);
    if (event_parse("fuzz", leaf, &p) != IG_OK) {
        if (p.store || ig_error_message()[0] == 0) abort();
        return 0;
    }
    buf_init(&again, EVENT_MAX_LEAF);
    if (event_encode(&p.e, &again) != IG_OK || !str_eq(leaf, (str){again.data, again.n})) abort();
    if (!peeked || type != p.e.type) abort();
    if (type == EVENT_DONE && admit != (uint64_t)event_get_int(&p.e, EV_DONE_ADMIT_I)) abort();
    return 0;
}
