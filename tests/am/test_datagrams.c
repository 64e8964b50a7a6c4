/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which datagrams requests and replies go in, between two hosts on a clock of their own, both driven by this thread:
 * what a window of requests costs, and that nothing waits longer than until the next call returns. */
#include "runnel/am.h"
#include "runnel/counters.h"
#include "support/hub.h"
#include "support/must.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/wires.h"

enum { ASK = 1, ANSWERED, TELL, WINDOWS = 50, TURNS = 2000 /* longer than anything waits for company */ };

static struct test_hub hub;
static struct test_wires *wires;
static eb_t bundle[2];
static ep_t ep[2];
static unsigned asked, answered, told, seed;
static void on_ask(void *token, int32_t x)
{
    asked++;
    TEST_MUST(AM_Reply1(token, ANSWERED, x) == AM_OK);
}
static void on_tell(void *token)
{
    (void)token;
    told++;
}
static void on_answered(void *token, int32_t x)
{
    (void)token;
    TEST_MUST((unsigned)x == answered);
    answered++;
}

static void poll(unsigned who)
{
    assert_int_equal(AM_Poll(bundle[who]), AM_OK);
}

/* A window as programs keep one: asks until it is full, then polls until it is not. */
static void flood(unsigned n, unsigned depth)
{
    unsigned from = answered, turns = 0;
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(AM_Request1(ep[0], 0, ASK, (int32_t)(from + i)), AM_OK);
        while (i + 1 - (answered - from) >= depth) {
            assert_true(turns++ < 100 * n + TURNS);
            poll(1);
            poll(0);
        }
    }
    while (answered - from < n) {
        assert_true(turns++ < 100 * n + TURNS);
        poll(1);
        poll(0);
    }
}

/* Who finds the ring full waits for the other side, until it has grown. */
static void other_polls(unsigned waits)
{
    TEST_MUST(AM_Poll(bundle[1 - waits]) == AM_OK);
}

/* Until the ring has grown; then any number, and any number of polls. */
static void warm_up(void)
{
    test_wires_idles(other_polls);
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(AM_Request1(ep[0], 0, ASK, (int32_t)i), AM_OK);
    while (answered < 500) {
        poll(1);
        poll(0);
    }
    test_wires_idles(NULL);
    assert_true(rnl_get_counters(hub.ep[0])->rings_grown > 0);
    flood(2000, 128);
    struct test_random r = test_random_of(seed, 0);
    for (unsigned i = 0; i < 60; i++) {
        unsigned n = (unsigned)(test_random_next(&r) % 200), depth = 1 + (unsigned)(test_random_next(&r) % 128);
        flood(n, depth);
        for (unsigned k = (unsigned)(test_random_next(&r) % 4); k > 0; k--)
            poll((unsigned)(test_random_next(&r) % 2));
    }
}

static int setup(void **state)
{
    en_t name[2];
    (void)state;
    asked = answered = told = 0;
    test_hub_open(&hub, 2, NULL);
    wires = test_wires_new(2, "", 1);
    test_wires_ticks(wires);
    assert_int_equal(AM_Init(), AM_OK);
    for (unsigned i = 0; i < 2; i++) {
        test_wires_attach(wires, hub.ep[i]);
        assert_int_equal(AM_AllocateBundleOn(hub.ep[i], AM_SEQ, &bundle[i]), AM_OK);
        assert_int_equal(AM_AllocateEndpoint(bundle[i], &ep[i], &name[i]), AM_OK);
        assert_int_equal(AM_SetTag(ep[i], AM_ALL), AM_OK);
        assert_int_equal(AM_SetHandler(ep[i], ASK, on_ask), AM_OK);
        assert_int_equal(AM_SetHandler(ep[i], ANSWERED, on_answered), AM_OK);
        assert_int_equal(AM_SetHandler(ep[i], TELL, on_tell), AM_OK);
    }
    assert_int_equal(AM_Map(ep[0], 0, name[1], AM_ALL), AM_OK);
    assert_int_equal(AM_Map(ep[1], 0, name[0], AM_ALL), AM_OK);
    test_wires_connect(wires);
    warm_up();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(AM_FreeBundle(bundle[i]), AM_OK);
    test_wires_threads(wires);
    assert_int_equal(test_hub_close(&hub), 0);
    test_wires_free(wires);
    assert_int_equal(AM_Terminate(), AM_OK);
    return 0;
}

static unsigned long sent(void)
{
    return test_wires_sent(wires);
}

/* Two each way, and now and then an acknowledgement. */
static void a_window_of_128_takes_two_datagrams_each_way(void **state)
{
    (void)state;
    flood(512, 128);
    test_wires_settle();
    unsigned long before = sent(), looks = test_wires_looks(wires);
    flood(WINDOWS * 128, 128);
    assert_in_range(sent() - before, 1, WINDOWS * 4 + WINDOWS / 2);
    assert_in_range(test_wires_looks(wires) - looks, 1, WINDOWS * 8); /* not with each few of its requests */
}

/* Forty requests in one datagram: their receiver looks once more before it answers, after 64 it answers at once. */
static void a_run_of_requests_is_followed_by_a_look(void **state)
{
    static const unsigned runs[] = {4, 40, 64};
    unsigned long looks[3];
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        flood(512, 128);
        test_wires_settle();
        for (unsigned i = 0; i < 4; i++) {
            poll(1);
            poll(0);
        }
        for (unsigned i = 0; i < runs[k]; i++)
            assert_int_equal(AM_Request1(ep[0], 0, ASK, (int32_t)(answered + i)), AM_OK);
        poll(0);
        unsigned long before = test_wires_looks(wires);
        poll(1);
        looks[k] = test_wires_looks(wires) - before;
        poll(0);
    }
    assert_int_equal(looks[0], looks[2]);
    assert_int_equal(looks[1], looks[0] + 1);
}

/* Nothing is under way, nothing unanswered: also after there was much. */
static void a_lone_request_leaves_in_its_call(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        test_wires_settle();
        unsigned long before = sent();
        assert_int_equal(AM_Request1(ep[0], 0, ASK, (int32_t)answered), AM_OK);
        assert_int_equal(sent(), before + 1);
        poll(1);
        poll(0);
        flood(512, 128);
        poll(1);
        poll(0);
    }
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : 1; /* what goes before each test */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_window_of_128_takes_two_datagrams_each_way, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_of_requests_is_followed_by_a_look, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lone_request_leaves_in_its_call, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
