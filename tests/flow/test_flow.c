/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_flow.c - two flows against each other: what each rule of flow.h promises, one at a time. */
#include "flow/pair.h"
#include "net/flow/flow_internal.h"
#include "support/unit.h"

#define US (uint64_t)1000
#define MS (uint64_t)1000000
#define S  (uint64_t)1000000000

static struct pair *p;

static struct pair *begin(uint32_t unit, void (*set)(struct pair *))
{
    p = pair_new(unit, set);
    assert_non_null(p);
    return p;
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

static void drop_one(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)f;
    (void)from;
    fate->drop = index == q->fate_arg[0];
}

static void drop_all_of(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)f;
    (void)index;
    fate->drop = q->fate_arg[0] >> from & 1;
}

/* ---- acknowledgements ---- */

/* What an acknowledgement says of the window can wait until the answer has gone, but for a window below a packet: its
 * pace is all that it has. */
static void echo_with_little_window(struct upper *u, uint64_t number)
{
    u->flow.congest.window = (uint64_t)rnl_flow_packet(&u->flow) << 8 >> number % 2;
    if (number % 2 == 0)
        u->flow.congest.window <<= 4;
    upper_send(u, 1);
}

static void count_those_not_judged(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f,
                                   struct pair_fate *fate)
{
    const struct rnl_flow *flow = &q->side[from].flow;
    (void)index, (void)f, (void)fate;
    q->fate_arg[flow->congest.window >> 8 < rnl_flow_packet(flow)] += flow->judge;
}

static void a_window_below_a_packet_is_judged_before_it_is_used(void **state)
{
    (void)state;
    begin(8, NULL);
    p->fate = count_those_not_judged;
    p->side[1].arrived = p->side[0].arrived = echo_with_little_window;
    upper_send(&p->side[0], 1);
    pair_run(p, p->now + 100 * MS, NULL);
    pair_check(p);
    assert_true(p->side[0].done > 100);
    assert_true(p->fate_arg[0] > 50); /* the others are */
    assert_int_equal(p->fate_arg[1], 0);
}

static void every_sixteenth_packet_is_acknowledged_and_a_gap_sooner(void **state)
{
    (void)state;
    struct rnl_received r;
    struct rnl_ack ack;
    rnl_received_init(&r);
    assert_int_equal(rnl_received_ack(&r, 5, &ack), 0);
    for (uint64_t n = 1; n <= 15; n++) {
        rnl_received_data(&r, n, 0, 0, 16, 25000, 100 + n);
        assert_int_equal(r.due_ns, 101 + 25000);
    }
    rnl_received_data(&r, 16, 0, 0, 16, 25000, 200);
    assert_int_equal(r.due_ns, 0);
    rnl_received_ack_sent(&r);
    assert_int_equal(r.due_ns, UINT64_MAX);
    for (uint64_t n = 18; n <= 24; n++) { /* 17 is missing, in a long stream */
        rnl_received_data(&r, n, 0, 0, 16, 25000, 300);
        assert_int_equal(r.due_ns, 300 + 25000);
    }
    rnl_received_data(&r, 25, 0, 0, 16, 25000, 300);
    assert_int_equal(r.due_ns, 0);
    rnl_received_ack_sent(&r);
    for (uint64_t n = 26; n <= 40; n++) { /* nothing is missing since then */
        rnl_received_data(&r, n, 0, 0, 16, 25000, 400);
        assert_int_equal(r.due_ns, 400 + 25000);
    }
    rnl_received_data(&r, 17, 0, 0, 16, 25000, 400);
    assert_int_equal(r.due_ns, 0); /* it was late */
    rnl_received_ack_sent(&r);
    rnl_received_data(&r, 41, 1, 0, 16, 25000, 500);
    rnl_received_ack_sent(&r); /* of one packet: what is under way is short */
    rnl_received_data(&r, 43, 0, 0, 16, 25000, 500);
    assert_int_equal(r.due_ns, 0); /* 42 is missing */
    rnl_received_ack_sent(&r);
    rnl_received_data(&r, 44, 1, 0, 16, 25000, 500);
    assert_int_equal(r.due_ns, 0); /* it asked */
}

/* ---- loss ---- */

static void look_at_unasked(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f,
                            struct pair_fate *fate)
{
    const struct rnl_flow *flow = &q->side[0].flow;
    uint64_t packet = flow->mtu.bytes + flow->config->wire_bytes;
    uint64_t quarter = flow->congest.window >> 10, few = (flow->congest.rough ? 6 : 2) * packet;
    (void)index, (void)f, (void)fate;
    if (from == 0 && flow->since_request > (quarter > few ? quarter : few))
        q->fate_arg[0]++;
    if (from == 0 && flow->since_request > 2 * packet)
        q->fate_arg[1]++;
}

static void each_quarter_of_a_window_is_to_be_acknowledged_at_once(void **state)
{
    (void)state;
    begin(1000, NULL);
    p->fate = look_at_unasked;
    upper_send(&p->side[0], 5000);
    everything_arrives(1 * S);
    assert_int_equal(p->fate_arg[0], 0);
}

static void what_is_lost_in_the_middle_is_sent_again_within_a_round_trip(void **state)
{
    (void)state;
    begin(1160, NULL);
    p->side[0].units_per_packet = 1;
    p->fate = drop_one;
    p->fate_arg[0] = 2;
    uint64_t from = p->now;
    upper_send(&p->side[0], 8);
    everything_arrives(1 * MS);
    assert_int_equal(p->side[0].count.lost, 1);
    assert_int_equal(p->side[0].count.sent, 9);
    assert_int_equal(p->side[0].count.probes, 0);
    assert_true(p->now - from <=
                4 * PAIR_DELAY_NS + p->config[1].ack_delay_ns + 1 * US); /* by three later ones, not by time */
    assert_int_equal(p->side[0].count.spurious, 0);
}

static void the_last_packet_lost_is_found_by_a_probe(void **state)
{
    (void)state;
    begin(64, NULL);
    upper_send(&p->side[0], 1);
    everything_arrives(1 * MS);
    uint64_t window = p->side[0].flow.congest.window, from = p->now;
    p->fate = drop_one;
    p->fate_arg[0] = p->sent;
    upper_send(&p->side[0], 1);
    everything_arrives(10 * MS);
    assert_int_equal(p->side[0].count.probes, 1);
    assert_true(p->now - from < 200 * US);
    assert_int_equal(p->side[1].again, 0);
    assert_true(p->side[0].flow.congest.window >= window / 2);
}

static void probes_come_ever_more_seldom_up_to_a_bound(void **state)
{
    (void)state;
    begin(64, NULL);
    p->fate = drop_all_of;
    p->fate_arg[0] = 3;
    upper_send(&p->side[0], 1);
    pair_run(p, p->now + 20 * S, NULL);
    assert_in_range(p->side[0].count.probes, 200, 215); /* one each 100 ms, and a few before */
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_SUSPECT);
    p->fate = NULL;
    everything_arrives(200 * MS);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_UP);
}

/* Its timer begins anew with each packet. */
static void who_sends_often_is_stuck_no_later_than_who_has_timeouts(void **state)
{
    (void)state;
    begin(64, NULL);
    struct rnl_flow *f = &p->side[0].flow;
    upper_send(&p->side[0], 8);
    everything_arrives(1 * MS);
    p->fate = drop_all_of;
    p->fate_arg[0] = 3;
    const uint64_t began = p->now, pto = 100 * US;
    for (int i = 0; i < 8; i++) {
        upper_send(&p->side[0], 1);
        pair_run(p, p->now + pto / 2, NULL);
        assert_int_equal(f->timeouts, 0);
        assert_true(p->now - began >= 2 * pto || rnl_flow_stuck_ns(f, p->now) == 0);
    }
    assert_in_range(rnl_flow_stuck_ns(f, p->now), 3 * pto, p->now - began);
    p->fate = NULL;
    everything_arrives(100 * MS);
    assert_int_equal(rnl_flow_stuck_ns(f, p->now), 0);
}

static void drop_some(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)f;
    (void)from;
    fate->drop = index % q->fate_arg[0] == q->fate_arg[1];
}

/* ---- what is refused ---- */

static void an_acknowledgement_of_a_packet_never_sent_is_broken(void **state)
{
    (void)state;
    begin(64, NULL);
    upper_send(&p->side[0], 3);
    everything_arrives(1 * MS);
    /* The other side believes that it has got a packet which was never sent. */
    rnl_received_data(&p->side[1].flow.received, p->side[0].flow.sent.next, 1, 0, 16, 25000, p->now);
    pair_run(p, p->now + 1 * MS, NULL);
    assert_int_equal(p->broken, 1);
    assert_non_null(strstr(rnl_last_error()->text, "were sent"));
}

static unsigned char kept[PAIR_DATAGRAM];
static uint32_t kept_bytes;
static void keep(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    (void)fate;
    (void)from;
    if (index == q->fate_arg[0]) {
        memcpy(kept, f->data, f->bytes);
        kept_bytes = f->bytes;
    }
}

static void a_replay_is_refused_also_much_later(void **state)
{
    (void)state;
    begin(64, NULL);
    p->fate = keep;
    upper_send(&p->side[0], 1);
    everything_arrives(1 * MS);
    for (int i = 0; i < 2; i++) {
        unsigned char again[PAIR_DATAGRAM];
        memcpy(again, kept, kept_bytes);
        assert_int_equal(rnl_flow_input(&p->side[1].flow, again, kept_bytes, 0, p->now), RNL_FLOW_OLD);
        upper_send(&p->side[0], 3000);
        everything_arrives(100 * MS);
    }
    assert_int_equal(p->side[1].again, 0);
    assert_int_equal(p->side[1].count.duplicates, 2);
}

static void keep_and_drop(struct pair *q, uint64_t index, unsigned from, struct pair_flight *f, struct pair_fate *fate)
{
    keep(q, index, from, f, fate);
    fate->drop = index == q->fate_arg[0];
}

static void the_flow_that_a_packet_names_is_under_its_tag(void **state)
{
    (void)state;
    begin(64, NULL);
    p->fate = keep_and_drop;
    upper_send(&p->side[0], 1);
    pair_run(p, p->now + PAIR_DELAY_NS / 2, NULL);
    for (unsigned flow = 0; flow < 4; flow++) {
        unsigned char other[PAIR_DATAGRAM];
        memcpy(other, kept, kept_bytes);
        other[1] ^= (unsigned char)((3 - flow) << RNL_PACKET_FLOW_SHIFT);
        assert_int_equal(rnl_flow_input(&p->side[1].flow, other, kept_bytes, 0, p->now),
                         flow == 3 ? RNL_FLOW_NEW : RNL_FLOW_REJECTED);
    }
    everything_arrives(100 * MS);
}

/* ---- several flows ---- */

static void what_is_in_flight_is_handed_over_when_the_peer_is_heard_elsewhere(void **state)
{
    (void)state;
    begin(64, NULL);
    struct rnl_flow *f = &p->side[0].flow;
    assert_int_equal(rnl_flow_takes_ns(f, 1), UINT64_MAX);
    upper_send(&p->side[0], 100);
    everything_arrives(1 * MS);
    uint64_t few = rnl_flow_takes_ns(f, 1000), many = rnl_flow_takes_ns(f, 1000000);
    assert_true(few >= 2 * PAIR_DELAY_NS && few < many);
    p->away_until[1] = p->now + 50 * MS;
    upper_send(&p->side[0], 20);
    pair_run(p, p->now + 20000, NULL);
    assert_true(f->sent.count > 0 && f->timeouts == 0);
    assert_false(rnl_flow_is_cut(f, p->now)); /* not yet */
    pair_run(p, p->now + 10 * MS, NULL);
    assert_true(f->timeouts > 0);
    assert_false(rnl_flow_is_cut(f, f->heard_ns + 1000)); /* it may be the peer that is silent */
    assert_true(rnl_flow_is_cut(f, p->now));
    uint32_t count = f->sent.count;
    rnl_flow_hand_over(f);
    assert_int_equal(f->sent.count, count); /* its packets may arrive all the same */
    for (uint64_t n = f->sent.low; n < f->sent.next; n++)
        assert_int_equal(rnl_sent_at(&f->sent, n)->notes, 0);
    everything_arrives(100 * MS);
    assert_true(p->side[1].again > 0);
}

/* ---- limits ---- */

static void tiny_keys(struct pair *q)
{
    q->keys.limits = (struct rnl_key_limits){.change_after = 4, .never_after = 64, .forgeries = 1000};
}

static void a_side_that_only_acknowledges_changes_its_keys_too(void **state)
{
    (void)state;
    begin(600, tiny_keys);
    upper_send(&p->side[0], 2000);
    everything_arrives(10 * S);
    assert_true(p->side[1].flow.keys.tx_phase > 5);
}

static void large_numbers(struct pair *q)
{
    (void)q;
}

static void numbers_may_be_large_and_end_at_their_limit(void **state)
{
    (void)state;
    uint64_t from = ((uint64_t)1 << 62) - 20;
    begin(600, large_numbers);
    for (int i = 0; i < 2; i++) {
        p->side[i].flow.sent.next = p->side[i].flow.sent.low = p->side[i].flow.sent.base = from;
        p->side[!i].flow.received.largest = p->side[!i].flow.received.floor = from - 1;
        p->side[!i].flow.received.word[(from - 1) % RNL_RECEIVED_BITS / 64] |= (uint64_t)1 << (from - 1) % 64;
        p->side[i].flow.loss.largest = p->side[i].flow.judged = from - 1;
    }
    p->fate = drop_some;
    p->fate_arg[0] = 9;
    upper_send(&p->side[0], 400);
    upper_send(&p->side[1], 100);
    everything_arrives(1 * S);
    assert_true(p->side[0].flow.sent.next > (uint64_t)1 << 62);
    p->config[0].number_limit = p->side[0].flow.sent.next + 5;
    upper_send(&p->side[0], 100);
    pair_run(p, p->now + 1 * S, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_DEAD);
    assert_true(p->side[0].flow.sent.next <= p->config[0].number_limit + 1);
}

static void small_window(struct pair *q)
{
    q->side[1].window = 8000;
}

static void no_more_is_in_flight_than_the_peers_socket_holds(void **state)
{
    (void)state;
    begin(1100, small_window);
    upper_send(&p->side[0], 300);
    for (int i = 0; i < 3000 && !pair_all_done(p); i++) {
        pair_run(p, p->now + 1 * US, pair_all_done);
        assert_true(p->side[0].flow.charge <= 8000);
    }
    everything_arrives(100 * MS);
    p->side[1].window = 0; /* a closed window lets one packet at a time through */
    upper_send(&p->side[0], 50);
    everything_arrives(100 * MS);
}

static void who_had_nothing_to_send_has_saved_no_time(void **state)
{
    (void)state;
    for (int says_end = 0; says_end < 2; says_end++) {
        begin(1000, NULL);
        p->side[0].says_end = says_end;
        upper_send(&p->side[0], 5000);
        everything_arrives(100 * MS);
        pair_run(p, p->now + 10 * MS, NULL);
        uint64_t packets = (p->side[0].flow.congest.window >> 8) / rnl_flow_packet(&p->side[0].flow), before = p->sent;
        upper_send(&p->side[0], 5000);
        pair_run(p, p->now, NULL);
        assert_true(packets > 1000);
        assert_in_range(p->sent - before, 1, p->config[0].pace.burst + 1); /* not a window */
        everything_arrives(100 * MS);
        end(state);
    }
}

static void without_memory_it_waits_and_goes_on(void **state)
{
    (void)state;
    begin(600, NULL);
    p->side[0].no_memory = 1;
    upper_send(&p->side[0], 10);
    pair_run(p, p->now + 5 * MS, NULL);
    assert_int_equal(p->side[0].count.sent, 0);
    p->side[0].no_memory = 0;
    everything_arrives(5 * MS);
}

/* ---- silence ---- */

static void short_lives(struct pair *q)
{
    for (int i = 0; i < 2; i++) {
        q->config[i].suspect_ns = 1 * S;
        q->config[i].dead_ns = 5 * S;
    }
}

static void a_peer_that_never_calls_again_is_dead_after_its_bound_and_not_before(void **state)
{
    (void)state;
    begin(600, short_lives);
    upper_send(&p->side[0], 1);
    everything_arrives(1 * MS);
    p->away_until[1] = UINT64_MAX;
    pair_run(p, p->now + 60 * S, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_UP); /* nothing is expected of it */
    uint64_t from = p->now;
    upper_send(&p->side[0], 1);
    pair_run(p, from + 1 * S - 1, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_UP);
    pair_run(p, from + 5 * S - 1, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_SUSPECT);
    pair_run(p, from + 5 * S + 200 * MS, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_DEAD);
    assert_int_equal(rnl_flow_deadline(&p->side[0].flow), UINT64_MAX);
}

static void alive(struct pair *q)
{
    short_lives(q);
    q->config[0].keepalive_ns = 2 * S;
}

static void an_idle_peer_is_asked_for_a_sign_of_life_if_wanted(void **state)
{
    (void)state;
    begin(600, alive);
    pair_run(p, p->now + 60 * S, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_UP);
    assert_in_range(p->sent, 50, 70);
    p->away_until[1] = UINT64_MAX;
    pair_run(p, p->now + 8 * S, NULL);
    assert_int_equal(rnl_flow_state(&p->side[0].flow), RNL_FLOW_DEAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_window_below_a_packet_is_judged_before_it_is_used, end),
        cmocka_unit_test_teardown(every_sixteenth_packet_is_acknowledged_and_a_gap_sooner, end),
        cmocka_unit_test_teardown(each_quarter_of_a_window_is_to_be_acknowledged_at_once, end),
        cmocka_unit_test_teardown(what_is_lost_in_the_middle_is_sent_again_within_a_round_trip, end),
        cmocka_unit_test_teardown(the_last_packet_lost_is_found_by_a_probe, end),
        cmocka_unit_test_teardown(probes_come_ever_more_seldom_up_to_a_bound, end),
        cmocka_unit_test_teardown(who_sends_often_is_stuck_no_later_than_who_has_timeouts, end),
        cmocka_unit_test_teardown(an_acknowledgement_of_a_packet_never_sent_is_broken, end),
        cmocka_unit_test_teardown(a_replay_is_refused_also_much_later, end),
        cmocka_unit_test_teardown(the_flow_that_a_packet_names_is_under_its_tag, end),
        cmocka_unit_test_teardown(what_is_in_flight_is_handed_over_when_the_peer_is_heard_elsewhere, end),
        cmocka_unit_test_teardown(a_side_that_only_acknowledges_changes_its_keys_too, end),
        cmocka_unit_test_teardown(numbers_may_be_large_and_end_at_their_limit, end),
        cmocka_unit_test_teardown(no_more_is_in_flight_than_the_peers_socket_holds, end),
        cmocka_unit_test_teardown(who_had_nothing_to_send_has_saved_no_time, end),
        cmocka_unit_test_teardown(without_memory_it_waits_and_goes_on, end),
        cmocka_unit_test_teardown(a_peer_that_never_calls_again_is_dead_after_its_bound_and_not_before, end),
        cmocka_unit_test_teardown(an_idle_peer_is_asked_for_a_sign_of_life_if_wanted, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
