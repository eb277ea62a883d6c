/* config.h: the server's settings and where each came from. */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H
#include "base/buf.h"
#include "base/digest.h"

typedef enum setting {
#define TEXT(name, ...) SET_##name,
#define CHOICE(name, ...) SET_##name,
#define NUMBER(name, ...) SET_##name,
#define FLAG(name, ...) SET_##name,
#include "server/config.def"
#undef TEXT
#undef CHOICE
#undef NUMBER
#undef FLAG
    N_SETTINGS
} setting;

typedef enum origin { ORIGIN_DEFAULT, ORIGIN_FILE, ORIGIN_ENVIRONMENT, ORIGIN_FLAG } origin;

typedef struct config {
    char *text[N_SETTINGS];     /* owned: the value as text, always there */
    int64_t number[N_SETTINGS]; /* NUMBER: the value; FLAG: 0 or 1 */
    origin from[N_SETTINGS];
} config;

typedef struct setting_info {
    const char *name, *dflt, *choices;
    const char *label; /* of the value in help; NULL: a flag */
    const char *doc;
    int64_t lo, hi;
    char kind;
} setting_info; /* kind: t c n f */
extern const setting_info config_table[N_SETTINGS];

IG_MUST_USE ig_status config_init(config *ret_config); /* all defaults */
void config_free(config *c);
static inline void config_auto(config *c) { config_free(c); }
/* Sets by name ("kv_tokens" or "kv-tokens"); a value of lower origin than the present one is
 * ignored. */
IG_MUST_USE ig_status config_set(config *c, const char *name, const char *value, origin from);
/* "name = value" lines, # comments. Unknown names are errors with the line. */
IG_MUST_USE ig_status config_read_file(config *c, const char *path);
/* One line a setting: name = value  # origin. The digest is over "name=value\n" in table order. */
void config_print(const config *c, buf *out);
void config_digest(const config *c, uint8_t out[SHA256_N]);
#endif
