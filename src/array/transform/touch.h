/* touch.h: memory that long-lived objects own, zeroed. */
#ifndef TRANSFORM_TOUCH_H
#define TRANSFORM_TOUCH_H
#include "array/core/buffer.h"

/* A buffer of zeros. The device's workers write it, so that its pages exist, spread over the memory
 * of all nodes, before anybody waits for them (fresh memory costs up to a second per GB). */
IG_MUST_USE ig_status touch_new(size_t n_bytes, buffer **ret_buffer);
#endif
