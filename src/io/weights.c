/* weights.c: named tensors over mapped safetensors files: one file, or the shards of a Hugging
 * Face index.
 * Owns the mappings; arrays adopt their bytes. */
#include <string.h>
#include "base/file.h"
#include "base/json.h"
#include "ingot/io.h"
#include "io/safetensors.h"

#define MAX_SHARDS 4096
#define MAX_INDEX_BYTES (64u << 20)
#define MAX_FILE_BYTES ((size_t)1 << 46)

typedef struct shard {
    char *path; /* owned */
    file_map map;
    st_index index;
} shard;

typedef struct place {
    int32_t shard;
    int32_t tensor;
} place;

struct ig_weights {
    shard *s; /* owned */
    int64_t n_shards;
    place *at; /* owned: tensor i of all, in file order */
    int64_t n;
    map *by_name; /* owned: name -> i */
};

void ig_weights_free(ig_weights *w)
{
    if (!w) return;
    for (int64_t i = 0; w->s && i < w->n_shards; i++) {
        safetensors_done(&w->s[i].index);
        file_map_done(&w->s[i].map);
        mem_free(w->s[i].path);
    }
    mem_free(w->s);
    mem_free(w->at);
    map_free(w->by_name);
    mem_free(w);
}
AUTO_FN(weights_ptr, ig_weights *, ig_weights_free)

static ig_status open_shard(const char *path, shard *s)
{
    s->map = FILE_MAP_NONE;
    s->path = mem_strdup(path);
    if (!s->path) return IG_ENOMEM;
    TRY(file_map_open(path, MAX_FILE_BYTES, &s->map));
    return safetensors_read(path, s->map.bytes, s->map.n_bytes, &s->index);
}

/* Builds the name table over all shards; a name in two shards is an error. */
static ig_status index_names(ig_weights *w)
{
    size_t n = 0;
    for (int64_t i = 0; i < w->n_shards; i++) n += w->s[i].index.n;
    if (n > SAFETENSORS_MAX_TENSORS)
        return ig_fail(IG_ELIMIT, "%s: more than %u tensors", w->s[0].path,
                       SAFETENSORS_MAX_TENSORS);
    w->at = mem_calloc(n + 1, sizeof *w->at);
    if (!w->at) return IG_ENOMEM;
    TRY(map_new(n + 1, &w->by_name));
    for (int64_t i = 0; i < w->n_shards; i++)
        for (size_t k = 0; k < w->s[i].index.n; k++) {
            const char *name = w->s[i].index.t[k].name;
            bool twice;
            TRY(map_put(w->by_name, str_of(name), w->n, &twice));
            if (twice)
                return ig_fail(IG_EFORMAT, "%s: tensor %s appears twice", w->s[i].path, name);
            w->at[w->n++] = (place){(int32_t)i, (int32_t)k};
        }
    return IG_OK;
}

static bool plain_name(str s)
{
    if (!s.n || s.n > 255 || s.p[0] == '.' || memchr(s.p, 0, s.n)) return false;
    return !memchr(s.p, '/', s.n) && str_ends(s, str_of(".safetensors"));
}

/* Opens the shards that the index names, in order of first mention. */
static ig_status open_listed(const char *dir, const char *index_path, const json_t *weight_map,
                             ig_weights *w)
{
    AUTO(map_ptr) seen = NULL;
    const char *key;
    json_t *value;
    TRY(map_new(MAX_SHARDS + 1, &seen));
    w->s = mem_calloc(MAX_SHARDS, sizeof *w->s);
    if (!w->s) return IG_ENOMEM;
    json_object_foreach((json_t *)weight_map, key, value)
    {
        str file = {json_string_value(value), json_string_length(value)};
        int64_t known;
        if (!json_is_string(value) || !plain_name(file))
            return ig_fail(IG_EFORMAT, "%s: %s: not a plain .safetensors file name", index_path,
                           key);
        if (map_get(seen, file, &known)) continue;
        if (w->n_shards == MAX_SHARDS)
            return ig_fail(IG_ELIMIT, "%s: more than %d shards", index_path, MAX_SHARDS);
        TRY(map_put(seen, file, w->n_shards, NULL));
        AUTO(buf) path = {0};
        TRY(file_join(&path, dir, file.p));
        w->n_shards++;
        TRY(open_shard(path.data, &w->s[w->n_shards - 1]));
    }
    if (!w->n_shards) return ig_fail(IG_EFORMAT, "%s: weight_map is empty", index_path);
    return IG_OK;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Every tensor of the index is in the shard it names, and nothing else is there. */
static ig_status check_listed(const char *index_path, const json_t *weight_map, const ig_weights *w)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)weight_map, key, value)
    {
        int64_t i;
        if (!map_get(w->by_name, str_of(key), &i))
            return ig_fail(IG_EFORMAT, "%s: tensor %s is in no shard", index_path, key);
        const char *path = w->s[w->at[i].shard].path;
        if (strcmp(file_name(path), json_string_value(value)) != 0)
            return ig_fail(IG_EFORMAT, "%s: tensor %s is in %s, the index says %s", index_path, key,
                           path, json_string_value(value));
    }
    for (int64_t i = 0; i < w->n; i++) {
        const shard *s = &w->s[w->at[i].shard];
        const char *name = s->index.t[w->at[i].tensor].name;
        if (!json_object_get(weight_map, name))
            return ig_fail(IG_EFORMAT, "%s: tensor %s of %s is not listed", index_path, name,
                           s->path);
    }
    return IG_OK;
}

static ig_status open_index(const char *dir, const char *index_path, ig_weights *w)
{
    AUTO(buf) text = {0};
    AUTO(json_ptr) root = NULL;
    json_t *weight_map;
    TRY(file_read(index_path, MAX_INDEX_BYTES, &text));
    TRY(json_parse(index_path, (str){text.data, text.n}, MAX_INDEX_BYTES, 8, &root));
    TRY(json_get_obj(index_path, root, "weight_map", &weight_map));
    TRY(open_listed(dir, index_path, weight_map, w));
    TRY(index_names(w));
    return check_listed(index_path, weight_map, w);
}

static ig_status open_single(const char *path, ig_weights *w)
{
    w->s = mem_calloc(1, sizeof *w->s);
    if (!w->s) return IG_ENOMEM;
    w->n_shards = 1;
    TRY(open_shard(path, &w->s[0]));
    return index_names(w);
}

ig_status ig_weights_open(const char *path, ig_weights **ret_weights)
{
    AUTO(weights_ptr) w = mem_calloc(1, sizeof *w);
    AUTO(buf) index_path = {0}, single_path = {0};
    buf_init(&index_path, 4096);
    buf_init(&single_path, 4096);
    if (!w) return IG_ENOMEM;
    if (!path) return ig_fail(IG_EINVAL, "ig_weights_open: no path");
    if (str_ends(str_of(path), str_of(".safetensors"))) {
        TRY(open_single(path, w));
    } else {
        TRY(file_join(&index_path, path, "model.safetensors.index.json"));
        TRY(file_join(&single_path, path, "model.safetensors"));
        if (file_exists(index_path.data))
            TRY(open_index(path, index_path.data, w));
        else if (file_exists(single_path.data))
            TRY(open_single(single_path.data, w));
        else
            return ig_fail(
                IG_ENOTFOUND,
                "%s: neither model.safetensors.index.json nor model.safetensors is there", path);
    }
    *ret_weights = STEAL(w);
    return IG_OK;
}

int64_t ig_weights_count(const ig_weights *w) { return w->n; }

static const st_tensor *tensor_at(const ig_weights *w, int64_t i)
{
    return &w->s[w->at[i].shard].index.t[w->at[i].tensor];
}

const char *ig_weights_name(const ig_weights *w, int64_t i)
{
    return i >= 0 && i < w->n ? tensor_at(w, i)->name : NULL;
}

bool ig_weights_has(const ig_weights *w, const char *name)
{
    int64_t i;
    return map_get(w->by_name, str_of(name), &i);
}

ig_array ig_weights_get(const ig_weights *w, const char *name)
{
    int64_t i;
    if (!map_get(w->by_name, str_of(name), &i)) {
        (void)!ig_fail(IG_ENOTFOUND, "%s: no tensor named %s", w->s[0].path, name);
        return (ig_array){0};
    }
    const st_tensor *t = tensor_at(w, i);
    const uint8_t *bytes = w->s[w->at[i].shard].map.bytes + t->begin;
    if (t->dtype == IG_BOOL) return ig_array_copy(bytes, IG_BOOL, t->dim, t->ndim);
    return ig_array_adopt(bytes, t->n_bytes, t->dtype, t->dim, t->ndim, NULL, NULL);
}

const char *ig_weights_metadata(const ig_weights *w, const char *key)
{
    const st_index *x = &w->s[0].index;
    for (size_t i = 0; i < x->n_meta; i++)
        if (!strcmp(x->meta[i].key, key)) return x->meta[i].value;
    return "";
}

void ig_weights_populate(const ig_weights *w, int64_t i) { file_map_populate(&w->s[i].map); }

int64_t ig_weights_n_files(const ig_weights *w) { return w->n_shards; }

static int64_t time_ns(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

ig_weights_file ig_weights_file_at(const ig_weights *w, int64_t i)
{
    const shard *s = &w->s[i];
    return (ig_weights_file){s->path,
                             (uint64_t)s->map.st.st_dev,
                             (uint64_t)s->map.st.st_ino,
                             (int64_t)s->map.st.st_size,
                             time_ns(s->map.st.st_mtim),
                             time_ns(s->map.st.st_ctim)};
}

ig_status ig_weights_unchanged(const ig_weights *w)
{
    for (int64_t i = 0; i < w->n_shards; i++) {
        ig_weights_file f = ig_weights_file_at(w, i);
        struct stat st;
        if (fstat(w->s[i].map.fd, &st) != 0 || (int64_t)st.st_size != f.n_bytes ||
            time_ns(st.st_mtim) != f.mtime_ns || time_ns(st.st_ctim) != f.ctime_ns)
            return ig_fail(
                IG_EVERIFY,
                "%s: the weight file changed while it was in use; restore it and restart", f.path);
    }
    return IG_OK;
}
