#!/bin/sh
# The unit tests and the fuzz replays again, with address and undefined-behaviour sanitizers.
exec make --no-print-directory -s -j"$(nproc)" SAN=address,undefined sanitized
