#!/bin/sh
# bench.sh: what `make bench` runs: Ingot against llama.cpp on the shapes of SmolLM2-135M and 1.7B, ratios in one run. Takes a while: it builds the peer.
# SHAPES="135m 1.7b" THREADS=2 ROUNDS=5 change it.
set -eu
cd "$(dirname "$0")/.."
./setup.sh --model
./setup.sh --venv peer numpy==1.26.4
bench/peer.sh
for shape in ${SHAPES:-135m 1.7b}; do
    build/venv-peer/bin/python bench/speed.py --shape "$shape" --threads "${THREADS:-2}" --rounds "${ROUNDS:-5}" --streams
done
