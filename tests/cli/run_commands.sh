#!/bin/sh
# What the command says without a model and without a server: help, usage, messages about files of the wrong kind. Ends with "N passed, N failed".
B=${B:-build}
ingot=$PWD/$B/ingot
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0
# says CODE WORDS command...: exits with CODE, and WORDS (a basic regular expression) is in what it prints
says() {
    code=$1 words=$2
    shift 2
    "$@" >"$out/log" 2>&1 </dev/null
    rc=$?
    if [ $rc -eq "$code" ] && grep -q -e "$words" "$out/log"; then
        passed=$((passed + 1))
        echo "ok    $*"
    else
        failed=$((failed + 1))
        echo "FAIL  $*: exit $rc, wanted $code and '$words' in:"
        sed 's/^/      /' "$out/log"
    fi
}

# --- help
says 0 'ingot replay' "$ingot" help
says 2 "no command 'frob'" "$ingot" help frob
says 2 "no command 'frob'" "$ingot" frob
for c in $("$ingot" help | sed -n 's/^  ingot \([a-z]*\) .*/\1/p'); do says 0 '^ *ingot' "$ingot" help "$c"; done
says 0 '--listen ADDRESS .*default 127.0.0.1:8080$' "$ingot" help serve
says 0 '--queue N .*default 256$' "$ingot" help serve
says 0 '^                                   type of the KV cache' "$ingot" help serve

# --- usage: what would be right
says 2 'ingot pack SRC BUNDLE' "$ingot" pack only-one
says 2 '--max-tokens: ' "$ingot" ask -n 0 hello
says 2 "'warm' is not a number" "$ingot" ask --temperature warm hello
says 2 'is not a number from 0 to 2' "$ingot" ask --temperature '0,"n":2' hello
says 2 "'x' is not a whole number" "$ingot" chat --seed x
says 3 'no prompt' "$ingot" ask
says 2 '--key FILE is needed' "$ingot" audit verify README.md
says 2 'prove LOG' "$ingot" audit frob README.md

# --- files of the wrong kind are named
says 0 'fingerprint' "$ingot" keygen publisher "$out/publisher"
says 0 'verifier key' "$ingot" keygen log "$out/log-key"
says 3 'publisher.pub: .*public key; .*private' "$ingot" sign nowhere --key "$out/publisher.pub"
says 3 'log-key.vkey: .*verifier key; .*private' "$ingot" serve --log "$out/l" --log-key "$out/log-key.vkey"
says 3 '^ingot audit: README.md: ' "$ingot" audit verify README.md --key "$out/log-key.vkey"
says 2 '^ingot replay: README.md: ' "$ingot" replay README.md --bundle nowhere --key "$out/log-key.vkey"
echo text >"$out/file"
says 3 'file: a file; --log takes a folder' "$ingot" serve --log "$out/file"
says 2 'No such file' ls "$out/file.key"
chmod 644 "$out/publisher"
says 3 'chmod 600' "$ingot" sign nowhere --key "$out/publisher"

# --- what comes first is first in a pipe, too
says 0 '^key1 default [0-9a-f]*$' sh -c "$ingot keygen api $out/api 2>&1 | head -n 1"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
