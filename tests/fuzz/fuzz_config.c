/* config.json and generation_config.json: any bytes. What is accepted holds to the ranges that the
 * rest of the model code relies on. */
#include <stddef.h>
#include <stdint.h>
#include "lm/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(lm_config) c = {0};
    str text = {(const char *)data, size};
    if (config_read("config.json", text, &c) != IG_OK) return 0;
    bool sizes =
        c.vocab > 0 && c.hidden > 0 && c.layers > 0 && c.heads > 0 && c.ffn > 0 && c.context > 0;
    bool heads =
        c.kv_heads > 0 && c.heads % c.kv_heads == 0 && c.head_dim > 0 && c.head_dim % 2 == 0;
    bool stops = c.n_stops <= CONFIG_MAX_STOPS;
    for (size_t i = 0; i < c.n_stops; i++) stops &= c.stop[i] >= 0 && c.stop[i] < c.vocab;
    if (!sizes || !heads || !stops || !c.family) __builtin_trap();
    for (size_t i = 0; i < c.n_overrides; i++) config_quant_of(&c, c.overrides[i].path);
    if (config_read_generation("generation_config.json", text, &c) != IG_OK) return 0;
    return 0;
}
