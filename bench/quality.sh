#!/bin/sh
# What the default arithmetic costs: perplexity of prose against exact arithmetic with a float32
# cache, and the mean KL divergence of the two. Prints one JSON object; fails when the perplexity
# moves by more than 0.5 % (QUALITY_PERCENT) or fewer tokens were scored than asked for.
#
#   bench/quality.sh                 20,480 tokens of Debian's developers-reference (its package is
#                                    unpacked into build/quality, not installed)
#   bench/quality.sh FILE TOKENS     of another text
set -e
dir=build/quality
bundle=$dir/bundle
text=${1:-$dir/prose.txt}
tokens=${2:-20520} # the first token of each window of 512 is not scored
percent=${QUALITY_PERCENT:-0.5}
mkdir -p $dir

if [ ! -f "$text" ]; then
    (cd $dir && apt-get download -q developers-reference >/dev/null)
    dpkg-deb -x $dir/developers-reference_*.deb $dir/unpacked
    # Without the table of contents and the indentation of chapters.
    zcat $dir/unpacked/usr/share/developers-reference/developers-reference.txt.gz |
        sed '1,/^1\. Scope/d; s/^  *//' >"$text"
fi
[ -f build/demo-model.gguf ] || ./setup.sh --model
if [ ! -f $bundle/model/config.json ] || [ build/ingot -nt $bundle/model/config.json ]; then
    rm -rf $bundle $bundle.partial
    build/ingot pack --no-known-answer build/demo-model.gguf $bundle >/dev/null 2>&1
fi

result=$(build/ingot perplexity -m $bundle --against exact -n "$tokens" --json "$text")
echo "$result"
echo "$result" | jq -e --argjson most "$percent" --argjson n "$tokens" \
    '(.change_percent | fabs) <= $most and .tokens >= $n * 511 / 512 - 1' >/dev/null || {
    echo "quality: outside of $percent %, or too few tokens" >&2
    exit 1
}
