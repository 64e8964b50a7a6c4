/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which requests and replies share datagrams, between two ranks of different hosts that one thread drives, so that who
 * polls when is the test's to say. Its clock stands: nothing is due. */
#include "am/world.h"
#include "support/must.h"

#include <stdlib.h>

enum { ASK = 1, ANSWER, GROUP = 8, PART = 3, HELD = 32 };

static struct test_wires *wires;
static unsigned asked[RANKS_MAX], answered[RANKS_MAX];

static unsigned rank_of(void *token)
{
    ep_t ep = NULL;
    TEST_MUST(AM_GetDestEndpoint(token, &ep) == AM_OK);
    return ep == world.ep[0] ? 0 : 1;
}
static void ask(void *token, int32_t x)
{
    asked[rank_of(token)]++;
    TEST_MUST(AM_Reply8(token, ANSWER, x, 2, 3, 4, 5, 6, 7, 8) == AM_OK); /* a line for each */
}
static void answer(void *token, int32_t x, int32_t b, int32_t c, int32_t d, int32_t e, int32_t f, int32_t g, int32_t h)
{
    TEST_MUST(x >= 0 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8);
    answered[rank_of(token)]++;
}

static void requests(unsigned from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(AM_Request1(world.ep[from], (int)!from, ASK, (int32_t)i), AM_OK);
}
static void look(unsigned rank)
{
    assert_int_equal(AM_Poll(world.eb[rank]), AM_OK);
}
static unsigned long datagrams(void)
{
    return test_wires_sent(wires);
}

static void begin(void)
{
    memset(&world, 0, sizeof world);
    memset(&noted, 0, sizeof noted);
    memset(asked, 0, sizeof asked);
    memset(answered, 0, sizeof answered);
    world.ranks = 2;
    unsetenv("RNL_TEST_REMOTE");
    test_hub_open(&world.h, 2, NULL);
    wires = test_wires_new(2, "", 1);
    test_wires_ticks(wires);
    assert_int_equal(AM_Init(), AM_OK);
    for (unsigned i = 0; i < 2; i++) {
        test_wires_attach(wires, world.h.ep[i]);
        assert_int_equal(AM_AllocateBundleOn(world.h.ep[i], AM_SEQ, &world.eb[i]), AM_OK);
        assert_int_equal(AM_AllocateEndpoint(world.eb[i], &world.ep[i], &world.name[i]), AM_OK);
        assert_int_equal(AM_SetTag(world.ep[i], TAG), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], ASK, ask), AM_OK);
        assert_int_equal(AM_SetHandler(world.ep[i], ANSWER, answer), AM_OK);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(AM_Map(world.ep[i], (int)!i, world.name[!i], TAG), AM_OK);
    test_wires_connect(wires);
    for (unsigned i = 0; i < 8; i++) { /* the first packets of a key ask for acknowledgements */
        requests(0, 1);
        for (unsigned k = 0; answered[0] <= i; k++)
            look(k & 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        test_wires_pass(wires, 30000);
        look(i & 1);
    }
    test_wires_threads(wires); /* nobody lets the other side run */
    test_wires_stop(wires, 1); /* and nothing is due meanwhile */
}

/* Two groups were sent, the first of them has been answered, and the other is under way. */
static void two_groups(void)
{
    unsigned before = answered[0];
    for (unsigned i = 0; i < 2; i++) {
        requests(0, GROUP);
        look(0);
        if (i == 0)
            look(1);
    }
    assert_int_equal(answered[0], before + GROUP);
}

static void drain(void)
{
    for (unsigned i = 0; i < 1000; i++) {
        test_wires_pass(wires, 100000);
        look(i & 1);
    }
}

static void end(void)
{
    drain();
    assert_int_equal(asked[1], answered[0]);
    assert_int_equal(asked[0], answered[1]);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(AM_FreeBundle(world.eb[i]), AM_OK);
    assert_int_equal(test_hub_close(&world.h), 0);
    test_wires_free(wires);
    assert_int_equal(AM_Terminate(), AM_OK);
}

static int lose(void *arg, unsigned from, unsigned to, unsigned way, unsigned char *at, uint32_t bytes)
{
    (void)arg, (void)from, (void)to, (void)way, (void)at, (void)bytes;
    return 0;
}

static void what_a_full_window_leaves_of_a_group_waits_for_the_rest(void **state)
{
    (void)state;
    begin();
    two_groups();
    unsigned before = answered[0];
    unsigned long sent = datagrams();
    requests(0, PART);
    look(0);
    look(0);
    assert_int_equal(datagrams(), sent); /* the other group's replies are to come, and let more be sent */
    look(1);
    sent = datagrams();
    look(0);
    assert_int_equal(answered[0], before + GROUP);
    assert_int_equal(datagrams(), sent); /* nor does what is owed for them go by itself */
    requests(0, GROUP - PART);
    look(0);
    assert_int_equal(datagrams(), sent + 1); /* all of it together */
    look(1);
    assert_int_equal(asked[1], answered[0] + GROUP);
    look(0);
    end();
}

/* Now and then the lines that it read are much of the ring of answers, and rank 1 is to be told. */
static void what_is_owed_for_replies_is_no_datagram_of_its_own(void **state)
{
    (void)state;
    begin();
    for (unsigned round = 0; round < 8; round++) {
        two_groups();
        look(0);
        test_wires_tapped(wires, lose, NULL); /* so a third is under way when the second is answered */
        requests(0, GROUP);
        look(0);
        test_wires_tapped(wires, NULL, NULL);
        look(1);
        unsigned before = answered[0];
        unsigned long sent = datagrams();
        look(0);
        assert_int_equal(answered[0], before + GROUP);
        assert_int_equal(datagrams(), sent);
        drain();
    }
    end();
}

static void no_request_waits_for_long(void **state)
{
    (void)state;
    begin();
    two_groups();
    unsigned long sent = datagrams();
    unsigned had = asked[1], polls = 0;
    requests(0, PART);
    for (; datagrams() == sent && polls < 10 * HELD; polls++)
        look(0); /* rank 1 does not answer */
    assert_int_equal(polls, HELD + 1);
    look(1);
    assert_int_equal(asked[1] - had, GROUP + PART);
    look(0);
    end();
}

static void alone_or_never_answered_it_goes_with_the_next_poll(void **state)
{
    (void)state;
    begin();
    unsigned long sent = datagrams();
    requests(0, PART);
    look(0);
    assert_true(datagrams() > sent); /* nothing else is under way whose replies could come */
    sent = datagrams();
    requests(0, PART);
    look(0);
    assert_true(datagrams() > sent); /* none came since then */
    end();
}

static void who_holds_requests_back_answers_at_once(void **state)
{
    (void)state;
    begin();
    two_groups();
    requests(0, PART);
    look(0);
    requests(1, 1);
    look(1);
    unsigned had = answered[1];
    look(0); /* takes it in */
    assert_int_equal(asked[0], 1);
    look(1);
    assert_int_equal(answered[1], had + 1);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_full_window_leaves_of_a_group_waits_for_the_rest),
        cmocka_unit_test(what_is_owed_for_replies_is_no_datagram_of_its_own),
        cmocka_unit_test(no_request_waits_for_long),
        cmocka_unit_test(alone_or_never_answered_it_goes_with_the_next_poll),
        cmocka_unit_test(who_holds_requests_back_answers_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
