/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_am2.c - AM-II: whatever the network loses, spoils or has overtaken, each message is handed over once, or comes
 * back with a reason; a slow receiver and a node without an endpoint. */
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
    uint32_t word = myri_host_word(f->side->host, at), me = f->side->node;
    for (uint32_t i = 0; i < bytes; i += 4)
        s->wrong += myri_host_word(f->side->host, at + i) != word;
    s->wrong += word >> 16 != from || bytes != ((word & 1) ? LONG : 20u);
    s->times[me][from * EACH + (word & 0xffff) % EACH]++;
    s->handled[me]++;
    if (s->slow_us && me == 0)
        myri_task_spend(f->side->task, s->slow_us * (uint64_t)1000000, "compute");
}

static void on_return(struct am2 *f, uint32_t to, uint32_t reason)
{
    struct seen *s = f->owner;
    (void)to;
    s->returned[reason & 7]++;
    s->back++;
}

static void request(struct am2 *f, uint32_t to, uint32_t k)
{
    struct myri_side *s = f->side;
    uint32_t bytes = k & 1 ? LONG : 20;
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, s->out + i, s->node << 16 | k);
    am2_request(f, to, 5, s->out, bytes);
}

/* Each node sends to each other one in turn, and takes in what comes until all have all. */
static void everybody(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct am2 *f = &seen->am[s->node];
    for (uint32_t k = 0; k < EACH; k++)
        request(f, (s->node + 1 + k % (s->nodes - 1)) % s->nodes, k);
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
        assert_int_equal(am2_init(&seen->am[i], &all->side[i]), 0);
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
    if (s->node)
        return;
    for (uint32_t k = 0; k < 6; k++) /* more than there are channels */
        request(&seen->am[0], 1, k);
    request(&seen->am[0], 7, 6); /* no node */
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
        myri_card_poke(&all.hw->card[1], seen.am[1].card + (uint32_t)offsetof(struct am2_card, open), 0);
        start_sides(&all, ask_in_vain);
        if (myri_hw_run(all.hw) < 0)
            fail_msg("%s", rnl_last_error()->text);
        assert_int_equal(seen.handled[1], 0);
        assert_int_equal(seen.returned[AM2_UNREACHABLE], unreachable ? 6 : 0);
        assert_int_equal(seen.returned[AM2_BAD_ENDPOINT], unreachable ? 1 : 7);
        free_sides(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_message_is_handed_over_once),
        cmocka_unit_test(what_nobody_takes_comes_back_with_a_reason),
    };
    firmware = "am2";
    int failed = cmocka_run_group_tests_name("am2", tests, NULL, NULL);
    firmware = "am2-tuned";
    return failed + cmocka_run_group_tests_name("am2-tuned", tests, NULL, NULL);
}
