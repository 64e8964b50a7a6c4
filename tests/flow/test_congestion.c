/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_congestion.c - round trips, verdicts, windows, pacing, sizes and marks: each part by itself. */
#include "net/flow/congest.h"
#include "net/flow/ecn.h"
#include "net/flow/mtu.h"
#include "support/unit.h"

#define S (uint64_t)1000000000

/* ---- round trips ---- */

static void round_trips_are_smoothed_as_in_rfc_9002(void **state)
{
    (void)state;
    struct rnl_rtt r = {0};
    rnl_rtt_sample(&r, 80000, 0);
    assert_int_equal(r.smoothed_ns, 80000);
    assert_int_equal(r.variance_ns, 40000);
    assert_int_equal(rnl_rtt_pto_ns(&r, 10000), 240000);
    rnl_rtt_sample(&r, 160000, 0);
    assert_int_equal(r.smoothed_ns, 90000);
    assert_int_equal(r.variance_ns, 50000);
    rnl_rtt_sample(&r, 160000, 70000); /* held for 70 of it */
    assert_int_equal(r.latest_ns, 90000);
    rnl_rtt_sample(&r, 100000, 70000); /* a hold that would leave less than the least is not believed */
    assert_int_equal(r.latest_ns, 100000);
    assert_int_equal(r.least_ns, 80000);
    rnl_rtt_sample(&r, 100 * S, 0);
    assert_int_equal(r.latest_ns, RNL_RTT_MAX_NS);
    for (int i = 0; i < 200; i++)
        rnl_rtt_sample(&r, 20000, 0);
    assert_in_range(rnl_rtt_pto_ns(&r, 10000), 30000, 30100); /* no more than the granularity on top */
}

static void the_base_of_a_path_is_its_least_round_trip(void **state)
{
    (void)state;
    struct rnl_path p = {.base_ns = 40000};
    rnl_path_sample(&p, 30000, 1 * S);
    rnl_path_sample(&p, 20000, 1 * S);
    rnl_path_sample(&p, 90000, 2 * S);
    assert_int_equal(p.base_ns, 20000);
    assert_false(rnl_path_draining(&p, 2 * S));
}

static void a_base_not_seen_for_long_is_looked_for_and_a_queue_of_others_is_not_believed(void **state)
{
    (void)state;
    struct rnl_path p = {.keep_ns = RNL_PATH_KEEPS_S * S}; /* of a path that is known for a while */
    rnl_path_sample(&p, 20000, 1 * S);
    rnl_path_sample(&p, 60000, 12 * S);
    assert_true(rnl_path_draining(&p, 12 * S));
    rnl_path_sample(&p, 50000, 12 * S + 100000);
    rnl_path_sample(&p, 21000, 12 * S + 200000); /* there it is */
    assert_false(rnl_path_draining(&p, 12 * S + 200000));
    assert_int_equal(p.base_ns, 20000);
    rnl_path_sample(&p, 60000, 30 * S);
    rnl_path_sample(&p, 60000, 31 * S);
    assert_false(rnl_path_draining(&p, 31 * S)); /* in vain, once */
    assert_int_equal(p.base_ns, 20000);
}

static void a_path_that_has_become_longer_is_believed_after_a_while(void **state)
{
    (void)state;
    struct rnl_path p = {0};
    rnl_path_sample(&p, 20000, 1 * S);
    for (uint64_t ms = 1000; ms < 60000; ms++)
        rnl_path_sample(&p, 120000 + ms % 7, ms * 1000000);
    assert_int_equal(p.base_ns, 120000);
}

static void what_a_full_packet_takes_on_the_wires_is_known_apart(void **state)
{
    (void)state;
    struct rnl_path p = {.base_ns = 40000, .keep_ns = RNL_PATH_KEEPS_S * S};
    rnl_path_sample_full(&p, 300000, 1500, 1500, false);
    assert_int_equal(rnl_path_wire_ns(&p, 1500), 0); /* it may have waited behind its flow's own */
    rnl_path_sample_full(&p, 120000, 200, 1500, true);
    assert_int_equal(rnl_path_wire_ns(&p, 1500), 0); /* it is no full one */
    rnl_path_sample_full(&p, 120000, 1500, 1500, true);
    rnl_path_sample_full(&p, 90000, 1500, 1500, false);
    rnl_path_sample_full(&p, 110000, 1500, 1500, true);
    assert_int_equal(rnl_path_wire_ns(&p, 1500), 50000); /* the least */
    assert_int_equal(rnl_path_wire_ns(&p, 300), 10000);
    for (uint64_t ms = 1000; ms < 60000; ms++)
        rnl_path_sample(&p, 140000, ms * 1000000);
    assert_int_equal(p.base_ns, 140000);
    assert_int_equal(rnl_path_wire_ns(&p, 1500), 50000); /* a longer way does not change the rate */
    rnl_path_sample_full(&p, 500000, 9000, 9000, false);
    assert_int_equal(rnl_path_wire_ns(&p, 9000), 0); /* of packets that long nothing is known */
    rnl_path_sample_full(&p, 440000, 9000, 9000, true);
    assert_int_equal(rnl_path_wire_ns(&p, 9000), 300000);
}

/* ---- verdicts ---- */

static void verdicts_that_were_wrong_come_later_next_time(void **state)
{
    (void)state;
    struct rnl_loss l;
    struct rnl_rtt r = {.smoothed_ns = 80000, .latest_ns = 40000};
    rnl_loss_init(&l);
    assert_int_equal(l.packets, 3);
    assert_int_equal(rnl_loss_wait_ns(&l, &r, 10000), 90000);
    r.smoothed_ns = 1000;
    r.latest_ns = 2000;
    assert_int_equal(rnl_loss_wait_ns(&l, &r, 10000), 10000);
    r.smoothed_ns = 80000;
    rnl_loss_was_wrong(&l, &r, 9, 130000);
    assert_int_equal(l.packets, 10);
    assert_true(rnl_loss_wait_ns(&l, &r, 10000) >= 130000);
    rnl_loss_was_wrong(&l, &r, 1000000, 1000000000); /* within bounds */
    assert_int_equal(l.packets, RNL_LOSS_PACKETS_MAX);
    assert_int_equal(l.eighths, RNL_LOSS_EIGHTHS_MAX);
    for (int i = 0; i < 100 * RNL_LOSS_CALM; i++)
        rnl_loss_round(&l);
    assert_int_equal(l.packets, RNL_LOSS_PACKETS);
    assert_int_equal(l.eighths, RNL_LOSS_EIGHTHS);
}

/* ---- windows ---- */

enum { PACKET = 1500 };
static const struct rnl_congest_limits limits = {.initial_packets = 10, .most_bytes = 1000000, .target_ns = 15000};

static struct rnl_congest_news news_at(uint64_t now_ns, uint64_t number, uint32_t rtt_ns)
{
    return (struct rnl_congest_news){
        .now_ns = now_ns,
        .number = number,
        .next = number + 10,
        .acked = PACKET,
        .rtt_ns = rtt_ns,
        .base_ns = 20000,
        .smoothed_ns = 20000,
        .packet = PACKET,
        .limited = 1,
    };
}

static uint64_t packets_q8(const struct rnl_congest *c)
{
    return c->window / PACKET;
}

/* `count` packets acknowledged, 2 us apart. */
static void feed(struct rnl_congest *c, uint64_t *number, unsigned count, uint32_t rtt_ns)
{
    for (unsigned i = 0; i < count; i++) {
        struct rnl_congest_news news = news_at(*number * 2000, *number, rtt_ns);
        rnl_congest_acked(c, &limits, &news);
        (*number)++;
    }
}

static void lose(struct rnl_congest *c, uint64_t number, unsigned packets)
{
    struct rnl_congest_news news = news_at(number * 2000, number, 0);
    rnl_congest_lost(c, &limits, &news, number - packets, number - 1, packets * PACKET, packets);
}

static void dlf_grows_below_its_target_and_shrinks_above(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    assert_int_equal(packets_q8(&c), 10 * 256);
    feed(&c, &n, 10, 20000);
    assert_int_equal(packets_q8(&c), 20 * 256); /* slow start */
    feed(&c, &n, 20, 100000);
    assert_true(packets_q8(&c) < 14 * 256);
    assert_true(packets_q8(&c) > 2 * 256); /* once a round trip, at most half */
    uint64_t before = c.window;
    feed(&c, &n, 10, 20000);
    assert_true(c.window > before);
    assert_true(packets_q8(&c) < 30 * 256); /* every cut ends slow start */
    for (int i = 0; i < 15; i++)
        feed(&c, &n, 10, 2000000);
    assert_int_equal(packets_q8(&c), 13); /* 0.05 packets are the least */
    for (int i = 0; i < 3000; i++)
        feed(&c, &n, 10, 20000);
    assert_int_equal(c.window >> 8, limits.most_bytes);
}

/* One with a threshold, so out of slow start. */
static void begin_with(struct rnl_congest *c, uint32_t window_packets_q8)
{
    rnl_congest_init(c, RNL_CONGEST_DLF, &limits, PACKET);
    c->window = c->threshold = (uint64_t)window_packets_q8 * PACKET;
}

static void dlf_cuts_by_all_that_is_above_its_target_as_one_of_many(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    begin_with(&c, 10 * 256);
    feed(&c, &n, 1, 60000); /* 40 us, 23 above, of 60 */
    assert_in_range(packets_q8(&c), 1570, 1600);
    begin_with(&c, 2 * 256);
    feed(&c, &n, 1, 60000); /* 19 above */
    assert_in_range(packets_q8(&c), 380, 386);
    begin_with(&c, 20 * 256);
    feed(&c, &n, 1, 60000); /* 24 above */
    assert_in_range(packets_q8(&c), 20 * 256 - 1680, 20 * 256 - 1600);
}

static void a_fall_that_no_queue_makes_is_remembered_for_a_while(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    begin_with(&c, 10 * 256);
    feed(&c, &n, 1, 95000);
    feed(&c, &n, 1, 20000);
    assert_int_equal(c.rough, 0); /* 75 us: a queue that goes */
    feed(&c, &n, 1, 95001);
    assert_int_equal(c.rough, 0);
    feed(&c, &n, 1, 20000);
    assert_true(c.rough > 0);
    unsigned most = c.rough;
    feed(&c, &n, 10 * (most / 2), 20000); /* ten packets are a round trip */
    assert_in_range(c.rough, 1, most - 1);
    feed(&c, &n, 10 * (most / 2 + 2), 20000);
    assert_int_equal(c.rough, 0);
}

static void who_is_held_back_by_the_peers_socket_makes_a_queue_too(void **state)
{
    (void)state;
    for (unsigned credited = 0; credited < 2; credited++) {
        struct rnl_congest c;
        rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
        for (uint64_t n = 100; n < 140; n++) {
            struct rnl_congest_news news = news_at(n * 2000, n, 100000);
            news.limited = 0;
            news.credited = (uint8_t)credited;
            rnl_congest_acked(&c, &limits, &news);
        }
        if (credited)
            assert_true(packets_q8(&c) < 5 * 256);
        else
            assert_int_equal(packets_q8(&c), 10 * 256);
    }
}

static void dlf_does_not_grow_what_is_not_used(void **state)
{
    (void)state;
    struct rnl_congest c;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    for (uint64_t n = 1; n < 1000; n++) {
        struct rnl_congest_news news = news_at(n * 2000, n, 20000);
        news.limited = 0;
        rnl_congest_acked(&c, &limits, &news);
    }
    assert_int_equal(packets_q8(&c), 10 * 256);
}

static void dlf_cuts_by_the_fraction_that_is_lost(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    feed(&c, &n, 30, 60000); /* leaves slow start */
    feed(&c, &n, 2000, 20000);
    uint64_t before = c.window;
    lose(&c, n, 1);
    feed(&c, &n, 20, 28000);
    assert_true(c.window > before * 95 / 100); /* one in a round trip, once: next to nothing */
    for (int i = 0; i < 30; i++) {
        lose(&c, n, 10);
        feed(&c, &n, 10, 28000);
    }
    assert_true(c.window < before / 2); /* half of all, again and again: a lot */
}

static void a_round_trip_that_jumps_is_no_queue(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    feed(&c, &n, 30, 60000);
    for (int i = 0; i < 4000; i++)
        feed(&c, &n, 1, i % 3 ? 60000 : 20000);
    assert_true(packets_q8(&c) > 20 * 256);
    for (int i = 0; i < 4000; i++)
        feed(&c, &n, 1, 60000);
    assert_true(packets_q8(&c) < 256); /* one that stays is */
}

static void hosts_that_wake_late_are_no_queue(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100, random = 1, sum = 0;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    /* Each end wakes up to 150 us late, and nothing waits on the way. */
    for (int i = 0; i < 20000; i++) {
        uint64_t first = random = random * 16807 % 2147483647, second = random = random * 16807 % 2147483647;
        feed(&c, &n, 1, 20000 + (uint32_t)(first % 150000 + second % 150000));
        sum += packets_q8(&c);
    }
    assert_true(sum / 20000 > 12 * 256); /* on average; 8 packets if they are taken for one */
}

static void a_queue_that_stays_with_no_window_is_a_rivals(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    unsigned most = 0;
    for (int i = 0; i < 20000; i++) {
        feed(&c, &n, 1, 120000);
        if (packets_q8(&c) > most && i > 1000)
            most = (unsigned)packets_q8(&c);
    }
    assert_true(most > 5 * 256);
    assert_true(c.state.dlf.rival_ns != 0);
    uint64_t before = c.window;
    lose(&c, n, 1); /* then a loss halves, as it does there */
    assert_true(c.window <= before / 2 + 256 * PACKET);
    feed(&c, &n, 10, 20000); /* gone */
    assert_true(c.state.dlf.rival_ns == 0);
}

static void newreno_and_cubic_cut_once_for_a_window(void **state)
{
    (void)state;
    const uint64_t left[] = {[RNL_CONGEST_NEWRENO] = 50, [RNL_CONGEST_CUBIC] = 70};
    for (unsigned algorithm = RNL_CONGEST_NEWRENO; algorithm <= RNL_CONGEST_CUBIC; algorithm++) {
        struct rnl_congest c;
        uint64_t n = 100;
        rnl_congest_init(&c, algorithm, &limits, PACKET);
        feed(&c, &n, 90, 20000);
        assert_int_equal(packets_q8(&c), 100 * 256);
        lose(&c, n, 1);
        assert_in_range(packets_q8(&c), left[algorithm] * 256 - 64, left[algorithm] * 256 + 64);
        uint64_t cut = c.window;
        lose(&c, n - 1, 1);
        assert_int_equal(c.window, cut);
        n += 10;
        feed(&c, &n, (unsigned)left[algorithm], 20000); /* one round trip: about one packet */
        assert_true(c.window > cut);
        assert_true(c.window < cut + 3 * PACKET * 256);
        feed(&c, &n, 60000, 20000);
        assert_true(c.window > cut * 3 / 2);
        struct rnl_congest_news news = news_at(n * 2000, n, 0);
        rnl_congest_collapse(&c, &limits, &news);
        assert_int_equal(packets_q8(&c), 2 * 256);
    }
}

static void a_cut_is_taken_back_when_all_its_losses_prove_wrong(void **state)
{
    (void)state;
    struct rnl_congest c;
    uint64_t n = 100;
    rnl_congest_init(&c, RNL_CONGEST_NEWRENO, &limits, PACKET);
    feed(&c, &n, 90, 20000);
    uint64_t before = c.window;
    lose(&c, n, 3);
    assert_false(rnl_congest_was_wrong(&c, n - 1, PACKET));
    assert_false(rnl_congest_was_wrong(&c, n - 2, PACKET));
    assert_true(c.window < before);
    assert_true(rnl_congest_was_wrong(&c, n - 3, PACKET));
    assert_int_equal(c.window, before);
    assert_false(rnl_congest_was_wrong(&c, n - 3, PACKET));
}

static void below_a_packet_one_is_in_flight_at_a_time(void **state)
{
    (void)state;
    struct rnl_congest c;
    rnl_congest_init(&c, RNL_CONGEST_DLF, &limits, PACKET);
    c.window = PACKET * 256 / 4;
    assert_true(rnl_congest_open(&c, 0, PACKET));
    assert_false(rnl_congest_open(&c, 100, PACKET));
    assert_int_equal(rnl_congest_trip_ns(&c, 20000, 30000, PACKET), 30000);
    c.window = PACKET * 256 * 4;
    assert_true(rnl_congest_open(&c, 3 * PACKET, PACKET));
    assert_false(rnl_congest_open(&c, 3 * PACKET + 1, PACKET));
    c.threshold = c.window;
    assert_int_equal(rnl_congest_trip_ns(&c, 20000, 30000, PACKET), 16000);
}

/* ---- pacing ---- */

static unsigned sent_within(struct rnl_pace *p, const struct rnl_pace_limits *l, uint64_t from, uint64_t to,
                            uint64_t window_q8, unsigned *most)
{
    unsigned count = 0, row = 0;
    for (uint64_t now = from; now < to;) {
        if (now < p->release_ns) {
            now = p->release_ns;
            row = 0;
            continue;
        }
        rnl_pace_sent(p, l, PACKET, window_q8, 20000, now);
        count++;
        if (++row > *most)
            *most = row;
    }
    return count;
}

static void a_window_is_spread_over_its_round_trip_in_small_bursts(void **state)
{
    (void)state;
    const struct rnl_pace_limits l = {.burst_ns = 8000, .burst = 64, .max_ns = 5000000};
    struct rnl_pace p = {0};
    unsigned most = 0;
    unsigned count = sent_within(&p, &l, 1 * S, 1 * S + 2000000, (uint64_t)20 * PACKET << 8, &most);
    assert_in_range(count, 1990, 2015); /* 20 in 20 us, for 2 ms */
    assert_in_range(most, 4, 9);        /* 8 us of them at a time */
    most = 0;
    count = sent_within(&p, &l, 2 * S, 2 * S + 2000000, (uint64_t)2 * PACKET << 8, &most);
    assert_in_range(count, 198, 203);
    assert_int_equal(most, 1);
    count = sent_within(&p, &l, 3 * S, 4 * S, PACKET / 1000 << 8, &most);
    assert_in_range(count, 199, 202); /* not more than 5 ms apart */
    rnl_pace_sent(&p, &l, PACKET, PACKET << 8, 0, 5 * S);
    assert_int_equal(p.release_ns, 5 * S); /* not paced */
}

static void a_host_that_wakes_late_makes_up_for_it(void **state)
{
    (void)state;
    const struct rnl_pace_limits l = {.burst_ns = 8000, .burst = 64, .max_ns = 5000000};
    const uint64_t window_q8 = (uint64_t)20 * PACKET << 8;
    /* A flow that did not wait has saved nothing; a little lateness is no reason to send several packets at once. */
    static const unsigned rows[3][4] = {{0, 70000, 100, 140}, {1, 70000, 980, 1010}, {1, 7000, 570, 600}};
    for (int i = 0; i < 3; i++) {
        struct rnl_pace p = {0};
        unsigned count = 0, row = 0; /* 20 packets in 200 us, by a host that wakes so long after it is to send */
        for (uint64_t now = 1 * S; now < 1 * S + 10000000; now = now < p.release_ns ? p.release_ns + rows[i][1] : now) {
            rnl_pace_sent(&p, &l, PACKET, window_q8, 200000, now);
            p.waits = rows[i][0], count++;
        }
        assert_in_range(count, rows[i][2], rows[i][3]);
        for (p.waits = true; 2 * S >= p.release_ns; row++)
            rnl_pace_sent(&p, &l, PACKET, window_q8, 200000, 2 * S);
        assert_in_range(row, 20, 22); /* a window at most, however late it is */
    }
}

/* ---- sizes ---- */

static const uint16_t sizes[RNL_MTU_SIZES] = {1200, 1472, 8972};

static void sizes_are_asked_about_upwards_until_one_does_not_pass(void **state)
{
    (void)state;
    struct rnl_mtu m;
    rnl_mtu_init(&m, sizes, 9000);
    assert_int_equal(m.bytes, 1200);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 10), 0); /* not before data wants it */
    rnl_mtu_filled(&m, 10);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 10), 1472);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 11), 0);
    assert_int_equal(rnl_mtu_passed(&m, 8972, 12), 0); /* nobody asked */
    assert_int_equal(rnl_mtu_passed(&m, 1472, 12), 1);
    assert_int_equal(m.bytes, 1472);
    for (unsigned i = 0; i < RNL_MTU_TRIES; i++)
        assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 3000 * (i + 1)), 8972);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 15000), 0);
    assert_int_equal(m.bytes, 1472);
    assert_int_equal(m.due_ns, UINT64_MAX);
    rnl_mtu_filled(&m, 20000);
    assert_int_equal(m.due_ns, UINT64_MAX);
    rnl_mtu_filled(&m, 20000 + RNL_MTU_AGAIN_S * S);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 20000 + RNL_MTU_AGAIN_S * S), 8972);
}

static void the_first_question_waits_only_for_room(void **state)
{
    (void)state;
    struct rnl_mtu m;
    rnl_mtu_init(&m, sizes, 9000);
    rnl_mtu_filled(&m, 10);
    assert_int_equal(rnl_mtu_probe(&m, 1200, 1, 1000, 10), 0);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 10), 1472);
}

static void large_packets_that_vanish_make_it_fall_back_but_random_losses_do_not(void **state)
{
    (void)state;
    struct rnl_mtu m;
    rnl_mtu_init(&m, sizes, 9000);
    rnl_mtu_filled(&m, 10);
    rnl_mtu_probe(&m, 9000, 1, 1000, 10);
    rnl_mtu_passed(&m, 1472, 12);
    for (uint64_t n = 1; n < 1000; n++) {
        rnl_mtu_acked(&m, n + 1, 1472); /* a later one was acked: the path takes this size */
        assert_int_equal(rnl_mtu_lost(&m, n, 1472, 20), 0);
    }
    for (uint64_t n = 2000; n < 2000 + RNL_MTU_VANISHED - 1; n++)
        assert_int_equal(rnl_mtu_lost(&m, n, 1472, 20), 0);
    assert_int_equal(rnl_mtu_lost(&m, 2500, 1200, 20), 0); /* small ones tell nothing */
    assert_int_equal(rnl_mtu_lost(&m, 2600, 1472, 20), 1);
    assert_int_equal(m.bytes, 1200);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 20), 1472); /* and asks again */
}

static void what_the_own_network_refuses_is_not_tried_again(void **state)
{
    (void)state;
    struct rnl_mtu m;
    rnl_mtu_init(&m, sizes, 9000);
    rnl_mtu_filled(&m, 10);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 10), 1472);
    assert_int_equal(rnl_mtu_refused(&m, 1472, 11), 0);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 12), 1471);
    assert_int_equal(rnl_mtu_passed(&m, 1471, 13), 1);
    assert_int_equal(rnl_mtu_refused(&m, 1471, 14), 1);
    assert_int_equal(m.bytes, 1200);
    rnl_mtu_init(&m, sizes, 1000); /* both sides' limit is below the table */
    assert_int_equal(m.bytes, 1000);
    rnl_mtu_filled(&m, 10);
    assert_int_equal(rnl_mtu_probe(&m, 9000, 1, 1000, 10), 0);
}

/* ---- marks ---- */

static void bleached_marks_and_falling_counts_end_it(void **state)
{
    (void)state;
    struct rnl_ecn_trust e;
    rnl_ecn_init(&e, 1);
    rnl_ecn_acked(&e, 5, 0, 0, 0, 0);
    assert_int_equal(e.state, RNL_ECN_FAILED);
    assert_int_equal(rnl_ecn_codepoint(&e), RNL_ECT_NOT);
    rnl_ecn_init(&e, 1);
    rnl_ecn_acked(&e, 20, 1, 0, 20, 0);
    rnl_ecn_acked(&e, 5, 1, 0, 24, 0); /* one came unmarked */
    assert_int_equal(e.state, RNL_ECN_FAILED);
    rnl_ecn_init(&e, 1);
    rnl_ecn_acked(&e, 20, 1, 0, 20, 0);
    rnl_ecn_acked(&e, 5, 1, 0, 10, 0);
    assert_int_equal(e.state, RNL_ECN_FAILED);
    rnl_ecn_init(&e, 1);
    rnl_ecn_lost(&e, RNL_ECN_TEST);
    assert_int_equal(e.state, RNL_ECN_FAILED);
}

static void marks_on_everything_without_a_queue_end_it(void **state)
{
    (void)state;
    struct rnl_ecn_trust e;
    rnl_ecn_init(&e, 1);
    uint32_t ce = 0;
    for (unsigned i = 0; i < RNL_ECN_ALWAYS - 1; i++)
        rnl_ecn_acked(&e, 1, 1, ++ce, 0, 0);
    assert_int_equal(e.state, RNL_ECN_BELIEVED);
    rnl_ecn_acked(&e, 1, 1, ++ce, 0, 1); /* there was a queue, once */
    for (unsigned i = 0; i < RNL_ECN_ALWAYS - 1; i++)
        rnl_ecn_acked(&e, 1, 1, ++ce, 0, 0);
    assert_int_equal(e.state, RNL_ECN_BELIEVED);
    rnl_ecn_acked(&e, 1, 1, ++ce, 0, 0);
    assert_int_equal(e.state, RNL_ECN_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips_are_smoothed_as_in_rfc_9002),
        cmocka_unit_test(the_base_of_a_path_is_its_least_round_trip),
        cmocka_unit_test(a_base_not_seen_for_long_is_looked_for_and_a_queue_of_others_is_not_believed),
        cmocka_unit_test(a_path_that_has_become_longer_is_believed_after_a_while),
        cmocka_unit_test(what_a_full_packet_takes_on_the_wires_is_known_apart),
        cmocka_unit_test(verdicts_that_were_wrong_come_later_next_time),
        cmocka_unit_test(dlf_grows_below_its_target_and_shrinks_above),
        cmocka_unit_test(dlf_cuts_by_all_that_is_above_its_target_as_one_of_many),
        cmocka_unit_test(a_fall_that_no_queue_makes_is_remembered_for_a_while),
        cmocka_unit_test(who_is_held_back_by_the_peers_socket_makes_a_queue_too),
        cmocka_unit_test(dlf_does_not_grow_what_is_not_used),
        cmocka_unit_test(dlf_cuts_by_the_fraction_that_is_lost),
        cmocka_unit_test(a_round_trip_that_jumps_is_no_queue),
        cmocka_unit_test(hosts_that_wake_late_are_no_queue),
        cmocka_unit_test(a_queue_that_stays_with_no_window_is_a_rivals),
        cmocka_unit_test(newreno_and_cubic_cut_once_for_a_window),
        cmocka_unit_test(a_cut_is_taken_back_when_all_its_losses_prove_wrong),
        cmocka_unit_test(below_a_packet_one_is_in_flight_at_a_time),
        cmocka_unit_test(a_window_is_spread_over_its_round_trip_in_small_bursts),
        cmocka_unit_test(a_host_that_wakes_late_makes_up_for_it),
        cmocka_unit_test(sizes_are_asked_about_upwards_until_one_does_not_pass),
        cmocka_unit_test(the_first_question_waits_only_for_room),
        cmocka_unit_test(large_packets_that_vanish_make_it_fall_back_but_random_losses_do_not),
        cmocka_unit_test(what_the_own_network_refuses_is_not_tried_again),
        cmocka_unit_test(bleached_marks_and_falling_counts_end_it),
        cmocka_unit_test(marks_on_everything_without_a_queue_end_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
