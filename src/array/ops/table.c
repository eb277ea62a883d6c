/* table.c: the table of operations, from ops.def. */
#include <string.h>
#include "array/ops/args.h"

/* An argument list "(ARR(a) INT(axis))" read as text: kinds here, names below. */
#define READ(...) "" __VA_ARGS__
#define ARR(x) "r"
#define OPT(x) "o"
#define ARRS(x) "l"
#define QUANT(x) "rrr"
#define INT(x)
#define FLAG(x)
#define NUM(x)
#define DTYPE(x)
#define DIMS(x)
#define AXES(x)
#define OP(name, rule, build, args, expr, sample, doc, ...) \
    {#name, #rule, rule_##rule, READ args, doc},
const op_info op_table[N_OPS] = {
#include "array/ops.def"
};
#undef OP
#undef ARR
#undef OPT
#undef ARRS
#undef QUANT

#define ARR(x) #x "\0"
#define OPT(x) #x "\0"
#define ARRS(x) #x "\0"
#define QUANT(x) #x ".codes\0" #x ".scales\0" #x ".biases\0"
#define OP(name, rule, build, args, ...) READ args,
static const char *const in_names[N_OPS] = {
#include "array/ops.def"
};
#undef OP

const char *op_in_name(op_code op, int i)
{
    const char *kinds = op_table[op].in_kinds, *name = in_names[op];
    for (int k = 0; k < i && kinds[k] != 'l' && kinds[k + 1]; k++) name += strlen(name) + 1;
    return name;
}
