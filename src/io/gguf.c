/* gguf.c: parses a GGUF file. Every count and length is checked against the bytes that are there
 * before it is used. */
#include "io/gguf.h"
#include <stdio.h>
#include <string.h>

#define MAX_KEYS 65536
#define MAX_TENSORS 65536
#define MAX_NAME 4096
#define MAX_FILE ((size_t)1 << 46)

typedef struct cursor {
    const uint8_t *p, *end;
    const char *path;
} cursor;

static const uint8_t kind_size[GGUF_N_KINDS] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

const char *gguf_type_name(gguf_type t)
{
    const gguf_type_info *i = gguf_type_find((uint32_t)t);
    return i ? i->name : "unknown";
}

static ig_status truncated(const cursor *c, const char *what)
{
    return ig_fail(IG_EFORMAT, "%s: the file ends inside %s: truncated? fetch it again", c->path,
                   what);
}

static uint64_t le(const uint8_t *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static ig_status take(cursor *c, int n, const char *what, uint64_t *ret)
{
    if (c->end - c->p < n) return truncated(c, what);
    *ret = le(c->p, n);
    c->p += n;
    return IG_OK;
}

static ig_status take_text(cursor *c, const char *what, str *ret)
{
    uint64_t n = 0;
    TRY(take(c, 8, what, &n));
    if (n > (uint64_t)(c->end - c->p)) return truncated(c, what);
    *ret = (str){(const char *)c->p, (size_t)n};
    c->p += n;
    return IG_OK;
}

static ig_status skip_elements(cursor *c, gguf_kind kind, uint64_t n, const char *what)
{
    if (kind == GGUF_STRING) {
        for (uint64_t i = 0; i < n; i++) {
            str s = {0};
            TRY(take_text(c, what, &s));
        }
        return IG_OK;
    }
    if (n > (uint64_t)(c->end - c->p) / kind_size[kind]) return truncated(c, what);
    c->p += n * kind_size[kind];
    return IG_OK;
}

static ig_status read_value(cursor *c, const char *key, gguf_value *v)
{
    uint64_t kind = 0, element = 0, n = 1;
    TRY(take(c, 4, key, &kind));
    if (kind >= GGUF_N_KINDS)
        return ig_fail(IG_EFORMAT, "%s: key %s has the unknown type %llu", c->path, key,
                       (unsigned long long)kind);
    v->kind = (gguf_kind)kind;
    if (v->kind == GGUF_ARRAY) {
        TRY(take(c, 4, key, &element));
        TRY(take(c, 8, key, &n));
        if (element >= GGUF_N_KINDS || element == GGUF_ARRAY)
            return ig_fail(IG_EUNSUPPORTED, "%s: key %s: arrays of type %llu are not supported",
                           c->path, key, (unsigned long long)element);
        v->element = (gguf_kind)element;
        v->n = n;
        v->p = c->p;
        return skip_elements(c, v->element, n, key);
    }
    if (v->kind == GGUF_STRING) {
        str s = {0};
        TRY(take_text(c, key, &s));
        v->p = (const uint8_t *)s.p;
        v->n = s.n;
        return IG_OK;
    }
    v->p = c->p;
    v->n = 1;
    return skip_elements(c, v->kind, 1, key);
}

static ig_status read_keys(cursor *c, gguf *g, uint64_t n)
{
    if (n > MAX_KEYS) return ig_fail(IG_ELIMIT, "%s: more than %d keys", c->path, MAX_KEYS);
    g->value = mem_calloc((size_t)n + 1, sizeof *g->value);
    if (!g->value) return IG_ENOMEM;
    TRY(map_new((size_t)n + 1, &g->keys));
    for (uint64_t i = 0; i < n; i++) {
        str key = {0};
        bool twice;
        char name[128];
        TRY(take_text(c, "a key", &key));
        if (key.n > MAX_NAME) return ig_fail(IG_ELIMIT, "%s: a key of %zu bytes", c->path, key.n);
        snprintf(name, sizeof name, "%.*s", (int)key.n, key.p);
        TRY(read_value(c, name, &g->value[i]));
        g->n_values++;
        TRY(map_put(g->keys, key, (int64_t)i, &twice));
        if (twice) return ig_fail(IG_EFORMAT, "%s: key %s appears twice", c->path, name);
    }
    return IG_OK;
}

/* Sizes of one tensor: dims reversed to row-major, bytes by whole blocks. */
static ig_status size_tensor(const cursor *c, gguf_tensor *t, const uint64_t *dims,
                             const gguf_type_info *k)
{
    size_t n_rows = 1;
    for (int d = 0; d < t->ndim; d++) {
        if (dims[d] > INT64_MAX)
            return ig_fail(IG_EFORMAT, "%s: tensor %s: a size overflows", c->path, t->name);
        t->dim[t->ndim - 1 - d] = (int64_t)dims[d];
        if (d && !mem_mul(n_rows, (size_t)dims[d], &n_rows))
            return ig_fail(IG_EFORMAT, "%s: tensor %s: its sizes overflow", c->path, t->name);
    }
    if (dims[0] % (uint64_t)k->block)
        return ig_fail(IG_EFORMAT,
                       "%s: tensor %s: rows of %llu elements are not whole %s blocks of %d",
                       c->path, t->name, (unsigned long long)dims[0], k->name, k->block);
    if (!mem_mul((size_t)dims[0] / (size_t)k->block, (size_t)k->bytes, &t->row_bytes) ||
        !mem_mul(n_rows, t->row_bytes, &t->n_bytes))
        return ig_fail(IG_EFORMAT, "%s: tensor %s: its bytes overflow", c->path, t->name);
    return IG_OK;
}

static ig_status read_tensor(cursor *c, gguf *g, size_t i, uint64_t *ret_offset)
{
    gguf_tensor *t = &g->tensor[i];
    uint64_t ndim = 0, type = 0, dims[4] = {1, 1, 1, 1};
    str name = {0};
    bool twice = false;
    TRY(take_text(c, "a tensor name", &name));
    if (!name.n || name.n > MAX_NAME || memchr(name.p, 0, name.n))
        return ig_fail(IG_EFORMAT, "%s: tensor %zu has an empty, overlong or binary name", c->path,
                       i);
    t->name = mem_alloc(name.n + 1);
    if (!t->name) return IG_ENOMEM;
    memcpy(t->name, name.p, name.n);
    t->name[name.n] = 0;
    TRY(map_put(g->names, name, (int64_t)i, &twice));
    if (twice) return ig_fail(IG_EFORMAT, "%s: tensor %s appears twice", c->path, t->name);
    TRY(take(c, 4, t->name, &ndim));
    if (ndim < 1 || ndim > 4)
        return ig_fail(IG_EFORMAT, "%s: tensor %s has %llu dims", c->path, t->name,
                       (unsigned long long)ndim);
    t->ndim = (int)ndim;
    for (int d = 0; d < t->ndim; d++) TRY(take(c, 8, t->name, &dims[d]));
    TRY(take(c, 4, t->name, &type));
    TRY(take(c, 8, t->name, ret_offset));
    const gguf_type_info *k = gguf_type_find((uint32_t)type);
    if (!k)
        return ig_fail(
            IG_EUNSUPPORTED,
            "%s: tensor %s has ggml type %llu, which is not supported; convert the model to F16, "
            "Q8_0, Q4_1, Q4_0 or a K type",
            c->path, t->name, (unsigned long long)type);
    t->type = k->type;
    return size_tensor(c, t, dims, k);
}

/* Tensors lie in the order of their list, each behind the one before. */
static ig_status place_tensors(cursor *c, gguf *g, const uint64_t *offset)
{
    uint64_t align = 32;
    if (gguf_find(g, "general.alignment"))
        TRY(gguf_get_u64(g, "general.alignment", 1 << 20, &align));
    if (align < 8 || align & (align - 1))
        return ig_fail(IG_EFORMAT, "%s: general.alignment %llu is not a power of two", c->path,
                       (unsigned long long)align);
    size_t head = (size_t)(c->p - g->map.bytes), begin = (head + align - 1) / align * align;
    size_t at = begin, end = begin; /* of the tensor before */
    for (size_t i = 0; i < g->n_tensors; i++) {
        gguf_tensor *t = &g->tensor[i];
        size_t free_from = end;
        if (offset[i] % align)
            return ig_fail(IG_EFORMAT, "%s: tensor %s is not aligned to %llu bytes", c->path,
                           t->name, (unsigned long long)align);
        if (!mem_add(begin, (size_t)offset[i], &at) || !mem_add(at, t->n_bytes, &end) ||
            end > g->map.n_bytes)
            return ig_fail(
                IG_EFORMAT,
                "%s: tensor %s needs bytes up to %llu + %zu but the file ends before: truncated?",
                c->path, t->name, (unsigned long long)offset[i], t->n_bytes);
        if (at < free_from)
            return ig_fail(IG_EFORMAT, "%s: tensor %s begins before tensor %s ends", c->path,
                           t->name, g->tensor[i - 1].name);
        t->p = g->map.bytes + at;
    }
    return IG_OK;
}

static ig_status read_all(cursor *c, gguf *g)
{
    uint64_t magic = 0, version = 0, n_tensors = 0, n_keys = 0;
    AUTO(mem_ptr) offset = NULL;
    TRY(take(c, 4, "the header", &magic));
    if (magic != 0x46554747)
        return ig_fail(IG_EFORMAT, "%s: not a GGUF file (its first bytes are not \"GGUF\")",
                       c->path);
    TRY(take(c, 4, "the header", &version));
    if (version < 2 || version > 3)
        return ig_fail(IG_EUNSUPPORTED, "%s: GGUF version %llu; versions 2 and 3 are supported",
                       c->path, (unsigned long long)version);
    TRY(take(c, 8, "the header", &n_tensors));
    TRY(take(c, 8, "the header", &n_keys));
    if (n_tensors > MAX_TENSORS)
        return ig_fail(IG_ELIMIT, "%s: more than %d tensors", c->path, MAX_TENSORS);
    TRY(read_keys(c, g, n_keys));
    g->tensor = mem_calloc((size_t)n_tensors + 1, sizeof *g->tensor);
    offset = mem_calloc((size_t)n_tensors + 1, sizeof(uint64_t));
    if (!g->tensor || !offset) return IG_ENOMEM;
    TRY(map_new((size_t)n_tensors + 1, &g->names));
    for (size_t i = 0; i < n_tensors; i++) {
        g->n_tensors = i + 1;
        TRY(read_tensor(c, g, i, (uint64_t *)offset + i));
    }
    return place_tensors(c, g, offset);
}

ig_status gguf_open(const char *path, gguf **ret_gguf)
{
    AUTO(gguf_ptr) g = mem_calloc(1, sizeof *g);
    if (!g) return IG_ENOMEM;
    g->map = FILE_MAP_NONE;
    g->path = mem_strdup(path);
    if (!g->path) return IG_ENOMEM;
    TRY(file_map_open(path, MAX_FILE, &g->map));
    cursor c = {g->map.bytes, g->map.bytes + g->map.n_bytes, g->path};
    TRY(read_all(&c, g));
    *ret_gguf = STEAL(g);
    return IG_OK;
}

void gguf_free(gguf *g)
{
    if (!g) return;
    for (size_t i = 0; g->tensor && i < g->n_tensors; i++) mem_free(g->tensor[i].name);
    mem_free(g->tensor);
    mem_free(g->value);
    map_free(g->keys);
    map_free(g->names);
    file_map_done(&g->map);
    mem_free(g->path);
    mem_free(g);
}

const gguf_value *gguf_find(const gguf *g, const char *key)
{
    int64_t i;
    return map_get(g->keys, str_of(key), &i) ? &g->value[i] : NULL;
}

static gguf_kind element_kind(const gguf_value *v)
{
    return v->kind == GGUF_ARRAY ? v->element : v->kind;
}

int64_t gguf_int(const gguf_value *v, uint64_t i)
{
    gguf_kind k = element_kind(v);
    const uint8_t *p = v->p + i * kind_size[k];
    switch (k) {
    case GGUF_I8: return (int8_t)p[0];
    case GGUF_I16: return (int16_t)le(p, 2);
    case GGUF_I32: return (int32_t)le(p, 4);
    default: return (int64_t)le(p, kind_size[k]);
    }
}

double gguf_num(const gguf_value *v, uint64_t i)
{
    gguf_kind k = element_kind(v);
    const uint8_t *p = v->p + i * kind_size[k];
    if (k == GGUF_F32) {
        float f;
        memcpy(&f, p, 4);
        return f;
    }
    if (k == GGUF_F64) {
        double d;
        memcpy(&d, p, 8);
        return d;
    }
    return (double)gguf_int(v, i);
}

static ig_status missing(const gguf *g, const char *key, const char *want)
{
    return ig_fail(IG_EFORMAT, "%s: key %s: expected %s", g->path, key, want);
}

static bool is_number(gguf_kind k)
{
    return k != GGUF_STRING && k != GGUF_ARRAY && k < GGUF_N_KINDS;
}

ig_status gguf_get_u64(const gguf *g, const char *key, uint64_t max, uint64_t *ret)
{
    const gguf_value *v = gguf_find(g, key);
    if (!v || !is_number(v->kind) || v->kind == GGUF_F32 || v->kind == GGUF_F64 ||
        gguf_int(v, 0) < 0)
        return missing(g, key, "a non-negative integer");
    if ((uint64_t)gguf_int(v, 0) > max)
        return ig_fail(IG_ELIMIT, "%s: key %s: %lld is more than %llu", g->path, key,
                       (long long)gguf_int(v, 0), (unsigned long long)max);
    *ret = (uint64_t)gguf_int(v, 0);
    return IG_OK;
}

ig_status gguf_get_f64(const gguf *g, const char *key, double *ret)
{
    const gguf_value *v = gguf_find(g, key);
    if (!v || !is_number(v->kind)) return missing(g, key, "a number");
    *ret = gguf_num(v, 0);
    return IG_OK;
}

ig_status gguf_get_str(const gguf *g, const char *key, str *ret)
{
    const gguf_value *v = gguf_find(g, key);
    if (!v || v->kind != GGUF_STRING) return missing(g, key, "text");
    *ret = (str){(const char *)v->p, (size_t)v->n};
    return IG_OK;
}

ig_status gguf_get_array(const gguf *g, const char *key, gguf_kind element, const gguf_value **ret)
{
    const gguf_value *v = gguf_find(g, key);
    if (!v || v->kind != GGUF_ARRAY || v->element != element)
        return missing(g, key, "a list of another type");
    *ret = v;
    return IG_OK;
}

str gguf_next_string(const uint8_t **at)
{
    str s = {(const char *)*at + 8, (size_t)le(*at, 8)};
    *at += 8 + s.n;
    return s;
}

const gguf_tensor *gguf_tensor_find(const gguf *g, const char *name)
{
    int64_t i;
    return map_get(g->names, str_of(name), &i) ? &g->tensor[i] : NULL;
}
