/* Any bytes as a model signature; and, when the first byte is '!', the rest as the statement of a
 * bundle that is well signed, so that what lies behind the signature is reached too. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "audit/sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static publisher_key *key; /* made once */
static char *path = "key";

static void parse(str text)
{
    AUTO(oms) s = {.n_ignored = 0};
    trust t = {&key, &path, 1};
    ig_error_clear();
    if (oms_parse("fuzz", text, &t, &s) != IG_OK) {
        if (s.files.n || ig_error_message()[0] == 0) abort();
        return;
    }
    for (size_t i = 0; i < s.files.n; i++) {
        str name = str_of(s.files.files[i].name);
        if (manifest_bad_name(name) || oms_find(&s, name) != &s.files.files[i]) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!key && publisher_key_generate(&key) != IG_OK) abort();
    str text = {(const char *)data, size};
    if (size == 0 || data[0] != '!') {
        parse(text);
        return 0;
    }
    AUTO(buf) pae = {0}, out = {0};
    uint8_t der[80];
    size_t n;
    buf_init(&pae, 1 << 20);
    buf_init(&out, 1 << 20);
    buf_printf(&pae, "DSSEv1 28 application/vnd.in-toto+json %zu ", size - 1);
    buf_add(&pae, data + 1, size - 1);
    if (publisher_key_sign(key, pae.data, pae.n, der, &n) != IG_OK) abort();
    buf_printf(
        &out,
        "{\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\",\"verificationMaterial\":"
        "{\"publicKey\":{\"hint\":\"%s\"}},\"dsseEnvelope\":{\"payload\":\"",
        publisher_key_fingerprint(key));
    buf_base64(&out, data + 1, size - 1);
    buf_str(&out,
            "\",\"payloadType\":\"application/vnd.in-toto+json\",\"signatures\":[{\"sig\":\"");
    buf_base64(&out, der, n);
    buf_str(&out, "\"}]}}");
    parse((str){out.data, out.n});
    return 0;
}
