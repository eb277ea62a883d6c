/* tunicode.c: categories and simple case mappings are utf8proc's; the rest is in tables here. */
#include "lm/template/tunicode.h"
#include <string.h>
#include <utf8proc.h>

typedef struct range {
    uint32_t first, last;
} range;

/* Lower case, upper case and digits beyond the categories Ll, Lu and Nd. */
static const range other_lower[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
    {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
    {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},
    {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
};
static const range other_upper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
};
static const range other_digits[] = {
    {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
    {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
};

typedef struct special {
    uint32_t cp;
    const char *upper, *title; /* UTF-8 */
} special;
static const special specials[] = {
#define CASE(cp, upper, title) {cp, upper, title},
#include "lm/template/tunicode_special.def"
#undef CASE
};

static bool within(const range *r, size_t n, uint32_t cp)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= r[i].first && cp <= r[i].last) return true;
    return false;
}

static utf8proc_category_t category(uint32_t cp) { return utf8proc_category((utf8proc_int32_t)cp); }

bool tunicode_space(uint32_t cp)
{
    static const range spaces[] = {
        {0x9, 0xd},       {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
    return within(spaces, N_ELEM(spaces), cp);
}

bool tunicode_printable(uint32_t cp)
{
    if (cp == ' ') return true;
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

bool tunicode_alpha(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool tunicode_decimal(uint32_t cp) { return category(cp) == UTF8PROC_CATEGORY_ND; }

int tunicode_decimal_value(uint32_t cp)
{
    int value = 0; /* decimal digits come in runs of ten, or of tens, that begin at a zero */
    if (!tunicode_decimal(cp)) return -1;
    if (cp >= 0x1d7ce && cp <= 0x1d7ff) return (int)((cp - 0x1d7ce) % 10);
    while (value < 9 && tunicode_decimal(cp - (uint32_t)value - 1)) value++;
    return value;
}

bool tunicode_digit(uint32_t cp)
{
    return tunicode_decimal(cp) || within(other_digits, N_ELEM(other_digits), cp);
}

bool tunicode_number(uint32_t cp)
{
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool tunicode_upper(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_LU || within(other_upper, N_ELEM(other_upper), cp);
}

bool tunicode_lower(uint32_t cp)
{
    return category(cp) == UTF8PROC_CATEGORY_LL || within(other_lower, N_ELEM(other_lower), cp);
}

bool tunicode_cased(uint32_t cp)
{
    return tunicode_upper(cp) || tunicode_lower(cp) || category(cp) == UTF8PROC_CATEGORY_LT;
}

/* Characters that do not matter when a final sigma looks for letters beside it. */
static bool ignorable(uint32_t cp)
{
    static const uint32_t middle[] = {0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,
                                      0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                      0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a};
    for (size_t i = 0; i < N_ELEM(middle); i++)
        if (cp == middle[i]) return true;
    utf8proc_category_t c = category(cp);
    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
           c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK;
}

/* The start of the character that ends at byte `at`. */
static size_t before(const tstr *s, size_t at)
{
    while (at > 0 && (s->p[--at] & 0xc0) == 0x80) {}
    return at;
}

/* A capital sigma at bytes [at, next) ends a word: a cased letter before it, none behind. */
static bool is_final_sigma(const tstr *s, size_t at, size_t next)
{
    uint32_t cp = 0;
    bool letter = false;
    while (at > 0) {
        at = before(s, at);
        utf8_decode(s->p + at, s->n - at, &cp);
        if (ignorable(cp)) continue;
        letter = tunicode_cased(cp);
        break;
    }
    if (!letter) return false;
    while (next < s->n) {
        next += utf8_decode(s->p + next, s->n - next, &cp);
        if (!ignorable(cp)) return !tunicode_cased(cp);
    }
    return true;
}

static void fold(tbuild *b, uint32_t cp, bool trusted)
{
    utf8proc_int32_t out[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, out, N_ELEM(out),
                                                 UTF8PROC_CASEFOLD, &boundary);
    if (n < 0 || n > (utf8proc_ssize_t)N_ELEM(out)) n = 1, out[0] = (utf8proc_int32_t)cp;
    for (utf8proc_ssize_t i = 0; i < n; i++) tbuild_char(b, (uint32_t)out[i], trusted);
}

static void map_up(tbuild *b, uint32_t cp, bool title, bool trusted)
{
    for (size_t i = 0; cp >= 0x80 && i < N_ELEM(specials); i++)
        if (specials[i].cp == cp) {
            tbuild_text(b, title ? specials[i].title : specials[i].upper, trusted);
            return;
        }
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    tbuild_char(b, (uint32_t)(title ? utf8proc_totitle(c) : utf8proc_toupper(c)), trusted);
}

static void map_down(tbuild *b, const tchars *it)
{
    if (it->cp == 0x130) /* the one character whose lower case is two */
        tbuild_text(b, "i\xcc\x87", it->trusted);
    else if (it->cp == 0x3a3)
        tbuild_char(b, is_final_sigma(it->s, it->at, it->next) ? 0x3c2 : 0x3c3, it->trusted);
    else
        tbuild_char(b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)it->cp), it->trusted);
}

void tunicode_case(tbuild *b, const tstr *s, tcase how)
{
    bool start = true; /* of the string, or for CASE_TITLE of a word */
    for (tchars it = tchars_of(s); tchars_next(&it);) {
        if (how == CASE_FOLD)
            fold(b, it.cp, it.trusted);
        else if (how == CASE_UPPER || (how != CASE_LOWER && start))
            map_up(b, it.cp, how != CASE_UPPER, it.trusted);
        else
            map_down(b, &it);
        start = how == CASE_TITLE && !tunicode_cased(it.cp);
    }
}

size_t tunicode_leading(const char *p, size_t n)
{
    size_t at = 0;
    uint32_t cp;
    while (at < n) {
        size_t step = utf8_decode(p + at, n - at, &cp);
        if (!step || !tunicode_space(cp)) break;
        at += step;
    }
    return at;
}

size_t tunicode_trailing(const char *p, size_t n)
{
    size_t end = n;
    uint32_t cp;
    while (end > 0) {
        size_t at = end;
        while (at > 0 && (p[--at] & 0xc0) == 0x80) {}
        if (!utf8_decode(p + at, end - at, &cp) || !tunicode_space(cp)) break;
        end = at;
    }
    return n - end;
}
