/* A log's verifier key on the first line, then any bytes as a signed checkpoint. What opens also
 * parses, equally. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "audit/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    log_vkey v;
    checkpoint parsed, opened;
    ig_error_clear();
    if (!end || log_vkey_parse("key", (str){(const char *)data, (size_t)(end - data)}, &v) != IG_OK)
        return 0;
    str note = {(const char *)end + 1, size - (size_t)(end - data) - 1};
    ig_status p = checkpoint_parse("fuzz", note, &v, &parsed);
    ig_status o = checkpoint_open("fuzz", note, &v, &opened);
    if (o == IG_OK && p != IG_OK) abort();
    if (o == IG_OK && (opened.size != parsed.size || !tree_hash_eq(&opened.root, &parsed.root)))
        abort();
    if (p != IG_OK && ig_error_message()[0] == 0) abort();
    return 0;
}
