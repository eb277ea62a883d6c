/* rope_table.h: cosines and sines of rotary embedding, with the same bits on every machine (no
 * libm). */
#ifndef LM_ROPE_TABLE_H
#define LM_ROPE_TABLE_H
#include "lm/config.h"

/* Beyond this position the reduction of angles would lose bits. */
#define ROPE_TABLE_MAX ((int64_t)1 << 20)

/* table [n, 2, head_dim / 2]: row p holds cos(p f_i) then sin(p f_i), f_i = theta^(-2 i /
 * head_dim) after the config's scaling. */
void rope_table_fill(const lm_config *c, int64_t n, float *table);
#endif
