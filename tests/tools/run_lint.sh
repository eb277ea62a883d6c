#!/bin/sh
# The rules that only tools see: format, layers, our own, static analysis, generated files committed.
exec make --no-print-directory -s lint
