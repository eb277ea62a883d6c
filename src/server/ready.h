/* ready.h: where the time to ready goes. Each microsecond from begin to the last mark belongs to
 * exactly one part, so that the parts add up to the total. */
#ifndef SERVER_READY_H
#define SERVER_READY_H
#include "base/buf.h"
#include "server/stages.h"

typedef enum ready_part {
#define PART(NAME, ...) READY_##NAME,
#include "server/ready.def"
#undef PART
    N_READY_PARTS
} ready_part;
typedef struct ready_part_info {
    const char *name;
    stage stage;     /* STAGE_NONE: none of them */
    const char *doc; /* what was done */
} ready_part_info;
extern const ready_part_info ready_table[N_READY_PARTS];

typedef struct ready_times {
    int64_t us[N_READY_PARTS];
    int64_t hash_bytes, touch_bytes;
    int64_t mark_us; /* up to here time is given to parts */
} ready_times;

void ready_begin(ready_times *t);
/* What passed since the mark before belongs to part. */
void ready_mark(ready_times *t, ready_part part);
/* us of what part `from` was given belong to part `to`. */
void ready_move(ready_times *t, ready_part from, ready_part to, int64_t us);

int64_t ready_total_us(const ready_times *t);
int64_t ready_stage_us(const ready_times *t, stage s);
/* All but what the model's size decides: hashing, touching, the known answer. */
int64_t ready_rest_us(const ready_times *t);
/* {"settings":412,...}: every part, microseconds. */
void ready_json(const ready_times *t, buf *out);
#endif
