/* tokenizer_impl.h: what the files of the tokenizer share. Everything else includes tokenizer.h.
 *
 * A text runs through: added tokens in the raw text (tokenizer_added.c), normalisation
 * (normalise.c), added tokens in the normalised text, pre-tokenisation into pieces
 * (pretokenize.c), the model per piece (bpe.c, unigram.c, wordpiece.c), post-processing
 * (tokenizer.c). Decoders: detokenise.c. All working memory is an `encoder`; the tokenizer
 * itself never changes after it is open. */
#ifndef LM_TOKENIZER_IMPL_H
#define LM_TOKENIZER_IMPL_H
#include "base/json.h"
#include "base/thread.h"
#include "lm/tokenizer.h"
#include "lm/tokenizer_regex.h"
#include "lm/tokenizer_trie.h"
#include "lm/tokenizer_unicode.h"
#include "lm/tokenizer_vocab.h"

#define MAX_STEPS ((size_t)64)           /* components of one kind, sequences flattened */
#define MAX_WORK_BYTES ((size_t)1 << 30) /* one text while it is worked on; offsets are uint32_t */
#define NO_TOKEN (-1)

/* ---- growable arrays ---- */

/* Room for `need` elements; *p and *cap change together or not at all. */
IG_MUST_USE ig_status array_reserve(void **p, size_t *cap, size_t need, size_t size);

/* ---- text while it is worked on ---- */

enum mark {
    MARK_TRUSTED = 1, /* every source character was trusted */
    MARK_START = 2    /* comes from the first character of the whole text (Metaspace "first") */
};

/* A view: bytes, and one mark per byte where somebody needs marks (else NULL). */
typedef struct text_view {
    const char *p;
    size_t n;
    const uint8_t *mark;
} text_view;

/* Owned text that a step writes. */
typedef struct text_buf {
    char *p;
    uint8_t *mark;
    size_t n, cap, cap_mark;
    bool marked; /* keep marks */
} text_buf;

/* Room for `more` bytes, which text_put may then write. */
IG_MUST_USE ig_status text_reserve(text_buf *t, size_t more);
static inline void text_put(text_buf *t, const char *p, size_t n, uint8_t mark)
{
    __builtin_memcpy(t->p + t->n, p, n);
    if (t->marked) __builtin_memset(t->mark + t->n, mark, n);
    t->n += n;
}
static inline text_view text_of(const text_buf *t)
{
    return (text_view){t->p, t->n, t->marked ? t->mark : NULL};
}

/* A stretch of a text: one word, or a match of a pattern. */
typedef struct stretch {
    uint32_t at, n;
    bool match; /* pattern matches only */
} stretch;
typedef struct piece_list {
    stretch *p;
    size_t n, cap;
} piece_list;
IG_MUST_USE ig_status pieces_add(piece_list *l, size_t at, size_t n, bool match);

/* ---- components ---- */

typedef enum norm_kind {
    NORM_NFC,
    NORM_NFD,
    NORM_NFKC,
    NORM_NFKD,
    NORM_LOWERCASE,
    NORM_STRIP_ACCENTS,
    NORM_STRIP_NONSPACING, /* BertNormalizer strip_accents, after NFD */
    NORM_CLEAN,            /* BertNormalizer clean_text */
    NORM_CHINESE,          /* BertNormalizer handle_chinese_chars */
    NORM_NMT,
    NORM_STRIP,
    NORM_PREPEND,
    NORM_REPLACE,
    NORM_PRECOMPILED,
    NORM_BYTE_LEVEL
} norm_kind;

/* SentencePiece's precompiled_charsmap: a double-array trie over replacement strings. */
typedef struct charsmap {
    uint32_t *units;
    size_t n_units;
    char *strings; /* NUL-separated */
    size_t n_strings;
} charsmap;

typedef struct norm_step {
    norm_kind kind;
    bool left, right; /* STRIP */
    char *text;       /* PREPEND, REPLACE: what is put in; owned */
    size_t n_text;
    regex *pattern; /* REPLACE; owned */
    charsmap map;   /* PRECOMPILED; owned */
} norm_step;

typedef enum split_behaviour {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_PREVIOUS,
    SPLIT_NEXT,
    SPLIT_CONTIGUOUS
} split_behaviour;

typedef enum pre_kind {
    PRE_PATTERN, /* Split, ByteLevel's own pattern */
    /* one-character patterns: Digits, Punctuation, WhitespaceSplit, BertPreTokenizer,
     * CharDelimiterSplit */
    PRE_CLASS,
    PRE_WORDS,     /* Whitespace */
    PRE_METASPACE, /* only the replacement; its split is a PRE_CLASS after it */
    PRE_SPACE,     /* ByteLevel add_prefix_space */
    PRE_BYTE_LEVEL /* bytes to the printable alphabet */
} pre_kind;

typedef enum char_class { CLASS_NUMERIC, CLASS_PUNCTUATION, CLASS_SPACE, CLASS_ONE } char_class;
typedef enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER } prepend_scheme;

typedef struct pre_step {
    pre_kind kind;
    split_behaviour behaviour;
    bool invert;
    char_class class; /* CLASS */
    uint32_t one;     /* CLASS_ONE: the delimiter */
    regex *pattern;   /* PATTERN; owned */
    char meta[4];     /* METASPACE: the replacement */
    uint8_t n_meta;
    prepend_scheme scheme; /* METASPACE */
} pre_step;

typedef enum decode_kind {
    DECODE_BYTE_LEVEL,
    DECODE_BYTE_FALLBACK,
    DECODE_FUSE,
    DECODE_STRIP,
    DECODE_REPLACE,
    DECODE_METASPACE,
    DECODE_WORDPIECE,
    DECODE_BPE,
    DECODE_JOIN /* no decoder: tokens joined by spaces */
} decode_kind;

typedef struct decode_step {
    decode_kind kind;
    char *
        /* REPLACE: content, WORDPIECE: prefix, BPE: suffix, STRIP and METASPACE: one character;
         * owned */
        text;
    size_t n_text;
    regex *pattern; /* REPLACE; owned */
    char *literal;  /* REPLACE of a plain string: that string, else NULL; owned */
    size_t n_literal;
    size_t start, stop; /* STRIP: at most so many characters */
    bool cleanup;       /* WORDPIECE */
    bool prefix;        /* METASPACE: drops the replacement in the first token */
} decode_step;

typedef struct added_token {
    str content;  /* as written; in tokenizer.added_vocab */
    char *normal; /* its normalised form where that differs; owned */
    str match;    /* what is searched and decoded: normal, or content */
    int32_t id;
    bool single_word, lstrip, rstrip, normalized, special;
    bool control; /* not made of white space only */
} added_token;

typedef enum model_kind { MODEL_BPE, MODEL_UNIGRAM, MODEL_WORDPIECE } model_kind;

/* Two neighbouring tokens and what they merge into. */
typedef struct merge {
    uint64_t pair; /* left << 32 | right; UINT64_MAX: empty slot */
    uint32_t rank, id;
} merge;

#define N_DIRECT \
    2048 /* code points looked up without hashing: ASCII, Latin, the byte-level alphabet */

typedef struct bpe {
    merge *slots;
    size_t mask;
    uint64_t seed;
    int32_t direct[N_DIRECT]; /* id of a one-character token without affixes */
    bool fuse_unk, byte_fallback, ignore_merges;
    char *prefix, *suffix; /* owned; n 0 when absent */
    size_t n_prefix, n_suffix;
} bpe;

typedef struct unigram {
    double *score; /* [n_ids] */
    double unk_score;
    bool byte_fallback;
} unigram;

typedef struct wordpiece {
    char *prefix; /* owned */
    size_t n_prefix;
    size_t max_chars;
} wordpiece;

enum id_flag { ID_SPECIAL = 1, ID_CONTROL = 2 };

struct tokenizer {
    model_kind kind;
    vocab vocab; /* the model's own tokens */
    trie trie;   /* of the vocabulary: Unigram, WordPiece */
    bpe bpe;
    unigram unigram;
    wordpiece wordpiece;
    int32_t unk_id;       /* NO_TOKEN when the vocabulary has none */
    bool has_unk;         /* the file names an unknown token */
    bool unk_control;     /* ... which is a control token by its name ("<|endoftext|>") */
    int32_t byte_id[256]; /* "<0x00>".., NO_TOKEN where the vocabulary lacks one */

    added_token *added;
    size_t n_added;
    int32_t *added_of;        /* [n_ids] index into added, or NO_TOKEN */
    vocab added_vocab;        /* content to index into added */
    trie raw_trie, norm_trie; /* match text to index into added */
    bool norm_control;        /* norm_trie holds control tokens */
    uint8_t *id_flags;        /* [n_ids] */
    size_t n_ids;             /* highest id + 1, added tokens included */

    norm_step *norm;
    size_t n_norm;
    pre_step *pre;
    size_t n_pre;
    bool first_scheme; /* some Metaspace asks where a piece comes from */
    int32_t *post;     /* post-processor: ids, and NO_TOKEN for the text */
    size_t n_post;
    decode_step *decode;
    size_t n_decode;

    struct encoder_pool *pool; /* idle encoders; the only part that changes */
};

/* ---- the working memory of one encode ---- */

typedef struct bpe_symbol {
    uint32_t id;
    uint32_t prev, next; /* UINT32_MAX: none */
    bool dead;
} bpe_symbol;
typedef struct bpe_entry {
    uint32_t rank, at, id;
} bpe_entry;
typedef struct best_path {
    double score;
    uint32_t from; /* UINT32_MAX: not reached */
    int32_t id;
    bool unk;
} best_path;

#define CACHE_SLOTS 8192
#define CACHE_KEY 40 /* longest piece cached */
#define CACHE_IDS 8  /* most ids cached */
typedef struct cache_slot {
    uint64_t hash;
    int32_t id[CACHE_IDS];
    uint8_t n_key, n_id; /* n_key 0: empty */
    char key[CACHE_KEY];
} cache_slot;

typedef struct encoder {
    struct encoder *next;
    regex_run run;
    text_buf joined;          /* the spans as one text */
    text_buf norm[2], pre[2]; /* steps write from one to the other */
    piece_list pieces[2];
    piece_list matches;
    uint32_t *code, *code2; /* normalisation: code points */
    uint8_t *code_mark, *code_mark2;
    size_t cap_code;
    bpe_symbol *symbols;
    size_t cap_symbols;
    bpe_entry *heap;
    size_t cap_heap, n_heap;
    best_path *path;
    size_t cap_path;
    char *word; /* a character with its affixes */
    size_t cap_word;
    int32_t *out; /* ids of one piece */
    size_t n_out, cap_out;
    cache_slot *cache; /* [CACHE_SLOTS]; NULL until used */
} encoder;

IG_MUST_USE ig_status encoder_new(encoder **ret_encoder);
void encoder_free(encoder *e);
AUTO_FN(encoder_ptr, encoder *, encoder_free)
IG_MUST_USE ig_status encoder_out(encoder *e, int32_t id);

/* ---- what the files give each other ---- */

/* tokenizer_load.c */
IG_MUST_USE ig_status load_tokenizer(const char *what, str json, tokenizer *t);
/* tokenizer_components.c: normalisers, pre-tokenisers, post-processor, decoders. */
IG_MUST_USE ig_status load_components(const char *what, const json_t *root, tokenizer *t);
void components_done(tokenizer *t);
/* tokenizer_added.c; needs the vocabulary and the normalisers. */
IG_MUST_USE ig_status load_added(const char *what, const json_t *root, tokenizer *t);

/* normalise.c */
IG_MUST_USE ig_status normalise(const tokenizer *t, encoder *e, text_view in, text_view *ret_out);
IG_MUST_USE ig_status charsmap_open(const char *what, str base64, charsmap *ret_map);

/* pretokenize.c: pieces of `in`; *ret_text is the text they point into. */
IG_MUST_USE ig_status pretokenize(const tokenizer *t, encoder *e, text_view in, text_view *ret_text,
                                  const piece_list **ret_pieces);

/* tokenizer_added.c: cuts a text into tokens and what lies between them. */
typedef struct added_match {
    size_t at, end;
    const added_token *token; /* NULL: ordinary text */
} added_match;
typedef struct added_scan {
    const tokenizer *t;
    const trie *trie; /* raw_trie or norm_trie */
    text_view text;
    bool trusted;      /* all of the text, where it has no marks */
    size_t at;         /* what lies before has been given */
    size_t search;     /* where the search goes on */
    added_match found; /* a token behind ordinary text that is given first; token NULL: none */
} added_scan;
/* The next stretch, never empty text; false at the end. */
bool added_next(added_scan *s, added_match *ret_match);

/* bpe.c, unigram.c, wordpiece.c: append the ids of one piece to e->out. With `forbid` no control
 * token is produced; what would become an unknown token that is one (unk_control) is left out. */
IG_MUST_USE ig_status bpe_encode(const tokenizer *t, encoder *e, str piece, bool forbid);
IG_MUST_USE ig_status unigram_encode(const tokenizer *t, encoder *e, str piece, bool forbid);
IG_MUST_USE ig_status wordpiece_encode(const tokenizer *t, encoder *e, str piece, bool forbid);
IG_MUST_USE ig_status bpe_load_merges(const char *what, const json_t *merges, tokenizer *t);
void bpe_done(bpe *b);

/* Whether every byte of s has its "<0x..>" token. */
static inline bool has_bytes(const tokenizer *t, str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (t->byte_id[(uint8_t)s.p[i]] < 0) return false;
    return true;
}
static inline bool id_is_control(const tokenizer *t, int32_t id)
{
    return id >= 0 && (size_t)id < t->n_ids && (t->id_flags[id] & ID_CONTROL);
}

/* The byte-level alphabet of GPT-2: every byte as a printable character. */
uint32_t byte_level_char(uint8_t b);
bool byte_level_byte(uint32_t cp, uint8_t *ret_byte);
#endif
