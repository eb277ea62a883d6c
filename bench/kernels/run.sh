#!/bin/sh
# run.sh: builds bench/kernels/kernels.c against build/libingot.a and runs it; options: see kernels.c
set -e
cd "$(dirname "$0")/../.."
make --no-print-directory build/libingot.a >/dev/null
mkdir -p build/bench
${CC:-gcc} -std=gnu11 -O2 -g -Iinclude -Isrc -pthread bench/kernels/kernels.c build/libingot.a -lcrypto -ljansson -lm \
    -o build/bench/kernels
exec nice build/bench/kernels "$@"
