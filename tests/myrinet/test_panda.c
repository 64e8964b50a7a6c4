/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_panda.c - Panda on FM/MC, on FM 1.1 and on Ethernet, with each optimization left out: all members handle the
 * multicasts of all in one order, each once; every call has its own reply; messages come once, and in order of their
 * sender; also where one member is slow, computes, or keeps messages. */
#include "sim/myrinet/systems/panda/below.h"
#include "tests/myrinet/sides.h"

enum { EACH = 5, LARGEST = 17000, NODES = 8, KEPT = 3 };

struct member {
    struct panda_on on;
    uint32_t order[NODES * EACH], multicasts, requests, messages[NODES], wrong;
    struct panda_message *kept[KEPT];
    uint32_t keeps, reply_at;
    int done, handles;
};

struct group {
    struct member m[NODES];
    uint32_t slow_us;
};

static const uint32_t sizes[] = {4, 100, 9000, 17000, 36, 8192, 232};

static uint32_t bytes_of(uint32_t node, uint32_t k)
{
    return sizes[(node * 3 + k) % (sizeof sizes / sizeof sizes[0])];
}

static uint32_t word_of(uint32_t what, uint32_t node, uint32_t k)
{
    return what << 24 | node << 16 | k;
}

static void fill(const struct myri_side *s, uint32_t at, uint32_t word, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, at + i, word);
}

/* A message is all of one word, which says what it is, whose, and which of them. */
static uint32_t checked(struct panda *p, const struct panda_message *m, uint32_t what, uint32_t from)
{
    struct member *me = p->owner;
    uint32_t word = myri_host_word(p->side->host, m->at), k = word & 0xffff;
    me->wrong += me->handles; /* one after another */
    me->wrong += m->from != from || word != word_of(what, from, k) || m->bytes != bytes_of(from, k + what);
    for (uint32_t i = 0; i < m->bytes; i += 4)
        me->wrong += myri_host_word(p->side->host, m->at + i) != word;
    return k;
}

static void is_all(struct panda *p)
{
    struct member *me = p->owner;
    uint32_t n = p->side->nodes, messages = 0;
    for (uint32_t i = 0; i < n; i++)
        messages += me->messages[i];
    if (me->multicasts == n * EACH && me->requests == EACH && messages == EACH && !me->done)
        panda_signal(p, &me->done);
}

/* The last few are kept. */
static void free_later(struct panda *p, struct panda_message *m)
{
    struct member *me = p->owner;
    struct panda_message **place = &me->kept[me->keeps++ % KEPT];
    if (*place)
        panda_free(p, *place);
    *place = m;
}

static void on_multicast(struct panda *p, struct panda_message *m)
{
    struct member *me = p->owner;
    const struct group *g = (const struct group *)p->side->handled_arg;
    uint32_t k = checked(p, m, 1, m->from);
    if (me->multicasts < NODES * EACH)
        me->order[me->multicasts] = m->from << 16 | k;
    me->multicasts++;
    if (g->slow_us && p->side->node == p->side->nodes - 1)
        myri_task_spend(p->side->task, g->slow_us * (uint64_t)1000000, "slow");
    free_later(p, m);
    is_all(p);
}

static void on_request(struct panda *p, struct panda_message *m)
{
    struct member *me = p->owner;
    uint32_t k = checked(p, m, 2, (p->side->node + p->side->nodes - 1) % p->side->nodes);
    me->wrong += k != me->requests++;
    uint32_t n = bytes_of(p->side->node, k + 3);
    fill(p->side, me->reply_at, word_of(3, p->side->node, k), n);
    me->handles = 1;
    panda_rpc_reply(p, m, me->reply_at, n);
    me->handles = 0;
    panda_free(p, m);
    is_all(p);
}

static void on_message(struct panda *p, struct panda_message *m)
{
    struct member *me = p->owner;
    me->wrong += checked(p, m, 4, m->from) != me->messages[m->from]++;
    panda_free(p, m);
    is_all(p);
}

static void everybody(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct member *me = &((struct group *)all->arg)->m[s->node];
    struct panda *p = &me->on.panda;
    uint32_t next = (s->node + 1) % s->nodes, before = (s->node + s->nodes - 1) % s->nodes;
    for (uint32_t k = 0; k < EACH; k++) {
        fill(s, s->out, word_of(1, s->node, k), bytes_of(s->node, k + 1));
        panda_group_send(p, s->out, bytes_of(s->node, k + 1));
        if ((s->node + k) % 3 == 0)
            panda_compute(p, 2000000000);
        fill(s, s->out, word_of(2, s->node, k), bytes_of(s->node, k + 2));
        struct panda_message *m = panda_rpc_trans(p, next, s->out, bytes_of(s->node, k + 2));
        if (!m)
            return;
        me->wrong += checked(p, m, 3, next) != k;
        panda_free(p, m);
        fill(s, s->out, word_of(4, s->node, k), bytes_of(s->node, k + 4));
        panda_send(p, before, s->out, bytes_of(s->node, k + 4));
    }
    (void)panda_wait(p, &me->done, RNL_SIM_NEVER);
}

static void open_member(struct group *g, struct sides *all, const char *system, struct panda_lacks lacks, uint32_t i)
{
    struct panda *p = &g->m[i].on.panda;
    p->owner = &g->m[i];
    p->lacks = lacks;
    p->on_multicast = on_multicast;
    p->on_request = on_request;
    p->on_message = on_message;
    all->side[i].handled_arg = g;
    g->m[i].reply_at = myri_host_take(all->side[i].host, LARGEST + PANDA_ROOM, 0);
    enum panda_below below = strcmp(system, "panda-initial") == 0    ? PANDA_ON_FM1
                             : strcmp(system, "panda-ethernet") == 0 ? PANDA_ON_FLIP
                                                                     : PANDA_ON_FMMC;
    assert_int_equal(panda_open_on(&g->m[i].on, &all->side[i], below), 0);
}

static void all_at_once(const char *system, struct panda_lacks lacks, uint32_t nodes, uint32_t slow_us)
{
    static struct sides all;
    static struct group g;
    memset(&g, 0, sizeof g);
    g.slow_us = slow_us;
    make_sides(&all, system, "H-A", nodes, LARGEST, nodes);
    all.arg = &g;
    for (uint32_t i = 0; i < nodes; i++)
        open_member(&g, &all, system, lacks, i);
    start_sides(&all, everybody);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s, %u nodes: %s", system, nodes, rnl_last_error()->text);
    for (uint32_t i = 0; i < nodes; i++) {
        if (g.m[i].wrong)
            fail_msg("%s: %u words are wrong at node %u of %u", system, g.m[i].wrong, i, nodes);
        assert_int_equal(g.m[i].done, 1);
        uint32_t slots = g.m[i].on.panda.free_slots;
        for (uint32_t k = 0; k < KEPT; k++)
            slots += g.m[i].kept[k] && !g.m[i].kept[k]->below;
        assert_int_equal(slots, g.m[i].on.panda.slots);
        assert_int_equal(g.m[i].multicasts, nodes * EACH);
        assert_int_equal(g.m[i].requests, EACH);
        assert_int_equal(g.m[i].messages[(i + 1) % nodes], EACH);
        assert_memory_equal(g.m[i].order, g.m[0].order, nodes * EACH * sizeof g.m[0].order[0]);
    }
    assert_int_equal(all.hw->count.packets_lost + all.hw->count.packets_bad, 0);
    assert_int_equal(all.hw->count.packets_received, all.hw->count.packets_sent);
    free_sides(&all);
}

static const struct {
    const char *system; /* whose firmware it has */
    struct panda_lacks lacks;
} kinds[] = {
    {"panda", {0}},
    {"panda-no-multicast", {.multicast = 1}},
    {"panda-initial", {1, 1, 1, 1, 1}},
    {"panda-ethernet", {1, 1, 1, 1, 1}},
    {"panda", {.threads = 1}},
    {"panda", {.buffers = 1}},
    {"panda", {.whole = 1}},
    {"panda", {.flat = 1}},
    {"panda-no-multicast", {1, 1, 1, 1, 1}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void multicasts_come_in_one_order_between_calls_that_have_their_replies(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (uint32_t nodes = 2; nodes <= NODES; nodes++)
            all_at_once(kinds[k].system, kinds[k].lacks, nodes, 0);
}

static void a_slow_member_holds_nothing_back_for_good(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        all_at_once(kinds[k].system, kinds[k].lacks, 5, 5000);
}

static double of(const char *system, enum myri_measure what, uint32_t bytes)
{
    struct myri_outcome out;
    struct myri_experiment x = experiment(system, "H-A", what, bytes);
    x.count = what == MYRI_TURNS ? 2 : bytes > 10000 ? 10 : 50;
    x.receivers = what == MYRI_TURNS ? NODES - 1 : 0;
    if (myri_experiment_run(&x, &out) < 0)
        fail_msg("%s: %s", system, rnl_last_error()->text);
    assert_int_equal(out.received, out.sent);
    assert_int_equal(out.wrong, 0);
    return out.value;
}

/* Node 0 calls while node 1 computes: interrupts answer, and their time is not the computing's. */
static void caller_and_computer(struct myri_task *t, void *arg)
{
    enum { CALLS = 10 };
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct member *me = &((struct group *)all->arg)->m[s->node];
    uint64_t from = myri_hw_now(s->hw), by = me->on.panda.fm->kernel ? 10 : 1; /* as much slower */
    uint64_t long_ps = by * 80000000000;
    if (s->node == 1) {
        panda_compute(&me->on.panda, long_ps);
        uint64_t more = myri_hw_now(s->hw) - from - long_ps;
        me->wrong += more < CALLS * (uint64_t)80000000 || more > long_ps / 2 || s->host->interrupts < CALLS;
        return;
    }
    for (uint32_t k = 0; k < CALLS; k++) {
        fill(s, s->out, word_of(2, 0, k), bytes_of(0, k + 2));
        from = myri_hw_now(s->hw);
        struct panda_message *m = panda_rpc_trans(&me->on.panda, 1, s->out, bytes_of(0, k + 2));
        if (!m)
            return;
        me->wrong += checked(&me->on.panda, m, 3, 1) != k || myri_hw_now(s->hw) - from > by * 5000000000;
        panda_free(&me->on.panda, m);
    }
}

static void answered_while_it_computes(const char *system, struct panda_lacks lacks)
{
    static struct sides all;
    static struct group g;
    memset(&g, 0, sizeof g);
    make_sides(&all, system, "H-A", 2, LARGEST, 1);
    all.arg = &g;
    for (uint32_t i = 0; i < 2; i++)
        open_member(&g, &all, system, lacks, i);
    start_sides(&all, caller_and_computer);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(g.m[0].wrong + g.m[1].wrong, 0);
    assert_int_equal(g.m[1].requests, 10);
    free_sides(&all);
}

static void what_comes_interrupts_a_program_that_computes(void **state)
{
    (void)state;
    answered_while_it_computes("panda", (struct panda_lacks){0});
    answered_while_it_computes("panda-ethernet", PANDA_INITIAL);
}

/* Each optimization makes what it is for shorter, and all of them are less than what the initial system takes. */
static void each_optimization_saves_what_it_is_for(void **state)
{
    (void)state;
    static const char *const without[] = {"panda-threads", "panda-copies", "panda-fragments", "panda-windows"};
    double final = of("panda", MYRI_CALL, 16), initial = of("panda-initial", MYRI_CALL, 16);
    double fm = of("fmmc", MYRI_ROUND_TRIP, 32), thread = machine("H-A").v[MYRI_M_thread_switch];
    assert_true(final > fm + thread && final < initial);
    for (size_t k = 0; k < sizeof without / sizeof without[0]; k++)
        if (!(of(without[k], MYRI_CALL, 16) > final + 5))
            fail_msg("%s takes no longer than panda", without[k]);
    double turns = of("panda", MYRI_TURNS, 16);
    assert_true(of("panda-no-multicast", MYRI_TURNS, 16) > turns + 20);
    assert_true(of("panda-initial", MYRI_TURNS, 16) > 2 * turns);
    /* what a call moves is as fast as FM/MC, for no byte is copied but by FM/MC; with a copy of its own it is not */
    double rate = of("panda", MYRI_CALL_RATE, 65536), below = of("fmmc", MYRI_STREAM_RATE, 32768);
    assert_true(rate > 0.9 * below && rate < 1.02 * below);
    assert_true(of("panda-copies", MYRI_CALL_RATE, 65536) < 0.8 * rate);
}

enum { MANY = 2 * MYRI_ETHER_PLACES }; /* more than the sequencer's kernel has places for */

static void on_one_of_many(struct panda *p, struct panda_message *m)
{
    struct member *me = p->owner;
    panda_free(p, m);
    if (++me->multicasts == MANY)
        panda_signal(p, &me->done);
}

static void multicast_many(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct member *me = &((struct group *)all->arg)->m[s->node];
    for (uint32_t k = 0; k < MANY && s->node == 1; k++)
        panda_group_send(&me->on.panda, s->out, 4);
    (void)panda_wait(&me->on.panda, &me->done, RNL_SIM_NEVER);
}

/* A call is two datagrams, and three switches: to Panda's thread at each end, and back to who called. */
static void ethernet_takes_its_datagrams_and_switches_and_a_sender_waits_for_its_multicast(void **state)
{
    (void)state;
    const struct myri_machine m = machine("H-A");
    const double *v = m.v;
    double way = (double)myri_ether_ps(4 + PANDA_ROOM) / 1e6 + v[MYRI_M_interrupt] + 2 * v[MYRI_M_datagram] +
                 2 * v[MYRI_M_system_call];
    double least = 2 * way + 3 * v[MYRI_M_process_switch], is = of("panda-ethernet", MYRI_CALL, 4);
    if (!(is > least && is < least + 200))
        fail_msg("%.1f us, at least %.1f", is, least);
    static struct sides all;
    static struct group g;
    memset(&g, 0, sizeof g);
    make_sides(&all, "panda-ethernet", "H-A", 3, LARGEST, 1);
    all.arg = &g;
    for (uint32_t i = 0; i < 3; i++) {
        open_member(&g, &all, "panda-ethernet", PANDA_INITIAL, i);
        g.m[i].on.panda.on_multicast = on_one_of_many;
    }
    start_sides(&all, multicast_many);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(g.m[i].multicasts, MANY);
    free_sides(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multicasts_come_in_one_order_between_calls_that_have_their_replies),
        cmocka_unit_test(a_slow_member_holds_nothing_back_for_good),
        cmocka_unit_test(what_comes_interrupts_a_program_that_computes),
        cmocka_unit_test(ethernet_takes_its_datagrams_and_switches_and_a_sender_waits_for_its_multicast),
        cmocka_unit_test(each_optimization_saves_what_it_is_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
