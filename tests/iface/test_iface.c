/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_iface.c - an interface that nothing but its own folder knows by name (example_iface.c): between endpoints of one
 * process, and on the virtual cluster, where each process has a state of its own. test_iface.sh has it in launched
 * jobs. */
#include "base/iface.h"
#include "iface/example_iface.h"
#include "sim/cluster/cluster.h"
#include "support/hub.h"
#include "support/unit.h"

#include <stdio.h>
#include <unistd.h>

enum { RANKS = 8 };

static const uint64_t numbers[] = {1, 2, 4};

static uint64_t counter(unsigned rank, const char *wanted)
{
    struct rnl_counters_page page[TEST_HUB_MAX];
    const char *name, *text;
    uint64_t value;
    int n = rnl_counters_read(getpid(), page, TEST_HUB_MAX);
    for (int i = 0; i < n; i++)
        for (unsigned k = 0; page[i].core.rank == rank && rnl_counters_item(&page[i], k, &name, &text, &value); k++)
            if (strcmp(name, wanted) == 0)
                return value;
    return UINT64_MAX;
}

static void it_works_between_endpoints_of_one_process(void **state)
{
    struct test_hub h;
    struct tally *t[2];
    (void)state;
    test_hub_open(&h, 2, NULL);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(tally_new(h.ep[i], &t[i]), 0);
    assert_int_equal(tally_add(t[0], 1, numbers, 3), 0);
    while (tally_sum(t[1]) < 7)
        assert_true(rnl_extract(h.ep[1], SIZE_MAX) >= 0);
    assert_int_equal(tally_sum(t[1]), 7);
    assert_int_equal(counter(0, "Tally.added"), 0);
    assert_int_equal(counter(1, "Tally.added"), 3);
    assert_int_equal(test_hub_close(&h), 0);
    for (unsigned i = 0; i < 2; i++)
        tally_free(t[i]);
}

/* Rank 0 has begun a message that rank 1's handler waits for the rest of. */
static void a_death_drops_its_handlers_as_it_wants(void **state)
{
    const struct rnl_message b = {.peer = 1, .handler = 7, .bound = 1000};
    const uint64_t n = 100;
    struct test_hub h;
    struct tally *t;
    rnl_stream *s;
    (void)state;
    test_hub_open(&h, 2, NULL);
    assert_int_equal(tally_new(h.ep[1], &t), 0);
    assert_int_equal(rnl_begin(h.ep[0], &b, &s), 0);
    assert_int_equal(rnl_piece(s, &n, sizeof n), 0);
    assert_int_equal(rnl_piece(s, numbers, 16), 0);
    assert_true(rnl_extract(h.ep[0], SIZE_MAX) >= 0); /* makes it visible */
    while (tally_sum(t) < 3)
        assert_true(rnl_extract(h.ep[1], SIZE_MAX) >= 0);
    assert_int_equal(rnl_get_counters(h.ep[1])->handlers_suspended, 1);
    test_hub_kill(&h, 0, RNL_DEATH_SIGNAL, 9);
    while (rnl_get_counters(h.ep[1])->deaths == 0)
        assert_true(rnl_extract(h.ep[1], SIZE_MAX) >= 0);
    assert_int_equal(tally_cut(t), 0);
    (void)test_hub_close(&h);
    tally_free(t);
}

static void counters_that_do_not_fit_are_refused_with_a_sentence(void **state)
{
    static const struct rnl_counter_text eleven[] = {
        {"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"},  {"e", "5"},  {"f", "6"},
        {"g", "7"}, {"h", "8"}, {"i", "9"}, {"j", "10"}, {"k", "11"}, {NULL, NULL},
    };
    struct rnl_counters *c;
    uint64_t *first, *again, *other;
    (void)state;
    assert_int_equal(rnl_counters_new(0, 1, "p", 0, &c), 0);
    assert_int_equal(rnl_counters_add(c, "One", eleven, &first), 0);
    assert_int_equal(rnl_counters_add(c, "One", eleven, &again), 0);
    assert_ptr_equal(again, first);
    assert_int_equal(rnl_counters_add(c, "On", eleven, &other), RNL_ERR_NO_MEMORY);
    assert_non_null(strstr(rnl_last_error()->text, "has 11 counters, and the page of this endpoint has room for 10"));
    assert_int_equal(rnl_counters_add(c, "On", eleven + 1, &other), 0);
    assert_ptr_equal(other, first + 11);
    other[9] = 5;
    assert_int_equal(counter(0, "On.k"), 5);
    assert_int_equal(counter(0, "One.k"), 0);
    rnl_counters_free(c);
}

/* ---- on the virtual cluster ---- */

struct said {
    unsigned fresh, sums, others, complaints;
};

static void note_output(void *arg, uint32_t rank, int stream, const char *bytes, size_t n)
{
    struct said *said = arg;
    char line[200];
    (void)stream;
    snprintf(line, sizeof line, "%.*s", (int)n, bytes);
    if (strcmp(line, "made 101\n") == 0)
        said->fresh++;
    else if (strcmp(line, "sum 40400, made 101\n") == 0)
        said->sums++;
    else
        said->others++, print_message("# rank %u: %s", rank, line);
}

static void note_complaint(void *arg, const char *line)
{
    print_message("# %s\n", line);
    ((struct said *)arg)->complaints++;
}

static int run_cluster(uint32_t hosts, const char *scenario, const char *argument, struct said *said)
{
    char path[4096];
    char argument_copy[16] = "";
    char *argv[] = {path, argument_copy, NULL};
    const char *build = getenv("RUNNEL_BUILD");
    struct vc_cluster *cluster;
    struct vc_cluster_result result;
    if (argument)
        snprintf(argument_copy, sizeof argument_copy, "%s", argument);
    snprintf(path, sizeof path, "%s/tests/vproc-iface.so", build ? build : "build");
    const struct vc_cluster_options opt = {.ranks = RANKS,
                                           .hosts = hosts,
                                           .seed = 3,
                                           .limit_ns = 1000000000,
                                           .program = path,
                                           .argc = argument ? 2 : 1,
                                           .argv = argv,
                                           .keep_going = 1,
                                           .scenario = scenario,
                                           .output = note_output,
                                           .say = note_complaint,
                                           .arg = said};
    if (vc_cluster_new(&opt, &cluster) < 0) {
        print_message("# %s\n", rnl_last_error()->text);
        fail();
    }
    vc_cluster_run(cluster, &result);
    vc_cluster_free(cluster);
    return result.status;
}

static void each_virtual_process_has_a_state_of_its_own(void **state)
{
    (void)state;
    for (uint32_t hosts = 1; hosts <= RANKS; hosts *= 2) {
        struct said said = {0};
        assert_int_equal(run_cluster(hosts, NULL, NULL, &said), 0);
        assert_int_equal(said.fresh, RANKS);
        assert_int_equal(said.sums, RANKS);
        assert_int_equal(said.others + said.complaints, 0);
    }
    assert_int_equal(tally_living, 0);
}

/* All are killed, some of them earlier: what they had is freed, and one that starts again finds a state like new. */
static void so_has_one_that_starts_again(void **state)
{
    struct said said = {0};
    (void)state;
    (void)run_cluster(2, "at 5ms crash 1 restart 2ms\nat 8ms crash 5\n", "wait", &said);
    assert_int_equal(said.fresh, RANKS + 1);
    assert_int_equal(said.sums, 0);
    assert_int_equal(tally_living, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_works_between_endpoints_of_one_process),
        cmocka_unit_test(a_death_drops_its_handlers_as_it_wants),
        cmocka_unit_test(counters_that_do_not_fit_are_refused_with_a_sentence),
        cmocka_unit_test(each_virtual_process_has_a_state_of_its_own),
        cmocka_unit_test(so_has_one_that_starts_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
