/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_net.c - the virtual network against what can be worked out by hand: times of arrival, queues, marks, drops. */
#include "sim/net_bench.h"

enum { WIRE = VC_NET_OVERHEAD };
#define PLAIN ((struct vc_net_socket_config){.plain = 1})

/* When each packet came, by its number. */
static struct arrivals {
    uint64_t at_ns[8192];
    uint32_t count;
} came;

static void on_tap(void *arg, const struct vc_net_tap_packet *p)
{
    uint64_t number = 0;
    memcpy(&number, p->at, p->bytes < 8 ? p->bytes : 8);
    if (p->what == VC_NET_TAP_DELIVERED && number < 8192) {
        came.at_ns[number] = rnl_sim_now(arg); /* in ticks */
        came.count++;
    }
}

static void watch(struct net_bench *b)
{
    memset(&came, 0, sizeof came);
    vc_net_set_tap(b->net, on_tap, b->sim);
}

static void a_packet_arrives_after_sending_and_way(void **state)
{
    (void)state;
    static const struct {
        uint64_t rate, delay_ns, bytes, ticks; /* ticks: (bytes + 66) * 8 / rate + delay, by hand, in ps */
    } cases[] = {{GBPS(10), 5000, 1400, 1172800 + 5000000},
                 {GBPS(100), 1000, 1, 5360 + 1000000},
                 {GBPS(1), 0, 0, 528000},
                 {GBPS(3), 10, 34, 266667 + 10000}, /* rounded up to a picosecond */
                 {0, 777, 1400, 777000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct net_bench *b = net_bench_pair(
            1, &(struct vc_net_link_config){.bits_per_s = cases[i].rate, .delay_ns = cases[i].delay_ns}, PLAIN);
        watch(b);
        net_bench_run(b, 123);
        assert_int_equal(net_bench_send(b, 0, 1, 0, (uint32_t)cases[i].bytes, 0), RNL_SOCKET_WENT);
        net_bench_run(b, UINT64_MAX);
        assert_int_equal(came.count, 1);
        assert_int_equal(came.at_ns[0], 123 * VC_TICKS_PER_NS + cases[i].ticks);
        net_bench_free(b);
    }
}

static void a_way_of_several_links_adds_up(void **state)
{
    /* 0 - switch - switch - 1, each link with a rate and delay of its own: store and forward. */
    (void)state;
    struct net_bench *b = net_bench_new(1, 2, 2);
    assert_int_equal(
        vc_net_connect(b->net, 0, 2, &(struct vc_net_link_config){.bits_per_s = GBPS(10), .delay_ns = 100}, NULL), 0);
    assert_int_equal(
        vc_net_connect(b->net, 2, 3, &(struct vc_net_link_config){.bits_per_s = GBPS(1), .delay_ns = 2000}, NULL), 0);
    assert_int_equal(
        vc_net_connect(b->net, 3, 1, &(struct vc_net_link_config){.bits_per_s = GBPS(100), .delay_ns = 30}, NULL), 0);
    net_bench_start(b, PLAIN);
    watch(b);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 934, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    /* 1000 bytes on the wire: 0.8, 8 and 0.08 us. Behind the slow link they are 8 us apart. */
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(came.at_ns[i], (800 + 100 + 8000 * (i + 1) + 2000 + 80 + 30) * VC_TICKS_PER_NS);
    net_bench_free(b);
}

static void a_queue_grows_by_what_comes_and_shrinks_by_what_is_sent(void **state)
{
    (void)state;
    enum { N = 100 };
    struct net_bench *b =
        net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(8), .buffer_bytes = 1 << 20},
                       (struct vc_net_socket_config){.plain = 1, .receive_bytes = 1 << 22});
    struct vc_net_link_counts c;
    watch(b);
    assert_int_equal(vc_net_watch(b->net, 0), 0);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
    vc_net_link_counts(b->net, 0, &c);
    assert_int_equal(c.queue_bytes, N * 1000);
    /* A byte is a nanosecond: after k us and a half, k packets are out and one is being sent. */
    for (uint64_t k = 0; k < N; k += 7) {
        net_bench_run(b, 1000 * k + 500);
        vc_net_link_counts(b->net, 0, &c);
        assert_int_equal(c.queue_bytes, (N - k) * 1000);
        assert_int_equal(c.busy_ns, 1000 * k + 500);
    }
    net_bench_run(b, UINT64_MAX);
    vc_net_link_counts(b->net, 0, &c);
    assert_int_equal(c.queue_bytes, 0);
    assert_int_equal(c.most_bytes, N * 1000);
    assert_int_equal(c.busy_ns, N * 1000);
    assert_int_equal(c.packets, N);
    assert_int_equal(c.delivered, N);
    assert_int_equal(c.bytes, N * 1000);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(came.at_ns[i], 1000 * (i + 1) * VC_TICKS_PER_NS);
    /* They waited 0, 1, ... 99 us. */
    assert_in_range(vc_net_wait_ns(b->net, 0, 500), 49000, 51000);
    assert_in_range(vc_net_wait_ns(b->net, 0, 990), 98000, 101000);
    assert_in_range(vc_net_wait_ns(b->net, 0, 1000), 99000, 102000);
    net_bench_free(b);
}

static void a_token_bucket_sends_at_once_what_it_has_saved(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_pair(
        1, &(struct vc_net_link_config){.bits_per_s = GBPS(8), .burst_bytes = 2500, .buffer_bytes = 1 << 20}, PLAIN);
    watch(b);
    net_bench_run(b, 10000);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
    net_bench_run(b, 14000); /* the bucket has 1500 bytes again */
    for (uint64_t i = 5; i < 7; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    /* A byte is a nanosecond. Two find 2500 bytes, the third waits for half of its own, the others follow at the rate.
     * That empties it at 12.5 us; of the two later ones the first finds enough, the second lacks 500. */
    static const uint64_t at[] = {10000, 10000, 10500, 11500, 12500, 14000, 14500};
    for (uint64_t i = 0; i < 7; i++)
        assert_int_equal(came.at_ns[i], at[i] * VC_TICKS_PER_NS);
    net_bench_free(b);
}

/* Two hosts and a switch with a slow link to host 1, whose buffer holds exactly ten packets of 1000 bytes. */
static struct net_bench *bottleneck(uint64_t buffer, uint64_t mark)
{
    struct net_bench *b = net_bench_new(1, 2, 1);
    assert_int_equal(vc_net_connect(b->net, 0, 2, &(struct vc_net_link_config){.bits_per_s = 0}, NULL), 0);
    assert_int_equal(
        vc_net_connect(b->net, 2, 1,
                       &(struct vc_net_link_config){.bits_per_s = GBPS(8), .buffer_bytes = buffer, .mark_bytes = mark},
                       NULL),
        0);
    net_bench_start(b, PLAIN);
    watch(b);
    return b;
}

static void a_buffer_drops_exactly_what_does_not_fit(void **state)
{
    (void)state;
    struct vc_net_link_counts c;
    for (uint64_t buffer = 9999; buffer <= 10001; buffer++) {
        struct net_bench *b = bottleneck(buffer, 0);
        uint64_t fit = buffer / 1000, number;
        for (uint64_t i = 0; i < 20; i++)
            assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
        net_bench_run(b, 500);
        vc_net_link_counts(b->net, 2, &c);
        assert_int_equal(c.dropped[VC_NET_DROP_QUEUE], 20 - fit);
        assert_int_equal(c.queue_bytes, fit * 1000);
        /* The first has not left a tick before it has; then there is room for one, and for one only. */
        rnl_sim_run(b->sim, 1000 * VC_TICKS_PER_NS - 1);
        (void)net_bench_send(b, 0, 1, 100, 1000 - WIRE, 0);
        rnl_sim_run(b->sim, 1000 * VC_TICKS_PER_NS);
        (void)net_bench_send(b, 0, 1, 101, 1000 - WIRE, 0);
        (void)net_bench_send(b, 0, 1, 102, 1000 - WIRE, 0);
        net_bench_run(b, UINT64_MAX);
        assert_int_equal(came.count, fit + 1);
        for (uint64_t i = 0; i < fit; i++)
            assert_int_equal(net_bench_recv(b, 1, &number, NULL), 1000 - WIRE), assert_int_equal(number, i);
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 1000 - WIRE);
        assert_int_equal(number, 101);
        net_bench_free(b);
    }
}

static void a_packet_that_finds_more_than_the_threshold_is_marked(void **state)
{
    (void)state;
    for (uint64_t mark = 4999; mark <= 5001; mark++) {
        for (int kind = 0; kind < 4; kind++) {
            struct net_bench *b = bottleneck(0, mark);
            struct vc_net_link_counts c;
            uint64_t number, marked = 0;
            uint8_t ecn = 0;
            for (uint64_t i = 0; i < 20; i++)
                assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, (uint8_t)kind), RNL_SOCKET_WENT);
            net_bench_run(b, UINT64_MAX);
            for (uint64_t i = 0; i < 20; i++) {
                /* Packet i found i * 1000 bytes. */
                assert_int_equal(net_bench_recv(b, 1, &number, &ecn), 1000 - WIRE);
                int full = number * 1000 > mark;
                assert_int_equal(ecn, full && kind != RNL_ECN_NOT ? RNL_ECN_CE : kind);
                marked += ecn == RNL_ECN_CE && kind != RNL_ECN_CE;
            }
            vc_net_link_counts(b->net, 2, &c);
            assert_int_equal(c.marked, marked);
            net_bench_free(b);
        }
    }
}

static void flows_share_a_bottleneck_by_what_they_send(void **state)
{
    /* Two senders through one switch to host 2: 3 to 1. */
    (void)state;
    struct net_bench *b = net_bench_new(1, 3, 1);
    const struct vc_net_link_config fast = {.bits_per_s = 0}, slow = {.bits_per_s = GBPS(8), .buffer_bytes = 1 << 20};
    assert_int_equal(vc_net_connect(b->net, 0, 3, &fast, NULL), 0);
    assert_int_equal(vc_net_connect(b->net, 1, 3, &fast, NULL), 0);
    assert_int_equal(vc_net_connect(b->net, 2, 3, &slow, NULL), 0);
    net_bench_start(b, (struct vc_net_socket_config){.plain = 1, .receive_bytes = 1 << 22});
    watch(b);
    for (uint64_t i = 0; i < 400; i++) {
        assert_int_equal(net_bench_send(b, i % 4 != 3 ? 0 : 1, 2, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
        rnl_sim_run(b->sim, i + 1); /* in this order, and all but at once */
    }
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(came.count, 400);
    for (uint64_t i = 0; i < 400; i++)
        assert_int_equal(came.at_ns[i], 1000 * (i + 1) * VC_TICKS_PER_NS);
    net_bench_free(b);
}

/* ---- changes ---- */

static void a_link_that_goes_down_loses_what_is_on_it(void **state)
{
    (void)state;
    const struct vc_net_link_config config = {.bits_per_s = GBPS(8), .delay_ns = 10000};
    struct net_bench *b = net_bench_pair(1, &config, PLAIN);
    watch(b);
    for (uint64_t i = 0; i < 20; i++) /* one each us; they arrive from 11 us on */
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000 - WIRE, 0), RNL_SOCKET_WENT);
    net_bench_run(b, 13500);
    assert_int_equal(came.count, 3);
    vc_net_link_up(b->net, 0, 0);
    assert_int_equal(net_bench_send(b, 0, 1, 30, 100, 0), RNL_SOCKET_WENT); /* a host does not know */
    net_bench_run(b, 14000);
    vc_net_link_up(b->net, 0, 1);
    assert_int_equal(net_bench_send(b, 0, 1, 31, 100, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(came.count, 4);
    assert_int_not_equal(came.at_ns[31], 0);
    struct vc_net_link_counts c;
    vc_net_link_counts(b->net, 0, &c);
    assert_int_equal(c.dropped[VC_NET_DROP_DOWN], 18);
    net_bench_free(b);
}

static void a_partition_stops_both_ways_and_a_block_one(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_new(1, 4, 1);
    assert_int_equal(vc_net_star(b->net, 4, &(struct vc_net_link_config){.delay_ns = 500}), 0);
    net_bench_start(b, PLAIN);
    static const struct {
        const char *words[3];
        int count;
        uint16_t through; /* bit 4 * from + to */
    } steps[] = {{{"heal"}, 1, 0x7bde}, {{"partition", "0-1"}, 2, 0x4812},  {{"partition", "0+2", "1"}, 3, 0x0104},
                 {{"heal"}, 1, 0x7bde}, {{"block", "0", "1-3"}, 3, 0x7bd0}, {{"unblock", "all", "2"}, 3, 0x7bd4},
                 {{"heal"}, 1, 0x7bde}, {{"off", "3"}, 2, 0x0356},          {{"on", "3"}, 2, 0x7bde}};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        uint16_t through = 0;
        uint64_t number;
        assert_int_equal(vc_net_verb_run(b->net, steps[s].count, steps[s].words), 0);
        for (uint32_t from = 0; from < 4; from++)
            for (uint32_t to = 0; to < 4; to++)
                if (from != to)
                    assert_int_equal(net_bench_send(b, from, to, 4 * from + to, 64, 0), RNL_SOCKET_WENT);
        net_bench_run(b, UINT64_MAX);
        for (uint32_t to = 0; to < 4; to++)
            while (net_bench_recv(b, to, &number, NULL) >= 0)
                through |= (uint16_t)(1u << number);
        assert_int_equal(through, steps[s].through);
    }
    /* What is under way when the partition comes is lost, too. */
    uint64_t number;
    assert_int_equal(net_bench_send(b, 0, 3, 1, 64, 0), RNL_SOCKET_WENT);
    assert_int_equal(vc_net_verb_run(b->net, 2, (const char *const[]){"partition", "0"}), 0);
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(net_bench_recv(b, 3, &number, NULL), -1);
    net_bench_free(b);
}

static void a_smaller_mtu_is_said_or_not(void **state)
{
    /* 0 - switch - 1: the second link shrinks from 9000 to 1500. */
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        struct net_bench *b = net_bench_new(1, 2, 1);
        const struct vc_net_link_config large = {.bits_per_s = GBPS(10), .mtu = 9000};
        struct rnl_socket_error e;
        uint64_t number;
        assert_int_equal(vc_net_star(b->net, 2, &large), 0);
        net_bench_start(b, PLAIN);
        assert_int_equal(b->socket[0]->datagram_max, 8972);
        assert_int_equal(net_bench_send(b, 0, 1, 1, 8972, 0), RNL_SOCKET_WENT);
        net_bench_run(b, UINT64_MAX);
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 8972);
        assert_int_equal(net_bench_send(b, 0, 1, 2, 8973, 0), RNL_SOCKET_TOO_LONG);
        const char *words[] = {"mtu", "s0>1", "1500", "silent"};
        assert_int_equal(vc_net_verb_run(b->net, 3 + silent, words), 0);
        assert_int_equal(b->socket[0]->datagram_max, 8972);
        assert_int_equal(net_bench_send(b, 0, 1, 3, 1473, 0), RNL_SOCKET_WENT);
        assert_int_equal(net_bench_send(b, 0, 1, 4, 1472, 0), RNL_SOCKET_WENT);
        net_bench_run(b, UINT64_MAX);
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 1472);
        assert_int_equal(number, 4);
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), -1);
        assert_int_equal(b->socket[0]->ops->error(b->socket[0], &e), !silent);
        if (!silent) {
            assert_int_equal(e.kind, RNL_SOCKET_ERROR_TOO_LONG);
            assert_int_equal(e.value, 1472);
            assert_int_equal(vc_net_host_of(b->net, &e.to), 1);
        }
        /* The own interface is known at once. */
        assert_int_equal(vc_net_verb_run(b->net, 3, (const char *const[]){"mtu", "0", "1500"}), 0);
        assert_int_equal(b->socket[0]->datagram_max, 1472);
        assert_int_equal(net_bench_send(b, 0, 1, 5, 1473, 0), RNL_SOCKET_TOO_LONG);
        net_bench_free(b);
    }
}

/* ---- sockets ---- */

static void nobody_at_a_port_is_said_to_the_sender(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_pair(1, &(struct vc_net_link_config){.delay_ns = 1000}, PLAIN);
    struct rnl_socket_error e;
    b->socket[1]->ops->close(b->socket[1]);
    assert_int_equal(net_bench_send(b, 0, 1, 1, 64, 0), RNL_SOCKET_WENT);
    net_bench_run(b, 1999);
    assert_int_equal(b->socket[0]->ops->error(b->socket[0], &e), 0);
    net_bench_run(b, 2000);
    assert_int_equal(b->socket[0]->ops->error(b->socket[0], &e), 1);
    assert_int_equal(e.kind, RNL_SOCKET_ERROR_REFUSED);
    assert_int_equal(vc_net_host_of(b->net, &e.to), 1);
    assert_int_equal(e.to.port, NET_PORT);
    assert_int_equal(b->socket[0]->ops->error(b->socket[0], &e), 0);
    net_bench_free(b);
}

static void a_receive_buffer_holds_what_linux_holds(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes, buffer, holds;
    } cases[] = {{64, 212992, 256},    {1400, 212992, 92},    {8900, 212992, 12},   {65000, 212992, 3},
                 {64, 8388608, 10082}, {1400, 8388608, 3640}, {8900, 8388608, 504}, {65000, 8388608, 127}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct net_bench *b = net_bench_pair(
            1, &(struct vc_net_link_config){.mtu = 65535},
            (struct vc_net_socket_config){.plain = 1, .receive_bytes = cases[i].buffer, .send_bytes = 1 << 30});
        struct vc_net_counts c;
        uint64_t number;
        for (uint32_t k = 0; k < cases[i].holds + 5; k++)
            assert_int_equal(net_bench_send(b, 0, 1, k, cases[i].bytes, 0), RNL_SOCKET_WENT);
        net_bench_run(b, UINT64_MAX);
        vc_net_counts(b->net, &c);
        assert_int_equal(c.delivered, cases[i].holds);
        assert_int_equal(c.dropped[VC_NET_DROP_RECEIVE], 5);
        for (uint32_t k = 0; k < cases[i].holds; k++)
            assert_int_equal(net_bench_recv(b, 1, &number, NULL), (int)cases[i].bytes), assert_int_equal(number, k);
        assert_int_equal(net_bench_send(b, 0, 1, 7, 64, 0), RNL_SOCKET_WENT); /* there is room again */
        net_bench_run(b, UINT64_MAX);
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 64);
        vc_net_counts(b->net, &c);
        assert_int_equal(c.under_way, 0);
        net_bench_free(b);
    }
}

static void a_send_buffer_and_a_host_queue_say_that_they_are_full(void **state)
{
    (void)state;
    struct net_bench *b =
        net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(8), .buffer_bytes = 1 << 20},
                       (struct vc_net_socket_config){.plain = 1, .send_bytes = 12560});
    /* A packet of 1000 takes 1256 of the send buffer: ten fit. */
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000, 0), RNL_SOCKET_WENT);
    assert_int_equal(net_bench_send(b, 0, 1, 10, 1000, 0), RNL_SOCKET_FULL);
    net_bench_run(b, 1065); /* the first leaves after 1066 ns */
    assert_int_equal(net_bench_send(b, 0, 1, 10, 1000, 0), RNL_SOCKET_FULL);
    net_bench_run(b, 1066);
    assert_int_equal(net_bench_send(b, 0, 1, 10, 1000, 0), RNL_SOCKET_WENT);
    assert_int_equal(net_bench_send(b, 0, 1, 11, 1000, 0), RNL_SOCKET_FULL);
    net_bench_free(b);

    b = net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(8), .buffer_bytes = 5 * 1066 + 66}, PLAIN);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(net_bench_send(b, 0, 1, i, 1000, 0), RNL_SOCKET_WENT);
    assert_int_equal(net_bench_send(b, 0, 1, 5, 1000, 0), RNL_SOCKET_NO_BUFFERS);
    net_bench_run(b, 1066);
    assert_int_equal(net_bench_send(b, 0, 1, 5, 1000, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    uint64_t number;
    for (uint64_t i = 0; i < 6; i++)
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 1000), assert_int_equal(number, i);
    net_bench_free(b);
}

static void runs_are_cut_on_the_way_and_merged_at_the_end(void **state)
{
    (void)state;
    static unsigned char data[10000], got[65536];
    struct net_bench *b =
        net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(10)}, (struct vc_net_socket_config){0});
    struct rnl_socket_out out[2] = {
        {.to = vc_net_addr(1, NET_PORT), .at = data, .bytes = 10000, .segment = 1400, .ecn = RNL_ECN_ECT0},
        {.to = vc_net_addr(1, NET_PORT), .at = data, .bytes = 300, .ecn = RNL_ECN_ECT0}};
    struct rnl_socket_in in = {.at = got, .room = sizeof got};
    struct rnl_socket_result r;
    struct vc_net_counts c;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    assert_int_equal(b->socket[0]->ops->send(b->socket[0], out, 2, &r), 2);
    net_bench_run(b, UINT64_MAX);
    vc_net_counts(b->net, &c);
    assert_int_equal(c.sent, 9);
    assert_int_equal(b->socket[1]->ops->recv(b->socket[1], &in, 1), 1);
    assert_int_equal(in.bytes, 10000); /* the eighth, of 200 bytes, ends the run */
    assert_int_equal(in.segment, 1400);
    assert_int_equal(in.ecn, RNL_ECN_ECT0);
    assert_memory_equal(got, data, 10000);
    assert_int_equal(b->socket[1]->ops->recv(b->socket[1], &in, 1), 1);
    assert_int_equal(in.bytes, 300);
    assert_int_equal(in.segment, 0);
    /* A run with a packet that is too long goes not at all. */
    out[0].segment = 1473;
    assert_int_equal(b->socket[0]->ops->send(b->socket[0], out, 2, &r), 0);
    assert_int_equal(r.stop, RNL_SOCKET_TOO_LONG);
    /* What does not fit into the room is cut, and says so. */
    out[0].segment = 1400;
    assert_int_equal(b->socket[0]->ops->send(b->socket[0], out, 1, &r), 1);
    net_bench_run(b, UINT64_MAX);
    in.room = 1000;
    assert_int_equal(b->socket[1]->ops->recv(b->socket[1], &in, 1), 1);
    assert_int_equal(in.bytes, 1000);
    assert_int_equal(in.cut, 1);
    net_bench_free(b);
}

static int rings;

static void on_ring(void *arg)
{
    (void)arg;
    rings++;
}

static void an_armed_socket_rings_once(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_pair(1, &(struct vc_net_link_config){.delay_ns = 100},
                                         (struct vc_net_socket_config){.plain = 1, .ring = on_ring});
    struct rnl_socket *s = b->socket[1];
    uint64_t number;
    rings = 0;
    (void)net_bench_send(b, 0, 1, 0, 8, 0);
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(rings, 0); /* not armed */
    assert_int_equal(s->ops->arm(s), 1);
    assert_int_equal(net_bench_recv(b, 1, &number, NULL), 8);
    assert_int_equal(s->ops->arm(s), 0);
    (void)net_bench_send(b, 0, 1, 1, 8, 0);
    (void)net_bench_send(b, 0, 1, 2, 8, 0);
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(rings, 1);
    assert_int_equal(s->ops->fd(s), RNL_ERR_UNSUPPORTED);
    net_bench_free(b);
}

static void a_host_reaches_itself_and_sockets_end_at_any_time(void **state)
{
    (void)state;
    struct net_bench *b =
        net_bench_pair(1, &(struct vc_net_link_config){.bits_per_s = GBPS(1), .delay_ns = 1000}, PLAIN);
    struct rnl_socket *other;
    uint64_t number;
    assert_int_equal(net_bench_send(b, 0, 0, 5, 100, 0), RNL_SOCKET_WENT);
    assert_int_equal(net_bench_recv(b, 0, &number, NULL), -1); /* never at once */
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(net_bench_recv(b, 0, &number, NULL), 100);
    assert_int_equal(vc_net_socket_open(b->net, 0, &(struct vc_net_socket_config){.port = NET_PORT}, &other),
                     RNL_ERR_ARG);
    assert_int_equal(vc_net_socket_open(b->net, 2, &(struct vc_net_socket_config){0}, &other), RNL_ERR_ARG);
    assert_int_equal(vc_net_socket_open(b->net, 0, &(struct vc_net_socket_config){0}, &other), 0);
    assert_int_not_equal(other->self.port, NET_PORT);
    /* What it sent goes on; what it had not read goes with it. */
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(net_bench_send(b, 0, 1, i, 100, 0), RNL_SOCKET_WENT);
        assert_int_equal(net_bench_send(b, 1, 0, i, 100, 0), RNL_SOCKET_WENT);
    }
    net_bench_run(b, net_bench_ns(b) + 3000);
    vc_net_socket_kill(b->socket[0]);
    net_bench_run(b, UINT64_MAX);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(net_bench_recv(b, 1, &number, NULL), 100);
    net_bench_socket(b, 0, PLAIN); /* the same port, another life */
    assert_int_equal(net_bench_recv(b, 0, &number, NULL), -1);
    assert_int_equal(net_bench_send(b, 1, 0, 77, 100, 0), RNL_SOCKET_WENT);
    net_bench_run(b, UINT64_MAX);
    assert_int_equal(net_bench_recv(b, 0, &number, NULL), 100);
    assert_int_equal(number, 77);
    net_bench_free(b); /* with sockets open and packets unread */
}

static void who_is_not_there_cannot_be_reached(void **state)
{
    (void)state;
    struct net_bench *b = net_bench_new(1, 3, 0);
    assert_int_equal(vc_net_connect(b->net, 0, 1, &(struct vc_net_link_config){0}, NULL), 0);
    net_bench_start(b, PLAIN);
    assert_int_equal(net_bench_send(b, 0, 1, 1, 8, 0), RNL_SOCKET_WENT);
    assert_int_equal(net_bench_send(b, 2, 1, 1, 8, 0), RNL_SOCKET_UNREACHABLE); /* has no link */
    struct rnl_socket_out out = {.to = vc_net_addr(3, NET_PORT), .at = "x", .bytes = 1};
    struct rnl_socket_result r;
    assert_int_equal(b->socket[0]->ops->send(b->socket[0], &out, 1, &r), 0);
    assert_int_equal(r.stop, RNL_SOCKET_UNREACHABLE);
    for (uint32_t host = 0; host < 3; host++) {
        struct rnl_socket_addr a = vc_net_addr(host, 9);
        assert_int_equal(vc_net_host_of(b->net, &a), host);
    }
    net_bench_run(b, UINT64_MAX);
    net_bench_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_arrives_after_sending_and_way),
        cmocka_unit_test(a_way_of_several_links_adds_up),
        cmocka_unit_test(a_queue_grows_by_what_comes_and_shrinks_by_what_is_sent),
        cmocka_unit_test(a_token_bucket_sends_at_once_what_it_has_saved),
        cmocka_unit_test(a_buffer_drops_exactly_what_does_not_fit),
        cmocka_unit_test(a_packet_that_finds_more_than_the_threshold_is_marked),
        cmocka_unit_test(flows_share_a_bottleneck_by_what_they_send),
        cmocka_unit_test(a_link_that_goes_down_loses_what_is_on_it),
        cmocka_unit_test(a_partition_stops_both_ways_and_a_block_one),
        cmocka_unit_test(a_smaller_mtu_is_said_or_not),
        cmocka_unit_test(nobody_at_a_port_is_said_to_the_sender),
        cmocka_unit_test(a_receive_buffer_holds_what_linux_holds),
        cmocka_unit_test(a_send_buffer_and_a_host_queue_say_that_they_are_full),
        cmocka_unit_test(runs_are_cut_on_the_way_and_merged_at_the_end),
        cmocka_unit_test(an_armed_socket_rings_once),
        cmocka_unit_test(a_host_reaches_itself_and_sockets_end_at_any_time),
        cmocka_unit_test(who_is_not_there_cannot_be_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
