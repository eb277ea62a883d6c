#!/bin/sh
# ready.sh: memory of a server and its time to ready (bench/ready.py has the options), on the shape of SmolLM2-1.7B unless --shape or --bundle says otherwise.
set -eu
cd "$(dirname "$0")/.."
./setup.sh --model
./setup.sh --venv peer numpy==1.26.4
exec build/venv-peer/bin/python bench/ready.py "$@"
