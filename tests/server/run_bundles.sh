#!/bin/sh
# Bundles, keys, logs and settings that a server must refuse, each by id; and what a crash or a full disk leaves behind.
set -eu
./setup.sh --model
./setup.sh --venv model
sh tests/support/bundle.sh
exec build/venv-model/bin/python tests/server/bundles.py "${B:-build}/ingot"
