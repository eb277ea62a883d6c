"""Writes tests/golden/lm/tokenizers/: small tokenizers that together use every component we read, the
strings they are tried on, and what the `tokenizers` library makes of them.

    pip install tokenizers==0.23.3 gguf
    python3 tests/golden/scripts/make_tokenizers.py [--train] [SmolLM2.gguf]

The trainers break ties at random, so what is trained already is kept unless --train is given; all the
rest is the same at every run.

NAME.json       a tokenizer, trained here on the corpus in strings.json or written by hand
strings.json    what the 10,000 strings are put together from (make_string here and in
                tests/lm/tokenizer_strings.h do the same with the same generator)
NAME.digests    per string 4 bytes: the start of SHA-256 of what encoding and decoding give
NAME.sample     ids of the first 60 strings, a line each
spm.vocab       a SentencePiece vocabulary as a GGUF has it
smollm2.vocab   the vocabulary of SmolLM2 from its GGUF (only with an argument): specials, alphabet, merges
"""
import base64
import hashlib
import json
import os
import struct
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

OUT = "tests/golden/lm/tokenizers"
ARGS = [a for a in sys.argv[1:] if a != "--train"]
TRAIN = "--train" in sys.argv
N_STRINGS = 10000
SEED = 20240229
SAMPLE = 60

# Article 1 of the Universal Declaration of Human Rights (public domain).
UDHR = """All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience and should act towards one another in a spirit of brotherhood.
Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y conciencia, deben comportarse fraternalmente los unos con los otros.
Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.
Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen.
Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.
人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。
すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。
모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا
כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.
सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।
Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.
มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.
Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.
மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்
সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.
Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։
የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው።
"""
CODE = """#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) printf("%d: %s\\n", i, argv[i]);
    return argc > 1 ? 0 : 1; /* nothing given */
}

def fibonacci(n: int) -> list[int]:
    \"\"\"The first n numbers.\"\"\"
    a, b, out = 0, 1, []
    while len(out) < n:
        out.append(a)
        a, b = b, a + b
    return out

SELECT name, COUNT(*) AS total FROM users WHERE age >= 18 AND city != 'Berlin' GROUP BY name;
<a href="https://example.org/path?q=1&r=%20">It's 3.14 o'clock, they'll say; we've 1,000,000 reasons.</a>
{"key": [1, 2.5e-3, null, true], "nested": {"a": "b\\u00e9"}}
"""
FRAGMENTS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>user\n", "<s>", "</s>", "<unk>", "<pad>", "[CLS]", "[SEP]",
             "[MASK]", "[UNK]", "<0x0A>", "<0xE2>", "<|think|>", "<|User|>", "  ", "    ", "\t", "\r\n", "\n\n", " \n ", "'s", "'LL",
             "'ſ", "don't", "we'll've", "##ing", "▁", "▁the", "</w>", "Ġthe", "ﬁ", "Å", "Å", "e\u0301", "n\u0303\u0323",
             "\u1e9b\u0323", "İstanbul", "Σίσυφος", "ǅ", "ß", "ẞ", "K", "Ω", "½", "²", "①", "Ⅷ", "٣", "१२३", "㍿",
             "ﷺ", "한글", "한", "각", "👩\u200d👩\u200d👧", "👍🏽", "🇩🇪🇫🇷", "❤️", "1️⃣", "🏴\U000e0067\U000e0062\U000e007f",
             "e\u0315\u0300\u05ae\u0062", "\u0041\u030a", "q\u0307\u0323", "क्षि", "ക്ഷ", "กำ", "\u0e4d\u0e32", "\ufeff", "\u200b", "\u180e",
             "\u0085", "\u2028", "\xa0", "\u3000", "\u00ad", "\ufffd", "\x00", "\x7f", "\U00011938", "\U00031350", "\U0001e030",
             "http://x.y/z?a=b#c", "C++", "a_b", "x̱", "naïve café", "ÀÉÎÕÜ", "…", "—", "“q”", "$5.00", "€", "10%", "A1b2", "foo", "Foo",
             "FOO", " foo ", "foobar", "word", "new word", "<mask>", " <mask> ", "<mask><mask>", "NW", "nw", "a-b--c", "...", "?!"]
BLOCKS = [(0x20, 0x7e), (0x20, 0x7e), (0x30, 0x39), (0x41, 0x5a), (0x61, 0x7a), (0x00, 0x1f), (0x7f, 0xa0), (0xa1, 0xff), (0x100, 0x17f), (0x180, 0x24f),
          (0x250, 0x2af), (0x2b0, 0x2ff), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x4ff), (0x530, 0x58f), (0x590, 0x5ff), (0x600, 0x6ff),
          (0x700, 0x74f), (0x780, 0x7bf), (0x7c0, 0x7ff), (0x800, 0x8ff), (0x900, 0x97f), (0x980, 0x9ff), (0xa00, 0xa7f), (0xa80, 0xaff), (0xb00, 0xb7f),
          (0xb80, 0xbff), (0xc00, 0xc7f), (0xc80, 0xcff), (0xd00, 0xd7f), (0xd80, 0xdff), (0xe00, 0xe7f), (0xe80, 0xeff), (0xf00, 0xfff),
          (0x1000, 0x109f), (0x10a0, 0x10ff), (0x1100, 0x11ff), (0x1200, 0x137f), (0x13a0, 0x13ff), (0x1400, 0x167f), (0x1680, 0x169f),
          (0x16a0, 0x16ff), (0x1700, 0x177f), (0x1780, 0x17ff), (0x1800, 0x18af), (0x1900, 0x1aff), (0x1b00, 0x1bff), (0x1c00, 0x1cff),
          (0x1d00, 0x1dff), (0x1e00, 0x1eff), (0x1f00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x20cf), (0x20d0, 0x20ff), (0x2100, 0x218f),
          (0x2190, 0x23ff), (0x2400, 0x25ff), (0x2600, 0x27bf), (0x2800, 0x28ff), (0x2c00, 0x2dff), (0x2e00, 0x2fff), (0x3000, 0x303f),
          (0x3040, 0x30ff), (0x3100, 0x31ff), (0x3200, 0x33ff), (0x3400, 0x4dbf), (0x4e00, 0x9fff), (0xa000, 0xa4cf), (0xa4d0, 0xabff),
          (0xac00, 0xd7a3), (0xe000, 0xe0ff), (0xf900, 0xfaff), (0xfb00, 0xfdff), (0xfe00, 0xfe6f), (0xfe70, 0xfeff), (0xff00, 0xffff),
          (0x10000, 0x100ff), (0x10300, 0x103ff), (0x10400, 0x104ff), (0x10780, 0x107bf), (0x10a00, 0x10aff), (0x11000, 0x110ff), (0x11400, 0x114ff),
          (0x11900, 0x119ff), (0x11f00, 0x11f5f), (0x12000, 0x123ff), (0x13000, 0x1345f), (0x16a00, 0x16aff), (0x1b000, 0x1b16f), (0x1bc00, 0x1bcaf),
          (0x1d100, 0x1d1ff), (0x1d400, 0x1d7ff), (0x1df00, 0x1dfff), (0x1e000, 0x1e0ff), (0x1e900, 0x1e95f), (0x1ec70, 0x1ecbf), (0x1f000, 0x1f1ff), (0x1f1e6, 0x1f1ff),
          (0x1f300, 0x1f5ff), (0x1f600, 0x1f64f), (0x1f680, 0x1f6ff), (0x1f900, 0x1faff), (0x20000, 0x2a6df), (0x2f800, 0x2fa1f),
          (0x30000, 0x323af), (0xe0000, 0xe007f), (0xe0100, 0xe01ef), (0xf0000, 0xf00ff)]
SPACED = " \t\n0123456789"
MASK = (1 << 64) - 1


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return ((z ^ (z >> 31)) >> 33) % n

    def of_block(self, parts):
        a, b = parts["blocks"][self.below(len(parts["blocks"]))]
        return a, b - a + 1

    def any(self):
        c = self.below(0x110000 - 0x800)
        return chr(c if c < 0xD800 else c + 0x800)


def make_part(r, parts):
    kind = r.below(10)
    if kind < 3:
        at = r.below(len(parts["corpus"]))
        return parts["corpus"][at:at + 1 + r.below(60)]
    if kind < 5:
        a, n = r.of_block(parts)
        return "".join(chr(a + r.below(n)) for _ in range(1 + r.below(8)))
    if kind == 5 or kind == 6:
        return parts["fragments"][r.below(len(parts["fragments"]))]
    if kind == 7:
        a, n = r.of_block(parts)
        return chr(a + r.below(n)) * (1 + r.below(20))
    if kind == 8:
        return "".join(r.any() for _ in range(1 + r.below(3)))
    return "".join(SPACED[r.below(len(SPACED))] for _ in range(1 + r.below(6)))


def make_string(r, i, parts):
    if i == 0:
        return ""
    n = 200 if i % 500 == 0 else 1 + r.below(10)
    return "".join(make_part(r, parts) for _ in range(n))


def strings(parts):
    r = Random(SEED)
    return [make_string(r, i, parts) for i in range(N_STRINGS)]


# ---- tokenizers ----

CORPUS = []
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
          r"\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n/]*+|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""]
P, N, D = pre_tokenizers, normalizers, decoders


def train(t, trainer):
    t.train_from_iterator(CORPUS, trainer)
    return t


def byte_bpe(pre, vocab=900, **model):
    t = Tokenizer(models.BPE(**model))
    t.pre_tokenizer = pre
    t.decoder = D.ByteLevel()
    train(t, trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=sorted(P.ByteLevel.alphabet()), show_progress=False))
    return t


def spm_bpe(vocab=1100):
    """SentencePiece BPE as converted: merges, byte fallback, fused unknowns."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    byte_tokens = [f"<0x{b:02X}>" for b in range(256)]
    train(t, trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<unk>", "<s>", "</s>"] + byte_tokens, limit_alphabet=120, show_progress=False))
    j = json.loads(t.to_str())
    j["added_tokens"] = j["added_tokens"][:3]
    return Tokenizer.from_str(json.dumps(j))


def charsmap(rules):
    """SentencePiece's precompiled_charsmap: a Darts double array over NUL-terminated replacements."""
    strings_, trie = b"", {}
    for key, to in sorted(rules.items(), key=lambda kv: kv[0].encode()):
        at = strings_.find(b"\0" + to.encode() + b"\0") + 1 if strings_ else 0
        if not strings_ or at == 0:
            at = len(strings_)
            strings_ += to.encode() + b"\0"
        node = trie
        for b in key.encode():
            node = node.setdefault(b, {})
        node[-1] = at
    units = {0: 0}

    def place(node, pos):
        labels = sorted(k for k in node if k >= 0)
        want = ([0] if -1 in node else []) + labels
        base = 1
        while any(((pos ^ base) ^ l if False else base ^ l) in units for l in want) or base == 0:
            base += 1
        offset = pos ^ base
        while offset >= 1 << 21:
            raise ValueError("too large for this builder")
        units[pos] = (units[pos] & ~0x7FFFFC00) | offset << 10 | (1 << 8 if -1 in node else 0)
        for l in want:
            units[base ^ l] = node[-1] | 1 << 31 if l == 0 and -1 in node else l
        for l in labels:
            place(node[l], base ^ l)

    place(trie, 0)
    n = (max(units) | 255) + 1
    trie_bytes = b"".join(struct.pack("<I", units.get(i, 0)) for i in range(n))
    return struct.pack("<I", len(trie_bytes)) + trie_bytes + strings_


def small_charsmap():
    rules = {"ﬁ": "fi", "Å": "Å", "ｱ": "ア", "①": "1", "½": "1⁄2", "\u3000": " ", "\xa0": " ", "\t": " ", "\n": " ", "\r": "",
             "e\u0301": "é", "…": "...", "㍿": "株式会社", "ſ": "s", "\u200b": " ", "\ufeff": "", "Ω": "Ω", "²": "2", "Ⅷ": "VIII",
             "ǅ": "Dž", "\x00": "", "\x7f": ""}
    rules = {k: v for k, v in rules.items() if k != "\x00"}
    for c in range(0xFF01, 0xFF5F):
        rules[chr(c)] = chr(c - 0xFEE0)
    return charsmap(rules)


def unigram(vocab, **kw):
    t = Tokenizer(models.Unigram())
    return t, trainers.UnigramTrainer(vocab_size=vocab, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"], show_progress=False, **kw)


def gpt2():
    t = byte_bpe(P.ByteLevel(add_prefix_space=False))
    t.post_processor = processors.ByteLevel(trim_offsets=True)
    t.add_special_tokens(["<|endoftext|>"])
    return t


def llama3():
    t = byte_bpe(P.Sequence([P.Split(Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]), ignore_merges=True)
    t.add_special_tokens(["<|begin_of_text|>", "<|im_start|>", "<|im_end|>"])
    bos = t.token_to_id("<|begin_of_text|>")
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1", special_tokens=[("<|begin_of_text|>", bos)])])
    return t


def qwen2():
    t = byte_bpe(P.Sequence([P.Split(Regex(QWEN2), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]))
    t.normalizer = N.NFC()
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<|think|>", normalized=False), AddedToken("  ", normalized=False), AddedToken("    ", normalized=True)])
    return t


def starcoder():
    t = byte_bpe(P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=True)]), vocab=700)
    t.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True), "<pad>"])
    t.add_tokens([AddedToken("foo", single_word=True), AddedToken("NW", rstrip=True, lstrip=True, normalized=False)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    return t


def tekken():
    t = byte_bpe(P.Sequence([P.Split(Regex(TEKKEN), "removed", invert=True), P.ByteLevel(add_prefix_space=False, use_regex=False)]), vocab=700)
    t.add_special_tokens(["<s>", "</s>"])
    return t


def deepseek():
    t = byte_bpe(P.Sequence([P.Split(Regex(r), "isolated") for r in DEEPSEEK] + [P.ByteLevel(add_prefix_space=False, use_regex=False)]), vocab=700)
    t.add_tokens([AddedToken("<|User|>", normalized=False, special=False)])
    return t


def llama2():
    t = spm_bpe()
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return t


def mistral():
    """Metaspace first without a split, decoders in another order."""
    t = spm_bpe(900)
    t.normalizer = None
    t.pre_tokenizer = P.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    t.decoder = D.Sequence([D.ByteFallback(), D.Metaspace(replacement="▁", prepend_scheme="never"), D.Fuse(), D.Replace("  ", " _"), D.Strip("_", 0, 1)])
    return t


def bert():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=20))
    t.normalizer = N.BertNormalizer()
    t.pre_tokenizer = P.BertPreTokenizer()
    t.decoder = D.WordPiece(prefix="##", cleanup=True)
    train(t, trainers.WordPieceTrainer(vocab_size=900, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=200, show_progress=False))
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True, special=True)])
    t.add_tokens(["New Word", "foo"])
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return t


def bert_cased():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = N.Sequence([N.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False), N.Strip(left=True, right=False)])
    t.pre_tokenizer = P.Sequence([P.Whitespace(), P.Punctuation("merged_with_previous")])
    t.decoder = D.WordPiece(prefix="##", cleanup=False)
    train(t, trainers.WordPieceTrainer(vocab_size=700, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP] $A", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def t5():
    t, trainer = unigram(800)
    t.normalizer = N.Sequence([N.Precompiled(small_charsmap()), N.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Metaspace(replacement="▁", prepend_scheme="always")])
    t.decoder = D.Metaspace(replacement="▁", prepend_scheme="always")
    train(t, trainer)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return t


def unigram_bytes():
    t, trainer = unigram(700)
    t.normalizer = N.Sequence([N.Nmt(), N.NFKC(), N.Strip(), N.Replace(Regex(r"\s+$"), "")])
    t.pre_tokenizer = P.Metaspace(replacement="▁", prepend_scheme="first")
    t.decoder = D.Sequence([D.ByteFallback(), D.Replace(Regex("▁"), " "), D.Fuse(), D.Strip(" ", 1, 1)])
    train(t, trainer)
    j = json.loads(t.to_str())
    j["model"]["byte_fallback"] = True
    j["model"]["vocab"] += [[f"<0x{b:02X}>", -30.0] for b in range(256)]
    return Tokenizer.from_str(json.dumps(j))


def classic():
    """The first BPE: end-of-word suffix, lower case without accents."""
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", fuse_unk=False))
    t.normalizer = N.Sequence([N.NFD(), N.Lowercase(), N.StripAccents(), N.Replace("ß", "ss")])
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.CharDelimiterSplit("-"), P.Punctuation("isolated")])
    t.decoder = D.BPEDecoder(suffix="</w>")
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>"], end_of_word_suffix="</w>", limit_alphabet=150, show_progress=False))
    t.add_tokens([AddedToken("FOO", normalized=True, single_word=True), AddedToken("Word", normalized=True)])
    return t


def prefixed():
    """BPE with a continuing prefix, runs of digits, every way to split."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=True))
    t.normalizer = N.NFKD()
    t.pre_tokenizer = P.Sequence([P.Split(" ", "merged_with_next"), P.Split(Regex(r"[\r\n]+"), "merged_with_previous"), P.Split(Regex(r"\w+"), "contiguous", invert=True),
                                  P.Digits(individual_digits=False), P.Split(".", "removed"), P.Punctuation("contiguous")])
    t.decoder = D.Sequence([D.WordPiece(prefix="##", cleanup=True), D.Fuse(), D.Replace(" t", "_t"), D.ByteLevel()])
    train(t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>"], continuing_subword_prefix="##", limit_alphabet=150, show_progress=False))
    return t


def bare():
    """No decoder, no post-processor; byte level as a normaliser; Metaspace never."""
    t = Tokenizer(models.BPE())
    t.normalizer = N.Sequence([N.Replace(Regex(r"(?i)(foo|bar)+"), "baz"), N.ByteLevel()])
    t.pre_tokenizer = P.Sequence([P.Split(Regex("Ġ[^Ġ]*"), "isolated"), P.Metaspace(replacement="_", prepend_scheme="never", split=True), P.Punctuation("merged_with_next")])
    train(t, trainers.BpeTrainer(vocab_size=700, initial_alphabet=sorted(P.ByteLevel.alphabet()), show_progress=False))
    t.add_tokens([AddedToken("naïve", normalized=True), AddedToken("new word", normalized=True, rstrip=True)])
    return t


ALL = [gpt2, llama3, qwen2, starcoder, tekken, deepseek, llama2, mistral, bert, bert_cased, t5, unigram_bytes, classic, prefixed, bare]


def smollm2(path):
    """The tokenizer in SmolLM2's GGUF: its vocabulary in a compact form, and the reference built from it."""
    import gguf
    fields = gguf.GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [m.split(" ") for m in fields["tokenizer.ggml.merges"].contents()]
    types = fields["tokenizer.ggml.token_type"].contents()
    assert fields["tokenizer.ggml.pre"].contents() == "smollm"
    n_special, n_first = sum(t == 3 for t in types), len(tokens) - len(merges)
    assert types == [3] * n_special + [1] * (len(tokens) - n_special)
    ids = {t: i for i, t in enumerate(tokens)}
    assert all(tokens[n_first + i] == a + b for i, (a, b) in enumerate(merges))
    with open(f"{OUT}/smollm2.vocab", "wb") as f:
        f.write(struct.pack("<III", n_special, n_first, len(merges)))
        for t in tokens[:n_first]:
            f.write(struct.pack("<B", len(t.encode())) + t.encode())
        for a, b in merges:
            f.write(struct.pack("<HH", ids[a], ids[b]))
    t = Tokenizer(models.BPE(vocab=ids, merges=[tuple(m) for m in merges]))
    t.pre_tokenizer = P.Sequence([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True)])
    t.decoder = D.ByteLevel()
    t.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in tokens[:n_special]])
    return t


def spm():
    """A SentencePiece BPE vocabulary as a GGUF has it (tokens, scores, types), and the tokenizer that the
    converter of `transformers` makes of it: every cut of a piece into two pieces is a merge, in order of scores."""
    if TRAIN or not os.path.exists(f"{OUT}/spm.vocab"):
        source = json.loads(spm_bpe(1000).to_str())["model"]
        tokens = [t for t, _ in sorted(source["vocab"].items(), key=lambda kv: kv[1])]
    else:
        tokens = json.load(open(f"{OUT}/spm.vocab", encoding="utf-8"))["tokens"][:-2]
    n = len(tokens)
    # scores as of a trained model, with ties
    scores = [0.0] * 259 + [-float((i - 259) // 2) for i in range(259, n)]
    types = [2, 3, 3] + [6] * 256 + [1] * (n - 259)
    tokens += ["<|user|>", "\n\n"]
    scores += [0.0, 0.0]
    types += [3, 4]
    vocab = {t: i for i, t in enumerate(tokens)}
    merges = []
    for t, score in zip(tokens, scores):
        local = [(t[:i], t[i:], score) for i in range(1, len(t)) if t[:i] in vocab and t[i:] in vocab]
        merges += sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))
    merges = sorted(merges, key=lambda v: (v[2], len(v[0]), len(v[1])), reverse=True)
    t = Tokenizer(models.BPE(vocab=vocab, merges=[m[:2] for m in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    t.decoder = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    t.add_special_tokens([AddedToken(tokens[i], special=True, normalized=False) for i in range(n + 1) if types[i] in (2, 3)])
    t.add_tokens([AddedToken("\n\n", normalized=False)])
    with open(f"{OUT}/spm.vocab", "w", encoding="utf-8") as f:
        json.dump({"tokens": tokens, "scores": scores, "types": types}, f, ensure_ascii=False, separators=(",", ":"))
    return t


def write(name, t, texts, with_json=True):
    if with_json:
        with open(f"{OUT}/{name}.json", "w", encoding="utf-8") as f:
            j = json.loads(t.to_str())
            if name == "starcoder":  # as files before 2024 have them
                j["model"]["merges"] = ["#version: 0.2"] + [" ".join(m) for m in j["model"]["merges"]]
                assert Tokenizer.from_str(json.dumps(j)).to_str() == t.to_str()
            f.write(json.dumps(j, ensure_ascii=False, separators=(",", ":")))
    with open(f"{OUT}/{name}.digests", "wb") as digests, open(f"{OUT}/{name}.sample", "w") as sample:
        for i, s in enumerate(texts):
            ids = t.encode(s).ids
            h = hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids))
            for skip in (False, True):
                try:
                    text = t.decode(ids, skip_special_tokens=skip)
                except BaseException:  # a Rust panic: BPEDecoder of nothing
                    text = ""
                h.update(b"\xff" + text.encode())
            digests.write(h.digest()[:4])
            if i < SAMPLE:
                sample.write(" ".join(map(str, ids)) + "\n")


def main():
    os.makedirs(OUT, exist_ok=True)
    cc0 = open("/usr/share/common-licenses/CC0-1.0", encoding="utf-8").read()
    parts = {"corpus": UDHR + CODE + cc0, "fragments": FRAGMENTS, "blocks": BLOCKS}
    texts = strings(parts)
    parts["sha256"] = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    with open(f"{OUT}/strings.json", "w", encoding="utf-8") as f:
        json.dump(parts, f, ensure_ascii=False)
    CORPUS.extend(parts["corpus"].split("\n"))
    for make in ALL:
        path = f"{OUT}/{make.__name__}.json"
        if TRAIN or not os.path.exists(path):
            t = Tokenizer.from_str(make().to_str())
        else:
            t = Tokenizer.from_file(path)
        write(make.__name__, t, texts)
        print(make.__name__, t.get_vocab_size())
    write("spm", spm(), texts, with_json=False)
    if ARGS:
        write("smollm2", smollm2(ARGS[0]), texts, with_json=False)


main()
