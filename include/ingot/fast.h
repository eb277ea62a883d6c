/* fast.h: facts about the fused operations of ops.h (rms_norm, layer_norm, rope, sdpa,
 * paged_write, paged_attention).
 *
 * A paged pool is u8 [pages, ig_page_bytes]. A page holds 64 positions: K, then V; each n_kv heads
 * x 64 positions x head_dim of the KV type; for int8 the codes of K and V are followed by the
 * scales f32 [2][n_kv][64]. */
#ifndef INGOT_FAST_H
#define INGOT_FAST_H
#include "ingot/array.h"
#ifdef __cplusplus
extern "C" {
#endif
#define IG_PAGE_POSITIONS 64

/* Bytes of one page; 0 when kv_type is not IG_F32, IG_F16, IG_BF16 or IG_I8. */
static inline int64_t ig_page_bytes(int64_t n_kv, int64_t head_dim, ig_dtype kv_type)
{
    int64_t element = kv_type == IG_F32                         ? 4
                      : kv_type == IG_F16 || kv_type == IG_BF16 ? 2
                      : kv_type == IG_I8                        ? 1
                                                                : 0;
    int64_t scale = kv_type == IG_I8 ? 4 : 0;
    return 2 * n_kv * IG_PAGE_POSITIONS * (head_dim * element + scale);
}
#ifdef __cplusplus
}
#endif
#endif
