/* describe.c: one line a step (contract in describe.h):
 *   "  12  rms_norm+int8_rows  uint8 [T, 704] <- float32 [T, 576], float32 [576]  (norm_rows8)" */
#include "array/transform/describe.h"
#include "array/fuse/loops.h"

static void add_spec(buf *b, const ig_plan *p, const spec *s)
{
    buf_printf(b, "%s [", ig_dtype_name(s->dtype));
    for (int i = 0; i < s->ndim; i++) {
        if (i) buf_str(b, ", ");
        if (i == 0 && s->sym)
            buf_str(b, p->symbol_name[s->sym - 1]);
        else
            buf_printf(b, "%lld", (long long)s->dim[i]);
    }
    buf_char(b, ']');
}

static void add_operations(buf *b, const work *w)
{
    if (w->inner) buf_printf(b, "%s+", op_table[w->inner->op].name);
    for (int i = 0; w->prog && i < w->prog->n_instr; i++)
        buf_printf(b, "%s%s", i ? "+" : "", op_table[w->prog->instr[i].op].name);
    if (!w->prog)
        buf_str(b, op_table[w->node->op].name);
    else if (w->kind == WORK_EW_ROWS8)
        buf_printf(b, "+%s", op_table[w->node->op].name);
}

void describe_step(ig_plan *plan, int32_t phase, const work *w, const operand *in,
                   const operand *out, const char *kernel)
{
    buf *b = &plan->text;
    buf_printf(b, "%4d  ", (int)phase);
    add_operations(b, w);
    for (int k = 0; k < w->node->n_out; k++) {
        buf_str(b, k ? ", " : "  ");
        add_spec(b, plan, &out[k].s);
    }
    for (int j = 0, n = 0; j < w->n_in; j++) {
        if (!in[j].ptr) continue;
        buf_str(b, n++ ? ", " : " <- ");
        add_spec(b, plan, &in[j].s);
    }
    buf_printf(b, "  (%s)\n", kernel ? kernel : "");
}
