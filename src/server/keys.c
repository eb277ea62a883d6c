/* keys.c: reads and compares API keys. */
#include "server/keys.h"
#include <stdio.h>
#include <string.h>
#include "base/file.h"

#define MAX_FILE ((size_t)4 << 20)

static bool is_name(const char *s)
{
    size_t n = strlen(s);
    return n && strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

static ig_status read_line(const char *path, int line, const char *text, key_list *l)
{
    char id[65], tenant[65], hex[65], more[2];
    api_key *k = &l->k[l->n];
    int n = sscanf(text, " %64s %64s %64s %1s", id, tenant, hex, more);
    if (n <= 0 || *id == '#') return IG_OK;
    if (n != 3 || !is_name(id) || !is_name(tenant) || !hex_decode(str_of(hex), k->sha256, SHA256_N))
        return ig_fail(
            IG_EFORMAT,
            "%s:%d: expected ID TENANT SHA256 (64 lower-case hex digits of the key's digest)", path,
            line);
    memcpy(k->id, id, sizeof id);
    memcpy(k->tenant, tenant, sizeof tenant);
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->k[i].id, id))
            return ig_fail(IG_EFORMAT, "%s:%d: key id %s appears twice", path, line, id);
    l->n++;
    return IG_OK;
}

static ig_status read_lines(const char *path, char *text, key_list *l)
{
    int line = 1;
    for (char *next; text; text = next, line++) {
        next = strchr(text, '\n');
        if (next) *next++ = 0;
        if (l->n == KEYS_MAX) return ig_fail(IG_ELIMIT, "%s: more than %d keys", path, KEYS_MAX);
        TRY(read_line(path, line, text, l));
    }
    return l->n ? IG_OK : ig_fail(IG_EFORMAT, "%s: no key in it", path);
}

ig_status keys_read(const char *path, key_list *ret_list)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, MAX_FILE, &text));
    if (memchr(text.data, 0, text.n)) return ig_fail(IG_EFORMAT, "%s: a zero byte in it", path);
    key_list l = {.k = mem_calloc(KEYS_MAX + 1, sizeof *l.k)};
    if (!l.k) return IG_ENOMEM;
    ig_status s = read_lines(path, text.data, &l);
    if (s != IG_OK) {
        keys_done(&l);
        return s;
    }
    *ret_list = l;
    return IG_OK;
}

void keys_done(key_list *l)
{
    mem_free(l->k);
    *l = (key_list){0};
}

api_key *keys_find(const key_list *l, const char *authorization)
{
    uint8_t digest[SHA256_N];
    api_key *found = NULL;
    if (!authorization || strncmp(authorization, "Bearer ", 7)) return NULL;
    sha256(authorization + 7, strlen(authorization + 7), digest);
    for (size_t i = 0; i < l->n; i++) {
        uint8_t differ = 0;
        for (int b = 0; b < SHA256_N; b++) differ |= digest[b] ^ l->k[i].sha256[b];
        if (!differ) found = &l->k[i];
    }
    return found;
}
