/* config.c: settings by table: flags > INGOT_* > file > defaults. */
#include "server/config.h"
#include <string.h>
#include "base/file.h"

#define MAX_FILE ((size_t)1 << 20)

const setting_info config_table[N_SETTINGS] = {
#define TEXT(name, label, dflt, doc) [SET_##name] = {#name, dflt, NULL, label, doc, 0, 0, 't'},
#define CHOICE(name, dflt, choices, doc) \
    [SET_##name] = {#name, dflt, choices, choices, doc, 0, 0, 'c'},
#define NUMBER(name, dflt, lo, hi, doc) [SET_##name] = {#name, #dflt, NULL, "N", doc, lo, hi, 'n'},
#define FLAG(name, doc) [SET_##name] = {#name, "false", "false|true", NULL, doc, 0, 1, 'f'},
#include "server/config.def"
#undef TEXT
#undef CHOICE
#undef NUMBER
#undef FLAG
};

ig_status config_init(config *ret_config)
{
    config c = {0};
    for (int i = 0; i < N_SETTINGS; i++)
        if (config_set(&c, config_table[i].name, config_table[i].dflt, ORIGIN_DEFAULT) != IG_OK) {
            config_free(&c);
            return ig_error_code();
        }
    *ret_config = c;
    return IG_OK;
}

void config_free(config *c)
{
    for (int i = 0; i < N_SETTINGS; i++) mem_free(c->text[i]);
    *c = (config){0};
}

/* '-' and '_' are the same in names. */
static bool same_name(const char *a, const char *b)
{
    while (*a && (*a == *b || (*a == '-' && *b == '_'))) a++, b++;
    return !*a && !*b;
}

static bool in_choices(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = choices; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (!strncmp(p, value, n) && (p[n] == '|' || !p[n])) return true;
    return false;
}

static ig_status check(const setting_info *s, const char *value, int64_t *ret_number)
{
    *ret_number = 0;
    if (s->kind == 'n' && !str_int(str_of(value), s->lo, s->hi, ret_number))
        return ig_fail(IG_EINVAL, "%s: '%s' is not a whole number between %lld and %lld", s->name,
                       value, (long long)s->lo, (long long)s->hi);
    if (s->choices && !in_choices(s->choices, value))
        return ig_fail(IG_EINVAL, "%s: '%s' is not one of %s", s->name, value, s->choices);
    if (s->kind == 'f') *ret_number = !strcmp(value, "true");
    return IG_OK;
}

ig_status config_set(config *c, const char *name, const char *value, origin from)
{
    for (int i = 0; i < N_SETTINGS; i++) {
        if (!same_name(name, config_table[i].name)) continue;
        int64_t number;
        TRY(check(&config_table[i], value, &number));
        if (c->text[i] && from < c->from[i]) return IG_OK;
        char *copy = mem_strdup(value);
        if (!copy) return IG_ENOMEM;
        mem_free(c->text[i]);
        c->text[i] = copy;
        c->number[i] = number;
        c->from[i] = from;
        return IG_OK;
    }
    return ig_fail(IG_EINVAL, "%s: there is no such setting; `ingot serve --help` lists them",
                   name);
}

static str trim(str s)
{
    while (s.n && (*s.p == ' ' || *s.p == '\t')) s.p++, s.n--;
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r')) s.n--;
    return s;
}

static ig_status set_line(config *c, const char *path, int line, str text)
{
    const char *equals = memchr(text.p, '=', text.n);
    if (!equals) return ig_fail(IG_EFORMAT, "%s:%d: expected name = value", path, line);
    str name = trim((str){text.p, (size_t)(equals - text.p)}),
        value = trim((str){equals + 1, (size_t)(text.p + text.n - equals - 1)});
    AUTO(mem_str) n = mem_calloc(1, name.n + 1);
    AUTO(mem_str) v = mem_calloc(1, value.n + 1);
    if (!n || !v) return IG_ENOMEM;
    memcpy(n, name.p, name.n);
    memcpy(v, value.p, value.n);
    ig_status s = config_set(c, n, v, ORIGIN_FILE);
    return s == IG_OK ? s : ig_fail_context(s, "%s:%d: ", path, line);
}

ig_status config_read_file(config *c, const char *path)
{
    AUTO(buf) text = {0};
    TRY(file_read(path, MAX_FILE, &text));
    const char *p = text.data, *end = text.data + text.n;
    for (int line = 1; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p)), *stop = newline ? newline : end;
        str s = trim((str){p, (size_t)(stop - p)});
        if (s.n && *s.p != '#') TRY(set_line(c, path, line, s));
        p = stop + 1;
    }
    return IG_OK;
}

void config_print(const config *c, buf *out)
{
    static const char *const origins[] = {"default", "file", "environment", "flag"};
    for (int i = 0; i < N_SETTINGS; i++)
        buf_printf(out, "%-16s = %-24s # %s\n", config_table[i].name, c->text[i],
                   origins[c->from[i]]);
}

void config_digest(const config *c, uint8_t out[SHA256_N])
{
    sha256_ctx h;
    memset(out, 0, SHA256_N);
    if (sha256_init(&h) != IG_OK) return;
    for (int i = 0; i < N_SETTINGS; i++) {
        sha256_add(&h, config_table[i].name, strlen(config_table[i].name));
        sha256_add(&h, "=", 1);
        sha256_add(&h, c->text[i], strlen(c->text[i]));
        sha256_add(&h, "\n", 1);
    }
    sha256_final(&h, out);
}
