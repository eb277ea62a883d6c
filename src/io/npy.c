/* npy.c: NumPy .npy files, versions 1.0 to 3.0, C order, little endian.
 * "\x93NUMPY" | major minor | u16 or u32 header length | Python dict literal padded with spaces,
 * ending in \n | data. */
#include <stdio.h>
#include <string.h>
#include "base/file.h"
#include "ingot/io.h"

#define MAX_NPY_HEADER 65536

typedef struct npy_type {
    const char *descr;
    ig_dtype dtype;
} npy_type;
static const npy_type npy_types[] = {
    {"|b1", IG_BOOL}, {"|u1", IG_U8},  {"<u2", IG_U16}, {"<u4", IG_U32}, {"<u8", IG_U64},
    {"|i1", IG_I8},   {"<i2", IG_I16}, {"<i4", IG_I32}, {"<i8", IG_I64}, {"<f2", IG_F16},
    {"<f4", IG_F32},  {"<f8", IG_F64}, {"<c8", IG_C64},
};

/* Text after 'key': in the header dict, spaces skipped; NULL when absent. */
static const char *after_key(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *p = strstr(header, quoted);
    if (!p) return NULL;
    p += strlen(quoted);
    while (*p == ' ') p++;
    return p;
}

static ig_status read_shape(const char *path, const char *p, int64_t *dims, int *ret_ndim)
{
    int n = 0;
    if (!p || *p != '(') return ig_fail(IG_EFORMAT, "%s: the header has no shape", path);
    for (p++; *p && *p != ')';) {
        size_t digits = strspn(p, "0123456789");
        if (!digits || n == IG_MAX_NDIM || !str_int((str){p, digits}, 0, INT64_MAX, &dims[n]))
            return ig_fail(IG_EFORMAT, "%s: the shape is malformed or has more than %d dims", path,
                           IG_MAX_NDIM);
        n++;
        p += digits;
        p += strspn(p, ", ");
    }
    if (*p != ')') return ig_fail(IG_EFORMAT, "%s: the shape is not closed", path);
    *ret_ndim = n;
    return IG_OK;
}

static ig_status read_descr(const char *path, const char *p, ig_dtype *ret_dtype)
{
    for (size_t i = 0; p && *p == '\'' && i < N_ELEM(npy_types); i++)
        if (!strncmp(p + 1, npy_types[i].descr, 3) && p[4] == '\'') {
            *ret_dtype = npy_types[i].dtype;
            return IG_OK;
        }
    return ig_fail(IG_EUNSUPPORTED,
                   "%s: this dtype is not supported (little-endian numbers and bool are)", path);
}

/* The header text into out (NUL-terminated) and the offset of the data. */
static ig_status header_text(const char *path, const file_map *m, char *out, size_t *ret_data)
{
    const uint8_t *b = m->bytes;
    if (m->n_bytes < 12 || memcmp(b, "\x93NUMPY", 6))
        return ig_fail(IG_EFORMAT, "%s: not a .npy file", path);
    if (b[6] < 1 || b[6] > 3) return ig_fail(IG_EUNSUPPORTED, "%s: .npy version %d", path, b[6]);
    size_t begin = b[6] == 1 ? 10 : 12;
    size_t n = b[6] == 1
                   ? (size_t)(b[8] | b[9] << 8)
                   : (size_t)b[8] | (size_t)b[9] << 8 | (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (n > MAX_NPY_HEADER) return ig_fail(IG_ELIMIT, "%s: a header of %zu bytes", path, n);
    if (n > m->n_bytes - begin)
        return ig_fail(IG_EFORMAT, "%s: the file ends inside its header", path);
    memcpy(out, b + begin, n);
    out[n] = 0;
    if (strlen(out) != n) return ig_fail(IG_EFORMAT, "%s: the header holds a NUL byte", path);
    *ret_data = begin + n;
    return IG_OK;
}

ig_status ig_load_npy(const char *path, ig_array *ret_array)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    AUTO(mem_str) header = mem_alloc(MAX_NPY_HEADER + 1);
    int64_t dims[IG_MAX_NDIM];
    int ndim = 0;
    ig_dtype dtype = IG_F32;
    size_t data = 0, n_bytes = 0;
    if (!header) return IG_ENOMEM;
    TRY(file_map_open(path, (size_t)1 << 46, &m));
    TRY(header_text(path, &m, header, &data));
    TRY(read_descr(path, after_key(header, "descr"), &dtype));
    TRY(read_shape(path, after_key(header, "shape"), dims, &ndim));
    const char *order = after_key(header, "fortran_order");
    if (!order || strncmp(order, "False", 5))
        return ig_fail(IG_EUNSUPPORTED, "%s: Fortran order is not supported; save it in C order",
                       path);
    n_bytes = ig_dtype_size(dtype);
    for (int d = 0; d < ndim; d++)
        if (!mem_mul(n_bytes, (size_t)dims[d], &n_bytes))
            return ig_fail(IG_EFORMAT, "%s: the shape overflows", path);
    if (n_bytes != m.n_bytes - data)
        return ig_fail(IG_EFORMAT, "%s: %zu bytes of data, the shape needs %zu", path,
                       m.n_bytes - data, n_bytes);
    ig_array a = ig_array_copy(m.bytes + data, dtype, dims, ndim);
    if (ig_is_empty(a)) return ig_error_code();
    *ret_array = a;
    return IG_OK;
}

ig_status ig_save_npy(const char *path, ig_array a)
{
    AUTO(buf) b = {0};
    const void *data;
    const char *descr = NULL;
    buf_init(&b, (size_t)1 << 40);
    TRY(ig_data(a, &data));
    for (size_t i = 0; i < N_ELEM(npy_types); i++)
        if (npy_types[i].dtype == ig_type(a)) descr = npy_types[i].descr;
    if (!descr)
        return ig_fail(IG_EDTYPE, "%s: .npy has no %s; convert to float32", path,
                       ig_dtype_name(ig_type(a)));
    buf_add(&b, "\x93NUMPY\x01\x00\0\0", 10);
    buf_printf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < ig_ndim(a); d++) buf_printf(&b, "%lld, ", (long long)ig_dim(a, d));
    buf_str(&b, "), }");
    while ((b.n + 1) % 64 && b.status == IG_OK) buf_char(&b, ' ');
    buf_char(&b, '\n');
    TRY(buf_status(&b));
    b.data[8] = (char)((b.n - 10) & 255);
    b.data[9] = (char)((b.n - 10) >> 8);
    buf_add(&b, data, (size_t)ig_nbytes(a));
    TRY(buf_status(&b));
    return file_write_atomic(path, b.data, b.n, 0644);
}
