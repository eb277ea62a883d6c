#!/bin/sh
# check.sh: checks an answer against its receipt with openssl, xxd, sha256sum, base64 and awk alone.
#
#   sh check.sh RECEIPT LOG.vkey ANSWER [REQUEST [CHOICE]]
#
# ANSWER is the text as the client got it, nothing added; REQUEST the raw body that was sent ("" to skip);
# CHOICE the index of the choice, default 0. LOG.vkey is the log's public key and must have come to you by
# another way than the receipt. Exit 0: this log says, under its key, that this model gave this answer.
set -eu
LC_ALL=C
export LC_ALL
fail() { echo "check.sh: FAILED: $*" >&2; exit 1; }
[ $# -ge 3 ] || { sed -n '4,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
receipt=$1 vkey=$2 answer=$3 request=${4:-} choice=${5:-0}
for f in "$receipt" "$vkey" "$answer" ${request:+"$request"}; do
    [ -f "$f" ] || fail "$f: no such file"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
hash() { sha256sum | cut -d ' ' -f 1; }
node() { printf '01%s%s' "$1" "$2" | xxd -r -p | hash; } # H(01 || left || right)

# 1. The log's key: NAME+HASH+base64(01 || 32 bytes).
line=$(head -n 1 "$vkey")
name=${line%%+*}
rest=${line#*+}
key_id=${rest%%+*}
typed=$(printf %s "${rest#*+}" | base64 -d 2>/dev/null | xxd -p | tr -d '\n')
[ "${#typed}" = 66 ] && [ "${typed%"${typed#??}"}" = 01 ] || fail "$vkey: not an Ed25519 log key"
pub=${typed#??}
[ "$({ printf '%s\n' "$name"; printf %s "$typed" | xxd -r -p; } | hash | cut -c 1-8)" = "$key_id" ] ||
    fail "$vkey: the key's hash is wrong"
printf '302a300506032b6570032100%s' "$pub" | xxd -r -p >"$tmp/pub.der"

# 2. The checkpoint: origin, size, root, signed with Ed25519 over exactly these lines.
[ "$(head -n 1 "$receipt")" = ingot-receipt/v1 ] || fail "$receipt: not a receipt"
awk 'seen { print } /^$/ { seen = 1 }' "$receipt" >"$tmp/note"
awk '/^$/ { exit } { print }' "$tmp/note" >"$tmp/text"
origin=$(sed -n 1p "$tmp/text")
size=$(sed -n 2p "$tmp/text")
root=$(sed -n 3p "$tmp/text" | base64 -d 2>/dev/null | xxd -p | tr -d '\n')
[ "$origin" = "$name" ] || fail "the checkpoint is of log $origin, the key is for $name"
case $size in '' | *[!0-9]*) fail "the checkpoint's size is no number" ;; esac
[ "${#root}" = 64 ] || fail "the checkpoint's root is no hash"
sig=$(awk -v name="$name" 'seen && $1 == "\342\200\224" && $2 == name { print $3; exit } /^$/ { seen = 1 }' \
    "$tmp/note" | base64 -d 2>/dev/null | xxd -p | tr -d '\n')
[ "${sig%"${sig#????????}"}" = "$key_id" ] && [ "${#sig}" = 136 ] ||
    fail "the checkpoint has no signature by $name"
printf %s "${sig#????????}" | xxd -r -p >"$tmp/sig"
openssl pkeyutl -verify -pubin -keyform DER -inkey "$tmp/pub.der" -rawin -in "$tmp/text" \
    -sigfile "$tmp/sig" >/dev/null 2>&1 || fail "the checkpoint's signature does not verify"

# 3. Three leaves and their inclusion (RFC 9162, 2.1.3.2).
leaf_line() { awk -v w="$1" '$0 == "" { exit } $1 == "leaf" { on = ($2 == w); n = 0 } on { print; n++ }' "$receipt"; }
include() { # name
    leaf_line "$1" >"$tmp/$1"
    index=$(sed -n "1s/^leaf $1 //p" "$tmp/$1")
    case $index in '' | *[!0-9]*) fail "$receipt: no $1 leaf" ;; esac
    sed -n 2p "$tmp/$1" | tr -d '\n' >"$tmp/$1.leaf"
    r=$({ printf '\000'; cat "$tmp/$1.leaf"; } | hash)
    echo "$r" >"$tmp/$1.hash"
    echo "$index" >"$tmp/$1.index"
    [ "$index" -lt "$size" ] || fail "$1: index $index is not below the signed size $size"
    fn=$index sn=$((size - 1))
    for p64 in $(sed 1,2d "$tmp/$1"); do
        p=$(printf %s "$p64" | base64 -d 2>/dev/null | xxd -p | tr -d '\n')
        [ "${#p}" = 64 ] && [ "$sn" -gt 0 ] || fail "$1: not an inclusion proof"
        if [ $((fn % 2)) = 1 ] || [ "$fn" = "$sn" ]; then
            r=$(node "$p" "$r")
            while [ $((fn % 2)) = 0 ] && [ "$fn" -gt 0 ]; do fn=$((fn / 2)) sn=$((sn / 2)); done
        else
            r=$(node "$r" "$p")
        fi
        fn=$((fn / 2)) sn=$((sn / 2))
    done
    [ "$sn" = 0 ] && [ "$r" = "$root" ] || fail "the $1 leaf is not in the signed log"
    case $(cat "$tmp/$1.leaf") in "{\"v\":1,\"type\":\"$1\","*) ;; *) fail "the $1 leaf is no $1 event" ;; esac
}
include load
include admit
include done

# 4. done names this admit, admit this load and its model.
ref() { sed -n "s/.*\"$2\":{\"i\":\([0-9]*\),\"h\":\"\([0-9a-f]*\)\"}.*/\1 \2/p" "$tmp/$1.leaf"; }
model_root() { sed -n 's/.*"model":{"root":"\([0-9a-f]*\)".*/\1/p' "$tmp/$1.leaf"; }
request_id() { sed -n 's/.*"req":"\([^"]*\)".*/\1/p' "$tmp/$1.leaf"; }
[ "$(request_id done)" = "$(request_id admit)" ] || fail "done and admit have different request ids"
[ "$(ref done admit)" = "$(cat "$tmp/admit.index") $(cat "$tmp/admit.hash")" ] || fail "done names another admit"
[ "$(ref admit load)" = "$(cat "$tmp/load.index") $(cat "$tmp/load.hash")" ] || fail "admit names another load"
model=$(model_root load)
[ -n "$model" ] && [ "$(model_root admit)" = "$model" ] || fail "admit and load name different models"

# 5. The texts behind the commitments: SHA-256(50 || HMAC-SHA256(secret, name) || bytes).
secret=$(sed -n '2s/^secret //p' "$receipt")
[ "$secret" != none ] || fail "this receipt has no secret: it proves what was logged, but opens no text"
# openssl refuses a key that is not hex, and an empty salt would let SALT || TEXT pass as the text.
case $secret in *[!0-9a-f]*) secret= ;; esac
[ "${#secret}" = 64 ] || fail "$receipt: the secret is no key of 64 hex digits"
commitment() { # name file
    salt=$(printf %s "$1" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$secret" | sed 's/.*= *//')
    { printf '50%s' "$salt" | xxd -r -p; cat "$2"; } | hash
}
logged=$(sed -n 's/.*"out":\[\([^]]*\)\].*/\1/p' "$tmp/done.leaf" | tr '{' '\n' |
    sed -n 's/^"commit":"\([0-9a-f]*\)".*/\1/p' | sed -n "$((choice + 1))p")
[ -n "$logged" ] || fail "the log holds no answer $choice for this request"
[ "$(commitment "out.$choice" "$answer")" = "$logged" ] || fail "$answer is not the answer that was logged"
if [ -n "$request" ]; then
    logged=$(sed -n 's/.*"in":{"commit":"\([0-9a-f]*\)".*/\1/p' "$tmp/admit.leaf")
    [ "$(commitment in.body "$request")" = "$logged" ] || fail "$request is not the request that was logged"
fi
echo "OK: answer $choice of request $(request_id done), log $name, size $size"
echo "model root $model"
