/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_copy_measure.c - the table of copies: what is chosen from times that a test makes up, and that a measurement on
 * this machine, however disturbed, ends with words that can be used. No time of this machine is judged. */
#include "launcher/copy_measure.h"
#include "support/unit.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS], double rep, double others)
{
    for (unsigned i = 0; i < RNL_COPIES_SIZES; i++)
        for (unsigned k = 0; k < RNL_COPY_KINDS; k++)
            ns[i][k] = k == RNL_COPY_REP ? rep : others;
}

static void what_is_not_clearly_better_changes_nothing(void **state)
{
    double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS];
    (void)state;
    fill(ns, 100, 91);
    assert_true(rnl_copies_choose(ns, 0) == RNL_COPIES_DEFAULT);
    assert_true(rnl_copies_choose(ns, 91) == RNL_COPIES_DEFAULT);
    fill(ns, 100, 0); /* not measured */
    assert_true(rnl_copies_choose(ns, 0) == RNL_COPIES_DEFAULT);
    fill(ns, 0, 50); /* nothing to compare with */
    assert_true(rnl_copies_choose(ns, 50) == RNL_COPIES_DEFAULT);
}

static void each_size_gets_its_best(void **state)
{
    double ns[RNL_COPIES_SIZES][RNL_COPY_KINDS];
    (void)state;
    fill(ns, 100, 200);
    ns[0][RNL_COPY_PAST32] = 89;
    ns[2][RNL_COPY_PAST32] = 50;
    ns[2][RNL_COPY_PAST64] = 40;
    uint64_t word = rnl_copies_choose(ns, 35);
    assert_int_equal(rnl_copies_kind(word, 2047), RNL_COPY_MEMCPY);
    assert_int_equal(rnl_copies_kind(word, 2048), RNL_COPY_PAST32);
    assert_int_equal(rnl_copies_kind(word, 8191), RNL_COPY_PAST32);
    assert_int_equal(rnl_copies_kind(word, 8192), RNL_COPY_REP);
    assert_int_equal(rnl_copies_kind(word, 32767), RNL_COPY_REP);
    assert_int_equal(rnl_copies_kind(word, 32768), RNL_COPY_PAST64);
    assert_int_equal(rnl_copies_kind(word, 1 << 20), RNL_COPY_PAST64);
    assert_true(rnl_copies_whole_area(word));
    assert_false(rnl_copies_whole_area(rnl_copies_choose(ns, 37)));
}

static void a_measurement_ends_with_words_that_can_be_used(void **state)
{
    cpu_set_t before, after;
    int cpu[2] = {-1, -1}, n = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &before))
            cpu[n++] = i;
    if (n < 2)
        skip();
    for (int i = 0; i < 5; i++) {
        struct rnl_copies_found found = {.distance = 99};
        if (!rnl_copies_measure(cpu, 0, &found)) {
            assert_int_equal(found.distance, 99);
            continue;
        }
        assert_in_range(found.distance, 0, RNL_COPIES_DISTANCES - 1);
        assert_true(found.line_ns > 0 && rnl_copies_valid(found.word));
        assert_int_equal(rnl_copies_measure(cpu, 3, &found), 0); /* known */
    }
    assert_int_equal(rnl_copies_measure((int[]){-1, cpu[1]}, 0, &(struct rnl_copies_found){0}), 0);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

/* Stops the first child of `parent` but itself for 3 ms again and again, as a host does that has others to run. */
static void disturb(pid_t parent)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    while (getppid() == parent) {
        long child = 0, self = getpid();
        FILE *f = fopen(path, "r");
        while (f && fscanf(f, "%ld", &child) == 1 && child == self)
            child = 0;
        if (f)
            (void)fclose(f);
        if (child > 0 && kill((pid_t)child, SIGSTOP) == 0) {
            (void)usleep(3000);
            (void)kill((pid_t)child, SIGCONT);
        }
        (void)usleep(300);
    }
}

static void who_is_interrupted_comes_to_an_end_all_the_same(void **state)
{
    cpu_set_t set;
    const pid_t self = getpid();
    struct rnl_copies_found found;
    int ends = 0;
    (void)state;
    if (access("/proc/thread-self/children", R_OK) < 0 || sched_getaffinity(0, sizeof set, &set) < 0 ||
        !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
        skip();
    const pid_t other = fork();
    if (other == 0) {
        disturb(self);
        _exit(0);
    }
    for (int i = 0; i < 20; i++)
        ends += rnl_copies_measure((int[]){0, 1}, 0, &found);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_true(ends > 2); /* the first may be over before it is disturbed */
}

/* One processor, or no place for a table: defaults, and nothing is measured. */
static void without_a_place_or_a_pair_there_are_defaults(void **state)
{
    struct rnl_copies c, usual;
    (void)state;
    rnl_copies_default(&usual);
    assert_int_equal(setenv("RNL_COPIES", "", 1), 0);
    assert_int_equal(rnl_copies_complete(&c), 0);
    assert_memory_equal(&c, &usual, sizeof c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_clearly_better_changes_nothing),
        cmocka_unit_test(each_size_gets_its_best),
        cmocka_unit_test(a_measurement_ends_with_words_that_can_be_used),
        cmocka_unit_test(who_is_interrupted_comes_to_an_end_all_the_same),
        cmocka_unit_test(without_a_place_or_a_pair_there_are_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
