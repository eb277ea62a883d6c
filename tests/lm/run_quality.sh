#!/bin/sh
# The short form of `make quality`: 512 tokens of our own documents. So few tokens tell less, so the
# bound is wider.
QUALITY_PERCENT=3 bench/quality.sh docs/numerics.md 512
