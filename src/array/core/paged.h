/* paged.h: how keys and values lie in a paged pool: a fact of rules and kernels alike. */
#ifndef ARRAY_PAGED_H
#define ARRAY_PAGED_H
#include "ingot/array.h"

#define KV_PAGE 64   /* positions in a page */
#define KV_SPLIT 256 /* positions in a split */
/* A page of a pool: K then V; each n_kv heads x 64 positions x head_dim of kv_type; for int8 the
 * codes of K and V, then the scales f32 [2][n_kv][64]. Bytes of one page: */
static inline int64_t kv_page_bytes(int64_t n_kv, int64_t head_dim, ig_dtype kv_type)
{
    int64_t el = kv_type == IG_I8 ? 1 : kv_type == IG_F32 ? 4 : 2;
    return 2 * n_kv * KV_PAGE * (head_dim * el + (kv_type == IG_I8 ? 4 : 0));
}
#endif
