#!/bin/sh
# The same bits on another architecture: kernel slots, the numeric contract, and the small golden set
# of a model, built for aarch64 and run under qemu.
exec make --no-print-directory -s -j"$(nproc)" CROSS=aarch64 portable
