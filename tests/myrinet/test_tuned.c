/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_tuned.c - the second firmwares, which were written for speed alone: each is its system's protocol on the same
 * memory, packet for packet and word for word, and rows are judged by the first. */
#include "sim/myrinet/experiments/rows.h"
#include "tests/myrinet/machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TUNED_LEAST = 24 };

/* The system that a second firmware is of; NULL: it is none. */
static const struct myri_system *plain_of(const struct myri_system *s)
{
    const char *at = strstr(s->name, "-tuned");
    char name[64];
    if (!at)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(at - s->name), s->name, at + 6);
    const struct myri_system *plain = myri_system_find(name);
    if (!plain)
        fail_msg("%s is the second firmware of nothing", s->name);
    return plain;
}

static void a_second_firmware_is_all_that_differs(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; myri_systems[i]; i++) {
        const struct myri_system *plain = plain_of(myri_systems[i]);
        if (!plain)
            continue;
        struct myri_system s = *myri_systems[i];
        assert_string_not_equal(s.object, plain->object);
        s.name = plain->name;
        s.title = plain->title;
        s.object = plain->object;
        if (memcmp(&s, plain, sizeof s) != 0)
            fail_msg("%s has another host library than %s, or promises something else", myri_systems[i]->name,
                     plain->name);
        n++;
    }
    assert_true(n >= TUNED_LEAST);
}

static void run_one(const struct myri_system *s, enum myri_measure m, uint32_t bytes, struct myri_outcome *out)
{
    struct myri_experiment x = experiment(s->name, "H-PP", m, bytes);
    x.count = bytes > 4096 ? 10 : 40;
    if (myri_experiment_run(&x, out) < 0)
        fail_msg("%s: %s", s->name, rnl_last_error()->text);
    assert_int_equal(out->received, out->sent);
    assert_int_equal(out->wrong, 0);
}

static void it_sends_the_same_packets_and_moves_the_same_bytes(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {4, 64, 100, 128, 132, 1024, 4100, 16384};
    for (int i = 0; myri_systems[i]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            const struct myri_system *s = myri_systems[i], *plain = plain_of(s);
            struct myri_outcome a, b;
            if (!plain || sizes[k] > s->most)
                continue;
            run_one(plain, MYRI_ROUND_TRIP, sizes[k], &a);
            run_one(s, MYRI_ROUND_TRIP, sizes[k], &b);
            if (a.count.packets_sent != b.count.packets_sent || a.count.bytes_sent != b.count.bytes_sent ||
                a.count.dma_to_host != b.count.dma_to_host || a.count.dma_from_host != b.count.dma_from_host ||
                a.count.stores != b.count.stores || a.count.interrupts != b.count.interrupts)
                fail_msg("%s is another protocol than %s with %u bytes", s->name, plain->name, sizes[k]);
        }
}

static void it_is_no_slower_with_what_it_was_written_for(void **state)
{
    (void)state;
    for (int i = 0; myri_systems[i]; i++) {
        const struct myri_system *s = myri_systems[i], *plain = plain_of(s);
        struct myri_outcome a, b;
        if (!plain)
            continue;
        run_one(plain, MYRI_ONE_WAY, 4, &a);
        run_one(s, MYRI_ONE_WAY, 4, &b);
        if (b.value > a.value)
            fail_msg("%s takes %f us, %s %f us", s->name, b.value, plain->name, a.value);
    }
}

/* The table shows both, and a row of any class is inside or not by the first. */
static void rows_count_by_the_first_firmware(void **state)
{
    (void)state;
    static struct myri_row rows[MYRI_ROWS];
    int n = myri_rows_builtin(rows, MYRI_ROWS), both = 0, apart = 0;
    for (int i = 0; i < n; i++) {
        char name[MYRI_ROW_TEXT + 8];
        struct myri_answer a, plain = {0};
        snprintf(name, sizeof name, "%s-tuned", rows[i].field[MYRI_ROW_SYSTEM]);
        int of_all = strcmp(rows[i].field[MYRI_ROW_SYSTEM], "all") == 0;
        if (!myri_system_find(name) && !(of_all && strcmp(rows[i].field[MYRI_ROW_CLASS], "second") == 0))
            continue;
        assert_int_equal(myri_row_answer(&rows[i], NULL, NULL, &a), 0);
        assert_int_equal(myri_plan_answer(&rows[i], 0, NULL, NULL, &plain), 0);
        assert_int_equal(a.answered, plain.answered);
        if (!a.answered)
            continue;
        if (isnan(a.tuned))
            fail_msg("row %s shows nothing of %s", rows[i].field[MYRI_ROW_ID], name);
        assert_true(a.ours == plain.ours && a.truth == plain.truth);
        both++;
        apart += a.tuned != (myri_row_is_shape(&rows[i]) ? a.truth : a.ours);
    }
    assert_true(both >= 33 && apart >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_firmware_is_all_that_differs),
        cmocka_unit_test(it_sends_the_same_packets_and_moves_the_same_bytes),
        cmocka_unit_test(it_is_no_slower_with_what_it_was_written_for),
        cmocka_unit_test(rows_count_by_the_first_firmware),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
