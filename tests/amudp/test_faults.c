/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Known faults of AMUDP that lie in its protocol, looked for where this library's messages are: between endpoints of a
 * hub whose ranks are on different hosts, over a network in memory that loses what it is told to. */
#include <stdio.h>

#include "endpoint/endpoint.h"
#include "net/fault/fault.h"
#include "net/socket/socket.h"
#include "runnel/am.h"
#include "support/hub.h"
#include "support/lockstep.h"
#include "support/random.h"
#include "support/unit.h"
#include "support/wires.h"

#include <time.h>
#include <unistd.h>

enum { ASK = 1, ANSWER, FLOOD = 2000, DEPTH = 128, SEEDS = 32 };

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

/* ---- a flood of short requests and their replies, on virtual time: the same each time ---- */

struct cost {
    uint64_t ns, datagrams, dropped; /* dropped: by the network */
    uint64_t lost, spurious;         /* taken for lost, and then they had come after all */
    uint64_t refused;                /* by the host */
};

/* Of nothing but losses, between steps that count as progress; and what no flood takes. */
static const uint64_t PAUSE_NS = 50000000, LONG_NS = 60000000000;

static struct lockstep l;
static eb_t bundle[2];
static ep_t side[2];
static int through;
static struct cost sums;
static unsigned refuse_every, refuse_why; /* how the host treats what is sent */

static void count(unsigned rank)
{
    const rnl_endpoint *ep = l.h.ep[rank];
    const struct rnl_counters *c = ep->c; /* as everybody can read them */
    struct rnl_fault_counts faults = {0};
    sums.lost += c->packets_lost;
    sums.spurious += c->packets_not_lost;
    if (*getenv("RNL_TEST_REMOTE"))
        rnl_fault_counts(ep->env->datagrams, &faults);
    for (unsigned k = 0; k < RNL_FAULT_KINDS; k++)
        sums.dropped += faults.lost[k];
}

static void poll_one(struct lockstep *lock, unsigned rank)
{
    TEST_MUST(AM_Poll(bundle[rank]) == AM_OK);
    lock->done = (uint64_t)asked + (uint64_t)answered + lock->now_ns / PAUSE_NS;
    TEST_MUST(lock->now_ns < LONG_NS);
    lockstep_yield(lock);
}

static void flood(struct lockstep *lock, unsigned rank)
{
    if (rank == 0) {
        uint64_t start = lock->now_ns;
        test_wires_refuse(lock->h.wires, refuse_every, refuse_why);
        for (int i = 0; i < FLOOD; i++) {
            TEST_MUST(AM_Request1(side[0], 1, ASK, i) == AM_OK);
            while (i + 1 - answered >= (i ? DEPTH : 1)) /* its clock runs once they are connected */
                poll_one(lock, 0);
            if (i == 0)
                start = lock->now_ns;
        }
        while (answered < FLOOD)
            poll_one(lock, 0);
        sums.ns += lock->now_ns - start;
        sums.datagrams += test_wires_sent(lock->h.wires);
        sums.refused += test_wires_refused(lock->h.wires);
        test_wires_refuse(lock->h.wires, 0, 0);
        through = 1;
    }
    while (!through)
        poll_one(lock, rank);
    count(rank);
    TEST_MUST(AM_FreeBundle(bundle[rank]) == AM_OK);
    TEST_MUST(rnl_close(lock->h.ep[rank]) == 0);
    lock->h.ep[rank] = NULL;
}

/* Over some seeds, of the faults and of the schedules. */
static struct cost cost_of(const char *network)
{
    char faults[80];
    sums = (struct cost){0};
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        const struct rnl_options opt[2] = {{0}};
        snprintf(faults, *network ? sizeof faults : 1, "%s,seed=%u", network, seed);
        setenv("RNL_TEST_REMOTE", faults, 1);
        asked = answered = through = 0;
        lockstep_open(&l, 2, opt, seed);
        assert_int_equal(AM_Init(), AM_OK);
        for (unsigned i = 0; i < 2; i++) {
            en_t name;
            assert_int_equal(AM_AllocateBundleOn(l.h.ep[i], AM_SEQ, &bundle[i]), AM_OK);
            assert_int_equal(AM_AllocateEndpoint(bundle[i], &side[i], &name), AM_OK);
            assert_int_equal(AM_SetTag(side[i], AM_ALL), AM_OK);
            assert_int_equal(AM_SetHandler(side[i], 0, on_returned), AM_OK);
            assert_int_equal(AM_SetHandler(side[i], ASK, on_ask), AM_OK);
            assert_int_equal(AM_SetHandler(side[i], ANSWER, on_answer), AM_OK);
        }
        for (unsigned i = 0; i < 2; i++)
            for (unsigned k = 0; k < 2; k++)
                assert_int_equal(AM_Map(side[i], (int)k, AM_NameOf(k, 0), AM_ALL), AM_OK);
        if (lockstep_run(&l, flood) != 0)
            fail_msg("seed %u, network \"%s\": %s", seed, network, l.wrong);
        lockstep_close(&l);
        assert_int_equal(AM_Terminate(), AM_OK);
        unsetenv("RNL_TEST_REMOTE");
        assert_int_equal(asked, FLOOD);
        assert_int_equal(answered, FLOOD);
    }
    print_message("\"%s\": %lu us, %lu datagrams, %lu dropped, %lu taken for lost, %lu of these wrongly\n", network,
                  (unsigned long)(sums.ns / 1000), (unsigned long)sums.datagrams, (unsigned long)sums.dropped,
                  (unsigned long)sums.lost, (unsigned long)sums.spurious);
    return sums;
}

static struct cost refused_cost(unsigned every, unsigned why)
{
    refuse_every = every;
    refuse_why = why;
    const struct cost c = cost_of("");
    refuse_every = refuse_why = 0;
    return c;
}

/* AMUDP sends one datagram for each message, and asks twice for each that comes. */
static void w11_messages_share_datagrams(void **state)
{
    (void)state;
    assert_true(32 * cost_of("").datagrams < SEEDS * 2 * FLOOD);
}

/* At 1 % of loss AMUDP's rate falls to a fiftieth: each loss stands for 100 ms, and stalls others. A loss here costs a
 * two-thousandth of that, or a hundredth where every third is lost, and answers and what is said again with them; what
 * was in it once more, perhaps an acknowledgement, and perhaps that two go for one, once for requests and once for
 * replies, since what waited for it opens the window piece by piece. Nothing is taken for lost that was not, or that is
 * not soon known better; and at 30 % each message is still handled once, in order. */
static void w3_loss_costs_what_was_lost(void **state)
{
    static const char *const networks[] = {"loss=1%", "loss=5%", "loss=30%"};
    const struct cost calm = cost_of("");
    (void)state;
    assert_true(calm.dropped == 0 && calm.lost == 0);
    for (unsigned i = 0; i < 3; i++) {
        const struct cost c = cost_of(networks[i]);
        assert_true(c.dropped > 0 && c.lost > 0);
        assert_true(c.datagrams <= calm.datagrams + 4 * c.dropped);
        assert_true(i == 2 || 28 * c.datagrams < SEEDS * 2 * FLOOD); /* many share one in spite of it */
        assert_true(c.lost <= c.dropped + c.spurious);
        assert_true(c.ns <= calm.ns + c.dropped * (i == 2 ? 1000000 : 50000));
    }
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
        const struct cost c = refused_cost(5, forbids[i]);
        print_message("refused %lu times\n", (unsigned long)c.refused);
        assert_true(c.refused > 0);
    }
    for (unsigned i = 0; i < sizeof is_full / sizeof *is_full; i++) {
        const struct cost c = refused_cost(3, is_full[i]);
        print_message("full %lu times\n", (unsigned long)c.refused);
        assert_true(c.refused > 0);
        assert_true(c.lost - c.spurious < c.refused / 8);
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
            struct rnl_message b = {.peer = 0,
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
