#!/bin/sh
# demo.sh: a real model through all nine stages, then proofs that somebody else's tools accept. Run by `make demo` from the repository's root.
# Leaves demo/ (bundle, keys, log, request, answer, receipt, check.sh, README), so that every command it prints can be typed again; a second
# run starts afresh and needs no network.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
ingot=${INGOT:-build/ingot}
d=demo
server=

say() { printf '%s\n' "$*"; }
fail() { say "demo: FAILED: $*" >&2; exit 1; }
stop_server() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || :
    [ -z "$server" ] || wait "$server" 2>/dev/null || :
    server=
}
trap stop_server EXIT
trap 'exit 130' INT TERM
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f", b - a }'; }
calc() { awk "BEGIN { $1 }"; }
# line NUMBER NAME SECONDS "what happened" "limit" "share of it"
line() { printf '%s %-9s %7.3f s  %-46s %-34s %s\n' "$1" "$2" "$3" "$4" "$5" "$6"; }

# start_server LOG-DIR: waits until it is ready; sets server, port
start_server() {
    rm -f $d/port $d/ready.json
    $ingot serve --bundle $d/bundle --trust $d/keys/publisher.pub --log "$1" --log-key $d/keys/log --listen 127.0.0.1:0 --port-file $d/port \
        --context 2048 --kv-tokens 8192 --allow-writable --json >$d/ready.json 2>$d/server.err &
    server=$!
    i=0
    while [ ! -s $d/port ]; do
        kill -0 $server 2>/dev/null || { cat $d/server.err >&2; fail "the server did not start"; }
        i=$((i + 1)); [ $i -lt 600 ] || fail "the server was not ready within a minute"
        sleep 0.1
    done
    port=$(cat $d/port)
}

./setup.sh --model
./setup.sh --venv signing model-signing==1.1.1 pyopenssl==26.4.0
rm -rf $d
mkdir -p $d/keys

say "Measuring this machine ..."
$ingot bench --machine $d --json >$d/machine.json
m() { jq -r ".$1" $d/machine.json; }
say "$(m cpu), $(m isa), $(m threads) threads: memory $(m read_gb_s) GB/s, SHA-256 $(m sha256_gb_s) GB/s, int8 $(m int8_gop_s) GOP/s, durable write $(m sync_us) us"
say ""

printf '%-11s %9s  %-46s %-34s %s\n' stage time "what happened" "limit that governs" "how near to this machine's limit"
# --- 1 package
$ingot keygen publisher $d/keys/publisher >$d/keys/README
$ingot keygen log $d/keys/log --name demo.example/log >>$d/keys/README
t=$(now)
$ingot pack build/demo-model.gguf $d/bundle --name smollm2-135m-instruct --license build/demo-model.LICENSE --json >$d/pack.json
packed=$(since "$t")
sign=$($ingot sign $d/bundle --key $d/keys/publisher --json)
bytes=$(jq -r .bytes $d/pack.json)
line 1 package "$(calc "printf \"%.3f\", $packed + $(printf %s "$sign" | jq -r .seconds)")" "$(calc "printf \"%.1f MB packed at %.2f bits, signed\", $bytes / 1e6, $(jq -r .bits_per_weight $d/pack.json)")" \
    "storage and verification" "$(calc "printf \"signing: %.0f %% of SHA-256\", 100 * $bytes / 1e9 / $(printf %s "$sign" | jq -r .seconds) / $(m sha256_gb_s)")"

# --- 2 load, 3 warm
start_server $d/log
r() { jq -r ".$1" $d/ready.json; }
line 2 load "$(calc "printf \"%.3f\", $(r load_us) / 1e6")" "$(calc "printf \"%.1f MB verified, mapped, bound\", $(r hash_bytes) / 1e6")" \
    "storage and verification" "$(calc "printf \"%.0f %% of SHA-256\", 100 * $(r hash_bytes) / 1e3 / $(r parts_us.hash) / $(m sha256_gb_s)")"
line 3 warm "$(calc "printf \"%.3f\", $(r warm_us) / 1e6")" "known answer right; ready" "storage, then arithmetic" \
    "$(calc "printf \"%.1f MB touched\", $(r touch_bytes) / 1e6")"

# --- 4 to 9: one request
cat >$d/request.json <<'JSON'
{"model":"smollm2-135m-instruct","messages":[{"role":"user","content":"Explain in a few sentences why the sky is blue."}],"max_tokens":96,"temperature":0,"seed":1}
JSON
t=$(now)
curl -sS --fail-with-body "http://127.0.0.1:$port/v1/chat/completions" -H 'Content-Type: application/json' --data-binary @$d/request.json >$d/answer.json || { cat $d/answer.json; fail "the request was refused"; }
asked=$(since "$t")
jq -j '.choices[0].message.content' $d/answer.json >$d/answer.txt
jq -j '.audit.receipt' $d/answer.json >$d/receipt
curl -sS "http://127.0.0.1:$port/limits" >$d/limits.json
s() { jq -r ".stages[$(($1 - 1))].$2" $d/limits.json; }
done_json=$(grep -A1 '^leaf done' $d/receipt | tail -1)
u() { printf %s "$done_json" | jq -r ".us.$1"; }
prompt=$(jq -r .usage.prompt_tokens $d/answer.json)
generated=$(jq -r .usage.completion_tokens $d/answer.json)
parameters=$(jq -r .model.parameters $d/limits.json)
line 4 admit "$(calc "printf \"%.3f\", $(s 4 us) / 1e6")" "audit event $(jq -r .audit.admit $d/answer.json) durable before any computation" "memory capacity (queue)" "1 of 256 places"
line 5 schedule "$(calc "printf \"%.3f\", ($(u queue) - $(s 4 us) > 0 ? $(u queue) - $(s 4 us) : 0) / 1e6")" "$prompt tokens; pages for $(s 5 units) reserved" "memory capacity for the KV cache" \
    "$(calc "printf \"%.1f %% of %d tokens\", 100 * $(s 5 units) / (64 * $(jq -r .kv.pages $d/limits.json)), 64 * $(jq -r .kv.pages $d/limits.json)")"
line 6 prefill "$(calc "printf \"%.3f\", $(u prefill) / 1e6")" "$(calc "printf \"%d tokens, %.0f tokens/s\", $prompt, $prompt / ($(u prefill) / 1e6)")" "arithmetic" \
    "$(calc "printf \"%.0f %% of %.0f GOP/s\", 100 * 2 * $parameters * $prompt / 1e3 / $(u prefill) / $(m int8_gop_s), $(m int8_gop_s)")"
line 7 decode "$(calc "printf \"%.3f\", $(u decode) / 1e6")" "$(calc "printf \"%d tokens, %.0f tokens/s\", $generated, ($generated - 1) / ($(u decode) / 1e6)")" "memory bandwidth" \
    "$(calc "printf \"%.0f %% of %.1f GB/s\", 100 * $(jq -r .model.weight_bytes $d/limits.json) * ($generated - 1) / 1e3 / $(u decode) / $(m read_gb_s), $(m read_gb_s)")"
line 8 deliver "$(calc "printf \"%.3f\", ($asked - $(u total) / 1e6 > 0 ? $asked - $(u total) / 1e6 : 0)")" "$(wc -c <$d/answer.txt) bytes of text" "none" "-"
line 9 record "$(calc "printf \"%.3f\", $(s 9 us) / 1e6")" "event $(jq -r .audit.done $d/answer.json) durable, checkpoint, receipt" "storage and verification" \
    "$(calc "printf \"one durable write is %.0f %%\", 100 * $(m sync_us) / ($(s 9 us) + 1)")"
say ""
say "Q: $(jq -r '.messages[0].content' $d/request.json)"
say "A: $(cat $d/answer.txt)"
say ""

# --- proofs
cp $d/keys/log.vkey $d/log.vkey
$ingot audit script $d/check.sh
proof() { printf 'PROOF %-58s %s\n' "$1" "$2"; printf '      $ %s\n' "$3"; }
run() { sh -c "$1" >$d/out 2>&1; }

c="sh $d/check.sh $d/receipt $d/log.vkey $d/answer.txt $d/request.json"
run "$c" || { cat $d/out; fail "$c"; }
proof "this model gave this answer: by openssl and sh alone" "accepted" "$c"

c="sh $d/bundle/verify.sh $d/keys/publisher.pub $d/bundle"
run "$c" || { cat $d/out; fail "$c"; }
proof "the publisher signed this model: by openssl, jq, sha256sum" "accepted" "$c"

c="build/venv-signing/bin/model_signing verify key $d/bundle/model --signature $d/bundle/model.sig --public_key $d/keys/publisher.pub"
run "$c" || { cat $d/out; fail "$c"; }
proof "the same, by another maker's tool (OpenSSF model_signing)" "accepted" "$c"

sed 's/./X/' $d/answer.txt >$d/answer-changed.txt
c="sh $d/check.sh $d/receipt $d/log.vkey $d/answer-changed.txt $d/request.json"
if run "$c"; then fail "a changed answer was accepted"; fi
grep -q 'is not the answer' $d/out || { cat $d/out; fail "the changed answer was rejected for another reason"; }
proof "the answer with one character changed" "rejected" "$c"

cp -rl $d/bundle $d/damaged # the same files but for one
w=$d/damaged/model/model-00001-of-00002.safetensors
rm $w && cp $d/bundle/model/${w##*/} $w
size=$(wc -c <$w)
byte=$(dd if=$w bs=1 skip=$((size / 2)) count=1 2>/dev/null | xxd -p)
printf "$(printf '\\%03o' $((0x$byte ^ 1)))" | dd of=$w bs=1 seek=$((size / 2)) conv=notrunc 2>/dev/null
c="$ingot serve --bundle $d/damaged --trust $d/keys/publisher.pub --log $d/log-damaged --allow-writable --listen 127.0.0.1:0"
if run "$c"; then fail "a damaged model was served"; fi
grep -q 'damaged tensor' $d/out || { cat $d/out; fail "the damaged tensor was not named"; }
proof "the model with one bit of one weight flipped" "refused, not served" "$c"
say "      $(sed -n 's/^ingot serve: //p' $d/out)"

# The biases keep the answer from ending by itself.
curl -sN "http://127.0.0.1:$port/v1/chat/completions" --data-binary '{"messages":[{"role":"user","content":"Count from one to one thousand."}],"max_tokens":800,"stream":true,"logit_bias":{"0":-100,"2":-100}}' >$d/stream 2>/dev/null &
curl_pid=$!
chunks() { grep -c '^data: ' $d/stream 2>/dev/null || :; }
i=0
while n=$(chunks) && [ "${n:-0}" -lt 5 ]; do
    i=$((i + 1))
    [ $i -lt 600 ] || fail "no stream"
    sleep 0.05
done
kill -9 $server
wait $server 2>/dev/null || :
wait $curl_pid 2>/dev/null || :
server=
if grep -q 'DONE' $d/stream; then fail "a killed stream ended as if it were whole"; fi
start_server $d/log
stop_server
c="$ingot audit verify $d/log --key $d/log.vkey"
run "$c" || { cat $d/out; fail "$c"; }
recovered=$($ingot audit show $d/log --key $d/log.vkey | grep -c '"status":"recovered"' || :)
[ "$recovered" -eq 1 ] || fail "expected one recovered request, found $recovered"
proof "server killed (-9) in mid-answer, restarted" "the log says so, and verifies" "$c"

c="$ingot replay $d/receipt --bundle $d/bundle --trust $d/keys/publisher.pub --key $d/log.vkey"
run "$c" || { cat $d/out; fail "$c"; }
proof "the recorded answer computed again in a new process" "$(tail -1 $d/out)" "$c"

rm -f $d/out $d/stream $d/port $d/ready.json $d/server.err $d/pack.json $d/limits.json $d/machine.json
cat >$d/README <<EOF
What make demo left here:
  bundle/        the packed and signed model: model/, model.sig, verify.sh, VERIFY.md
  keys/          publisher (private), publisher.pub; log (private), log.vkey
  log/           the audit log: segments, tiles, checkpoint
  request.json   the request as it was sent
  answer.json    the answer as it came; answer.txt: its text
  receipt        proof of the answer; log.vkey: the log's public key
  check.sh       checks the receipt: sh check.sh receipt log.vkey answer.txt request.json
  answer-changed.txt, damaged/   the same answer with one character changed, the same bundle with
                 one bit flipped; log-damaged/: the log, with a key of its own, of the server that refused it
EOF
say ""
say "Each command can be typed again; what it needs is in $d/ (see $d/README). To read what a receipt says:"
say "  $ingot audit verify $d/receipt --key $d/log.vkey --answer $d/answer.txt --request $d/request.json"
say "To talk with the model:"
say "  $ingot serve --bundle $d/bundle --trust $d/keys/publisher.pub --log $d/log --log-key $d/keys/log --allow-writable & sleep 5; $ingot chat --temperature 0.3; kill %1"
