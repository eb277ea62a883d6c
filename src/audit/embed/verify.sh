#!/bin/sh
# verify.sh: checks a signed model bundle with openssl, jq and sha256sum alone.
#
#   sh verify.sh TRUSTED.pub [BUNDLE]        BUNDLE: the folder with model/ and model.sig; default: this one
#
# TRUSTED.pub is the publisher's public key. It must have come to you by another way than the bundle: a key
# that travels with what it signs proves nothing. Exit 0: every file is signed and unchanged.
set -eu
LC_ALL=C
export LC_ALL
fail() { echo "verify.sh: FAILED: $*" >&2; exit 1; }
[ $# -ge 1 ] || { sed -n '4,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
key=$1
bundle=${2:-$(dirname "$0")}
sig=$bundle/model.sig
model=$bundle/model
[ -f "$key" ] || fail "$key: no such key file"
[ -f "$sig" ] || fail "$sig is missing"
[ -d "$model" ] || fail "$model is missing"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# 1. Who signed, and with what.
jq -e '.mediaType == "application/vnd.dev.sigstore.bundle.v0.3+json"
    and (.dsseEnvelope.signatures | length) == 1
    and .dsseEnvelope.payloadType == "application/vnd.in-toto+json"' "$sig" >/dev/null 2>&1 ||
    fail "$sig: not a model signature with one signer"
hint=$(jq -r '.verificationMaterial.publicKey.hint // ""' "$sig")
mine=$(openssl pkey -pubin -in "$key" 2>/dev/null | sha256sum | cut -d ' ' -f 1)
[ "$hint" = "$mine" ] || fail "signed by key $hint, $key is $mine"

# 2. The signature over the statement: DSSE pre-authentication encoding, ECDSA P-256, SHA-256.
jq -r '.dsseEnvelope.payload' "$sig" | base64 -d >"$tmp/payload" || fail "$sig: payload is not base64"
jq -r '.dsseEnvelope.signatures[0].sig' "$sig" | base64 -d >"$tmp/sig" || fail "$sig: sig is not base64"
n=$(wc -c <"$tmp/payload" | tr -d ' ')
{ printf 'DSSEv1 28 application/vnd.in-toto+json %s ' "$n"; cat "$tmp/payload"; } >"$tmp/pae"
openssl dgst -sha256 -verify "$key" -signature "$tmp/sig" "$tmp/pae" >/dev/null 2>&1 ||
    fail "$sig: the signature does not verify"

# 3. The statement: one subject, plain files, unique names, the root of the listed digests.
jq -e '._type == "https://in-toto.io/Statement/v1"
    and .predicateType == "https://model_signing/signature/v1.0"
    and (.subject | length) == 1
    and .predicate.serialization.method == "files"
    and .predicate.serialization.hash_type == "sha256"
    and (.predicate.serialization.ignore_paths // []) - [".git", ".gitattributes", ".github", ".gitignore"] == []
    and (.predicate.resources | length) > 0
    and ([.predicate.resources[].name] | length == (unique | length))
    and all(.predicate.resources[]; .algorithm == "sha256"
        and (.digest | test("^[0-9a-f]{64}$"))
        and (.name | (test("[\\x00-\\x1f\\x7f\\\\]") or test("(^|/)\\.{0,2}(/|$)")) | not))' \
    "$tmp/payload" >/dev/null 2>&1 || fail "$sig: the statement breaks a rule of VERIFY.md"
root=$(jq -r '.subject[0].digest.sha256' "$tmp/payload")
jq -r '.predicate.resources[].digest' "$tmp/payload" | tr -d '\n' >"$tmp/hex"
# Raw bytes from hex with stock tools: octal escapes for printf.
sed 's/../0x& /g' "$tmp/hex" | tr ' ' '\n' | sed '/^$/d' >"$tmp/bytes"
while read -r b; do printf '%03o\n' "$b"; done <"$tmp/bytes" | sed 's/^/\\/' | tr -d '\n' >"$tmp/octal"
printf "$(cat "$tmp/octal")" >"$tmp/raw"
[ "$(sha256sum <"$tmp/raw" | cut -d ' ' -f 1)" = "$root" ] || fail "$sig: the root is not that of the files"

# 4. The files: no symlink, nothing extra, nothing missing, every digest.
links=$(find "$model" ! -type f ! -type d)
[ -z "$links" ] || fail "not a regular file: $links"
jq -r '.predicate.resources[].name' "$tmp/payload" | sort >"$tmp/signed"
(cd "$model" && find . -type f | sed 's|^\./||' | sort) >"$tmp/present"
extra=$(comm -13 "$tmp/signed" "$tmp/present")
[ -z "$extra" ] || fail "not covered by the signature: $extra"
missing=$(comm -23 "$tmp/signed" "$tmp/present")
[ -z "$missing" ] || fail "signed, but missing: $missing"
jq -r '.predicate.resources[] | .digest + "  " + .name' "$tmp/payload" >"$tmp/sums"
(cd "$model" && sha256sum -c --strict --quiet "$tmp/sums") ||
    fail "the files named above are not those that were signed"
echo "OK: $(wc -l <"$tmp/sums" | tr -d ' ') files, root $root, signed by key $mine"
