#!/bin/sh
# The bits of the small model on another architecture: NEON, and plain C once, give the committed goldens under qemu.
exec make -s -j2 CROSS=aarch64 quick QUICK_BIN=build/v-aarch64/tests/lm/test_bits
