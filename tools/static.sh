#!/bin/sh
# Static analysis with cppcheck; its findings are errors. A false alarm is silenced where it stands by a
# comment "cppcheck-suppress NAME". Uninitialised reads are left to the compilers and the sanitizers:
# cppcheck does not see that a call fills a buffer.
exec cppcheck --quiet --error-exitcode=1 --std=c11 -j "$(nproc)" --inline-suppr --enable=warning \
    --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=uninitvar \
    --suppress=preprocessorErrorDirective -Iinclude -Isrc -Ibuild/gen src tools examples
