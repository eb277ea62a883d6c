/* source.c: what both formats share. */
#include "server/source_int.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include "base/file.h"

/* No model has one, and rows without elements cannot be counted. */
static ig_status refuse_empty(const source *s)
{
    for (int64_t i = 0; i < s->n; i++)
        if (s->t[i].n < 1 || s->t[i].k < 1)
            return ig_fail(IG_ESHAPE, "%s: tensor %s is empty: %lld rows of %lld", s->path,
                           s->t[i].name, (long long)s->t[i].n, (long long)s->t[i].k);
    return IG_OK;
}

ig_status source_open(const char *path, source **ret_source)
{
    AUTO(source_ptr) s = mem_calloc(1, sizeof *s);
    struct stat st;
    if (!s) return IG_ENOMEM;
    s->path = mem_strdup(path);
    if (!s->path) return IG_ENOMEM;
    if (stat(path, &st) != 0)
        return ig_fail(IG_ENOTFOUND, "%s: %s; give a directory of safetensors or a .gguf file",
                       path, strerror(errno));
    TRY(S_ISDIR(st.st_mode) ? source_open_hf(s) : source_open_gguf(s));
    TRY(refuse_empty(s));
    *ret_source = STEAL(s);
    return IG_OK;
}

void source_free(source *s)
{
    if (!s) return;
    if (s->format && s->impl) s->format->free(s->impl);
    for (int64_t i = 0; s->t && i < s->n; i++) mem_free(s->t[i].name);
    mem_free(s->t);
    mem_free(s->path);
    mem_free(s);
}

ig_status source_add(source *s, const char *name, source_tensor **ret_tensor)
{
    if (s->n == SOURCE_MAX_TENSORS)
        return ig_fail(IG_ELIMIT, "%s: more than %d tensors", s->path, SOURCE_MAX_TENSORS);
    if (!(s->n & (s->n - 1))) {
        source_tensor *t = mem_realloc(s->t, (size_t)(s->n ? 2 * s->n : 1) * sizeof *t);
        if (!t) return IG_ENOMEM;
        s->t = t;
    }
    char *copy = mem_strdup(name);
    if (!copy) return IG_ENOMEM;
    s->t[s->n] = (source_tensor){.name = copy};
    *ret_tensor = &s->t[s->n++];
    return IG_OK;
}

source_file *source_add_file(source_file *files, int *n, const char *name)
{
    source_file *f = &files[(*n)++];
    f->name = name;
    buf_init(&f->content, SOURCE_MAX_TEXT);
    return f;
}

int64_t source_n(const source *s) { return s->n; }

const source_tensor *source_at(const source *s, int64_t i) { return &s->t[i]; }

ig_status source_rows(const source *s, int64_t i, int64_t row, int64_t n, float *out)
{
    return s->format->rows(s, &s->t[i], row, n, out);
}

ig_status source_raw_rows(const source *s, int64_t i, int64_t row, int64_t n, void *out)
{
    return s->format->raw_rows(s, &s->t[i], row, n, out);
}

ig_status source_affine(const source *s, int64_t i, int64_t row, int64_t n, uint8_t *codes,
                        uint16_t *scales, uint16_t *biases)
{
    return s->format->affine(s, &s->t[i], row, n, codes, scales, biases);
}

ig_status source_config(const source *s, buf *ret_json) { return s->format->config(s, ret_json); }

ig_status source_quantization(const source *s, buf *ret_json)
{
    return s->format->quantization(s, ret_json);
}

ig_status source_files(const source *s, source_file *ret_files, int *ret_n)
{
    *ret_n = 0;
    return s->format->files(s, ret_files, ret_n);
}
