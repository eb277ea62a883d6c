/* tokenizer_unicode.c: classes of code points (contract in tokenizer_unicode.h). The tables say
 * what the `tokenizers` library answers, whose parts follow different Unicode versions; utf8proc
 * only gives the bulk of lower-casing. */
#include "lm/tokenizer_unicode.h"
#include <utf8proc.h>
#include "lm/tokenizer_tables.h"

static bool in(const code_range *r, size_t n, uint32_t cp)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (r[mid].last < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && r[lo].first <= cp;
}

bool unicode_is_space(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 9 && cp <= 13);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool unicode_is_numeric(uint32_t cp)
{
    if (cp < 0x80) return cp >= '0' && cp <= '9';
    return in(code_numeric, N_ELEM(code_numeric), cp);
}

bool unicode_is_punctuation(uint32_t cp)
{
    return in(code_punctuation, N_ELEM(code_punctuation), cp);
}

bool unicode_is_word(uint32_t cp) { return in(code_word, N_ELEM(code_word), cp); }

bool unicode_is_combining(uint32_t cp)
{
    return cp >= 0x300 && in(code_combining, N_ELEM(code_combining), cp);
}

bool unicode_is_nonspacing(uint32_t cp)
{
    return cp >= 0x300 && in(code_nonspacing, N_ELEM(code_nonspacing), cp);
}

bool unicode_is_other(uint32_t cp)
{
    if (cp >= 0x20 && cp < 0x7f) return false;
    return in(code_other, N_ELEM(code_other), cp);
}

bool unicode_is_chinese(uint32_t cp)
{
    static const code_range blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                        {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                        {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return cp >= 0x3400 && in(blocks, N_ELEM(blocks), cp);
}

size_t unicode_lower(uint32_t cp, uint32_t ret_cp[2])
{
    if (cp < 0x80) {
        ret_cp[0] = cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
        return 1;
    }
    if (cp == 0x130) {
        ret_cp[0] = 'i';
        ret_cp[1] = 0x307;
        return 2;
    }
    for (size_t i = 0; i < N_ELEM(code_lower); i++)
        if (cp >= code_lower[i].first && cp <= code_lower[i].last) {
            ret_cp[0] = (uint32_t)((int32_t)cp + code_lower[i].by);
            return 1;
        }
    ret_cp[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    return 1;
}

bool unicode_is_unnormalised(uint32_t cp)
{
    return cp >= 0x7fd && in(code_unnormalised, N_ELEM(code_unnormalised), cp);
}
