#!/bin/sh
# What connections cost and how they end: vanished clients, large bodies and answers, stops, Unix sockets.
set -eu
./setup.sh --model
sh tests/support/bundle.sh
exec python3 tests/server/connections.py "${B:-build}/ingot"
