#!/bin/sh
# Runs test programs and scripts, B being the build folder: C programs two at a time, scripts one by
# one (they measure, start servers, build). A C program counts its cmocka cases; a script counts as
# its own last line says ("N passed, N failed") or else as one. Ends with the sum in the same form.
B=${B:-build}
# Runs $1, leaves log and counts beside each other, prints one line, and the log's end on failure.
if [ "$1" = --one ]; then
    t=$2
    name=$(echo "$t" | sed "s|^$B/||; s|^tests/||; s|/|.|g")
    log=$logs_dir/$name
    start=$(date +%s%N)
    case $t in
    *.sh) B=$B timeout "${TEST_TIMEOUT:-900}" "$t" >"$log.log" 2>&1 ;;
    *) timeout "${TEST_TIMEOUT:-900}" $RUN "./$t" >"$log.log" 2>&1 ;;
    esac
    rc=$?
    ms=$((($(date +%s%N) - start) / 1000000))
    passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$log.log" | awk '{n += $1} END {print n + 0}')
    failed=$(sed -n 's/^\[  FAILED  \] [^:]*: \([0-9]*\) test.*/\1/p' "$log.log" | awk '{n += $1} END {print n + 0}')
    own=$(tail -n 1 "$log.log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p')
    [ -n "$own" ] && passed=${own% *} failed=${own#* }
    [ $rc -eq 0 ] && [ "$passed" -eq 0 ] && [ "$failed" -eq 0 ] && passed=1
    [ $rc -ne 0 ] && [ "$failed" -eq 0 ] && failed=1
    echo "$passed $failed" >"$log.count"
    if [ "$failed" -eq 0 ]; then
        printf 'ok    %-40s %4d cases %6d ms\n' "$name" "$passed" "$ms"
    else
        printf 'FAIL  %-40s exit %d, %d ms\n' "$name" "$rc" "$ms"
        grep -v '^\[ *\(RUN\|OK\) *\]' "$log.log" | tail -n 60 | sed 's/^/      /'
    fi
    exit 0
fi

logs=$B/test-logs
rm -rf "$logs"
mkdir -p "$logs"
export B RUN CC logs_dir="$logs"
for t in "$@"; do case $t in *.sh) ;; *) echo "$t" ;; esac; done |
    xargs -r -n 1 -P "${TEST_JOBS:-2}" "$0" --one
for t in "$@"; do case $t in *.sh) "$0" --one "$t" ;; esac; done
cat "$logs"/*.count 2>/dev/null | awk '{p += $1; f += $2}
    END {printf "%d passed, %d failed\n", p, f; exit f > 0 || p == 0}'
