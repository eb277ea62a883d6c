"""Writes tests/golden/lm/tokenizers/regexes.json: what Oniguruma, inside `tokenizers`, matches.

    pip install tokenizers==0.23.3
    python3 tests/golden/scripts/make_tokenizer_regexes.py

classes: pattern -> SHA-256 of all code points (uint32, little endian) that it matches alone
(not \\p{Mn}: PCRE2 still counts U+1171E; no (?i:ß): PCRE2 folds no character to two)
matches: pattern -> SHA-256 of the first 500 golden strings with every match replaced by U+E000, NUL-joined
"""
import hashlib
import json
import struct

from tokenizers import Regex, normalizers, pre_tokenizers

OUT = "tests/golden/lm/tokenizers"
CLASSES = [r"\p{%s}" % c for c in
           "L Lu Ll Lt Lm Lo M Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co Letter Mark Number "
           "Punctuation Symbol Separator Alphabetic Alpha Alnum Digit Word Space Any ^L Han Hiragana Katakana Hangul Latin Cyrillic Greek "
           "Arabic Hebrew Thai Devanagari Bengali Tamil Telugu Georgian Armenian Khmer Lao Myanmar Tibetan Mongolian Ethiopic".split()]
CLASSES += [r"\P{L}", r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\h", r"\H", r"[\s]", r"[\S]", r"[\w]", r"[^\w]", r"[\d]", r"[\h]", r"[[:space:]]", r"[[:alpha:]]",
            r"[[:alnum:]]", r"[[:digit:]]", r"[[:word:]]", r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r".", r"(?m:.)", r"(?i:s)", r"(?i:k)",
            r"(?i:[a-z])", r"[一-龥぀-ゟ゠-ヿ]"]
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
MATCHES = [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
           CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
           CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
           r"\p{L}+", r"\s+", r"[^\s]+", r"\w+|[^\w\s]+", r"(?i:foo|bar)", r"(?i)FOO|the", r"\b", r"\B", r"\d{1,3}", r"\d{1,3}+", r"\d{2}{2}", r"[a-z]{2,}?",
           r"[a-z]{2,4}?", r"(?<=\d)(?=(?:\d{3})+(?!\d))", r"^.", r".$", r"^", r"$", r".", r"(?m:.)+", r"\S+", r"[^\S\n]+", r"\P{N}+", r" ?[^(\s|.,!?…。，、।۔،)]+",
           r"\p{Lu}\p{Ll}*", r"(?>a+)b", r"x*", r"x*?", r"(?:)", r"a|", r"\A.", r".\z", r".\Z", r"[\w-]+", r"[\s-]+", r"[+\-*/]", r"[a\-z]", r"[-a]", r"[a-]", r"[.$|()\]]",
           r"\x{4e00}|\u4e8e", r"\x41", r"\t|\n|\r", r"(a)(b)?", r"{", r"a{,2}", r"a{2}", r"a{b", r"\v|\f|\e|\a", r"[\v\f\b]", r"(?!\s)\S", r"(?<!\w)\w", r"\w\b",
           r"(?:ab|a)+c?", r"(?=a)", r"[ -~]+", r"[^ -~]+", r"\/|\-|\#|\ ", r"▁+", r"(?:'[sS]|'[tT]|'[rR][eE])", r"(?-i:a)B"]


def code_points(pattern):
    cps = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    text, out, prev = "".join(map(chr, cps)), [], 0
    for _, (a, b) in pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str(text):
        out += cps[prev:a]
        prev = b
    out += cps[prev:]
    return hashlib.sha256(struct.pack(f"<{len(out)}I", *out)).hexdigest()


def main():
    source = open("tests/golden/scripts/make_tokenizers.py", encoding="utf-8").read().replace("\nmain()\n", "\n")
    scope = {}
    exec(compile(source, "make_tokenizers.py", "exec"), scope)
    parts = json.load(open(f"{OUT}/strings.json", encoding="utf-8"))
    texts = scope["strings"](parts)[:500]
    matches = {}
    for p in MATCHES:
        n = normalizers.Replace(Regex(p), "\ue000")
        matches[p] = hashlib.sha256("\0".join(n.normalize_str(t) for t in texts).encode()).hexdigest()
    with open(f"{OUT}/regexes.json", "w", encoding="utf-8") as f:
        json.dump({"classes": {p: code_points(p) for p in CLASSES}, "matches": matches}, f, ensure_ascii=False, indent=0)
        f.write("\n")


main()
