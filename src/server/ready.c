/* ready.c: accounts for the time to ready (contract in ready.h). */
#include "server/ready.h"
#include "base/clock.h"

const ready_part_info ready_table[N_READY_PARTS] = {
#define PART(NAME, name, STAGE, doc) {name, STAGE_##STAGE, doc},
#include "server/ready.def"
#undef PART
};

void ready_begin(ready_times *t) { *t = (ready_times){.mark_us = clock_mono_us()}; }

void ready_mark(ready_times *t, ready_part part)
{
    int64_t now = clock_mono_us();
    t->us[part] += now - t->mark_us;
    t->mark_us = now;
}

void ready_move(ready_times *t, ready_part from, ready_part to, int64_t us)
{
    t->us[from] -= us;
    t->us[to] += us;
}

int64_t ready_total_us(const ready_times *t)
{
    int64_t us = 0;
    for (int i = 0; i < N_READY_PARTS; i++) us += t->us[i];
    return us;
}

int64_t ready_stage_us(const ready_times *t, stage s)
{
    int64_t us = 0;
    for (int i = 0; i < N_READY_PARTS; i++)
        if (ready_table[i].stage == s) us += t->us[i];
    return us;
}

int64_t ready_rest_us(const ready_times *t)
{
    return ready_total_us(t) - t->us[READY_HASH] - t->us[READY_TOUCH] - t->us[READY_PROVE];
}

void ready_json(const ready_times *t, buf *out)
{
    for (int i = 0; i < N_READY_PARTS; i++)
        buf_printf(out, "%s\"%s\":%lld", i ? "," : "{", ready_table[i].name, (long long)t->us[i]);
    buf_str(out, "}");
}
