#!/bin/sh
# Can the tests of plans see a sum whose order depends on the number of threads? Sums are cut into as many parts as there are threads.
exec tests/support/mutation.sh plan/test_random_plans a_plan_gives_the_bits_of_eager_evaluation_on_every_isa_and_thread_count \
    src/array/cpu/step_reduce.c '*(float \*)acc += a->k->sum(x, n);' \
    '1i #include "ingot/device.h"
s|*(float \*)acc += a->k->sum(x, n);|\
        for (size_t at = 0, t = (size_t)ig_device_threads(), part = (n + t - 1) / t; at < n; at += part)\
            *(float *)acc += a->k->sum((const float *)x + at, n - at < part ? n - at : part);|'
