/* convert.c: decides a format per tensor, lays shards out, then fills them row block by row
 * block. */
#include "server/convert.h"
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "ingot/ops.h"
#include "ingot/quant.h"
#include "io/safetensors.h"

#define BLOCK_ELEMENTS ((int64_t)1 << 21)

typedef enum part { PART_RAW, PART_CODES, PART_SCALES, PART_BIASES } part;

typedef struct choice {
    int bits, group;
    bool native;
} choice; /* of one source tensor; bits 0: raw */

typedef struct target {
    st_tensor st; /* name owned here */
    int64_t from; /* source tensor */
    part part;
    int32_t shard;
} target;

/* Something to note that may hold for many matrices: the first in words, the others counted. */
typedef struct tally {
    char first[384];
    int64_t n;
} tally;

typedef struct conversion {
    const source *s;
    const convert_options *o;
    const char *dir;
    choice *choice; /* owned, one per source tensor */
    target *t;      /* owned */
    int64_t n;
    int64_t n_shards;
    int64_t total, written; /* bytes */
    bool matched[CONVERT_MAX_RULES];
    tally kept, narrowed; /* matrices that no group fits, or only a smaller one */
} conversion;

static void conversion_auto(conversion *c)
{
    for (int64_t i = 0; c->t && i < c->n; i++) mem_free(c->t[i].st.name);
    mem_free(c->t);
    mem_free(c->choice);
}

IG_PRINTF(2, 3) static void count(tally *t, const char *format, ...)
{
    va_list args;
    if (t->n++) return;
    va_start(args, format);
    vsnprintf(t->first, sizeof t->first, format, args);
    va_end(args);
}

static void note(const conversion *c, const tally *t)
{
    char text[512];
    if (!c->o->note || !t->n) return;
    snprintf(text, sizeof text, t->n > 1 ? "%s (and %lld more)" : "%s", t->first,
             (long long)t->n - 1);
    c->o->note(c->o->user, text);
}

/* "a.b.weight" without its last part. */
static int path_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (int)(dot - name) : (int)strlen(name);
}

static choice choose(conversion *c, const source_tensor *t)
{
    int bits = c->o->bits, group = c->o->group ? c->o->group : 64;
    char path[256];
    if (!t->is_matrix) return (choice){0};
    snprintf(path, sizeof path, "%.*s", path_length(t->name), t->name);
    for (int i = 0; i < c->o->n_rules; i++)
        if (!fnmatch(c->o->rules[i].pattern, path, 0)) {
            c->matched[i] = true;
            bits = c->o->rules[i].bits;
            if (c->o->rules[i].group) group = c->o->rules[i].group;
        }
    if (!bits) return t->affine_bits ? (choice){t->affine_bits, 32, true} : (choice){0};
    if (bits == 16) return (choice){0};
    int fits = group;
    while (fits >= 32 && t->k % fits) fits /= 2;
    if (fits < 32) {
        count(&c->kept, "%s: rows of %lld elements are not whole groups of 32: kept at 16 bits",
              path, (long long)t->k);
        return (choice){0};
    }
    if (fits != group)
        count(&c->narrowed, "%s: rows of %lld elements: group %d instead of %d", path,
              (long long)t->k, fits, group);
    if (bits == t->affine_bits && fits == 32) return (choice){bits, 32, true};
    return (choice){bits, fits, false};
}

/* Scales of a freshly quantised matrix: bf16 where the source is bf16, else f16. */
static ig_dtype scale_dtype(const source_tensor *t, choice q)
{
    return !q.native && t->dtype == IG_BF16 && !t->affine_bits ? IG_BF16 : IG_F16;
}

static ig_dtype raw_dtype(const conversion *c, const source_tensor *t)
{
    return t->is_matrix && c->o->bits == 16 && t->dtype == IG_F32 ? IG_BF16 : t->dtype;
}

static ig_status add_target(conversion *c, int64_t from, part p, const char *suffix, ig_dtype dtype,
                            int64_t n, int64_t k)
{
    const source_tensor *t = source_at(c->s, from);
    target *x = &c->t[c->n++];
    size_t stem = *suffix ? (size_t)path_length(t->name) : strlen(t->name), tail = strlen(suffix);
    x->from = from;
    x->part = p;
    x->st.name = mem_alloc(stem + tail + 1);
    if (!x->st.name) return IG_ENOMEM;
    memcpy(x->st.name, t->name, stem);
    memcpy(x->st.name + stem, suffix, tail + 1);
    x->st.dtype = dtype;
    x->st.ndim = t->ndim;
    x->st.dim[0] = n;
    if (t->ndim == 2) x->st.dim[1] = k;
    if (!mem_mul((size_t)n, (size_t)k, &x->st.n_bytes) ||
        !mem_mul(x->st.n_bytes, ig_dtype_size(dtype), &x->st.n_bytes))
        return ig_fail(IG_EFORMAT, "tensor %s: its size overflows", t->name);
    c->total += (int64_t)x->st.n_bytes;
    return IG_OK;
}

static ig_status plan_tensor(conversion *c, int64_t i)
{
    const source_tensor *t = source_at(c->s, i);
    choice q = c->choice[i] = choose(c, t);
    if (!q.bits) return add_target(c, i, PART_RAW, "", raw_dtype(c, t), t->n, t->k);
    TRY(add_target(c, i, PART_CODES, ".weight", IG_U32, t->n, t->k * q.bits / 32));
    TRY(add_target(c, i, PART_SCALES, ".scales", scale_dtype(t, q), t->n, t->k / q.group));
    return add_target(c, i, PART_BIASES, ".biases", scale_dtype(t, q), t->n, t->k / q.group);
}

/* Consecutive source tensors share a shard until it is full. */
static void assign_shards(conversion *c)
{
    int64_t limit = c->o->shard_bytes, used = 0;
    int32_t shard = 0;
    if (!limit && c->total > (int64_t)2 << 30) limit = c->total / 16 + 1;
    if (!limit) limit = (int64_t)64 << 20;
    if (limit > (int64_t)4 << 30) limit = (int64_t)4 << 30;
    for (int64_t i = 0; i < c->n; i++) {
        bool fresh = c->t[i].part == PART_RAW || c->t[i].part == PART_CODES;
        if (fresh && used >= limit) {
            shard++;
            used = 0;
        }
        c->t[i].shard = shard;
        used += (int64_t)c->t[i].st.n_bytes;
    }
    c->n_shards = shard + 1;
}

/* A rule that matches nothing is a typing error, found before hours of work. */
static ig_status check_rules(const conversion *c)
{
    const char *example = "";
    for (int64_t i = source_n(c->s); i-- > 0;)
        if (source_at(c->s, i)->is_matrix) example = source_at(c->s, i)->name;
    for (int i = 0; i < c->o->n_rules; i++)
        if (!c->matched[i])
            return ig_fail(IG_EINVAL,
                           "override '%s': the source has no such matrix; names are like %.*s",
                           c->o->rules[i].pattern, path_length(example), example);
    return IG_OK;
}

static ig_status plan(conversion *c)
{
    int64_t n = source_n(c->s);
    c->choice = mem_calloc((size_t)n + 1, sizeof *c->choice);
    c->t = mem_calloc((size_t)n * 3 + 1, sizeof *c->t);
    if (!c->choice || !c->t) return IG_ENOMEM;
    for (int64_t i = 0; i < n; i++) TRY(plan_tensor(c, i));
    if (!c->n) return ig_fail(IG_EFORMAT, "the source holds no tensor");
    TRY(check_rules(c));
    note(c, &c->kept);
    note(c, &c->narrowed);
    assign_shards(c);
    return IG_OK;
}

/* --- filling */
typedef struct writer {
    conversion *c;
    int fd;
    const char *path;
} writer;

static ig_status put(writer *w, const st_tensor *to, int64_t row, const void *p, size_t n_bytes)
{
    size_t row_bytes = to->n_bytes / (size_t)to->dim[0];
    TRY(io_pwrite(w->fd, p, n_bytes, (int64_t)(to->begin + (size_t)row * row_bytes), w->path));
    w->c->written += (int64_t)n_bytes;
    if (w->c->o->progress) w->c->o->progress(w->c->o->user, w->c->written, w->c->total);
    return IG_OK;
}

static ig_status put_raw(writer *w, const target *to, const source_tensor *t, int64_t row,
                         int64_t n, float *block)
{
    size_t n_bytes = (size_t)(n * t->k) * ig_dtype_size(to->st.dtype);
    if (to->st.dtype == t->dtype) {
        TRY(source_raw_rows(w->c->s, to->from, row, n, block));
        return put(w, &to->st, row, block, n_bytes);
    }
    const void *data;
    TRY(source_rows(w->c->s, to->from, row, n, block));
    ig_array wide = ig_array_adopt(block, (size_t)(n * t->k) * sizeof *block, IG_F32,
                                   (int64_t[]){n, t->k}, 2, NULL, NULL);
    TRY(ig_data(ig_astype(wide, to->st.dtype), &data));
    return put(w, &to->st, row, data, n_bytes);
}

static ig_status put_native(writer *w, const target *to, const source_tensor *t, int64_t row,
                            int64_t n, float *block)
{
    int64_t groups = n * t->k / 32, code_bytes = n * t->k * t->affine_bits / 8;
    uint16_t *scales = (uint16_t *)block, *biases = scales + groups;
    uint8_t *codes = (uint8_t *)(biases + groups);
    TRY(source_affine(w->c->s, to->from, row, n, codes, scales, biases));
    TRY(put(w, &to[0].st, row, codes, (size_t)code_bytes));
    TRY(put(w, &to[1].st, row, scales, (size_t)groups * sizeof *scales));
    return put(w, &to[2].st, row, biases, (size_t)groups * sizeof *biases);
}

static ig_status put_quantised(writer *w, const target *to, const source_tensor *t, int64_t row,
                               int64_t n, float *block)
{
    choice q = w->c->choice[to->from];
    TRY(source_rows(w->c->s, to->from, row, n, block));
    ig_array wide = ig_array_adopt(block, (size_t)(n * t->k) * sizeof *block, IG_F32,
                                   (int64_t[]){n, t->k}, 2, NULL, NULL);
    ig_quantized x = ig_quantize(ig_astype(wide, scale_dtype(t, q)), q.group, q.bits);
    const ig_array parts[] = {x.codes, x.scales, x.biases};
    TRY(ig_eval(parts, 3));
    for (int i = 0; i < 3; i++) {
        const void *data;
        TRY(ig_data(parts[i], &data));
        TRY(put(w, &to[i].st, row, data, (size_t)ig_nbytes(parts[i])));
    }
    return IG_OK;
}

/* Rows [row, row + n) of one source tensor to its one or three targets, in a scope of their own. */
static ig_status put_block(writer *w, const target *to, int64_t row, int64_t n, float *block)
{
    const source_tensor *t = source_at(w->c->s, to->from);
    choice q = w->c->choice[to->from];
    ig_scope *scope = ig_scope_open();
    ig_status s = !q.bits    ? put_raw(w, to, t, row, n, block)
                  : q.native ? put_native(w, to, t, row, n, block)
                             : put_quantised(w, to, t, row, n, block);
    ig_status closed = ig_scope_close(scope);
    return s != IG_OK ? s : closed;
}

static ig_status fill(writer *w, const target *to, float *block)
{
    const source_tensor *t = source_at(w->c->s, to->from);
    int64_t step = BLOCK_ELEMENTS / t->k;
    if (step < 1)
        return ig_fail(IG_ELIMIT, "tensor %s: rows of %lld elements are longer than %lld", t->name,
                       (long long)t->k, (long long)BLOCK_ELEMENTS);
    for (int64_t row = 0; row < t->n; row += step) {
        int64_t n = t->n - row < step ? t->n - row : step;
        TRY(put_block(w, to, row, n, block));
    }
    return IG_OK;
}

static void shard_name(const conversion *c, int32_t shard, char out[64])
{
    snprintf(out, 64, "model-%05d-of-%05lld.safetensors", shard + 1, (long long)c->n_shards);
}

/* The header of a shard: tensors of whole 64-byte multiples first, so that all of those are
 * aligned. Copies `begin` back. */
static ig_status shard_header(conversion *c, int64_t first, int64_t n, buf *ret_header)
{
    AUTO(mem_ptr) memory = mem_calloc((size_t)n, sizeof(st_tensor));
    AUTO(mem_ptr) order_memory = mem_calloc((size_t)n, sizeof(int64_t));
    st_tensor *st = memory;
    int64_t *order = order_memory, k = 0;
    const st_pair meta = {(char *)"format", (char *)"mlx"};
    if (!st || !order) return IG_ENOMEM;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i++)
            if ((c->t[first + i].st.n_bytes % 64 != 0) == pass) order[k++] = i;
    /* the rest from large to small elements, so that each stays aligned to its own */
    for (int64_t i = 1; i < n; i++)
        for (int64_t j = i; j > 0; j--) {
            const st_tensor *a = &c->t[first + order[j - 1]].st, *b = &c->t[first + order[j]].st;
            bool both_odd = a->n_bytes % 64 && b->n_bytes % 64;
            if (!both_odd || ig_dtype_size(a->dtype) >= ig_dtype_size(b->dtype)) break;
            int64_t swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    for (int64_t i = 0; i < n; i++) st[i] = c->t[first + order[i]].st;
    TRY(safetensors_header(st, (size_t)n, &meta, 1, ret_header));
    for (int64_t i = 0; i < n; i++) c->t[first + order[i]].st.begin = st[i].begin;
    return IG_OK;
}

static void close_fd(int *fd) { io_close(*fd); }

static ig_status write_shard(conversion *c, int64_t first, int64_t n, float *block)
{
    AUTO(buf) header = {0}, path = {0};
    __attribute__((cleanup(close_fd))) int fd = -1;
    char name[64];
    buf_init(&header, 0);
    shard_name(c, c->t[first].shard, name);
    TRY(file_join(&path, c->dir, name));
    buf_done(&header);
    TRY(shard_header(c, first, n, &header));
    TRY(io_open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644, &fd));
    TRY(io_pwrite(fd, header.data, header.n, 0, path.data));
    writer w = {c, fd, path.data};
    for (int64_t i = first; i < first + n; i++)
        if (c->t[i].part == PART_RAW || c->t[i].part == PART_CODES) TRY(fill(&w, &c->t[i], block));
    TRY(io_fdatasync(fd, path.data));
    file_uncache(fd);
    return IG_OK;
}

static ig_status write_index(const conversion *c)
{
    AUTO(buf) b = {0}, path = {0};
    buf_init(&b, (size_t)256 << 20);
    TRY(file_join(&path, c->dir, "model.safetensors.index.json"));
    buf_printf(&b, "{\"metadata\":{\"total_size\":%lld},\"weight_map\":{", (long long)c->total);
    for (int64_t i = 0; i < c->n; i++) {
        char name[64];
        shard_name(c, c->t[i].shard, name);
        if (i) buf_char(&b, ',');
        buf_str(&b, "\n");
        buf_json_string(&b, c->t[i].st.name, strlen(c->t[i].st.name));
        buf_printf(&b, ":\"%s\"", name);
    }
    buf_str(&b, "}}\n");
    TRY(buf_status(&b));
    return file_write_atomic(path.data, b.data, b.n, 0644);
}

/* The format that most matrices have: the "quantization" default; the others are listed by path. */
static choice common_choice(const conversion *c)
{
    int64_t count[9][129] = {{0}};
    choice best = {0};
    for (int64_t i = 0; i < source_n(c->s); i++) {
        choice q = c->choice[i];
        if (q.bits && ++count[q.bits][q.group] > count[best.bits][best.group]) best = q;
    }
    return best;
}

static void add_quantization(const conversion *c, choice common, buf *b)
{
    buf_printf(b, "{\"group_size\":%d,\"bits\":%d,\"mode\":\"affine\"", common.group, common.bits);
    for (int64_t i = 0; i < source_n(c->s); i++) {
        const source_tensor *t = source_at(c->s, i);
        choice q = c->choice[i];
        if (!t->is_matrix || (q.bits == common.bits && q.group == common.group)) continue;
        buf_char(b, ',');
        buf_json_string(b, t->name, (size_t)path_length(t->name));
        if (q.bits)
            buf_printf(b, ":{\"group_size\":%d,\"bits\":%d}", q.group, q.bits);
        else
            buf_str(b, ":false");
    }
    buf_char(b, '}');
}

static ig_status write_config(const conversion *c)
{
    AUTO(buf) b = {0}, q = {0}, path = {0};
    choice common = common_choice(c);
    buf_init(&b, (size_t)16 << 20);
    buf_init(&q, (size_t)16 << 20);
    TRY(file_join(&path, c->dir, "config.json"));
    TRY(source_config(c->s, &b));
    TRY(source_quantization(c->s, &q));
    if (common.bits) {
        buf_clear(&q);
        add_quantization(c, common, &q);
    }
    TRY(buf_status(&q));
    if (q.n) {
        b.n--; /* the closing brace */
        buf_printf(&b, ",\"quantization\":%s,\"quantization_config\":%s}", q.data, q.data);
    }
    buf_char(&b, '\n');
    TRY(buf_status(&b));
    return file_write_atomic(path.data, b.data, b.n, 0644);
}

ig_status convert_run(const source *s, const convert_options *o, const char *dir,
                      convert_result *ret_result)
{
    __attribute__((cleanup(conversion_auto))) conversion c = {.s = s, .o = o, .dir = dir};
    AUTO(mem_ptr) block = mem_aligned(64, (size_t)BLOCK_ELEMENTS * sizeof(float));
    int64_t n_parameters = 0;
    if (!block) return IG_ENOMEM;
    TRY(plan(&c));
    for (int64_t first = 0, n = 0; first < c.n; first += n) {
        for (n = 1; first + n < c.n && c.t[first + n].shard == c.t[first].shard;) n++;
        TRY(write_shard(&c, first, n, block));
    }
    TRY(write_index(&c));
    TRY(write_config(&c));
    for (int64_t i = 0; i < source_n(s); i++) n_parameters += source_at(s, i)->n_parameters;
    *ret_result = (convert_result){c.n, c.total, n_parameters, c.n_shards,
                                   n_parameters ? 8.0 * (double)c.total / (double)n_parameters : 0};
    return IG_OK;
}
