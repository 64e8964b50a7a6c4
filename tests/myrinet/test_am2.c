/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_am2.c - AM-II: whatever the network loses, spoils or has overtaken, each message is handed over once, or comes
 * back with a reason; a slow receiver and a node without an endpoint; endpoints that come to the card and go. */
#include "sim/myrinet/systems/am2/host.h"
#include "tests/myrinet/sides.h"

static const char *firmware; /* the system of this round: the same with each of two firmwares */
enum { EACH = 25, LONG = 3000 };

struct seen {
    struct am2 am[MYRI_HW_NODES];
    uint32_t times[MYRI_HW_NODES][MYRI_HW_NODES * EACH], handled[MYRI_HW_NODES], wrong;
    uint32_t returned[8], back, finished, slow_us;
};

static void on_message(struct am2 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct seen *s = f->owner;
    struct myri_space *space = f->resident.space;
    uint32_t word = myri_space_word(space, NULL, at), me = f->resident.task->host->id;
    for (uint32_t i = 0; i < bytes; i += 4)
        s->wrong += myri_space_word(space, NULL, at + i) != word;
    s->wrong += word >> 16 != from || bytes != ((word & 1) ? LONG : 20u);
    s->times[me][from * EACH + (word & 0xffff) % EACH]++;
    s->handled[me]++;
    if (s->slow_us && me == 0)
        myri_task_spend(f->resident.task, s->slow_us * (uint64_t)1000000, "compute");
}

static void on_return(struct am2 *f, uint32_t to, uint32_t reason)
{
    struct seen *s = f->owner;
    (void)to;
    s->returned[reason & 7]++;
    s->back++;
}

static void request(struct myri_side *s, struct am2 *f, uint32_t to, uint32_t k)
{
    uint32_t bytes = k & 1 ? LONG : 20;
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_side_set_word(s, s->out + i, s->node << 16 | k);
    am2_request(f, to, 5, s->out, bytes);
}

/* Each node sends to each other one in turn, and takes in what comes until all have all. */
static void everybody(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct am2 *f = &seen->am[s->node];
    f->resident.task = t;
    for (uint32_t k = 0; k < EACH; k++)
        request(s, f, (s->node + 1 + k % (s->nodes - 1)) % s->nodes, k);
    uint32_t all_of_them = 0;
    while (all_of_them + seen->back < EACH * s->nodes && !s->hw->fault[0]) {
        (void)am2_poll(f);
        all_of_them = 0;
        for (uint32_t i = 0; i < s->nodes; i++)
            all_of_them += seen->handled[i];
    }
}

static void run_all(struct sides *all, struct seen *seen, uint32_t nodes, double lost, double bad, double late)
{
    make_sides(all, firmware, "H-PP", nodes, LONG, nodes);
    all->arg = seen;
    all->hw->lost_per_2_32 = (uint64_t)(lost * 4294967296.0);
    all->hw->bad_per_2_32 = (uint64_t)(bad * 4294967296.0);
    all->hw->late_per_2_32 = (uint64_t)(late * 4294967296.0);
    for (uint32_t i = 0; i < nodes; i++) {
        seen->am[i].owner = seen;
        seen->am[i].handler[5] = on_message;
        seen->am[i].returned = on_return;
        assert_int_equal(am2_open(&seen->am[i], all->hw, i, 0, all->side[i].space), 0);
        for (uint32_t to = 0; to < nodes; to++)
            am2_map(&seen->am[i], to, to, 0);
    }
}

static void each_message_is_handed_over_once(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    static const double faults[][3] = {{0, 0, 0}, {0.1, 0, 0}, {0, 0.1, 0}, {0, 0, 0.2}, {0.15, 0.1, 0.2}};
    static const uint32_t nodes[] = {2, 3, 8, 32};
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 5; k++) {
            memset(&seen, 0, sizeof seen);
            seen.slow_us = k == 0 ? 150 : 0;
            run_all(&all, &seen, nodes[n], faults[k][0], faults[k][1], faults[k][2]);
            start_sides(&all, everybody);
            if (myri_hw_run(all.hw) < 0)
                fail_msg("%u nodes, faults %d: %s", nodes[n], k, rnl_last_error()->text);
            assert_int_equal(seen.wrong, 0);
            assert_int_equal(seen.back, 0);
            uint32_t once = 0;
            for (uint32_t i = 0; i < nodes[n]; i++)
                for (uint32_t m = 0; m < nodes[n] * EACH; m++) {
                    assert_true(seen.times[i][m] <= 1);
                    once += seen.times[i][m];
                }
            assert_int_equal(once, nodes[n] * EACH);
            free_sides(&all);
        }
}

static void ask_in_vain(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    seen->am[s->node].resident.task = t;
    if (s->node) {
        am2_close(&seen->am[1]);
        return;
    }
    myri_task_spend(t, 1000000000, "compute");
    for (uint32_t k = 0; k < 6; k++) /* more than there are channels */
        request(s, &seen->am[0], 1, k);
    request(s, &seen->am[0], 7, 6); /* no node */
    while (seen->back < 7 && !s->hw->fault[0])
        (void)am2_poll(&seen->am[0]);
}

static void what_nobody_takes_comes_back_with_a_reason(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    for (int unreachable = 0; unreachable < 2; unreachable++) {
        memset(&seen, 0, sizeof seen);
        run_all(&all, &seen, 2, unreachable ? 1 : 0, 0, 0);
        all.hw->horizon_ps = 500000000000u;
        start_sides(&all, ask_in_vain);
        if (myri_hw_run(all.hw) < 0)
            fail_msg("%s", rnl_last_error()->text);
        assert_int_equal(seen.handled[1], 0);
        assert_int_equal(seen.returned[AM2_UNREACHABLE], unreachable ? 6 : 0);
        assert_int_equal(seen.returned[AM2_BAD_ENDPOINT], unreachable ? 1 : 7);
        free_sides(&all);
    }
}

static void one_that_does_not_look(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct am2 *f = &seen->am[s->node];
    f->resident.task = t;
    if (s->node) {
        for (uint32_t k = 0; k < EACH; k++)
            request(s, f, 0, k);
        while (f->sent[0] >= AM2_CREDITS_MOST && !s->hw->fault[0])
            (void)am2_poll(f);
        return;
    }
    myri_task_spend(t, 20000000000u, "compute");
    seen->finished = am2_kernel_peek(&f->resident, (uint32_t)offsetof(struct am2_frame, ready));
    while (seen->handled[0] < EACH && !seen->back && !s->hw->fault[0])
        (void)am2_poll(f);
}

static void a_window_holds_senders_back(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    run_all(&all, &seen, 2, 0, 0, 0);
    all.hw->horizon_ps = 500000000000u;
    start_sides(&all, one_that_does_not_look);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(seen.finished, AM2_WINDOW);
    assert_true(seen.am[1].held_back > 0);
    assert_int_equal(seen.handled[0], EACH);
    free_sides(&all);
}

/* ---- more endpoints of a node than its card has frames ---- */

enum { OF_NODE = 9, OF_ALL = 3 * OF_NODE, ROUNDS = 4, IN_ROUND = 16 };
struct many {
    struct am2 am[OF_ALL];
    struct myri_space space[OF_ALL];
    uint32_t at[OF_ALL], times[OF_ALL][OF_ALL][ROUNDS * IN_ROUND], handled, wrong, back;
};

static void on_one_of_many(struct am2 *f, uint32_t from, uint32_t at, uint32_t bytes)
{
    struct many *w = f->owner;
    uint32_t word = myri_space_word(f->resident.space, NULL, at), me = (uint32_t)(f - w->am);
    for (uint32_t i = 0; i < bytes; i += 4)
        w->wrong += myri_space_word(f->resident.space, NULL, at + i) != word;
    if (from >= OF_ALL || word >> 16 != from || bytes != (word & 1 ? LONG : 20u)) {
        w->wrong++;
        return;
    }
    w->times[me][from][word & 0xffff]++;
    w->handled++;
}

static void on_return_of_many(struct am2 *f, uint32_t to, uint32_t reason)
{
    struct many *w = f->owner;
    (void)to, (void)reason;
    w->back++;
}

/* A program with nine endpoints. In a round no ring gets more than it holds, so no request waits for another. */
static void owner_of_many(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct many *w = all->arg;
    uint32_t node = t->host->id, mine = node * OF_NODE;
    for (uint32_t e = 0; e < OF_NODE; e++)
        w->am[mine + e].resident.task = t;
    for (uint32_t k = 0; k < ROUNDS * IN_ROUND; k++) {
        for (uint32_t e = 0; e < OF_NODE; e++) {
            uint32_t to = (node + 1 + (k & 1)) % 3 * OF_NODE + (e + k / 2) % OF_NODE, bytes = k & 1 ? LONG : 20;
            for (uint32_t i = 0; i < bytes; i += 4)
                myri_space_set_word(&w->space[mine + e], NULL, w->at[mine + e] + i, (mine + e) << 16 | k);
            am2_request(&w->am[mine + e], to, 5, w->at[mine + e], bytes);
        }
        while (k % IN_ROUND == IN_ROUND - 1 && w->handled < (k + 1) * OF_ALL && !w->back && !all->hw->fault[0])
            for (uint32_t e = 0; e < OF_NODE; e++)
                (void)am2_poll(&w->am[mine + e]);
    }
}

static void endpoints_come_and_go(void **state)
{
    (void)state;
    static struct sides all;
    static struct many w;
    for (int lost = 0; lost < 2; lost++) {
        memset(&w, 0, sizeof w);
        make_sides(&all, firmware, "H-PP", 3, LONG, 7);
        all.arg = &w;
        all.hw->lost_per_2_32 = lost ? 1u << 27 : 0;
        for (uint32_t i = 0; i < OF_ALL; i++) {
            assert_int_equal(myri_space_init(&w.space[i], &all.hw->host[i / OF_NODE]), 0);
            w.at[i] = myri_space_map(&w.space[i], LONG);
            w.am[i].owner = &w;
            w.am[i].handler[5] = on_one_of_many;
            w.am[i].returned = on_return_of_many;
            assert_int_equal(am2_open(&w.am[i], all.hw, i / OF_NODE, i % OF_NODE, &w.space[i]), 0);
            for (uint32_t to = 0; to < OF_ALL; to++)
                am2_map(&w.am[i], to, to / OF_NODE, to % OF_NODE);
        }
        start_sides(&all, owner_of_many);
        if (myri_hw_run(all.hw) < 0)
            fail_msg("%s: %u handled", rnl_last_error()->text, w.handled);
        assert_int_equal(w.wrong, 0);
        assert_int_equal(w.back, 0);
        uint32_t once = 0;
        for (uint32_t i = 0; i < OF_ALL * OF_ALL * ROUNDS * IN_ROUND; i++) {
            assert_true((&w.times[0][0][0])[i] <= 1);
            once += (&w.times[0][0][0])[i];
        }
        assert_int_equal(once, OF_ALL * ROUNDS * IN_ROUND);
        for (uint32_t node = 0; node < 3; node++)
            assert_true(w.am[node * OF_NODE].kernel.moved_out > OF_NODE && w.am[node * OF_NODE].kernel.faults > 0);
        for (uint32_t i = 0; i < OF_ALL; i++)
            myri_space_fini(&w.space[i]);
        free_sides(&all);
    }
}

static void a_stranger(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct seen *seen = all->arg;
    struct am2_resident *r = &seen->am[t->host->id].resident;
    uint32_t card = seen->am[t->host->id].kernel.card, word;
    uint32_t frame = card + (uint32_t)offsetof(struct am2_card, frame);
    r->task = t;
    am2_hold(r);
    seen->finished += myri_task_store(t, frame + (uint32_t)offsetof(struct am2_frame, taken), 0) == 0;
    seen->wrong += myri_task_store(t, frame + (uint32_t)offsetof(struct am2_frame, name), AM2_VALID) == 0;
    seen->wrong += myri_task_store(t, frame + (uint32_t)sizeof(struct am2_frame), 1) == 0;
    seen->wrong +=
        myri_task_load(t, frame + (uint32_t)(sizeof(struct am2_frame) + offsetof(struct am2_frame, ring)), &word) == 0;
    seen->wrong += myri_task_store(t, card + (uint32_t)offsetof(struct am2_card, where), 0) == 0;
    am2_release(r);
    seen->wrong += myri_task_store(t, frame + (uint32_t)offsetof(struct am2_frame, taken), 0) == 0;
}

static void a_process_sees_its_own_frame_alone(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    run_all(&all, &seen, 2, 0, 0, 0);
    start_sides(&all, a_stranger);
    if (myri_hw_run(all.hw) < 0)
        fail_msg("%s", rnl_last_error()->text);
    assert_int_equal(seen.finished, 2);
    assert_int_equal(seen.wrong, 0);
    assert_int_equal(all.hw->count.refused, 10);
    free_sides(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_handed_over_once),
        cmocka_unit_test(what_nobody_takes_comes_back_with_a_reason),
        cmocka_unit_test(a_window_holds_senders_back),
        cmocka_unit_test(endpoints_come_and_go),
        cmocka_unit_test(a_process_sees_its_own_frame_alone),
    };
    firmware = "am2";
    int failed = cmocka_run_group_tests_name("am2", tests, NULL, NULL);
    firmware = "am2-tuned";
    return failed + cmocka_run_group_tests_name("am2-tuned", tests, NULL, NULL);
}
