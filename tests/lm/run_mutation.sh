#!/bin/sh
# Can the tests of the language model see a reduction whose order depends on the number of threads? Attention is cut into shorter splits
# where one thread works alone; with two, everything is as it was.
exec tests/support/mutation.sh lm/test_bits float16_pages_give_the_same_bits_greedy \
    src/array/core/paged.h '^#define KV_SPLIT 256 ' \
    's|^#define KV_SPLIT 256 .*|#include "ingot/device.h"\
#define KV_SPLIT (ig_device_threads() == 1 ? 128 : 256)|'
