/* tokenizer_components.c: normalisers, pre-tokenisers, post-processor and decoders of a
 * tokenizer.json. Sequences are flattened. Each kind has a table of names; what no table knows
 * is refused by name and place ("tokenizer.json: pre_tokenizer.pretokenizers[1]"). */
#include <string.h>
#include "lm/tokenizer_impl.h"

typedef struct place {
    const char *what; /* the document */
    char path[160];   /* the place in it */
    tokenizer *t;
} place;

typedef ig_status (*component_fn)(const place *p, const char *where, const json_t *j);
typedef struct component {
    const char *type;
    component_fn load;
} component;
typedef struct component_kind {
    const char *members; /* key of a Sequence's list */
    const component *table;
    size_t n_table;
} component_kind;

/* One component, or the members of a sequence. JSON depth is bounded, so recursion is. */
static ig_status load_one(const place *p, const component_kind *kind, const json_t *j)
{
    char where[400];
    str type;
    snprintf(where, sizeof where, "%.200s: %s", p->what, p->path);
    TRY(json_get_str(where, j, "type", &type));
    if (str_eq(type, str_of("Sequence"))) {
        json_t *list;
        TRY(json_get_arr(where, j, kind->members, &list));
        for (size_t i = 0; i < json_array_size(list); i++) {
            place inner = *p;
            snprintf(inner.path, sizeof inner.path, "%.100s.%s[%zu]", p->path, kind->members, i);
            TRY(load_one(&inner, kind, json_array_get(list, i)));
        }
        return IG_OK;
    }
    for (size_t i = 0; i < kind->n_table; i++)
        if (str_eq(type, str_of(kind->table[i].type))) return kind->table[i].load(p, where, j);
    return ig_fail(IG_EUNSUPPORTED, "%s: \"%.*s\" is not supported", where,
                   (int)(type.n < 100 ? type.n : 100), type.p);
}

static ig_status load_kind(const char *what, const json_t *root, const char *key,
                           const component_kind *kind, tokenizer *t)
{
    json_t *j = json_object_get(root, key);
    if (!j || json_is_null(j)) return IG_OK;
    TRY(json_get_obj(what, root, key, &j));
    place p = {.what = what, .t = t};
    snprintf(p.path, sizeof p.path, "%s", key);
    return load_one(&p, kind, j);
}

static ig_status full(const char *where)
{
    return ig_fail(IG_ELIMIT, "%s: over %zu components of a kind", where, MAX_STEPS);
}

/* ---- what several need ---- */

static ig_status get_bool(const char *where, const json_t *j, const char *key, bool *ret)
{
    if (!json_is_boolean(json_object_get(j, key)))
        return ig_fail(IG_EFORMAT, "%s: %s: expected true or false", where, key);
    return json_opt_bool(where, j, key, false, ret);
}

static ig_status get_text(const char *where, const json_t *j, const char *key, char **ret_text,
                          size_t *ret_n)
{
    str s;
    TRY(json_get_str(where, j, key, &s));
    *ret_text = mem_dup(s.p, s.n);
    *ret_n = s.n;
    return *ret_text ? IG_OK : IG_ENOMEM;
}

/* A string of one character. */
static ig_status get_char(const char *where, const json_t *j, const char *key, str *ret_text,
                          uint32_t *ret_cp)
{
    TRY(json_get_str(where, j, key, ret_text));
    if (ret_text->n && utf8_decode(ret_text->p, ret_text->n, ret_cp) == ret_text->n) return IG_OK;
    return ig_fail(IG_EFORMAT, "%s: %s: expected one character", where, key);
}

/* {"String": s} or {"Regex": s}. */
static ig_status get_pattern(const char *where, const json_t *j, regex **ret_regex,
                             str *ret_literal)
{
    json_t *pattern;
    str s, r;
    TRY(json_get_obj(where, j, "pattern", &pattern));
    TRY(json_opt_str(where, pattern, "String", &s));
    TRY(json_opt_str(where, pattern, "Regex", &r));
    if (!s.p == !r.p) return ig_fail(IG_EFORMAT, "%s: pattern: expected String or Regex", where);
    if (ret_literal) *ret_literal = s;
    return regex_open(where, s.p ? s : r, s.p != NULL, ret_regex);
}

/* ---- normalisers ---- */

static ig_status norm_add(const place *p, const char *where, norm_step s, norm_step **ret_step)
{
    tokenizer *t = p->t;
    if (t->n_norm == MAX_STEPS) return full(where);
    t->norm[t->n_norm] = s;
    if (ret_step) *ret_step = &t->norm[t->n_norm];
    t->n_norm++;
    return IG_OK;
}

#define NORM_PLAIN(name, kind_)                                               \
    static ig_status name(const place *p, const char *where, const json_t *j) \
    {                                                                         \
        (void)j;                                                              \
        return norm_add(p, where, (norm_step){.kind = kind_}, NULL);          \
    }
NORM_PLAIN(norm_nfc, NORM_NFC)
NORM_PLAIN(norm_nfd, NORM_NFD)
NORM_PLAIN(norm_nfkc, NORM_NFKC)
NORM_PLAIN(norm_nfkd, NORM_NFKD)
NORM_PLAIN(norm_lowercase, NORM_LOWERCASE)
NORM_PLAIN(norm_strip_accents, NORM_STRIP_ACCENTS)
NORM_PLAIN(norm_nmt, NORM_NMT)
NORM_PLAIN(norm_byte_level, NORM_BYTE_LEVEL)

static ig_status norm_strip(const place *p, const char *where, const json_t *j)
{
    norm_step s = {.kind = NORM_STRIP};
    TRY(get_bool(where, j, "strip_left", &s.left));
    TRY(get_bool(where, j, "strip_right", &s.right));
    return norm_add(p, where, s, NULL);
}

static ig_status norm_prepend(const place *p, const char *where, const json_t *j)
{
    norm_step *s = NULL;
    TRY(norm_add(p, where, (norm_step){.kind = NORM_PREPEND}, &s));
    return get_text(where, j, "prepend", &s->text, &s->n_text);
}

static ig_status norm_replace(const place *p, const char *where, const json_t *j)
{
    norm_step *s = NULL;
    TRY(norm_add(p, where, (norm_step){.kind = NORM_REPLACE}, &s));
    TRY(get_pattern(where, j, &s->pattern, NULL));
    return get_text(where, j, "content", &s->text, &s->n_text);
}

static ig_status norm_precompiled(const place *p, const char *where, const json_t *j)
{
    norm_step *s = NULL;
    str base64;
    TRY(json_get_str(where, j, "precompiled_charsmap", &base64));
    TRY(norm_add(p, where, (norm_step){.kind = NORM_PRECOMPILED}, &s));
    return charsmap_open(where, base64, &s->map);
}

static ig_status norm_bert(const place *p, const char *where, const json_t *j)
{
    bool clean, chinese, lower, accents;
    TRY(get_bool(where, j, "clean_text", &clean));
    TRY(get_bool(where, j, "handle_chinese_chars", &chinese));
    TRY(get_bool(where, j, "lowercase", &lower));
    TRY(json_opt_bool(where, j, "strip_accents", lower, &accents));
    const norm_kind kinds[] = {NORM_CLEAN, NORM_CHINESE, NORM_NFD, NORM_STRIP_NONSPACING,
                               NORM_LOWERCASE};
    const bool wanted[] = {clean, chinese, accents, accents, lower};
    for (size_t i = 0; i < N_ELEM(kinds); i++)
        if (wanted[i]) TRY(norm_add(p, where, (norm_step){.kind = kinds[i]}, NULL));
    return IG_OK;
}

static const component norm_table[] = {
    {"NFC", norm_nfc},
    {"NFD", norm_nfd},
    {"NFKC", norm_nfkc},
    {"NFKD", norm_nfkd},
    {"Lowercase", norm_lowercase},
    {"StripAccents", norm_strip_accents},
    {"Nmt", norm_nmt},
    {"ByteLevel", norm_byte_level},
    {"Strip", norm_strip},
    {"Prepend", norm_prepend},
    {"Replace", norm_replace},
    {"Precompiled", norm_precompiled},
    {"BertNormalizer", norm_bert},
};

/* ---- pre-tokenisers ---- */

#define GPT2_PATTERN \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static ig_status pre_add(const place *p, const char *where, pre_step s, pre_step **ret_step)
{
    tokenizer *t = p->t;
    if (t->n_pre == MAX_STEPS) return full(where);
    t->pre[t->n_pre] = s;
    if (ret_step) *ret_step = &t->pre[t->n_pre];
    t->n_pre++;
    return IG_OK;
}

static ig_status pre_class(const place *p, const char *where, char_class class,
                           split_behaviour behaviour)
{
    return pre_add(p, where, (pre_step){.kind = PRE_CLASS, .class = class, .behaviour = behaviour},
                   NULL);
}

static ig_status get_behaviour(const char *where, const json_t *j, split_behaviour *ret)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    str s;
    TRY(json_get_str(where, j, "behavior", &s));
    for (size_t i = 0; i < N_ELEM(names); i++)
        if (str_eq(s, str_of(names[i]))) return *ret = (split_behaviour)i, IG_OK;
    return ig_fail(IG_EUNSUPPORTED, "%s: behavior \"%.*s\" is not supported", where,
                   (int)(s.n < 100 ? s.n : 100), s.p);
}

static ig_status pre_split(const place *p, const char *where, const json_t *j)
{
    pre_step *s = NULL;
    TRY(pre_add(p, where, (pre_step){.kind = PRE_PATTERN}, &s));
    TRY(get_behaviour(where, j, &s->behaviour));
    TRY(get_bool(where, j, "invert", &s->invert));
    return get_pattern(where, j, &s->pattern, NULL);
}

static ig_status pre_byte_level(const place *p, const char *where, const json_t *j)
{
    bool space, trim, pattern;
    pre_step *s = NULL;
    TRY(get_bool(where, j, "add_prefix_space", &space));
    TRY(json_opt_bool(where, j, "trim_offsets", true,
                      &trim)); /* about offsets, which are not given */
    TRY(json_opt_bool(where, j, "use_regex", true, &pattern));
    if (space) TRY(pre_add(p, where, (pre_step){.kind = PRE_SPACE}, NULL));
    if (pattern) {
        TRY(pre_add(p, where, (pre_step){.kind = PRE_PATTERN, .behaviour = SPLIT_ISOLATED}, &s));
        TRY(regex_open(where, str_of(GPT2_PATTERN), false, &s->pattern));
    }
    return pre_add(p, where, (pre_step){.kind = PRE_BYTE_LEVEL}, NULL);
}

static ig_status get_scheme(const char *where, const json_t *j, prepend_scheme *ret)
{
    static const char *const names[] = {"always", "first", "never"};
    bool space;
    str s;
    TRY(json_opt_str(where, j, "prepend_scheme", &s));
    TRY(json_opt_bool(where, j, "add_prefix_space", true, &space));
    *ret = PREPEND_ALWAYS;
    for (size_t i = 0; s.p; i++) {
        if (i == N_ELEM(names))
            return ig_fail(IG_EUNSUPPORTED, "%s: prepend_scheme \"%.*s\" is not supported", where,
                           (int)(s.n < 100 ? s.n : 100), s.p);
        *ret = (prepend_scheme)i;
        if (str_eq(s, str_of(names[i]))) break;
    }
    if (!space && *ret != PREPEND_NEVER)
        return ig_fail(IG_EFORMAT,
                       "%s: add_prefix_space is false, which contradicts prepend_scheme", where);
    return IG_OK;
}

static ig_status pre_metaspace(const place *p, const char *where, const json_t *j)
{
    pre_step s = {.kind = PRE_METASPACE};
    str text;
    bool cut;
    TRY(get_char(where, j, "replacement", &text, &s.one));
    TRY(get_scheme(where, j, &s.scheme));
    TRY(json_opt_bool(where, j, "split", true, &cut));
    memcpy(s.meta, text.p, text.n);
    s.n_meta = (uint8_t)text.n;
    p->t->first_scheme = p->t->first_scheme || s.scheme == PREPEND_FIRST;
    TRY(pre_add(p, where, s, NULL));
    if (!cut) return IG_OK;
    return pre_add(
        p, where,
        (pre_step){.kind = PRE_CLASS, .class = CLASS_ONE, .one = s.one, .behaviour = SPLIT_NEXT},
        NULL);
}

static ig_status pre_digits(const place *p, const char *where, const json_t *j)
{
    bool single;
    TRY(get_bool(where, j, "individual_digits", &single));
    return pre_class(p, where, CLASS_NUMERIC, single ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
}

static ig_status pre_punctuation(const place *p, const char *where, const json_t *j)
{
    split_behaviour behaviour = SPLIT_ISOLATED;
    if (json_object_get(j, "behavior")) TRY(get_behaviour(where, j, &behaviour));
    return pre_class(p, where, CLASS_PUNCTUATION, behaviour);
}

static ig_status pre_whitespace(const place *p, const char *where, const json_t *j)
{
    (void)j;
    return pre_add(p, where, (pre_step){.kind = PRE_WORDS}, NULL);
}

static ig_status pre_whitespace_split(const place *p, const char *where, const json_t *j)
{
    (void)j;
    return pre_class(p, where, CLASS_SPACE, SPLIT_REMOVED);
}

static ig_status pre_bert(const place *p, const char *where, const json_t *j)
{
    (void)j;
    TRY(pre_class(p, where, CLASS_SPACE, SPLIT_REMOVED));
    return pre_class(p, where, CLASS_PUNCTUATION, SPLIT_ISOLATED);
}

static ig_status pre_delimiter(const place *p, const char *where, const json_t *j)
{
    pre_step s = {.kind = PRE_CLASS, .class = CLASS_ONE, .behaviour = SPLIT_REMOVED};
    str text;
    TRY(get_char(where, j, "delimiter", &text, &s.one));
    return pre_add(p, where, s, NULL);
}

static const component pre_table[] = {
    {"Split", pre_split},
    {"ByteLevel", pre_byte_level},
    {"Metaspace", pre_metaspace},
    {"Digits", pre_digits},
    {"Punctuation", pre_punctuation},
    {"Whitespace", pre_whitespace},
    {"WhitespaceSplit", pre_whitespace_split},
    {"BertPreTokenizer", pre_bert},
    {"CharDelimiterSplit", pre_delimiter},
};

/* ---- post-processors: ids around the text (NO_TOKEN in t->post) ---- */

static ig_status post_add(const place *p, const char *where, int64_t id)
{
    tokenizer *t = p->t;
    if (t->n_post == MAX_STEPS) return full(where);
    if (id >= (int64_t)TOKENIZER_MAX_TOKENS)
        return ig_fail(IG_ELIMIT, "%s: token id %lld is too large", where, (long long)id);
    t->post[t->n_post++] = (int32_t)id;
    return IG_OK;
}

static ig_status post_once(const place *p, const char *where)
{
    if (p->t->n_post)
        return ig_fail(IG_EUNSUPPORTED, "%s: a second processor that adds tokens is not supported",
                       where);
    return IG_OK;
}

/* ["[SEP]", 102] */
static ig_status get_pair_id(const char *where, const json_t *j, const char *key, int64_t *ret_id)
{
    const json_t *pair = json_object_get(j, key), *id = json_array_get(pair, 1);
    if (!json_is_string(json_array_get(pair, 0)) || !json_is_integer(id) ||
        json_integer_value(id) < 0)
        return ig_fail(IG_EFORMAT, "%s: %s: expected [\"token\", id]", where, key);
    *ret_id = json_integer_value(id);
    return IG_OK;
}

static ig_status post_bert(const place *p, const char *where, const json_t *j)
{
    int64_t cls, sep;
    TRY(post_once(p, where));
    TRY(get_pair_id(where, j, "cls", &cls));
    TRY(get_pair_id(where, j, "sep", &sep));
    TRY(post_add(p, where, cls));
    TRY(post_add(p, where, NO_TOKEN));
    return post_add(p, where, sep);
}

static ig_status post_special(const place *p, const char *where, const json_t *j,
                              const json_t *piece)
{
    json_t *all, *one, *ids;
    str name;
    TRY(json_get_str(where, piece, "id", &name));
    TRY(json_get_obj(where, j, "special_tokens", &all));
    one = json_object_getn(all, name.p, name.n);
    if (!json_is_object(one))
        return ig_fail(IG_EFORMAT, "%s: special_tokens lacks \"%.*s\"", where,
                       (int)(name.n < 100 ? name.n : 100), name.p);
    TRY(json_get_arr(where, one, "ids", &ids));
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0)
            return ig_fail(IG_EFORMAT, "%s: ids: expected token ids", where);
        TRY(post_add(p, where, json_integer_value(id)));
    }
    return IG_OK;
}

static ig_status post_template(const place *p, const char *where, const json_t *j)
{
    json_t *single;
    TRY(post_once(p, where));
    TRY(json_get_arr(where, j, "single", &single));
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *piece = json_array_get(single, i), *text = json_object_get(piece, "Sequence");
        const json_t *special = json_object_get(piece, "SpecialToken");
        str name;
        if (special) {
            TRY(post_special(p, where, j, special));
            continue;
        }
        if (!text)
            return ig_fail(IG_EFORMAT, "%s: single[%zu]: expected Sequence or SpecialToken", where,
                           i);
        TRY(json_get_str(where, text, "id", &name));
        if (!str_eq(name, str_of("A")))
            return ig_fail(IG_EFORMAT,
                           "%s: single[%zu]: only Sequence A is there for a single text", where, i);
        TRY(post_add(p, where, NO_TOKEN));
    }
    return IG_OK;
}

/* Only trims offsets, which are not given. */
static ig_status post_byte_level(const place *p, const char *where, const json_t *j)
{
    (void)p;
    (void)where;
    (void)j;
    return IG_OK;
}

static const component post_table[] = {
    {"TemplateProcessing", post_template},
    {"ByteLevel", post_byte_level},
    {"BertProcessing", post_bert},
    {"RobertaProcessing", post_bert},
};

/* ---- decoders ---- */

static ig_status decode_add(const place *p, const char *where, decode_step s,
                            decode_step **ret_step)
{
    tokenizer *t = p->t;
    if (t->n_decode == MAX_STEPS) return full(where);
    t->decode[t->n_decode] = s;
    if (ret_step) *ret_step = &t->decode[t->n_decode];
    t->n_decode++;
    return IG_OK;
}

#define DECODE_PLAIN(name, kind_)                                             \
    static ig_status name(const place *p, const char *where, const json_t *j) \
    {                                                                         \
        (void)j;                                                              \
        return decode_add(p, where, (decode_step){.kind = kind_}, NULL);      \
    }
DECODE_PLAIN(decode_byte_level, DECODE_BYTE_LEVEL)
DECODE_PLAIN(decode_byte_fallback, DECODE_BYTE_FALLBACK)
DECODE_PLAIN(decode_fuse, DECODE_FUSE)

static ig_status decode_strip(const place *p, const char *where, const json_t *j)
{
    decode_step *s = NULL;
    str text;
    uint32_t cp;
    int64_t start, stop;
    TRY(get_char(where, j, "content", &text, &cp));
    TRY(json_get_int(where, j, "start", 0, INT32_MAX, &start));
    TRY(json_get_int(where, j, "stop", 0, INT32_MAX, &stop));
    TRY(decode_add(
        p, where, (decode_step){.kind = DECODE_STRIP, .start = (size_t)start, .stop = (size_t)stop},
        &s));
    return get_text(where, j, "content", &s->text, &s->n_text);
}

static ig_status decode_replace(const place *p, const char *where, const json_t *j)
{
    decode_step *s = NULL;
    str literal;
    TRY(decode_add(p, where, (decode_step){.kind = DECODE_REPLACE}, &s));
    TRY(get_pattern(where, j, &s->pattern, &literal));
    if (literal.n && !(s->literal = mem_dup(literal.p, literal.n))) return IG_ENOMEM;
    s->n_literal = literal.n;
    return get_text(where, j, "content", &s->text, &s->n_text);
}

static ig_status decode_metaspace(const place *p, const char *where, const json_t *j)
{
    decode_step *s = NULL;
    prepend_scheme scheme;
    str text;
    uint32_t cp;
    TRY(get_char(where, j, "replacement", &text, &cp));
    TRY(get_scheme(where, j, &scheme));
    TRY(decode_add(p, where,
                   (decode_step){.kind = DECODE_METASPACE, .prefix = scheme != PREPEND_NEVER}, &s));
    return get_text(where, j, "replacement", &s->text, &s->n_text);
}

static ig_status decode_wordpiece(const place *p, const char *where, const json_t *j)
{
    decode_step *s = NULL;
    TRY(decode_add(p, where, (decode_step){.kind = DECODE_WORDPIECE}, &s));
    TRY(get_bool(where, j, "cleanup", &s->cleanup));
    return get_text(where, j, "prefix", &s->text, &s->n_text);
}

static ig_status decode_bpe(const place *p, const char *where, const json_t *j)
{
    decode_step *s = NULL;
    TRY(decode_add(p, where, (decode_step){.kind = DECODE_BPE}, &s));
    return get_text(where, j, "suffix", &s->text, &s->n_text);
}

static const component decode_table[] = {
    {"ByteLevel", decode_byte_level},
    {"ByteFallback", decode_byte_fallback},
    {"Fuse", decode_fuse},
    {"Strip", decode_strip},
    {"Replace", decode_replace},
    {"Metaspace", decode_metaspace},
    {"WordPiece", decode_wordpiece},
    {"BPEDecoder", decode_bpe},
};

ig_status load_components(const char *what, const json_t *root, tokenizer *t)
{
    static const component_kind norm = {"normalizers", norm_table, N_ELEM(norm_table)};
    static const component_kind pre = {"pretokenizers", pre_table, N_ELEM(pre_table)};
    static const component_kind post = {"processors", post_table, N_ELEM(post_table)};
    static const component_kind decode = {"decoders", decode_table, N_ELEM(decode_table)};
    t->norm = mem_calloc(MAX_STEPS, sizeof *t->norm);
    t->pre = mem_calloc(MAX_STEPS, sizeof *t->pre);
    t->post = mem_calloc(MAX_STEPS, sizeof *t->post);
    t->decode = mem_calloc(MAX_STEPS, sizeof *t->decode);
    if (!t->norm || !t->pre || !t->post || !t->decode) return IG_ENOMEM;
    TRY(load_kind(what, root, "normalizer", &norm, t));
    TRY(load_kind(what, root, "pre_tokenizer", &pre, t));
    TRY(load_kind(what, root, "post_processor", &post, t));
    if (t->n_post == 0) t->post[t->n_post++] = NO_TOKEN;
    TRY(load_kind(what, root, "decoder", &decode, t));
    json_t *decoder = json_object_get(root, "decoder");
    if (!decoder || json_is_null(decoder))
        t->decode[t->n_decode++] = (decode_step){.kind = DECODE_JOIN};
    return IG_OK;
}

void components_done(tokenizer *t)
{
    for (size_t i = 0; i < t->n_norm; i++) {
        mem_free(t->norm[i].text);
        regex_free(t->norm[i].pattern);
        mem_free(t->norm[i].map.units);
        mem_free(t->norm[i].map.strings);
    }
    for (size_t i = 0; i < t->n_pre; i++) regex_free(t->pre[i].pattern);
    for (size_t i = 0; i < t->n_decode; i++) {
        mem_free(t->decode[i].text);
        regex_free(t->decode[i].pattern);
        mem_free(t->decode[i].literal);
    }
    mem_free(t->norm);
    mem_free(t->pre);
    mem_free(t->post);
    mem_free(t->decode);
}
