/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FM 1.1 as a job of one. */
#include "fm/child.h"
#include "fm/told.h"
#include "runnel/fm1.h"
#include "runnel/runnel.h"
#include "support/must.h"
#include "support/random.h"
#include "support/unit.h"

static struct {
    int count;
    unsigned size;
    unsigned char buf[FM1_MAX];
} in;

static void note(void *buffer, unsigned size)
{
    in.count++;
    in.size = size;
    memcpy(in.buf, buffer, size);
    memset(buffer, 0xee, size); /* it is the handler's, until it returns */
}

static int set_up(void **state)
{
    (void)state;
    unsetenv("RUNNEL_FD");
    memset(&told, 0, sizeof told);
    in.count = 0;
    FM_set_parameter(FM_ERROR_HANDLER, note_error);
    FM_initialize();
    FM_register_handler(1, note);
    return told.count;
}

static int tear_down(void **state)
{
    (void)state;
    FM_finalize();
    return told.count;
}

static int extract_all(void)
{
    int sum = 0;
    for (int idle = 0; idle < 3;) {
        int n = FM_extract();
        sum += n;
        idle = n ? 0 : idle + 1;
    }
    return sum;
}

static void any_length_up_to_the_limit_arrives(void **state)
{
    static const size_t lengths[] = {0, 1, 16, 48, 49, 56, 57, 1000, 65536, 262144, 262145, 524288, 524289, FM1_MAX};
    (void)state;
    unsigned char *buf = malloc(FM1_MAX);
    assert_non_null(buf);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        in.count = 0;
        memcpy(buf, test_pattern(i, 0), lengths[i]);
        FM_send(0, 1, buf, lengths[i]);
        memset(buf, 0, lengths[i]); /* the caller's again */
        /* a long one may have run while we waited for room */
        extract_all();
        assert_int_equal(in.count, 1);
        assert_int_equal(in.size, lengths[i]);
        assert_memory_equal(in.buf, test_pattern(i, 0), lengths[i]);
    }
    assert_int_equal(told.count, 0);
    FM_send(0, 1, buf, (unsigned long)FM1_MAX + 1);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.status, RNL_ERR_TOO_LONG);
    assert_non_null(strstr(told.sentence, "1048576"));
    assert_int_equal(extract_all(), 0);
    told.count = 0;
    free(buf);
}

static void extract_returns_how_many_handlers_ran(void **state)
{
    (void)state;
    for (int n = 1; n < 40; n += 6) {
        for (int i = 0; i < n; i++)
            FM_send_4(0, 1, i, i, i, i);
        assert_int_equal(FM_extract(), n);
    }
    for (int i = 0; i < 3; i++)
        FM_send(0, 1, test_pattern(1, 0), 3000);
    assert_int_equal(FM_extract(), 3);
    assert_int_equal(FM_extract(), 0);
}

/* ---- handlers that send ---- */

static struct {
    int left, fan, count;
    unsigned long size;
    unsigned char *buf;
} spread;

/* Each message makes `fan` more, until `left` are sent; each begins with its number. */
static void spreads(void *buffer, unsigned size)
{
    TEST_MUST(memcmp((unsigned char *)buffer + 4, test_pattern(8, 4), size - 4) == 0);
    int number;
    memcpy(&number, buffer, 4);
    TEST_MUST(number == spread.count); /* in order */
    spread.count++;
    for (int i = 0; i < spread.fan && spread.left > 0; i++, spread.left--) {
        memcpy(spread.buf, test_pattern(8, 0), spread.size);
        memcpy(spread.buf, &(int){spread.fan * spread.count - spread.fan + 1 + i}, 4);
        FM_send(0, 2, spread.buf, spread.size);
        memset(spread.buf, 0, spread.size);
    }
}

static void handlers_send_more_than_fits(void **state)
{
    static const struct {
        unsigned long size;
        int fan, left;
    } runs[] = {{16, 60, 3000}, {48, 200, 1000}, {400, 100, 500}, {60000, 30, 60}, {300000, 4, 20}, {FM1_MAX, 3, 9}};
    (void)state;
    FM_register_handler(2, spreads);
    spread.buf = malloc(FM1_MAX);
    assert_non_null(spread.buf);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        spread.count = 0;
        spread.size = runs[i].size;
        spread.fan = runs[i].fan;
        spread.left = runs[i].left;
        memcpy(spread.buf, test_pattern(8, 0), spread.size);
        memcpy(spread.buf, &(int){0}, 4);
        FM_send(0, 2, spread.buf, spread.size);
        for (int k = 0; k < 2000 && spread.count < runs[i].left + 1; k++)
            FM_extract();
        if (told.count)
            fail_msg("%lu bytes: %s", runs[i].size, told.sentence);
        assert_int_equal(spread.count, runs[i].left + 1);
    }
    free(spread.buf);
}

static void the_queue_of_handlers_is_budgeted(void **state)
{
    (void)state;
    FM_register_handler(2, spreads);
    spread.buf = malloc(FM1_MAX);
    assert_non_null(spread.buf);
    spread.count = 0;
    spread.size = FM1_MAX;
    spread.fan = spread.left = 100; /* 100 MiB */
    memcpy(spread.buf, test_pattern(8, 0), spread.size);
    memcpy(spread.buf, &(int){0}, 4);
    FM_send(0, 2, spread.buf, spread.size);
    while (spread.count < 1)
        FM_extract();
    assert_true(told.count > 50 && told.count < 100);
    assert_int_equal(told.status, RNL_NO_ROOM);
    assert_non_null(strstr(told.sentence, "queued"));
    told.count = 0;
    extract_all();
    assert_true(spread.count > 1);
    assert_int_equal(told.count, 0);
    free(spread.buf);
}

static void polling_on_send_is_an_option(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        FM_send_4(0, 1, 1, 2, 3, 4);
    assert_int_equal(in.count, 0);
    FM_set_parameter(FM1_POLL_ON_SEND, 1);
    FM_send_4(0, 1, 1, 2, 3, 4);
    assert_int_equal(in.count, 11);
    FM_set_parameter(FM1_POLL_ON_SEND, 0);
    FM_send_4(0, 1, 1, 2, 3, 4);
    assert_int_equal(in.count, 11);
    assert_int_equal(FM_extract(), 1);
}

static void a_full_queue_runs_handlers(void **state)
{
    (void)state;
    for (int i = 0; i < 5000; i++)
        FM_send(0, 1, test_pattern(0, 0), 40);
    assert_true(in.count > 3000); /* nobody extracted but the sends that had to wait */
    extract_all();
    assert_int_equal(in.count, 5000);
}

static void inside(void *buffer, unsigned size)
{
    (void)buffer, (void)size;
    TEST_MUST(FM_extract() == 0);
    TEST_MUST(told.count == 1 && told.status == RNL_ERR_CONTEXT);
    told.count = 0;
    in.count++;
}

static void errors_are_told(void **state)
{
    (void)state;
    FM_send_4(3, 1, 0, 0, 0, 0);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.status, RNL_ERR_RANK);
    assert_int_equal(told.peer, 3);
    FM_send(0, 1ul << 40, "x", 1);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.status, RNL_ERR_HANDLER);
    FM_set_parameter(777, 1);
    assert_int_equal(told.count, 3);
    assert_int_equal(told.status, RNL_ERR_ARG);
    told.count = 0;
    FM_register_handler(3, inside);
    FM_send(0, 3, "x", 1);
    assert_int_equal(FM_extract(), 1);
    assert_int_equal(in.count, 1);
}

static void too_early(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_send_4(0, 1, 1, 2, 3, 4);
}

static void too_long(void)
{
    FM_set_parameter(FM_ERROR_HANDLER, (FM_error *)NULL);
    FM_initialize();
    FM_send(0, 1, NULL, (unsigned long)FM1_MAX + 1);
}

static void the_default_explains_and_ends_with_status_70(void **state)
{
    (void)state;
    struct child_end e = in_child(too_early);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "FM_initialize"));
    e = in_child(too_long);
    assert_int_equal(e.status, 70);
    assert_non_null(strstr(e.said, "RNL_ERR_TOO_LONG"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_length_up_to_the_limit_arrives),
        TEST(extract_returns_how_many_handlers_ran),
        TEST(handlers_send_more_than_fits),
        TEST(the_queue_of_handlers_is_budgeted),
        TEST(polling_on_send_is_an_option),
        TEST(a_full_queue_runs_handlers),
        TEST(errors_are_told),
        cmocka_unit_test(the_default_explains_and_ends_with_status_70),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
