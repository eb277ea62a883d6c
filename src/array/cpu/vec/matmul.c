/* matmul.c: rows of a dense or quantised matrix times rows of x, exact activations, sum order.
 *
 * One token: a row of weights is one stream, converted at the load. More tokens: four rows of
 * weights are converted to f32 once per block of 4096 columns, in scratch, then multiplied in
 * tiles of 4 rows x up to VF_TILE tokens. A tile keeps one lane-slice of its 64 partial sums per
 * product in registers and walks a chunk of columns with it, slice after slice, so that a chunk
 * of all its rows stays in L1. */
#include "array/cpu/vec/dequant.h"

#define TILE_ROWS 4
#define CHUNK 768

/* A tile's partial sums: [row][token][64]. */
typedef struct tile_sums {
    float p[TILE_ROWS][VF_TILE][SUM_LANES];
} tile_sums;

/* Adds columns [k0, k1), a multiple of 64 apart; first: to +0. */
VEC_FN void tile_chunk(tile_sums *s, const float *const *w, const float *const *x, size_t k0,
                       size_t k1, int nt, bool first)
{
    for (int lane = 0; lane < SUM_LANES; lane += VF_N) {
        vf acc[TILE_ROWS][VF_TILE];
        EACH (r, TILE_ROWS)
            EACH (t, nt) acc[r][t] = first ? vf_set(0) : vf_load(s->p[r][t] + lane);
        for (size_t k = k0 + (size_t)lane; k < k1; k += SUM_LANES) {
            vf xv[VF_TILE];
            EACH (t, nt) xv[t] = vf_load(x[t] + k);
            EACH (r, TILE_ROWS) {
                vf wv = vf_load(w[r] + k);
                EACH (t, nt) acc[r][t] = vf_fma(wv, xv[t], acc[r][t]);
            }
        }
        EACH (r, TILE_ROWS)
            EACH (t, nt) vf_store(s->p[r][t] + lane, acc[r][t]);
    }
}

/* Folds nt x 4 sums of 64 to ret[t * 4 + r], a vector of results at a time; has room for whole
 * vectors. */
VEC_FN void tile_fold(float *ret, const tile_sums *s, int nt)
{
    for (int first = 0; first < nt * TILE_ROWS; first += VF_N) {
        vf row[VF_N];
        EACH (i, VF_N) {
            int at = first + i < nt * TILE_ROWS ? first + i : first; /* beyond: anything */
            const float *p = s->p[at % TILE_ROWS][at / TILE_ROWS];
            sum64 v;
            EACH (j, SUM_VECS) v.v[j] = vf_load(p + j * VF_N);
            row[i] = sum64_narrow(v);
        }
        vf_store(ret + first, vf_fold_rows(row));
    }
}

/* y[t * ldy + r] += the block's sums of n_rows x nt products over n columns. w[r], x[t] point at
 * the block. */
VEC_FN void tile_block(float *y, size_t ldy, int n_rows, const float *const *w,
                       const float *const *x, size_t n, int nt)
{
    tile_sums s;
    float result[TILE_ROWS * VF_TILE + VF_N];
    size_t whole = n / SUM_LANES * SUM_LANES, n_chunks = (whole + CHUNK - 1) / CHUNK;
    size_t chunk = n_chunks ? (whole / SUM_LANES + n_chunks - 1) / n_chunks * SUM_LANES : CHUNK;
    tile_chunk(&s, w, x, 0, whole < chunk ? whole : chunk, nt, true);
    for (size_t k = chunk; k < whole; k += chunk)
        tile_chunk(&s, w, x, k, whole - k < chunk ? whole : k + chunk, nt, false);
    for (int t = 0; t < nt && whole < n; t++)
        for (int r = 0; r < n_rows; r++)
            for (size_t k = whole; k < n; k++)
                s.p[r][t][k - whole] = __builtin_fmaf(w[r][k], x[t][k], s.p[r][t][k - whole]);
    tile_fold(result, &s, nt);
    for (int t = 0; t < nt; t++)
        for (int r = 0; r < n_rows; r++)
            y[(size_t)t * ldy + (size_t)r] += result[t * TILE_ROWS + r];
}

/* One block of up to four rows (w[r] beyond n_rows repeat a row) times all tokens; columns start
 * at x + k0. */
static void tile_tokens(float *y, size_t ldy, int n_rows, const float *const *w, const float *x,
                        size_t ldx, size_t n, size_t nt)
{
    for (size_t t = 0; t < nt;) {
        const float *xs[VF_TILE];
        size_t here = nt - t < VF_TILE ? nt - t : VF_TILE;
        for (size_t i = 0; i < here; i++) xs[i] = x + (t + i) * ldx;
        float *out = y + t * ldy;
        switch (here) {
        case 1: tile_block(out, ldy, n_rows, w, xs, n, 1); break;
        case 2: tile_block(out, ldy, n_rows, w, xs, n, 2); break;
        case VF_TILE: tile_block(out, ldy, n_rows, w, xs, n, VF_TILE); break;
        default: /* between: three at a time */ here = 3; tile_block(out, ldy, n_rows, w, xs, n, 3);
        }
        t += here;
    }
}

VEC_FN void clear_outputs(float *y, size_t ldy, int64_t n_rows, size_t nt)
{
    for (size_t t = 0; t < nt; t++) memset(y + t * ldy, 0, (size_t)n_rows * sizeof *y);
}

VEC_FN vf loadn_as(const void *p, ig_dtype t, size_t at, size_t n)
{
    return t == IG_F32   ? vf_loadn((const float *)p + at, n)
           : t == IG_F16 ? vf_loadn_f16((const uint16_t *)p + at, n)
                         : vf_loadn_bf16((const uint16_t *)p + at, n);
}

/* Row dot x with the conversion at the load; wt is a constant at each call. */
VEC_FN float dot_as(const void *w, ig_dtype wt, size_t first, const float *x, size_t n)
{
    float total = 0;
    for (size_t block = 0; block < n; block += SUM_BLOCK) {
        size_t end = n - block < SUM_BLOCK ? n : block + SUM_BLOCK, k = block;
        sum64 s = sum64_zero();
        for (; k + SUM_LANES <= end; k += SUM_LANES)
            EACH (i, SUM_VECS) {
                size_t at = k + (size_t)i * VF_N;
                s.v[i] = vf_fma(load_as(w, wt, first + at), vf_load(x + at), s.v[i]);
            }
        EACH (i, SUM_VECS) { /* the last 63 or fewer */
            size_t at = k + (size_t)i * VF_N;
            if (at >= end) break;
            bool whole = end - at >= VF_N;
            vf a = whole ? load_as(w, wt, first + at) : loadn_as(w, wt, first + at, end - at);
            vf b = whole ? vf_load(x + at) : vf_loadn(x + at, end - at);
            s.v[i] = vf_fma(a, b, s.v[i]);
        }
        total += sum64_fold(s);
    }
    return total;
}

static void to_f32(float *y, const void *w, ig_dtype wt, size_t first, size_t n)
{
    if (wt == IG_F16)
        K(f16_to_f32)(y, (const uint16_t *)w + first, n);
    else
        K(bf16_to_f32)(y, (const uint16_t *)w + first, n);
}

void K(mm)(float *y, size_t ldy, const void *w, ig_dtype wt, size_t ldw, int64_t n0, int64_t n1,
           const float *x, size_t ldx, size_t k, size_t nt, char *scratch)
{
    if (nt == 1) {
        for (int64_t n = n0; n < n1; n++) {
            size_t first = (size_t)n * ldw;
            y[n - n0] = wt == IG_F32   ? dot_as(w, IG_F32, first, x, k)
                        : wt == IG_F16 ? dot_as(w, IG_F16, first, x, k)
                                       : dot_as(w, IG_BF16, first, x, k);
        }
        return;
    }
    clear_outputs(y, ldy, n1 - n0, nt);
    for (int64_t n = n0; n < n1; n += TILE_ROWS)
        for (size_t k0 = 0; k0 < k; k0 += SUM_BLOCK) {
            size_t cols = k - k0 < SUM_BLOCK ? k - k0 : SUM_BLOCK;
            int rows = n1 - n < TILE_ROWS ? (int)(n1 - n) : TILE_ROWS;
            const float *ws[TILE_ROWS];
            for (int r = 0; r < TILE_ROWS; r++) {
                float *own = (float *)scratch + (size_t)r * SUM_BLOCK;
                size_t first = (size_t)(n + r) * ldw + k0;
                ws[r] = r >= rows ? ws[0] : wt == IG_F32 ? (const float *)w + first : own;
                if (r < rows && wt != IG_F32) to_f32(own, w, wt, first, cols);
            }
            tile_tokens(y + (n - n0), ldy, rows, ws, x + k0, ldx, cols, nt);
        }
}

void K(qmm)(float *y, size_t ldy, const qmat *w, int64_t n0, int64_t n1, const float *x, size_t ldx,
            size_t nt, char *scratch)
{
    size_t k = (size_t)w->k;
    clear_outputs(y, ldy, n1 - n0, nt);
    for (int64_t n = n0; n < n1; n += TILE_ROWS)
        for (size_t k0 = 0; k0 < k; k0 += SUM_BLOCK) {
            size_t cols = k - k0 < SUM_BLOCK ? k - k0 : SUM_BLOCK;
            int rows = n1 - n < TILE_ROWS ? (int)(n1 - n) : TILE_ROWS;
            const float *ws[TILE_ROWS];
            for (int r = 0; r < TILE_ROWS; r++) {
                float *own = (float *)scratch + (size_t)r * SUM_BLOCK;
                ws[r] = r >= rows ? ws[0] : own;
                if (r < rows) dequantize(own, w, n + r, k0, k0 + cols);
            }
            tile_tokens(y + (n - n0), ldy, rows, ws, x + k0, ldx, cols, nt);
        }
}
