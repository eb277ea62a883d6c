#!/bin/sh
# libFuzzer on every target for FUZZ_SECONDS each (20), from a copy of the committed corpus; what it
# finds new stays in build/. Needs clang. Ends with "N passed, N failed".
cd "$(dirname "$0")/../.."
make --no-print-directory -j"$(nproc)" CC=clang FUZZ=1 SAN=address,undefined fuzz-targets || exit 1
passed=0 failed=0
for t in build/v-clang-san-address-undefined-fuzz/tests/fuzz/fuzz_*; do
    case $t in *.o | *.d | *.cmd) continue ;; esac
    name=${t##*/fuzz_}
    work=build/fuzz/$name
    mkdir -p "$work/corpus"
    if "$t" -max_total_time="${FUZZ_SECONDS:-20}" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$work/" "$work/corpus" "tests/fuzz/corpus/$name" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "ok    $name  $(grep -o 'Done [0-9]* runs.*' "$work/log")"
    else
        failed=$((failed + 1))
        echo "FAIL  $name: see $work"
        tail -n 30 "$work/log" | sed 's/^/      /'
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
