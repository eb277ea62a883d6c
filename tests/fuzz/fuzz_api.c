/* Any bytes as the body of a request: parsed, or refused with a complete error object. */
#include <stdint.h>
#include <stdlib.h>
#include "server/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = API_CHAT; kind <= API_COMPLETIONS; kind++) {
        api_request r;
        api_error e;
        if (api_parse((api_kind)kind, (str){(const char *)data, size}, 1000, &r, &e)) {
            if (r.n < 1 || r.n > API_MAX_CHOICES || r.sampling.n_bias > IG_LM_MAX_BIAS) abort();
            api_request_done(&r);
        } else if (e.http != 400 || !e.code || !e.type || !*e.message) {
            abort();
        }
    }
    return 0;
}
