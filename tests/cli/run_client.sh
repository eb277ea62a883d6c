#!/bin/sh
# What ingot ask makes of a server's stream: bytes, control characters, streams that end too early.
set -eu
exec python3 tests/cli/client.py "${B:-build}/ingot"
