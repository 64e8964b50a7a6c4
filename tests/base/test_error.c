/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_error.c - the per-thread record of the last failure. */
#include "base/error.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>

static void fail_records_and_returns_the_status(void **state)
{
    (void)state;
    errno = EDOM;
    assert_int_equal(rnl_fail(RNL_ERR_RANK, "rank %d of %d", 9, 4), RNL_ERR_RANK);
    assert_int_equal(errno, EDOM);
    assert_int_equal(rnl_last_error()->status, RNL_ERR_RANK);
    assert_int_equal(rnl_last_error()->sys_errno, 0);
    assert_string_equal(rnl_last_error()->text, "rank 9 of 4");
}

static void fail_errno_appends_the_systems_words(void **state)
{
    (void)state;
    errno = EDOM;
    assert_int_equal(rnl_fail_errno(RNL_ERR_SYSTEM, ENOENT, "cannot open %s", "x"), RNL_ERR_SYSTEM);
    assert_int_equal(errno, EDOM);
    assert_int_equal(rnl_last_error()->sys_errno, ENOENT);
    assert_string_equal(rnl_last_error()->text, "cannot open x: No such file or directory");
    rnl_fail_errno(RNL_ERR_SYSTEM, 99999, "odd");
    assert_int_equal(strncmp(rnl_last_error()->text, "odd: ", 5), 0);
    rnl_fail(RNL_ERR_ARG, "later");
    assert_int_equal(rnl_last_error()->sys_errno, 0);
}

/* A wide character that the C locale has no bytes for: vsnprintf fails and sets errno. */
static void a_sentence_that_cannot_be_built_is_empty(void **state)
{
    (void)state;
    errno = EDOM;
    assert_int_equal(rnl_fail(RNL_ERR_ARG, "x %ls", L"\x20ac"), RNL_ERR_ARG);
    assert_int_equal(errno, EDOM);
    assert_int_equal(rnl_last_error()->status, RNL_ERR_ARG);
    assert_string_equal(rnl_last_error()->text, "");
}

static void a_long_sentence_is_cut_and_ends(void **state)
{
    char big[1000];
    (void)state;
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    rnl_fail_errno(RNL_ERR_SYSTEM, ENOENT, "%s", big);
    assert_int_equal(strlen(rnl_last_error()->text), sizeof rnl_last_error()->text - 1);
    big[250] = '\0';
    rnl_fail_errno(RNL_ERR_SYSTEM, ENOENT, "%s", big);
    assert_int_equal(strlen(rnl_last_error()->text), sizeof rnl_last_error()->text - 1);
    assert_string_equal(rnl_last_error()->text + 249, "a: No ");
}

/* Whose sentence is written late: neither an old one shows, nor does it hide what failed after it. */
static void a_wait_in_vain_has_its_own_sentence(void **state)
{
    (void)state;
    rnl_fail_errno(RNL_ERR_SYSTEM, ENOENT, "older");
    errno = EDOM;
    assert_int_equal(rnl_timed_out(), RNL_TIMED_OUT);
    assert_int_equal(rnl_last_error()->status, RNL_TIMED_OUT);
    assert_int_equal(rnl_last_error()->sys_errno, 0);
    assert_int_equal(errno, EDOM);
    assert_non_null(strstr(rnl_last_error()->text, "within the time given"));
    rnl_timed_out();
    rnl_fail(RNL_ERR_ARG, "newer");
    assert_int_equal(rnl_last_error()->status, RNL_ERR_ARG);
    assert_string_equal(rnl_last_error()->text, "newer");
}

static void the_old_sentence_may_be_part_of_the_new(void **state)
{
    (void)state;
    rnl_fail(RNL_ERR_ARG, "inner");
    rnl_fail(RNL_ERR_ARG, "outer: %s", rnl_last_error()->text);
    assert_string_equal(rnl_last_error()->text, "outer: inner");
}

static void *fail_elsewhere(void *arg)
{
    rnl_fail(RNL_ERR_CLOSED, "of the other thread");
    *(int *)arg = rnl_last_error()->status;
    return NULL;
}

static void each_thread_has_its_own_record(void **state)
{
    pthread_t t;
    int seen = 0;
    (void)state;
    rnl_fail(RNL_ERR_ARG, "mine");
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, &seen), 0);
    pthread_join(t, NULL);
    assert_int_equal(seen, RNL_ERR_CLOSED);
    assert_string_equal(rnl_last_error()->text, "mine");
}

static void every_status_has_its_name(void **state)
{
    static const struct {
        int status;
        const char *name;
    } all[] = {
#define S(s) {s, #s}
        S(RNL_OK),           S(RNL_NO_ROOM),         S(RNL_BUSY),          S(RNL_TIMED_OUT),
        S(RNL_ERR_ARG),      S(RNL_ERR_RANK),        S(RNL_ERR_HANDLER),   S(RNL_ERR_TOO_LONG),
        S(RNL_ERR_CONTEXT),  S(RNL_ERR_PAST_END),    S(RNL_ERR_NO_MEMORY), S(RNL_ERR_SYSTEM),
        S(RNL_ERR_REJECTED), S(RNL_ERR_UNSUPPORTED), S(RNL_ERR_PEER_DEAD), S(RNL_ERR_PEER_BROKEN),
        S(RNL_ERR_CLOSED),   S(RNL_ERR_FORKED),      S(RNL_ERR_JOB),
#undef S
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_string_equal(rnl_status_name(all[i].status), all[i].name);
    assert_string_equal(rnl_status_name(17), "RNL_OK"); /* a count */
    assert_string_equal(rnl_status_name(-12345), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_records_and_returns_the_status),
        cmocka_unit_test(fail_errno_appends_the_systems_words),
        cmocka_unit_test(a_sentence_that_cannot_be_built_is_empty),
        cmocka_unit_test(a_long_sentence_is_cut_and_ends),
        cmocka_unit_test(a_wait_in_vain_has_its_own_sentence),
        cmocka_unit_test(the_old_sentence_may_be_part_of_the_new),
        cmocka_unit_test(each_thread_has_its_own_record),
        cmocka_unit_test(every_status_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
