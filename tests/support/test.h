/* test.h: what a test file includes: cmocka with what it wants before it, and a case whose name is
 * a sentence. */
#ifndef SUPPORT_TEST_H
#define SUPPORT_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "ingot/status.h"

#define TEST(name) static void name(__attribute__((unused)) void **state)
#define CASE(name) cmocka_unit_test(name)

/* The call fails with this code and a message that contains `part`. */
#define assert_fails(call, code, part)                           \
    do {                                                         \
        ig_error_clear();                                        \
        assert_int_equal(call, code);                            \
        assert_int_equal(ig_error_code(), code);                 \
        if (!strstr(ig_error_message(), part)) {                 \
            print_error("message is: %s\n", ig_error_message()); \
            fail_msg("no \"%s\" in it", part);                   \
        }                                                        \
    } while (0)
#define assert_ok(call)                                                     \
    do {                                                                    \
        if ((call) != IG_OK) fail_msg("%s: %s", #call, ig_error_message()); \
    } while (0)
#endif
