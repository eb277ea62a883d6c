/* scripts.c: the texts of embed/, written out (contract in scripts.h). */
#include "audit/scripts.h"

#include "base/file.h"

static const char verify_sh[] = {
#include "audit/embed/verify.sh.inc"
};
static const char verify_md[] = {
#include "audit/embed/VERIFY.md.inc"
};
static const char check_sh[] = {
#include "audit/embed/check.sh.inc"
};

static ig_status write_in(const char *dir, const char *name, const char *text, size_t n,
                          mode_t mode)
{
    AUTO(buf) path = {0};
    buf_init(&path, 0);
    TRY(file_join(&path, dir, name));
    return file_write_atomic(path.data, text, n, mode);
}

ig_status scripts_write_bundle(const char *bundle_dir)
{
    TRY(write_in(bundle_dir, "verify.sh", verify_sh, sizeof verify_sh - 1, 0755));
    return write_in(bundle_dir, "VERIFY.md", verify_md, sizeof verify_md - 1, 0644);
}

ig_status scripts_write_check(const char *path)
{
    return file_write_atomic(path, check_sh, sizeof check_sh - 1, 0755);
}
