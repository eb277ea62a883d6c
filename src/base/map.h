/* map.h: hash map from byte strings to int64, insertion-ordered iteration. Keys are copied. Hash is
 * seeded per process against hostile keys. */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include "base/str.h"

typedef struct map map;
IG_MUST_USE ig_status map_new(size_t max_entries, map **ret_map);
void map_free(map *m);
AUTO_FN(map_ptr, map *, map_free)
/* Inserts or overwrites; *ret_old (may be NULL) says whether the key existed. */
IG_MUST_USE ig_status map_put(map *m, str key, int64_t value, bool *ret_existed);
bool map_get(const map *m, str key, int64_t *ret_value);
size_t map_n(const map *m);
void map_at(const map *m, size_t i, str *ret_key, int64_t *ret_value); /* i-th inserted */
#endif
