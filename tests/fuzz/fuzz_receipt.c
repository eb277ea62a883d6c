/* A log's verifier key on the first line, then any bytes as a receipt: refused with a reason, or
 * all of it holds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "audit/receipt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    AUTO(receipt_ptr) r = NULL;
    log_vkey v;
    ig_error_clear();
    if (!end || log_vkey_parse("key", (str){(const char *)data, (size_t)(end - data)}, &v) != IG_OK)
        return 0;
    str text = {(const char *)end + 1, size - (size_t)(end - data) - 1};
    if (receipt_open("fuzz", text, &v, &r) != IG_OK) {
        if (r || ig_error_message()[0] == 0) abort();
        return 0;
    }
    static const char *const names[] = {"in.body", "in.text", "in.ids", "trace",
                                        "out.0",   "out.7",   "tout.0"};
    for (size_t i = 0; i < N_ELEM(names); i++) {
        str opened;
        bool has = receipt_opened(r, names[i], &opened);
        if (has && receipt_check(r, names[i], opened.p, opened.n) != IG_OK) abort();
        if (receipt_check(r, names[i], "no", 2) == IG_OK && !has) abort();
    }
    return 0;
}
