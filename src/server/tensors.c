/* tensors.c: writes and consults digests per tensor. */
#include "server/tensors.h"
#include <stdio.h>
#include <string.h>
#include "base/digest.h"
#include "base/file.h"
#include "base/map.h"
#include "ingot/io.h"

#define LIST "verity/tensors.sha256"
#define MAX_LIST ((size_t)256 << 20)
#define MAX_NAMED 3

static ig_status digest_of(const ig_weights *w, const char *name, uint8_t out[SHA256_N])
{
    const void *data;
    ig_scope *scope = ig_scope_open();
    ig_array a = ig_weights_get(w, name);
    ig_status s = ig_data(a, &data);
    if (s == IG_OK) sha256(data, (size_t)ig_nbytes(a), out);
    ig_status closed = ig_scope_close(scope);
    return s != IG_OK ? s : closed;
}

static ig_status list_all(const ig_weights *w, buf *out)
{
    for (int64_t i = 0; i < ig_weights_count(w); i++) {
        uint8_t digest[SHA256_N];
        TRY(digest_of(w, ig_weights_name(w, i), digest));
        buf_hex(out, digest, SHA256_N);
        buf_printf(out, "  %s\n", ig_weights_name(w, i));
    }
    return buf_status(out);
}

ig_status tensors_write(const char *model_dir)
{
    AUTO(buf) path = {0}, text = {0};
    ig_weights *w = NULL;
    buf_init(&text, MAX_LIST);
    TRY(file_join(&path, model_dir, LIST));
    TRY(ig_weights_open(model_dir, &w));
    ig_status s = list_all(w, &text);
    ig_weights_free(w);
    TRY(s);
    return file_write_atomic(path.data, text.data ? text.data : "", text.n, 0644);
}

/* Names of tensors whose bytes differ from the list, joined. */
static ig_status find_damage(const char *model_dir, buf *names)
{
    AUTO(buf) path = {0}, text = {0};
    ig_weights *w = NULL;
    char *save = NULL;
    int n = 0;
    buf_init(&text, 0);
    TRY(file_join(&path, model_dir, LIST));
    TRY(file_read(path.data, MAX_LIST, &text));
    TRY(ig_weights_open(model_dir, &w));
    for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line && n <= MAX_NAMED;
         line = strtok_r(NULL, "\n", &save)) {
        uint8_t want[SHA256_N], have[SHA256_N];
        if (strlen(line) < 67 || !hex_decode((str){line, 64}, want, SHA256_N) ||
            !ig_weights_has(w, line + 66))
            continue;
        if (digest_of(w, line + 66, have) != IG_OK || !memcmp(want, have, SHA256_N)) continue;
        if (n++ < MAX_NAMED)
            buf_printf(names, "%s%s", n > 1 ? ", " : "", line + 66);
        else
            buf_str(names, " and others");
    }
    ig_weights_free(w);
    return buf_status(names);
}

void tensors_name_damage(const char *model_dir, ig_status failure)
{
    AUTO(buf) names = {0};
    char message[1024];
    buf_init(&names, 4096);
    snprintf(message, sizeof message, "%s", ig_error_message());
    ig_error_clear();
    ig_status found = find_damage(model_dir, &names);
    ig_error_clear();
    ig_status told = found == IG_OK && names.n
                         ? ig_fail(failure, "%s; damaged tensor: %s", message, names.data)
                         : ig_fail(failure, "%s", message);
    (void)told;
}
