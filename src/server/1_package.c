/* 1_package.c: published files become a bundle.
 * takes    a Hugging Face directory or a GGUF
 * gives    BUNDLE/model: shards in MLX's layout, tokenizer, template, licence, bill of materials,
 * release.json, digests of chunks and tensors, kat.json;
 *          BUNDLE/verify.sh and VERIFY.md. `ingot sign` then adds model.sig
 * refuses  what it cannot read or represent exactly as documented; a bundle that exists
 * touches  BUNDLE.partial, renamed to BUNDLE when everything is written, removed after a failure.
 * Limit: storage and verification. */
#include <stdio.h>
#include <string.h>
#include "audit/scripts.h"
#include "base/clock.h"
#include "base/file.h"
#include "ingot/ingot.h"
#include "lm/config.h"
#include "server/model_stage.h"
#include "server/tensors.h"

#define MAX_NAME 128

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static ig_status check_name(const char *name)
{
    size_t n = strlen(name);
    if (!n || n > MAX_NAME ||
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/@+-") != n)
        return ig_fail(
            IG_EINVAL,
            "'%s' is no model name: 1 to %d letters, digits and . _ : / @ + - are possible; "
            "choose one with --name",
            name, MAX_NAME);
    return IG_OK;
}

static ig_status write_text(const char *dir, const char *name, const buf *b)
{
    AUTO(buf) path = {0};
    TRY(file_join(&path, dir, name));
    TRY(buf_status(b));
    return file_write_atomic(path.data, b->data ? b->data : "", b->n, 0644);
}

static void free_files(source_file *f, int n)
{
    for (int i = 0; i < n; i++) buf_done(&f[i].content);
}

static ig_status write_files(const source *s, const char *dir, bool *ret_has_license)
{
    source_file files[SOURCE_MAX_FILES];
    int n = 0;
    ig_status status = source_files(s, files, &n);
    for (int i = 0; i < n && status == IG_OK; i++) {
        status = write_text(dir, files[i].name, &files[i].content);
        if (!strcmp(files[i].name, "LICENSE")) *ret_has_license = true;
    }
    free_files(files, n);
    return status;
}

static ig_status write_license(const package_options *o, const char *dir, bool has_one)
{
    AUTO(buf) text = {0};
    if (!o->license_file) {
        buf_init(&text, 1024);
        if (has_one) return IG_OK;
        if (o->convert.note)
            o->convert.note(o->convert.user,
                            "the source has no LICENSE file: give one with --license FILE");
        return IG_OK;
    }
    TRY(file_read(o->license_file, (size_t)4 << 20, &text));
    return write_text(dir, "LICENSE", &text);
}

static ig_status write_release(const package_options *o, const char *name, const char *dir)
{
    AUTO(buf) b = {0};
    buf_init(&b, 1 << 16);
    buf_printf(&b, "{\"format\":1,\"name\":\"%s\",\"version\":%lld,\"min_engine\":\"%s\"", name,
               (long long)o->version, IG_VERSION);
    if (o->not_after) {
        buf_str(&b, ",\"not_after\":");
        buf_json_string(&b, o->not_after, strlen(o->not_after));
    }
    buf_str(&b, "}\n");
    return write_text(dir, "release.json", &b);
}

/* A model card for people, where the source has none. */
static ig_status write_card(const char *name, const char *from, const convert_result *r,
                            const char *dir)
{
    AUTO(buf) b = {0}, path = {0};
    buf_init(&b, 1 << 16);
    TRY(file_join(&path, dir, "README.md"));
    if (file_exists(path.data)) return IG_OK;
    buf_printf(&b,
               "# %s\n\nPacked by Ingot %s from `%s`: %lld tensors, %lld parameters, %.2f bits per "
               "parameter.\n",
               name, IG_VERSION, last_part(from), (long long)r->n_tensors,
               (long long)r->n_parameters, r->bits_per_weight);
    return write_text(dir, "README.md", &b);
}

/* CycloneDX 1.6: the model as a component, with the digest of every file laid down so far. */
static ig_status write_bom(const char *name, int64_t version, const char *dir)
{
    AUTO(buf) b = {0};
    AUTO(manifest) m = {0};
    manifest_options o = {0};
    char time[CLOCK_RFC3339_N];
    buf_init(&b, (size_t)64 << 20);
    TRY(manifest_hash_dir(dir, &o, &m));
    clock_rfc3339(clock_wall_us() / 1000000 * 1000000, time);
    buf_printf(&b,
               "{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.6\",\"version\":1,"
               "\"metadata\":{\"timestamp\":\"%.19sZ\","
               "\"tools\":{\"components\":[{\"type\":\"application\",\"name\":\"ingot\","
               "\"version\":\"%s\"}]},"
               "\"component\":{\"type\":\"machine-learning-model\",\"bom-ref\":\"model\","
               "\"name\":\"%s\",\"version\":\"%lld\"}},\"components\":[",
               time, IG_VERSION, name, (long long)version);
    for (size_t i = 0; i < m.n; i++) {
        buf_str(&b, i ? ",\n{\"type\":\"file\",\"name\":" : "\n{\"type\":\"file\",\"name\":");
        buf_json_string(&b, m.files[i].name, strlen(m.files[i].name));
        buf_str(&b, ",\"hashes\":[{\"alg\":\"SHA-256\",\"content\":\"");
        buf_hex(&b, m.files[i].digest, SHA256_N);
        buf_str(&b, "\"}]}");
    }
    buf_str(&b, "\n]}\n");
    return write_text(dir, "bom.cdx.json", &b);
}

/* What could not be loaded is refused before hours of converting, not after them. */
static ig_status check_config(const source *s, const char *from)
{
    AUTO(buf) json = {0}, what = {0};
    AUTO(lm_config) parsed = {0};
    buf_init(&json, CONFIG_MAX_BYTES);
    buf_init(&what, 4096 + 32);
    buf_printf(&what, "%s: config.json", from);
    TRY(buf_status(&what));
    TRY(source_config(s, &json));
    return config_read(what.data, (str){json.data, json.n}, &parsed);
}

static ig_status fill_bundle(const package_options *o, const char *name, const char *partial,
                             convert_result *ret_result)
{
    AUTO(source_ptr) s = NULL;
    AUTO(buf) model = {0};
    manifest_options chunks = {0};
    bool has_license = false;
    TRY(file_join(&model, partial, "model"));
    TRY(file_mkdirs(model.data, 0755));
    TRY(source_open(o->source, &s));
    TRY(check_config(s, o->source));
    TRY(convert_run(s, &o->convert, model.data, ret_result));
    TRY(write_files(s, model.data, &has_license));
    TRY(write_license(o, model.data, has_license));
    TRY(write_release(o, name, model.data));
    TRY(write_card(name, o->source, ret_result, model.data));
    TRY(chunks_write(model.data, &chunks));
    TRY(tensors_write(model.data));
    if (!o->no_known_answer) TRY(kat_write(model.data));
    TRY(write_bom(name, o->version, model.data));
    return scripts_write_bundle(partial);
}

ig_status package_run(const package_options *o, convert_result *ret_result,
                      stage_report *ret_report)
{
    AUTO(buf) partial = {0};
    convert_result r;
    const char *name = o->name ? o->name : last_part(o->bundle);
    int64_t begin = clock_mono_us();
    buf_init(&partial, 4096);
    TRY(check_name(name));
    if (o->not_after && !release_date_valid(o->not_after))
        return ig_fail(IG_EINVAL, "--not-after: '%s' is no date YYYY-MM-DD", o->not_after);
    if (file_exists(o->bundle))
        return ig_fail(IG_EINVAL, "%s exists already: remove it, or pack to another folder",
                       o->bundle);
    buf_printf(&partial, "%s.partial", o->bundle);
    TRY(buf_status(&partial));
    if (file_exists(partial.data))
        return ig_fail(IG_EINVAL, "%s is left from an interrupted run: remove it first",
                       partial.data);
    TRY(file_mkdirs(partial.data, 0755));
    ig_status s = fill_bundle(o, name, partial.data, &r);
    if (s == IG_OK) s = io_rename(partial.data, o->bundle);
    if (s != IG_OK) {
        file_remove_tree(partial.data);
        return s;
    }
    *ret_result = r;
    *ret_report = (stage_report){clock_mono_us() - begin, r.n_bytes};
    return IG_OK;
}
