/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Known faults of AMUDP that lie in its protocol, looked for where this library's messages are: between endpoints of a
 * hub whose ranks are on different hosts, over a network in memory that loses what it is told to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/endpoint.h"
#include "endpoint/link.h"
#include "runnel/am.h"
#include "support/hub.h"
#include "support/random.h"
#include "support/wires.h"
#include "transport/socket.h"

#include <time.h>
#include <unistd.h>

enum { ASK = 1, ANSWER, FLOOD = 2000, DEPTH = 128 };

static int asked, answered;

static void on_ask(void *token, int32_t x)
{
    TEST_MUST(x == asked);
    asked++;
    TEST_MUST(AM_Reply1(token, ANSWER, x) == AM_OK);
}

static void on_answer(void *token, int32_t x)
{
    (void)token;
    (void)x;
    answered++;
}

static void on_returned(int status, op_t opcode, void *token)
{
    (void)status;
    (void)opcode;
    (void)token;
    TEST_MUST(!"a message came back");
}

static _Atomic int through;

/* Sleeps of this program: these are called instead of the C library's. */
static _Atomic unsigned long naps;
unsigned sleep(unsigned s)
{
    naps++;
    return s;
}
int usleep(useconds_t us)
{
    naps++;
    return us ? 0 : -1;
}
int nanosleep(const struct timespec *for_, struct timespec *left)
{
    naps++;
    return for_ != left ? 0 : -1;
}
int clock_nanosleep(clockid_t id, int flags, const struct timespec *for_, struct timespec *left)
{
    naps++;
    return id < 0 || flags || for_ != left ? 0 : -1;
}

/* What a flood did, and how the host treats what rank 0 and 1 send. */
struct weather {
    unsigned refuse_every, refuse_why;
    unsigned long sent, refused, lost;
};

static void flood(struct test_thread *t)
{
    eb_t eb;
    ep_t ep;
    en_t name;
    TEST_MUST(AM_AllocateBundleOn(t->ep, AM_SEQ, &eb) == AM_OK);
    TEST_MUST(AM_AllocateEndpoint(eb, &ep, &name) == AM_OK);
    TEST_MUST(AM_SetTag(ep, AM_ALL) == AM_OK);
    TEST_MUST(AM_SetHandler(ep, 0, on_returned) == AM_OK);
    TEST_MUST(AM_SetHandler(ep, ASK, on_ask) == AM_OK);
    TEST_MUST(AM_SetHandler(ep, ANSWER, on_answer) == AM_OK);
    for (unsigned i = 0; i < t->size; i++)
        TEST_MUST(AM_Map(ep, (int)i, AM_NameOf(i, 0), AM_ALL) == AM_OK);
    struct weather *w = t->arg;
    if (t->rank == 0) {
        test_wires_refuse(t->wires, w->refuse_every, w->refuse_why);
        for (int i = 0; i < FLOOD; i++) {
            TEST_MUST(AM_Request1(ep, 1, ASK, i) == AM_OK);
            while (i + 1 - answered >= DEPTH)
                TEST_MUST(AM_Poll(eb) == AM_OK);
        }
        while (answered < FLOOD)
            TEST_MUST(AM_Poll(eb) == AM_OK);
        w->sent = test_wires_sent(t->wires);
        w->refused = test_wires_refused(t->wires);
        const struct rnl_flow_counters *c = &t->ep->remote->count;
        w->lost = c->lost > c->spurious ? c->lost - c->spurious : 0;
        through = 1;
    }
    while (!through)
        TEST_MUST(AM_Poll(eb) == AM_OK);
    TEST_MUST(AM_FreeBundle(eb) == AM_OK);
}

static void through_weather(const char *network, struct weather *w)
{
    setenv("RNL_TEST_REMOTE", network, 1);
    asked = answered = 0;
    through = 0;
    assert_int_equal(AM_Init(), AM_OK);
    assert_int_equal(test_hub_threads(2, NULL, flood, w), 0);
    assert_int_equal(AM_Terminate(), AM_OK);
    unsetenv("RNL_TEST_REMOTE");
    assert_int_equal(asked, FLOOD);
    assert_int_equal(answered, FLOOD);
}

/* Datagrams that a flood of short requests and their replies took. */
static unsigned long datagrams(const char *network)
{
    struct weather w = {0};
    through_weather(network, &w);
    return w.sent;
}

/* AMUDP sends one datagram for each message, and asks twice for each that comes. */
static void w11_messages_share_datagrams(void **state)
{
    (void)state;
    unsigned long sent = datagrams("");
    print_message("%lu datagrams for %d messages\n", sent, 2 * FLOOD);
    assert_true(sent < FLOOD);
}

/* At 1 % of loss AMUDP's rate falls to a fiftieth: each loss stands for 100 ms, and stalls others. A loss here costs
 * the datagrams that are sent again; and at 30 % each message is still handled once, in order. */
static void w3_loss_costs_what_was_lost(void **state)
{
    (void)state;
    unsigned long calm = datagrams(""), one = datagrams("loss=1%"), thirty = datagrams("loss=30%");
    print_message("datagrams: %lu, %lu at 1 %% loss, %lu at 30 %%\n", calm, one, thirty);
    assert_true(one < 4 * calm + 1000);
}

/* Where the host refuses a datagram (EPERM: a filter), AMUDP sleeps up to 5 s inside the call; where its queue is full
 * (ENOBUFS), it takes the datagram for lost, which costs 100 ms. Here nobody sleeps; what was refused is sent again as
 * what was lost is, and what found the queue full goes as soon as there is room, and never was lost. */
static void w10_a_host_that_refuses_stops_nobody(void **state)
{
    static const unsigned forbids[] = {RNL_SOCKET_FORBIDDEN, RNL_SOCKET_FAILED};
    static const unsigned is_full[] = {RNL_SOCKET_NO_BUFFERS};
    (void)state;
    naps = 0;
    for (unsigned i = 0; i < sizeof forbids / sizeof *forbids; i++) {
        struct weather w = {.refuse_every = 5, .refuse_why = forbids[i]};
        through_weather("", &w);
        print_message("refused %lu times, lost %lu packets\n", w.refused, w.lost);
        assert_true(w.refused > 0);
    }
    for (unsigned i = 0; i < sizeof is_full / sizeof *is_full; i++) {
        struct weather w = {.refuse_every = 3, .refuse_why = is_full[i]};
        through_weather("", &w);
        print_message("full %lu times, lost %lu packets\n", w.refused, w.lost);
        assert_true(w.refused > 0);
        assert_true(w.lost < w.refused / 8); /* none but what a thread that waits long for its processor asks for */
    }
    assert_int_equal(naps, 0);
}

/* A message whose lengths and counts are not true is refused or ends its sender's connection, and is read no further
 * than it goes; nobody else notices. AMUDP reads beyond it. */
static void w7_lengths_are_checked(void **state)
{
    struct test_hub h;
    eb_t eb[3];
    ep_t ep[3];
    en_t name;
    struct test_random random = test_random_of(7, 0);
    (void)state;
    for (unsigned round = 0; round < 60; round++) {
        asked = answered = 0;
        assert_int_equal(AM_Init(), AM_OK);
        test_hub_open(&h, 3, NULL);
        for (unsigned i = 0; i < 3; i += 2) {
            assert_int_equal(AM_AllocateBundleOn(h.ep[i], AM_SEQ, &eb[i]), AM_OK);
            assert_int_equal(AM_AllocateEndpoint(eb[i], &ep[i], &name), AM_OK);
            assert_int_equal(AM_SetTag(ep[i], AM_ALL), AM_OK);
            assert_int_equal(AM_SetHandler(ep[i], ASK, on_ask), AM_OK);
            assert_int_equal(AM_SetHandler(ep[i], ANSWER, on_answer), AM_OK);
            assert_int_equal(AM_Map(ep[i], 0, AM_NameOf(0, 0), AM_ALL), AM_OK);
        }
        for (unsigned i = 0; i < 20; i++) { /* rank 1 speaks the core's language, and no AM */
            unsigned char bytes[48];
            size_t n = test_random_below(&random, 49);
            for (size_t k = 0; k < n; k++)
                bytes[k] = (unsigned char)test_random_below(&random, 256);
            if (n > 2 && test_random_below(&random, 2)) { /* nearly true */
                bytes[0] = (unsigned char)(test_random_below(&random, 5) | test_random_below(&random, 32) << 3);
                bytes[2] = bytes[3] = 0;
                if (n >= 12)
                    memset(bytes + 8, 0, 4);
            }
            struct rnl_begin b = {.peer = 0,
                                  .handler = (unsigned)(RNL_AM_ID_FIRST + test_random_below(&random, 3)),
                                  .bound = n,
                                  .answer = test_random_below(&random, 2) ? 65536 : 0,
                                  .flags = RNL_NO_WAIT};
            rnl_stream *s;
            if (rnl_begin(h.ep[1], &b, &s) != 0)
                continue;
            if (rnl_piece(s, bytes, n) < 0 || rnl_end(s) < 0)
                rnl_abort(s);
            (void)AM_Poll(eb[0]);
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(AM_Request1(ep[2], 0, ASK, i), AM_OK);
        for (int i = 0; i < 1000 && answered < 10; i++) {
            assert_int_equal(AM_Poll(eb[2]), AM_OK);
            (void)AM_Poll(eb[0]);
        }
        assert_int_equal(answered, 10);
        assert_int_equal(AM_FreeBundle(eb[0]), AM_OK);
        assert_int_equal(AM_FreeBundle(eb[2]), AM_OK);
        (void)test_hub_close(&h);
        assert_int_equal(AM_Terminate(), AM_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w3_loss_costs_what_was_lost),
        cmocka_unit_test(w7_lengths_are_checked),
        cmocka_unit_test(w10_a_host_that_refuses_stops_nobody),
        cmocka_unit_test(w11_messages_share_datagrams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
