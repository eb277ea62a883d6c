/* map.h: hash map from byte strings to int64, insertion-ordered iteration. Keys are copied. The
 * hash is seeded per map against hostile keys. */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include "base/str.h"

typedef struct map map;
IG_MUST_USE ig_status map_new(size_t max_entries, map **ret_map);
void map_free(map *m);
AUTO_FN(map_ptr, map *, map_free)
/* Inserts or overwrites; *ret_existed (may be NULL) says whether the key was there. IG_ELIMIT
 * beyond max_entries. */
IG_MUST_USE ig_status map_put(map *m, str key, int64_t value, bool *ret_existed);
bool map_get(const map *m, str key, int64_t *ret_value); /* false, *ret_value untouched: absent */
size_t map_n(const map *m);
/* The i-th inserted, i < map_n. The key is borrowed, valid until map_free. */
void map_at(const map *m, size_t i, str *ret_key, int64_t *ret_value);
#endif
