/* Which operations run together: the rules of fuse/group.h one by one. */
#include "array/fuse/group.h"
#include "ingot/fast.h"
#include "ingot/ingot.h"
#include "support/test.h"

#define MAX_NODES 128

/* Operations below the roots, each after its inputs, and their groups. */
typedef struct grouped {
    ig_node *node[MAX_NODES];
    bool keep[MAX_NODES];
    size_t n;
    group_set *set;
    work w;
    ew_program p;
} grouped;

static void list(grouped *g, ig_array a)
{
    if (ig_is_empty(a) || a.node->done) return;
    for (size_t i = 0; i < g->n; i++)
        if (g->node[i] == a.node) return;
    for (int i = 0; i < a.node->n_in; i++) list(g, a.node->in[i]);
    assert_true(g->n < MAX_NODES);
    a.node->mark = (uint32_t)g->n;
    g->node[g->n++] = a.node;
}

static void group_all(grouped *g, const ig_array *roots, int n_roots, bool fuse)
{
    *g = (grouped){.n = 0};
    for (int i = 0; i < n_roots; i++) list(g, roots[i]);
    for (int i = 0; i < n_roots; i++) g->keep[roots[i].node->mark] = true;
    assert_ok(group_nodes(g->node, g->keep, g->n, fuse, &g->set));
}

static const work *get(grouped *g, size_t i)
{
    group_get(g->set, i, &g->w, &g->p);
    return &g->w;
}

static void done(grouped *g)
{
    group_free(g->set);
    for (size_t i = 0; i < g->n; i++) g->node[i]->mark = 0;
}

static ig_array data(int rows, int cols)
{
    static const float zeros[4096];
    return ig_array_copy(zeros, IG_F32, (int64_t[]){rows, cols}, 2);
}

TEST(a_chain_becomes_one_program_in_the_order_of_its_operations)
{
    ig_scope *s = ig_scope_open();
    grouped g;
    ig_array a = data(2, 3), b = data(1, 3), e = ig_exp(a);
    ig_array r = ig_where(ig_less(e, b), ig_multiply(e, e), ig_astype(b, IG_F16));
    group_all(&g, &r, 1, true);
    assert_int_equal(group_count(g.set), 2); /* the cast of b has b's shape */
    const work *w = get(&g, 1);
    assert_int_equal(w->kind, WORK_EW);
    assert_ptr_equal(w->node, r.node);
    assert_int_equal(g.p.n_in, 3);
    assert_int_equal(g.p.n_instr, g.n - 1);
    assert_int_equal(g.p.instr[0].op, OP_exp);
    assert_int_equal(g.p.instr[g.p.n_instr - 1].op, OP_where);
    for (int i = 0; i < g.p.n_instr; i++) {
        const ew_instr *x = &g.p.instr[i];
        if (x->op == OP_less) {
            assert_int_equal(x->dtype, IG_BOOL);
            assert_int_equal(x->in_dtype, IG_F32);
        }
        for (int k = 0; k < 3; k++) assert_true(x->src[k] < g.p.n_in + i || x->src[k] == EW_ABSENT);
    }
    done(&g);
    assert_ok(ig_scope_close(s));
}

TEST(a_value_that_something_else_reads_is_made_by_its_own_step)
{
    ig_scope *s = ig_scope_open();
    grouped g;
    ig_array a = data(2, 3), e = ig_exp(a), x = ig_negative(e), y = ig_sort(e, 1);
    ig_array both[] = {x, y};
    group_all(&g, both, 2, true);
    assert_int_equal(group_count(g.set), 3);
    done(&g);
    ig_array kept[] = {x, e};
    group_all(&g, kept, 2, true);
    assert_int_equal(group_count(g.set), 2);
    done(&g);
    group_all(&g, &x, 1, true);
    assert_int_equal(group_count(g.set), 1);
    done(&g);
    group_all(&g, &x, 1, false);
    assert_int_equal(group_count(g.set), 2);
    assert_int_equal(get(&g, 0)->kind, WORK_EW);
    assert_int_equal(g.p.n_instr, 1);
    done(&g);
    assert_ok(ig_scope_close(s));
}

TEST(a_smaller_value_that_is_broadcast_is_not_computed_again_for_each_element)
{
    ig_scope *s = ig_scope_open();
    grouped g;
    ig_array r = ig_add(data(4, 3), ig_exp(data(1, 3)));
    group_all(&g, &r, 1, true);
    assert_int_equal(group_count(g.set), 2);
    done(&g);
    assert_ok(ig_scope_close(s));
}

TEST(programs_end_at_their_limits)
{
    ig_scope *s = ig_scope_open();
    grouped g;
    ig_array r = data(2, 3);
    for (int i = 0; i < EW_MAX_INSTR + 1; i++) r = ig_negative(r);
    group_all(&g, &r, 1, true);
    assert_int_equal(group_count(g.set), 2);
    assert_int_equal(get(&g, 1)->prog->n_instr, EW_MAX_INSTR);
    assert_int_equal(get(&g, 0)->prog->n_instr, 1);
    done(&g);
    ig_array sum = data(2, 3);
    for (int i = 0; i < EW_MAX_IN; i++) sum = ig_add(sum, data(2, 3));
    group_all(&g, &sum, 1, true);
    assert_int_equal(group_count(g.set), 2);
    assert_int_equal(get(&g, 1)->n_in, EW_MAX_IN);
    assert_int_equal(get(&g, 0)->n_in, 2);
    done(&g);
    assert_ok(ig_scope_close(s));
}

static ig_quantized weights(int n, int k) { return ig_quantize(data(n, k), 64, 4); }

static size_t kind_of_root(ig_array root, ig_array other)
{
    grouped g;
    ig_array roots[] = {root, other};
    group_all(&g, roots, ig_is_empty(other) ? 1 : 2, true);
    size_t kind = N_OPS;
    for (size_t i = 0; i < group_count(g.set); i++)
        if (get(&g, i)->node == root.node) kind = g.w.kind;
    done(&g);
    return kind;
}

TEST(norms_and_gates_go_into_the_quantisation_of_their_rows)
{
    ig_scope *s = ig_scope_open();
    ig_array none = {0}, x = data(4, 64), w = ig_full((int64_t[]){64}, 1, 1, IG_F32);
    ig_array norm = ig_rms_norm(x, w, 1e-5), gate = ig_multiply(ig_silu(x), x);
    ig_array a = ig_int8_rows(norm, 64).rec, b = ig_int8_rows(gate, 64).rec;
    assert_int_equal(kind_of_root(a, none), WORK_NORM_ROWS8);
    assert_int_equal(kind_of_root(a, norm), WORK_NODE);
    assert_int_equal(kind_of_root(b, none), WORK_EW_ROWS8);
    assert_int_equal(kind_of_root(b, gate), WORK_NODE);
    grouped g;
    group_all(&g, &b, 1, true);
    assert_int_equal(group_count(g.set), 1);
    assert_int_equal(get(&g, 0)->prog->n_instr, 2);
    assert_int_equal(g.w.n_in, 1);
    done(&g);
    assert_ok(ig_scope_close(s));
}

TEST(a_residual_of_the_same_shape_is_added_by_the_product)
{
    ig_scope *s = ig_scope_open();
    ig_array none = {0}, x = data(4, 64), row = data(1, 64), half = ig_astype(x, IG_F16);
    ig_quantized w = weights(64, 64);
    ig_array y = ig_quantized_matmul_rows8(ig_int8_rows(x, 64), w);
    ig_array z = ig_quantized_matmul_rows8(ig_int8_rows(x, 64), w);
    ig_array left = ig_add(x, y), right = ig_add(y, x);
    assert_int_equal(kind_of_root(left, none), WORK_QMM8_ADD);
    assert_int_equal(kind_of_root(right, none), WORK_QMM8_ADD);
    assert_int_equal(kind_of_root(ig_add(z, y), none), WORK_QMM8_ADD);
    assert_int_equal(kind_of_root(ig_add(y, y), none), WORK_EW);
    assert_int_equal(kind_of_root(ig_add(row, y), none), WORK_EW);
    assert_int_equal(kind_of_root(ig_add(half, y), none), WORK_EW);
    assert_int_equal(kind_of_root(left, y), WORK_EW);
    grouped g;
    group_all(&g, &left, 1, true);
    const work *last = get(&g, group_count(g.set) - 1);
    assert_int_equal(last->n_in, 5);
    assert_ptr_equal(last->in[4].node, x.node);
    assert_ptr_equal(last->inner, y.node);
    done(&g);
    assert_ok(ig_scope_close(s));
}

TEST(keys_are_turned_where_they_are_written)
{
    ig_scope *s = ig_scope_open();
    ig_array none = {0}, kv = ig_reshape(data(4, 16), (int64_t[]){4, 2, 8}, 3);
    ig_array table = ig_reshape(data(9, 8), (int64_t[]){9, 2, 4}, 3),
             at = ig_arange(0, 4, 1, IG_I32),
             pool = ig_full((int64_t[]){1, ig_page_bytes(2, 8, IG_F16)}, 2, 0, IG_U8);
    ig_array k = ig_rope(kv, at, table, false), y = ig_paged_write(pool, k, kv, at, 2, 8, IG_F16),
             v = ig_paged_write(pool, kv, ig_rope(kv, at, table, false), at, 2, 8, IG_F16);
    assert_int_equal(kind_of_root(y, none), WORK_ROPE_WRITE);
    assert_int_equal(kind_of_root(y, k), WORK_NODE);
    assert_int_equal(kind_of_root(v, none), WORK_NODE);
    grouped g;
    group_all(&g, &y, 1, true);
    const work *last = get(&g, group_count(g.set) - 1);
    assert_int_equal(last->n_in, 6);
    assert_ptr_equal(last->in[1].node, kv.node);
    assert_ptr_equal(last->in[2].node, kv.node);
    assert_ptr_equal(last->in[4].node, k.node->in[1].node);
    assert_ptr_equal(last->in[5].node, k.node->in[2].node);
    assert_ptr_equal(last->inner, k.node);
    done(&g);
    assert_ok(ig_scope_close(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_chain_becomes_one_program_in_the_order_of_its_operations),
        CASE(a_value_that_something_else_reads_is_made_by_its_own_step),
        CASE(a_smaller_value_that_is_broadcast_is_not_computed_again_for_each_element),
        CASE(programs_end_at_their_limits),
        CASE(norms_and_gates_go_into_the_quantisation_of_their_rows),
        CASE(a_residual_of_the_same_shape_is_added_by_the_product),
        CASE(keys_are_turned_where_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
