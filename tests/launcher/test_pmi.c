/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pmi.c - PMI-1 without processes: what two hosts reply to lines of MPICH's, and to such as are none. */
#include "launcher/mpi/pmi.h"

#include <stdio.h>

#include "support/unit.h"

enum { NUMBER = 0x2a };
static const struct rnl_job_host at[4] = {
    {.name = "a", .count = 2}, {.name = "b", .first = 2, .count = 2}, {.name = "c", .first = 4, .count = 1}};
static struct rnl_pmi host[2];
static struct rnl_pmi_caller caller;
static char reply[RNL_PMI_LINE];

static enum rnl_pmi_turn hear(struct rnl_pmi *p, const char *line)
{
    reply[0] = '\0';
    return rnl_pmi_receive(p, &caller, line, reply);
}
static void replies(const char *line, const char *wanted)
{
    assert_int_equal(hear(&host[0], line), RNL_PMI_REPLIES);
    assert_string_equal(reply, wanted);
}
static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        rnl_pmi_init(&host[i], NUMBER, 3, at);
    caller = (struct rnl_pmi_caller){.inside = false};
    return 0;
}
static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        rnl_pmi_free(&host[i]);
    return 0;
}

#define OF "kvsname=runnel-000000000000002a"

static void mpich_begins_and_ends(void **state)
{
    (void)state;
    replies("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    replies("cmd=init pmi_version=2 pmi_subversion=0", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
    replies("cmd=get_maxes", "cmd=maxes kvsname_max=32 keylen_max=65 vallen_max=769\n");
    replies("cmd=get_appnum", "cmd=appnum appnum=0\n");
    replies("cmd=get_my_kvsname", "cmd=my_kvsname " OF "\n");
    replies("cmd=get_universe_size", "cmd=universe_size size=5 rc=0\n");
    replies("cmd=get " OF " key=PMI_process_mapping",
            "cmd=get_result rc=0 msg=success value=(vector,(0,2,2),(2,1,1))\n");
    replies("cmd=finalize", "cmd=finalize_ack\n");
    assert_int_equal(hear(&host[0], "cmd=abort exitcode=7"), RNL_PMI_ABORTS);
    assert_int_equal(caller.status, 7);
    assert_int_equal(hear(&host[0], "cmd=abort exitcode=256"), RNL_PMI_ABORTS);
    assert_int_equal(caller.status, 1);
}

static void what_is_put_is_got_on_another_host_after_a_barrier(void **state)
{
    (void)state;
    replies("cmd=put " OF " key=card-0 value=a=b#c", "cmd=put_result rc=0 msg=success\n");
    replies("cmd=put " OF " key=card-0 value=d", "cmd=put_result rc=-1 msg=duplicate_key\n");
    replies("cmd=get " OF " key=card-1", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    assert_int_equal(hear(&host[0], "cmd=barrier_in"), RNL_PMI_SILENT);
    assert_true(caller.inside);
    assert_int_equal(rnl_pmi_learn(&host[1], host[0].news.at, host[0].news.bytes), 0);
    caller.inside = false;
    assert_int_equal(hear(&host[1], "cmd=get " OF " key=card-0"), RNL_PMI_REPLIES);
    assert_string_equal(reply, "cmd=get_result rc=0 msg=success value=a=b#c\n");
}

static void names_of_others_and_what_is_too_long_are_refused(void **state)
{
    (void)state;
    static const char wrong[] = "cmd=put_result rc=-1 msg=no_such_name_or_too_long\n";
    char line[RNL_PMI_LINE];
    replies("cmd=put kvsname=other key=k value=v", wrong);
    replies("cmd=put " OF " key= value=v", wrong);
    replies("cmd=put " OF " key=k", wrong);
    for (int n = RNL_PMI_VALUE - 1; n <= RNL_PMI_VALUE; n++) {
        snprintf(line, sizeof line, "cmd=put " OF " key=long value=%0*d", n, 0);
        replies(line, n < RNL_PMI_VALUE ? "cmd=put_result rc=0 msg=success\n" : wrong);
    }
    snprintf(line, sizeof line, "cmd=put " OF " key=%0*d value=v", RNL_PMI_KEY, 0);
    replies(line, wrong);
    replies("cmd=get kvsname=other key=long", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    replies("cmd=lookup_name service=s", "cmd=lookup_result rc=-1 msg=not_served\n");
}

static void memory_is_bounded(void **state)
{
    (void)state;
    char line[RNL_PMI_LINE];
    unsigned taken = 0;
    do {
        snprintf(line, sizeof line, "cmd=put " OF " key=k%u value=%0700d", taken++, 0);
        assert_int_equal(hear(&host[0], line), RNL_PMI_REPLIES);
    } while (strstr(reply, "rc=0"));
    assert_string_equal(reply, "cmd=put_result rc=-1 msg=no_room\n");
    assert_true(host[0].bytes <= RNL_PMI_BYTES && taken > RNL_PMI_BYTES / 800);
}

static void spawning_is_refused_once_for_all_its_commands(void **state)
{
    (void)state;
    static const char *const lines[] = {"mcmd=spawn",       "nprocs=2",    "execname=x",   "totspawns=2",
                                        "spawnssofar=1",    "endcmd",      "mcmd=spawn",   "nprocs=1",
                                        "execname=cmd=put", "totspawns=2", "spawnssofar=2"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(hear(&host[0], lines[i]), RNL_PMI_SILENT);
    assert_int_equal(hear(&host[0], "endcmd"), RNL_PMI_NO_SPAWN);
    assert_string_equal(reply, "cmd=spawn_result rc=-1 msg=not_served\n");
    replies("cmd=get_appnum", "cmd=appnum appnum=0\n");
}

static void what_is_no_command_is_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "hello", "cmd=", "cmd=fly", "acmd=init", "cmd=init_that_is_much_too_long_to_be"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(hear(&host[0], wrong[i]), RNL_PMI_NO_COMMAND);
    assert_int_equal(hear(&host[0], "cmd=barrier_in"), RNL_PMI_SILENT);
    assert_int_equal(hear(&host[0], "cmd=get_appnum"), RNL_PMI_NO_COMMAND);
}

static void news_that_are_bent_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *at;
        size_t bytes;
    } wrong[] = {{"k", 1}, {"k\0", 2}, {"k\0v", 3}, {"k\0v\0w", 5}};
    char big[RNL_PMI_VALUE + 4] = "k";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(rnl_pmi_learn(&host[0], wrong[i].at, wrong[i].bytes), -1);
    memset(big + 2, 'v', RNL_PMI_VALUE);
    assert_int_equal(rnl_pmi_learn(&host[1], big, RNL_PMI_VALUE + 3), -1);
    assert_int_equal(rnl_pmi_learn(&host[1], NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(mpich_begins_and_ends),
        TEST(what_is_put_is_got_on_another_host_after_a_barrier),
        TEST(names_of_others_and_what_is_too_long_are_refused),
        TEST(memory_is_bounded),
        TEST(spawning_is_refused_once_for_all_its_commands),
        TEST(what_is_no_command_is_none),
        TEST(news_that_are_bent_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
