/* stages.c: the rows of stages.def. */
#include "server/stages.h"

const stage_info stage_table[N_STAGES] = {
#define STAGE(number, NAME, name, limit, takes, gives, refuses, unit) \
    [STAGE_##NAME] = {number, name, LIMIT_##limit, takes, gives, refuses, unit},
#include "server/stages.def"
#undef STAGE
};

const char *stage_limit_name(limit l)
{
    static const char *const names[] = {"none", "storage and verification", "arithmetic",
                                        "memory bandwidth", "memory capacity for the KV cache"};
    return names[l];
}
