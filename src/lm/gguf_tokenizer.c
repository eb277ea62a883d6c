/* gguf_tokenizer.c: a GGUF's tokenizer as tokenizer.json (contract in gguf_tokenizer.h).
 *
 * "gpt2" is byte-level BPE; the pre-tokeniser's name stands for a set of patterns, taken from
 * the published tokenizer.json of the models that use it. The unknown token is left out: such a
 * model drops what it has no byte for, it does not write <|endoftext|>. "llama" is SentencePiece
 * BPE: its merges are not in the file; they follow from the scores, in the order in which the
 * usual converter writes them. */
#include "lm/gguf_tokenizer.h"
#include <stdlib.h>
#include <string.h>
#include "lm/tokenizer.h"
#include "lm/tokenizer_unicode.h"
#include "lm/tokenizer_vocab.h"

enum token_type {
    TYPE_NORMAL = 1,
    TYPE_UNKNOWN = 2,
    TYPE_CONTROL = 3,
    TYPE_USER_DEFINED = 4,
    TYPE_UNUSED = 5,
    TYPE_BYTE = 6
};

/* ---- pre-tokenisers ---- */

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TAIL_SLASH "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(contractions)                                                                   \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" contractions "|[^\\r\\n\\p{L}\\p{N}]?" UPPER \
    "+" LOWER "*" contractions
#define LLAMA3_PATTERN CONTRACTIONS "|" LETTERS "|\\p{N}{1,3}" TAIL
#define QWEN2_PATTERN CONTRACTIONS "|" LETTERS "|\\p{N}" TAIL

typedef struct pre_form {
    const char *name;
    const char *split[4]; /* patterns, isolated, one after another */
    bool digits;          /* every digit by itself, first */
    bool gpt2;            /* then the pattern that ByteLevel brings */
    bool ignore_merges;
    bool nfc; /* normalised first */
} pre_form;

static const pre_form pre_forms[] = {
    {.name = "gpt-2", .gpt2 = true},
    {.name = "gpt2", .gpt2 = true},
    {.name = "mpt", .gpt2 = true, .nfc = true},
    {.name = "olmo", .gpt2 = true, .nfc = true},
    {.name = "smollm", .digits = true, .gpt2 = true},
    {.name = "starcoder", .digits = true, .gpt2 = true},
    {.name = "refact", .digits = true, .gpt2 = true},
    {.name = "command-r", .digits = true, .gpt2 = true, .nfc = true},
    {.name = "codeshell", .digits = true, .gpt2 = true},
    {.name = "llama-bpe", .split = {LLAMA3_PATTERN}, .ignore_merges = true},
    {.name = "llama3", .split = {LLAMA3_PATTERN}, .ignore_merges = true},
    {.name = "llama-v3", .split = {LLAMA3_PATTERN}, .ignore_merges = true},
    {.name = "smaug-bpe", .split = {LLAMA3_PATTERN}},
    {.name = "dbrx", .split = {LLAMA3_PATTERN}},
    {.name = "chatglm-bpe", .split = {LLAMA3_PATTERN}},
    {.name = "glm4", .split = {LLAMA3_PATTERN}},
    {.name = "qwen2", .split = {QWEN2_PATTERN}, .nfc = true},
    {.name = "deepseek-r1-qwen", .split = {QWEN2_PATTERN}, .nfc = true},
    {.name = "stablelm2", .split = {QWEN2_PATTERN}, .nfc = true},
    {.name = "tekken", .split = {CASED("") "|\\p{N}" TAIL_SLASH}, .ignore_merges = true},
    {.name = "gpt-4o", .split = {CASED(CONTRACTIONS "?") "|\\p{N}{1,3}" TAIL_SLASH}},
    {.name = "llama4", .split = {CASED(CONTRACTIONS "?") "|\\p{N}{1,3}" TAIL_SLASH}},
    {.name = "deepseek-v3",
     .split = {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
               "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
               "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
               "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
};

static const pre_form *find_form(str name)
{
    for (size_t i = 0; i < N_ELEM(pre_forms); i++)
        if (str_eq(name, str_of(pre_forms[i].name))) return &pre_forms[i];
    return NULL;
}

/* ---- parts of the JSON ---- */

/* JSON, here written with single quotes. */
static void put(buf *out, const char *json)
{
    for (; *json; json++) buf_char(out, *json == '\'' ? '"' : *json);
}

static void put_str(buf *out, str s) { buf_json_string(out, s.p, s.n); }

static int32_t type_of(const gguf_tokenizer *g, size_t i)
{
    return g->types ? g->types[i] : TYPE_NORMAL;
}

/* Tokens that are found as they stand in the text: control and user-defined ones. */
static void put_added(const gguf_tokenizer *g, buf *out)
{
    bool first = true;
    put(out, "'added_tokens':[");
    for (size_t i = 0; i < g->n_tokens; i++) {
        int32_t type = type_of(g, i);
        bool special = type == TYPE_CONTROL || type == TYPE_UNKNOWN;
        if (!special && type != TYPE_USER_DEFINED) continue;
        put(out, first ? "{'id':" : ",{'id':");
        first = false;
        buf_printf(out, "%zu", i);
        put(out, ",'content':");
        put_str(out, g->tokens[i]);
        put(out, ",'single_word':false,'lstrip':false,'rstrip':false,'normalized':false,");
        put(out, special ? "'special':true}" : "'special':false}");
    }
    put(out, "],");
}

/* "name":{...}, a special token of a template. */
static void put_special(const gguf_tokenizer *g, const char *name, int64_t id, buf *out)
{
    put_str(out, str_of(name));
    put(out, ":{'id':");
    put_str(out, str_of(name));
    buf_printf(out, ",\"ids\":[%lld],\"tokens\":[", (long long)id);
    put_str(out, g->tokens[id]);
    put(out, "]}");
}

/* What goes around a text. */
static void put_post(const gguf_tokenizer *g, buf *out)
{
    int64_t before = g->add_bos ? g->bos_id : -1, after = g->add_eos ? g->eos_id : -1;
    put(out, "'post_processor':");
    if (before < 0 && after < 0) {
        put(out, "null,");
        return;
    }
    put(out, "{'type':'TemplateProcessing','single':[");
    if (before >= 0) put(out, "{'SpecialToken':{'id':'bos','type_id':0}},");
    put(out, "{'Sequence':{'id':'A','type_id':0}}");
    if (after >= 0) put(out, ",{'SpecialToken':{'id':'eos','type_id':0}}");
    put(out, "],'pair':[{'Sequence':{'id':'A','type_id':0}},{'Sequence':{'id':'B','type_id':1}}],");
    put(out, "'special_tokens':{");
    if (before >= 0) put_special(g, "bos", before, out);
    if (before >= 0 && after >= 0) put(out, ",");
    if (after >= 0) put_special(g, "eos", after, out);
    put(out, "}},");
}

static void put_vocab(const gguf_tokenizer *g, buf *out)
{
    put(out, "'vocab':{");
    for (size_t i = 0; i < g->n_tokens; i++) {
        if (i) buf_char(out, ',');
        put_str(out, g->tokens[i]);
        buf_printf(out, ":%zu", i);
    }
    put(out, "}");
}

static ig_status check(const gguf_tokenizer *g)
{
    if (g->n_tokens == 0) return ig_fail(IG_EFORMAT, "the GGUF has no tokenizer.ggml.tokens");
    if (g->n_tokens > TOKENIZER_MAX_TOKENS)
        return ig_fail(IG_ELIMIT, "the GGUF has %zu tokens, at most %zu are read", g->n_tokens,
                       TOKENIZER_MAX_TOKENS);
    if (g->n_merges > TOKENIZER_MAX_MERGES)
        return ig_fail(IG_ELIMIT, "the GGUF has %zu merges, at most %zu are read", g->n_merges,
                       TOKENIZER_MAX_MERGES);
    const int64_t ids[] = {g->bos_id, g->eos_id, g->unk_id};
    static const char *const names[] = {"bos", "eos", "unknown"};
    for (size_t i = 0; i < N_ELEM(ids); i++)
        if (ids[i] < -1 || ids[i] >= (int64_t)g->n_tokens)
            return ig_fail(IG_EFORMAT,
                           "tokenizer.ggml.%s_token_id is %lld, and there are %zu tokens", names[i],
                           (long long)ids[i], g->n_tokens);
    for (size_t i = 0; i < g->n_tokens; i++)
        if (!utf8_valid(g->tokens[i].p, g->tokens[i].n))
            return ig_fail(IG_EFORMAT, "tokenizer.ggml.tokens[%zu] is not UTF-8", i);
    for (size_t i = 0; i < g->n_merges; i++)
        if (!utf8_valid(g->merges[i].p, g->merges[i].n))
            return ig_fail(IG_EFORMAT, "tokenizer.ggml.merges[%zu] is not UTF-8", i);
    return IG_OK;
}

/* ---- byte-level BPE ---- */

static void put_pre(const pre_form *form, buf *out)
{
    put(out, "'pre_tokenizer':{'type':'Sequence','pretokenizers':[");
    if (form->digits) put(out, "{'type':'Digits','individual_digits':true},");
    for (size_t i = 0; i < N_ELEM(form->split) && form->split[i]; i++) {
        put(out, "{'type':'Split','pattern':{'Regex':");
        put_str(out, str_of(form->split[i]));
        put(out, "},'behavior':'Isolated','invert':false},");
    }
    put(out, "{'type':'ByteLevel','add_prefix_space':false,'trim_offsets':true,");
    put(out, form->gpt2 ? "'use_regex':true}]}," : "'use_regex':false}]},");
}

static ig_status gpt2_to_json(const gguf_tokenizer *g, buf *out)
{
    const pre_form *form = find_form(g->pre);
    if (!form)
        return ig_fail(
            IG_EUNSUPPORTED,
            "tokenizer.ggml.pre \"%.*s\": how this pre-tokeniser splits text is not known here; "
            "pack from the model's Hugging Face files instead",
            (int)(g->pre.n < 100 ? g->pre.n : 100), g->pre.p);
    if (g->n_merges == 0) return ig_fail(IG_EFORMAT, "the GGUF has no tokenizer.ggml.merges");
    put_added(g, out);
    put(out, form->nfc ? "'normalizer':{'type':'NFC'}," : "'normalizer':null,");
    put_pre(form, out);
    put_post(g, out);
    put(out, "'decoder':{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,");
    put(out, "'use_regex':true},'model':{'type':'BPE','dropout':null,'unk_token':null,");
    put(out, "'continuing_subword_prefix':null,'end_of_word_suffix':null,'fuse_unk':false,");
    put(out, "'byte_fallback':false,");
    put(out, form->ignore_merges ? "'ignore_merges':true," : "'ignore_merges':false,");
    put_vocab(g, out);
    put(out, ",'merges':[");
    for (size_t i = 0; i < g->n_merges; i++) {
        if (i) buf_char(out, ',');
        put_str(out, g->merges[i]);
    }
    put(out, "]}");
    return IG_OK;
}

/* ---- SentencePiece BPE ---- */

/* A way to make a token of two others. */
typedef struct spm_merge {
    float score;              /* of the token made */
    uint32_t n_left, n_right; /* characters */
    uint32_t left, right;     /* ids */
    uint32_t order;           /* among equals, the order of finding */
} spm_merge;

static int compare_merges(const void *a, const void *b)
{
    const spm_merge *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->n_left != y->n_left) return x->n_left > y->n_left ? -1 : 1;
    if (x->n_right != y->n_right) return x->n_right > y->n_right ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int compare_ids(const void *a, const void *b)
{
    const spm_merge *x = a, *y = b;
    if (x->left != y->left) return x->left < y->left ? -1 : 1;
    return x->right < y->right ? -1 : x->right > y->right;
}

static uint32_t count_chars(str s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

typedef struct merge_list {
    spm_merge *p;
    size_t n, cap;
} merge_list;

static ig_status add_merge(merge_list *l, spm_merge m)
{
    if (l->n == TOKENIZER_MAX_MERGES)
        return ig_fail(IG_ELIMIT, "the scores give over %zu merges", TOKENIZER_MAX_MERGES);
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 1024;
        spm_merge *p = mem_realloc(l->p, cap * sizeof *p);
        if (!p) return IG_ENOMEM;
        l->p = p;
        l->cap = cap;
    }
    l->p[l->n++] = m;
    return IG_OK;
}

/* Every cut of every token into two tokens; the cuts of one token in order of their ids. */
static ig_status find_merges(const gguf_tokenizer *g, const vocab *v, merge_list *l)
{
    for (size_t id = 0; id < g->n_tokens; id++) {
        str s = g->tokens[id];
        size_t first = l->n;
        for (size_t at = 1; at < s.n; at++) {
            if (((uint8_t)s.p[at] & 0xc0) == 0x80) continue;
            str left = {s.p, at}, right = {s.p + at, s.n - at};
            int32_t l_id = vocab_find(v, left), r_id = vocab_find(v, right);
            if (l_id < 0 || r_id < 0) continue;
            TRY(add_merge(l, (spm_merge){g->scores[id], count_chars(left), count_chars(right),
                                         (uint32_t)l_id, (uint32_t)r_id, 0}));
        }
        if (l->n > first) qsort(l->p + first, l->n - first, sizeof *l->p, compare_ids);
        for (size_t i = first; i < l->n; i++) l->p[i].order = (uint32_t)i;
    }
    return IG_OK;
}

static ig_status put_spm_merges(const gguf_tokenizer *g, merge_list *l, buf *out)
{
    vocab v;
    size_t n_bytes = 0;
    for (size_t i = 0; i < g->n_tokens; i++) n_bytes += g->tokens[i].n;
    TRY(vocab_init(&v, g->n_tokens, n_bytes));
    for (size_t i = 0; i < g->n_tokens; i++) (void)vocab_put(&v, g->tokens[i], (int32_t)i);
    ig_status s = find_merges(g, &v, l);
    vocab_done(&v);
    TRY(s);
    if (l->n) qsort(l->p, l->n, sizeof *l->p, compare_merges);
    for (size_t i = 0; i < l->n; i++) {
        put(out, i ? ",[" : "[");
        put_str(out, g->tokens[l->p[i].left]);
        buf_char(out, ',');
        put_str(out, g->tokens[l->p[i].right]);
        buf_char(out, ']');
    }
    return IG_OK;
}

static ig_status llama_to_json(const gguf_tokenizer *g, buf *out)
{
    if (!g->scores) return ig_fail(IG_EFORMAT, "the GGUF has no tokenizer.ggml.scores");
    for (size_t i = 0; i < g->n_tokens; i++)
        if (!(g->scores[i] == g->scores[i]))
            return ig_fail(IG_EFORMAT, "tokenizer.ggml.scores[%zu] is not a number", i);
    put_added(g, out);
    put(out, "'normalizer':{'type':'Sequence','normalizers':[");
    if (g->add_space_prefix) put(out, "{'type':'Prepend','prepend':'▁'},");
    put(out, "{'type':'Replace','pattern':{'String':' '},'content':'▁'}]},");
    put(out, "'pre_tokenizer':null,");
    put_post(g, out);
    put(out, "'decoder':{'type':'Sequence','decoders':[{'type':'Replace',");
    put(out, "'pattern':{'String':'▁'},'content':' '},{'type':'ByteFallback'},{'type':'Fuse'}");
    if (g->add_space_prefix) put(out, ",{'type':'Strip','content':' ','start':1,'stop':0}");
    put(out, "]},'model':{'type':'BPE','dropout':null,'unk_token':");
    if (g->unk_id >= 0)
        put_str(out, g->tokens[g->unk_id]);
    else
        put(out, "null");
    put(out, ",'continuing_subword_prefix':null,'end_of_word_suffix':null,'fuse_unk':true,");
    put(out, "'byte_fallback':true,'ignore_merges':false,");
    put_vocab(g, out);
    put(out, ",'merges':[");
    merge_list l = {0};
    ig_status s = put_spm_merges(g, &l, out);
    mem_free(l.p);
    TRY(s);
    put(out, "]}");
    return IG_OK;
}

ig_status gguf_tokenizer_to_json(const gguf_tokenizer *g, buf *ret_json)
{
    TRY(check(g));
    buf_str(ret_json, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
    if (str_eq(g->model, str_of("gpt2")))
        TRY(gpt2_to_json(g, ret_json));
    else if (str_eq(g->model, str_of("llama")))
        TRY(llama_to_json(g, ret_json));
    else
        return ig_fail(IG_EUNSUPPORTED,
                       "tokenizer.ggml.model \"%.*s\" is not supported (gpt2 and llama are)",
                       (int)(g->model.n < 100 ? g->model.n : 100), g->model.p);
    buf_str(ret_json, "}");
    return buf_status(ret_json);
}
