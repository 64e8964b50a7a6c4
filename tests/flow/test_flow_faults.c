/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_flow_faults.c - two flows on a bad wire: each packet of an exchange lost, doubled or late in turn, and each pair
 * of them; sizes that stop passing; marks that mean nothing; and the end of a flow. */
#include "flow/pair.h"
#include "support/random.h"
#include "support/unit.h"

#define US (uint64_t)1000
#define MS (uint64_t)1000000
#define S  (uint64_t)1000000000

static struct pair *p;

static void begin(uint32_t unit, void (*set)(struct pair *))
{
    p = pair_new(unit, set);
    assert_non_null(p);
}

static int end(void **state)
{
    (void)state;
    if (p)
        pair_free(p);
    p = NULL;
    return 0;
}

static void everything_arrives(uint64_t within_ns)
{
    assert_true(pair_run(p, p->now + within_ns, pair_all_done));
    pair_check(p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(p->side[i].taken, p->side[!i].known);
}

/* ---- each packet, each pair ---- */

enum { FAULTS = 4, EXCHANGE = 40 };

static void do_it(unsigned fault, struct pair_fate *fate)
{
    fate->drop = fault == 1;
    fate->twice = fault == 2;
    if (fault == 3)
        fate->late_ns = 300 * US;
}

/* fate_arg: first packet, its fault, second packet, its fault */
static void two_faults(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)f;
    (void)from;
    if (index == q->fate_arg[0])
        do_it((unsigned)q->fate_arg[1], fate);
    else if (index == q->fate_arg[2])
        do_it((unsigned)q->fate_arg[3], fate);
}

static void answer_each(struct upper *u, uint64_t number)
{
    (void)number;
    if (u->known < 10)
        upper_send(u, 1);
}

/* Requests and answers one after another, then a few packets each way, then the end: about EXCHANGE datagrams. */
static void exchange(uint64_t a, unsigned fault_a, uint64_t b, unsigned fault_b)
{
    begin(200, NULL);
    p->fate = two_faults;
    p->fate_arg[0] = a;
    p->fate_arg[1] = fault_a;
    p->fate_arg[2] = b;
    p->fate_arg[3] = fault_b;
    p->side[0].units_per_packet = p->side[1].units_per_packet = 1;
    p->side[1].arrived = p->side[0].arrived = answer_each;
    upper_send(&p->side[0], 1);
    everything_arrives(20 * MS);
    p->side[1].arrived = p->side[0].arrived = NULL;
    upper_send(&p->side[0], 6);
    upper_send(&p->side[1], 3);
    everything_arrives(20 * MS);
    rnl_flow_close(&p->side[0].flow, 7, 1, p->now);
    pair_run(p, p->now + 200 * MS, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rnl_flow_state(&p->side[i].flow), RNL_FLOW_CLOSED);
        assert_int_equal(p->side[i].taken, p->side[!i].known);
    }
    assert_int_equal(p->side[1].flow.peer_reason, 7);
    pair_check(p);
    end(NULL);
}

static void each_pair_of_packets_may_be_lost_doubled_or_late(void **state)
{
    (void)state;
    unsigned step = test_slowness() > 1 ? 7 : 1, n = 0;
    for (uint64_t a = 0; a < EXCHANGE; a++)
        for (uint64_t b = a + 1; b < EXCHANGE; b++)
            for (unsigned faults = 0; faults < (FAULTS - 1) * (FAULTS - 1); faults++)
                if (n++ % step == 0)
                    exchange(a, 1 + faults % (FAULTS - 1), b, 1 + faults / (FAULTS - 1));
}

/* ---- sizes ---- */

static void too_long_vanish(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f,
                            struct pair_fate *fate)
{
    (void)index;
    (void)from;
    fate->drop = f->bytes > q->fate_arg[0];
}

static void datagrams_become_as_large_as_pass(void **state)
{
    (void)state;
    const uint32_t way[] = {1200, 1472, 2000, 8972};
    const uint32_t found[] = {1200, 1472, 1472, 8972};
    for (int i = 0; i < 4; i++) {
        begin(280, NULL);
        p->fate = too_long_vanish;
        p->fate_arg[0] = way[i];
        upper_send(&p->side[0], 20000);
        everything_arrives(1 * S);
        assert_int_equal(rnl_flow_mtu(&p->side[0].flow), found[i]);
        assert_int_equal(p->side[0].count.lost, 0);             /* probes are no data */
        assert_int_equal(rnl_flow_mtu(&p->side[1].flow), 1200); /* nobody wanted it there */
        end(NULL);
    }
}

static void what_the_own_network_refuses_is_sent_in_smaller_packets(void **state)
{
    (void)state;
    begin(1100, NULL);
    upper_send(&p->side[0], 4000);
    everything_arrives(1 * S);
    p->fate = too_long_vanish;
    p->fate_arg[0] = 4000;
    rnl_flow_too_big(&p->side[0].flow, 8972, p->now);
    assert_int_equal(rnl_flow_mtu(&p->side[0].flow), 1200);
    upper_send(&p->side[0], 4000);
    everything_arrives(1 * S);
    assert_true(rnl_flow_mtu(&p->side[0].flow) <= 4000);
}

/* ---- marks ---- */

static void with_ecn(struct pair *q)
{
    q->config[0].ecn = q->config[1].ecn = 1;
}

static void set_marks(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)fate;
    if (from == 0 && f->ecn != RNL_ECT_NOT && index % q->fate_arg[0] == 0)
        f->ecn = (uint32_t)q->fate_arg[1];
}

static void marks_that_mean_nothing_are_not_believed(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 2; how++) {
        begin(1000, with_ecn);
        p->fate = set_marks;
        p->fate_arg[0] = 1;
        p->fate_arg[1] = how ? RNL_ECT_CE : RNL_ECT_NOT; /* all marked; bleached */
        upper_send(&p->side[0], 20000);
        everything_arrives(10 * S);
        assert_int_equal(p->side[0].flow.ecn.state, RNL_ECN_FAILED);
        assert_int_equal(rnl_flow_ecn(&p->side[0].flow), RNL_ECT_NOT);
        upper_send(&p->side[0], 20000);
        everything_arrives(1 * S);
        assert_true(p->side[0].flow.congest.window >> 8 > 100000);
        end(NULL);
    }
}

/* ---- the end ---- */

static void closing_at_once_drops_the_rest_and_tells_the_peer(void **state)
{
    (void)state;
    begin(600, NULL);
    upper_send(&p->side[0], 3000);
    pair_run(p, p->now + 50 * US, NULL);
    rnl_flow_close(&p->side[0].flow, 9, 0, p->now);
    pair_run(p, p->now + 15 * US, NULL);
    assert_int_equal(rnl_flow_state(&p->side[1].flow), RNL_FLOW_DRAINING);
    assert_int_equal(p->side[1].flow.peer_reason, 9);
    pair_run(p, p->now + 10 * MS, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_CLOSED);
    assert_int_equal(rnl_flow_state(&p->side[1].flow), RNL_FLOW_CLOSED);
    assert_true(p->side[1].taken < 3000);
    pair_check(p);
}

static void drop_all(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)q;
    (void)index;
    (void)from;
    (void)f;
    fate->drop = 1;
}

/* ---- a peer that has the keys and lies ---- */

static uint32_t lie(struct test_random *r, struct rnl_keys *keys, uint64_t number[2], unsigned char *at)
{
    struct rnl_packet q = {.connection = 1};
    uint64_t next = p->side[0].flow.sent.next;
    uint8_t types[] = {RNL_PACKET_DATA, RNL_PACKET_DATA, RNL_PACKET_DATA, RNL_PACKET_PROBE, RNL_PACKET_CLOSE};
    q.type = types[test_random_below(r, test_random_one_in(r, 50) ? 5 : 4)];
    q.control = q.type != RNL_PACKET_DATA || test_random_one_in(r, 3);
    number[q.control] += 1 + test_random_size(r, 100000, NULL, 0);
    q.number = number[q.control];
    if (q.type == RNL_PACKET_DATA && test_random_one_in(r, 2))
        q.flags |= RNL_PACKET_ACK_WANTED;
    if (test_random_below(r, 4)) {
        q.flags |= RNL_PACKET_ACK | (test_random_below(r, 2) ? RNL_PACKET_ECN : 0);
        uint64_t back = test_random_size(r, next < 700 ? next : 700, NULL, 0);
        q.ack.largest = test_random_one_in(r, 200) ? next + test_random_below(r, 3) : next - 1 - (back ? back - 1 : 0);
        uint64_t left = q.ack.largest;
        q.ack.run = (uint16_t)test_random_below(r, left < 60 ? (uint32_t)left + 1 : 60);
        left -= q.ack.run;
        while (q.ack.ranges < RNL_ACK_RANGES_MAX && left > 80 && test_random_below(r, 8)) {
            struct rnl_ack_range *g = &q.ack.range[q.ack.ranges++];
            g->gap = (uint16_t)(1 + test_random_below(r, 30));
            g->length = (uint16_t)(1 + test_random_below(r, 30));
            left -= (uint64_t)g->gap + g->length;
        }
        q.ack.hold_ns = test_random_below(r, RNL_ACK_HOLD_MAX_NS);
        q.ack.window_bytes = test_random_below(r, 1 << test_random_below(r, 30));
        q.ack.ce = (uint32_t)test_random_next(r);
        q.ack.ect = (uint32_t)test_random_next(r);
    }
    uint32_t from = rnl_packet_encode(at, PAIR_DATAGRAM, &q), body = test_random_below(r, 300);
    assert_true(from > 0);
    for (uint32_t i = 0; i < body; i++)
        at[from + i] = (unsigned char)test_random_below(r, 3);
    struct rnl_probe probe = {.kind = RNL_PROBE_REPLY, .bytes = (uint16_t)test_random_next(r)};
    if (q.type == RNL_PACKET_CLOSE)
        body = rnl_close_encode(at, from, PAIR_DATAGRAM - RNL_PACKET_TAG, (uint32_t)test_random_next(r));
    else if (q.type == RNL_PACKET_PROBE && test_random_below(r, 2))
        body = rnl_probe_encode(at, from, PAIR_DATAGRAM - RNL_PACKET_TAG, &probe);
    uint32_t bytes = rnl_packet_finish(at, from + body);
    assert_int_equal(rnl_keys_seal(keys, &p->keys.sealer, at, bytes, from), 0);
    return bytes;
}

static uint32_t any_fill(void *ctx, unsigned char *at, uint32_t room, struct rnl_flow_note *notes, unsigned *count)
{
    (void)ctx;
    memset(at, 1, room);
    notes[0] = (struct rnl_flow_note){.kind = 1};
    *count = 1;
    return room;
}

static void any_note(void *ctx, const struct rnl_flow_note *note)
{
    ++*(uint64_t *)ctx;
    assert_int_equal(note->kind, 1);
}

static int any_frames(void *ctx, const unsigned char *at, uint32_t bytes, uint64_t number)
{
    (void)ctx;
    (void)number;
    return at[0] == 2 && bytes > 290 ? -1 : 0;
}

static void *any_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void any_free(void *ctx, void *at, size_t bytes)
{
    (void)ctx;
    (void)bytes;
    free(at);
}

static uint32_t any_window(void *ctx)
{
    (void)ctx;
    return 100000;
}

static void a_peer_that_lies_harms_only_its_own_connection(void **state)
{
    (void)state;
    static const struct rnl_flow_ops ops = {any_fill,  any_note, any_note,   any_frames,
                                            any_alloc, any_free, any_window, NULL};
    uint64_t broken = 0, ended = 0, alive = 0;
    for (uint64_t seed = 1; seed <= 300 / test_slowness(); seed++) {
        struct test_random r = test_random_of(seed, 9);
        unsigned char at[PAIR_DATAGRAM];
        struct rnl_keys mine, theirs;
        uint64_t number[2] = {0, 0}, notes = 0;
        struct rnl_flow_counters count = {0};
        begin(100, with_ecn);
        rnl_flow_fini(&p->side[0].flow);
        upper_keys_make(&p->keys, &mine, 0, 1);
        upper_keys_make(&p->keys, &theirs, 0, 0);
        struct rnl_flow_setup setup = {
            .config = &p->config[0],
            .ops = &ops,
            .path = &p->path[0],
            .count = &count,
            .ctx = &notes,
            .connection = 2,
            .window_bytes = 1 << 20,
            .mtu_bytes = 8972,
            .sealer = &p->keys.sealer,
            .keys = &mine,
        };
        struct rnl_flow *f = &p->side[0].flow;
        rnl_flow_init(f, &setup, p->now);
        int status = 0;
        for (int i = 0; i < 400 && status >= 0 && rnl_flow_state(f) < RNL_FLOW_DRAINING; i++) {
            p->now += test_random_size(&r, 100000000, NULL, 0);
            rnl_flow_has_data(f);
            for (int k = 0; k < 40 && rnl_flow_output(f, at, sizeof at, p->now) > 0; k++)
                ;
            uint32_t bytes = lie(&r, &theirs, number, at);
            status = rnl_flow_input(f, at, bytes, test_random_below(&r, 4), p->now);
            const char *bad = rnl_flow_valid(f);
            if (bad)
                fail_msg("seed %llu: %s", (unsigned long long)seed, bad);
        }
        *(status < 0 ? &broken : rnl_flow_state(f) >= RNL_FLOW_DRAINING ? &ended : &alive) += 1;
        end(NULL);
    }
    print_message("  %llu broken, %llu ended, %llu still there\n", (unsigned long long)broken,
                  (unsigned long long)ended, (unsigned long long)alive);
    assert_true(broken > 0 && ended > 0);
}

static void many_small_packets(struct pair *q)
{
    for (int i = 0; i < 2; i++) {
        q->config[i].congest.initial_packets = 4096;
        q->side[i].window = 1 << 26;
        q->side[i].units_per_packet = 1;
    }
}

/* As many packets are in flight as there can be records, and nothing of them is heard: there must be one for the probe.
 */
static void with_all_records_in_use_it_still_probes(void **state)
{
    (void)state;
    begin(64, many_small_packets);
    p->fate = drop_all;
    upper_send(&p->side[0], 3 * RNL_SENT_MAX);
    pair_run(p, p->now + 500 * MS, NULL);
    assert_in_range(p->side[0].flow.sent.count, RNL_SENT_MAX - 1000, RNL_SENT_MAX);
    assert_true(p->side[0].flow.sent.next - p->side[0].flow.sent.low >= RNL_SENT_MAX - 1);
    p->fate = NULL;
    everything_arrives(20 * S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_pair_of_packets_may_be_lost_doubled_or_late, end),
        cmocka_unit_test_teardown(datagrams_become_as_large_as_pass, end),
        cmocka_unit_test_teardown(what_the_own_network_refuses_is_sent_in_smaller_packets, end),
        cmocka_unit_test_teardown(marks_that_mean_nothing_are_not_believed, end),
        cmocka_unit_test_teardown(closing_at_once_drops_the_rest_and_tells_the_peer, end),
        cmocka_unit_test_teardown(a_peer_that_lies_harms_only_its_own_connection, end),
        cmocka_unit_test_teardown(with_all_records_in_use_it_still_probes, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
