/* cmd_keygen.c: ingot keygen: publisher keys (P-256), log keys (Ed25519), API keys (256 random
 * bits). */
#include <stdio.h>
#include <string.h>
#include "audit/key.h"
#include "base/buf.h"
#include "base/file.h"
#include "cli/cli.h"

/* The folder of a key is made when it is missing, for its owner only. */
static ig_status make_parent(const char *path)
{
    AUTO(buf) parent = {0};
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return IG_OK;
    buf_init(&parent, 4096);
    buf_add(&parent, path, (size_t)(slash - path));
    TRY(buf_status(&parent));
    return file_exists(parent.data) ? IG_OK : file_mkdirs(parent.data, 0700);
}

static ig_status publisher(const char *path)
{
    AUTO(publisher_key_ptr) k = NULL;
    AUTO(buf) pub = {0};
    buf_init(&pub, 4096);
    buf_printf(&pub, "%s.pub", path);
    TRY(buf_status(&pub));
    TRY(publisher_key_generate(&k));
    TRY(publisher_key_write_private(k, path));
    TRY(publisher_key_write_public(k, pub.data));
    printf("private key %s (keep it off the server)\npublic key  %s\nfingerprint %s\nCompare the "
           "fingerprint by another channel before you trust the public key.\n",
           path, pub.data, publisher_key_fingerprint(k));
    return IG_OK;
}

static ig_status log_pair(const char *path, const char *name)
{
    AUTO(log_key_ptr) k = NULL;
    AUTO(buf) pub = {0};
    buf_init(&pub, 4096);
    buf_printf(&pub, "%s.vkey", path);
    TRY(buf_status(&pub));
    TRY(log_key_generate(name, &k));
    TRY(log_key_write(k, path));
    TRY(log_vkey_write(log_key_public(k), pub.data));
    printf("private key %s\nverifier key %s\n%s\n", path, pub.data, log_key_public(k)->text);
    return IG_OK;
}

/* The key goes to a file of its own; the line with its digest is what the server reads. */
static ig_status api(const char *path, const char *id, const char *tenant)
{
    uint8_t key[32], digest[SHA256_N];
    AUTO(buf) text = {0}, line = {0};
    buf_init(&text, 4096);
    buf_init(&line, 4096);
    if (file_exists(path)) return ig_fail(IG_EINVAL, "%s exists already", path);
    TRY(random_bytes(key, sizeof key));
    buf_str(&text, "ik-");
    buf_hex(&text, key, sizeof key);
    TRY(buf_status(&text));
    sha256(text.data, text.n, digest);
    buf_hex(&line, digest, sizeof digest);
    TRY(buf_status(&line));
    TRY(file_write_atomic(path, text.data, text.n, 0600));
    printf("%s %s %s\n", id, tenant, line.data);
    fflush(stdout); /* "above" is meant for pipes, too */
    fprintf(stderr, "the key is in %s; add the line above to the file of --api-keys\n", path);
    return IG_OK;
}

static int run(int argc, char **argv)
{
    const char *name = "ingot", *id = "key1", *tenant = "default";
    text_list args;
    int code;
    const option_info options[] = {
        {"name", 0, "NAME", "log: name of the log; 16 random digits are added", OPT_TEXT, &name, 0,
         0},
        {"id", 0, "ID", "api: id of the key", OPT_TEXT, &id, 0, 0},
        {"tenant", 0, "NAME", "api: tenant of the key", OPT_TEXT, &tenant, 0, 0},
        {0},
    };
    cli_parse("keygen", argc, argv, options, &args, 2, 2, &code);
    if (code >= 0) return code;
    ig_status s = make_parent(args.text[1]);
    if (s != IG_OK) return cli_fail("keygen", s);
    if (!strcmp(args.text[0], "publisher"))
        s = publisher(args.text[1]);
    else if (!strcmp(args.text[0], "log"))
        s = log_pair(args.text[1], name);
    else if (!strcmp(args.text[0], "api"))
        s = api(args.text[1], id, tenant);
    else
        return cli_usage("keygen", "'%s' is not publisher, log or api", args.text[0]);
    return s == IG_OK ? EXIT_DONE : cli_fail("keygen", s);
}

const command_info command_keygen = {run};
