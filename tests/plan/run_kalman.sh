#!/bin/sh
# The example that is no language model: its bank equals scalar C, its replays cost no node and no
# allocation.
set -eu
B=${B:-build}
out=$("$B/examples/kalman" 500)
echo "$out"
echo "$out" | grep -q '; 0 nodes and 0 allocations made by them'
echo "$out" | grep -q 'filters that differ from scalar C: 0$'
