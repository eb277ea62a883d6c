#!/bin/sh
# Start of a server: what it prints about its time, what a terminal and a pipe see, when it says that it is ready, and how much memory it takes.
set -eu
./setup.sh --model
./setup.sh --venv model
sh tests/support/bundle.sh
exec build/venv-model/bin/python tests/server/ready.py "${B:-build}/ingot"
