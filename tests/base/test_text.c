/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_text.c - what a terminal might obey is no text; all else that people write is. */
#include "base/text.h"
#include "support/unit.h"

#define TEXT(s) rnl_text(s, sizeof(s) - 1)

static void what_people_write_is_text(void **state)
{
    (void)state;
    assert_int_equal(TEXT(""), 0);
    assert_int_equal(TEXT("at 5ms\tcrash 3 \r\n"), 17);
    assert_int_equal(TEXT("\xc3\xa9 \xc2\xa0 \xe2\x82\xac \xf0\x9f\x90\x9f"), 14);
}

static void what_a_terminal_might_obey_is_none(void **state)
{
    (void)state;
    assert_int_equal(TEXT("ab\x1b[31m"), 2);
    assert_int_equal(TEXT("ab\0"), 2);
    assert_int_equal(TEXT("a\x7f"), 1);
    assert_int_equal(TEXT("a\x9b"), 1);
    assert_int_equal(TEXT("a\xc2\x9b"), 2);
}

static void what_is_no_utf8_is_none(void **state)
{
    (void)state;
    assert_int_equal(TEXT("\xff\xfe"), 0);
    assert_int_equal(TEXT("a\xc3"), 1);
    assert_int_equal(TEXT("a\xe2\x82"), 1);
    assert_int_equal(TEXT("a\xe2\x82z"), 3);
    assert_int_equal(rnl_text("a\xe2\x82\xac", 3), 1); /* not beyond the end */
    assert_int_equal(TEXT("a\xe0\x80\x9b"), 1);        /* ESC, for whom reads it carelessly */
    assert_int_equal(TEXT("a\xf0\x80\x80\x9b"), 1);
    assert_int_equal(TEXT("a\xed\xa0\x80"), 1);
    assert_int_equal(TEXT("a\xf4\x90\x80\x80"), 1);
    assert_int_equal(TEXT("\xe0\xa0\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf"), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_people_write_is_text),
        cmocka_unit_test(what_a_terminal_might_obey_is_none),
        cmocka_unit_test(what_is_no_utf8_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
