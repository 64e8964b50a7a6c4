/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lfc.c - LFC: everybody sends to all and to one at once, with few credits, and nothing stands still or is lost; a
 * slow host holds its senders up; the watchdog interrupts only who does not poll; numbers of a card are dealt once. */
#include "sim/myrinet/systems/lfc/host.h"
#include "tests/myrinet/sides.h"

static const char *firmware; /* the system of this round: the same with each of two firmwares */
enum { EACH = 12, MOST = MYRI_HW_NODES * EACH };

struct seen {
    struct lfc lfc[MYRI_HW_NODES];
    uint32_t next[MYRI_HW_NODES][MYRI_HW_NODES], all[MYRI_HW_NODES], single[MYRI_HW_NODES], wrong, slow_us;
    uint32_t fetched[MOST];
    uint64_t pause_ps;
};

static int on_packet(struct lfc *f, uint32_t from, uint32_t at, uint32_t bytes, struct lfc_packet p)
{
    struct seen *s = f->owner;
    uint32_t me = f->side->node, word = myri_host_word(f->side->host, at);
    (void)p;
    for (uint32_t i = 0; i < bytes; i += 4)
        s->wrong += myri_host_word(f->side->host, at + i) != word;
    s->wrong += (word >> 16 & 0xff) != from || (word & 0xffff) != s->next[me][from]++; /* in the order of each sender */
    if (word >> 24)
        s->single[me]++;
    else
        s->all[me]++;
    if (s->slow_us && me == f->side->nodes - 1)
        myri_task_spend(f->side->task, s->slow_us * (uint64_t)1000000, "compute");
    return 0;
}

static void launch(struct lfc *f, uint32_t word, uint32_t bytes, int all)
{
    struct myri_side *s = f->side;
    uint32_t slot = lfc_send_alloc(f);
    for (uint32_t i = 0; i < bytes; i += 4)
        myri_host_set_word(s->host, s->out + i, word);
    if (all)
        lfc_bcast_launch(f, slot, s->out, bytes);
    else
        lfc_ucast_launch(f, (s->node + 1) % s->nodes, slot, s->out, bytes);
}

/* Each to all first, then to the next node. */
static void everybody(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct lfc *f = &seen->lfc[s->node];
    for (uint32_t k = 0; k < EACH; k++)
        launch(f, s->node << 16 | k, k % 3 ? 1024 : 8, 1);
    for (uint32_t k = 0; k < EACH; k++)
        launch(f, 1u << 24 | s->node << 16 | (EACH + k), 600, 0);
    while ((seen->all[s->node] < EACH * (s->nodes - 1) || seen->single[s->node] < EACH) && !s->hw->fault[0]) {
        myri_task_operate(t, 35, "poll");
        (void)lfc_poll(f);
    }
}

static void start(struct sides *all, struct seen *seen, uint32_t nodes, uint32_t buffers,
                  void (*fn)(struct myri_task *, void *))
{
    make_sides(all, firmware, "H-PP", nodes, 1024, nodes);
    all->arg = seen;
    for (uint32_t i = 0; i < nodes; i++) {
        seen->lfc[i].owner = seen;
        seen->lfc[i].upcall = on_packet;
        all->side[i].buffers = buffers;
        assert_int_equal(lfc_start(&seen->lfc[i], &all->side[i]), 0);
    }
    start_sides(all, fn);
    if (myri_hw_run(all->hw) < 0)
        fail_msg("%u nodes: %s", nodes, rnl_last_error()->text);
    for (uint32_t i = 0; i < nodes; i++)
        assert_int_equal(
            myri_card_peek(&all->hw->card[i], seen->lfc[i].card + (uint32_t)offsetof(struct lfc_card, errors)), 0);
    assert_int_equal(seen->wrong, 0);
}

static void everybody_sends_to_all_with_few_credits(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    static const uint32_t nodes[] = {2, 3, 4, 5, 8, 13, 21, 32};
    for (int i = 0; i < 8; i++)
        for (int few = 0; few < 2; few++) {
            memset(&seen, 0, sizeof seen);
            seen.slow_us = nodes[i] == 5 ? 200 : 0;
            start(&all, &seen, nodes[i], few ? nodes[i] + 1 : 0, everybody); /* one credit a pair, or many */
            for (uint32_t n = 0; n < nodes[i]; n++) {
                assert_int_equal(seen.all[n], EACH * (nodes[i] - 1));
                assert_int_equal(seen.single[n], EACH);
            }
            free_sides(&all);
        }
}

static void fetch(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    for (uint32_t k = 0; k < EACH; k++)
        seen->fetched[lfc_fetch_and_add(&seen->lfc[s->node], 1, 3, 1) % MOST]++;
}

static void numbers_of_a_card_are_dealt_once(void **state)
{
    (void)state;
    static struct sides all;
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    start(&all, &seen, 32, 0, fetch);
    for (uint32_t k = 0; k < MOST; k++)
        assert_int_equal(seen.fetched[k], 1);
    free_sides(&all);
}

/* Node 0 sends a packet each 40 us; node 1 computes, and polls each `pause`. */
static void sender_and_computer(struct myri_task *t, void *arg)
{
    struct sides *all = arg;
    struct myri_side *s = side_of(all, t);
    struct seen *seen = all->arg;
    struct lfc *f = &seen->lfc[s->node];
    for (uint32_t k = 0; k < EACH && s->node == 0; k++) {
        myri_task_spend(t, 40000000, "compute");
        launch(f, s->node << 16 | k, 8, 1);
    }
    while (s->node == 1 && seen->all[1] < EACH && !s->hw->fault[0]) {
        myri_task_spend(t, seen->pause_ps, "compute");
        (void)lfc_poll(f);
    }
}

static uint64_t interrupts_with(uint32_t pause_us)
{
    static struct sides all;
    static struct seen seen;
    memset(&seen, 0, sizeof seen);
    seen.pause_ps = pause_us * (uint64_t)1000000;
    make_sides(&all, firmware, "H-PP", 2, 1024, 1);
    all.arg = &seen;
    for (uint32_t i = 0; i < 2; i++) {
        seen.lfc[i].owner = &seen;
        seen.lfc[i].upcall = on_packet;
        all.side[i].notify = i == 1;
        assert_int_equal(lfc_start(&seen.lfc[i], &all.side[i]), 0);
    }
    start_sides(&all, sender_and_computer);
    assert_int_equal(myri_hw_run(all.hw), 0);
    assert_int_equal(seen.wrong, 0);
    uint64_t n = all.hw->count.interrupts;
    free_sides(&all);
    return n;
}

static void the_watchdog_interrupts_only_who_does_not_poll(void **state)
{
    (void)state;
    assert_int_equal(interrupts_with(20), 0);
    assert_int_equal(interrupts_with(30), 0);
    assert_true(interrupts_with(400) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_sends_to_all_with_few_credits),
        cmocka_unit_test(numbers_of_a_card_are_dealt_once),
        cmocka_unit_test(the_watchdog_interrupts_only_who_does_not_poll),
    };
    firmware = "lfc";
    int failed = cmocka_run_group_tests_name("lfc", tests, NULL, NULL);
    firmware = "lfc-tuned";
    return failed + cmocka_run_group_tests_name("lfc-tuned", tests, NULL, NULL);
}
