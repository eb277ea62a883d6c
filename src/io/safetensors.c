/* safetensors.c: reads and writes safetensors headers. Trusts nothing in them. */
#include "io/safetensors.h"
#include <stdlib.h>
#include <string.h>
#include "base/json.h"

static const char *const dtype_names[IG_N_DTYPES] = {
    [IG_BOOL] = "BOOL", [IG_U8] = "U8",   [IG_U16] = "U16", [IG_U32] = "U32", [IG_U64] = "U64",
    [IG_I8] = "I8",     [IG_I16] = "I16", [IG_I32] = "I32", [IG_I64] = "I64", [IG_F16] = "F16",
    [IG_BF16] = "BF16", [IG_F32] = "F32", [IG_F64] = "F64", [IG_C64] = "C64",
};

const char *safetensors_dtype_name(ig_dtype t)
{
    return (unsigned)t < IG_N_DTYPES ? dtype_names[t] : NULL;
}

bool safetensors_dtype(str name, ig_dtype *ret_dtype)
{
    for (int t = 0; t < IG_N_DTYPES; t++)
        if (dtype_names[t] && str_eq(name, str_of(dtype_names[t]))) {
            *ret_dtype = (ig_dtype)t;
            return true;
        }
    return false;
}

void safetensors_done(st_index *x)
{
    for (size_t i = 0; x->t && i < x->n; i++) mem_free(x->t[i].name);
    for (size_t i = 0; x->meta && i < x->n_meta; i++) {
        mem_free(x->meta[i].key);
        mem_free(x->meta[i].value);
    }
    mem_free(x->t);
    mem_free(x->meta);
    *x = (st_index){0};
}

static ig_status read_dims(const char *what, const char *name, const json_t *shape, st_tensor *t)
{
    if (!json_is_array(shape) || json_array_size(shape) > IG_MAX_NDIM)
        return ig_fail(IG_EFORMAT, "%s: tensor %s: shape must be a list of at most %d sizes", what,
                       name, IG_MAX_NDIM);
    size_t n_bytes = ig_dtype_size(t->dtype);
    t->ndim = (int)json_array_size(shape);
    for (int d = 0; d < t->ndim; d++) {
        const json_t *v = json_array_get(shape, (size_t)d);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return ig_fail(IG_EFORMAT, "%s: tensor %s: size %d is not a non-negative integer", what,
                           name, d);
        t->dim[d] = json_integer_value(v);
        if (!mem_mul(n_bytes, (size_t)t->dim[d], &n_bytes))
            return ig_fail(IG_EFORMAT, "%s: tensor %s: the product of its sizes overflows", what,
                           name);
    }
    t->n_bytes = n_bytes;
    return IG_OK;
}

static ig_status read_tensor(const char *what, const char *name, const json_t *v, size_t n_data,
                             size_t data_begin, st_tensor *t)
{
    str dtype = {0};
    json_t *shape = NULL, *range = NULL;
    if (!json_is_object(v)) return ig_fail(IG_EFORMAT, "%s: entry %s is not an object", what, name);
    TRY(json_get_str(what, v, "dtype", &dtype));
    TRY(json_get_arr(what, v, "shape", &shape));
    TRY(json_get_arr(what, v, "data_offsets", &range));
    if (!safetensors_dtype(dtype, &t->dtype))
        return ig_fail(IG_EUNSUPPORTED, "%s: tensor %s: dtype %.*s is not supported", what, name,
                       (int)dtype.n, dtype.p);
    TRY(read_dims(what, name, shape, t));
    const json_t *b = json_array_get(range, 0), *e = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0 || json_integer_value(e) < json_integer_value(b))
        return ig_fail(IG_EFORMAT, "%s: tensor %s: data_offsets must be two ascending integers",
                       what, name);
    size_t begin = (size_t)json_integer_value(b), end = (size_t)json_integer_value(e);
    if (end > n_data)
        return ig_fail(
            IG_EFORMAT,
            "%s: tensor %s ends at byte %zu of the data but the file holds %zu: the file is "
            "truncated or its header lies; fetch it again",
            what, name, end, n_data);
    if (end - begin != t->n_bytes)
        return ig_fail(IG_EFORMAT, "%s: tensor %s: %zu bytes given, its shape and dtype need %zu",
                       what, name, end - begin, t->n_bytes);
    t->begin = data_begin + begin;
    return IG_OK;
}

static ig_status read_meta(const char *what, const json_t *v, st_index *x)
{
    const char *key;
    json_t *value;
    if (!json_is_object(v)) return ig_fail(IG_EFORMAT, "%s: __metadata__ is not an object", what);
    x->meta = mem_calloc(json_object_size(v) + 1, sizeof *x->meta);
    if (!x->meta) return IG_ENOMEM;
    json_object_foreach((json_t *)v, key, value)
    {
        if (!json_is_string(value))
            return ig_fail(IG_EFORMAT, "%s: __metadata__: the value of %s is not text", what, key);
        st_pair *p = &x->meta[x->n_meta++];
        p->key = mem_strdup(key);
        p->value = mem_strdup(json_string_value(value));
        if (!p->key || !p->value) return IG_ENOMEM;
    }
    return IG_OK;
}

static int by_begin(const void *a, const void *b)
{
    const st_tensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

/* In offset order each tensor must start where the one before ended, and the last end the file. */
static ig_status check_cover(const char *what, const st_index *x, size_t data_begin, size_t n_bytes)
{
    size_t at = data_begin;
    for (size_t i = 0; i < x->n; i++) {
        const st_tensor *t = &x->t[i];
        if (t->begin != at)
            return ig_fail(IG_EFORMAT, "%s: tensor %s starts at byte %zu, expected %zu: tensors %s",
                           what, t->name, t->begin, at, t->begin < at ? "overlap" : "leave a gap");
        if (t->begin % ig_dtype_size(t->dtype))
            return ig_fail(
                IG_EFORMAT,
                "%s: tensor %s starts at byte %zu, not aligned to its %zu-byte elements; write "
                "the file again with aligned tensors",
                what, t->name, t->begin, ig_dtype_size(t->dtype));
        at += t->n_bytes;
    }
    if (at != n_bytes)
        return ig_fail(IG_EFORMAT, "%s: %zu bytes follow the last tensor", what, n_bytes - at);
    return IG_OK;
}

static ig_status read_header(const char *what, str text, size_t n_bytes, st_index *x)
{
    AUTO(json_ptr) root = NULL;
    const char *key;
    json_t *value;
    size_t data_begin = 8 + text.n;
    TRY(json_parse(what, text, SAFETENSORS_MAX_HEADER, 4, &root));
    if (!json_is_object(root)) return ig_fail(IG_EFORMAT, "%s: the header is not an object", what);
    if (json_object_size(root) > SAFETENSORS_MAX_TENSORS)
        return ig_fail(IG_ELIMIT, "%s: more than %u tensors", what, SAFETENSORS_MAX_TENSORS);
    x->t = mem_calloc(json_object_size(root) + 1, sizeof *x->t);
    if (!x->t) return IG_ENOMEM;
    json_object_foreach(root, key, value)
    {
        if (!strcmp(key, "__metadata__")) {
            TRY(read_meta(what, value, x));
            continue;
        }
        st_tensor *t = &x->t[x->n++];
        t->name = mem_strdup(key);
        if (!t->name) return IG_ENOMEM;
        TRY(read_tensor(what, key, value, n_bytes - data_begin, data_begin, t));
    }
    if (x->n) qsort(x->t, x->n, sizeof *x->t, by_begin);
    return check_cover(what, x, data_begin, n_bytes);
}

ig_status safetensors_read(const char *what, const uint8_t *bytes, size_t n_bytes,
                           st_index *ret_index)
{
    AUTO(st_index) x = {0};
    uint64_t n_header = 0;
    if (n_bytes < 8)
        return ig_fail(IG_EFORMAT, "%s: %zu bytes is too short for a safetensors file", what,
                       n_bytes);
    for (int i = 0; i < 8; i++) n_header |= (uint64_t)bytes[i] << 8 * i;
    if (n_header > SAFETENSORS_MAX_HEADER)
        return ig_fail(IG_ELIMIT,
                       "%s: a header of %llu bytes, more than %u: not a safetensors file?", what,
                       (unsigned long long)n_header, SAFETENSORS_MAX_HEADER);
    if (n_header > n_bytes - 8)
        return ig_fail(IG_EFORMAT,
                       "%s: the header needs %llu bytes but the file holds %zu: truncated?", what,
                       (unsigned long long)n_header, n_bytes - 8);
    TRY(read_header(what, (str){(const char *)bytes + 8, (size_t)n_header}, n_bytes, &x));
    *ret_index = x;
    x = (st_index){0};
    return IG_OK;
}

static void add_string(buf *b, const char *s) { buf_json_string(b, s, strlen(s)); }

static void add_entry(buf *b, const st_tensor *t, size_t begin)
{
    add_string(b, t->name);
    buf_printf(b, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_dtype_name(t->dtype));
    for (int d = 0; d < t->ndim; d++) buf_printf(b, "%s%lld", d ? "," : "", (long long)t->dim[d]);
    buf_printf(b, "],\"data_offsets\":[%zu,%zu]}", begin, begin + t->n_bytes);
}

ig_status safetensors_header(st_tensor *t, size_t n, const st_pair *meta, size_t n_meta,
                             buf *ret_header)
{
    buf *b = ret_header;
    size_t at = 0;
    buf_init(b, SAFETENSORS_MAX_HEADER + 8);
    buf_add(b, "\0\0\0\0\0\0\0\0", 8);
    buf_char(b, '{');
    if (n_meta) {
        buf_str(b, "\"__metadata__\":{");
        for (size_t i = 0; i < n_meta; i++) {
            if (i) buf_char(b, ',');
            add_string(b, meta[i].key);
            buf_char(b, ':');
            add_string(b, meta[i].value);
        }
        buf_char(b, '}');
    }
    for (size_t i = 0; i < n; i++) {
        if (i || n_meta) buf_char(b, ',');
        add_entry(b, &t[i], at);
        t[i].begin = at;
        at += t[i].n_bytes;
    }
    buf_char(b, '}');
    while (b->n % 64 && b->status == IG_OK) buf_char(b, ' ');
    ig_status s = buf_status(b);
    if (s != IG_OK) {
        buf_done(b);
        return s;
    }
    for (int i = 0; i < 8; i++) b->data[i] = (char)((b->n - 8) >> 8 * i);
    for (size_t i = 0; i < n; i++) t[i].begin += b->n;
    return IG_OK;
}
