#!/bin/sh
# The whole server on the real model: the openai client, raw requests, refusals by id, hostile clients, the log afterwards.
set -eu
./setup.sh --model
./setup.sh --venv openai openai==3.57.0
sh tests/support/bundle.sh
exec build/venv-openai/bin/python tests/server/server.py "${B:-build}/ingot"
