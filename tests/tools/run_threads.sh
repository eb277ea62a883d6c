#!/bin/sh
# What runs in several threads again, under the thread sanitizer.
exec make --no-print-directory -s -j"$(nproc)" SAN=thread threaded
