/* Raw calls: what they do, and that the N-th fails as it was told to. */
#include "support/test.h"
#include "support/tmp.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "base/file.h"

static char dir[TMP_PATH_N], path[2 * TMP_PATH_N];
static int fd;

static int open_file(void **state)
{
    (void)state;
    tmp_open(dir);
    snprintf(path, sizeof path, "%s", tmp_path(dir, "log"));
    return io_open(path, O_RDWR | O_CREAT, 0600, &fd) != IG_OK;
}

static int close_file(void **state)
{
    (void)state;
    io_fault_arm((io_fault){0});
    io_close(fd);
    tmp_close(dir);
    return 0;
}

static void assert_content(const char *want)
{
    AUTO(buf) b;
    assert_ok(file_read(path, 1000, &b));
    assert_string_equal(b.data ? b.data : "", want);
}

TEST(writes_go_to_their_offset_and_reads_stop_at_the_end)
{
    char got[20] = "";
    size_t n = 0;
    assert_ok(io_write(fd, "hello ", 6, path));
    assert_ok(io_pwrite(fd, "world", 5, 6, path));
    assert_ok(io_pread(fd, got, sizeof got, 6, &n, path));
    assert_int_equal(n, 5);
    assert_memory_equal(got, "world", 5);
    assert_ok(io_ftruncate(fd, 5, path));
    assert_ok(io_fdatasync(fd, path));
    assert_content("hello");
    assert_ok(io_fallocate(fd, 100, path));
    struct stat st;
    assert_ok(io_fstat(fd, &st, path));
    assert_int_equal(st.st_size, 100);
    assert_int_equal(io_pread(fd, got, 1, -1, &n, path), IG_EINVAL);
}

TEST(behind_the_end_of_data_there_is_nothing_but_zeros)
{
    enum { N = 1 << 20 };
    static char bytes[N];
    int64_t end;
    size_t got;
    assert_ok(io_fallocate(fd, N, path));
    /* the first byte, one in the middle, the last but one */
    for (int64_t at = 0; at < N; at += N / 2 - 1) {
        assert_ok(io_pwrite(fd, "x", 1, at, path));
        assert_ok(io_data_end(fd, N, &end, path));
        assert_true(end > at && end <= N);
        assert_ok(io_pread(fd, bytes, N, 0, &got, path));
        assert_int_equal(got, N);
        for (int64_t i = end; i < N; i++) assert_int_equal(bytes[i], 0);
    }
    assert_ok(io_data_end(fd, 5, &end, path));
    assert_int_equal(end, 5);
    assert_ok(io_data_end(fd, 0, &end, path));
    assert_int_equal(end, 0);
}

TEST(names_change_and_go)
{
    const char *other = tmp_path(dir, "other");
    assert_ok(io_rename(path, other));
    assert_false(file_exists(path));
    assert_ok(io_fsync_dir(dir));
    assert_ok(io_unlink(other));
    assert_fails(io_unlink(other), IG_ENOTFOUND, "other: cannot delete: No such file");
    assert_fails(io_fsync_dir(other), IG_ENOTFOUND, "cannot sync the directory");
}

TEST(descriptors_are_not_inherited)
{
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(the_nth_call_fails_with_the_given_error)
{
    io_fault_arm((io_fault){.n = 2, .err = ENOSPC});
    assert_ok(io_write(fd, "a", 1, path));
    assert_fails(io_write(fd, "b", 1, "the log"), IG_EIO, "the log: cannot write: No space left");
    assert_ok(io_write(fd, "c", 1, path));
    assert_content("ac");
}

TEST(a_short_write_stores_half)
{
    io_fault_arm((io_fault){.n = 1, .err = EIO, .short_write = true});
    assert_int_equal(io_write(fd, "12345678", 8, path), IG_EIO);
    assert_content("1234");
}

TEST(a_sticky_fault_goes_on_until_disarmed)
{
    io_fault_arm((io_fault){.n = 1, .err = EIO, .sticky = true});
    for (int i = 0; i < 3; i++) assert_int_equal(io_fdatasync(fd, path), IG_EIO);
    io_fault_arm((io_fault){0});
    assert_ok(io_fdatasync(fd, path));
}

TEST(a_late_fault_strikes_after_the_call)
{
    const char *other = tmp_path(dir, "other");
    io_fault_arm((io_fault){.n = 1, .err = EIO, .late = true});
    assert_int_equal(io_write(fd, "whole", 5, path), IG_EIO);
    assert_content("whole");
    io_fault_arm((io_fault){.n = 1, .err = EIO, .late = true});
    assert_int_equal(io_rename(path, other), IG_EIO);
    assert_true(file_exists(other));
}

TEST(what_was_not_synced_can_be_lost)
{
    io_fault_arm((io_fault){.n = 4, .err = EIO, .lose = true});
    assert_ok(io_pwrite(fd, "synced", 6, 0, path));
    assert_ok(io_fdatasync(fd, path));
    assert_ok(io_pwrite(fd, "+new", 4, 6, path));
    assert_int_equal(io_fdatasync(fd, path), IG_EIO);
    AUTO(buf) b;
    assert_ok(file_read(path, 1000, &b));
    assert_int_equal(b.n, 10);
    assert_memory_equal(b.data, "synced\0\0\0\0", 10);
    io_fault_arm((io_fault){.n = 3, .err = EIO, .lose = true});
    assert_ok(io_pwrite(fd, "+new", 4, 6, path));
    assert_ok(io_fdatasync(fd, path));
    assert_int_equal(io_fdatasync(fd, path), IG_EIO);
    assert_content("synced+new");
}

TEST(a_fault_can_be_kept_to_one_folder)
{
    io_fault_arm((io_fault){.n = 2, .err = EIO, .sticky = true, .below = path});
    assert_ok(io_write(fd, "a", 1, "the file behind the number counts"));
    assert_ok(io_fsync_dir(dir));
    assert_int_equal(io_fault_hits(), 0);
    assert_int_equal(io_fdatasync(fd, ""), IG_EIO);
    assert_int_equal(io_unlink(path), IG_EIO);
    assert_ok(io_fsync_dir(dir));
    assert_int_equal(io_fault_hits(), 2);
}

TEST(calls_are_counted)
{
    int64_t before = io_n_calls();
    assert_ok(io_write(fd, "x", 1, path));
    assert_ok(io_fdatasync(fd, path));
    io_close(-1);
    assert_int_equal(io_n_calls(), before + 2);
}

static ig_status every_call(int which)
{
    size_t n;
    char c;
    int got = -1;
    bool existed;
    int64_t end;
    struct stat st;
    ig_status s;
    switch (which) {
    case 0: s = io_open(path, O_RDONLY, 0, &got); return io_close(got), s;
    case 1: return io_fstat(fd, &st, path);
    case 2: return io_read(fd, &c, 1, &n, path);
    case 3: return io_pread(fd, &c, 1, 0, &n, path);
    case 4: return io_write(fd, "x", 1, path);
    case 5: return io_pwrite(fd, "x", 1, 0, path);
    case 6: return io_fdatasync(fd, path);
    case 7: return io_fsync_dir(dir);
    case 8: return io_ftruncate(fd, 1, path);
    case 9: return io_fallocate(fd, 1, path);
    case 10: return io_rename(path, path);
    case 11: return io_mkdir(dir, 0700, &existed);
    case 12: return io_data_end(fd, 1, &end, path);
    default: return io_unlink(path);
    }
}

TEST(every_call_counts_once_and_can_be_failed)
{
    for (int which = 0; which <= 13; which++) {
        int64_t before = io_n_calls();
        io_fault_arm((io_fault){.n = 1, .err = EIO});
        assert_int_equal(every_call(which), IG_EIO);
        assert_ok(every_call(which));
        assert_int_equal(io_n_calls(), before + 2);
    }
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, open_file, close_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILE(writes_go_to_their_offset_and_reads_stop_at_the_end),
        WITH_FILE(behind_the_end_of_data_there_is_nothing_but_zeros),
        WITH_FILE(names_change_and_go),
        WITH_FILE(descriptors_are_not_inherited),
        WITH_FILE(the_nth_call_fails_with_the_given_error),
        WITH_FILE(a_short_write_stores_half),
        WITH_FILE(a_sticky_fault_goes_on_until_disarmed),
        WITH_FILE(a_late_fault_strikes_after_the_call),
        WITH_FILE(what_was_not_synced_can_be_lost),
        WITH_FILE(a_fault_can_be_kept_to_one_folder),
        WITH_FILE(calls_are_counted),
        WITH_FILE(every_call_counts_once_and_can_be_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
