#!/bin/sh
# Can the tests see a sum whose order depends on the number of threads? In a copy of the source,
# sums are cut into as many parts as there are threads; the property test must fail there, and only
# there.
set -eu
B=${B:-build}
TEST=a_plan_gives_the_bits_of_eager_evaluation_on_every_isa_and_thread_count
FILE=src/array/cpu/step_reduce.c
CALL='*(float \*)acc += a->k->sum(x, n);'
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT INT TERM

cp -a Makefile include src tests tools docs "$copy/"
mkdir "$copy/build"
for part in flags objects gen obj tests/support libsupport.a libapp.a libingot-lm.a libingot.a; do
    [ -e "$B/$part" ] || continue
    mkdir -p "$(dirname "$copy/build/$part")"
    cp -a "$B/$part" "$copy/build/$part"
done

# build_and_run LOG: exit status of the test
build_and_run() {
    make -s -C "$copy" build/tests/plan/test_random_plans >"$copy/make.log" 2>&1 || {
        tail -n 20 "$copy/make.log"
        echo "the copy does not build"
        exit 1
    }
    (cd "$copy" && ./build/tests/plan/test_random_plans >"$1" 2>&1)
}

build_and_run "$copy/before.log" || {
    tail -n 20 "$copy/before.log"
    echo "the test fails without the mutation"
    exit 1
}
grep -q "$CALL" "$copy/$FILE" || {
    echo "$FILE has changed: teach this script where a row is summed"
    exit 1
}
sed -i -e '1i #include "ingot/device.h"' -e "s|$CALL|\
        for (size_t at = 0, t = (size_t)ig_device_threads(), part = (n + t - 1) / t; at < n; at += part)\
            *(float *)acc += a->k->sum((const float *)x + at, n - at < part ? n - at : part);|" "$copy/$FILE"
if build_and_run "$copy/after.log"; then
    echo "a sum whose order depends on threads went unnoticed"
    exit 1
fi
grep "FAILED  \] $TEST" "$copy/after.log" | head -n 1
grep -a -m 1 'differs' "$copy/after.log" || true
echo "1 passed, 0 failed"
