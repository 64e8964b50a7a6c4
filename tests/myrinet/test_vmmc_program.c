/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_vmmc_program.c - the example vmmc_ring, which runs on processes of today, on the papers' machine: the same
 * source. */
#include "tests/myrinet/machine.h"

#include "sim/myrinet/systems/vmmc/program.h"

#include <stdio.h>
#include <unistd.h>

int vmmc_ring_main(int argc, char **argv);

static int run(uint32_t nodes, int argc, char **argv, uint64_t *ticks)
{
    struct myri_machine m = machine("H-P");
    struct myri_hw *hw;
    const struct myri_data *d = myri_data_find("systems/vmmc/firmware.hex");
    assert_non_null(d);
    assert_int_equal(myri_hw_new(&m, nodes, 1, d->bytes, d->n, &hw), 0);
    int status = vmmc_program_run(hw, vmmc_ring_main, argc, argv);
    *ticks = myri_hw_now(hw);
    myri_hw_free(hw);
    return status;
}

static void a_list_goes_round(void **state)
{
    char *argv[] = {(char *)"vmmc_ring", (char *)"5", NULL};
    uint64_t four, again, eight;
    (void)state;
    assert_int_equal(run(4, 2, argv, &four), 0);
    assert_int_equal(run(4, 2, argv, &again), 0);
    assert_int_equal(four, again);
    assert_int_equal(run(8, 2, argv, &eight), 0);
    assert_true(eight > four); /* more messages, one after the other */
}

/* Its output goes to a file, and is looked at. */
static void it_says_what_it_says_elsewhere(void **state)
{
    char *argv[] = {(char *)"vmmc_ring", NULL}, text[200] = "";
    uint64_t ticks;
    (void)state;
    FILE *said = tmpfile();
    assert_non_null(said);
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    assert_true(dup2(fileno(said), STDOUT_FILENO) >= 0);
    int status = run(3, 1, argv, &ticks);
    fflush(stdout);
    assert_true(dup2(old, STDOUT_FILENO) >= 0);
    close(old);
    rewind(said);
    size_t n = fread(text, 1, sizeof text - 1, said);
    text[n] = 0;
    fclose(said);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "node 0 notifies: 4008 bytes are in buffer 1\n"));
    assert_non_null(strstr(text, "9 lines of 3 nodes, in order\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_goes_round),
                                       cmocka_unit_test(it_says_what_it_says_elsewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
