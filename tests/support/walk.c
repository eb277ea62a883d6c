/* walk.c: see walk.h. */
#include "support/walk.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "base/mem.h"

#define MAX_STEPS 100000

int64_t walk_memory(walk_op op, void *user)
{
    for (int64_t n = 1; n < MAX_STEPS; n++) {
        int64_t live = mem_n_live();
        ig_error_clear();
        mem_fault_arm(n, false);
        ig_status s = op(user);
        int64_t hits = mem_fault_hits();
        mem_fault_arm(0, false);
        assert_int_equal(mem_n_live(), live);
        if (hits == 0) {
            assert_int_equal(s, IG_OK);
            return n - 1;
        }
        if (s != IG_OK && s != IG_EFORMAT) assert_int_equal(s, IG_ENOMEM);
    }
    fail_msg("the operation never succeeds");
    return 0;
}

int64_t walk_io(walk_op op, void *user, int err, void (*check)(void *user))
{
    for (int64_t n = 1; n < MAX_STEPS; n++) {
        int64_t live = mem_n_live(), before = io_n_calls();
        ig_error_clear();
        io_fault_arm((io_fault){.n = n, .err = err});
        ig_status s = op(user);
        io_fault_arm((io_fault){0});
        assert_int_equal(mem_n_live(), live);
        if (io_n_calls() - before < n) {
            assert_int_equal(s, IG_OK);
            return n - 1;
        }
        if (s != IG_OK) assert_int_equal(s, IG_EIO);
        if (check) check(user);
    }
    fail_msg("the operation never succeeds");
    return 0;
}
