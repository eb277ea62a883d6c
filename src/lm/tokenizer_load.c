/* tokenizer_load.c: tokenizer.json into a tokenizer: the model and its vocabulary; the other
 * parts in tokenizer_components.c and tokenizer_added.c. Every size is bounded before memory is
 * taken. */
#include <string.h>
#include "lm/tokenizer_impl.h"

#define MAX_DEPTH 24
#define UNK_PENALTY 10.0

/* ---- vocabularies ---- */

typedef struct measure {
    size_t n_ids;   /* highest id + 1 */
    size_t n_bytes; /* of all texts */
} measure;

static ig_status measure_token(const char *what, str text, int64_t id, measure *m)
{
    if (text.n > TOKENIZER_MAX_TOKEN_BYTES)
        return ig_fail(IG_ELIMIT, "%s: vocab: a token of %zu bytes, at most %zu are read", what,
                       text.n, TOKENIZER_MAX_TOKEN_BYTES);
    if (id < 0 || (uint64_t)id >= TOKENIZER_MAX_TOKENS)
        return ig_fail(IG_ELIMIT, "%s: vocab: \"%.*s\" has id %lld, ids are 0 to %zu", what,
                       (int)text.n, text.p, (long long)id, TOKENIZER_MAX_TOKENS - 1);
    m->n_bytes += text.n;
    if ((size_t)id >= m->n_ids) m->n_ids = (size_t)id + 1;
    return IG_OK;
}

static ig_status put_token(const char *what, vocab *v, str text, int32_t id)
{
    str old;
    if (vocab_put(v, text, id)) return IG_OK;
    (void)vocab_text(v, id, &old);
    return ig_fail(IG_EFORMAT, "%s: vocab: \"%.*s\" and \"%.*s\" both have id %d", what, (int)old.n,
                   old.p, (int)text.n, text.p, id);
}

/* {"token": id, ...}; ids may have holes. */
static ig_status vocab_from_object(const char *what, const json_t *model, vocab *v)
{
    json_t *object, *value;
    const char *key;
    measure m = {0};
    TRY(json_get_obj(what, model, "vocab", &object));
    json_object_foreach(object, key, value)
    {
        if (!json_is_integer(value))
            return ig_fail(IG_EFORMAT, "%s: vocab: \"%s\": expected an integer id", what, key);
        TRY(measure_token(what, str_of(key), json_integer_value(value), &m));
    }
    TRY(vocab_init(v, m.n_ids, m.n_bytes));
    json_object_foreach(object, key, value)
        TRY(put_token(what, v, str_of(key), (int32_t)json_integer_value(value)));
    return IG_OK;
}

static ig_status scored_token(const char *what, const json_t *list, size_t i, str *ret_text,
                              double *ret_score)
{
    const json_t *j = json_array_get(list, i), *text = json_array_get(j, 0),
                 *score = json_array_get(j, 1);
    if (!json_is_string(text) || !json_is_number(score) || json_array_size(j) != 2)
        return ig_fail(IG_EFORMAT, "%s: vocab[%zu]: expected [\"token\", score]", what, i);
    *ret_text = (str){json_string_value(text), json_string_length(text)};
    *ret_score = json_number_value(score);
    return IG_OK;
}

/* [["token", score], ...]; the place is the id. */
static ig_status vocab_from_list(const char *what, const json_t *model, tokenizer *t)
{
    json_t *list;
    measure m = {0};
    str text;
    double score, lowest = 0;
    TRY(json_get_arr(what, model, "vocab", &list));
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        TRY(scored_token(what, list, i, &text, &score));
        TRY(measure_token(what, text, (int64_t)i, &m));
        if (i == 0 || score < lowest) lowest = score;
    }
    TRY(vocab_init(&t->vocab, m.n_ids, m.n_bytes));
    t->unigram.score = mem_alloc(n * sizeof *t->unigram.score);
    if (!t->unigram.score) return IG_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        TRY(scored_token(what, list, i, &text, &t->unigram.score[i]));
        TRY(put_token(what, &t->vocab, text, (int32_t)i));
    }
    t->unigram.unk_score = lowest - UNK_PENALTY;
    return IG_OK;
}

static ig_status build_trie(tokenizer *t)
{
    TRY(trie_init(&t->trie));
    for (size_t id = 0; id < t->vocab.n_ids; id++) {
        str text;
        if (!vocab_text(&t->vocab, (int32_t)id, &text) || text.n == 0) continue;
        /* of equal texts the last counts, as in the reference's map */
        TRY(trie_put(&t->trie, text, (int32_t)id, true));
    }
    return IG_OK;
}

static void find_bytes(tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        t->byte_id[b] = vocab_find(&t->vocab, (str){text, 6});
    }
}

/* ---- models ---- */

/* A string that may be absent, copied; *ret_text stays NULL then. */
static ig_status copy_str(const char *what, const json_t *j, const char *key, char **ret_text,
                          size_t *ret_n)
{
    str s;
    TRY(json_opt_str(what, j, key, &s));
    if (!s.p) return IG_OK;
    if (s.n > TOKENIZER_MAX_TOKEN_BYTES)
        return ig_fail(IG_ELIMIT, "%s: %s has %zu bytes, at most %zu are read", what, key, s.n,
                       TOKENIZER_MAX_TOKEN_BYTES);
    *ret_text = mem_dup(s.p, s.n);
    *ret_n = s.n;
    return *ret_text ? IG_OK : IG_ENOMEM;
}

static ig_status load_bpe(const char *what, const json_t *model, tokenizer *t)
{
    json_t *merges;
    double dropout;
    str unk;
    t->kind = MODEL_BPE;
    TRY(vocab_from_object(what, model, &t->vocab));
    TRY(json_opt_num(what, model, "dropout", 0, 1, 0, &dropout));
    if (dropout > 0)
        return ig_fail(IG_EUNSUPPORTED,
                       "%s: dropout makes tokens random and is not supported; set it to null",
                       what);
    TRY(json_opt_str(what, model, "unk_token", &unk));
    t->has_unk = unk.p != NULL;
    t->unk_id = unk.p ? vocab_find(&t->vocab, unk) : NO_TOKEN;
    TRY(copy_str(what, model, "continuing_subword_prefix", &t->bpe.prefix, &t->bpe.n_prefix));
    TRY(copy_str(what, model, "end_of_word_suffix", &t->bpe.suffix, &t->bpe.n_suffix));
    TRY(json_opt_bool(what, model, "fuse_unk", false, &t->bpe.fuse_unk));
    TRY(json_opt_bool(what, model, "byte_fallback", false, &t->bpe.byte_fallback));
    TRY(json_opt_bool(what, model, "ignore_merges", false, &t->bpe.ignore_merges));
    find_bytes(t);
    TRY(json_get_arr(what, model, "merges", &merges));
    return bpe_load_merges(what, merges, t);
}

static ig_status load_unigram(const char *what, const json_t *model, tokenizer *t)
{
    int64_t unk;
    t->kind = MODEL_UNIGRAM;
    TRY(vocab_from_list(what, model, t));
    TRY(json_opt_int(what, model, "unk_id", -1, (int64_t)t->vocab.n_ids - 1, -1, &unk));
    t->unk_id = (int32_t)unk;
    t->has_unk = unk >= 0;
    TRY(json_opt_bool(what, model, "byte_fallback", false, &t->unigram.byte_fallback));
    find_bytes(t);
    return build_trie(t);
}

static ig_status load_wordpiece(const char *what, const json_t *model, tokenizer *t)
{
    int64_t max_chars;
    str unk;
    t->kind = MODEL_WORDPIECE;
    TRY(vocab_from_object(what, model, &t->vocab));
    TRY(json_get_str(what, model, "unk_token", &unk));
    t->unk_id = vocab_find(&t->vocab, unk);
    t->has_unk = true;
    TRY(copy_str(what, model, "continuing_subword_prefix", &t->wordpiece.prefix,
                 &t->wordpiece.n_prefix));
    TRY(json_get_int(what, model, "max_input_chars_per_word", 0, INT64_MAX, &max_chars));
    t->wordpiece.max_chars = (size_t)max_chars;
    return build_trie(t);
}

static ig_status load_model(const char *what, const json_t *root, tokenizer *t)
{
    json_t *model;
    str type;
    char where[256];
    TRY(json_get_obj(what, root, "model", &model));
    snprintf(where, sizeof where, "%.200s: model", what);
    TRY(json_opt_str(where, model, "type", &type));
    if (!type.p)
        type = str_of(json_object_get(model, "merges") ? "BPE" : "without type"); /* old files */
    if (str_eq(type, str_of("BPE"))) return load_bpe(where, model, t);
    if (str_eq(type, str_of("Unigram"))) return load_unigram(where, model, t);
    if (str_eq(type, str_of("WordPiece"))) return load_wordpiece(where, model, t);
    return ig_fail(IG_EUNSUPPORTED, "%s \"%.*s\" is not supported (BPE, Unigram and WordPiece are)",
                   where, (int)type.n, type.p);
}

ig_status load_tokenizer(const char *what, str json, tokenizer *t)
{
    AUTO(json_ptr) root = NULL;
    str version;
    TRY(json_parse(what, json, TOKENIZER_MAX_JSON_BYTES, MAX_DEPTH, &root));
    if (!json_is_object(root)) return ig_fail(IG_EFORMAT, "%s: expected a JSON object", what);
    TRY(json_opt_str(what, root, "version", &version));
    if (version.p && !str_eq(version, str_of("1.0")))
        return ig_fail(IG_EUNSUPPORTED, "%s: version \"%.*s\" is not supported (1.0 is)", what,
                       (int)version.n, version.p);
    TRY(load_model(what, root, t));
    TRY(load_components(what, root, t));
    return load_added(what, root, t);
}
