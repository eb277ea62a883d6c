/* Whole files: mapping, reading, atomic writing under faults, directories, walks. */
#include "support/test.h"
#include "support/tmp.h"
#include "support/walk.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"

static char dir[TMP_PATH_N];

static int make_dir(void **state)
{
    (void)state;
    tmp_open(dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    tmp_close(dir);
    return 0;
}

static void assert_content(const char *path, const char *want)
{
    AUTO(buf) b;
    assert_ok(file_read(path, 1000, &b));
    assert_int_equal(b.n, strlen(want));
    if (b.n) assert_memory_equal(b.data, want, b.n);
}

TEST(a_mapping_holds_the_bytes_at_a_huge_page_boundary)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    char *text = calloc(1, 5000000);
    memset(text, 'x', 5000000);
    tmp_write(dir, "big", text, 5000000);
    assert_ok(file_map_open(tmp_path(dir, "big"), 5000000, &m));
    assert_int_equal(m.n_bytes, 5000000);
    assert_int_equal((uintptr_t)m.bytes % (2 << 20), 0);
    file_map_populate(&m);
    assert_memory_equal(m.bytes, text, 5000000);
    assert_int_equal(m.st.st_size, 5000000);
    assert_true(m.fd >= 0);
    free(text);
}

/* Huge pages are the kernel's to give; bytes and descriptors are not touched either way. */
TEST(caching_hints_leave_the_bytes_as_they_are_and_never_fail)
{
    const size_t n = 5000001;
    uint8_t *bytes = malloc(n), *got = malloc(n);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    tmp_write(dir, "hints", bytes, n);
    int fd = open(tmp_path(dir, "hints"), O_RDWR);
    assert_int_equal(fsync(fd), 0);
    for (int i = 0; i < 3; i++) {
        file_uncache(fd);
        file_cache_huge(fd, 0, i ? n : 0);
        file_cache_huge(fd, 2 << 20, n - (2 << 20));
        file_cache_huge(fd, 64 << 20, 2 << 20); /* behind the end */
        assert_int_equal(pread(fd, got, n, 0), n);
        assert_memory_equal(got, bytes, n);
        assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    }
    close(fd);
    file_uncache(fd);
    file_cache_huge(fd, 0, n);
    free(bytes);
    free(got);
}

TEST(an_empty_file_maps_to_no_bytes)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    tmp_write(dir, "empty", "", 0);
    assert_ok(file_map_open(tmp_path(dir, "empty"), 0, &m));
    assert_int_equal(m.n_bytes, 0);
    assert_non_null(m.bytes);
    file_map_populate(&m);
}

TEST(what_cannot_be_mapped_is_refused_by_name)
{
    file_map m = FILE_MAP_NONE;
    tmp_write(dir, "ten", "0123456789", 10);
    assert_fails(file_map_open(tmp_path(dir, "ten"), 9, &m), IG_ELIMIT, "ten: 10 bytes, at most 9");
    assert_fails(file_map_open(tmp_path(dir, "none"), 9, &m), IG_ENOTFOUND,
                 "none: cannot open: No such file");
    assert_fails(file_map_open(dir, 9, &m), IG_EINVAL, "not a regular file");
    assert_int_equal(mkfifo(tmp_path(dir, "fifo"), 0600), 0);
    assert_fails(file_map_open(tmp_path(dir, "fifo"), 9, &m), IG_EINVAL, "not a regular file");
    assert_int_equal(m.fd, -1);
}

static ig_status map_and_drop(void *user)
{
    AUTO(file_map) m = FILE_MAP_NONE;
    return file_map_open(user, 100, &m);
}

static int n_open_files(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

TEST(a_failed_mapping_leaves_no_file_open)
{
    tmp_write(dir, "ten", "0123456789", 10);
    int before = n_open_files();
    char *path = strdup(tmp_path(dir, "ten"));
    assert_int_equal(walk_io(map_and_drop, path, EIO, NULL), 2);
    assert_int_equal(n_open_files(), before);
    free(path);
}

TEST(reading_stops_at_the_limit)
{
    AUTO(buf) b;
    tmp_write(dir, "ten", "0123456789", 10);
    assert_content(tmp_path(dir, "ten"), "0123456789");
    assert_fails(file_read(tmp_path(dir, "ten"), 9, &b), IG_ELIMIT, "ten: more than 9 bytes");
    assert_int_equal(b.n, 0);
    assert_ok(file_read("/proc/self/status", 100000, &b)); /* claims to have no bytes */
    assert_true(b.n > 100);
}

TEST(a_pipe_is_read_to_its_end_and_one_without_a_writer_is_no_wait)
{
    static const char *const texts[] = {"late", ""};
    AUTO(buf) none = {0};
    for (int i = 0; i < 2; i++) {
        AUTO(buf) b = {0};
        char path[32];
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], texts[i], strlen(texts[i])), strlen(texts[i]));
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        assert_ok(file_read(path, 9, &b));
        assert_int_equal(b.n, strlen(texts[i]));
        close(ends[0]);
    }
    assert_int_equal(mkfifo(tmp_path(dir, "nobody"), 0600), 0);
    alarm(10); /* waiting would be for ever */
    assert_fails(file_read(tmp_path(dir, "nobody"), 9, &none), IG_EINVAL, "nobody writes");
    alarm(0);
}

TEST(a_file_larger_than_a_read_step_is_read_whole)
{
    size_t n = 1000003;
    char *text = malloc(n);
    for (size_t i = 0; i < n; i++) text[i] = (char)(i * 31 >> 3);
    tmp_write(dir, "long", text, n);
    AUTO(buf) b;
    assert_ok(file_read(tmp_path(dir, "long"), n, &b));
    assert_int_equal(b.n, n);
    assert_memory_equal(b.data, text, n);
    free(text);
}

TEST(an_atomic_write_makes_and_replaces)
{
    const char *path = tmp_path(dir, "key");
    assert_ok(file_write_atomic(path, "one", 3, 0600));
    assert_content(path, "one");
    assert_ok(file_write_atomic(path, "", 0, 0600));
    assert_content(path, "");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static ig_status count_file(void *user, const char *name, const struct stat *st)
{
    (void)name, (void)st;
    ++*(int *)user;
    return IG_OK;
}

static ig_status write_new_content(void *user)
{
    return file_write_atomic(user, "new content", 11, 0644);
}

/* Old or new, never a mixture, and no temporary file beside it. */
static void check_old_or_new(void *user)
{
    AUTO(buf) b;
    int n_files = 0;
    assert_ok(file_read(user, 100, &b));
    if (strcmp(b.data, "old") != 0) assert_string_equal(b.data, "new content");
    assert_ok(file_walk(dir, count_file, &n_files));
    assert_int_equal(n_files, 1);
    tmp_write(dir, "key", "old", 3);
}

TEST(any_call_of_an_atomic_write_may_fail)
{
    char *path = strdup(tmp_path(dir, "key"));
    tmp_write(dir, "key", "old", 3);
    /* open, write, sync, rename, sync of the directory */
    assert_int_equal(walk_io(write_new_content, path, ENOSPC, check_old_or_new), 5);
    assert_content(path, "new content");
    free(path);
}

TEST(any_allocation_of_an_atomic_write_may_fail)
{
    char *path = strdup(tmp_path(dir, "key"));
    tmp_write(dir, "key", "old", 3);
    assert_true(walk_memory(write_new_content, path) > 0);
    free(path);
}

TEST(a_kill_at_any_call_leaves_old_or_new_content)
{
    for (int n = 1; n <= 5; n++) {
        char *path = strdup(tmp_path(dir, "key"));
        tmp_write(dir, "key", "old", 3);
        pid_t child = fork();
        if (child == 0) {
            io_fault_arm((io_fault){.n = n, .kill = true, .short_write = true});
            _exit(write_new_content(path) == IG_OK);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_content(path, n <= 4 ? "old" : "new content");
        free(path);
    }
}

TEST(directories_are_made_down_to_the_last)
{
    char *path = strdup(tmp_path(dir, "a/b//c/"));
    assert_ok(file_mkdirs(path, 0755));
    assert_true(file_exists(path));
    assert_ok(file_mkdirs(path, 0755));
    tmp_write(dir, "a/file", "x", 1);
    assert_fails(file_mkdirs(tmp_path(dir, "a/file/d"), 0755), IG_EIO,
                 "a/file: cannot make the directory");
    free(path);
}

TEST(joining_puts_one_slash)
{
    AUTO(buf) b;
    assert_ok(file_join(&b, "d", "f"));
    assert_string_equal(b.data, "d/f");
    buf_done(&b);
    assert_ok(file_join(&b, "/", "f"));
    assert_string_equal(b.data, "/f");
    buf_done(&b);
    assert_ok(file_join(&b, "", "f"));
    assert_string_equal(b.data, "f");
    buf_done(&b);
    char *name = calloc(1, 5000);
    memset(name, 'n', 4999);
    assert_fails(file_join(&b, "d", name), IG_ELIMIT, "path longer than 4095");
    free(name);
}

static ig_status list_file(void *user, const char *name, const struct stat *st)
{
    buf_printf(user, "%s %lld\n", name, (long long)st->st_size);
    return IG_OK;
}

static ig_status stop_at_once(void *user, const char *name, const struct stat *st)
{
    (void)st;
    ++*(int *)user;
    return ig_fail(IG_ECANCELLED, "stopped at %s", name);
}

TEST(a_walk_gives_regular_files_in_the_order_of_bytes)
{
    AUTO(buf) b;
    int n = 0;
    buf_init(&b, 1000);
    assert_ok(file_mkdirs(tmp_path(dir, "sub/deep"), 0755));
    assert_ok(file_mkdirs(tmp_path(dir, "void"), 0755));
    tmp_write(dir, "sub.txt", "1", 1);
    tmp_write(dir, "sub/deep/z", "22", 2);
    tmp_write(dir, "sub/a", "333", 3);
    tmp_write(dir, "B", "", 0);
    assert_ok(file_walk(dir, list_file, &b));
    assert_string_equal(b.data, "B 0\nsub.txt 1\nsub/a 3\nsub/deep/z 2\n");
    assert_fails(file_walk(dir, stop_at_once, &n), IG_ECANCELLED, "stopped at B");
    assert_int_equal(n, 1);
}

static ig_status walk_all(void *user)
{
    int n = 0;
    return file_walk(user, count_file, &n);
}

TEST(a_walk_survives_any_failing_allocation)
{
    assert_ok(file_mkdirs(tmp_path(dir, "sub"), 0755));
    tmp_write(dir, "sub/a", "", 0);
    tmp_write(dir, "b", "", 0);
    assert_true(walk_memory(walk_all, dir) > 4);
}

TEST(a_walk_refuses_links_and_special_files)
{
    int n = 0;
    assert_int_equal(symlink("/etc/passwd", tmp_path(dir, "link")), 0);
    assert_fails(file_walk(dir, count_file, &n), IG_EINVAL,
                 "link: neither a regular file nor a directory");
    assert_fails(file_walk(tmp_path(dir, "none"), count_file, &n), IG_ENOTFOUND, "none");
    assert_int_equal(n, 0);
}

TEST(a_tree_is_removed_without_following_links)
{
    assert_ok(file_mkdirs(tmp_path(dir, "tree/deep"), 0755));
    tmp_write(dir, "tree/deep/a", "1", 1);
    tmp_write(dir, "kept", "2", 1);
    assert_int_equal(symlink("../kept", tmp_path(dir, "tree/link")), 0);
    file_remove_tree(tmp_path(dir, "tree"));
    assert_false(file_exists(tmp_path(dir, "tree")));
    assert_true(file_exists(tmp_path(dir, "kept")));
    file_remove_tree(tmp_path(dir, "none"));
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(a_mapping_holds_the_bytes_at_a_huge_page_boundary),
        IN_DIR(caching_hints_leave_the_bytes_as_they_are_and_never_fail),
        IN_DIR(an_empty_file_maps_to_no_bytes),
        IN_DIR(what_cannot_be_mapped_is_refused_by_name),
        IN_DIR(a_failed_mapping_leaves_no_file_open),
        IN_DIR(reading_stops_at_the_limit),
        IN_DIR(a_pipe_is_read_to_its_end_and_one_without_a_writer_is_no_wait),
        IN_DIR(a_file_larger_than_a_read_step_is_read_whole),
        IN_DIR(an_atomic_write_makes_and_replaces),
        IN_DIR(any_call_of_an_atomic_write_may_fail),
        IN_DIR(any_allocation_of_an_atomic_write_may_fail),
        IN_DIR(a_kill_at_any_call_leaves_old_or_new_content),
        IN_DIR(directories_are_made_down_to_the_last),
        CASE(joining_puts_one_slash),
        IN_DIR(a_walk_gives_regular_files_in_the_order_of_bytes),
        IN_DIR(a_walk_survives_any_failing_allocation),
        IN_DIR(a_walk_refuses_links_and_special_files),
        IN_DIR(a_tree_is_removed_without_following_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
