/* constant.h: arrays over memory that already has its value. */
#ifndef ARRAY_CONSTANT_H
#define ARRAY_CONSTANT_H
#include "array/core/buffer.h"
#include "array/core/node.h"

/* A row-major constant at the start of b; takes the caller's reference to b, also on failure.
 * Joins the innermost scope. */
ig_array constant_new(const char *caller, const spec *s, buffer *b);
#endif
