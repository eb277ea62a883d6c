/* describe.h: a plan as text, for people. */
#ifndef TRANSFORM_DESCRIBE_H
#define TRANSFORM_DESCRIBE_H
#include "array/transform/plan.h"

/* Adds the line of a step to plan->text: phase, operations, result, inputs, kernel. Text past
 * PLAN_TEXT_MAX is left out. */
void describe_step(ig_plan *plan, int32_t phase, const work *w, const operand *in,
                   const operand *out, const char *kernel);
#endif
