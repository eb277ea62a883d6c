/* convert.c: n elements between f32 and the 16-bit floats; nearest even, NaN kept quiet. y does not
 * overlap x; any alignment. Cost: one pass. */
#include "array/cpu/vec/vec_kernels.h"

#define CONVERT(name, out, in, load, loadn, store, storen)          \
    void K(name)(out * y, const in *x, size_t n)                    \
    {                                                               \
        size_t i = 0;                                               \
        for (; i + VF_N <= n; i += VF_N) store(y + i, load(x + i)); \
        if (i < n) storen(y + i, n - i, loadn(x + i, n - i));       \
    }

CONVERT(f16_to_f32, float, uint16_t, vf_load_f16, vf_loadn_f16, vf_store, vf_storen)
CONVERT(bf16_to_f32, float, uint16_t, vf_load_bf16, vf_loadn_bf16, vf_store, vf_storen)
CONVERT(f32_to_f16, uint16_t, float, vf_load, vf_loadn, vf_store_f16, vf_storen_f16)
CONVERT(f32_to_bf16, uint16_t, float, vf_load, vf_loadn, vf_store_bf16, vf_storen_bf16)
