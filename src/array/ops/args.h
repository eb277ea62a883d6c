/* args.h: what shape rules are written with. A rule (one per family, declared from ops.def)
 * checks a call and fills the specs of its outputs. It normalises call->i (axes not negative,
 * defaults written out) and may replace an input by a cast or broadcast of it, so that devices
 * see one form only; that form is stated above each rule. Messages name operation, argument and
 * shapes. */
#ifndef OPS_ARGS_H
#define OPS_ARGS_H
#include "array/core/dtype.h"
#include "array/core/shape.h"

#define OP(name, rule, ...) ig_status rule_##rule(op_call *c, spec *ret_out, int *ret_n_out);
#include "array/ops.def"
#undef OP

/* Sets of dtypes. */
#define ONLY(t) (1u << (t))
#define SIGNED (ONLY(IG_I8) | ONLY(IG_I16) | ONLY(IG_I32) | ONLY(IG_I64))
#define UNSIGNED (ONLY(IG_U8) | ONLY(IG_U16) | ONLY(IG_U32) | ONLY(IG_U64))
#define INTS (SIGNED | UNSIGNED)
#define FLOATS (ONLY(IG_F16) | ONLY(IG_BF16) | ONLY(IG_F32) | ONLY(IG_F64))
#define SHORT_FLOATS (ONLY(IG_F16) | ONLY(IG_BF16) | ONLY(IG_F32))
#define REALS (ONLY(IG_BOOL) | INTS | FLOATS)
#define ANY (REALS | ONLY(IG_C64))

static inline const char *op_name(const op_call *c) { return op_table[c->op].name; }
static inline const spec *arg(const op_call *c, int k) { return node_spec(c->in[k]); }
static inline bool arg_is_there(const op_call *c, int k)
{
    return k < c->n_in && !ig_is_empty(c->in[k]);
}

IG_MUST_USE ig_status arg_dtype_in(const op_call *c, int k, unsigned set);
IG_MUST_USE ig_status arg_ndim(const op_call *c, int k, int ndim);
/* A dtype given as an argument. */
IG_MUST_USE ig_status arg_dtype(const op_call *c, int64_t dtype, unsigned set);
/* Replaces input k by its conversion or broadcast, unless it is so already. */
IG_MUST_USE ig_status arg_cast(op_call *c, int k, ig_dtype dtype);
IG_MUST_USE ig_status arg_broadcast(op_call *c, int k, const spec *to);
/* Replaces input k by a row-major copy, unless it will be row-major already: for what a kernel
 * reads as it lies. */
IG_MUST_USE ig_status arg_dense(op_call *c, int k);
/* The same, unless its last axis alone is without gaps. */
IG_MUST_USE ig_status arg_dense_rows(op_call *c, int k);
/* "take: argument indices is int32 [2, 3]: <why>" */
IG_MUST_USE ig_status arg_refuse(const op_call *c, int k, const char *why);
/* "matmul: arguments a float32 [2, 3] and b float32 [4, 5]: <why>" */
IG_MUST_USE ig_status arg_refuse2(const op_call *c, int k, int l, const char *why);
/* Puts a copy of dims [from, to) of input k at out->dim[at]; the symbol goes along only to dim
 * 0. */
IG_MUST_USE ig_status arg_append_dims(const op_call *c, int k, int from, int to, spec *out);
#endif
