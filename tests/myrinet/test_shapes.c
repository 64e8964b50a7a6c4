/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_shapes.c - what the survey says in words, as rows: each has an experiment and says by what it is judged, its
 * truth follows the machine, and the two ways to look for messages cost what they should. */
#include "sim/myrinet/experiments/rows.h"
#include "tests/myrinet/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void every_shape_is_judged_and_says_by_what(void **state)
{
    (void)state;
    static struct myri_row rows[MYRI_ROWS];
    int n = myri_rows_builtin(rows, MYRI_ROWS), survey = 0;
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        struct myri_answer a;
        if (!myri_row_is_shape(&rows[i]))
            continue;
        assert_int_equal(myri_row_answer_plain(&rows[i], NULL, NULL, &a), 0); /* by tuned ones: test_tuned.c */
        if (!a.answered)
            fail_msg("row %s has no experiment", rows[i].field[MYRI_ROW_ID]);
        assert_int_equal(a.inside, a.truth);
        if (strcmp(rows[i].field[MYRI_ROW_CLASS], "second") != 0)
            continue;
        survey++;
        if (strlen(rows[i].field[MYRI_ROW_NOTE]) < 6)
            fail_msg("row %s does not say by what it is judged", rows[i].field[MYRI_ROW_ID]);
    }
    assert_true(survey >= 18);
    int truth;
    struct myri_machine m;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    assert_int_equal(myri_shape_judge("24", &m, 0, 1, &truth), 0);
}

static int judged(const char *row, const char *set)
{
    int truth = 0;
    struct myri_machine m;
    assert_int_equal(myri_machine_builtin("H-PP", &m), 0);
    if (set)
        assert_int_equal(myri_machine_set(&m, set), 0);
    assert_int_equal(myri_shape_judge(row, &m, 0, 0, &truth), 1);
    return truth;
}

/* What makes each statement true or false is what the survey says that it rests on. */
static void a_shape_is_another_on_a_machine_where_its_reason_is_gone(void **state)
{
    (void)state;
    static const struct {
        const char *row, *set;
        int truth, then;
    } of[] = {
        {"71a", "dma_setup=20", 1, 1},  /* also where a transfer costs little, the card has less to do for a copy */
        {"72c", "ni_time=3", 1, 0},     /* slow cards forward slowly, though hosts number what they forward, too */
        {"72d", "interrupt=100", 0, 1}, /* no fragment on its way hides so long an interrupt */
        {"73", "load=0.001", 1, 0},     /* who looks across the bus for no time slows nobody */
        {"79b", "copy_rate=5", 0, 1},   /* a slow copy is one also of 64 bytes */
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (judged(of[i].row, NULL) != of[i].truth || judged(of[i].row, of[i].set) != of[i].then)
            fail_msg("row %s, or with %s", of[i].row, of[i].set);
}

/* Rows share points: an experiment that is equal in all is what it was, and is not run; any other one is run. */
static void an_experiment_that_is_known_is_not_run_again(void **state)
{
    (void)state;
    struct myri_outcome first, again, run;
    struct myri_experiment x = experiment("bip", "H-PP", MYRI_ONE_WAY, 8);
    x.count = 30;
    assert_int_equal(myri_experiment_once(&x, &first), 0);
    unsigned long was = myri_hw_progress;
    assert_int_equal(myri_experiment_once(&x, &again), 0);
    assert_int_equal(myri_hw_progress, was);
    assert_int_equal(myri_experiment_run(&x, &run), 0);
    assert_true(myri_hw_progress != was);
    assert_memory_equal(&first, &again, sizeof first);
    assert_true(first.value == run.value && first.events == run.events);
    x.seed++;
    assert_int_equal(myri_experiment_once(&x, &again), 0);
    assert_true(again.value != first.value);
    assert_int_equal(myri_machine_set(&x.machine, "dma_setup=9"), 0);
    assert_int_equal(myri_experiment_once(&x, &run), 0);
    assert_true(run.value > again.value + 5);
}

/* A transfer moves a burst between two loads of a host that looks all the time. */
static void looks_across_the_bus_go_between_bursts(void **state)
{
    (void)state;
    struct myri_outcome out;
    struct myri_experiment x = experiment("probe", "H-PP", MYRI_LOCAL_RATE, 65536);
    const double *v = x.machine.v;
    double burst = v[MYRI_M_bus_burst], us = burst / v[MYRI_M_dma_rate];
    x.across_bus = 1;
    x.count = 20;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    double slowed = burst / (us + v[MYRI_M_load]);
    assert_true(fabs(out.value / slowed - 1) < 0.01);
    assert_true(fabs((double)out.count.loads / (20 * 65536 / burst) - 1) < 0.02);
    x.across_bus = 0;
    assert_int_equal(myri_experiment_run(&x, &out), 0);
    assert_int_equal(out.count.loads, 0);
    assert_true(out.value > 1.9 * slowed);
}

/* A host that waits for a place looks, pauses, and looks again: with a tenth of the pause many times as often. */
static void who_waits_pauses_as_long_as_the_machine_says(void **state)
{
    (void)state;
    struct myri_outcome often, seldom;
    struct myri_experiment x = experiment("pm", "H-P", MYRI_STREAM_RATE, 8192);
    assert_int_equal(myri_machine_set(&x.machine, "look_pause=10"), 0);
    assert_int_equal(myri_experiment_run(&x, &seldom), 0);
    assert_int_equal(myri_machine_set(&x.machine, "look_pause=1"), 0);
    assert_int_equal(myri_experiment_run(&x, &often), 0);
    assert_true(often.count.loads > 4 * seldom.count.loads);
    assert_true(often.value < 0.9 * seldom.value); /* each look stands in the way of a transfer */
}

/* Every system: a look across the bus finds the same messages, and a round trip of one word costs more. */
static void every_system_can_look_across_the_bus(void **state)
{
    (void)state;
    for (int i = 0; myri_systems[i]; i++) {
        struct myri_outcome cached, across;
        if (!myri_systems[i]->receive)
            continue;
        struct myri_experiment x = experiment(myri_systems[i]->name, "H-PP", MYRI_ONE_WAY, 4);
        x.count = 50;
        assert_int_equal(myri_experiment_run(&x, &cached), 0);
        x.across_bus = 1;
        if (myri_experiment_run(&x, &across) < 0)
            fail_msg("%s: %s", myri_systems[i]->name, rnl_last_error()->text);
        assert_int_equal(across.received, 100);
        assert_int_equal(across.wrong, 0);
        /* AM-II's library looks across anyhow, and what knows no bus at its own card. */
        int polls_cached = !myri_systems[i]->looks_across;
        if (polls_cached ? across.value <= cached.value : across.value != cached.value)
            fail_msg("%s: %f us across the bus, %f us", myri_systems[i]->name, across.value, cached.value);
        assert_int_equal(polls_cached, across.count.loads > cached.count.loads);
    }
}

/* Notifications that are on interrupt a host once a message also while its program polls, but for LFC's watchdog. */
static void notifications_interrupt_programs_that_poll(void **state)
{
    (void)state;
    static const struct {
        const char *system;
        double each;
    } of[] = {{"vmmc", 1}, {"vmmc2", 1}, {"unet", 1}, {"lfc", 0}, {"lfc-tuned", 0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct myri_outcome out;
        struct myri_experiment x = experiment(of[i].system, "H-PP", MYRI_ANSWER, 4);
        x.slow_us = 20;
        x.count = 40;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.count.interrupts, 0);
        x.notify = 1;
        assert_int_equal(myri_experiment_run(&x, &out), 0);
        assert_int_equal(out.received, 80);
        if ((double)out.count.interrupts != 40 * of[i].each)
            fail_msg("%s: %u interrupts", of[i].system, (unsigned)out.count.interrupts);
    }
    struct myri_outcome out;
    struct myri_experiment x = experiment("fm1", "H-PP", MYRI_ONE_WAY, 4);
    x.notify = 1;
    assert_int_equal(myri_experiment_run(&x, &out), RNL_ERR_ARG);
    assert_non_null(strstr(rnl_last_error()->text, "do not interrupt"));
}

/* Who multicasts receives its own, where a system hands them over, so it can go on for ever. */
static void a_thousand_multicasts_reach_seven_nodes(void **state)
{
    (void)state;
    for (int i = 0; myri_systems[i]; i++) {
        struct myri_outcome out;
        if (!myri_names_has("lfc lfc-tuned fmmc pm", myri_systems[i]->name))
            continue;
        struct myri_experiment x = experiment(myri_systems[i]->name, "H-PP", MYRI_ALL_RATE, 4);
        x.receivers = 7;
        x.count = 1000;
        if (myri_experiment_run(&x, &out) < 0)
            fail_msg("%s: %s", myri_systems[i]->name, rnl_last_error()->text);
        assert_int_equal(out.received, 7000);
        assert_int_equal(out.wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_is_judged_and_says_by_what),
        cmocka_unit_test(a_shape_is_another_on_a_machine_where_its_reason_is_gone),
        cmocka_unit_test(an_experiment_that_is_known_is_not_run_again),
        cmocka_unit_test(looks_across_the_bus_go_between_bursts),
        cmocka_unit_test(who_waits_pauses_as_long_as_the_machine_says),
        cmocka_unit_test(every_system_can_look_across_the_bus),
        cmocka_unit_test(notifications_interrupt_programs_that_poll),
        cmocka_unit_test(a_thousand_multicasts_reach_seven_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
