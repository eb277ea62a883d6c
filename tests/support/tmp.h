/* tmp.h: directories for tests, in $TMPDIR or /tmp. */
#ifndef SUPPORT_TMP_H
#define SUPPORT_TMP_H
#define TMP_PATH_N 256

/* Makes a new directory and gives its path; the test fails when that is impossible. */
void tmp_open(char ret_dir[TMP_PATH_N]);
/* Removes it with all it holds. */
void tmp_close(const char *dir);
/* dir/name in a buffer of the calling thread that lives until the fourth call after this one. */
const char *tmp_path(const char *dir, const char *name);
/* Replaces dir/name by n bytes. */
void tmp_write(const char *dir, const char *name, const void *p, unsigned long n);
#endif
