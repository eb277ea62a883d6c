#!/bin/sh
# Other people's tools look at what Ingot wrote, and Ingot at what they wrote: model_signing from PyPI, Go's
# golang.org/x/mod/sumdb, and openssl, jq, xxd, sha256sum with sh. Ends with "N passed, N failed".
B=${B:-build}
out=$PWD/$B/outsiders
rm -rf "$out"
mkdir -p "$out"
passed=0 failed=0
ok() { # what command...: must succeed
    what=$1; shift
    if "$@" >"$out/log.txt" 2>&1; then passed=$((passed + 1)); echo "ok    $what"
    else failed=$((failed + 1)); echo "FAIL  $what"; sed 's/^/      /' "$out/log.txt" | tail -n 8; fi
}
no() { # what words command...: must fail, saying words
    what=$1 words=$2; shift 2
    if "$@" >"$out/log.txt" 2>&1; then failed=$((failed + 1)); echo "FAIL  $what: was accepted"
    elif grep -q -e "$words" "$out/log.txt"; then passed=$((passed + 1)); echo "ok    $what"
    else failed=$((failed + 1)); echo "FAIL  $what: no \"$words\" in:"; sed 's/^/      /' "$out/log.txt" | tail -n 8; fi
}

a=$out/a
INGOT_ARTIFACTS=$a "$B/tests/audit/test_artifacts" >"$out/make.txt" 2>&1 || { cat "$out/make.txt"; echo "0 passed, 1 failed"; exit 1; }

# --- model_signing (PyPI)
./setup.sh --venv signing model-signing==1.1.1 pyopenssl==26.4.0 || exit 1
ms=$PWD/build/venv-signing/bin/model_signing
verify_theirs() { "$ms" verify key "$1/model" --signature "$1/model.sig" --public_key "$2"; }
ok 'model_signing verifies our signature' verify_theirs "$a/bundle" "$a/publisher.pub"
cp -r "$a/bundle" "$out/changed"
printf 'X' | dd of="$out/changed/model/model.safetensors" bs=1 seek=100 conv=notrunc 2>/dev/null
no 'model_signing refuses a changed file' 'model.safetensors' verify_theirs "$out/changed" "$a/publisher.pub"

mkdir "$out/theirs"
cp -r "$a/bundle/model" "$out/theirs/model"
openssl ecparam -name prime256v1 -genkey -noout 2>/dev/null | openssl pkcs8 -topk8 -nocrypt >"$out/theirs/k.pem"
openssl pkey -in "$out/theirs/k.pem" -pubout >"$out/theirs/publisher.pub"
ok 'model_signing signs' "$ms" sign key "$out/theirs/model" --private_key "$out/theirs/k.pem" \
    --signature "$out/theirs/model.sig"
root=$(jq -r .dsseEnvelope.payload "$out/theirs/model.sig" | base64 -d | jq -r '.subject[0].digest.sha256')
ok 'model_signing computes our root digest' test "$root" = "$(cat "$a/root")"
ok 'we verify the signature of model_signing' env INGOT_THEIRS="$out/theirs" "$B/tests/audit/test_artifacts"
ok 'verify.sh verifies the signature of model_signing' sh "$a/bundle/verify.sh" "$out/theirs/publisher.pub" "$out/theirs"

# --- sh on the bundle
v=$a/bundle/verify.sh
ok 'verify.sh accepts the bundle' sh "$v" "$a/publisher.pub"
no 'verify.sh refuses another key' 'signed by key' sh "$v" "$out/theirs/publisher.pub"
no 'verify.sh names a changed file' 'model.safetensors' sh "$v" "$a/publisher.pub" "$out/changed"
cp -r "$a/bundle" "$out/extra" && : >"$out/extra/model/more"
no 'verify.sh names an extra file' 'not covered.*more' sh "$v" "$a/publisher.pub" "$out/extra"
cp -r "$a/bundle" "$out/less" && rm "$out/less/model/empty"
no 'verify.sh names a missing file' 'missing: empty' sh "$v" "$a/publisher.pub" "$out/less"
cp -r "$a/bundle" "$out/link" && rm "$out/link/model/empty" && ln -s config.json "$out/link/model/empty"
no 'verify.sh refuses a symlink' 'not a regular file' sh "$v" "$a/publisher.pub" "$out/link"
sed 's/"sig":"M/"sig":"N/' "$a/bundle/model.sig" >"$out/less/model.sig"
no 'verify.sh refuses a changed signature' 'does not verify' sh "$v" "$a/publisher.pub" "$out/less"

# --- sh on receipts
check() { sh "$a/check.sh" "$@"; }
for r in early first last; do
    ok "check.sh accepts receipt-$r" check "$a/receipt-$r" "$a/log.vkey" "$a/answer.txt" "$a/request.json"
done
printf 'Rome.' >"$out/rome.txt"
no 'check.sh refuses another answer' 'not the answer' check "$a/receipt-first" "$a/log.vkey" "$out/rome.txt"
no 'check.sh refuses another request' 'not the request' check "$a/receipt-first" "$a/log.vkey" "$a/answer.txt" "$out/rome.txt"
no 'check.sh refuses a choice that is not there' 'no answer 1' check "$a/receipt-first" "$a/log.vkey" "$a/answer.txt" '' 1
sed 's/^ingot.test/ingot.tess/' "$a/log.vkey" >"$out/other.vkey"
no 'check.sh refuses another log key' 'hash is wrong' check "$a/receipt-first" "$out/other.vkey" "$a/answer.txt"
tamper() { sed "$1" "$a/receipt-first" >"$out/bad"; check "$out/bad" "$a/log.vkey" "$a/answer.txt"; }
no 'check.sh refuses a changed done' 'done leaf is not in' tamper 's/"http":200/"http":201/'
no 'check.sh refuses a changed admit' 'admit leaf is not in' tamper 's/"top_k":0/"top_k":1/'
no 'check.sh refuses a changed load' 'load leaf is not in' tamper 's/test-model/best-model/'
no 'check.sh refuses a changed size' 'signature does not verify' tamper 's/^60[0-9]$/700/'
no 'check.sh refuses another index' 'leaf is not in' tamper 's/^leaf admit 2$/leaf admit 3/'
no 'check.sh refuses a changed secret' 'not the answer' tamper '2s/07/08/'
no 'check.sh refuses a secret that is cut off' 'no key' tamper '2s/.$//'
# Without a salt the bytes SALT || TEXT have the commitment of TEXT: they must not pass as the answer.
secret=$(sed -n '2s/^secret //p' "$a/receipt-first")
salt=$(printf out.0 | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$secret" | sed 's/.*= *//')
{ printf %s "$salt" | xxd -r -p; cat "$a/answer.txt"; } >"$out/salted.txt"
sed '2s/[0-9a-f]\{64\}$/'"$(printf '%064d' 0 | tr 0 z)/" "$a/receipt-first" >"$out/bad"
no 'check.sh refuses a secret that openssl cannot use' 'no key' check "$out/bad" "$a/log.vkey" "$out/salted.txt"
lines=$(wc -l <"$a/receipt-early")
i=0 unseen=
while [ $i -lt "$lines" ]; do # one character of every line, and every line left out
    i=$((i + 1))
    awk -v n=$i 'NR == n && $0 != "" { c = substr($0, length($0), 1); sub(/.$/, c == "A" ? "B" : "A") } { print }' \
        "$a/receipt-early" >"$out/bad"
    cmp -s "$out/bad" "$a/receipt-early" || { check "$out/bad" "$a/log.vkey" "$a/answer.txt" >/dev/null 2>&1 && unseen="$unseen $i"; }
    sed "${i}d" "$a/receipt-early" >"$out/bad"
    check "$out/bad" "$a/log.vkey" "$a/answer.txt" >/dev/null 2>&1 && unseen="$unseen -$i"
done
# Openings that the receipt carries for convenience are not needed for the answer, so check.sh passes them over.
opening=$(grep -n '^open ' "$a/receipt-early" | cut -d : -f 1)
ok 'check.sh sees a change in every line' test "$unseen" = " $opening -$opening"

# --- Go
gocheck=$out/gocheck
ok 'gocheck builds' env GO111MODULE=off GOPATH=/usr/share/gocode GOFLAGS=-mod=mod GOCACHE="$PWD/build/go-cache" \
    go build -o "$gocheck" tests/audit/gocheck/main.go
go_check() { "$gocheck" "$1" "$a/log.vkey" "$a/old.checkpoint" "$a/split-receipt-early" "$a/split-receipt-first" "$a/split-receipt-last"; }
ok 'Go reads checkpoint, tiles, entries, proofs' go_check "$a/log"
cp -r "$a/log" "$out/log2"
printf 'X' | dd of="$out/log2/tile/entries/001" bs=1 seek=500 conv=notrunc 2>/dev/null
no 'Go refuses a changed entry' 'not the leaf' go_check "$out/log2"
cp -r "$a/log" "$out/log3"
printf 'X' | dd of="$out/log3/tile/0/000" bs=1 seek=500 conv=notrunc 2>/dev/null
no 'Go refuses a changed tile' 'invalid transparency proof' go_check "$out/log3"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
