/* vec_sum.h: the sum order of docs/numerics.md on vec.h: blocks of 4096; in a block 64 partial sums
 * by index mod 64, held as 64 / VF_N vectors; folded 32-16-8-4-2-1; blocks added ascending to a
 * total that starts at +0.
 *
 * Elements that a row does not have are added as +0. That cannot show: it could only turn a partial
 * sum of -0 into +0, and the sign of a zero is lost anyway when the block is added to the total. */
#ifndef CPU_VEC_SUM_H
#define CPU_VEC_SUM_H
#include "array/cpu/kernels.h"
#include "array/cpu/vec.h"

#define SUM_VECS (SUM_LANES / VF_N)
typedef struct sum64 {
    vf v[SUM_VECS];
} sum64;

VEC_FN sum64 sum64_zero(void)
{
    sum64 s;
    EACH (i, SUM_VECS) s.v[i] = vf_set(0);
    return s;
}

/* 32-16-8-4-2-1, down to one vector and down to one number. */
VEC_FN vf sum64_narrow(sum64 s)
{
#pragma GCC unroll 16
    for (int h = SUM_VECS / 2; h > 0; h /= 2)
        EACH (i, h) s.v[i] = vf_add(s.v[i], s.v[i + h]);
    return s.v[0];
}
VEC_FN float sum64_fold(sum64 s) { return vf_fold(sum64_narrow(s)); }

/* What an element adds to its partial sum. */
typedef enum sum_term {
    TERM_X,   /* x */
    TERM_XX,  /* x * x, by fma, as all products */
    TERM_XY,  /* x * y */
    TERM_DEV, /* (x - c) * (x - c) */
    TERM_EXP  /* exp(x - c) */
} sum_term;

VEC_FN vf sum_step(sum_term term, vf p, vf x, vf y, vf c)
{
    switch (term) {
    case TERM_X: return vf_add(p, x);
    case TERM_XX: return vf_fma(x, x, p);
    case TERM_XY: return vf_fma(x, y, p);
    case TERM_DEV: return vf_fma(vf_sub(x, c), vf_sub(x, c), p);
    case TERM_EXP: return vf_add(p, vf_exp(vf_sub(x, c)));
    }
    return p;
}

/* The sum of n terms; y is read by TERM_XY only. */
VEC_FN float sum_row(sum_term term, const float *x, const float *y, float c, size_t n)
{
    float total = 0;
    vf cv = vf_set(c), none = vf_set(0);
    for (size_t block = 0; block < n; block += SUM_BLOCK) {
        size_t end = n - block < SUM_BLOCK ? n : block + SUM_BLOCK, k = block;
        sum64 s = sum64_zero();
        for (; k + SUM_LANES <= end; k += SUM_LANES)
            EACH (i, SUM_VECS) {
                size_t at = k + (size_t)i * VF_N;
                s.v[i] = sum_step(term, s.v[i], vf_load(x + at),
                                  term == TERM_XY ? vf_load(y + at) : none, cv);
            }
        EACH (i, SUM_VECS) { /* the last 63 or fewer */
            size_t at = k + (size_t)i * VF_N;
            if (at >= end) break;
            size_t have = end - at < VF_N ? end - at : VF_N;
            vm here = vm_first(have);
            vf a = have == VF_N ? vf_load(x + at) : vf_loadn(x + at, have);
            vf b = term != TERM_XY ? none : have == VF_N ? vf_load(y + at) : vf_loadn(y + at, have);
            s.v[i] = vf_select(here, sum_step(term, s.v[i], a, b, cv), s.v[i]);
        }
        total += sum64_fold(s);
    }
    return total;
}
#endif
