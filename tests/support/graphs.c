/* graphs.c: random functions (contract in graphs.h). Every choice depends on the seed and on
 * what kind of rows a value has, never on how many there are, so that a call and a trace choose
 * alike. */
#include "support/graphs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/half.h"

#define MAX_VALUES 96

const ig_symbol graph_symbols[2] = {{"T", GRAPH_T}, {"O", GRAPH_O}};
const ig_input graph_inputs[GRAPH_N_INPUTS] = {
    {"x", IG_F32, 2, {0, GRAPH_COLS}, 0}, {"y", IG_F32, 2, {0, GRAPH_COLS}, 0},
    {"h", IG_F16, 2, {0, GRAPH_COLS}, 0}, {"ids", IG_I32, 1, {0}, 0},
    {"rows", IG_I32, 1, {0}, 1},
};

typedef enum rows { ROWS_T, ROWS_O, ROWS_STATE, ROWS_ONE } rows;
typedef struct value {
    ig_array a;
    rows r;
    int cols;
} value;

typedef struct builder {
    graph *g;
    unsigned seed;
    value v[MAX_VALUES];
    int n;
    ig_array ids, rows;
} builder;

static unsigned draw(builder *b, unsigned n) { return (unsigned)rand_r(&b->seed) / 7u % n; }

static float uniform(unsigned *seed) { return (float)(rand_r(seed) % 20001) / 5000.0f - 2.0f; }

static void push(builder *b, ig_array a, rows r, int cols)
{
    if (b->n < MAX_VALUES) b->v[b->n++] = (value){a, r, cols};
}

/* A random value; cols 0: any width. There is always one of GRAPH_COLS. */
static value pick(builder *b, int cols)
{
    int k = (int)draw(b, (unsigned)b->n);
    while (cols && b->v[k].cols != cols) k = (k + 1) % b->n;
    return b->v[k];
}

/* A value that broadcasts with v. */
static value partner(builder *b, value v)
{
    int k = (int)draw(b, (unsigned)b->n);
    for (int i = 0; i < b->n; i++, k = (k + 1) % b->n) {
        const value *w = &b->v[k];
        if ((w->r == v.r || w->r == ROWS_ONE) && (w->cols == v.cols || w->cols == 1)) return *w;
    }
    return v;
}

static ig_array constant(unsigned seed, int rows_n, int cols)
{
    float x[GRAPH_COLS * GRAPH_COLS];
    int64_t dims[2] = {rows_n, cols};
    for (int i = 0; i < rows_n * cols; i++) x[i] = uniform(&seed);
    return ig_array_copy(x, IG_F32, dims, 2);
}

static ig_array f32(ig_array a) { return ig_astype(a, IG_F32); }

/* --- operations: each takes values from the pool and pushes one or two */

static void op_unary(builder *b)
{
    value v = pick(b, 0);
    ig_array a = v.a, r;
    switch (draw(b, 16)) {
    case 0: r = ig_negative(a); break;
    case 1: r = ig_abs(a); break;
    case 2: r = ig_square(ig_tanh(a)); break;
    case 3: r = ig_sqrt(ig_abs(a)); break;
    case 4: r = ig_exp(ig_negative(ig_abs(a))); break;
    case 5: r = ig_log1p(ig_abs(a)); break;
    case 6: r = ig_sigmoid(a); break;
    case 7: r = ig_silu(a); break;
    case 8: r = ig_erf(a); break;
    case 9: r = ig_sin(a); break;
    case 10: r = ig_cos(a); break;
    case 11: r = ig_floor(a); break;
    case 12: r = ig_rint(a); break;
    case 13: r = ig_sign(a); break;
    case 14: r = ig_rsqrt(ig_add(ig_square(a), ig_scalar_f32(0.5f))); break;
    default: r = ig_clip(a, ig_scalar_f32(-1.5f), (ig_array){0}); break;
    }
    push(b, r, v.r, v.cols);
}

static void op_binary(builder *b)
{
    value v = pick(b, 0), w = partner(b, v);
    ig_array x = v.a, y = w.a, r;
    if (draw(b, 2)) {
        x = w.a;
        y = v.a;
    }
    switch (draw(b, 9)) {
    case 0: r = ig_add(x, y); break;
    case 1: r = ig_subtract(x, y); break;
    case 2: r = ig_multiply(x, y); break;
    case 3: r = ig_divide(x, ig_add(ig_abs(y), ig_scalar_f32(1))); break;
    case 4: r = ig_maximum(x, y); break;
    case 5: r = ig_minimum(x, y); break;
    case 6: r = ig_where(ig_less(x, y), x, y); break;
    case 7: r = ig_where(ig_logical_and(ig_greater(x, y), ig_isfinite(x)), y, x); break;
    default: r = ig_add(x, ig_multiply(y, ig_tanh(x))); break;
    }
    push(b, r, v.r, v.cols);
}

static void op_cast(builder *b)
{
    static const ig_dtype types[] = {IG_F16, IG_BF16, IG_F32, IG_I32};
    value v = pick(b, 0);
    ig_array r = ig_astype(ig_clip(v.a, ig_scalar_f32(-99), ig_scalar_f32(99)), types[draw(b, 4)]);
    push(b, ig_astype(r, types[draw(b, 3)]), v.r, v.cols);
}

static void op_reduce(builder *b)
{
    value v = pick(b, GRAPH_COLS);
    const int cols[] = {-1}, first[] = {0};
    switch (draw(b, 6)) {
    case 0: push(b, ig_sum(f32(v.a), cols, 1, true), v.r, 1); break;
    case 1: push(b, ig_mean(f32(v.a), cols, 1, true), v.r, 1); break;
    case 2: push(b, ig_max(f32(v.a), cols, 1, true), v.r, 1); break;
    case 3: push(b, ig_sum(f32(v.a), first, 1, true), ROWS_ONE, v.cols); break;
    case 4: push(b, f32(ig_argmax(v.a, -1, true)), v.r, 1); break;
    default: push(b, ig_logsumexp(f32(v.a), cols, 1, true), v.r, 1); break;
    }
}

static void op_rows(builder *b)
{
    value v = pick(b, GRAPH_COLS);
    ig_array w = ig_reshape(constant(draw(b, 99), 1, GRAPH_COLS), (int64_t[]){GRAPH_COLS}, 1);
    ig_array r;
    switch (draw(b, 6)) {
    case 0: r = ig_rms_norm(f32(v.a), w, 1e-5); break;
    case 1: r = ig_layer_norm(f32(v.a), w, (ig_array){0}, 1e-5); break;
    case 2: r = ig_softmax(f32(v.a), -1); break;
    case 3: r = ig_cumsum(f32(v.a), -1, false, true); break;
    case 4: r = ig_sort(f32(v.a), -1); break;
    default: r = ig_take_along_axis(v.a, ig_argsort(v.a, -1), -1); break;
    }
    push(b, r, v.r, v.cols);
}

static void op_view(builder *b)
{
    value v = pick(b, GRAPH_COLS);
    const int64_t four[] = {-1, 4, GRAPH_COLS / 4}, flat[] = {-1, GRAPH_COLS};
    const int64_t start[] = {0, 16}, stop[] = {INT64_MAX, 48}, every[] = {1, 1};
    const int64_t back[] = {0, -1}, end[] = {INT64_MAX, INT64_MIN}, minus[] = {1, -1};
    const int swap[] = {0, 2, 1};
    ig_array half, r;
    switch (draw(b, 4)) {
    case 0: /* a transpose that a reshape cannot say by strides */
        r = ig_reshape(ig_transpose(ig_reshape(v.a, four, 3), swap, 3), flat, 2);
        break;
    case 1:
        half = ig_slice(v.a, start, 2, stop, 2, every, 2);
        r = ig_concatenate((ig_array[]){half, ig_negative(half)}, 2, 1);
        break;
    case 2: r = ig_slice(v.a, back, 2, end, 2, minus, 2); break;
    default: r = ig_contiguous(ig_tanh(ig_reshape(ig_reshape(v.a, four, 3), flat, 2))); break;
    }
    push(b, r, v.r, v.cols);
}

static void op_matmul(builder *b)
{
    value v = pick(b, GRAPH_COLS), u = partner(b, v);
    if (u.cols != v.cols || u.r != v.r) u = v;
    ig_array x = f32(v.a), w = constant(draw(b, 99), GRAPH_COLS, GRAPH_COLS);
    ig_quantized q = ig_quantize(w, 64, draw(b, 2) ? 4 : 8);
    ig_array ones = ig_full((int64_t[]){GRAPH_COLS}, 1, 1, IG_F32), r;
    switch (draw(b, 6)) {
    case 0: r = ig_matmul(x, w); break;
    case 1: r = ig_quantized_matmul(x, q, true); break;
    case 2: r = ig_quantized_matmul_rows8(ig_int8_rows(x, 64), q); break;
    case 3: r = ig_quantized_matmul_rows8(ig_int8_rows(ig_rms_norm(x, ones, 1e-5), 64), q); break;
    case 4:
        r = ig_multiply(ig_silu(x), f32(u.a));
        r = ig_quantized_matmul_rows8(ig_int8_rows(r, 64), q);
        break;
    default:
        r = ig_quantized_matmul_rows8(ig_int8_rows(x, 64), q);
        r = draw(b, 2) ? ig_add(x, r) : ig_add(r, x);
        break;
    }
    push(b, r, v.r, v.cols);
}

static void op_rope(builder *b)
{
    value v = pick(b, GRAPH_COLS);
    if (v.r != ROWS_T) return;
    const int64_t heads[] = {-1, 4, 16}, flat[] = {-1, GRAPH_COLS}, table[] = {32, 2, 8};
    ig_array t = ig_reshape(constant(3, 8, GRAPH_COLS), table, 3);
    ig_array r = ig_rope(ig_reshape(f32(v.a), heads, 3), ig_abs(b->ids), t, draw(b, 2));
    push(b, ig_reshape(r, flat, 2), v.r, v.cols);
}

static void op_take(builder *b)
{
    value v = pick(b, GRAPH_COLS);
    if (v.r == ROWS_T) push(b, ig_take(v.a, b->rows, 0), ROWS_O, v.cols);
    if (v.r == ROWS_STATE) push(b, ig_take(v.a, b->ids, 0), ROWS_T, v.cols);
}

static void op_state(builder *b)
{
    ig_array *s = &b->g->state[draw(b, GRAPH_N_STATES)];
    const int64_t start[] = {2, 0}, stop[] = {12, GRAPH_COLS}, every[] = {5, 1};
    value v = pick(b, GRAPH_COLS);
    switch (draw(b, 6)) {
    case 0: push(b, ig_take(*s, b->ids, 0), ROWS_T, GRAPH_COLS); break;
    case 1: push(b, ig_tanh(*s), ROWS_STATE, GRAPH_COLS); break;
    case 2: push(b, ig_add(*s, ig_scalar_f32(0.25f)), ROWS_STATE, GRAPH_COLS); break;
    case 3:
        if (v.r == ROWS_ONE) *s = ig_slice_update(*s, v.a, start, 2, stop, 2, every, 2);
        break;
    default:
        if (v.r == ROWS_T)
            *s = ig_put_rows(*s, b->ids, f32(v.a));
        else if (v.r == ROWS_O)
            *s = ig_put_rows(*s, b->rows, f32(v.a));
    }
}

void graph_build(graph *g, const ig_array *inputs, ig_array *ret_outputs)
{
    static void (*const ops[])(builder *) = {
        op_unary,  op_unary,  op_unary, op_unary,  op_binary, op_binary,
        op_binary, op_binary, op_cast,  op_reduce, op_rows,   op_view,
        op_matmul, op_rope,   op_take,  op_state,  op_state,
    };
    builder b = {.g = g, .seed = g->seed, .ids = inputs[3], .rows = inputs[4]};
    for (int i = 0; i < 3; i++) push(&b, inputs[i], ROWS_T, GRAPH_COLS);
    push(&b, constant(1, 1, GRAPH_COLS), ROWS_ONE, GRAPH_COLS);
    for (int i = 0; i < g->n_ops; i++) ops[draw(&b, sizeof ops / sizeof ops[0])](&b);
    for (int i = 0; i < GRAPH_N_OUTPUTS; i++) {
        value v = b.v[(int)draw(&b, 3) ? b.n - 1 - (int)draw(&b, (unsigned)(b.n + 1) / 2) : i];
        ret_outputs[i] = v.a;
        g->out_rows[i] = (int)v.r;
    }
}

int64_t graph_rows(const graph *g, int i, int64_t t, int64_t o)
{
    const int64_t n[] = {t, o, GRAPH_ROWS, 1};
    return n[g->out_rows[i]];
}

void graph_fill(int i, unsigned seed, int64_t n_rows, void *out)
{
    seed = seed * 31 + (unsigned)i;
    if (i >= 3) {
        for (int64_t k = 0; k < n_rows; k++)
            ((int32_t *)out)[k] = (int32_t)(rand_r(&seed) % 20) - 2;
        return;
    }
    for (int64_t k = 0; k < n_rows * GRAPH_COLS; k++) {
        float v = uniform(&seed);
        if (graph_inputs[i].dtype == IG_F16)
            ((uint16_t *)out)[k] = f32_to_f16(v);
        else
            ((float *)out)[k] = v;
    }
}

static bool is_nan(const void *p, int64_t i, ig_dtype dtype)
{
    if (dtype == IG_F32) return isnan(((const float *)p)[i]);
    uint16_t h = ((const uint16_t *)p)[i];
    if (dtype == IG_F16) return (h & 0x7fff) > 0x7c00;
    return dtype == IG_BF16 && (h & 0x7fff) > 0x7f80;
}

bool graph_same(const void *a, const void *b, int64_t n, ig_dtype dtype)
{
    size_t size = ig_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++) {
        const char *x = (const char *)a + (size_t)i * size, *y = (const char *)b + (size_t)i * size;
        if (memcmp(x, y, size) != 0 && !(is_nan(a, i, dtype) && is_nan(b, i, dtype))) return false;
    }
    return true;
}
