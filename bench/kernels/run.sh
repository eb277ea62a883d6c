#!/bin/sh
# run.sh: builds and runs kernels.c; its comment has the options.
set -e
cd "$(dirname "$0")/../.."
make --no-print-directory -s build/bench/kernels/kernels >&2
exec nice build/bench/kernels/kernels "$@"
