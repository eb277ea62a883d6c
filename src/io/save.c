/* save.c: writes arrays to one safetensors file, atomically. Larger elements come first, so that
 * every tensor is aligned to its own without gaps, which the format does not allow. */
#include "base/file.h"
#include "ingot/io.h"
#include "io/safetensors.h"

static void free_tensors(st_tensor *t) { mem_free(t); }
AUTO_FN(tensor_list, st_tensor *, free_tensors)

static ig_status describe(const char *path, const char *name, ig_array a, st_tensor *t)
{
    if (ig_is_empty(a) || !name || !*name)
        return ig_fail(IG_EINVAL, "%s: an empty array or name cannot be saved", path);
    t->name = (char *)name; /* borrowed: the header writer only reads it */
    t->dtype = ig_type(a);
    t->ndim = ig_ndim(a);
    for (int d = 0; d < t->ndim; d++) t->dim[d] = ig_dim(a, d);
    t->n_bytes = (size_t)ig_nbytes(a);
    return IG_OK;
}

/* Lists in order[n] the arrays by element size, largest first, else as given. */
static void order_by_element(const ig_array *arrays, int n, int *order)
{
    int at = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (int i = 0; i < n; i++)
            if (ig_dtype_size(ig_type(arrays[i])) == size) order[at++] = i;
}

ig_status ig_save_safetensors(const char *path, const char *const *names, const ig_array *arrays,
                              int n)
{
    if (n < 0 || (n > 0 && (!names || !arrays)))
        return ig_fail(IG_EINVAL, "%s: %d arrays, none given", path, n);
    AUTO(tensor_list) t = mem_calloc((size_t)n + 1, sizeof *t);
    AUTO(mem_ptr) memory = mem_calloc((size_t)n + 1, sizeof(int));
    AUTO(buf) b = {0};
    AUTO(map_ptr) seen = NULL;
    buf_init(&b, 0);
    if (!t || !memory) return IG_ENOMEM;
    TRY(map_new((size_t)n + 1, &seen));
    int *order = memory;
    order_by_element(arrays, n, order);
    for (int i = 0; i < n; i++) {
        bool twice;
        TRY(describe(path, names[order[i]], arrays[order[i]], &t[i]));
        TRY(map_put(seen, str_of(t[i].name), i, &twice));
        if (twice) return ig_fail(IG_EINVAL, "%s: the name %s is given twice", path, t[i].name);
    }
    TRY(safetensors_header(t, (size_t)n, NULL, 0, &b));
    b.max = (size_t)1 << 40;
    for (int i = 0; i < n; i++) {
        const void *data;
        TRY(ig_data(arrays[order[i]], &data));
        buf_add(&b, data, t[i].n_bytes);
    }
    TRY(buf_status(&b));
    return file_write_atomic(path, b.data, b.n, 0644);
}
