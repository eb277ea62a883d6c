"""Writes src/lm/tokenizer_tables.h: how the `tokenizers` library classifies code points.

The library mixes several Unicode versions (its Rust standard library, two crates, Oniguruma); PCRE2 and
utf8proc have others. This script asks the library about every code point and writes down its answers,
or only the difference from PCRE2 and utf8proc where those serve as the base.

    pip install tokenizers==0.23.3
    python3 tests/golden/scripts/make_tokenizer_tables.py | clang-format > src/lm/tokenizer_tables.h
"""
import ctypes
import ctypes.util

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CPS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
ALL = "".join(map(chr, CPS))
GC = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cf".split()
SCRIPTS = ("Han Hiragana Katakana Hangul Latin Cyrillic Greek Arabic Hebrew Thai Devanagari Bengali "
           "Tamil Telugu Georgian Armenian Khmer Lao Myanmar Tibetan Mongolian Ethiopic").split()


def complement(pieces):
    """Code points of ALL outside the (start, end) pieces."""
    out, prev = [], 0
    for a, b in pieces + [(len(ALL), len(ALL))]:
        out += CPS[prev:a]
        prev = b
    return out


def removed(pre):
    return complement([o for _, o in pre.pre_tokenize_str(ALL)])


def onig(pattern):
    return set(removed(pre_tokenizers.Split(Regex(pattern), "removed")))


class Pcre:
    """Code points that a PCRE2 pattern matches."""

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("pcre2-8"))
        self.lib.pcre2_compile_8.restype = ctypes.c_void_p
        self.lib.pcre2_match_data_create_8.restype = ctypes.c_void_p
        self.lib.pcre2_get_ovector_pointer_8.restype = ctypes.POINTER(ctypes.c_size_t)
        self.text = ALL.encode()
        self.at, n = {}, 0
        for i, c in enumerate(ALL):
            self.at[n] = i
            n += len(c.encode())
        self.at[n] = len(ALL)

    def match(self, pattern):
        utf_ucp, no_check = 0x00080000 | 0x00020000, 0x40000000
        err, off = ctypes.c_int(), ctypes.c_size_t()
        p = pattern.encode()
        code = self.lib.pcre2_compile_8(p, ctypes.c_size_t(len(p)), utf_ucp, ctypes.byref(err), ctypes.byref(off), None)
        assert code, pattern
        data = self.lib.pcre2_match_data_create_8(1, None)
        out, at = set(), 0
        while self.lib.pcre2_match_8(ctypes.c_void_p(code), self.text, ctypes.c_size_t(len(self.text)), ctypes.c_size_t(at),
                                     no_check, ctypes.c_void_p(data), None) > 0:
            v = self.lib.pcre2_get_ovector_pointer_8(ctypes.c_void_p(data))
            out.update(CPS[self.at[v[0]]:self.at[v[1]]])
            at = v[1]
        return out


def ranges(cps):
    out = []
    for c in sorted(cps):
        if out and (out[-1][1] == c - 1 or (out[-1][1] == 0xD7FF and c == 0xE000)):
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def emit(name, doc, items, type_="code_range"):
    print(f"/* {doc} */\nstatic const {type_} {name}[] = {{")
    line = "   "
    for it in items:
        if len(line) + len(it) > 99:
            print(line)
            line = "   "
        line += " " + it
    print(line + "\n};\n")


def emit_ranges(name, doc, cps):
    emit(name, doc, [f"{{0x{a:x}, 0x{b:x}}}," for a, b in ranges(cps)])


def gone(normaliser):
    return [c for c in CPS if normaliser.normalize_str(chr(c)) == ""]


def word():
    t = "".join("a" + c + "a" for c in ALL)
    edges = {e for _, o in pre_tokenizers.Whitespace().pre_tokenize_str(t) for e in o}
    return [c for i, c in enumerate(CPS) if 3 * i + 1 not in edges]


def numeric():
    t = "".join("a" + c + "a" for c in ALL)
    return [CPS[a // 3] for _, (a, b) in pre_tokenizers.Digits(True).pre_tokenize_str(t) if a % 3 == 1 and b == a + 1]


def unknown_to_normaliser():
    """Code points that utf8proc decomposes or reorders and the library does not."""
    lib = ctypes.CDLL(ctypes.util.find_library("utf8proc"))
    nfkd = normalizers.NFKD()
    buf = (ctypes.c_int32 * 64)()
    stable_compat_decompose = 2 | 4 | 16

    def ours(s):
        b = s.encode()
        n = lib.utf8proc_decompose(b, len(b), buf, 64, stable_compat_decompose)
        return "".join(map(chr, buf[:n]))

    out = set()
    for c in CPS:
        # U+0334 has combining class 1, U+0345 has 240: one of them shows whether c reorders.
        for s in (chr(c), "a\u0345" + chr(c), "a" + chr(c) + "\u0334"):
            if c != 0 and ours(s) != nfkd.normalize_str(s):
                out.add(c)
    # second halves of a pair that utf8proc composes and the library does not
    return out | {0x11930}


def lower():
    lib = ctypes.CDLL(ctypes.util.find_library("utf8proc"))
    n, out = normalizers.Lowercase(), []
    for c in CPS:
        q = n.normalize_str(chr(c))
        if q != chr(lib.utf8proc_tolower(c)) and c != 0x130:
            assert len(q) == 1
            d = ord(q) - c
            if out and out[-1][1] == c - 1 and out[-1][2] == d:
                out[-1][1] = c
            else:
                out.append([c, c, d])
    return out


def regex_tables(pcre):
    new, changed = [], []
    for g in GC:
        theirs, ours = onig(rf"\p{{{g}}}"), pcre.match(rf"\p{{{g}}}")
        new += [(a, b, g) for a, b in ranges(theirs - ours)]
        changed += [(a, b, g) for a, b in ranges(ours - theirs)]
    emit("regex_gc", "General categories that Oniguruma knows and PCRE2 lacks."
         + (" (The reverse, left so: " + ", ".join(f"U+{a:04X} {g}" for a, _, g in changed) + ".)" if changed else ""),
         [f'{{0x{a:x}, 0x{b:x}, "{g}"}},' for a, b, g in sorted(new)], "code_category")
    emit_ranges("regex_alphabetic", "Alphabetic for Oniguruma, not for PCRE2.",
                onig(r"\p{Alphabetic}") - pcre.match(r"\p{Alphabetic}"))
    rows = []
    for s in SCRIPTS:
        theirs, ours = onig(rf"\p{{{s}}}"), pcre.match(rf"\p{{sc:{s}}}")
        assert not ours - theirs, s
        rows += [f'{{0x{a:x}, 0x{b:x}, "{s}"}},' for a, b in ranges(theirs - ours)] or [f'{{1, 0, "{s}"}},']
    emit("regex_scripts", "Scripts that patterns may name, and what PCRE2 lacks of each (an empty range: nothing).",
         rows, "code_script")


def main():
    print(f"""/* tokenizer_tables.h: how `tokenizers` {tokenizers.__version__} classifies code points. Generated by
 * tests/golden/scripts/make_tokenizer_tables.py; do not edit. Ranges ascend and are inclusive. */
#ifndef LM_TOKENIZER_TABLES_H
#define LM_TOKENIZER_TABLES_H
#include <stdint.h>

typedef struct code_range {{ uint32_t first, last; }} code_range;
typedef struct code_shift {{ uint32_t first, last; int32_t by; }} code_shift;
typedef struct code_category {{ uint32_t first, last; char gc[3]; }} code_category;
typedef struct code_script {{ uint32_t first, last; const char *script; }} code_script;
""")
    emit_ranges("code_numeric", "Digits: Rust's char::is_numeric.", numeric())
    emit_ranges("code_punctuation", "Punctuation and BertPreTokenizer.", removed(pre_tokenizers.Punctuation("removed")))
    emit_ranges("code_word", "\\\\w of Rust's regex: Whitespace, single_word.", word())
    emit_ranges("code_combining", "What StripAccents drops.", gone(normalizers.StripAccents()))
    bert = dict(handle_chinese_chars=False, lowercase=False)
    emit_ranges("code_nonspacing", "What BertNormalizer's strip_accents drops.",
                gone(normalizers.BertNormalizer(clean_text=False, strip_accents=True, **bert)))
    emit_ranges("code_other", "What BertNormalizer's clean_text drops.",
                gone(normalizers.BertNormalizer(clean_text=True, strip_accents=False, **bert)))
    emit_ranges("code_unnormalised", "Newer than the library's normalisation tables: starters that neither decompose nor compose.",
                unknown_to_normaliser())
    emit("code_lower", "Lower case where it differs from utf8proc's (U+0130, the only one with two, apart).",
         [f"{{0x{a:x}, 0x{b:x}, {d}}}," for a, b, d in lower()], "code_shift")
    regex_tables(Pcre())
    print("#endif")


main()
