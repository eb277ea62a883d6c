#!/bin/sh
# Static analysis with cppcheck; its findings are errors. False alarms are silenced where they stand
# by a comment "cppcheck-suppress NAME".
exec cppcheck --quiet --error-exitcode=1 --std=c11 -j "$(nproc)" --inline-suppr \
    --enable=warning,portability --suppress=missingIncludeSystem --suppress=unknownMacro \
    --suppress=preprocessorErrorDirective -Iinclude -Isrc -Ibuild/gen src tools examples
